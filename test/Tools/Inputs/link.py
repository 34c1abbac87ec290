"""Prints a fault for each plateau-* tool without the shared MLIR or LLVM and for each static MLIR or LLVM library linked."""

import pathlib
import re
import subprocess
import sys


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


build = pathlib.Path(sys.argv[1])
# The benchmarks of the runtime's calls are linked with the runtime alone.
benchmarks = {"plateau-gemm-bench", "plateau-attention-bench"}
tools = sorted(path for path in (build / "bin").glob("plateau-*") if path.is_file() and path.name not in benchmarks)
for tool in tools:
    dynamic = run("readelf", "-d", str(tool))
    for library in ("libMLIR.so", "libLLVM.so"):
        if f"[{library}" not in dynamic:
            print(f"fault: {tool.name} does not need {library}")
lines = [line for line in run("ninja", "-C", str(build), "-t", "commands").splitlines() if " -o bin/plateau-" in line]
for line in lines:
    for library in re.findall(r"\S*lib(?:MLIR|LLVM)\w*\.a\b", line):
        if not pathlib.Path(library).name.startswith("libMLIRCAPI"):
            print(f"fault: static {library} in: {line}")
print(f"checked {len(tools)} tools, {len(lines)} link lines")
