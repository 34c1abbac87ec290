"""The lit suite.

PLATEAU_ROUND_TRIP=1 in the environment makes every run of plateau-opt print its input, parse it again and compare, as text
and as bytecode, besides what the test asks for.
"""

import os

import lit.formats

config.name = "Plateau"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "Unit", "Python"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.plateau_build, "test")

binaries = os.path.join(config.plateau_build, "bin")
config.environment["PATH"] = os.pathsep.join([binaries, config.llvm_tools, os.environ.get("PATH", "")])
# One OpenMP thread: lit runs tests side by side, and no test depends on the number.
config.environment["OMP_NUM_THREADS"] = "1"

# See test/CMakeLists.txt.
config.environment["ASAN_OPTIONS"] = "allow_user_poisoning=0:detect_container_overflow=0"

python = os.path.join(config.plateau_source, ".venv", "bin", "python")
config.substitutions += [
    ("%models", os.path.join(config.plateau_source, "models")),
    ("%python", python if os.path.exists(python) else "/usr/bin/python3"),
    ("%build", config.plateau_build),
    ("%source", config.plateau_source),
]

if os.environ.get("PLATEAU_ROUND_TRIP") == "1":
    config.substitutions.append((r"(?<![\w/.-])plateau-opt(?![\w.-])", "plateau-opt --verify-roundtrip"))
