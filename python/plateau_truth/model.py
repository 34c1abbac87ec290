"""Loss of the model, in float64 or in bfloat16.

In the bfloat16 form parameters and activations are bfloat16; statistics, scores, softmax, logits (those of routers too), the
weights of routes and the losses are float32.
"""

import functools
import typing

import jax
import jax.numpy as jnp
import numpy as np

from plateau_truth import experts
from plateau_truth.config import CORRECTION_BIAS, is_trained

IGNORE = -100


def batch(tokens, sequence, document_end=None):
    """Inputs of one step from tokens[0 … N].

    The label of token i is token i + 1. A sequence of `sequence` tokens is one document, or several when `document_end` is the
    id of the last token of each: such a token has no label, and the next one begins again at position 0. `sequences` has the
    first row of each sequence.
    """
    count = len(tokens) - 1
    inputs = {
        "tokens": np.asarray(tokens[:count], np.int32),
        "labels": np.array(tokens[1:], np.int32),
        "positions": np.empty(count, np.int32),
        "starts": np.empty(count, np.int32),
        "sequences": np.arange(0, count, sequence, dtype=np.int32),
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


def join(batches):
    """One batch of the batches of several ranks, one after the other. Sequences never attend across each other."""
    joined = {name: np.concatenate([inputs[name] for inputs in batches]) for name in batches[0]}
    offsets = np.cumsum([0] + [len(inputs["tokens"]) for inputs in batches[:-1]]).astype(np.int32)
    for name in ("starts", "sequences"):
        joined[name] = np.concatenate([inputs[name] + offset for inputs, offset in zip(batches, offsets)])
    return joined


def batch_of_ranks(ids, step, ranks, tokens, sequence, document_end=None):
    """What the ranks read together in a step (from 0), `tokens` each: rank r has the r-th slice of the step's ids."""
    whole = (len(ids) - 1) // (ranks * tokens)
    begin = step % whole * ranks * tokens
    slices = [ids[begin + rank * tokens :][: tokens + 1] for rank in range(ranks)]
    return join([batch(np.asarray(part, np.int64), sequence, document_end) for part in slices])


class Route(typing.NamedTuple):
    """What the router of a layer decided: logits [tokens, experts], expert ids and weights [tokens, k]."""

    logits: jax.Array
    ids: jax.Array
    weights: jax.Array


def _wide(dtype):
    """The type of statistics where parameters and activations are `dtype`."""
    return np.float64 if dtype == "float64" else np.float32


def rotary_table(config, positions, dtype):
    """Cosine and sine of f32 phases: the frequencies and the phases are rounded to float32, as transformers computes them."""
    exponents = np.arange(0, config.head_size, 2, dtype=np.float64) / config.head_size
    frequencies = (config.theta**-exponents).astype(np.float32)
    phases = positions.astype(np.float32)[:, None] * frequencies[None, :]
    assert phases.dtype == np.float32
    return np.cos(phases.astype(np.float64)).astype(dtype), np.sin(phases.astype(np.float64)).astype(dtype)


def vocabulary_losses(config, logits, labels, smoothing=0.0, z=0.0):
    """[rows]: cross entropy of each row with its label, 0 where that is IGNORE.

    Of each label a part, `smoothing`, goes to all tokens of the vocabulary alike. `z` is the factor of log² Σ exp(logits).
    """
    if config.softcap:
        cap = float(np.float32(config.softcap))
        logits = cap * jnp.tanh(logits / cap)
    counted = labels != IGNORE
    picked = jnp.take_along_axis(logits, jnp.where(counted, labels, 0)[:, None], axis=-1)[:, 0]
    total = jax.nn.logsumexp(logits, axis=-1)
    losses = total - (1 - smoothing) * picked - smoothing * jnp.mean(logits, axis=-1) + z * total**2
    return jnp.where(counted, losses, 0)


def forward(config, parameters, inputs, dtype, ids=None, smoothing=0.0, vocabulary_z=0.0):
    """Mean loss over the labels that are not IGNORE, and the route of each layer with experts.

    `dtype` is the type of parameters and activations; correction biases have that of statistics. `ids` has the expert ids of
    some layers, which are then not chosen. The constants of the model are float32 numbers, as they are where tensors are
    float32; all else is exact.
    """
    epsilon, scale = float(np.float32(config.epsilon)), float(np.float32(config.head_size**-0.5))
    wide = _wide(dtype)
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

    routes = {}

    def sparse_feed_forward(x, prefix, layer):
        logits = jnp.einsum("th,eh->te", x, parameters[prefix + "mlp.gate.weight"], preferred_element_type=wide)
        chosen = (ids or {}).get(layer)
        if chosen is None:
            chosen = experts.choose(config.routing, logits, parameters.get(prefix + CORRECTION_BIAS))
        weights = experts.weigh(config.routing, logits, chosen)
        routes[layer] = Route(logits, chosen, weights)
        gate_up, down = parameters[prefix + "mlp.experts.gate_up_proj"], parameters[prefix + "mlp.experts.down_proj"]
        y = experts.apply_experts(x, gate_up, down, chosen, weights)
        if not config.shared_intermediate:
            return y
        shared = feed_forward(x, prefix + config.shared_prefix)
        if config.shared_gated:
            gate = jax.nn.sigmoid(linear(x, prefix + "mlp.shared_expert_gate.weight").astype(wide))
            shared = (gate * shared.astype(wide)).astype(dtype)
        return y + shared

    def feed_forward(x, prefix):
        gate = linear(x, prefix + "gate_proj.weight").astype(wide)
        up = linear(x, prefix + "up_proj.weight").astype(wide)
        return linear((jax.nn.silu(gate) * up).astype(dtype), prefix + "down_proj.weight")

    x = parameters["model.embed_tokens.weight"][inputs["tokens"]]
    for layer in range(config.layers):
        prefix = f"model.layers.{layer}."
        x = x + attention(rms_norm(x, prefix + "input_layernorm.weight"), prefix + "self_attn.")
        normed = rms_norm(x, prefix + "post_attention_layernorm.weight")
        if layer in config.sparse:
            x = x + sparse_feed_forward(normed, prefix, layer)
        else:
            x = x + feed_forward(normed, prefix + "mlp.")
    x = rms_norm(x, "model.norm.weight")
    table = parameters["model.embed_tokens.weight" if config.tied else "lm_head.weight"]
    logits = jnp.einsum("ih,vh->iv", x, table, preferred_element_type=wide)
    losses = vocabulary_losses(config, logits, inputs["labels"], smoothing, vocabulary_z)
    counted = inputs["labels"] != IGNORE
    return jnp.sum(losses) / jnp.maximum(counted.sum(), 1).astype(wide), routes


def loss(config, parameters, inputs, dtype, ids, coefficients):
    """Cross entropy plus, for each layer with experts, the auxiliary losses of its router over all tokens, labelled or not.

    `coefficients` has one of each: balance over all tokens at once, "global"; over each sequence and averaged, "sequence"; and
    of the z-loss, "z". "smoothing" and "vocabulary_z" are those of the cross entropy.
    """
    total, by_layer = forward(
        config, parameters, inputs, dtype, ids, coefficients["smoothing"], coefficients["vocabulary_z"]
    )
    row, firsts = jnp.arange(len(inputs["tokens"])), inputs["sequences"]
    ends = jnp.append(firsts[1:], len(row))
    in_sequence = (row >= firsts[:, None]) & (row < ends[:, None])
    in_batch = jnp.ones((1, len(row)), bool)
    for route in by_layer.values():
        total += coefficients["global"] * experts.balance_loss(config.routing, route.logits, route.ids, in_batch)
        total += coefficients["sequence"] * experts.balance_loss(config.routing, route.logits, route.ids, in_sequence)
        total += coefficients["z"] * experts.z_loss(route.logits)
    return total


@functools.partial(jax.jit, static_argnums=(0, 4))
def _value_and_grad(config, trained, fixed, inputs, dtype, ids, coefficients):
    def loss_of(some):
        return loss(config, some | fixed, inputs, dtype, ids, coefficients)

    return jax.value_and_grad(loss_of)(trained)


_forward = jax.jit(forward, static_argnums=(0, 3))


def _prepare(config, parameters, inputs, dtype, ids):
    """Trained and other parameters in their types, inputs with rotary tables, and checked ids."""
    wide = _wide(dtype)
    cos, sin = rotary_table(config, inputs["positions"], wide)
    trained = {name: jnp.asarray(value).astype(dtype) for name, value in parameters.items() if is_trained(name)}
    fixed = {name: jnp.asarray(value).astype(wide) for name, value in parameters.items() if not is_trained(name)}
    ids = {layer: np.asarray(value) for layer, value in (ids or {}).items()}
    for layer, value in ids.items():
        if layer not in config.sparse:
            raise ValueError(f"ids are given for layer {layer}, which has no experts; layers {config.sparse} have")
        shape = (len(inputs["tokens"]), config.routing.top_k)
        if value.shape != shape or value.dtype.kind not in "iu":
            raise ValueError(f"ids of layer {layer} are {value.dtype} of shape {value.shape}, must be integers of shape {shape}")
        if value.min() < 0 or value.max() >= config.routing.experts:
            raise ValueError(
                f"ids of layer {layer} go from {value.min()} to {value.max()}, must be in 0 … {config.routing.experts - 1}"
            )
    return trained, fixed, inputs | {"cos": cos, "sin": sin}, ids


def loss_and_gradients(
    config,
    parameters,
    inputs,
    dtype="float64",
    ids=None,
    balance_coef=0.0,
    balance_kind="global",
    z_coef=0.0,
    smoothing=0.0,
    vocabulary_z=0.0,
):
    """Loss and gradients by name, computed in `dtype` ("float64" or "bfloat16"), given in float64.

    `ids` [tokens, k] of some layers fixes their routes. The balance loss is over all tokens, "global", or "sequence" by
    sequence. `smoothing` and `vocabulary_z` are those of vocabulary_losses. Parameters that are not trained have no gradient.
    """
    trained, fixed, inputs, ids = _prepare(config, parameters, inputs, dtype, ids)
    coefficients = {"global": 0.0, "sequence": 0.0, "z": z_coef, "smoothing": smoothing, "vocabulary_z": vocabulary_z}
    if balance_kind not in ("global", "sequence"):
        raise ValueError(f"balance_kind is {balance_kind!r}, must be 'global' or 'sequence'")
    coefficients[balance_kind] = balance_coef
    coefficients = {name: jnp.asarray(value, _wide(dtype)) for name, value in coefficients.items()}
    value, gradients = _value_and_grad(config, trained, fixed, inputs, dtype, ids, coefficients)
    return float(value), {name: np.asarray(gradient).astype(np.float64) for name, gradient in gradients.items()}


def routes(config, parameters, inputs, dtype="float64", ids=None):
    """The Route of each layer with experts."""
    trained, fixed, inputs, ids = _prepare(config, parameters, inputs, dtype, ids)
    _, by_layer = _forward(config, trained | fixed, inputs, dtype, ids)
    return {layer: Route(*map(np.asarray, route)) for layer, route in by_layer.items()}


def routing_margins(config, parameters, inputs, dtype="float64", ids=None):
    """For each layer with experts the smallest gap, over all tokens, between values that are chosen and values that are not.

    While errors of these values are below half of it, no other set of experts can be chosen.
    """
    return {
        layer: experts.margin(config.routing, route.logits, parameters.get(f"model.layers.{layer}.{CORRECTION_BIAS}"))
        for layer, route in routes(config, parameters, inputs, dtype, ids).items()
    }


def route_counts(config, by_layer):
    """For each layer the routes to each expert."""
    return {layer: np.bincount(route.ids.ravel(), minlength=config.routing.experts) for layer, route in by_layer.items()}
