"""Steps compiled ahead of time and linked with the runtime alone: the bits of plateau-run, without LLVM."""

import re
import subprocess

import numpy as np
import pytest
import safetensors.numpy
from tools import BINARIES, ROOT, rewrite_dispatch, run, train

STEPS, LEARNING_RATE, TOKENS, SEQUENCE = 3, 1e-2, 24, 8  # Tokens of a rank.
RUNTIME = ROOT / "runtime"


def execute(*command, code=0):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
    assert done.returncode == code, f"{command}\nexit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stderr if code else done.stdout


@pytest.fixture(scope="session")
def runtime():
    """The runtime built alone by gcc: a library that has never seen LLVM."""
    folder = BINARIES.parent / "runtime-gcc"
    execute(
        "cmake", "-S", RUNTIME, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_COMPILER=gcc",
        "-DCMAKE_CXX_COMPILER=g++", "-DPLATEAU_SANITIZER=none",
    )  # fmt: skip
    execute("ninja", "-C", folder, "plateau_rt")
    return folder / "lib" / "libplateau_rt.a"


def link(runtime, program, output, *flags):
    execute(
        "g++", "-std=c++17", "-O2", *flags, "-I", RUNTIME / "include", RUNTIME / "tools" / "run_program.cpp", program, runtime,
        "-ldnnl", "-pthread", "-ldl", "-o", output,
    )  # fmt: skip
    return output


def import_step(path, model, ranks, *flags):
    run(
        "plateau-import", ROOT / "models" / f"{model}.json", "--ranks", ranks, "--tokens", TOKENS, "--sequence", SEQUENCE,
        "--dtype", "f32", "--clip-norm", 1, "-o", path, *flags,
    )  # fmt: skip
    return path


def draw_tokens(path, ranks):
    ids = np.random.default_rng(3).integers(0, 64, STEPS * ranks * TOKENS + 1).astype("<u4")
    ids.tofile(path)
    return ids.astype("<i4")


def read_layout(step):
    """Name, offset and shape of each parameter of the group, as the program has them."""
    text = step.read_text()
    layout = re.search(r"moe\.layout = (#\w+)", text)
    if layout:
        text = next(line for line in text.splitlines() if line.startswith(f"{layout[1]} = "))
    members = re.findall(r'<<"([^"]+)"[^>]*>, offset = (\d+), shape = \[([\d, ]+)\]>', text)
    assert members
    seen = {}
    for name, offset, shape in members:
        seen.setdefault(name, (int(offset), [int(size) for size in shape.split(",")]))
    return seen


def get_group(layout, tensors, rank, elements):
    """The group as a rank holds it: of a tensor that ranks divide, its part."""
    group = np.zeros(elements, np.float32)
    for name, (offset, shape) in layout.items():
        parts = tensors[name].shape[0] // shape[0]
        part = tensors[name].reshape(parts, -1)[rank % parts]
        group[offset : offset + part.size] = part
    return group


