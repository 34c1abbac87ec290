"""What the truth reads from a configuration: parameters, layers with experts, routers, and what it refuses."""

import json
import math

import pytest
from tools import ROOT

from plateau_truth.config import Config, Routing

TOTALS = {
    "tiny": {
        "embedding": 4194304, "lm_head": 4194304, "attention": 786432, "router": 8192, "experts": 6291456, "norms": 2816,
        "dense": 0, "shared": 0,
    },
    "qwen3-30b-a3b": {
        "embedding": 311164928, "lm_head": 311164928, "attention": 905969664, "router": 12582912, "experts": 28991029248,
        "norms": 210944, "dense": 0, "shared": 0,
    },
}  # fmt: skip


def group_of(name):
    marks = {
        "embed_tokens": "embedding", "lm_head": "lm_head", "norm.weight": "norms", "self_attn": "attention",
        "mlp.gate.": "router", "mlp.experts.": "experts", "mlp.shared_expert": "shared", "mlp.": "dense",
    }  # fmt: skip
    return next(group for mark, group in marks.items() if mark in name)


@pytest.mark.parametrize(("name", "total", "sparse"), [("tiny", 15_477_504, 4), ("qwen3-30b-a3b", 30_532_122_624, 48)])
def test_parameter_counts(name, total, sparse):
    config = Config.load(ROOT / "models" / f"{name}.json")
    counts = dict.fromkeys(TOTALS[name], 0)
    for parameter, shape in config.parameters().items():
        counts[group_of(parameter)] += math.prod(shape)
    assert config.sparse == tuple(range(sparse))
    assert counts == TOTALS[name]
    assert sum(counts.values()) == total


def load(folder, **fields):
    """tiny.json with other fields; None takes a field away."""
    members = json.loads((ROOT / "models" / "tiny.json").read_text()) | fields
    path = folder / "config.json"
    path.write_text(json.dumps({name: value for name, value in members.items() if value is not None}))
    return Config.load(path)


def test_layer_of_qwen3_moe(tmp_path):
    config = load(tmp_path, num_hidden_layers=1)
    layer = [(name.removeprefix("model.layers.0."), shape) for name, shape in config.parameters().items() if ".mlp." in name]
    assert layer == [
        ("mlp.gate.weight", (8, 256)),
        ("mlp.experts.gate_up_proj", (8, 512, 256)),
        ("mlp.experts.down_proj", (8, 256, 256)),
    ]
    assert config.routing == Routing(experts=8, top_k=2, score="softmax", normalize=True, scale=1.0)


def test_layer_with_a_gated_shared_expert(tmp_path):
    config = load(tmp_path, num_hidden_layers=1, shared_expert_intermediate_size=40)
    layer = [(name.removeprefix("model.layers.0.mlp."), shape) for name, shape in config.parameters().items() if ".mlp." in name]
    assert layer[3:] == [
        ("shared_expert.gate_proj.weight", (40, 256)),
        ("shared_expert.up_proj.weight", (40, 256)),
        ("shared_expert.down_proj.weight", (256, 40)),
        ("shared_expert_gate.weight", (1, 256)),
    ]


def test_layer_with_the_fields_of_deepseek(tmp_path):
    config = load(
        tmp_path, num_experts=None, n_routed_experts=8, n_shared_experts=2, scoring_func="sigmoid", topk_method="noaux_tc",
        n_group=4, topk_group=2, routed_scaling_factor=2.5, first_k_dense_replace=3, moe_layer_freq=1,
    )  # fmt: skip
    assert config.routing == Routing(
        experts=8, top_k=2, score="sigmoid", biased=True, groups=4, kept_groups=2, normalize=True, scale=2.5
    )
    assert config.sparse == (3,)
    layer = [(name.removeprefix("model.layers.3.mlp."), shape) for name, shape in config.parameters().items() if "3.mlp." in name]
    assert layer[3:] == [
        ("gate.e_score_correction_bias", (8,)),
        ("shared_experts.gate_proj.weight", (512, 256)),
        ("shared_experts.up_proj.weight", (512, 256)),
        ("shared_experts.down_proj.weight", (256, 512)),
    ]
    assert config.parameters()["model.layers.2.mlp.up_proj.weight"] == (768, 256)


@pytest.mark.parametrize(
    ("fields", "sparse"),
    [
        ({"decoder_sparse_step": 2}, (1, 3)),
        ({"decoder_sparse_step": 3}, (2,)),
        ({"mlp_only_layers": [0, 3]}, (1, 2)),
        ({"decoder_sparse_step": 2, "mlp_only_layers": [1]}, (3,)),
        ({"num_experts": 0}, ()),
    ],
)
def test_sparse_layers(fields, sparse, tmp_path):
    config = load(tmp_path, **fields)
    assert config.sparse == sparse
    names = config.parameters()
    assert [f"model.layers.{layer}.mlp.gate.weight" in names for layer in range(4)] == [layer in sparse for layer in range(4)]
    assert [f"model.layers.{layer}.mlp.up_proj.weight" in names for layer in range(4)] == [
        layer not in sparse for layer in range(4)
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model_type": "deepseek_v3"}, "model_type is 'deepseek_v3'"),
        ({"model_type": "qwen2_moe"}, "model_type is 'qwen2_moe'"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu', supported is silu"),
        ({"attention_bias": True}, "attention_bias is True"),
        ({"rope_scaling": {"type": "yarn"}}, "rope_scaling"),
        ({"kv_lora_rank": 512}, "kv_lora_rank is 512"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "layer_types"),
        ({"num_experts": None}, "num_experts or n_routed_experts must be given once, is missing"),
        ({"n_routed_experts": 4}, r"must be given once, is \[4, 8\]"),
        ({"num_experts_per_tok": None}, "num_experts_per_tok must be given once, is missing"),
        ({"norm_topk_prob": None}, "norm_topk_prob"),
        ({"num_experts_per_tok": 9}, "at least one expert and at most all"),
        ({"decoder_sparse_step": 0}, "decoder_sparse_step is 0"),
        ({"moe_layer_freq": 2}, "moe_layer_freq is 2"),
        ({"scoring_func": "tanh"}, "no such score"),
        ({"topk_method": "group_limited_greedy"}, "topk_method is 'group_limited_greedy'"),
        ({"topk_method": "noaux_tc"}, "goes with scoring_func sigmoid"),
        ({"n_group": 4, "topk_group": 2}, "n_group is 4, supported with topk_method noaux_tc"),
        ({"scoring_func": "sigmoid", "topk_method": "noaux_tc", "n_group": 3, "topk_group": 2}, "groups of experts are equal"),
        ({"scoring_func": "sigmoid", "topk_method": "noaux_tc", "n_group": 8, "topk_group": 2}, "it has two experts"),
        ({"scoring_func": "sigmoid", "topk_method": "noaux_tc", "n_group": 4, "topk_group": 5}, "at least one group is kept"),
        (
            {"scoring_func": "sigmoid", "topk_method": "noaux_tc", "n_group": 4, "topk_group": 1, "num_experts_per_tok": 3},
            "the kept groups hold fewer experts",
        ),
        ({"n_shared_experts": 1, "shared_expert_intermediate_size": 64}, "of different models"),
    ],
)
def test_unsupported(fields, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        load(tmp_path, **fields)
