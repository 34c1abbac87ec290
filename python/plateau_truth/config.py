"""The fields of a Hugging Face config.json that the model needs, and the parameters it has."""

import dataclasses
import json

CORRECTION_BIAS = "mlp.gate.e_score_correction_bias"


def is_trained(name):
    """Whether the optimizer updates a parameter. The correction bias of a router follows the load of its experts instead."""
    return not name.endswith(CORRECTION_BIAS)


@dataclasses.dataclass(frozen=True)
class Routing:
    """How a router chooses `top_k` of its experts, and how it weighs them.

    `score`: "softmax" over all experts, then the top k; "top_k_softmax", the top k by logit, then softmax over them; "sigmoid"
    of each logit. `biased`: a correction bias is added for the choice, not for the weights. Of `groups` equal groups of
    experts only `kept_groups` are chosen from. `normalize`: the weights of a token are divided by their sum. `scale`
    multiplies them last.
    """

    experts: int
    top_k: int
    score: str = "softmax"
    biased: bool = False
    groups: int = 1
    kept_groups: int = 1
    normalize: bool = True
    scale: float = 1.0

    def __post_init__(self):
        def check(holds, text):
            if not holds:
                raise ValueError(f"{text}: {self}")

        check(1 <= self.top_k <= self.experts, "a token chooses at least one expert and at most all")
        check(self.score in ("softmax", "top_k_softmax", "sigmoid"), "no such score")
        check(self.experts % self.groups == 0, "groups of experts are equal")
        check(1 <= self.kept_groups <= self.groups, "at least one group is kept and at most all")
        if self.groups > 1:
            size = self.experts // self.groups
            check(size >= 2, "the score of a group is the sum of two, so it has two experts")
            check(self.top_k <= self.kept_groups * size, "the kept groups hold fewer experts than a token chooses")


class Fields:
    """The members of a configuration file. A null is as good as no member."""

    def __init__(self, path):
        self.path = path
        with open(path, encoding="utf-8") as file:
            self.members = json.load(file)

    def get(self, name, default=None):
        value = self.members.get(name)
        return default if value is None else value

    def need(self, name, *others):
        """The value of a field that goes by several names."""
        given = {self.get(each) for each in (name, *others)} - {None}
        if len(given) != 1:
            raise ValueError(f"{self.path}: {' or '.join((name, *others))} must be given once, is {sorted(given) or 'missing'}")
        return given.pop()

    def check(self, name, holds, wanted):
        if self.get(name) is not None and not holds(self.get(name)):
            raise ValueError(f"{self.path}: {name} is {self.get(name)!r}, supported is {wanted}")