def write_inputs(folder, ids, ranks, micro_batches):
    """What plateau-run gives each rank and step."""
    for rank in range(ranks):
        starts = [(step * ranks + rank) * TOKENS for step in range(STEPS)]
        np.concatenate([ids[start : start + TOKENS] for start in starts]).tofile(folder / f"tokens{rank}")
        np.concatenate([ids[start + 1 : start + TOKENS + 1] for start in starts]).tofile(folder / f"labels{rank}")
    rows = np.arange(TOKENS, dtype="<i4")
    (rows % SEQUENCE).tofile(folder / "positions")
    # Rows count from the front of a micro-batch.
    ((rows - rows % SEQUENCE) % (TOKENS // micro_batches)).tofile(folder / "starts")
    np.arange(1, STEPS + 1, dtype="<i4").tofile(folder / "number")
    np.array([LEARNING_RATE], "<f4").tofile(folder / "rate")


def run_program(program, folder):
    output = execute(
        program, "--steps", STEPS, "--read", f"argument parameters={folder}/parameters{{rank}}",
        "--read", f"argument tokens={folder}/tokens{{rank}}", "--read", f"argument labels={folder}/labels{{rank}}",
        "--read", f"argument positions={folder}/positions", "--read", f"argument starts={folder}/starts",
        "--read", f"argument step={folder}/number", "--read", f"argument learning_rate={folder}/rate",
        "--write", f"result parameters={folder}/after{{rank}}", "--print", "result loss",
    )  # fmt: skip
    return [float(line.split(" = ")[1]) for line in output.splitlines()]


CASES = {
    "dense": ("tiny-dense", 1, ["--weight-decay", "0.1"]),
    "experts": ("tiny", 2, ["--expert-ranks", "2", "--vocab-ranks", "2", "--checkpoint", "layer"]),
    "dispatch": ("tiny", 2, ["--expert-ranks", "2", "--vocab-ranks", "2", "--checkpoint", "layer"]),
    "micro-batches": ("tiny-dense", 2, ["--vocab-ranks", "2", "--micro-batches", "3"]),
}
# Of plateau-run and plateau-compile.
OPTIONS = {
    "dispatch": rewrite_dispatch("max-chunks=5 capacity-rows=12 helper-slots=1 min-rows=2 imbalance-threshold=1"),
    "micro-batches": ["--in-flight", 2],
}


@pytest.mark.parametrize("case, gemm, cpu", [
    ("dense", "onednn", "native"), ("dense", "reference", "generic"), ("experts", "onednn", "native"),
    ("experts", "onednn", "generic"), ("dispatch", "onednn", "native"), ("micro-batches", "onednn", "native"),
])  # fmt: skip
def test_bits_of_plateau_run(case, gemm, cpu, runtime, tmp_path):
    model, ranks, flags = CASES[case]
    step = import_step(tmp_path / "step.mlir", model, ranks, *flags)
    ids = draw_tokens(tmp_path / "ids", ranks)
    common = ["--gemm", gemm, *OPTIONS.get(case, [])]
    train(step, tmp_path / "ids", 0, *common, "--save", tmp_path / "before", ranks=ranks)
    lines = train(step, tmp_path / "ids", STEPS, *common, "--save", tmp_path / "after", learning_rate=LEARNING_RATE, ranks=ranks)

    run("plateau-compile", step, "-o", tmp_path / "step.o", "--cpu", cpu, *common)
    program = link(runtime, tmp_path / "step.o", tmp_path / "step")
    assert not re.search("LLVM|MLIR", execute("ldd", program))

    layout = read_layout(step)
    sizes = dict(re.findall(r"^(.*): (\d+) bytes$", execute(program, "--list"), re.MULTILINE))
    elements = int(sizes["argument parameters"]) // 4
    assert sizes["result parameters"] == sizes["argument parameters"] and sizes["result loss"] == "4"
    before, after = (safetensors.numpy.load_file(tmp_path / name) for name in ("before", "after"))
    for rank in range(ranks):
        get_group(layout, before, rank, elements).tofile(tmp_path / f"parameters{rank}")
    write_inputs(tmp_path, ids, ranks, 3 if case == "micro-batches" else 1)
    losses = run_program(program, tmp_path)
    assert losses == [np.float32(line["loss"]) for line in lines]
    for rank in range(ranks):
        found = np.fromfile(tmp_path / f"after{rank}", "<f4")
        np.testing.assert_array_equal(found, get_group(layout, after, rank, elements))
        assert (found != np.fromfile(tmp_path / f"parameters{rank}", "<f4")).mean() > 0.5



def test_what_the_program_refuses(runtime, tmp_path):
    step = import_step(tmp_path / "step.mlir", "tiny", 2, "--expert-ranks", "2")
    run("plateau-compile", step, "-o", tmp_path / "step.o")
    program = link(runtime, tmp_path / "step.o", tmp_path / "step")
    (tmp_path / "short").write_bytes(bytes(4 * TOKENS - 4))
    name = "argument tokens"
    for code, text, *arguments in [
        (2, "'--fast' is no option", "--fast", 1),
        (2, "there is no buffer 'tokens'", "--read", f"tokens={tmp_path}/short"),
        (2, "'argument tokens' is not NAME=FILE", "--read", name),
        (2, "put {rank} into its name", "--write", f"{name}={tmp_path}/out"),
        (2, "--steps: '1x' is no integer", "--steps", "1x"),
        (1, "none: cannot be read", "--read", f"{name}={tmp_path}/none"),
        (1, f"short: has {4 * TOKENS - 4} bytes; 'argument tokens' takes {4 * TOKENS}, or as many for each of the 2 steps",
         "--steps", 2, "--read", f"{name}={tmp_path}/short"),
        (1, "the number of the update is 0"),
    ]:  # fmt: skip
        assert text in execute(program, *arguments, code=code)
    assert not (tmp_path / "out").exists()
