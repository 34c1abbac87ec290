"""The page of --report in a browser, and traces of runs that are killed."""

import json
import re
import signal
import struct
import subprocess

import numpy as np
import pytest
from browser import read_page, take_picture
from tools import BINARIES, ROOT, run

RANKS = 2
FLAGS = ["--ranks", RANKS, "--expert-ranks", RANKS, "--vocab-ranks", RANKS, "--tokens", 64, "--sequence", 32, "--dtype", "f32"]


@pytest.fixture(scope="module")
def step(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    run("plateau-import", ROOT / "models" / "tiny.json", *FLAGS, "-o", folder / "step.mlir")
    np.random.default_rng(1).integers(0, 1000, 4000, dtype=np.uint32).tofile(folder / "ids")
    return folder


@pytest.fixture(scope="module")
def page(step):
    """The page of a run of 3 steps, its data, and what the run printed last."""
    path = step / "report.html"
    output = run("plateau-run", step / "step.mlir", "--ranks", RANKS, "--steps", 3, "--data", step / "ids", "--lr", 1e-3,
                 "--json", "--report", path)  # fmt: skip
    text = path.read_text()
    data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)[1])
    memory = next(line for line in map(json.loads, output.splitlines()) if "spaces" in line)
    return path, data, memory


def test_both_curves_are_drawn(page, tmp_path):
    path, data, memory = page
    elements = read_page(path, tmp_path)
    assert elements.attributes["body"]["data-drawn"] == "true"
    assert elements.attributes["body"]["data-errors"] == "0"

    device, reported = data["spaces"][0], memory["spaces"][0]
    assert int(elements.attributes["title"]["data-peak-bytes"]) == reported["planned_peak_bytes"] > 0
    assert f"{reported['planned_peak_bytes'] / 2**20:.1f} MiB" in elements.texts["title"]
    planned, observed = elements.attributes["planned"], elements.attributes["observed"]
    assert int(planned["data-planned-bytes"]) == reported["planned_peak_bytes"]
    assert int(observed["data-observed-bytes"]) == reported["observed_peak_bytes"] > 0

    # The script adds up what is live by itself, in lines of 64 bytes; the arena ends with the last byte of its last line.
    most = -(-reported["planned_peak_bytes"] // 64) * 64
    assert int(planned["data-peak-bytes"]) == device["live"]
    assert device["buffers"] < device["live"] <= most
    assert device["buffers"] < int(observed["data-peak-bytes"]) <= most
    # A point wherever something begins or ends: at most one a call, and its times; at least one for every other call.
    calls = sum(lane >= 0 for lane in data["nodes"]["lane"])
    assert calls / 2 < int(planned["data-points"]) <= len(data["nodes"]["lane"]) + 1
    assert calls / 2 < int(observed["data-points"]) <= 2 * calls
    assert int(elements.attributes["lanes"]["data-spans"]) == calls
    assert int(elements.attributes["arena"]["data-rectangles"]) >= sum("offset" in o and o["space"] == 0 for o in data["occupants"])
    assert int(elements.attributes["live"]["data-live"]) > 3
    assert re.search(r"\d % of the time of comm passes while compute runs", elements.texts["overlap"])


def test_the_map_of_the_arena_has_no_overlap(page):
    """No two slots share a byte while both hold values: the page's rectangles are a plan that can be run on one lane."""
    _, data, _ = page
    for space in range(2):
        lives = [(first, last, o["offset"], o["offset"] + o["bytes"]) for o in data["occupants"]
                 if o["space"] == space and "offset" in o for first, last in zip(o["lives"][::2], o["lives"][1::2])]  # fmt: skip
        lives.sort()
        for number, (_, last, begin, end) in enumerate(lives):
            for other in lives[number + 1 :]:
                if other[0] > last:
                    break
                assert end <= other[2] or other[3] <= begin


def test_the_plan_is_shown_before_the_first_step(page, step, tmp_path):
    _, data, memory = page
    path = tmp_path / "report.html"
    run("plateau-run", step / "step.mlir", "--steps", 0, "--data", step / "ids", "--lr", 1e-3, "--report", path)
    elements = read_page(path, tmp_path)
    assert elements.attributes["body"]["data-drawn"] == "true"
    assert int(elements.attributes["title"]["data-peak-bytes"]) == memory["spaces"][0]["planned_peak_bytes"]
    assert int(elements.attributes["planned"]["data-peak-bytes"]) == data["spaces"][0]["live"]
    assert elements.attributes["observed"]["data-points"] == "0"
    assert "No step has run" in elements.texts["overlap"]


def test_loops_are_shown_iteration_by_iteration(step, tmp_path):
    """Overlapped micro-batches: each call of each iteration has its span, and the page adds up to what the program plans."""
    run("plateau-import", ROOT / "models" / "tiny.json", *FLAGS, "--micro-batches", 2, "-o", tmp_path / "step.mlir")
    path = tmp_path / "report.html"
    output = run("plateau-run", tmp_path / "step.mlir", "--steps", 3, "--data", step / "ids", "--lr", 1e-3, "--in-flight", 2,
                 "--json", "--report", path)  # fmt: skip
    memory = next(line for line in map(json.loads, output.splitlines()) if "spaces" in line)["spaces"][0]
    elements = read_page(path, tmp_path)
    assert int(elements.attributes["title"]["data-peak-bytes"]) == memory["planned_peak_bytes"]
    for chart in ["planned", "observed"]:
        # Slots count in whole lines of 64 bytes; the arena ends with the last byte of its last slot.
        assert 0 < int(elements.attributes[chart]["data-peak-bytes"]) <= memory["planned_peak_bytes"] + 63


def test_every_control_works(page, tmp_path):
    path, _, _ = page
    keys = ["ArrowRight", "ArrowRight", "ArrowDown", "ArrowUp", "+", "+", "ArrowLeft", "-", "0"]
    script = f"""<script>
      for (const button of [...document.querySelectorAll("button")]) button.click();
      for (const button of document.querySelectorAll("#buffers, #spaces button:first-child")) button.click();
      for (const canvas of document.querySelectorAll("canvas")) {{
        canvas.dispatchEvent(new PointerEvent("pointermove", {{clientX: 300, clientY: canvas.getBoundingClientRect().top + 40}}));
        for (const key of {json.dumps(keys)}) canvas.dispatchEvent(new KeyboardEvent("keydown", {{key, cancelable: true}}));
      }}</script>"""
    changed = tmp_path / "changed.html"
    changed.write_text(path.read_text().replace("</body>", script + "</body>"))
    elements = read_page(changed, tmp_path)
    assert elements.attributes["body"]["data-errors"] == "0"
    for chart in ["planned", "observed", "lanes", "arena"]:
        assert elements.texts[chart + "-text"], chart


def test_errors_of_the_page_are_seen(page, tmp_path):
    path, _, _ = page
    broken = tmp_path / "broken.html"
    broken.write_text(path.read_text().replace("choose(spacesWithBytes", "choosee(spacesWithBytes"))
    with pytest.raises(AssertionError, match="choosee is not defined"):
        read_page(broken, tmp_path)


def test_a_picture_can_be_taken(page, tmp_path):
    path, _, _ = page
    picture = take_picture(path, tmp_path, tmp_path / "report.png", 1240, 1700)
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", picture[16:24]) == (1240, 1700)
    assert len(picture) > 40000  # An empty page has a tenth of that.


def test_the_picture_of_the_docs_is_there():
    picture = ROOT / "docs" / "images" / "report.png"
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert picture.stat().st_size <= 300 * 1024


@pytest.mark.parametrize("mode", [[], ["--dynamic"]])
def test_a_killed_run_leaves_its_steps(step, tmp_path, mode):
    """SIGKILL in the middle of a step: the steps before it are in the trace."""
    trace = tmp_path / "trace.json"
    command = [BINARIES / "plateau-run", step / "step.mlir", "--ranks", RANKS, "--steps", 1000, "--data", step / "ids", "--lr", 1e-3,
               "--json", "--trace", trace, *mode]  # fmt: skip
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    lines = [json.loads(process.stdout.readline()) for _ in range(3)]
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert lines[2]["step"] == 3

    events = json.loads(trace.read_text().rstrip(", \n") + "]")
    steps = {event["name"] for event in events if event.get("cat") == "step" and event["pid"] == RANKS - 1}
    assert {"step 1", "step 2", "step 3"} <= steps
    counts = {kind: sum(event["ph"] == kind for event in events) for kind in "XCsfM"}
    assert counts["X"] > 300 and counts["M"] == RANKS * 7
    if mode:
        assert counts["C"] == counts["s"] == counts["f"] == 0
    else:
        assert counts["C"] > 300 and counts["s"] == counts["f"] > 30


def test_counters_end_with_what_outlives_the_step(step, tmp_path):
    """The counters of the trace: each step begins and ends with the buffers alone, and their sum is that of the components."""
    trace = tmp_path / "trace.json"
    run("plateau-run", step / "step.mlir", "--ranks", RANKS, "--steps", 2, "--data", step / "ids", "--lr", 1e-3, "--trace", trace)
    events = json.loads(trace.read_text())
    components = {}
    for event in events:
        if event["ph"] == "C" and event["pid"] == 0 and event["name"].startswith("device memory"):
            components.setdefault(event["name"], []).append((event["ts"], event["args"]["bytes"]))
    total = components.pop("device memory")
    assert total == sorted(total, key=lambda point: point[0])
    assert min(bytes for _, bytes in total) == total[-1][1] > 0
    assert sum(points[-1][1] for points in components.values()) == total[-1][1]
    spans = sorted((e["ts"], e["ts"] + e["dur"], e["tid"]) for e in events if e["ph"] == "X" and e["pid"] == 0 and e["cat"] != "step")
    for arrow in (e for e in events if e["ph"] in "sf" and e["pid"] == 0):
        assert any(start <= arrow["ts"] <= end and lane == arrow["tid"] for start, end, lane in spans)
