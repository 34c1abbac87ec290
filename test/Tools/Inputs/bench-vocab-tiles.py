"""Holds the peaks of plateau-bench vocab against what tile-bytes promises."""

import json
import subprocess

HIDDEN, RANKS = 64, 4


def bench(**options):
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    output = subprocess.run(
        ["plateau-bench", "vocab", "--json", f"--hidden={HIDDEN}", f"--ranks={RANKS}", *flags],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    return json.loads(output.splitlines()[-1])


def plan(tokens, vocabulary, move, hop, tile_bytes):
    line = bench(tokens=tokens, vocab=vocabulary, move=move, hop=hop, tile_bytes=tile_bytes, plan_only="true")
    return line["peak_bytes"]


# How often a rank holds rows of the size of x, and of the size of its shard of the table, gradients included.
HELD = {
    ("weights", "shard"): (2, 5),
    ("activations", "shard"): (5, 2),
    ("none", "shard"): (2, 2),
    ("weights", "tile"): (2, 3),
    ("activations", "tile"): (3, 2),
}
TOKENS, VOCABULARY = 512, 4096
for (move, hop), (rows, shards) in HELD.items():
    # Gathered rows are not tiled over columns: a tile has at least one token of each rank.
    tile = 1 << (18 if move == "none" else 16)

    def rest(tokens, vocabulary):
        held = 4 * HIDDEN * (rows * tokens + shards * vocabulary // RANKS)
        return plan(tokens, vocabulary, move, hop, tile) - held

    first = rest(TOKENS, VOCABULARY)
    # A tile of logits, with scratch memory of products; two more of what moves, and of its gradient, or of gathered rows.
    assert first <= 4 * tile + 128 * TOKENS, (move, hop, first)
    for times in (2, 4, 16):
        found = rest(times * TOKENS, VOCABULARY)
        assert found <= first + 64 * (times - 1) * TOKENS + 4096, (move, hop, times, found, first)
    for times in (2, 8):
        found = rest(TOKENS, times * VOCABULARY)
        assert found <= first + 4096, (move, hop, times, found, first)

# 64 tokens and 512 columns, or the 2048 columns of all ranks: from one tile to 64 of them.
for move, hop in HELD:
    for tiles in (1, 2, 3, 8, 17, 64):
        logits = 4 * 64 * (2048 if move == "none" else 512)
        line = bench(tokens=64, vocab=2048, move=move, hop=hop, tile_bytes=logits // tiles + 3, repeat=1)
        assert line["peak_bytes"] == line["planned_peak_bytes"], (move, hop, tiles, line)
