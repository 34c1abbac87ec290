"""Prints how the bf16 errors of each tensor on each batch compare with those of JAX's own bfloat16 run.

Both are against float64. test_truth.py bounds the ratio of the largest errors by 1.5; this prints how far below they are.
"""

import pathlib
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from test_truth import CASES, bf16_errors

for case in CASES:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for batch, (_, _, tensors) in enumerate(bf16_errors(case, pathlib.Path(folder))):
            for name, (ours, jax) in tensors.items():
                largest = np.abs(ours).max() / np.abs(jax).max()
                rows.append((largest, np.linalg.norm(ours) / np.linalg.norm(jax), batch, name))
    for what, column in (("max norm", 0), ("2-norm", 1)):
        values = [row[column] for row in rows]
        worst = max(rows, key=lambda row: row[column])
        print(
            f"{case}, {what}: median {np.median(values):.2f}, over 1.5 in {sum(value > 1.5 for value in values)} of "
            f"{len(values)}, worst {worst[column]:.2f} (batch {worst[2]}, {worst[3]})"
        )
