"""Routers, their auxiliary losses and the experts of a layer.

Each function computes in the type of the logits or of the rows it is given. Every expert sees every row, and a token then
picks the rows of those it chose: nothing is sorted, sent or packed.
"""

import jax
import jax.numpy as jnp
import numpy as np


def all_scores(routing, logits):
    """[tokens, experts]: the score of each expert, chosen or not."""
    return jax.nn.sigmoid(logits) if routing.score == "sigmoid" else jax.nn.softmax(logits, axis=-1)


def best(values, count):
    """Indices of the largest values of each row, the largest first, of equal ones that of the lower index first."""
    return jnp.argsort(-values, axis=-1, stable=True)[..., :count]


def group_scores(routing, values):
    """[tokens, groups]: the sum of the two largest values of each group of experts."""
    groups = values.reshape(len(values), routing.groups, -1)
    return jnp.sum(jnp.sort(groups, axis=-1)[..., -2:], axis=-1)


def biased_values(routing, logits, bias=None):
    """[tokens, experts]: what experts are compared by, all groups kept. The bias has no part in weights."""
    values = logits if routing.score == "top_k_softmax" else all_scores(routing, logits)
    return values if bias is None else values + bias


def selection_values(routing, logits, bias=None):
    """[tokens, experts]: the k experts of largest value are chosen; −∞ in groups that are not kept."""
    values = biased_values(routing, logits, bias)
    if routing.groups == 1:
        return values
    kept = jax.nn.one_hot(best(group_scores(routing, values), routing.kept_groups), routing.groups).sum(axis=1) > 0
    return jnp.where(jnp.repeat(kept, routing.experts // routing.groups, axis=1), values, -jnp.inf)


def choose(routing, logits, bias=None):
    """[tokens, k]: ids of the chosen experts, in the order of the slots."""
    return best(selection_values(routing, logits, bias), routing.top_k)


def weigh(routing, logits, ids):
    """[tokens, k]: the weight of each chosen expert. An expert may occur twice; it then counts twice in each sum."""
    if routing.score == "top_k_softmax":
        weights = jax.nn.softmax(pick(logits, ids), axis=-1)
    else:
        weights = pick(all_scores(routing, logits), ids)
    if routing.normalize:
        weights = weights / jnp.sum(weights, axis=-1, keepdims=True)
    return weights * float(np.float32(routing.scale))


def pick(values, ids):
    return jnp.take_along_axis(values, ids, axis=-1)


def margins(routing, logits, bias=None):
    """[tokens]: twice the error of the values experts are compared by that could change which experts a token chooses.

    That is the gap between the k-th value and the next, or half of that between the worst kept group and the best other, since
    the score of a group has the errors of two values. The order of the chosen ones, and so of the slots, may be closer.
    """

    def gaps(values, count):
        if count == values.shape[-1]:
            return np.full(len(values), np.inf)
        ordered = -np.sort(-np.asarray(values), axis=-1)
        return ordered[:, count - 1] - ordered[:, count]

    experts = gaps(selection_values(routing, logits, bias), routing.top_k)
    groups = gaps(group_scores(routing, biased_values(routing, logits, bias)), routing.kept_groups)
    return np.minimum(experts, groups / 2)


def margin(routing, logits, bias=None):
    """The smallest of the margins of all tokens."""
    return float(np.min(margins(routing, logits, bias)))


def balance_loss(routing, logits, ids, members):
    """E · Σ_e f_e · P_e over the tokens of a sequence, averaged over the sequences.

    f_e is the part of the routes that go to expert e, P_e the mean of its part in a token's scores. `members` [sequences,
    tokens] is 1 where a token is of a sequence; of all tokens together it is one row of ones.
    """
    scores = all_scores(routing, logits)
    parts = scores / jnp.sum(scores, axis=-1, keepdims=True)
    routes = jax.nn.one_hot(ids, routing.experts, dtype=logits.dtype).sum(axis=1)
    members = members.astype(logits.dtype)
    tokens = jnp.sum(members, axis=1, keepdims=True)
    fractions = members @ routes / (routing.top_k * tokens)
    means = members @ parts / tokens
    return routing.experts * jnp.mean(jnp.sum(fractions * means, axis=1))


def z_loss(logits):
    """The mean over tokens of the squared logarithm of the sum of exponentials."""
    return jnp.mean(jax.nn.logsumexp(logits, axis=-1) ** 2)


def apply_experts(rows, gate_up, down, ids, weights):
    """[tokens, hidden]: Σ_j weights[t, j] · expert ids[t, j] of row t.

    Products and sums are wider than bfloat16 rows, and what an expert gives is a bfloat16 row again before it is summed.
    """
    wide = weights.dtype
    gate, up = jnp.split(jnp.einsum("th,eih->eti", rows, gate_up), 2, axis=-1)
    inner = (jax.nn.silu(gate.astype(wide)) * up.astype(wide)).astype(rows.dtype)
    outputs = jnp.einsum("eti,ehi->eth", inner, down)
    total = jnp.zeros(rows.shape, wide)
    for slot in range(ids.shape[1]):
        chosen = jax.nn.one_hot(ids[:, slot], len(gate_up), dtype=rows.dtype)
        output = jnp.einsum("te,eth->th", chosen, outputs).astype(wide)
        total += (weights[:, slot, None] * output).astype(rows.dtype).astype(wide)
    return total.astype(rows.dtype)
