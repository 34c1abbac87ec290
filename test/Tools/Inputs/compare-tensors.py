"""Compares two files of tensors of f32 or f64: compare-tensors.py FILE FILE TOLERANCE. Names and shapes must be the same; for each tensor
max|a-b| may be TOLERANCE * max|b|. Prints how many tensors there were, or the first that differs."""
import array
import json
import sys


def read(path):
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header, data = json.loads(file.read(size)), file.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] not in ("F32", "F64"):
            continue
        begin, end = entry["data_offsets"]
        tensors[name] = entry["shape"], array.array("f" if entry["dtype"] == "F32" else "d", data[begin:end])
    return tensors


first, second, tolerance = read(sys.argv[1]), read(sys.argv[2]), float(sys.argv[3])
if first.keys() != second.keys():
    sys.exit(f"only one file has {sorted(first.keys() ^ second.keys())}")
worst = 0
for name, (shape, values) in first.items():
    other_shape, others = second[name]
    if shape != other_shape:
        sys.exit(f"{name} is {shape} and {other_shape}")
    largest = max(map(abs, others), default=0)
    difference = max((abs(a - b) for a, b in zip(values, others)), default=0)
    if not difference <= tolerance * largest:
        sys.exit(f"{name}: max|a-b|/max|b| is {difference}/{largest}, more than {tolerance}")
    worst = max(worst, difference / largest if largest else 0)
print(f"{len(first)} tensors, max|a-b|/max|b| {worst:.1e}")
