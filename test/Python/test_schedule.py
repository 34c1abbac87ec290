"""Planned steps: what was observed is what was planned, bits do not depend on the plan, on what is in flight or on the order in which
lanes run, and a model of 48 layers is planned tightly."""

import itertools
import json
import math
import os
import re
import subprocess

import numpy as np
import pytest
from tools import BINARIES, ROOT, run

INPUTS = ROOT / "test" / "Tools" / "Inputs"
LAYERS = 4  # Of models/tiny.json: each routes once in a step.
ALLOWANCE = 16 * 2**20  # Stacks of lanes, records of calls, the library: of the process.


def write_ids(path, count, vocabulary):
    np.random.default_rng(3).integers(0, vocabulary, count).astype("<u4").tofile(path)
    return path


def import_step(path, model, ranks, tokens, sequence, dtype, *flags):
    config = model if str(model).endswith(".json") else ROOT / "models" / f"{model}.json"
    run(
        "plateau-import", config, "--ranks", ranks, "--tokens", tokens, "--sequence", sequence, "--dtype", dtype, "-o", path, *flags
    )  # fmt: skip
    return path


def divided(ranks):
    """Experts and vocabulary on all ranks."""
    return ("--expert-ranks", ranks, "--vocab-ranks", ranks)


def memory_of(step, data, ranks, steps, *flags):
    """What a run says about memory at its end."""
    output = run("plateau-run", step, "--ranks", ranks, "--steps", steps, "--data", data, "--lr", 1e-3, "--json", *flags)
    summary = json.loads(output.splitlines()[-1])
    return {space["space"]: space for space in summary["spaces"]}, summary


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return write_ids(tmp_path_factory.mktemp("data") / "ids", 40000, 16384)


def demo(path, ranks, checkpoint, tokens=1024):
    return import_step(path, "tiny", ranks, tokens, tokens // 2, "f32", *divided(ranks), "--checkpoint", checkpoint)


@pytest.mark.parametrize("checkpoint", ["layer", "none"])
@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_observed_is_planned(ranks, checkpoint, text, tmp_path):
    spaces, summary = memory_of(demo(tmp_path / "step.mlir", ranks, checkpoint), text, ranks, 2)
    for space in spaces.values():
        assert space["observed_peak_bytes"] == space["planned_peak_bytes"] > 0
        assert space["planned_peak_bytes"] <= 1.02 * space["lower_bound_bytes"]
        assert space["allocations_after_start"] == 0
    assert summary["host_fences"] == LAYERS
    # All ranks are in this process. Before the first step it holds everything but the arenas; measuring fills an eighth more, or
    # 1 MiB.
    arenas = sum(space["arena_bytes"] + max(space["arena_bytes"] // 8, 2**20) for space in spaces.values())
    assert summary["resident_growth_bytes"] <= ranks * arenas + ALLOWANCE


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_plan_and_pool_give_the_same_bits(dtype, text, tmp_path):
    step = import_step(tmp_path / "step.mlir", "tiny", 4, 256, 128, dtype, *divided(4), "--checkpoint", "layer")
    for name, flags in (("planned", ()), ("pooled", ("--dynamic",))):
        memory_of(step, text, 4, 3, "--save", tmp_path / name, *flags)
    assert (tmp_path / "planned").read_bytes() == (tmp_path / "pooled").read_bytes()


@pytest.fixture(scope="module")
def micro_batches(tmp_path_factory):
    folder = tmp_path_factory.mktemp("micro")
    step = import_step(folder / "step.mlir", "tiny-odd", 2, 32, 8, "f32", "--micro-batches", 4, "--checkpoint", "layer")
    ids = write_ids(folder / "ids", 257, 1003)
    memory_of(step, ids, 2, 3, "--dynamic", "--save", folder / "pooled")
    return step, ids, (folder / "pooled").read_bytes()


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_micro_batches_in_flight(depth, micro_batches, tmp_path):
    step, ids, expected = micro_batches
    spaces, _ = memory_of(step, ids, 2, 3, "--in-flight", depth, "--save", tmp_path / "state")
    assert (tmp_path / "state").read_bytes() == expected
    device = spaces["device"]
    assert device["observed_peak_bytes"] == device["planned_peak_bytes"]
    assert device["allocations_after_start"] == 0


def test_one_more_in_flight_costs_one_place_of_each_ring(micro_batches, tmp_path):
    arenas, places = [], []
    for depth in (2, 3, 4):
        path = tmp_path / "schedule.mlir"
        run("plateau-opt", micro_batches[0], f"--plateau-schedule=in-flight={depth}", "-o", path)
        schedule = path.read_text()
        arenas.append(int(re.search(r"sched.arena device bytes\((\d+)\)", schedule)[1]))
        rings = re.findall(r"sched.slot in device ring (\d+) .*: memref<([\dx]+)x([fi])32>", schedule)
        assert {int(ring) for ring, _, _ in rings} == {depth}
        # Places of a ring are whole lines of 64 bytes.
        places.append(sum(-(-4 * math.prod(map(int, shape.split("x"))) // 64) * 64 for _, shape, _ in rings))
    assert places[0] == places[1] == places[2] > 0
    assert [after - before for before, after in itertools.pairwise(arenas)] == places[1:]


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_orders_of_micro_batches(depth, micro_batches):
    step, ids, _ = micro_batches
    arguments = (step, "--ranks", 2, "--steps", 1, "--data", ids, "--lr", 1e-3)
    assert "75 orders" in run("plateau-run", *arguments, "--in-flight", depth, "--orders", 75)


def test_orders_of_experts(tmp_path):
    step = import_step(tmp_path / "step.mlir", INPUTS / "experts.json", 2, 16, 8, "f32", *divided(2), "--checkpoint", "layer")
    ids = write_ids(tmp_path / "ids", 257, 32)
    assert "300 orders" in run("plateau-run", step, "--ranks", 2, "--steps", 1, "--data", ids, "--lr", 1e-3, "--orders", 300)


def test_compute_and_comm_overlap(text, tmp_path):
    step = demo(tmp_path / "step.mlir", 4, "layer", tokens=256)
    memory_of(step, text, 4, 2, "--trace", tmp_path / "trace")
    events = json.loads((tmp_path / "trace").read_text().rstrip(", \n").removesuffix("]") + "]")
    spans = [event for event in events if event.get("ph") == "X" and event["pid"] == 0]
    # Lanes have the runtime's numbers: 0 computes, 1 communicates.
    lanes = [[(span["ts"], span["ts"] + span["dur"]) for span in spans if span["tid"] == lane] for lane in (0, 1)]
    assert lanes[0] and lanes[1]
    assert any(begin < other_end and other < end for begin, end in lanes[1] for other, other_end in lanes[0])


def test_model_of_48_layers(tmp_path):
    step, schedule = tmp_path / "step.mlir", tmp_path / "schedule.mlir"
    import_step(step, "qwen3-30b-a3b", 8, 8192, 8192, "bf16", *divided(8), "--checkpoint", "layer")
    tool = subprocess.Popen([str(BINARIES / "plateau-opt"), str(step), "--plateau-schedule", "-o", str(schedule)])
    _, status, usage = os.wait4(tool.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert usage.ru_maxrss < 4 * 2**20  # KiB
    arenas = re.findall(r"sched.arena (\w+) bytes\((\d+)\) lower_bound\((\d+)\)", schedule.read_text())
    assert [space for space, _, _ in arenas] == ["device", "host"]
    for _, planned, bound in arenas:
        assert int(planned) <= 1.02 * int(bound)
