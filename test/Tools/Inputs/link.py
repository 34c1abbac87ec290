"""Prints a fault for each program of the build that is not linked as it must be.

The plateau-* tools need the shared MLIR and LLVM, the runtime's programs (plateau-rt-* and plateau-*-bench) neither, and no
link line names a static library of theirs.
"""

import pathlib
import re
import subprocess
import sys


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


build = pathlib.Path(sys.argv[1])
tools = sorted(path for path in (build / "bin").glob("plateau-*") if path.is_file())
for tool in tools:
    dynamic = run("readelf", "-d", str(tool))
    wanted = not re.fullmatch(r"plateau-(rt-.*|.*-bench)", tool.name)
    for library in ("libMLIR.so", "libLLVM.so"):
        if (f"[{library}" in dynamic) != wanted:
            print(f"fault: {tool.name} {'does not need' if wanted else 'needs'} {library}")
lines = [line for line in run("ninja", "-C", str(build), "-t", "commands").splitlines() if re.search(r" -o \S*bin/", line)]
for line in lines:
    for library in re.findall(r"\S*lib(?:MLIR|LLVM)\w*\.a\b", line):
        if not pathlib.Path(library).name.startswith("libMLIRCAPI"):
            print(f"fault: static {library} in: {line}")
print(f"checked {len(tools)} tools, {len(lines)} link lines")
