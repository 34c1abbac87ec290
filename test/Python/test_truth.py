"""Compiled and interpreted training steps against the independent truth in JAX."""

import dataclasses

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from tools import ROOT, import_step, read_tensors, train

from plateau_truth import model
from plateau_truth.config import Config
from plateau_truth.optimizer import AdamW

DOCUMENT_END = 3


@dataclasses.dataclass(frozen=True)
class Case:
    """A model and a shape of its batches."""

    model: str
    tokens: int
    sequence: int
    documents: bool = False

    def __str__(self):
        return f"{self.model}-{self.tokens}-{self.sequence}{'-documents' if self.documents else ''}"

    @property
    def config(self):
        return Config.load(ROOT / "models" / f"{self.model}.json")

    @property
    def flags(self):
        return ["--document-end", DOCUMENT_END] if self.documents else []

    def draw_parameters(self, folder):
        """Parameters that bfloat16 can hold, so that both types start from the same numbers, and their file."""
        numbers = np.random.default_rng(20240607)
        parameters = {}
        for name, shape in self.config.parameters().items():
            normal = numbers.standard_normal(shape)
            value = 1 + 0.2 * normal if len(shape) == 1 else 0.03 * normal
            parameters[name] = value.astype(ml_dtypes.bfloat16).astype(np.float32)
        safetensors.numpy.save_file(parameters, folder / "parameters.safetensors")
        return {name: value.astype(np.float64) for name, value in parameters.items()}, folder / "parameters.safetensors"

    def draw_batches(self, folder, steps):
        """Batches of token ids, and the data file that holds them one after the other."""
        numbers = np.random.default_rng(7)
        ids = numbers.integers(0, self.config.vocabulary, steps * self.tokens + 1).astype("<u4")
        if self.documents:
            # About eight documents a sequence, one of a single token, one that ends with its sequence.
            ids[numbers.random(ids.shape) < 8 / self.sequence] = DOCUMENT_END
            ids[[10, 11, self.sequence - 1]] = DOCUMENT_END
        ids.tofile(folder / "tokens.bin")
        end = DOCUMENT_END if self.documents else None
        batches = [
            model.batch(ids[step * self.tokens : (step + 1) * self.tokens + 1].astype(np.int64), self.sequence, end)
            for step in range(steps)
        ]
        return batches, folder / "tokens.bin"


SMALL = [Case("tiny-dense", 256, 64), Case("tiny-odd", 250, 50), Case("tiny-odd", 250, 125, documents=True)]
CASES = SMALL + [Case("tiny-dense", 1024, 512)]


def gradients_of(case, folder, parameters_file, data, *flags, dtype="f32", import_flags=(), name="step", batch=0):
    """Loss of the step that reads `batch` at the given parameters, and the file of its gradients."""
    step = folder / f"{name}.mlir"
    if not step.exists():
        import_step(step, case.model, case.tokens, case.sequence, dtype, *import_flags)
    gradients = folder / f"{name}-{batch}.safetensors"
    where = ["--init", parameters_file, "--first-step", batch + 1]
    lines = train(step, data, 1, *where, "--save-gradients", gradients, *case.flags, *flags, first=batch + 1)
    return lines[0]["loss"], gradients


def compare(actual, expected, tolerance):
    """max|a−b| ≤ tolerance · max|b| for each tensor."""
    assert actual.keys() == expected.keys()
    errors = {name: np.abs(actual[name] - expected[name]).max() / np.abs(expected[name]).max() for name in expected}
    worst = max(errors, key=errors.get)
    assert errors[worst] <= tolerance, f"{worst}: {errors[worst]:.3g} > {tolerance}"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients_f32(case, tmp_path):
    # A sum of n products in f32 errs by about sqrt(n)·2^-24 of its terms' size: 1e-5 leaves room for n up to 16,384 twice.
    parameters, parameters_file = case.draw_parameters(tmp_path)
    (batch,), data = case.draw_batches(tmp_path, 1)
    expected_loss, expected = model.loss_and_gradients(case.config, parameters, batch)
    loss, gradients = gradients_of(case, tmp_path, parameters_file, data)
    assert abs(loss - expected_loss) <= 1e-5 * expected_loss
    compare(read_tensors(gradients), expected, 1e-5)


