"""Compiled steps of several ranks and micro-batches, also of ranks with different numbers of tokens: the numbers of one rank, the
same bits in each run, no memory kept."""

import json
import struct

import numpy as np
import pytest
from tools import ROOT, read_tensors, run, train

CONFIG = ROOT / "test" / "Tools" / "Inputs" / "sparse.json"
TOKENS = 96  # Of all ranks; in sequences of 3, so that eight ranks have four each.

# ranks, expert ranks, vocabulary ranks, micro-batches
DIVISIONS = [
    (1, 1, 1, 2),
    (1, 1, 1, 4),
    (2, 2, 1, 1),
    (2, 1, 2, 4),
    (4, 2, 4, 1),
    (4, 4, 2, 2),
    (8, 8, 4, 1),
    (8, 4, 8, 4),
]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "ids"
    ids = np.random.default_rng(1).integers(0, 32, 4 * TOKENS + 1)
    path.write_bytes(struct.pack(f"<{len(ids)}I", *ids))
    return path


def build(path, ranks, expert_ranks, vocabulary_ranks, micro_batches, *flags):
    run(
        "plateau-import", CONFIG, "--ranks", ranks, "--expert-ranks", expert_ranks, "--vocab-ranks", vocabulary_ranks,
        "--micro-batches", micro_batches, "--tokens", TOKENS // ranks, "--sequence", 3, "--dtype", "f32", "-o", path, *flags,
    )  # fmt: skip
    return path


def step(program, data, ranks, steps, *flags):
    # Documents end after token 5: ranks then have different numbers of labels that count.
    return train(program, data, steps, "--gemm", "reference", "--document-end", 5, *flags, ranks=ranks)


@pytest.fixture(scope="module")
def one_rank(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("one")
    program = build(folder / "step.mlir", 1, 1, 1, 1)
    (line,) = step(program, data, 1, 1, "--save-gradients", folder / "gradients")
    return line["loss"], read_tensors(folder / "gradients")


@pytest.mark.parametrize("division", DIVISIONS, ids=lambda division: "-".join(map(str, division)))
def test_gradients_are_those_of_one_rank(division, one_rank, data, tmp_path):
    loss, gradients = one_rank
    checkpoint = "layer" if division[3] == 2 else "none"
    program = build(tmp_path / "step.mlir", *division, "--checkpoint", checkpoint)
    (line,) = step(program, data, division[0], 1, "--poison", "--save-gradients", tmp_path / "gradients")
    assert abs(line["loss"] - loss) <= 1e-6 * loss
    found = read_tensors(tmp_path / "gradients")
    assert found.keys() == gradients.keys()
    for name, expected in gradients.items():
        assert found[name].shape == expected.shape, name
        # Sums of some hundred f32 products in another order.
        assert np.abs(found[name] - expected).max() <= 1e-5 * np.abs(expected).max(), name
    assert "model.layers.1.mlp.gate.weight" in gradients


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """Two batches of 12 tokens, in each a document of 7 and one of 5."""
    path = tmp_path_factory.mktemp("documents") / "ids"
    ids = np.random.default_rng(2).integers(6, 32, 25)
    ids[[6, 11, 18, 23]] = 5
    path.write_bytes(struct.pack("<25I", *ids))
    return path


def train_documents(folder, documents, ranks, expert_ranks, vocabulary_ranks, *flags, padded=True):
    program = folder / "step.mlir"
    run(
        "plateau-import", CONFIG, "--ranks", ranks, "--expert-ranks", expert_ranks, "--vocab-ranks", vocabulary_ranks,
        "--tokens", 12, "--sequence", 12, "--dtype", "f32", "-o", program, *(["--padded"] if padded else []),
    )  # fmt: skip
    lines = step(program, documents, ranks, 2, "--poison", "--save-gradients", folder / "gradients", *flags)
    return [line["loss"] for line in lines], read_tensors(folder / "gradients")


@pytest.mark.parametrize(
    "division, tokens",
    [((2, 2, 1), "7,5"), ((2, 1, 2), "12,0"), ((2, 2, 2), "0,12"), ((4, 4, 1), "7,0,5,0"), ((4, 2, 4), "0,7,0,5")],
    ids=lambda value: str(value).replace(" ", ""),
)
def test_ranks_with_different_numbers_of_tokens(division, tokens, documents, tmp_path):
    for name in "one", "ranks":
        (tmp_path / name).mkdir()
    losses, gradients = train_documents(tmp_path / "one", documents, 1, 1, 1, padded=False)
    found_losses, found = train_documents(tmp_path / "ranks", documents, *division, "--rank-tokens", tokens)
    assert found_losses == pytest.approx(losses, rel=1e-6)
    for name, expected in gradients.items():
        assert np.abs(found[name] - expected).max() <= 1e-5 * np.abs(expected).max(), name


@pytest.mark.parametrize("division", [(4, 2, 4, 2), (8, 8, 2, 1)], ids=["4", "8"])
def test_runs_give_the_same_bits(division, data, tmp_path):
    program = build(tmp_path / "step.mlir", *division)
    files = []
    for name in "ab":
        flags = ["--poison"] if name == "b" else []
        train(
            program, data, 3, "--document-end", 5, "--save", tmp_path / name, "--save-gradients", tmp_path / f"{name}-gradients",
            *flags, learning_rate=1e-2, ranks=division[0],
        )  # fmt: skip
        files.append((tmp_path / name).read_bytes() + (tmp_path / f"{name}-gradients").read_bytes())
    assert files[0] == files[1]


def round_up(size):
    return -(-size // 64) * 64


# Parameters that all ranks hold, of the experts, and of embedding table and output projection.
COMMON, EXPERTS, VOCABULARY = 2592, 2304, 2 * 512


@pytest.mark.parametrize("memory", ["planned", "pool"])
@pytest.mark.parametrize("division", [(1, 1, 1, 1), (4, 2, 4, 2)], ids=["one rank", "four ranks"])
def test_a_step_keeps_no_memory(division, memory, data, tmp_path):
    ranks, expert_ranks, vocabulary_ranks, _ = division
    program = build(tmp_path / "step.mlir", *division, "--checkpoint", "layer")
    output = run(
        "plateau-run", program, "--ranks", ranks, "--steps", 20, "--data", data, "--lr", 0.0, "--json", "--gemm", "reference",
        "--document-end", 5, *(["--dynamic"] if memory == "pool" else []),
    )  # fmt: skip
    *lines, summary = map(json.loads, output.splitlines())
    # What stays: parameters, gradients and two moments; four numbers a token; rate, number of the step, loss and norm; and the arenas.
    parameters = COMMON + EXPERTS // expert_ranks + VOCABULARY // vocabulary_ranks
    stays = ranks * (4 * round_up(4 * parameters) + 4 * round_up(4 * TOKENS // ranks) + 4 * round_up(4))
    if memory == "planned":
        stays += ranks * sum(round_up(space["arena_bytes"]) for space in summary["spaces"])
    assert [line["live_bytes"] for line in lines] == [stays] * 20
