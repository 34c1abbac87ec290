"""Small models with experts, one for each kind of router, and tokens that their routers decide on clearly."""

import dataclasses
import json

import ml_dtypes
import numpy as np
import safetensors.numpy
from tools import run

from plateau_truth import experts, model
from plateau_truth.config import CORRECTION_BIAS, Config

SEQUENCE = 64
TOKENS = 512  # Of all ranks.
DOCUMENT_END = 3

BASE = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "mlp_only_layers": [0],
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "norm_topk_prob": True,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000,
    "tie_word_embeddings": False,
}
TWO = {"num_hidden_layers": 2, "mlp_only_layers": []}
SIGMOID = {"scoring_func": "sigmoid", "routed_scaling_factor": 2.5}
KINDS = {
    "softmax": {},
    "softmax-not-normalised": TWO
    | {"norm_topk_prob": False, "routed_scaling_factor": 1.5, "shared_expert_intermediate_size": 40},
    "top-k-softmax": TWO | {"scoring_func": "top_k_softmax"},
    "sigmoid": TWO | SIGMOID | {"n_shared_experts": 1},
    "sigmoid-bias": TWO | SIGMOID | {"topk_method": "noaux_tc", "norm_topk_prob": False},
    "sigmoid-groups": TWO
    | SIGMOID
    | {"topk_method": "noaux_tc", "n_group": 4, "topk_group": 2, "shared_expert_intermediate_size": 40},
}


@dataclasses.dataclass(frozen=True)
class Division:
    """How a step is divided, and whether it computes layers again in the backward pass."""

    ranks: int = 1
    expert_ranks: int = 1
    vocabulary_ranks: int = 1
    micro_batches: int = 1
    checkpoint: str = "none"

    def __str__(self):
        return f"{self.ranks}-{self.expert_ranks}-{self.vocabulary_ranks}-{self.micro_batches}-{self.checkpoint}"

    def build(self, path, model, *flags, dtype="f32"):
        """Imports the step of a Model."""
        run(
            "plateau-import", model.path, "--ranks", self.ranks, "--expert-ranks", self.expert_ranks,
            "--vocab-ranks", self.vocabulary_ranks, "--micro-batches", self.micro_batches, "--checkpoint", self.checkpoint,
            "--tokens", model.tokens // self.ranks, "--sequence", SEQUENCE, "--dtype", dtype, "-o", path, *flags,
        )  # fmt: skip
        return path


def draw_parameters(config):
    """Numbers that bfloat16 can hold, so that both types start from the same."""
    numbers = np.random.default_rng(20261129)
    parameters = {}
    for name, shape in config.parameters().items():
        value = numbers.standard_normal(shape)
        if name.endswith("norm.weight"):
            value = 1 + 0.2 * value
        elif name.endswith(CORRECTION_BIAS):
            value = np.round(8 * value) / 64  # Sums with multiples of 1/64 are exact.
        elif name.endswith("mlp.gate.weight"):
            value *= 2 / np.sqrt(config.hidden)  # Logits of deviation 2.
        else:
            value *= 0.06
        parameters[name] = value.astype(ml_dtypes.bfloat16).astype(np.float64)
    return parameters


class Model:
    """A configuration, parameters in float64, and a folder with the files of both."""

    def __init__(self, path, folder, tokens=TOKENS, parameters=None):
        self.path, self.folder, self.tokens = path, folder, tokens  # Tokens of a step, on all ranks.
        self.config = Config.load(path)
        self.parameters = draw_parameters(self.config) if parameters is None else parameters
        self.parameters_file = folder / "parameters.safetensors"
        narrow = {name: value.astype(np.float32) for name, value in self.parameters.items()}
        safetensors.numpy.save_file(narrow, self.parameters_file)

    @staticmethod
    def make(kind, folder):
        path = folder / "config.json"
        path.write_text(json.dumps(BASE | KINDS[kind]))
        return Model(path, folder)

    def batch(self, ids, step=0, ranks=1, document_end=None):
        return model.batch_of_ranks(ids, step, ranks, self.tokens // ranks, SEQUENCE, document_end)

    def draw_ids(self, margin, *, in_logits=False, documents=False, seed=7):
        """Token ids of a step, and the label of the last, for which routers choose by at least `margin` in float64.

        What a token is routed by depends on it and the tokens before it in its sequence. So the first of each sequence that
        chooses by less is drawn again, until there is none.
        """
        numbers = np.random.default_rng(seed)
        ids = numbers.integers(DOCUMENT_END + 1, self.config.vocabulary, self.tokens + 1)
        if documents:
            # About eight documents a sequence, and one of a single token.
            ids[numbers.random(ids.shape) < 8 / SEQUENCE] = DOCUMENT_END
            ids[[10, 11]] = DOCUMENT_END
        for _ in range(200):
            inputs = self.batch(ids, document_end=DOCUMENT_END if documents else None)
            close = (self.margins(inputs, in_logits) < margin).reshape(-1, SEQUENCE)
            sequences = np.flatnonzero(close.any(axis=1))
            if not len(sequences):
                return ids
            rows = sequences * SEQUENCE + close[sequences].argmax(axis=1)
            ids[rows] = numbers.integers(DOCUMENT_END + 1, self.config.vocabulary, len(rows))
        raise AssertionError(f"{self.path}: no tokens are chosen for by {margin}")

    def margins(self, inputs, in_logits=False):
        """[tokens]: the smallest margin of any layer, in what experts are compared by or in their logits."""
        return margins_of(self.config, self.parameters, model.routes(self.config, self.parameters, inputs), in_logits)

    def save_ids(self, ids, name="ids.bin"):
        path = self.folder / name
        np.asarray(ids).astype("<u4").tofile(path)
        return path


def margins_of(config, parameters, routes, in_logits=False):
    """[tokens]: the smallest margin of any layer, in what experts are compared by or in their logits."""
    routing = config.routing
    if in_logits:
        assert not routing.biased, "a bias is added to scores, not to logits"
        routing = dataclasses.replace(routing, score="top_k_softmax")
    of_layers = [
        experts.margins(routing, route.logits, parameters.get(f"model.layers.{layer}.{CORRECTION_BIAS}"))
        for layer, route in routes.items()
    ]
    return np.min(of_layers, axis=0)


def errors_of(actual, expected):
    """max|a−b| / max|b| of each tensor, those of routers first."""
    assert actual.keys() == expected.keys()
    for name in expected:
        assert actual[name].shape == expected[name].shape, name
        assert np.abs(expected[name]).max() > 0, f"{name} is zero"
    names = sorted(expected, key=lambda name: not name.endswith("mlp.gate.weight"))
    return {name: np.abs(actual[name] - expected[name]).max() / np.abs(expected[name]).max() for name in names}


def compare(actual, expected, tolerance):
    """max|a−b| ≤ tolerance · max|b| for each tensor."""
    wrong = {name: error for name, error in errors_of(actual, expected).items() if not error <= tolerance}
    assert not wrong, f"errors above {tolerance}: " + ", ".join(f"{name} {error:.3g}" for name, error in wrong.items())
