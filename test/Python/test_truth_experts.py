"""The truth of models with experts against itself in other ways: vectors, loops over tokens, slopes, and equal models."""

import dataclasses
import math

import ml_dtypes
import numpy as np
import pytest
from tools import ROOT

from plateau_truth import experts, model
from plateau_truth.config import Config, Routing, is_trained
from plateau_truth.optimizer import AdamW, correct_biases

BASE = Config(
    vocabulary=23, hidden=8, intermediate=12, layers=2, query_heads=2, key_heads=1, head_size=4, epsilon=1e-6, theta=1e4,
    tied=False, sparse=(0, 1), routing=Routing(experts=8, top_k=3), expert_intermediate=5,
)  # fmt: skip


def with_routing(*, shared=0, gated=False, **fields):
    routing = dataclasses.replace(BASE.routing, **fields)
    return dataclasses.replace(BASE, routing=routing, shared_intermediate=shared, shared_gated=gated)


CONFIGS = {
    "softmax": BASE,
    "top-k-softmax": with_routing(score="top_k_softmax"),
    "sigmoid": with_routing(score="sigmoid", normalize=False),
    "sigmoid-biased": with_routing(score="sigmoid", biased=True, scale=2.5),
    "sigmoid-groups": with_routing(score="sigmoid", biased=True, groups=4, kept_groups=2, scale=2.5, shared=5),
    "softmax-shared": with_routing(normalize=False, scale=2.5, shared=7, gated=True),
}
AUXILIARIES = {
    "alone": {},
    "global": {"balance_coef": 0.7},
    "sequence": {"balance_coef": 0.7, "balance_kind": "sequence"},
    "z": {"z_coef": 0.3},
}


def draw(config):
    numbers = np.random.default_rng(0)
    return {
        name: (1.0 if name.endswith("norm.weight") else 0.0) + 0.3 * numbers.standard_normal(shape)
        for name, shape in config.parameters().items()
    }


def draw_batch(config, tokens=12, sequence=6, document_end=None):
    ids = np.random.default_rng(1).integers(0, config.vocabulary, tokens + 1)
    return model.batch(ids, sequence, document_end)


# --- Routers


def route(routing, logits, bias=None):
    """Ids and weights of each token."""
    logits = np.asarray(logits)
    ids = experts.choose(routing, logits, bias)
    return np.asarray(ids).tolist(), np.asarray(experts.weigh(routing, logits, ids))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bias_chooses_and_does_not_weigh(dtype):
    """The scores are 1.5e-8 and 4.1e-8: taken from the sum with a bias of 12 they would be zero in f32."""
    routing = Routing(experts=4, top_k=2, score="sigmoid", biased=True)
    logits, bias = np.array([[-18, -17, 0, 3]], dtype), np.array([12, 12, 0, 0], dtype)
    assert sorted(route(routing, logits)[0][0]) == [2, 3]
    (ids,), (weights,) = route(routing, logits, bias)
    assert dict(zip(ids, weights)) == {0: pytest.approx(0.26894, abs=5e-6), 1: pytest.approx(0.73106, abs=5e-6)}


SCORES = ["softmax", "top_k_softmax", "sigmoid"]


@pytest.mark.parametrize("score", SCORES)
def test_ties_go_to_the_lower_index(score):
    routing = Routing(experts=8, top_k=2, score=score)
    ids, weights = route(routing, np.full((3, 8), -1.25))
    assert ids == [[0, 1]] * 3
    np.testing.assert_allclose(weights, 0.5, rtol=1e-15)
    assert route(routing, [[1.0, 3, 2, 2, 2, 0, -1, 2], [-1.0, 0, 0, -2, 0, 0, -9, 5]])[0] == [[1, 2], [7, 1]]


def test_ties_of_groups_go_to_the_lower_index():
    routing = Routing(experts=8, top_k=3, score="sigmoid", groups=4, kept_groups=2)
    assert route(routing, np.zeros((1, 8)))[0] == [[0, 1, 2]]


