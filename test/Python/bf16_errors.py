"""Prints how the bf16 errors of each tensor on each batch compare with those of JAX's own bfloat16 run.

Both are against float64. test_truth.py and test_experts.py bound the ratio of the largest errors by 1.5 on a few batches; this
prints how far below they are, and for models with experts on sixteen batches each.
"""

import pathlib
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import test_experts
import test_truth
from expert_models import KINDS, Model


def print_errors(what, batches):
    rows = []
    for batch, (_, _, tensors) in enumerate(batches):
        for name, (ours, jax) in tensors.items():
            largest = np.abs(ours).max() / np.abs(jax).max()
            rows.append((largest, np.linalg.norm(ours) / np.linalg.norm(jax), batch, name))
    for norm, column in (("max norm", 0), ("2-norm", 1)):
        values = [row[column] for row in rows]
        worst = max(rows, key=lambda row: row[column])
        print(
            f"{what}, {norm}: median {np.median(values):.2f}, over 1.5 in {sum(value > 1.5 for value in values)} of "
            f"{len(values)}, worst {worst[column]:.2f} (batch {worst[2]}, {worst[3]})",
            flush=True,
        )


for case in test_truth.CASES:
    with tempfile.TemporaryDirectory() as folder:
        print_errors(case, test_truth.bf16_errors(case, pathlib.Path(folder)))
for kind in KINDS:
    with tempfile.TemporaryDirectory() as folder:
        model = Model.make(kind, pathlib.Path(folder))
        if not model.config.routing.biased:  # Margins are those of logits.
            errors = test_experts.bf16_errors(model, model.folder, range(16))
            print_errors(f"{kind}, {test_experts.BF16_DIVISION.ranks} ranks", errors)
