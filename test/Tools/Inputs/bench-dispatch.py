"""Plans and runs the methods of plateau-bench dispatch and holds what it prints against known figures.

Usage: bench-dispatch.py routing | slots | memory | run
"""

import json
import subprocess
import sys

EP, LLEP, PIPELINED = "ep", "llep", "pipelined-llep"
METHODS = [EP, LLEP, PIPELINED]
ASKED = ["profile", "method", "peak_bytes", "seconds", "expert_moves", "load_max_over_mean", "send_ratio", "received_over_bound"]
ASKED += ["iterations", "host_fences"]


def bench(**options):
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items() if value is not True]
    flags += [f"--{name.replace('_', '-')}" for name, value in options.items() if value is True]
    output = subprocess.run(["plateau-bench", "dispatch", "--json", *flags], check=True, capture_output=True, text=True).stdout
    lines = [json.loads(line) for line in output.splitlines()]
    for line in lines:
        check("keys", list(line)[: len(ASKED)], ASKED)
        check("profile", line["profile"], options["profile"])
    check("methods", [line["method"] for line in lines], METHODS)
    return {line["method"]: line for line in lines}


def check(text, actual, expected):
    if actual != expected:
        raise SystemExit(f"{text}: {actual}, expected {expected}")


def require(holds, text):
    if not holds:
        raise SystemExit(text)


# 65,536 tokens a rank, 128 experts on 8 ranks, 8 for a token, 10 chunks: moves, plain load over the mean, then send ratio and
# received over bound of strided and of contiguous chunks.
LARGE = dict(tokens=65536, hidden=64, expert_hidden=32, experts=128, top_k=8, ranks=8, chunks=10, min_rows=1024, plan_only=True)
VECTORS = {
    "balanced": (0, "1.000", "1.000", "0.1251", "1.016", "0.1269"),
    "95/16": (13, "7.600", "1.350", "0.1251", "2.628", "0.1581"),
    "80/16": (13, "6.400", "2.400", "0.1251", "4.000", "0.1563"),
    "50/4": (10, "4.387", "2.290", "0.1251", "6.001", "0.1712"),
}


def routing():
    for profile, (moves, load, *figures) in VECTORS.items():
        strided = bench(profile=profile, **LARGE)
        contiguous = bench(profile=profile, contiguous=True, **LARGE)
        found = []
        for lines in (strided, contiguous):
            line = lines[PIPELINED]
            check(f"moves of {profile}", line["expert_moves"], moves)
            check(f"load of {profile}", f"{line['load_max_over_mean']:.3f}", "1.000")
            check(f"plain load of {profile}", f"{lines[EP]['load_max_over_mean']:.3f}", load)
            check(f"moves of {profile}, plain", lines[EP]["expert_moves"], 0)
            found += [f"{line['send_ratio']:.3f}", f"{line['received_over_bound']:.4f}"]
        check(f"send and received of {profile}", found, figures)
        check(f"iterations of contiguous chunks of {profile}", contiguous[PIPELINED]["iterations"], None)


# Load over the mean and moves with 0 to 3 helper slots; 4 are the default, above.
SLOTS = {
    "95/16": ["7.600 (0)", "3.804 (8)", "1.935 (16)", "1.867 (24)"],
    "80/16": ["6.400 (0)", "3.214 (8)", "1.743 (16)", "1.471 (24)"],
    "50/4": ["4.387 (0)", "1.485 (8)", "1.193 (16)", "1.000 (10)"],
}


def slots():
    for profile, figures in SLOTS.items():
        found = []
        for helper_slots in range(4):
            line = bench(profile=profile, helper_slots=helper_slots, **LARGE)[LLEP]
            found.append(f"{line['load_max_over_mean']:.3f} ({line['expert_moves']})")
        check(f"loads of {profile}", found, figures)


GIB = 1 << 30