def test_groups_of_negative_values():
    """Groups 1 and 2 are kept, and what they hold is chosen from, although all of it is below zero."""
    routing = Routing(experts=8, top_k=2, score="sigmoid", biased=True, groups=4, kept_groups=2, scale=2.5)
    scores = np.array([0.5, 0.5, 0.2, 0.5, 0.6, 0.5, 0.5, 0.5])
    biased = np.array([-2.5, -2.5, -0.5, -3.5, -1.5, -2.25, -8.5, -0.1])  # Groups: −5, −4, −3.75, −8.6.
    logits = np.log(scores / (1 - scores))[None]
    ids, weights = route(routing, logits, biased - scores)
    assert ids == [[2, 4]]
    np.testing.assert_allclose(weights, [[2.5 * 0.25, 2.5 * 0.75]], rtol=1e-12)
    # The fourth group has the best expert of all, and −0.1 would be chosen were it not for its other one.
    assert route(dataclasses.replace(routing, groups=1, kept_groups=1), logits, biased - scores)[0] == [[7, 2]]
    # Gaps: −4 and −5 between groups, which have the errors of two experts; −1.5 and −2.25 between experts.
    assert experts.margin(routing, logits, biased - scores) == pytest.approx(0.5, abs=1e-12)
    # With −4.25 instead of −5 half of the gap between groups is 0.125.
    closer = biased + np.array([0.75, 0, 0, 0, 0, 0, 0, 0])
    assert experts.margin(routing, logits, closer - scores) == pytest.approx(0.125, abs=1e-12)


def test_weights():
    """Parts of the scores 1/2, 1/4, 1/8 and 1/8."""
    logits = [[math.log(2), math.log(4), 0, 0]]
    routing = Routing(experts=4, top_k=2, normalize=False)
    cases = [
        (routing, [1 / 2, 1 / 4]),
        (dataclasses.replace(routing, scale=1.5), [3 / 4, 3 / 8]),
        (dataclasses.replace(routing, normalize=True), [2 / 3, 1 / 3]),
        (dataclasses.replace(routing, normalize=True, scale=1.5), [1, 1 / 2]),
        (dataclasses.replace(routing, score="top_k_softmax"), [2 / 3, 1 / 3]),
        (dataclasses.replace(routing, score="sigmoid"), [4 / 5, 2 / 3]),
        (dataclasses.replace(routing, score="sigmoid", normalize=True), [6 / 11, 5 / 11]),
    ]
    for each, expected in cases:
        ids, weights = route(each, logits)
        assert ids == [[1, 0]]
        np.testing.assert_allclose(weights, [expected], rtol=1e-14, err_msg=str(each))


def test_margin():
    logits = np.array([[4.0, 1, 3, 2.5], [0, 9, 9, 8.75]])
    assert experts.margin(Routing(experts=4, top_k=2, score="top_k_softmax"), logits) == 0.25
    assert experts.margins(Routing(experts=4, top_k=2, score="top_k_softmax"), logits).tolist() == [0.5, 0.25]
    assert experts.margin(Routing(experts=4, top_k=1, score="top_k_softmax"), logits) == 0
    assert experts.margin(Routing(experts=4, top_k=4, score="top_k_softmax"), logits) == math.inf
    # Half of the gap between groups, 7 and 5.5, smaller than that between experts, 9 and −2, and the other way round.
    grouped = Routing(experts=4, top_k=1, score="top_k_softmax", groups=2, kept_groups=1)
    assert experts.margin(grouped, np.array([[9.0, -2, 3, 2.5]])) == 0.75
    assert experts.margin(grouped, np.array([[9.0, 8, 3, 2.5]])) == 1


