"""The truth itself: its gradients against finite differences of its loss, and properties that the equations imply."""

import numpy as np
import pytest

from plateau_truth import model
from plateau_truth.config import Config

CONFIG = Config(
    vocabulary=37, hidden=12, intermediate=20, layers=2, query_heads=4, key_heads=2, head_size=6, epsilon=1e-6, theta=1e4,
    tied=False,
)  # fmt: skip


def draw(config):
    numbers = np.random.default_rng(0)
    return {
        name: (1.0 if len(shape) == 1 else 0.0) + 0.3 * numbers.standard_normal(shape)
        for name, shape in config.parameters().items()
    }


@pytest.mark.parametrize("tied", [False, True])
def test_gradients_are_slopes(tied):
    config = Config(**{**CONFIG.__dict__, "tied": tied})
    numbers = np.random.default_rng(1)
    parameters = draw(config)
    inputs = model.batch(numbers.integers(0, config.vocabulary, 25), 12, document_end=3)
    _, gradients = model.loss_and_gradients(config, parameters, inputs)
    for name, value in parameters.items():
        direction = numbers.standard_normal(value.shape)
        direction /= np.linalg.norm(direction)

        def loss_at(distance):
            return model.loss_and_gradients(config, parameters | {name: value + distance * direction}, inputs)[0]

        # Differences over four points err by width^4 of the fifth derivative and by 2^-53 / width of the loss.
        width = 1e-3
        slope = (8 * (loss_at(width) - loss_at(-width)) - (loss_at(2 * width) - loss_at(-2 * width))) / (12 * width)
        assert slope == pytest.approx(np.sum(gradients[name] * direction), abs=1e-9), name


def test_documents_are_apart():
    """The loss of packed documents is that of each alone, weighted by its labels."""
    parameters = draw(CONFIG)
    first, second = np.array([5, 9, 11, 3]), np.array([8, 30, 2, 17, 3])
    packed, _ = model.loss_and_gradients(CONFIG, parameters, model.batch(np.concatenate([first, second, [0]]), 9, 3))
    alone = [
        model.loss_and_gradients(CONFIG, parameters, model.batch(np.append(tokens, 0), len(tokens), 3))[0]
        for tokens in (first, second)
    ]
    assert packed == pytest.approx((3 * alone[0] + 4 * alone[1]) / 7, rel=1e-12)


def test_first_loss_of_equal_logits():
    """With a projection of zeros every token is as likely as any other: ln V."""
    parameters = draw(CONFIG) | {"lm_head.weight": np.zeros((37, 12))}
    loss, _ = model.loss_and_gradients(CONFIG, parameters, model.batch(np.arange(9), 8))
    assert loss == pytest.approx(np.log(37), rel=1e-14)


def test_nothing_counts():
    """Without a counted label the loss and all gradients are zero."""
    inputs = model.batch(np.arange(9), 8)
    inputs["labels"][:] = model.IGNORE
    loss, gradients = model.loss_and_gradients(CONFIG, draw(CONFIG), inputs)
    assert loss == 0 and all(not gradient.any() for gradient in gradients.values())


def test_rotary_phases_are_f32():
    """At a large position the phase is that of the rounded product, far from that of exact arithmetic."""
    position = 1_048_575
    cos, _ = model.rotary_table(CONFIG, np.array([position], np.int32), np.float64)
    frequency = np.float32(1e4 ** (-2 / 6))
    assert cos[0, 1] == pytest.approx(np.cos(float(np.float32(position) * frequency)), abs=1e-15)
    assert abs(cos[0, 1] - np.cos(position * 1e4 ** (-2 / 6))) > 1e-4


def test_vocabulary_losses_by_hand():
    """Logits 0 … 3 and the label 2, with each option by its formula."""
    logits, labels = np.array([[0.0, 1.0, 2.0, 3.0]]), np.array([2])
    lse = np.log(1 + np.e + np.e**2 + np.e**3)

    def loss(config=CONFIG, **options):
        return float(model.vocabulary_losses(config, logits, labels, **options)[0])

    assert loss() == pytest.approx(lse - 2, rel=1e-14)
    assert loss(smoothing=0.1) == pytest.approx(0.9 * (lse - 2) + 0.1 * (lse - 1.5), rel=1e-14)
    assert loss(z=0.01) == pytest.approx(lse - 2 + 0.01 * lse**2, rel=1e-14)
    capped = 2 * np.tanh(logits[0] / 2)
    expected = np.log(np.exp(capped).sum()) - capped[2]
    assert loss(Config(**{**CONFIG.__dict__, "softcap": 2.0})) == pytest.approx(expected, rel=1e-14)
    assert float(model.vocabulary_losses(CONFIG, logits, np.array([model.IGNORE]), 0.1, 0.1)[0]) == 0