def get_closed_forms(n, h, i, k, experts, ranks, chunks, slots, capacity, received, b=4):
    """Bytes of a rank by llep and in chunks, where an expert is no wider than a row and two iterations are in flight."""
    arguments = 4 * n * h * b + 12 * n * k + experts // ranks * 3 * h * i * (b + 4) + 4 * n * k
    llep = arguments + received * ((3 * h + 4 * i) * b + 4) + slots * 3 * h * i * b
    sent = -(-n // chunks) * k
    return llep, arguments + capacity * ((6 * h + 4 * i) * b + 12) + slots * 3 * h * i * (b + 4) + sent * (h * b + 4)


def check_closed_forms():
    for top_k, chunks, least in ((4, 9, 0.42), (8, 17, 0.64)):
        shape = dict(tokens=4096, hidden=512, expert_hidden=256, experts=32, ranks=8, min_rows=64, capacity_rows="1.1x")
        lines = bench(profile="30/4", plan_only=True, top_k=top_k, chunks=chunks, **shape)
        capacity = lines[PIPELINED]["capacity_rows"]
        check("capacity", capacity, 11 * top_k * -(-4096 // chunks) // 10)
        sizes = (4096, 512, 256, top_k, 32, 8, chunks, 4, capacity)
        forms = get_closed_forms(*sizes, received=8 * 4096 * top_k)  # What is planned has room for all rows on one rank.
        for method, form in zip((LLEP, PIPELINED), forms):
            peak = lines[method]["peak_bytes"]
            require(form <= peak <= 1.002 * form, f"{method}, {top_k} experts: {peak} bytes, closed form {form}")
        even, chunked = get_closed_forms(*sizes, received=4096 * top_k)
        require(chunked <= (1 - least) * even, f"{chunked} bytes, {even} all at once: not {least} less")


def memory():
    check_closed_forms()
    # Everything counted, whatever the routing; nothing is allocated.
    shape = dict(tokens=65536, hidden=7168, expert_hidden=2048, experts=128, top_k=8, ranks=8, chunks=10, capacity_rows="1.1x")
    for forward, most in ((True, 10 * GIB), (False, 16 * GIB)):
        extra = dict(forward_only=True) if forward else {}
        line = bench(profile="80/16", dtype="bf16", plan_only=True, **shape, **extra)[PIPELINED]
        require(line["peak_bytes"] <= most, f"{line['peak_bytes']} bytes, at most {most}")
        check("mean rows", line["mean_rows"], 8 * 6554)
        check("capacity", line["capacity_rows"], 8 * 6554 * 11 // 10)
        check("seconds", line["seconds"], None)
    shape = dict(tokens=65536, hidden=7168, expert_hidden=2048, experts=384, top_k=8, ranks=64, chunks=16, capacity_rows="1.25x")
    line = bench(profile="balanced", dtype="bf16", plan_only=True, **shape)[PIPELINED]
    require(line["working_set_bytes"] <= 8 * GIB, f"working set of {line['working_set_bytes']} bytes, at most {8 * GIB}")


def run():
    shape = dict(tokens=96, hidden=32, expert_hidden=16, experts=16, top_k=4, ranks=4, chunks=5, min_rows=8, capacity_rows="1.1x")
    shape["repeat"] = 2
    for extra in ({}, dict(dtype="bf16"), dict(forward_only=True), dict(helper_slots=0), dict(in_flight=1), dict(capacity_rows=4 * 4)):
        peaks = set()
        for profile in ("balanced", "95/8", "100/1") if not extra else ("50/4", "100/1"):
            lines = bench(profile=profile, **{**shape, **extra})
            for method, line in lines.items():
                name = f"{method}, {profile}, {extra}: {line}"
                require(line["seconds"] > 0 and line["host_fences"] == 1, name)
                require(("time_ratio" in line) == (method != LLEP), f"ratios are those to llep: {name}")
                require(line["lower_bound_bytes"] <= line["peak_bytes"], name)
            line = lines[PIPELINED]
            name = f"{profile}, {extra}: {line}"
            check(f"peak of {name}", line["peak_bytes"], line["planned_peak_bytes"])
            require(line["chunks"] <= line["iterations"] <= line["most_iterations"], name)
            require(line["most_rows"] <= line["capacity_rows"], name)
            check(f"moves of {name}", line["expert_moves"], lines[LLEP]["expert_moves"])
            check(f"load of {name}", line["load_max_over_mean"], lines[LLEP]["load_max_over_mean"])
            peaks.add(line["peak_bytes"])
        check(f"peaks with {extra}", len(peaks), 1)


{"routing": routing, "slots": slots, "memory": memory, "run": run}[sys.argv[1]]()