def test_balance_loss():
    """f is (1, 1)/2 of both tokens together and (1, 0), (0, 1) of each; P is (1, 1)/2 and (3, 1)/4, (1, 3)/4."""
    softmax, sigmoid = (Routing(experts=2, top_k=1, score=score) for score in ("softmax", "sigmoid"))
    third = math.log(3)
    ids, apart, together = np.array([[0], [1]]), np.eye(2), np.ones((1, 2))
    for routing, logits in [
        (softmax, np.array([[third, 0], [0, third]])),
        (sigmoid, np.log([[3, 1 / 3], [1 / 3, 3]])),  # Scores 3/4 and 1/4.
        (sigmoid, np.log([[3 / 2, 1 / 4], [1 / 4, 3 / 2]])),  # Scores 3/5 and 1/5.
    ]:
        assert experts.balance_loss(routing, logits, ids, together) == pytest.approx(1, rel=1e-14)
        assert experts.balance_loss(routing, logits, ids, apart) == pytest.approx(2 * 3 / 4, rel=1e-14)
        assert experts.balance_loss(routing, logits, ids * 0, together) == pytest.approx(1, rel=1e-14)
        assert experts.balance_loss(routing, logits[:1], ids[:1], together[:, :1]) == pytest.approx(3 / 2, rel=1e-14)
    # Sequences of one and of two tokens: 3/2, and f = (1, 0), P = (1, 1)/2.
    logits, members = np.array([[third, 0], [0, third], [third, 0]]), np.array([[1, 0, 0], [0, 1, 1]])
    uneven = experts.balance_loss(softmax, logits, np.zeros((3, 1), int), members)
    assert uneven == pytest.approx((3 / 2 + 1) / 2, rel=1e-14)


def test_z_loss():
    logits = np.array([[math.log(3), 0], [0, 0]])
    assert experts.z_loss(logits) == pytest.approx((math.log(4) ** 2 + math.log(2) ** 2) / 2, rel=1e-14)


def test_correct_biases():
    name = "model.layers.1.mlp.gate.e_score_correction_bias"
    parameters = {name: np.array([0.5, 0.0, -0.25, 1.0]), "other": np.ones(3)}
    updated = correct_biases(parameters, {1: np.array([7, 0, 2, 3])}, 0.125)
    np.testing.assert_array_equal(updated[name], [0.375, 0.125, -0.125, 1.0])
    np.testing.assert_array_equal(parameters[name], [0.5, 0.0, -0.25, 1.0])
    assert updated["other"] is parameters["other"]


# --- One layer, token by token


def softmax_by_hand(values):
    exponentials = [math.exp(value) for value in values]
    return [each / sum(exponentials) for each in exponentials]


def scores_by_hand(routing, logits):
    return [1 / (1 + math.exp(-value)) for value in logits] if routing.score == "sigmoid" else softmax_by_hand(logits)


