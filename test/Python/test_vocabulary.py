"""Steps whose ranks divide the embedding table and the output projection, also where the vocabulary does not divide: the losses of
one rank, one state for any number of ranks, and the gradients of the truth."""

import dataclasses
import json

import numpy as np
import pytest
from expert_models import SEQUENCE, Model, compare
from tools import ROOT, read_tensors, run, train

from plateau_truth import model

# ranks, ranks that divide the vocabulary
DIVISIONS = [(2, 2), (4, 4), (4, 2)]


def write_config(folder, **fields):
    """models/tiny.json with two layers, one of them dense, and other fields."""
    path = folder / "config.json"
    members = json.loads((ROOT / "models" / "tiny.json").read_text())
    path.write_text(json.dumps(members | {"num_hidden_layers": 2, "mlp_only_layers": [0]} | fields))
    return path


def build(folder, config, tokens, ranks, vocabulary_ranks, *flags, dtype="f32"):
    path = folder / f"step-{ranks}-{vocabulary_ranks}.mlir"
    run(
        "plateau-import", config, "--ranks", ranks, "--vocab-ranks", vocabulary_ranks, "--tokens", tokens // ranks,
        "--sequence", 16, "--dtype", dtype, "-o", path, *flags,
    )  # fmt: skip
    return path


def draw_ids(folder, vocabulary, count):
    path = folder / "ids"
    ids = np.random.default_rng(3).integers(0, vocabulary, count)
    ids[[0, -1]] = vocabulary - 1  # The last row that exists.
    ids.astype("<u4").tofile(path)
    return path


def check_state(path, expected, tolerance):
    """The same tensors, no row more, and the same numbers up to `tolerance`."""
    state = read_tensors(path)
    assert state.keys() == expected.keys()
    for name, value in expected.items():
        assert state[name].shape == value.shape, name
        assert np.abs(state[name] - value).max() <= tolerance * max(np.abs(value).max(), 1e-6), name


@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
def test_losses_are_those_of_one_rank(tied, tmp_path):
    config = write_config(tmp_path, vocab_size=1021, tie_word_embeddings=tied)
    data = draw_ids(tmp_path, 1021, 3 * 64 + 1)

    def train_on(*division):
        program = build(tmp_path, config, 64, *division)
        save = tmp_path / f"state-{division}"
        lines = train(program, data, 3, "--poison", "--save", save, learning_rate=1e-3, ranks=division[0])
        return [line["loss"] for line in lines], save

    losses, state = train_on(1, 1)
    expected = read_tensors(state)
    assert expected["model.embed_tokens.weight"].shape == (1021, 256)
    assert ("lm_head.weight" in expected) != tied
    for division in DIVISIONS:
        found, other = train_on(*division)
        assert found == pytest.approx(losses, rel=1e-5), division
        # AdamW divides gradients by their size: the rounding of a small one moves a parameter by some part of the rate.
        check_state(other, expected, 2e-3)


@pytest.mark.parametrize("vocabulary, division", [(3, (4, 4)), (5, (4, 4)), (5, (8, 4)), (1, (2, 2))], ids=str)
def test_ranks_without_rows(vocabulary, division, tmp_path):
    """Of 3 rows the fourth rank has none, of 5 in parts of 2 neither; and one word needs no learning."""
    config = write_config(tmp_path, vocab_size=vocabulary, hidden_size=32)
    data = draw_ids(tmp_path, vocabulary, 129)
    losses = []
    for ranks, vocabulary_ranks in [(1, 1), division]:
        program = build(tmp_path, config, 128, ranks, vocabulary_ranks)
        lines = train(program, data, 1, "--poison", "--save-gradients", tmp_path / f"g{ranks}", ranks=ranks)
        losses.append(lines[0]["loss"])
    assert losses[1] == pytest.approx(losses[0], rel=1e-5, abs=1e-6)
    check_state(tmp_path / f"g{division[0]}", read_tensors(tmp_path / "g1"), 1e-4)


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_a_state_goes_on_on_other_ranks(dtype, tmp_path):
    config = write_config(tmp_path, vocab_size=1021, tie_word_embeddings=dtype == "bf16")
    data = draw_ids(tmp_path, 1021, 4 * 64 + 1)
    programs = {division: build(tmp_path, config, 64, *division, dtype=dtype) for division in [(1, 1), *DIVISIONS]}

    def go_on(division, steps, *flags, first=1):
        lines = train(programs[division], data, steps, *flags, learning_rate=1e-3, first=first, ranks=division[0])
        return [line["loss"] for line in lines]

    first = go_on((4, 4), 2, "--save", tmp_path / "part")
    rest = go_on((4, 4), 2, "--init", tmp_path / "part", "--save", tmp_path / "rest", first=3)
    # Without a stop: the same bits.
    assert go_on((4, 4), 4, "--save", tmp_path / "whole") == first + rest
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "rest").read_bytes()
    for division, program in programs.items():
        # No step: what was loaded is what is saved.
        train(program, data, 0, "--init", tmp_path / "part", "--save", tmp_path / "same", ranks=division[0])
        assert (tmp_path / "same").read_bytes() == (tmp_path / "part").read_bytes(), division
        found = go_on(division, 2, "--init", tmp_path / "part", first=3)
        assert found == pytest.approx(rest, rel=1e-5 if dtype == "f32" else 2e-3), division


