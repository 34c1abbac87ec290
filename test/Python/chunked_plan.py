"""The least-loaded plan and the cut into iterations, written from their definition in numpy: for small checks of other programs."""

import numpy as np


def least_loaded(loads, ranks, slots, alpha=(1, 1), min_rows=1, threshold=(1, 1)):
    """Of each expert the destinations of its rows in order, as pairs (rank, count); and of each rank the foreign experts it holds."""
    loads = [int(load) for load in loads]
    per_rank, total = len(loads) // ranks, sum(loads)
    native = [sum(loads[r * per_rank : (r + 1) * per_rank]) for r in range(ranks)]
    parts, held = [[] for _ in loads], [[] for _ in range(ranks)]
    if max(native) * ranks * threshold[1] < threshold[0] * total:
        return [[(e // per_rank, load)] if load else [] for e, load in enumerate(loads)], held
    cap = alpha[0] * total // (alpha[1] * ranks)
    busy = native[:]  # assigned + pending of the pseudo-code: a load moves between the two, so only their sum matters
    for e in sorted(range(len(loads)), key=lambda e: -loads[e]):
        owner, left = e // per_rank, loads[e]
        busy[owner] -= left
        keep = min(left, max(0, cap - busy[owner]))
        if keep:
            parts[e].append((owner, keep))
            busy[owner] += keep
            left -= keep
        while left:
            able = [r for r in range(ranks) if r != owner and (e in held[r] or len(held[r]) < slots)]
            able.sort(key=lambda r: busy[r])
            fitting = [(r, x) for r in able if (x := min(left, cap - busy[r])) > 0 and (x == left or x >= min_rows)]
            rank, count = fitting[0] if fitting else (able[0] if able else owner, left)
            if rank != owner and e not in held[rank]:
                held[rank].append(e)
            parts[e].append((rank, count))
            busy[rank] += count
            left -= count
    return parts, held


def destinations(ids, experts, parts):
    """The rank that computes each slot of ids [ranks, tokens, top_k], −1 for none."""
    flat = ids.reshape(-1)
    result = np.full(flat.shape, -1)
    for e in range(experts):
        (places,) = np.nonzero(flat == e)
        if len(places):
            ranks, counts = zip(*parts[e])
            result[places] = np.repeat(ranks, counts)
    return result.reshape(ids.shape)


def leaf_rows(where, leaves, ranks):
    """[source, leaf, destination]: rows of each leaf, when `where` [sources, tokens, top_k] are their destinations."""
    counts = np.zeros((len(where), leaves, ranks), int)
    for source, leaf in np.ndindex(counts.shape[:2]):
        sent = where[source, leaf::leaves]
        counts[source, leaf] = np.bincount(sent[sent >= 0], minlength=ranks)
    return counts


def cut(rows, chunks, capacity):
    """Lists of the leaves of each iteration; `rows` [leaf, destination] are of all sources."""
    iterations = []
    for chunk in range(chunks):
        iterations.append([])
        for leaf in range(chunk, len(rows), chunks):
            if capacity and (rows[iterations[-1] + [leaf]].sum(axis=0) > capacity).any():
                iterations.append([])
            iterations[-1].append(leaf)
    return iterations
