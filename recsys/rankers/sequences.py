"""Histories as sequences: their order in time, and the Gram matrices of before and after.

Every split of a history is a regression row: the interactions before it, decayed by how long before it
they were, predict the interactions after it, decayed by how long after it they came. The Gram matrices
of all rows are sums over pairs of interactions, with all splits at a pair summed by recursions along the
history: nothing loops over splits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import in_parts, jit, parallel
from recsys.utils.sparse import owners


@dataclass(frozen=True)
class Sequences:
    """Interactions of each user from oldest to newest; those of equal times are in random order."""

    items: NDArray[np.int32]
    owner: NDArray[np.int64]  # whose they are
    indptr: NDArray[np.integer]
    gaps: NDArray[np.float64]  # how many positions newer than the one before; equal times share one
    elapsed: NDArray[np.float64]  # time since the one before; 0 for the oldest


def sequences(
    liked: sp.csr_matrix, times: NDArray[np.float64] | None, seed: int, before: int = 0
) -> Sequences:
    """Return the interactions in order; `times` are aligned with liked.indices, None for equal times.

    Ties in time are ordered at random. `before` is the number of interactions in the rows before these:
    the random numbers are advanced by it, so that a block of rows is ordered as in the whole matrix.
    """
    owner = owners(liked).astype(np.int64)
    when = np.zeros(liked.nnz) if times is None else times
    rng = np.random.Generator(np.random.PCG64(seed).advance(before))
    order = np.lexsort((rng.random(liked.nnz), when, owner))
    when = when[order]
    fresh = np.ones(liked.nnz, dtype=bool)  # the first of its time
    fresh[1:] = (when[1:] != when[:-1]) | (owner[1:] != owner[:-1])
    group = np.cumsum(fresh) - 1
    place = np.append(np.flatnonzero(fresh)[1:], liked.nnz)[group] - 1.0  # the newest of the group
    oldest = np.zeros(liked.nnz, dtype=bool)
    oldest[liked.indptr[:-1][np.diff(liked.indptr) > 0]] = True
    gaps, elapsed = np.diff(place, prepend=0.0), np.diff(when, prepend=0.0)
    gaps[oldest] = elapsed[oldest] = 0.0
    return Sequences(liked.indices[order].astype(np.int32), owner, liked.indptr, gaps, elapsed)


def before_after(
    found: Sequences,
    votes: NDArray[np.float64],
    items: int,
    before: tuple[NDArray[np.float64], NDArray[np.float64]],
    after: tuple[NDArray[np.float64], NDArray[np.float64]],
    time_scale: float | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return XᵀX and XᵀY of all splits of all histories: items·blocks rows.

    `votes` is the weight of each row of a user. `before` are the laws of X as rates, (exponentials,),
    and coefficients, (blocks, exponentials): column i·blocks + k is item i, law k. `after` is the one
    law of Y. With a `time_scale` both decay by e^−(elapsed time / time_scale), too.
    """
    scale = np.inf if time_scale is None else time_scale
    passed = found.elapsed[:, None] / scale
    (rates, sources), (t_rates, (targets,)) = before, after
    steps = np.exp(-found.gaps[:, None] / rates - passed)
    t_steps = np.exp(-found.gaps[:, None] / t_rates - passed)
    blocks = len(sources)
    ahead = np.empty((len(found.items), blocks, len(rates)))
    _cuts_ahead(found.indptr, steps, sources, ahead)
    places = np.argsort(found.items, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(found.items, minlength=items))))
    gram = np.empty((items * blocks, items * blocks))
    cross = np.empty((items * blocks, items))
    ends = np.asarray(found.indptr[1:])[found.owner]
    with parallel() as threads:
        in_parts(
            threads, _before_after, starts, places, ends, found.items, steps, t_steps, sources, targets,
            ahead, votes[found.owner], gram, cross,
        )  # fmt: skip
        in_parts(threads, _add_transpose, gram)
    return gram, cross


# ---- kernels


@jit
def _cuts_ahead(indptr, steps, sources, out):
    """out[s, k, e] = Σ over the splits after s of law k there times exponential e, both from s."""
    E, blocks = steps.shape[1], len(sources)
    both = np.zeros((E, E))
    for u in range(len(indptr) - 1):
        for s in range(indptr[u + 1] - 1, indptr[u] - 1, -1):
            for a in range(E):
                for b in range(E):
                    if s == indptr[u + 1] - 1:
                        both[a, b] = 0.0
                    else:
                        both[a, b] = 1.0 + steps[s + 1, a] * steps[s + 1, b] * both[a, b]
            for k in range(blocks):
                for a in range(E):
                    total = 0.0
                    for b in range(E):
                        total += sources[k, b] * both[a, b]
                    out[s, k, a] = total


@jit
def _before_after(
    first, stride, starts, places, ends, items, steps, t_steps, sources, targets, ahead, votes,
    gram, cross,
):  # fmt: skip
    """Rows of the item's features: pairs in which it comes first; half of its own."""
    m, E = len(starts) - 1, steps.shape[1]
    blocks, F = len(sources), len(targets)
    xx = np.empty((blocks, m * blocks))
    xy = np.empty((blocks, m))
    decayed = np.empty(E)  # each exponential from the item to here, times the user's votes
    law = np.empty(blocks)
    future = np.empty((blocks, F))
    for i in range(first, m, stride):
        xx[:] = 0.0
        xy[:] = 0.0
        for c in range(starts[i], starts[i + 1]):
            s = places[c]
            decayed[:] = votes[s]
            future[:] = 0.0
            for q in range(s, ends[s]):
                j = items[q]
                if q > s:
                    for k in range(blocks):
                        total = 0.0
                        for b in range(F):
                            future[k, b] = future[k, b] * t_steps[q, b] + law[k]
                            total += targets[b] * future[k, b]
                        xy[k, j] += total
                    for e in range(E):
                        decayed[e] *= steps[q, e]
                share = 1.0 if q > s else 0.5  # the transpose adds the other half
                for k in range(blocks):
                    value = 0.0
                    for e in range(E):
                        value += sources[k, e] * decayed[e]
                    law[k] = value
                    for other in range(blocks):
                        total = 0.0
                        for e in range(E):
                            total += sources[k, e] * decayed[e] * ahead[q, other, e]
                        xx[k, j * blocks + other] += share * total
        for k in range(blocks):
            row = i * blocks + k  # entry by entry: assigning a row compiles for two seconds
            for j in range(m * blocks):
                gram[row, j] = xx[k, j]
            for j in range(m):
                cross[row, j] = xy[k, j]


@jit
def _add_transpose(first, stride, square):
    """Square += its transpose, in tiles, each pair of tiles by one thread."""
    n, side = len(square), 64
    tiles = (n + side - 1) // side
    for a in range(first, tiles, stride):
        for b in range(a, tiles):
            for i in range(a * side, min(n, (a + 1) * side)):
                for j in range(max(i, b * side), min(n, (b + 1) * side)):
                    value = square[i, j] + square[j, i]
                    square[i, j] = value
                    square[j, i] = value
