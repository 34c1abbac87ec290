"""The least-loaded plan and the cut on the published profiles of routing."""

import numpy as np
import pytest
from chunked_plan import cut, destinations, leaf_rows, least_loaded

TOKENS, EXPERTS, TOP_K, RANKS, CHUNKS = 65536, 128, 8, 8, 10
PAPER = {"min_rows": 1024, "threshold": (13, 10)}


def profile_ids(share, hot):
    """The first `share` percent of the tokens of a rank choose among the first `hot` experts, the others among the rest."""
    token, slot = np.arange(TOKENS)[:, None], np.arange(TOP_K)[None, :]
    if not hot:
        ids = (token + slot) % EXPERTS
    else:
        ids = np.where(token < TOKENS * share // 100, slot % hot, hot + (token + slot) % (EXPERTS - hot))
    return np.broadcast_to(ids, (RANKS, TOKENS, TOP_K))


def loads_of(ids):
    return np.bincount(ids.reshape(-1), minlength=EXPERTS)


def rank_loads(parts):
    loads = np.zeros(RANKS, int)
    for pieces in parts:
        for rank, count in pieces:
            loads[rank] += count
    return loads


def ratio(loads):
    return f"{loads.max() / loads.mean():.3f}"


@pytest.mark.parametrize(
    "share, hot, moves, plain, strided, contiguous",
    [
        (0, 0, 0, "1.000", ("1.000", ".1251"), ("1.016", ".1269")),
        (95, 16, 13, "7.600", ("1.350", ".1251"), ("2.628", ".1581")),
        (80, 16, 13, "6.400", ("2.400", ".1251"), ("4.000", ".1563")),
        (50, 4, 10, "4.387", ("2.290", ".1251"), ("6.001", ".1712")),
    ],
)
def test_profiles(share, hot, moves, plain, strided, contiguous):
    ids = profile_ids(share, hot)
    loads = loads_of(ids)
    assert ratio(loads.reshape(RANKS, -1).sum(axis=1)) == plain
    parts, held = least_loaded(loads, RANKS, 4, **PAPER)
    assert sum(map(len, held)) == moves
    where = destinations(ids, EXPERTS, parts)
    size = -(-TOKENS // CHUNKS)
    in_order = np.stack([leaf_rows(where[:, i * size : (i + 1) * size], 1, RANKS)[:, 0] for i in range(CHUNKS)], axis=1)
    for rows, expected in ((leaf_rows(where, CHUNKS, RANKS), strided), (in_order, contiguous)):
        sends = f"{(rows / rows.mean(axis=2, keepdims=True)).max():.3f}"
        received = f"{rows.sum(axis=0).max() / (RANKS * TOP_K * size):.4f}"
        assert (sends, received.lstrip("0")) == expected


@pytest.mark.parametrize(
    "share, hot, expected",
    [
        (95, 16, [("7.600", 0), ("3.804", 8), ("1.935", 16), ("1.867", 24), ("1.000", 13)]),
        (80, 16, [("6.400", 0), ("3.214", 8), ("1.743", 16), ("1.471", 24), ("1.000", 13)]),
        (50, 4, [("4.387", 0), ("1.485", 8), ("1.193", 16), ("1.000", 10), ("1.000", 10)]),
    ],
)
def test_helper_slots(share, hot, expected):
    loads = loads_of(profile_ids(share, hot))
    for slots, (imbalance, moves) in enumerate(expected):
        parts, held = least_loaded(loads, RANKS, slots, **PAPER)
        assert (ratio(rank_loads(parts)), sum(map(len, held))) == (imbalance, moves)
        assert [sum(count for _, count in pieces) for pieces in parts] == list(loads)
        assert all(len(experts) <= slots for experts in held)


def test_min_rows():
    # The mean is 10: rank 0 keeps 10 of 17 rows, and ranks 1, 2, 3 have room for 2, 3 and 2.
    for least, parts in (1, [(0, 10), (2, 3), (1, 2), (3, 2)]), (3, [(0, 10), (2, 3), (1, 4)]), (4, [(0, 10), (2, 7)]):
        assert least_loaded([17, 8, 7, 8], 4, 1, min_rows=least)[0][0] == parts


def test_cut():
    rows = np.array([[2, 0], [1, 1], [2, 1], [0, 3], [0, 2], [4, 0], [1, 0]])
    assert cut(rows, 1, 0) == [[0, 1, 2, 3, 4, 5, 6]]
    assert cut(rows, 1, 4) == [[0, 1], [2, 3], [4, 5], [6]]
    assert cut(rows, 2, 4) == [[0, 2, 4], [6], [1, 3], [5]]
    assert cut(rows, 3, 4) == [[0, 3, 6], [1, 4], [2], [5]]
