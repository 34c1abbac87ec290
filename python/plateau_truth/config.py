"""The fields of a Hugging Face config.json that a dense model needs, and the parameters it has."""

import dataclasses
import json


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

    @staticmethod
    def load(path):
        with open(path, encoding="utf-8") as file:
            fields = json.load(file)
        heads = fields["num_attention_heads"]
        return Config(
            vocabulary=fields["vocab_size"],
            hidden=fields["hidden_size"],
            intermediate=fields["intermediate_size"],
            layers=fields["num_hidden_layers"],
            query_heads=heads,
            key_heads=fields.get("num_key_value_heads", heads),
            head_size=fields.get("head_dim", fields["hidden_size"] // heads),
            epsilon=fields["rms_norm_eps"],
            theta=fields["rope_theta"],
            tied=fields.get("tie_word_embeddings", False),
        )

    def parameters(self):
        """Name and shape of each parameter, in the order of the checkpoint; matrices are [out, in]."""
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
                prefix + "mlp.gate_proj.weight": (self.intermediate, self.hidden),
                prefix + "mlp.up_proj.weight": (self.intermediate, self.hidden),
                prefix + "mlp.down_proj.weight": (self.hidden, self.intermediate),
            }
        shapes["model.norm.weight"] = (self.hidden,)
        if not self.tied:
            shapes["lm_head.weight"] = (self.vocabulary, self.hidden)
        return shapes
