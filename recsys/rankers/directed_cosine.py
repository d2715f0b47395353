"""Directed asymmetric cosine: how often one item is followed by another, in sparse form."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import in_parts, jit, parallel
from recsys.rankers.sequences import Sequences
from recsys.utils.memory import check_memory

PAIR_BYTES = 20  # of an entry, while it is scaled


class Ordered(NamedTuple):
    """Histories in their order, with what each step decays by."""

    indptr: NDArray[np.int64]
    items: NDArray[np.int32]  # from oldest to newest
    which: NDArray[np.integer]  # the row of `steps` for the step from the interaction before
    steps: NDArray[np.float64]  # (…, exponentials)
    votes: NDArray[np.float64]  # of each user


def followed(
    found: Sequences,
    votes: NDArray[np.float64],
    items: int,
    rates: NDArray[np.float64],
    law: NDArray[np.float64],
    backward: float,
    time_scale: float | None,
) -> sp.csr_matrix:
    """Return weights of j after i, Σ_u votes_u·law(positions from i to j): (items, items) float32 CSR.

    The law of the gap is a sum of exponentials. j before i counts `backward` of j after i. With a
    `time_scale` votes decay by e^−(elapsed time / time_scale), too. Only pairs that occur in a profile
    are stored, and no diagonal; more of them than memory holds are refused.
    """
    if time_scale is None:  # gaps are few different numbers
        which: NDArray[np.integer] = found.gaps.astype(np.int32)
        steps = steps_of(int(which.max(initial=0)), rates)
    else:
        which = np.arange(len(found.gaps))
        steps = np.exp(-found.gaps[:, None] / rates - found.elapsed[:, None] / time_scale)
    places = np.argsort(found.items, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(found.items, minlength=items))))
    users = found.owner[places].astype(np.int32)
    ordered = Ordered(np.asarray(found.indptr, np.int64), found.items, which, steps, votes)
    both = bool(backward)
    lengths = np.zeros(items, dtype=np.int64)
    with parallel() as threads:
        in_parts(threads, _sizes, starts, users, ordered.indptr, ordered.items, items, both, lengths)
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    pairs = int(indptr[-1])
    check_memory(PAIR_BYTES * pairs, f"slist on {pairs:,} pairs of items that go together")
    indices, data = np.empty(pairs, dtype=np.int32), np.empty(pairs, dtype=np.float32)
    with parallel() as threads:
        in_parts(
            threads, _fill, starts, users, *ordered, items, law, float(backward), indptr[:-1],
            indices, data,
        )  # fmt: skip
    return sp.csr_matrix((data, indices, indptr), (items, items))


def steps_of(longest: int, rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the decay over steps of 0…longest positions, (longest + 1, exponentials)."""
    return np.asarray(np.exp(-np.arange(longest + 1.0)[:, None] / rates))


# ---- kernels


@jit
def _place(items, begin, end, i):
    """Return the position of an item in a history that holds it."""
    for s in range(begin, end):
        if items[s] == i:
            return s
    return end


@jit
def _sizes(first, stride, starts, users, indptr, items, m, both, out):
    seen = np.full(m, -1)
    for r in range(first, len(out), stride):
        for c in range(starts[r], starts[r + 1]):
            begin, end = indptr[users[c]], indptr[users[c] + 1]
            s = _place(items, begin, end, r)
            for q in range(begin if both else s, end):
                if q != s and seen[items[q]] != r:
                    seen[items[q]] = r
                    out[r] += 1


@jit
def _fill(
    first, stride, starts, users, indptr, items, which, steps, votes, m, law, backward, begins,
    indices, data,
):  # fmt: skip
    E = len(law)
    total = np.zeros(m)
    seen = np.full(m, -1)
    decayed = np.empty(E)
    for r in range(first, len(begins), stride):
        at = begins[r]
        for c in range(starts[r], starts[r + 1]):
            u = users[c]
            end = indptr[u + 1]
            s = _place(items, indptr[u], end, r)
            begin = s if backward == 0.0 else indptr[u]
            for q in range(begin, end):
                if q != s and seen[items[q]] != r:
                    seen[items[q]] = r
                    total[items[q]] = 0.0
                    indices[at] = items[q]
                    at += 1
            decayed[:] = law * votes[u]
            for q in range(s + 1, end):
                value = 0.0
                for e in range(E):
                    decayed[e] *= steps[which[q], e]
                    value += decayed[e]
                total[items[q]] += value
            decayed[:] = law * votes[u] * backward
            for q in range(s - 1, begin - 1, -1):
                value = 0.0
                for e in range(E):
                    decayed[e] *= steps[which[q + 1], e]
                    value += decayed[e]
                total[items[q]] += value
        mine = indices[begins[r] : at]
        mine.sort()
        for p in range(begins[r], at):
            data[p] = total[indices[p]]
