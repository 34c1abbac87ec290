"""Loss of the dense model, in float64 or in bfloat16.

In the bfloat16 form parameters and activations are bfloat16; statistics, scores, softmax, logits and the loss are float32.
"""

import jax
import jax.numpy as jnp
import numpy as np

IGNORE = -100


def batch(tokens, sequence, document_end=None):
    """Inputs of one step from tokens[0 … N].

    The label of token i is token i + 1. A sequence of `sequence` tokens is one document, or several when `document_end` is the
    id of the last token of each: such a token has no label, and the next one begins again at position 0.
    """
    count = len(tokens) - 1
    inputs = {
        "tokens": np.asarray(tokens[:count], np.int32),
        "labels": np.array(tokens[1:], np.int32),
        "positions": np.empty(count, np.int32),
        "starts": np.empty(count, np.int32),
    }
    start = 0
    for row in range(count):
        if row % sequence == 0 or (row > 0 and tokens[row - 1] == document_end):
            start = row
        inputs["starts"][row] = start
        inputs["positions"][row] = row - start
        if tokens[row] == document_end:
            inputs["labels"][row] = IGNORE
    return inputs


def rotary_table(config, positions, dtype):
    """Cosine and sine of f32 phases: the frequencies and the phases are rounded to float32, as transformers computes them."""
    exponents = np.arange(0, config.head_size, 2, dtype=np.float64) / config.head_size
    frequencies = (config.theta**-exponents).astype(np.float32)
    phases = positions.astype(np.float32)[:, None] * frequencies[None, :]
    assert phases.dtype == np.float32
    return np.cos(phases.astype(np.float64)).astype(dtype), np.sin(phases.astype(np.float64)).astype(dtype)


def loss(config, parameters, inputs, dtype):
    """Mean cross entropy over the labels that are not IGNORE. `dtype` is the type of parameters and activations.

    The two constants of the model are float32 numbers, as they are where tensors are float32; all else is exact.
    """
    epsilon, scale = float(np.float32(config.epsilon)), float(np.float32(config.head_size**-0.5))
    wide = jnp.float64 if dtype == "float64" else jnp.float32
    rows, heads, groups, size = len(inputs["tokens"]), config.query_heads, config.key_heads, config.head_size
    cos, sin = inputs["cos"][:, None, :], inputs["sin"][:, None, :]
    row = jnp.arange(rows)
    visible = (row[None, :] <= row[:, None]) & (row[None, :] >= inputs["starts"][:, None])

    def linear(x, name):
        return x @ parameters[name].T

    def rms_norm(x, name):
        x = x.astype(wide)
        x = x / jnp.sqrt(jnp.mean(x * x, axis=-1, keepdims=True) + epsilon)
        return (x * parameters[name].astype(wide)).astype(dtype)

    def rotate(x):
        first, second = jnp.split(x.astype(wide), 2, axis=-1)
        return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1).astype(dtype)

    def attention(x, prefix):
        query = linear(x, prefix + "q_proj.weight").reshape(rows, heads, size)
        key = linear(x, prefix + "k_proj.weight").reshape(rows, groups, size)
        value = linear(x, prefix + "v_proj.weight").reshape(rows, groups, size)
        query = rotate(rms_norm(query, prefix + "q_norm.weight")).reshape(rows, groups, heads // groups, size)
        key = rotate(rms_norm(key, prefix + "k_norm.weight"))
        scores = jnp.einsum("igqd,jgd->gqij", query, key, preferred_element_type=wide) * scale
        weights = jax.nn.softmax(jnp.where(visible, scores, -jnp.inf), axis=-1).astype(dtype)
        mixed = jnp.einsum("gqij,jgd->igqd", weights, value)
        return linear(mixed.reshape(rows, heads * size), prefix + "o_proj.weight")

    def feed_forward(x, prefix):
        gate = linear(x, prefix + "gate_proj.weight").astype(wide)
        up = linear(x, prefix + "up_proj.weight").astype(wide)
        return linear((jax.nn.silu(gate) * up).astype(dtype), prefix + "down_proj.weight")

    x = parameters["model.embed_tokens.weight"][inputs["tokens"]]
    for layer in range(config.layers):
        prefix = f"model.layers.{layer}."
        x = x + attention(rms_norm(x, prefix + "input_layernorm.weight"), prefix + "self_attn.")
        x = x + feed_forward(rms_norm(x, prefix + "post_attention_layernorm.weight"), prefix + "mlp.")
    x = rms_norm(x, "model.norm.weight")
    table = parameters["model.embed_tokens.weight" if config.tied else "lm_head.weight"]
    logits = jnp.einsum("ih,vh->iv", x, table, preferred_element_type=wide)
    counted = inputs["labels"] != IGNORE
    labels = jnp.where(counted, inputs["labels"], 0)
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits, axis=-1), labels[:, None], axis=-1)[:, 0]
    return -jnp.sum(jnp.where(counted, picked, 0)) / jnp.maximum(counted.sum(), 1).astype(wide)


_value_and_grad = jax.jit(jax.value_and_grad(loss, argnums=1), static_argnums=(0, 3))


def loss_and_gradients(config, parameters, inputs, dtype="float64"):
    """Loss and gradients by name, computed in `dtype` ("float64" or "bfloat16"), given in float64."""
    cos, sin = rotary_table(config, inputs["positions"], np.float64 if dtype == "float64" else np.float32)
    typed = {name: jnp.asarray(value).astype(dtype) for name, value in parameters.items()}
    value, gradients = _value_and_grad(config, typed, inputs | {"cos": cos, "sin": sin}, dtype)
    return float(value), {name: np.asarray(gradient).astype(np.float64) for name, gradient in gradients.items()}
