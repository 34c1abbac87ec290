"""Steps with experts whose rows go by iterations and to helpers: the losses, gradients and exact digests of the plain step, in a
fraction of the memory for rows."""

import json
import re

import numpy as np
import pytest
from expert_models import compare
from safetensors.numpy import load_file, save_file
from test_schedule import INPUTS, LAYERS, divided, import_step, memory_of
from tools import json_lines, losses_of, read_tensors, rewrite_dispatch, run

# --- models/tiny.json on four ranks

# 9 chunks of 29 tokens send 58 rows to a rank on average.
FORMS = {
    "chunks": rewrite_dispatch("max-chunks=9 balance=none capacity-rows=72"),
    "helpers": rewrite_dispatch("max-chunks=9 capacity-rows=72 helper-slots=1 min-rows=4 imbalance-threshold=1"),
    "vocabulary": rewrite_dispatch("max-chunks=9 capacity-rows=72 helper-slots=1 min-rows=4", "moe-ring-vocab{tile-bytes=262144}"),
}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A step, tokens of which few are frequent and most rare, and what three plain steps leave."""
    folder = tmp_path_factory.mktemp("tiny")
    step = import_step(folder / "step.mlir", "tiny", 4, 256, 128, "f32", *divided(4), "--checkpoint", "layer")
    often = 1 / np.arange(1, 16385)
    ids = np.random.default_rng(5).choice(16384, 8192, p=often / often.sum())
    ids.astype("<u4").tofile(folder / "ids")
    return folder, step, run_tiny(step, folder / "ids", folder / "plain")


def run_tiny(step, data, save, *flags):
    """Lines of three steps, the state they leave, and the gradients of the first, which is reported and traced."""
    arguments = [step, "--ranks", 4, "--data", data, "--lr", 1e-3, "--json", *flags]
    output = run("plateau-run", *arguments, "--steps", 3, "--save", save)
    pages = ["--report", f"{save}.html", "--trace", f"{save}.trace"]
    run("plateau-run", *arguments, "--steps", 1, "--save-gradients", f"{save}.gradients", *pages)
    return json_lines(output), read_tensors(save), read_tensors(f"{save}.gradients")


@pytest.mark.parametrize("form", FORMS)
def test_losses_are_those_of_the_plain_step(form, tiny, tmp_path):
    folder, step, (plain, state, gradients) = tiny
    lines, other_state, other_gradients = run_tiny(step, folder / "ids", tmp_path / "state", *FORMS[form])
    expected, found = losses_of(plain), losses_of(lines)
    if form == "vocabulary":  # Sums of logits in another order.
        assert found[0] == pytest.approx(expected[0], rel=1e-6)
    else:  # Rows are computed as they are without iterations: the same bits.
        assert found[0] == expected[0]
    assert found == pytest.approx(expected, rel=1e-4)
    compare(other_gradients, gradients, 1e-5)
    # AdamW divides gradients by their size: the rounding of a small one moves a parameter by some part of the rate.
    for name, value in state.items():
        if not name.startswith("plateau."):
            assert np.abs(other_state[name] - value).max() <= 2e-3 * np.abs(value).max(), name

    dispatch, memory = lines[-2]["dispatch"], lines[-1]
    for space in memory["spaces"]:
        assert space["observed_peak_bytes"] == space["planned_peak_bytes"] > 0
        assert space["allocations_after_start"] == 0
    assert memory["host_fences"] == LAYERS
    assert len({line["live_bytes"] for line in lines if "step" in line}) == 1
    # What came of the routes.
    assert [plan["layer"] for plan in dispatch] == list(range(LAYERS))
    for plan in dispatch:
        assert 9 == plan["chunks"] <= plan["iterations"] and plan["most_received"] <= 72 == plan["capacity_rows"]
        if form == "chunks":
            assert plan["iterations"] > 9 and plan["moves"] == 0
            assert plan["load_max_over_mean"] == plan["home_load_max_over_mean"]
        if form == "helpers":
            assert plan["moves"] > 0 and plan["load_max_over_mean"] < plan["home_load_max_over_mean"]
    assert not any("dispatch" in line for line in plain)


def test_the_pool_gives_the_bits_of_the_plan(tiny, tmp_path):
    folder, step, _ = tiny
    for name, flags in (("planned", ()), ("pooled", ("--dynamic",))):
        arguments = (step, "--ranks", 4, "--steps", 2, "--data", folder / "ids", "--lr", 1e-3, "--save", tmp_path / name)
        output = run("plateau-run", *arguments, *FORMS["helpers"], *flags)
        assert re.search(
            r"^experts, per layer: (\d+ \.\.\. )?\d+ iterations of 9 chunks, at most \d+ of 72 rows at a rank, \d+ moves?, "
            r"fullest rank [\d.]+ x the mean \([\d.]+ at home\)$", output, re.MULTILINE,
        )  # fmt: skip
    assert (tmp_path / "planned").read_bytes() == (tmp_path / "pooled").read_bytes()


def test_one_iteration_without_moves_is_the_plain_step(tiny, tmp_path):
    """Helpers that nothing is moved to change no bit."""
    folder, step, _ = tiny
    for name, flags in (("plain", ()), ("helpers", rewrite_dispatch("helper-slots=1 imbalance-threshold=100"))):
        memory_of(step, folder / "ids", 4, 2, "--save", tmp_path / name, *flags)
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "helpers").read_bytes()


def test_rows_take_little_memory(tmp_path, tiny):
    """The shape of tools/demo. A ninth of the tokens, at most a quarter more rows than the mean, two of some values."""
    step = import_step(tmp_path / "step.mlir", "tiny", 4, 1024, 512, "f32", *divided(4), "--checkpoint", "layer")
    data, page = tiny[0] / "ids", tmp_path / "report.html"

    def peak(*flags):
        run("plateau-run", step, "--ranks", 4, "--steps", 0, "--data", data, "--lr", 1e-3, "--report", page, *flags)
        report = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page.read_text(), re.DOTALL)[1])
        peaks = dict(zip(report["components"], report["spaces"][0]["component_peaks"], strict=True))
        return peaks["dispatch"] + peaks["experts"]

    plain = peak()
    assert peak(*rewrite_dispatch("max-chunks=9 balance=none capacity-rows=285")) < plain / 8
    assert peak(*rewrite_dispatch("max-chunks=9 capacity-rows=285 helper-slots=1")) < plain / 4


# --- Exact digests

# Configuration, ranks, options of the import, options of the run, tokens of a rank, of a sequence
EXACT = {
    "regions": ("experts", 4, [*divided(4), "--checkpoint", "layer"], [], 16, 8),
    "no-regions": ("experts", 4, [*divided(4), "--checkpoint", "none"], [], 16, 8),
    "two-groups": ("experts", 4, ["--expert-ranks", 2, "--checkpoint", "layer"], [], 16, 8),
    "one-rank": ("sparse", 1, ["--checkpoint", "layer"], [], 16, 8),
    "micro-batches": ("experts", 2, [*divided(2), "--micro-batches", 2, "--checkpoint", "layer"], [], 16, 4),
    "seven-five": ("sparse", 2, [*divided(2), "--padded", "--checkpoint", "layer"], ["--rank-tokens", "7,5"], 12, 12),
    "twelve-none": ("sparse", 2, [*divided(2), "--padded", "--checkpoint", "layer"], ["--rank-tokens", "12,0"], 12, 12),
    "none-some": ("sparse", 4, [*divided(4), "--padded", "--checkpoint", "none"], ["--rank-tokens", "0,12,1,0"], 12, 12),
}
# Few rows in an iteration, helpers, and both; on four ranks a token of each source is 8 rows.
EXACT_OPTIONS = [
    "max-chunks=3 balance=none capacity-rows=8",
    "max-chunks=1 helper-slots=1 min-rows=1 imbalance-threshold=1",
    "max-chunks=5 helper-slots=2 min-rows=2 imbalance-threshold=1 capacity-rows=11 in-flight=3",
]


@pytest.mark.parametrize("case", EXACT)
def test_exact_digests_stay(case, tmp_path):
    config, ranks, flags, where, tokens, sequence = EXACT[case]
    step = import_step(tmp_path / "step.mlir", INPUTS / f"{config}.json", ranks, tokens, sequence, "f32", *flags)
    np.random.default_rng(9).integers(0, 32, 257).astype("<u4").tofile(tmp_path / "ids")
    arguments = ["plateau-run", step, "--steps", 2, "--data", tmp_path / "ids", "--document-end", 31, "--lr", 1e-3, *where]
    expected = run(*arguments, "--exact")
    assert expected.count("loss") == 2
    losses = losses_of(json_lines(run(*arguments, "--json")))
    for options in EXACT_OPTIONS:
        form = rewrite_dispatch(options)
        assert run(*arguments, "--exact", *form) == expected, options
        # Compiled, on poisoned memory.
        lines = json_lines(run(*arguments, "--json", "--poison", *form))
        assert losses_of(lines) == pytest.approx(losses, rel=1e-5), options
        if ranks > 1 or "max-chunks=1 " not in options:  # One rank has nothing to even out.
            assert any("dispatch" in line for line in lines), options


def test_orders_of_helpers(tmp_path):
    step = import_step(tmp_path / "step.mlir", INPUTS / "experts.json", 2, 32, 8, "f32", *divided(2), "--checkpoint", "layer")
    np.random.default_rng(9).integers(0, 32, 257).astype("<u4").tofile(tmp_path / "ids")
    form = rewrite_dispatch("max-chunks=3 helper-slots=1 min-rows=2 imbalance-threshold=1 capacity-rows=16")
    arguments = ["plateau-run", step, "--ranks", 2, "--steps", 1, "--data", tmp_path / "ids", "--lr", 1e-3, *form]
    (plan, _) = json_lines(run(*arguments, "--json"))[-2]["dispatch"]
    assert plan["moves"] > 0 and plan["iterations"] > 3
    assert "20 orders" in run(*arguments, "--orders", 20, "--poison")


def test_logits_that_are_not_finite(tmp_path):
    """Sums of a router overflow, to infinities and to NaN: updates are skipped, or the run ends, as without iterations."""
    step = import_step(tmp_path / "step.mlir", INPUTS / "experts.json", 2, 32, 8, "f32", *divided(2), "--checkpoint", "layer")
    np.random.default_rng(9).integers(0, 32, 257).astype("<u4").tofile(tmp_path / "ids")
    arguments = ["plateau-run", step, "--data", tmp_path / "ids", "--lr", 1e-3, "--json", "--poison"]
    run(*arguments, "--steps", 0, "--save", tmp_path / "state")
    state = load_file(tmp_path / "state")
    parameters = {name: value for name, value in state.items() if name.startswith("model.") or name == "lm_head.weight"}
    gate = parameters["model.layers.1.mlp.gate.weight"]
    gate[1], gate[2, ::2], gate[2, 1::2] = 3e38, 3e38, -3e38
    save_file(parameters, tmp_path / "parameters")
    arguments += ["--steps", 2, "--init", tmp_path / "parameters"]
    lines = []
    for form in [], rewrite_dispatch("max-chunks=3 helper-slots=1 min-rows=2 imbalance-threshold=1 capacity-rows=16"):
        lines.append(json_lines(run(*arguments, *form)))
        with pytest.raises(AssertionError, match="layers.1.*token"):
            run(*arguments, "--strict", *form)
    for each in lines:
        assert [line["skipped"] for line in each if "step" in line] == [True, True]
