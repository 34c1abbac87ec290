"""Programs whose tokens go to experts in iterations, with helpers, interpreted and compiled: each row at the rank and in the iteration
that the numpy plan says."""

import numpy as np
import pytest
from chunked_plan import cut, destinations, leaf_rows, least_loaded
from tools import run

SEED = 20
CASES = [  # ranks, experts of a rank, chunks, leaves, helper slots
    (2, 1, 1, 4, 1), (4, 2, 3, 2, 2), (3, 1, 2, 3, 0), (2, 2, 1, 1, 1), (4, 1, 4, 3, 3), (3, 2, 3, 1, 2), (4, 1, 2, 2, 1),
]  # fmt: skip


def dense(values, element="f32"):
    """An argument of these values [ranks, ...] for each rank."""
    shape = "x".join(map(str, values.shape))
    own = "x".join(map(str, values.shape[1:]))
    return f"tensor<{own}x{element}> {{plateau.values = dense<{values.tolist()}> : tensor<{shape}x{element}>}}"


def where_program(ids, slots, own, chunks, leaves, capacity, rule):
    """In result i, for each slot of ids [ranks, tokens, top_k] in iteration i, 1 + 100 · rank + expert slot; elsewhere 0."""
    ranks, tokens, top_k = ids.shape
    names = 1 + 100 * np.arange(ranks)[:, None] + np.arange(own + slots)[None, :]
    helpers = f", %h: {dense(names[:, own:, None, None].astype(float))}" if slots else ""
    given, of_type = ("helpers(%h)", f", tensor<{slots}x1x1xf32>") if slots else ("", "")
    body, iterations = "", chunks * leaves
    for i in range(iterations):
        at, into, index = (f"at %i{i}", "values_into(%zero : !slots)", ", index") if iterations > 1 else ("", "", "")
        body += f"""
  %i{i} = arith.constant {i} : index
  %x{i} = moe.dispatch rows(%x : !tokens -> !rows) by %plan {at} on @experts : !plan
  %u{i} = moe.grouped_matmul %x{i}, %w {given} by %plan {at} : (!rows, tensor<{own}x1x1xf32>, !plan{of_type}{index}) -> !rows
  %v{i} = moe.row_dot %u{i}, %x{i} : !rows -> tensor<?xf32>
  %r{i} = moe.combine values(%v{i} : tensor<?xf32> -> !slots) by %plan {at} {into} on @experts : !plan"""
    results = ", ".join(f"%r{i}" for i in range(iterations))
    types = ", ".join(["!slots"] * iterations)
    sizes = f"experts = {ranks * own}, ranks = {ranks}, tokens = {tokens}, top_k = {top_k}"
    for name, value, plain in ("helper_slots", slots, 0), ("chunks", chunks, 1), ("leaves", leaves, 1), ("capacity", capacity, 0):
        sizes += f", {name} = {value}" if value != plain else ""
    (a, b), (c, d), rows = rule["alpha"], rule["threshold"], rule["min_rows"]
    balance = f"balance <alpha = {a} over {b}, min_rows = {rows}, threshold = {c} over {d}>" if slots else ""
    return f"""!plan = !moe.plan<{sizes}>
!tokens = tensor<{tokens}x1xf32>
!rows = tensor<?x1xf32>
!slots = tensor<{tokens}x{top_k}xf32>
shard.grid @experts(shape = {ranks})
func.func @where(%x: {dense(np.ones((ranks, tokens, 1)))}, %w: {dense(names[:, :own, None, None].astype(float))}{helpers},
    %ids: {dense(ids, "i32")}) -> ({types}) {{
  %plan = moe.plan %ids {balance} on @experts : tensor<{tokens}x{top_k}xi32> -> !plan
  %zero = arith.constant dense<0.0> : !slots{body}
  return {results} : {types}
}}
"""


@pytest.mark.parametrize("flags", [["--interpret"], []], ids=["interpreted", "compiled"])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_programs(flags, case, tmp_path):
    draw = np.random.default_rng(SEED + case)
    ranks, own, chunks, leaves, slots = CASES[case]
    tokens, top_k, rule = 13, 3, {"alpha": (9, 8), "min_rows": 2, "threshold": (11, 10)}
    ids = draw.choice(ranks * own + 1, (ranks, tokens, top_k), p=draw.dirichlet(np.full(ranks * own + 1, 0.6))) - 1
    if case == len(CASES) - 1:  # No rank has room for as few rows as are left of expert 0: one is to take them all.
        rule |= {"alpha": (1, 1), "min_rows": 12}
        ids = draw.permutation(np.repeat([0, 1, 2, 3, -1], [51, 24, 21, 24, 36])).reshape(ids.shape)
    loads = np.bincount(ids[ids >= 0], minlength=ranks * own)
    parts, held = least_loaded(loads, ranks, slots, **(rule if slots else {"threshold": (10**6, 1)}))
    assert not slots or any(held), "the test says nothing about helpers"
    where = destinations(ids, ranks * own, parts)
    rows = leaf_rows(where, chunks * leaves, ranks).sum(axis=0)
    capacity = int(rows.max() + draw.integers(0, 3)) if leaves > 1 else 0
    iterations = cut(rows, chunks, capacity)
    assert leaves == 1 or len(iterations) > chunks, "the test says nothing about capacities"
    expected = np.zeros((ranks, chunks * leaves, tokens, top_k))
    for iteration, members in enumerate(iterations):
        for source, token, slot in np.argwhere(where >= 0):
            expert, rank = ids[source, token, slot], where[source, token, slot]
            place = expert % own if expert // own == rank else own + held[rank].index(expert)
            if token % (chunks * leaves) in members:
                expected[source, iteration, token, slot] = 1 + 100 * rank + place
    program = tmp_path / "where.mlir"
    program.write_text(where_program(ids, slots, own, chunks, leaves, capacity, rule))
    output = run("plateau-run", program, "--entry", "where", "--ranks", ranks, *flags)
    printed = [np.array(line.split("[")[1].rstrip("]\n").split(","), float) for line in output.splitlines() if " = [" in line]
    assert (np.array(printed).reshape(expected.shape) == expected).all()
