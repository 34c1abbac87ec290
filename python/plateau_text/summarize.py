"""Sums up the demo: python -m plateau_text.summarize FOLDER

FOLDER has the ids (tokens.bin), the lines of plateau-run --json (steps.jsonl), the products it computed (shapes.txt, by
--gemm-shapes), the lines of plateau-gemm-bench --json for them (gemms.jsonl) and those of a run with memory from a pool
(dynamic.jsonl). Prints how long the products alone would take at the rate of the bare library, on all cores that the ranks can
use, the planned and the observed peak beside that of the pool, and at the end one line of the form

    demo: loss A -> B in S steps, T tokens/s, peak P MiB

with A the loss of the first step, B the mean of the last ten, T the median over steps. Fails when B is not below the entropy of
the ids.
"""

import json
import os
import pathlib
import statistics
import sys

import numpy as np

from plateau_text.prepare import entropy

RANKS = 4


def products_alone(folder):
    """Seconds that all products of the run take one after the other, each at the rate of the bare library."""
    shapes = [line.split() for line in (folder / "shapes.txt").read_text().splitlines() if not line.startswith("#")]
    rates = [json.loads(line) for line in (folder / "gemms.jsonl").read_text().splitlines()]
    seconds = 0.0
    for shape, rate in zip(shapes, rates, strict=False):
        m, n, k, count = (int(field) for field in shape[5:9])
        assert (rate["m"], rate["n"], rate["k"]) == (m, n, k)
        seconds += 2 * m * n * k * count / (rate["bare_gflops"] * 1e9)
    return seconds


def read(path):
    """The steps of a run, and what it says about memory at the end."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in lines if "step" in line], next((line for line in lines if "spaces" in line), None)


def print_memory(memory, pool):
    device, from_pool = (summary["spaces"][0] for summary in (memory, pool))
    planned, observed, bound = (device[f"{name}_bytes"] / 2**20 for name in ("planned_peak", "observed_peak", "lower_bound"))
    print(
        f"memory of a rank: {planned:.1f} MiB planned and proven, {observed:.1f} MiB observed, at least {bound:.1f} MiB for this "
        f"schedule; {memory['host_fences']} host fences a step"
    )
    print(
        f"memory of a rank from a pool: {from_pool['observed_peak_bytes'] / 2**20:.1f} MiB, for the routes that came; the plan has room "
        "for all rows of all ranks at one rank, which no routing can pass"
    )


def main():
    folder = pathlib.Path(sys.argv[1])
    steps, memory = read(folder / "steps.jsonl")
    if len(steps) < 10:
        print(f"demo: the run ended after {len(steps)} steps", file=sys.stderr)
        return 1
    ids = np.fromfile(folder / "tokens.bin", "<u4")
    last = statistics.fmean(step["loss"] for step in steps[-10:])
    rate = statistics.median(step["tokens_per_second"] for step in steps)
    peak = memory["spaces"][0]["observed_peak_bytes"] / 2**20
    cores = min(len(os.sched_getaffinity(0)), RANKS)
    tokens = RANKS * 1024 * len(steps)
    alone, spent = products_alone(folder) / cores, tokens / rate
    print(
        f"the products alone, at the library's own rate on {cores} cores: {alone:.1f} s of {spent:.1f} s "
        f"({100 * alone / spent:.0f} %)"
    )
    print_memory(memory, read(folder / "dynamic.jsonl")[1])
    bound = entropy(ids)
    verdict = "below" if last < bound else "NOT below"
    print(f"the last loss, {last:.4f}, is {verdict} the entropy of single tokens, {bound:.4f} nats")
    print(f"demo: loss {steps[0]['loss']:.4f} -> {last:.4f} in {len(steps)} steps, {rate:.0f} tokens/s, peak {peak:.1f} MiB")
    return 0 if last < bound else 1


if __name__ == "__main__":
    sys.exit(main())
