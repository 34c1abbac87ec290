"""Follows a run of plateau-run --json on standard input and sums it up: python -m plateau_text.summarize TOKENS

Prints a line every ten steps and, at the end, one line of the form

    demo: loss A -> B in S steps, T tokens/s, peak P MiB

with A the loss of the first step, B the mean of the last ten, T the median over steps. Fails when B is not below the entropy of
the ids in the file TOKENS.
"""

import json
import statistics
import sys

import numpy as np

from plateau_text.prepare import entropy


def main():
    ids = np.fromfile(sys.argv[1], "<u4")
    steps = []
    for line in sys.stdin:
        steps.append(json.loads(line))
        if len(steps) % 10 == 0:
            loss = statistics.fmean(step["loss"] for step in steps[-10:])
            print(f"step {steps[-1]['step']:4}  mean loss of ten {loss:.4f}", flush=True)
    if len(steps) < 10:
        print(f"demo: the run ended after {len(steps)} steps", file=sys.stderr)
        return 1
    last = statistics.fmean(step["loss"] for step in steps[-10:])
    rate = statistics.median(step["tokens_per_second"] for step in steps)
    peak = max(step["peak_bytes"] for step in steps) / 2**20
    bound = entropy(ids)
    verdict = "below" if last < bound else "NOT below"
    print(f"the last loss, {last:.4f}, is {verdict} the entropy of single tokens, {bound:.4f} nats")
    print(f"demo: loss {steps[0]['loss']:.4f} -> {last:.4f} in {len(steps)} steps, {rate:.0f} tokens/s, peak {peak:.1f} MiB")
    return 0 if last < bound else 1


if __name__ == "__main__":
    sys.exit(main())