@dataclasses.dataclass(frozen=True)
class Config:
    vocabulary: int
    hidden: int
    intermediate: int
    layers: int
    query_heads: int
    key_heads: int
    head_size: int
    epsilon: float
    theta: float
    tied: bool
    softcap: float = 0.0  # Logits of the vocabulary are softcap · tanh(logit / softcap); 0 for as they are.
    # The rest is about layers with experts, `sparse`.
    sparse: tuple = ()
    routing: Routing | None = None
    expert_intermediate: int = 0
    shared_intermediate: int = 0  # 0: no expert that all tokens share.
    shared_gated: bool = False  # Whether it is weighed by a sigmoid, as in qwen2_moe.

    @staticmethod
    def load(path):
        fields = Fields(path)
        check_supported(fields)
        heads = fields.need("num_attention_heads")
        dense = Config(
            vocabulary=fields.need("vocab_size"),
            hidden=fields.need("hidden_size"),
            intermediate=fields.need("intermediate_size"),
            layers=fields.need("num_hidden_layers"),
            query_heads=heads,
            key_heads=fields.get("num_key_value_heads", heads),
            head_size=fields.get("head_dim", fields.need("hidden_size") // heads),
            epsilon=fields.need("rms_norm_eps"),
            theta=fields.need("rope_theta"),
            tied=fields.get("tie_word_embeddings", False),
            softcap=fields.get("final_logit_softcapping", 0.0),
        )
        sparse = read_sparse_layers(fields, dense.layers)
        if not sparse:
            return dense
        width = fields.need("moe_intermediate_size")
        gated, plain = fields.get("shared_expert_intermediate_size", 0), fields.get("n_shared_experts", 0)
        if gated and plain:
            raise ValueError(f"{path}: shared_expert_intermediate_size and n_shared_experts are of different models")
        return dataclasses.replace(
            dense,
            sparse=sparse,
            routing=read_routing(fields),
            expert_intermediate=width,
            shared_intermediate=gated or plain * width,
            shared_gated=gated > 0,
        )

    @property
    def shared_prefix(self):
        """What the names of the shared expert's matrices begin with, after those of the layer."""
        return "mlp.shared_expert." if self.shared_gated else "mlp.shared_experts."

    def parameters(self):
        """Name and shape of each parameter, in the order of declaration; matrices are [out, in]."""
        query, key = self.query_heads * self.head_size, self.key_heads * self.head_size
        shapes = {"model.embed_tokens.weight": (self.vocabulary, self.hidden)}
        for layer in range(self.layers):
            prefix = f"model.layers.{layer}."
            shapes |= {
                prefix + "input_layernorm.weight": (self.hidden,),
                prefix + "self_attn.q_proj.weight": (query, self.hidden),
                prefix + "self_attn.k_proj.weight": (key, self.hidden),
                prefix + "self_attn.v_proj.weight": (key, self.hidden),
                prefix + "self_attn.o_proj.weight": (self.hidden, query),
                prefix + "self_attn.q_norm.weight": (self.head_size,),
                prefix + "self_attn.k_norm.weight": (self.head_size,),
                prefix + "post_attention_layernorm.weight": (self.hidden,),
            }
            if layer in self.sparse:
                shapes |= self._expert_parameters(prefix)
            else:
                shapes |= self._gated_parameters(prefix + "mlp.", self.intermediate)
        shapes["model.norm.weight"] = (self.hidden,)
        if not self.tied:
            shapes["lm_head.weight"] = (self.vocabulary, self.hidden)
        return shapes

    def _gated_parameters(self, prefix, width):
        return {
            prefix + "gate_proj.weight": (width, self.hidden),
            prefix + "up_proj.weight": (width, self.hidden),
            prefix + "down_proj.weight": (self.hidden, width),
        }

    def _expert_parameters(self, prefix):
        """Rows 0 … I − 1 of each matrix of gate_up_proj are the gate, the others up."""
        experts, width = self.routing.experts, self.expert_intermediate
        shapes = {
            prefix + "mlp.gate.weight": (experts, self.hidden),
            prefix + "mlp.experts.gate_up_proj": (experts, 2 * width, self.hidden),
            prefix + "mlp.experts.down_proj": (experts, self.hidden, width),
        }
        if self.routing.biased:
            shapes[prefix + CORRECTION_BIAS] = (experts,)
        if self.shared_intermediate:
            shapes |= self._gated_parameters(prefix + self.shared_prefix, self.shared_intermediate)
        if self.shared_gated:
            shapes[prefix + "mlp.shared_expert_gate.weight"] = (1, self.hidden)
        return shapes


def check_supported(fields):
    """Refuses what would change the step. Attention is that of Qwen3; experts may have the fields of other models."""
    types = ("qwen3", "qwen3_moe")
    if fields.need("model_type") not in types:
        raise ValueError(
            f"{fields.path}: model_type is {fields.get('model_type')!r}, whose attention is not that of the supported "
            f"types, {types}"
        )
    fields.check("hidden_act", lambda value: value == "silu", "silu")
    fields.check("attention_bias", lambda value: value is False, "false")
    fields.check("attention_dropout", lambda value: value == 0, "0")
    fields.check("use_sliding_window", lambda value: value is False, "false")
    fields.check("layer_types", lambda value: set(value) <= {"full_attention"}, "full_attention")
    for name in ("rope_scaling", "rope_parameters", "q_lora_rank", "kv_lora_rank"):
        fields.check(name, lambda value: False, "null")


def read_sparse_layers(fields, layers):
    if fields.get("num_experts") is None and fields.get("n_routed_experts") is None and fields.get("model_type") == "qwen3":
        return ()
    if fields.need("num_experts", "n_routed_experts") == 0:
        return ()
    fields.check("decoder_sparse_step", lambda value: value >= 1, "1 or more")
    fields.check("moe_layer_freq", lambda value: value == 1, "1")
    dense = fields.get("mlp_only_layers", [])
    step, first = fields.get("decoder_sparse_step", 1), fields.get("first_k_dense_replace", 0)
    return tuple(layer for layer in range(first, layers) if layer not in dense and (layer + 1) % step == 0)


def read_routing(fields):
    score = fields.get("scoring_func", "softmax")
    fields.check("topk_method", lambda value: value in ("greedy", "noaux_tc"), "greedy or noaux_tc")
    biased = fields.get("topk_method") == "noaux_tc"
    if biased and score != "sigmoid":
        raise ValueError(f"{fields.path}: topk_method noaux_tc goes with scoring_func sigmoid, which is {score!r}")
    groups = fields.get("n_group", 1)
    if groups > 1 and not biased:
        raise ValueError(f"{fields.path}: n_group is {groups}, supported with topk_method noaux_tc")
    try:
        return Routing(
            experts=fields.need("num_experts", "n_routed_experts"),
            top_k=fields.need("num_experts_per_tok"),
            score=score,
            biased=biased,
            groups=groups,
            kept_groups=fields.need("topk_group") if groups > 1 else 1,
            normalize=fields.need("norm_topk_prob"),
            scale=fields.get("routed_scaling_factor", 1.0),
        )
    except ValueError as error:
        raise ValueError(f"{fields.path}: {error}") from None