def choose_by_hand(routing, logits, bias):
    values = list(logits) if routing.score == "top_k_softmax" else scores_by_hand(routing, logits)
    values = [value + offset for value, offset in zip(values, bias)]
    size = routing.experts // routing.groups
    totals = [sum(sorted(values[group * size : (group + 1) * size])[-2:]) for group in range(routing.groups)]
    if routing.groups == 1:
        totals = [0]
    kept = sorted(range(routing.groups), key=lambda group: -totals[group])[: routing.kept_groups]
    candidates = [expert for expert in range(routing.experts) if expert // size in kept]
    return sorted(candidates, key=lambda expert: -values[expert])[: routing.top_k]


def weigh_by_hand(routing, logits, ids):
    if routing.score == "top_k_softmax":
        weights = softmax_by_hand([logits[expert] for expert in ids])
    else:
        scores = scores_by_hand(routing, logits)
        weights = [scores[expert] for expert in ids]
    total = sum(weights) if routing.normalize else 1
    return [weight / total * routing.scale for weight in weights]


def feed_forward_by_hand(x, gate, up, down):
    inner = gate @ x
    return down @ (inner / (1 + np.exp(-inner)) * (up @ x))


def loss_by_hand(config, parameters, inputs, ids=None):
    """Cross entropy, balance losses and z-loss of a model whose attention adds nothing, and its ids."""
    epsilon = float(np.float32(config.epsilon))
    routing, width = config.routing, config.expert_intermediate

    def rms_norm(x, weight):
        return x / math.sqrt(sum(x * x) / len(x) + epsilon) * parameters[weight]

    def mlp(layer, name):
        return parameters[f"model.layers.{layer}.mlp.{name}"]

    entropies, logits_of, ids_of = [], {layer: [] for layer in config.sparse}, {layer: [] for layer in config.sparse}
    for row, token in enumerate(inputs["tokens"]):
        stream = parameters["model.embed_tokens.weight"][token].copy()
        for layer in range(config.layers):
            x = rms_norm(stream, f"model.layers.{layer}.post_attention_layernorm.weight")
            logits = mlp(layer, "gate.weight") @ x
            bias = mlp(layer, "gate.e_score_correction_bias") if routing.biased else np.zeros(routing.experts)
            chosen = choose_by_hand(routing, logits, bias) if ids is None else ids[layer][row]
            for expert, weight in zip(chosen, weigh_by_hand(routing, logits, chosen)):
                both = mlp(layer, "experts.gate_up_proj")[expert]
                down = mlp(layer, "experts.down_proj")[expert]
                stream += weight * feed_forward_by_hand(x, both[:width], both[width:], down)
            if config.shared_intermediate:
                name = "shared_expert" if config.shared_gated else "shared_experts"
                gate, up, down = (mlp(layer, f"{name}.{each}_proj.weight") for each in ("gate", "up", "down"))
                factor = 1 / (1 + math.exp(-mlp(layer, "shared_expert_gate.weight")[0] @ x)) if config.shared_gated else 1
                stream += factor * feed_forward_by_hand(x, gate, up, down)
            logits_of[layer].append(logits)
            ids_of[layer].append(list(chosen))
        logits = parameters["lm_head.weight"] @ rms_norm(stream, "model.norm.weight")
        if inputs["labels"][row] != model.IGNORE:
            entropies.append(-math.log(softmax_by_hand(logits)[inputs["labels"][row]]))

    def balance(layer, rows):
        total = 0
        for expert in range(routing.experts):
            fraction = sum(list(ids_of[layer][row]).count(expert) for row in rows) / (routing.top_k * len(rows))
            parts = [scores_by_hand(routing, logits_of[layer][row]) for row in rows]
            total += fraction * sum(part[expert] / sum(part) for part in parts) / len(rows)
        return routing.experts * total

    bounds = [*inputs["sequences"], len(inputs["tokens"])]
    terms = {
        "entropy": sum(entropies) / len(entropies),
        "global": sum(balance(layer, range(bounds[-1])) for layer in config.sparse),
        "sequence": sum(
            balance(layer, range(first, last)) for layer in config.sparse for first, last in zip(bounds, bounds[1:])
        ) / (len(bounds) - 1),
        "z": sum(
            math.log(sum(math.exp(value) for value in logits)) ** 2 for layer in config.sparse for logits in logits_of[layer]
        ) / len(inputs["tokens"]),
    }  # fmt: skip
    return terms, ids_of


def without_attention(parameters):
    return {name: value * 0 if "o_proj" in name else value for name, value in parameters.items()}


@pytest.mark.parametrize("name", CONFIGS)
def test_loss_token_by_token(name):
    config = CONFIGS[name]
    parameters, inputs = without_attention(draw(config)), draw_batch(config, document_end=3)
    terms, ids = loss_by_hand(config, parameters, inputs)
    routes = model.routes(config, parameters, inputs)
    assert {layer: route.ids.tolist() for layer, route in routes.items()} == ids
    for options, expected in [
        ({}, terms["entropy"]),
        ({"balance_coef": 0.7, "z_coef": 0.3}, terms["entropy"] + 0.7 * terms["global"] + 0.3 * terms["z"]),
        ({"balance_coef": 0.7, "balance_kind": "sequence"}, terms["entropy"] + 0.7 * terms["sequence"]),
    ]:
        loss, _ = model.loss_and_gradients(config, parameters, inputs, **options)
        assert loss == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("name", CONFIGS)
def test_ids_from_outside_token_by_token(name):
    """Any ids will do, an expert may even come twice, and they change what follows from them alone."""
    config = CONFIGS[name]
    parameters, inputs = without_attention(draw(config)), draw_batch(config)
    ids = {layer: np.random.default_rng(layer).integers(0, 8, (12, 3)) for layer in config.sparse}
    ids[0][0] = [5, 5, 5]
    ids[1][1] = [2, 7, 2]
    terms, _ = loss_by_hand(config, parameters, inputs, ids)
    loss, _ = model.loss_and_gradients(config, parameters, inputs, ids=ids, balance_coef=0.7, z_coef=0.3)
    assert loss == pytest.approx(terms["entropy"] + 0.7 * terms["global"] + 0.3 * terms["z"], rel=1e-13)


# --- Gradients


@pytest.mark.parametrize("auxiliary", AUXILIARIES)
@pytest.mark.parametrize("name", CONFIGS)
def test_gradients_are_slopes(name, auxiliary):
    config, options = CONFIGS[name], AUXILIARIES[auxiliary]
    numbers = np.random.default_rng(1)
    parameters, inputs = draw(config), draw_batch(config)
    ids = {layer: route.ids for layer, route in model.routes(config, parameters, inputs).items()}
    _, gradients = model.loss_and_gradients(config, parameters, inputs, ids=ids, **options)
    assert gradients.keys() == {name for name in config.parameters() if is_trained(name)}
    for name, gradient in gradients.items():
        direction = numbers.standard_normal(gradient.shape)
        direction /= np.linalg.norm(direction)

        def loss_at(distance):
            moved = parameters | {name: parameters[name] + distance * direction}
            return model.loss_and_gradients(config, moved, inputs, ids=ids, **options)[0]

        # Differences over four points err by width^4 of the fifth derivative and by 2^-53 / width of the loss.
        width = 3e-4
        slope = (8 * (loss_at(width) - loss_at(-width)) - (loss_at(2 * width) - loss_at(-2 * width))) / (12 * width)
        assert slope == pytest.approx(np.sum(gradient * direction), abs=1e-9), name


@pytest.mark.parametrize("name", CONFIGS)
def test_ids_of_the_router_itself_change_nothing(name):
    config = CONFIGS[name]
    parameters, inputs = draw(config), draw_batch(config)
    options = {"balance_coef": 0.7, "z_coef": 0.3}
    ids = {layer: route.ids for layer, route in model.routes(config, parameters, inputs).items()}
    loss, gradients = model.loss_and_gradients(config, parameters, inputs, **options)
    again, same = model.loss_and_gradients(config, parameters, inputs, ids=ids, **options)
    assert again == pytest.approx(loss, rel=1e-15)
    for parameter, gradient in gradients.items():
        np.testing.assert_allclose(same[parameter], gradient, rtol=1e-12, atol=1e-15, err_msg=parameter)


def test_experts_without_tokens_have_no_gradient():
    parameters, inputs = draw(BASE), draw_batch(BASE)
    ids = {layer: np.tile([6, 0, 3], (12, 1)) for layer in BASE.sparse}
    _, gradients = model.loss_and_gradients(BASE, parameters, inputs, ids=ids)
    for layer in BASE.sparse:
        for name in ("gate_up_proj", "down_proj"):
            gradient = gradients[f"model.layers.{layer}.mlp.experts.{name}"]
            assert [bool(each.any()) for each in gradient] == [expert in (0, 3, 6) for expert in range(8)]


@pytest.mark.parametrize("name", ["sigmoid-biased", "sigmoid-groups"])
def test_correction_bias_is_not_trained(name):
    """It has no gradient, AdamW leaves it, and while it moves by less than half the margin the loss is the same."""
    config = CONFIGS[name]
    parameters, inputs = draw(config), draw_batch(config)
    loss, gradients = model.loss_and_gradients(config, parameters, inputs, balance_coef=0.7)
    margins = model.routing_margins(config, parameters, inputs)
    numbers = np.random.default_rng(4)
    for layer in config.sparse:
        bias = f"model.layers.{layer}.mlp.gate.e_score_correction_bias"
        assert bias not in gradients and margins[layer] > 0
        for _ in range(8):
            moved = parameters | {bias: parameters[bias] + 0.49 * margins[layer] * numbers.choice([-1, 1], 8)}
            assert model.loss_and_gradients(config, moved, inputs, balance_coef=0.7)[0] == pytest.approx(loss, rel=1e-14)
    updated, _ = AdamW(0.9, 0.95, 1e-8, 0.1, 1.0).update(parameters, gradients, 1e-2)
    changed = {name for name in parameters if not np.array_equal(updated[name], parameters[name])}
    assert changed == set(gradients)


# --- Equal models


def test_equal_experts_are_a_dense_model():
    """Weights that add up to one of experts that are all the same: the feed-forward of one, and the sum of their gradients."""
    dense = dataclasses.replace(BASE, sparse=(), routing=None, expert_intermediate=0, intermediate=5)
    parameters, inputs = draw(dense), draw_batch(dense)
    sparse = draw(BASE) | {name: value for name, value in parameters.items() if ".mlp." not in name}
    for layer in BASE.sparse:
        prefix = f"model.layers.{layer}.mlp."
        gate, up, down = (parameters[f"{prefix}{each}_proj.weight"] for each in ("gate", "up", "down"))
        sparse[prefix + "experts.gate_up_proj"] = np.tile(np.concatenate([gate, up]), (8, 1, 1))
        sparse[prefix + "experts.down_proj"] = np.tile(down, (8, 1, 1))
    expected_loss, expected = model.loss_and_gradients(dense, parameters, inputs)
    loss, gradients = model.loss_and_gradients(BASE, sparse, inputs)
    assert loss == pytest.approx(expected_loss, rel=1e-14)
    for layer in BASE.sparse:
        prefix = f"model.layers.{layer}.mlp."
        both = gradients.pop(prefix + "experts.gate_up_proj").sum(axis=0)
        gradients[prefix + "gate_proj.weight"], gradients[prefix + "up_proj.weight"] = both[:5], both[5:]
        gradients[prefix + "down_proj.weight"] = gradients.pop(prefix + "experts.down_proj").sum(axis=0)
        # How they share the work makes no difference.
        assert np.abs(gradients.pop(prefix + "gate.weight")).max() < 1e-15
    assert gradients.keys() == expected.keys()
    for name, gradient in gradients.items():
        np.testing.assert_allclose(gradient, expected[name], rtol=1e-10, atol=1e-14, err_msg=name)


def test_auxiliary_losses_of_equal_logits():
    """Without preference: ids 0 … k − 1, 1/E of the scores to each, so E · Σ f/E = 1, and the logarithm of E; per layer."""
    config = BASE
    parameters, inputs = draw(config), draw_batch(config)
    parameters |= {name: value * 0 for name, value in parameters.items() if name.endswith("mlp.gate.weight")}
    plain, _ = model.loss_and_gradients(config, parameters, inputs)
    for kind in ("global", "sequence"):
        balanced, _ = model.loss_and_gradients(config, parameters, inputs, balance_coef=0.5, balance_kind=kind)
        assert balanced - plain == pytest.approx(2 * 0.5, rel=1e-13)
    squared, _ = model.loss_and_gradients(config, parameters, inputs, z_coef=0.25)
    assert squared - plain == pytest.approx(2 * 0.25 * math.log(8) ** 2, rel=1e-13)
    routes = model.routes(config, parameters, inputs)
    assert all(route.ids.tolist() == [[0, 1, 2]] * 12 for route in routes.values())
    assert {layer: count.tolist() for layer, count in model.route_counts(config, routes).items()} == {
        layer: [12, 12, 12, 0, 0, 0, 0, 0] for layer in (0, 1)
    }
    assert model.routing_margins(config, parameters, inputs) == {0: 0, 1: 0}


def test_ranks_are_one_batch():
    """Ranks read slices of what one rank reads; step 3 begins again at the front, since the file holds three batches."""
    ids = np.random.default_rng(5).integers(0, 23, 3 * 24 + 9).astype("<u4")
    for step, front in [(0, 0), (1, 24), (2, 48), (3, 0), (7, 24)]:
        one = model.batch(ids[front : front + 25].astype(np.int64), 6, 3)
        for ranks in (1, 2, 4):
            joined = model.batch_of_ranks(ids, step, ranks, 24 // ranks, 6, 3)
            assert joined.keys() == one.keys()
            for name, value in joined.items():
                np.testing.assert_array_equal(value, one[name], err_msg=name)
                assert value.dtype == one[name].dtype
    second = model.batch_of_ranks(ids, 1, 2, 12, 6, 3)
    np.testing.assert_array_equal(second["tokens"][12:], ids[36:48])
    np.testing.assert_array_equal(second["sequences"], [0, 6, 12, 18])


def test_losses_of_parts_and_of_the_whole():
    """Of sequences and of ranks apart, all of one length: cross entropy, z-loss and balance per sequence are the mean of the
    parts; the global balance loss is not."""
    config = CONFIGS["sigmoid-biased"]
    parameters = draw(config)
    ids = np.random.default_rng(6).integers(0, 23, 25)
    whole = model.batch_of_ranks(ids, 0, 2, 12, 6)
    parts = [model.batch(ids[first : first + 7], 6) for first in range(0, 24, 6)]

    def mean_of_parts(**options):
        return np.mean([model.loss_and_gradients(config, parameters, part, **options)[0] for part in parts])

    for options in (AUXILIARIES["alone"], AUXILIARIES["sequence"], AUXILIARIES["z"]):
        loss, _ = model.loss_and_gradients(config, parameters, whole, **options)
        assert loss == pytest.approx(mean_of_parts(**options), rel=1e-13)
    loss, _ = model.loss_and_gradients(config, parameters, whole, **AUXILIARIES["global"])
    assert abs(loss - mean_of_parts(**AUXILIARIES["global"])) > 1e-3


# --- Ids, and rounding


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ({2: np.zeros((12, 3), int)}, "layer 2, which has no experts"),
        ({0: np.zeros((12, 2), int)}, r"of shape \(12, 2\), must be integers of shape \(12, 3\)"),
        ({0: np.zeros((12, 3))}, "float64"),
        ({0: np.full((12, 3), 8)}, r"from 8 to 8, must be in 0 … 7"),
        ({0: np.full((12, 3), -1)}, "from -1 to -1"),
    ],
)
def test_wrong_ids(ids, message):
    with pytest.raises(ValueError, match=message):
        model.loss_and_gradients(BASE, draw(BASE), draw_batch(BASE), ids=ids)


