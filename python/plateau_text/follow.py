"""Follows a run of plateau-run --json on standard input: a line with the mean loss every ten steps."""

import json
import statistics
import sys


def main():
    losses = []
    for line in sys.stdin:
        step = json.loads(line)
        if "step" not in step:
            continue
        losses.append(step["loss"])
        if len(losses) % 10 == 0:
            print(f"step {step['step']:4}  mean loss of ten {statistics.fmean(losses[-10:]):.4f}", flush=True)


if __name__ == "__main__":
    main()