# Fields of the configuration, options of the import, and what the truth calls them.
LOSSES = {
    "plain": ({}, [], {}),
    "smoothing": ({}, ["--label-smoothing", 0.125], {"smoothing": 0.125}),
    "z": ({}, ["--vocab-z-loss", 2**-6], {"vocabulary_z": 2**-6}),
    "softcap": ({"final_logit_softcapping": 0.5}, [], {}),
    "all": ({"tie_word_embeddings": True}, ["--label-smoothing", 0.25, "--vocab-z-loss", 2**-7, "--logit-softcap", 0.75],
            {"smoothing": 0.25, "vocabulary_z": 2**-7}),
}  # fmt: skip


@pytest.fixture(scope="module")
def truth(tmp_path_factory):
    """For each of LOSSES a dense model, its data, and loss and gradients of the truth."""
    found = {}
    for name, (fields, _, options) in LOSSES.items():
        folder = tmp_path_factory.mktemp(name)
        path = folder / "config.json"
        path.write_text(
            json.dumps(
                {
                    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": 203, "hidden_size": 32,
                    "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
                    "head_dim": 16, "rms_norm_eps": 1e-6, "rope_theta": 10000, "tie_word_embeddings": False,
                }
                | fields
            )
        )  # fmt: skip
        small = Model(path, folder, tokens=4 * SEQUENCE)
        ids = np.random.default_rng(11).integers(0, 203, small.tokens + 1)
        config = small.config
        if name == "all":
            config = dataclasses.replace(config, softcap=0.75)
        ids[[4, 90]] = 202
        inputs = small.batch(ids, document_end=5)
        loss, gradients = model.loss_and_gradients(config, small.parameters, inputs, **options)
        found[name] = small, small.save_ids(ids), loss, gradients
    return found


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("division", [(1, 1), (4, 4), (4, 2)], ids=str)
def test_gradients_are_those_of_the_truth(name, division, truth, tmp_path):
    small, data, loss, expected = truth[name]
    ranks, vocabulary_ranks = division
    run(
        "plateau-import", small.path, "--ranks", ranks, "--vocab-ranks", vocabulary_ranks, "--tokens", small.tokens // ranks,
        "--sequence", SEQUENCE, "--dtype", "f32", "-o", tmp_path / "step.mlir", *LOSSES[name][1],
    )  # fmt: skip
    for flags, tolerance in (["--poison"], 2e-5), (["--interpret"], 1e-9):
        (line,) = train(
            tmp_path / "step.mlir", data, 1, "--init", small.parameters_file, "--document-end", 5, "--save-gradients",
            tmp_path / "gradients", *flags, ranks=ranks,
        )  # fmt: skip
        assert line["loss"] == pytest.approx(loss, rel=1e-5)
        compare(read_tensors(tmp_path / "gradients"), expected, tolerance)


def test_the_truths_differ(truth):
    """Each option changes the loss by far more than the tolerance."""
    losses = sorted(loss for _, _, loss, _ in truth.values())
    assert min(np.diff(losses)) > 1e-3