def test_wrong_balance_kind():
    with pytest.raises(ValueError, match="balance_kind is 'local'"):
        model.loss_and_gradients(BASE, draw(BASE), draw_batch(BASE), balance_kind="local")


@pytest.mark.parametrize("name", ["top-k-softmax", "sigmoid-groups", "softmax-shared"])
def test_bfloat16(name):
    """With the same routes the loss is off by a few roundings; statistics of the router stay in f32."""
    config = CONFIGS[name]
    options = {"balance_coef": 0.7, "balance_kind": "sequence", "z_coef": 0.3}
    inputs = draw_batch(config)
    parameters = {
        name: value.astype(ml_dtypes.bfloat16).astype(np.float64) for name, value in draw(config).items()
    }
    routes = model.routes(config, parameters, inputs)
    ids = {layer: route.ids for layer, route in routes.items()}
    rounded = model.routes(config, parameters, inputs, "bfloat16", ids)
    for layer, route in rounded.items():
        assert route.logits.dtype == route.weights.dtype == np.float32
        assert (route.logits.view(np.uint32) & 0xFFFF).any()
        np.testing.assert_array_equal(route.ids, ids[layer])
        # Rows and the stream carry about ten roundings of relative size 2^-9.
        error = route.logits - routes[layer].logits
        assert np.linalg.norm(error) <= 2**-6 * np.linalg.norm(routes[layer].logits)
    expected, _ = model.loss_and_gradients(config, parameters, inputs, ids=ids, **options)
    loss, gradients = model.loss_and_gradients(config, parameters, inputs, "bfloat16", ids=ids, **options)
    assert loss == pytest.approx(expected, rel=2**-7)
    assert all(np.isfinite(gradient).all() for gradient in gradients.values())


def test_tiny():
    """The model that compiled programs are compared on, at a size they are compared at."""
    config = Config.load(ROOT / "models" / "tiny.json")
    numbers = np.random.default_rng(3)
    parameters = {
        name: (1.0 if name.endswith("norm.weight") else 0.0) + 0.03 * numbers.standard_normal(shape)
        for name, shape in config.parameters().items()
    }
    inputs = model.batch_of_ranks(numbers.integers(0, config.vocabulary, 257), 0, 2, 128, 64)
    loss, gradients = model.loss_and_gradients(config, parameters, inputs)
    # Logits of deviation σ = 0.03 · √256: ln V + σ²/2.
    assert loss == pytest.approx(math.log(16384) + 0.48**2 / 2, abs=0.1)
    assert gradients.keys() == config.parameters().keys()
    routes = model.routes(config, parameters, inputs)
    assert all(count.sum() == 512 for count in model.route_counts(config, routes).values())
