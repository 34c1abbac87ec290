#!/usr/bin/python3
"""Compares the speed of a training run with and without some flags.

    tools/compare-runs.py [--pairs N] STEP FLAGS... -- MORE...

Runs build/bin/plateau-run STEP FLAGS... --json and the same with MORE..., by turns, N times each (9 unless said otherwise), the
one that goes first changing from pair to pair. The speed of a run is the median of its steps but the first two, in which a planned
run measures its memory. Prints each pair, the medians of both sides, and the median of the ratios with the least and the largest.
"""

import json
import pathlib
import statistics
import subprocess
import sys

RUN = pathlib.Path(__file__).resolve().parent.parent / "build" / "bin" / "plateau-run"
MEASURED_STEPS = 2


def speed(arguments):
    """Tokens in a second."""
    done = subprocess.run([RUN, *arguments, "--json"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{done.stderr}compare-runs: plateau-run {' '.join(arguments)} failed")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    steps = [line["tokens_per_second"] for line in lines if "step" in line][MEASURED_STEPS:]
    if not steps:
        sys.exit(f"compare-runs: give more than {MEASURED_STEPS} --steps")
    return statistics.median(steps)


def main(arguments):
    pairs = 9
    if arguments[:1] == ["--pairs"] and len(arguments) > 1 and arguments[1].isdecimal():
        pairs = int(arguments[1])
        arguments = arguments[2:]
    if pairs < 1 or arguments.count("--") != 1:
        sys.exit(__doc__)
    split = arguments.index("--")
    plain, changed = arguments[:split], arguments[:split] + arguments[split + 1 :]
    speeds = {"without": [], "with": []}
    for pair in range(pairs):
        sides = [("without", plain), ("with", changed)]
        for name, side in sides if pair % 2 == 0 else reversed(sides):
            speeds[name].append(speed(side))
        without, other = speeds["without"][-1], speeds["with"][-1]
        print(f"without {without:.1f} tokens/s, with {other:.1f}: {without / other:.3f}", flush=True)
    ratios = [without / other for without, other in zip(speeds["without"], speeds["with"], strict=True)]
    print(
        f"medians: without {statistics.median(speeds['without']):.1f} tokens/s, with {statistics.median(speeds['with']):.1f}; "
        f"without / with {statistics.median(ratios):.3f} ({min(ratios):.3f} ... {max(ratios):.3f})"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