def bf16_errors(case, folder):
    """For each of several batches: errors of ours and of JAX's bfloat16 run against float64, losses and tensors by name."""
    parameters, parameters_file = case.draw_parameters(folder)
    batches, data = case.draw_batches(folder, 4 if case.tokens < 1024 else 2)
    for number, batch in enumerate(batches):
        expected_loss, expected = model.loss_and_gradients(case.config, parameters, batch)
        jax_loss, jax_gradients = model.loss_and_gradients(case.config, parameters, batch, "bfloat16")
        loss, gradients = gradients_of(case, folder, parameters_file, data, dtype="bf16", batch=number)
        actual = read_tensors(gradients)
        assert actual.keys() == expected.keys()
        tensors = {name: (actual[name] - expected[name], jax_gradients[name] - expected[name]) for name in expected}
        yield abs(loss - expected_loss), abs(jax_loss - expected_loss), tensors


def check_bf16(loss_error, jax_loss_error, tensors):
    """The error of the loss and the largest error of each tensor are at most 1.5 times those of JAX's own bfloat16 run.

    A loss is one number, and JAX's may be right by chance. Rounding a logit of size 1/2, which is what these models have, moves
    it by up to 2^-10: an error of the loss below that is let pass.
    """
    assert loss_error <= max(1.5 * jax_loss_error, 2**-10)
    ratios = {name: np.abs(error).max() / np.abs(jax_error).max() for name, (error, jax_error) in tensors.items()}
    worst = max(ratios, key=ratios.get)
    assert ratios[worst] <= 1.5, f"{worst}: {ratios[worst]:.3g} times the error of JAX"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients_bf16(case, tmp_path):
    for errors in bf16_errors(case, tmp_path):
        check_bf16(*errors)


@pytest.mark.parametrize("loss_error, element", [(0.002, 0.2), (0.0001, 0.31)], ids=["loss", "one element"])
def test_bf16_bound_rejects(loss_error, element):
    """One element of one tensor, or the loss, beyond the bound."""
    tensors = {"good": (np.array([0.1, -0.2]), np.array([0.2, 0.1])), "bad": (np.array([0, -element]), np.array([-0.2, 0]))}
    check_bf16(0.0009, 0.0001, tensors | {"bad": tensors["good"]})
    with pytest.raises(AssertionError):
        check_bf16(loss_error, 0.001, tensors)


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_gradients_interpreted(case, tmp_path):
    """In float64 nothing is rounded but the printed loss, which is f32."""
    parameters, parameters_file = case.draw_parameters(tmp_path)
    (batch,), data = case.draw_batches(tmp_path, 1)
    expected_loss, expected = model.loss_and_gradients(case.config, parameters, batch)
    loss, gradients = gradients_of(case, tmp_path, parameters_file, data, "--interpret")
    assert abs(loss - expected_loss) <= 2**-24 * expected_loss
    compare(read_tensors(gradients), expected, 1e-9)


ADAMW = {"beta1": 0.8, "beta2": 0.97, "epsilon": 1e-7, "weight_decay": 0.05, "clip_norm": 1.2}


def train_truth(case, parameters, batches, learning_rate):
    """The losses of a run in float64, and whether each update was clipped."""
    optimizer = AdamW(**ADAMW)
    losses, clipped = [], []
    for batch in batches:
        loss, gradients = model.loss_and_gradients(case.config, parameters, batch)
        parameters, norm = optimizer.update(parameters, gradients, learning_rate)
        losses.append(loss)
        clipped.append(norm > ADAMW["clip_norm"])
    return losses, clipped


@pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("case", [Case("tiny-dense", 128, 64), Case("tiny-odd", 250, 50)], ids=str)
def test_training(case, interpret, tmp_path):
    """Twenty steps over four batches, which come round five times, so that the loss falls and errors could build up."""
    steps, learning_rate = 20, 2.0**-10
    if interpret and case.model == "tiny-dense":
        steps = 3  # The interpreter is slow on purpose.
    parameters, parameters_file = case.draw_parameters(tmp_path)
    batches, data = case.draw_batches(tmp_path, 4)
    expected, clipped = train_truth(case, parameters, [batches[step % 4] for step in range(steps)], learning_rate)
    options = [text for name, value in ADAMW.items() for text in ("--" + name.replace("_", "-"), value)]
    step = import_step(tmp_path / "step.mlir", case.model, case.tokens, case.sequence, "f32", *options)
    flags = ["--interpret"] if interpret else []
    lines = train(step, data, steps, "--init", parameters_file, *flags, learning_rate=learning_rate)
    losses = [line["loss"] for line in lines]
    assert any(clipped) and (steps < 20 or expected[-1] < 0.9 * expected[0])
    np.testing.assert_allclose(losses, expected, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("case", SMALL, ids=str)
def test_same_bits(case, dtype, tmp_path):
    """Checkpoint regions, poisoned memory and a second run change no bit of a gradient (reference GEMM)."""
    _, parameters_file = case.draw_parameters(tmp_path)
    _, data = case.draw_batches(tmp_path, 1)
    variants = {
        "plain": ((), ()),
        "again": ((), ()),
        "poisoned": ((), ("--poison",)),
        "checkpoint": (("--checkpoint", "layer"), ("--poison",)),
    }
    results = {}
    for name, (import_flags, flags) in variants.items():
        loss, gradients = gradients_of(
            case, tmp_path, parameters_file, data, "--gemm", "reference", *flags, dtype=dtype, import_flags=import_flags, name=name
        )
        results[name] = loss, gradients.read_bytes()
    for name, result in results.items():
        assert result == results["plain"], name


@pytest.mark.parametrize("case", SMALL[:1], ids=str)
def test_run_is_repeatable(case, tmp_path):
    """Two runs of the default GEMM from a seed: the same losses, the same bits in every tensor of the state."""
    _, data = case.draw_batches(tmp_path, 3)
    step = import_step(tmp_path / "step.mlir", case.model, case.tokens, case.sequence)
    runs = []
    for name in ("first", "second"):
        saved = tmp_path / f"{name}.safetensors"
        lines = train(step, data, 3, "--seed", 11, "--save", saved, learning_rate=1e-3)
        runs.append(([line["loss"] for line in lines], saved.read_bytes()))
    assert runs[0] == runs[1]


def initial_values(seed, name, shape, mean, deviation):
    """Numbers from (seed, name, element): SplitMix64 words, then the method of Box and Muller."""
    golden, mask = 0x9E3779B97F4A7C15, (1 << 64) - 1

    def mix(x):
        x = np.asarray(x, np.uint64)
        with np.errstate(over="ignore"):
            x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))

    digest = 0xCBF29CE484222325
    for byte in name.encode():
        digest = ((digest ^ byte) * 0x100000001B3) & mask
    key = int(mix((int(mix((seed + golden) & mask)) + digest) & mask))
    count = int(np.prod(shape))
    index = np.arange(1, 2 * ((count + 1) // 2) + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        words = mix(np.uint64(key) + index * np.uint64(golden))
    uniform = ((words[0::2] >> np.uint64(11)) + np.uint64(1)).astype(np.float64) * 2.0**-53
    angle = (words[1::2] >> np.uint64(11)).astype(np.float64) * 2.0**-53
    radius = np.sqrt(-2 * np.log(uniform))
    normal = np.stack([radius * np.cos(2 * np.pi * angle), radius * np.sin(2 * np.pi * angle)], axis=1)
    return (mean + deviation * normal.reshape(-1)[:count]).reshape(shape)


def test_initial_parameters(tmp_path):
    """A run without updates saves the parameters it drew: those of the rule, for a seed."""
    case = Case("tiny-odd", 250, 50)
    _, data = case.draw_batches(tmp_path, 1)
    step = import_step(tmp_path / "step.mlir", case.model, case.tokens, case.sequence)
    saved = tmp_path / "state.safetensors"
    train(step, data, 1, "--seed", 5, "--save", saved, learning_rate=0.0)
    tensors = read_tensors(saved)
    for name, shape in case.config.parameters().items():
        mean, deviation = (1.0, 0.0) if len(shape) == 1 else (0.0, 0.02)
        expected = initial_values(5, name, shape, mean, deviation)
        np.testing.assert_allclose(tensors[name], expected, rtol=2**-23, atol=2**-40, err_msg=name)
