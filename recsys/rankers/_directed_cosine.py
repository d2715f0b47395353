"""Directed asymmetric cosine: how often one item is followed by another, in sparse form."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import in_parts, jit, parallel
from recsys.rankers._sequences import Sequences
from recsys.utils.memory import check_memory

PAIR_BYTES = 20  # of an entry, while it is scaled


def followed(
    found: Sequences,
    votes: NDArray[np.float64],
    items: int,
    rates: NDArray[np.float64],
    law: NDArray[np.float64],
    backward: float,
    time_scale: float | None,
) -> sp.csr_matrix:
    """Return what users vote for j after i: Σ_u votes_u·law(places from i to j), (items, items) float32.

    Parameters
    ----------
    found : Sequences
    votes : (users,) float64
    items : int
    rates, law : (exponentials,) float64
        The law of the gap as a sum of exponentials.
    backward : float in 0…1
        What j before i counts of j after i.
    time_scale : float, optional
        Votes decay by e^−(elapsed time / time_scale), too.

    Returns
    -------
    csr_matrix
        Indices sorted, the diagonal not stored; only pairs of items that somebody has both of.

    Raises
    ------
    InputError
        If there are more of them than memory holds.
    """
    scale = np.inf if time_scale is None else time_scale
    steps = np.exp(-found.gaps[:, None] / rates - found.elapsed[:, None] / scale)
    places = np.argsort(found.items, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(found.items, minlength=items))))
    begins = np.asarray(found.indptr[:-1])[found.owner]
    ends = np.asarray(found.indptr[1:])[found.owner]
    if not backward:
        begins = np.arange(len(places))
    sizes = np.zeros(items, dtype=np.int64)
    with parallel() as threads:
        in_parts(threads, _sizes, starts, places, begins, ends, found.items, sizes)
    indptr = np.concatenate(([0], np.cumsum(sizes)))
    pairs = int(indptr[-1])
    check_memory(PAIR_BYTES * pairs, f"slist on {pairs:,} pairs of items that go together")
    indices, data = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1], dtype=np.float32)
    with parallel() as threads:
        in_parts(
            threads, _fill, starts, places, begins, ends, found.items, steps, law, float(backward),
            votes[found.owner], indptr, indices, data,
        )  # fmt: skip
    return sp.csr_matrix((data, indices, indptr), (items, items))


# ---- kernels


@jit
def _sizes(first, stride, starts, places, begins, ends, items, out):
    m = len(starts) - 1
    seen = np.full(m, -1)
    for i in range(first, m, stride):
        for c in range(starts[i], starts[i + 1]):
            s = places[c]
            for q in range(begins[s], ends[s]):
                if q != s and seen[items[q]] != i:
                    seen[items[q]] = i
                    out[i] += 1


@jit
def _fill(
    first, stride, starts, places, begins, ends, items, steps, law, backward, votes, indptr,
    indices, data,
):  # fmt: skip
    m, E = len(starts) - 1, len(law)
    total = np.zeros(m)
    seen = np.full(m, -1)
    decayed = np.empty(E)
    for i in range(first, m, stride):
        at = indptr[i]
        for c in range(starts[i], starts[i + 1]):
            s = places[c]
            for q in range(begins[s], ends[s]):
                if q != s and seen[items[q]] != i:
                    seen[items[q]] = i
                    total[items[q]] = 0.0
                    indices[at] = items[q]
                    at += 1
            decayed[:] = law * votes[s]
            for q in range(s + 1, ends[s]):
                value = 0.0
                for e in range(E):
                    decayed[e] *= steps[q, e]
                    value += decayed[e]
                total[items[q]] += value
            decayed[:] = law * votes[s] * backward
            for q in range(s - 1, begins[s] - 1, -1):
                value = 0.0
                for e in range(E):
                    decayed[e] *= steps[q + 1, e]
                    value += decayed[e]
                total[items[q]] += value
        mine = indices[indptr[i] : at]
        mine.sort()
        for p in range(indptr[i], at):
            data[p] = total[indices[p]]
