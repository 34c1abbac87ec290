"""Counts the ops of each layer in a step, from a module's text with locations on the standard input.

A line for each layer, kind of op, name in the model and form, with the count: "layer 0 grouped_matmul gate_up_proj transpose 2".
"""

import collections
import re
import sys

operation = re.compile(r"= moe\.(\w+) (.*) loc\(fused<#moe\.scope<\w+, \w+, layer = (\d+)>>\[\"layers\.(\d+)\.(\w+)\"\]\)$")
counted = {"route", "plan", "dispatch", "combine", "grouped_matmul", "grouped_matmul_grad", "swiglu", "row_dot", "route_grad"}

counts = collections.Counter()
seen = 0
for line in sys.stdin:
    seen += sum(f"moe.{kind} " in line for kind in counted)
    match = operation.search(line.rstrip())
    if not match or match[1] not in counted:
        continue
    kind, rest, layer, named_layer, name = match.groups()
    if layer != named_layer:
        sys.exit(f"layer {layer} in the scope, and {named_layer} in the name: {line}")
    form = []
    if kind == "grouped_matmul":
        form = ["transpose" if " transpose by " in rest else "plain"]
    if kind in ("dispatch", "combine"):
        form = [word for word in ("rows", "values") if f"{word}(" in rest]
    counts[(int(layer), kind, name, *form)] += 1

if seen != sum(counts.values()):
    sys.exit(f"{seen} ops, of which {sum(counts.values())} could be told apart by their locations")
for key, count in sorted(counts.items()):
    print("layer", *key, count)
