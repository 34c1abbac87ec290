"""Follows the includes of the sched checkers through the source tree, and what their library links; prints each that is a planner's."""

import re
import sys
from pathlib import Path

source = Path(sys.argv[1])
forbidden = re.compile(r"/(Transforms|Planning|Conversion|Pipelines|Execution|Run)/")
work = [*source.glob("lib/Dialect/Sched/Verify/*.cpp"), *source.glob("lib/Dialect/Sched/IR/*.cpp")]
work += [source / "lib/Analysis" / f"{name}.cpp" for name in ("LoopPrefix", "Order", "Timeline")]
assert all(path.exists() for path in work)
seen = set(work)
while work:
    path = work.pop()
    for header in re.findall(r'#include "(plateau/[^"]+)"', path.read_text()):
        if forbidden.search(header):
            print(f"fault: {path.relative_to(source)} includes {header}")
        file = source / "include" / header
        if file.exists() and file not in seen:  # The others are generated, or the runtime's.
            seen.add(file)
            work.append(file)
for library in ("Dialect/Sched/Verify", "Dialect/Sched/IR", "Analysis"):
    for word in re.findall(r"\bPlateau\w*", (source / "lib" / library / "CMakeLists.txt").read_text()):
        if re.search("Transforms|Planning|Conversion|Pipelines", word):
            print(f"fault: lib/{library} links {word}")
print(f"checked {len(seen)} files")
