"""The tools of the build, as the tests run them."""

import json
import os
import pathlib
import subprocess

import numpy as np
import safetensors.numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARIES = pathlib.Path(os.environ.get("PLATEAU_BUILD", ROOT / "build")) / "bin"


def run(tool, *arguments, timeout=300):
    """Runs a tool that must succeed; its standard output."""
    command = [str(BINARIES / tool), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{' '.join(command)}\nexit code {done.returncode}\n{done.stderr}"
    return done.stdout


def import_step(path, model, tokens, sequence, dtype="f32", *flags):
    """Imports models/<model>.json."""
    config = ROOT / "models" / f"{model}.json"
    run("plateau-import", config, "--ranks", 1, "--tokens", tokens, "--sequence", sequence, "--dtype", dtype, "-o", path, *flags)
    return path


def train(step, data, steps, *flags, learning_rate=0.0, first=1, ranks=1, timeout=300):
    """Runs steps of a program; one dictionary a step."""
    output = run(
        "plateau-run", step, "--ranks", ranks, "--steps", steps, "--data", data, "--lr", learning_rate, "--json", *flags,
        timeout=timeout,
    )  # fmt: skip
    lines = [json.loads(line) for line in output.splitlines()]
    lines = [line for line in lines if "step" in line]
    assert [line["step"] for line in lines] == list(range(first, first + steps))
    return lines


def json_lines(output):
    return [json.loads(line) for line in output.splitlines()]


def losses_of(lines):
    """The losses of the steps of a run with --json."""
    return [line["loss"] for line in lines if "step" in line]


def rewrite_dispatch(options, *before):
    """The flags for rows of experts by iterations, after other passes."""
    passes = [*before, f"moe-pipeline-dispatch{{{options}}}"]
    return ["--rewrite", f"func.func({','.join(passes)})"]


def read_tensors(path):
    """The tensors of a safetensors file in float64."""
    return {name: np.asarray(value).astype(np.float64) for name, value in safetensors.numpy.load_file(path).items()}
