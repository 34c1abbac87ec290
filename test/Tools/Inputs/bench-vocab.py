"""Plans and runs the methods of plateau-bench vocab and holds what it prints against closed formulas.

Usage: bench-vocab.py plan | run

A rank has N tokens of width H and R = V / P rows of the table, in b bytes an element; gradients have 4, a row's state 12.
"""

import json
import subprocess
import sys


def bench(**options):
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items() if value is not True]
    flags += [f"--{name.replace('_', '-')}" for name, value in options.items() if value is True]
    output = subprocess.run(["plateau-bench", "vocab", "--json", *flags], check=True, capture_output=True, text=True).stdout
    return {line["method"]: line for line in map(json.loads, output.splitlines())}


def sent_bytes(n, h, v, p, b):
    r = v // p
    shards = (p - 1) * r * h * b + (p - 1) * r * h * 4  # The table gathered, its gradient summed and scattered.
    tokens = (p - 1) * (n * h * b + n * 8) + (p - 1) * p * n * 12 + (p - 1) * n * h * 4
    activations = (p - 1) * (n * h * b + n * 4) + p * n * 12  # Forward: states come home.
    activations += (p - 1) * (n * h * b + n * 12) + p * n * h * 4  # Backward: label, lse and cotangent; dX comes home.
    weights = 2 * (p - 1) * r * h * b + p * r * h * 4  # Both ways; dW comes home.
    return {
        "standard": shards,
        "standard-inplace": shards,
        "vocab-parallel": tokens + (p - 1) * n * 4,  # Backward gathers lse.
        "ring-weights": weights if p > 1 else 0,
        "ring-activations": activations if p > 1 else 0,
        "tiles": tokens,
    }


def check(text, actual, expected):
    if actual != expected:
        raise SystemExit(f"{text}: {actual}, expected {expected}")


def check_plan(n, h, v, p, dtype, **options):
    b = {"f32": 4, "bf16": 2}[dtype]
    lines = bench(tokens=n, hidden=h, vocab=v, ranks=p, dtype=dtype, plan_only=True, **options)
    sent = sent_bytes(n, h, v, p, b)
    check("methods", list(lines), list(sent))
    for method, line in lines.items():
        name = f"{method} of {n}x{h}x{v}, {p} ranks, {dtype}, {options}"
        products = 4 if method.startswith("ring") else 3  # Backward of a ring has the logits once more.
        check(f"flops of {name}", line["flops"], products * 2 * n * h * v)
        check(f"bytes sent of {name}", line["bytes_sent_per_rank"], sent[method])
        check(f"logits of {name}", line["logits_bytes"], 4 * n * v)
        check(f"seconds of {name}", (line["seconds_forward"], line["seconds_backward"]), (None, None))
        check(f"peak of {name}", line["peak_bytes"], line["planned_peak_bytes"])
        # x, table, labels, cotangents, losses, and both gradients are there for good.
        there = (n + v // p) * h * (b + 4) + 3 * 4 * n
        if not there <= line["lower_bound_bytes"] <= line["planned_peak_bytes"]:
            raise SystemExit(f"{name}: {there} bytes of arguments and results, bounds {line}")
    logits = 4 * n * v
    if not lines["standard"]["peak_bytes"] >= 3 * logits:
        raise SystemExit(f"standard has three tensors of logits: {lines['standard']['peak_bytes']} < 3 * {logits}")


def plan():
    for p in (1, 2, 4, 8):
        for dtype in ("f32", "bf16"):
            check_plan(64, 16, 256, p, dtype)
    check_plan(96, 24, 512, 4, "f32", tile_bytes=4096)
    check_plan(96, 24, 512, 4, "bf16", tile_bytes=8192, hop="tile")
    # Tiles bound the memory of what has logits, whatever their number: 1 MiB of them beside 64 MiB of all.
    lines = bench(tokens=1024, hidden=64, vocab=16384, ranks=2, tile_bytes="1MiB", move="weights,none", plan_only=True)
    there = (1024 + 8192) * 64 * 8 + 3 * 4 * 1024
    for line in lines.values():
        # The ring has two shards of the table and of its gradient on their way; tiles have two of each kind.
        bound = there + 4 * 8192 * 64 * 4 + 8 * (1 << 20)
        if line["peak_bytes"] > bound:
            raise SystemExit(f"{line['method']} has {line['peak_bytes']} bytes, bound {bound}")


def run():
    for p, dtype, hop in ((1, "f32", "shard"), (2, "f32", "shard"), (4, "f32", "tile"), (2, "bf16", "shard")):
        lines = bench(tokens=37, hidden=16, vocab=203, ranks=p, dtype=dtype, hop=hop, tile_bytes=4096, repeat=2)
        check("methods", list(lines), ["standard", "standard-inplace", "vocab-parallel", "ring-weights", "ring-activations", "tiles"])
        for method, line in lines.items():
            name = f"{method} on {p} ranks, {dtype}: {line}"
            if line["peak_bytes"] > line["planned_peak_bytes"] or line["seconds_forward"] <= 0:
                raise SystemExit(name)
            if (line["seconds_backward"] == 0) != (method == "tiles"):
                raise SystemExit(f"one phase in tiles, two elsewhere: {name}")
            if ("time_ratio" in line) != (method != "standard"):
                raise SystemExit(f"ratios are those to standard: {name}")


{"plan": plan, "run": run}[sys.argv[1]]()
