"""The vocabulary loss by tiles in f32 is as close to float64 as the plain one: its error is at most that of the standard form plus
1e-6 of the largest value, for each of loss, dX, dW and the bias's gradient, also with logits that are equal or −inf. With logits of
±1e4 gradients also have the rounding of lse, half a unit in the last place of an f32 of that size: the backward pass takes it as one
number, where the plain form keeps all log probabilities."""

import re

import numpy as np
import pytest
from tools import run

TOKENS, HIDDEN, VOCABULARY = 37, 8, 101
FORMS = ["weights", "activations", "none", "weights hop=tile", "activations hop=tile"]


def draw(case, ranks, columns):
    """x, table, labels, bias, cotangents; the same on every rank, so that shards hold one table's rows again and again."""
    random = np.random.default_rng(7)
    x, table = random.standard_normal((TOKENS, HIDDEN)), random.standard_normal((columns, HIDDEN))
    labels = random.integers(0, min(VOCABULARY, columns * ranks), TOKENS)
    labels[:4] = [0, VOCABULARY - 1, columns - 1, -100]  # Edges of shards; one that does not count.
    bias = random.standard_normal(columns)
    if case == "large":  # ±1e4, and their sums.
        x, table = np.sign(x) * 50, np.sign(table) * 50 / 2
    if case == "equal":
        x, bias = np.zeros_like(x), np.full_like(bias, 3.0)
    if case == "masked":  # All but the first columns of a shard, tiles as a whole among them.
        bias[4:] = -np.inf
        labels[labels >= 0] %= 4
    return x, table, labels, bias, random.standard_normal(TOKENS)


def element(value):
    return "0xFF800000" if np.isneginf(value) else repr(float(np.float32(value)))


def dense(values):
    rows = ["[" + ", ".join(map(element, row)) + "]" for row in np.atleast_2d(values)]
    return "dense<" + ("[" + ", ".join(rows) + "]" if values.ndim == 2 else rows[0]) + ">"


def write_loss(path, case, ranks):
    columns = -(-VOCABULARY // ranks)
    x, table, labels, bias, cotangents = draw(case, ranks, columns)
    rows, shard = f"tensor<{TOKENS}x{HIDDEN}xf32>", f"tensor<{columns}x{HIDDEN}xf32>"
    ids, numbers, vector = f"tensor<{TOKENS}xi32>", f"tensor<{TOKENS}xf32>", f"tensor<{columns}xf32>"
    grid = "on @vocab " if ranks > 1 else ""
    argument = lambda name, kind, values: f"%{name}: {kind} {{plateau.values = {values} : {kind}}}"  # noqa: E731
    path.write_text(f"""
shard.grid @vocab(shape = {ranks})
func.func @f({argument("x", rows, dense(x))}, {argument("t", shard, dense(table))},
    {argument("l", ids, f"dense<{labels.tolist()}>")}, {argument("b", vector, dense(bias))},
    {argument("g", numbers, dense(cotangents))}) -> ({numbers}, {rows}, {shard}, {vector}) {{
  %losses, %lse = moe.vocab_loss %x, %t, %l bias %b {grid}vocabulary<size = {VOCABULARY}>
    : ({rows}, {shard}, {ids}, {vector}) -> ({numbers}, {numbers})
  %dx, %dt, %db = moe.vocab_loss_grad %g, %x, %t, %l, %lse bias %b {grid}vocabulary<size = {VOCABULARY}>
    : ({numbers}, {rows}, {shard}, {ids}, {numbers}, {vector}) -> ({rows}, {shard}, {vector})
  return %losses, %dx, %dt, %db : {numbers}, {rows}, {shard}, {vector}
}}
""")


def measure(path, ranks, *flags):
    """The largest error of each result over the ranks, against the interpreter's float64 of the loss as one op."""
    text = run("plateau-run", path, "--ranks", ranks, "--entry", "f", "--compare", 1, *flags)
    errors = {}
    for name, error in re.findall(r"f/(\d): .*max\|b\| (\S+)", text):
        errors[name] = max(errors.get(name, 0.0), float(error))
    assert len(errors) == 4, text
    return errors


@pytest.mark.parametrize("ranks", [1, 4])
@pytest.mark.parametrize("case", ["normal", "large", "equal", "masked"])
def test_errors_are_those_of_the_standard_form(case, ranks, tmp_path):
    path = tmp_path / "loss.mlir"
    write_loss(path, case, ranks)
    plain = measure(path, ranks)
    for form in FORMS:
        errors = measure(path, ranks, f"--rewrite=func.func(moe-ring-vocab{{move={form} tile-bytes=1024}})")
        for name, error in errors.items():
            rounding = 2**-11 if case == "large" and name != "0" else 0
            assert error <= plain[name] + 1e-6 + rounding, (form, name, errors, plain)
