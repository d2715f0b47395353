"""Gradients and curvatures of the loss in the objects' own tables, summed over each object's pairs.

With one side of the pairs held fixed, the loss' quadratic bound is a small quadratic for each object of
the other side, in its own A^1…A^m. These are the passes over all pairs that sum it.

Source: Atarashi's thesis 3.3.4 and (3.21), with the sums over an object's pairs taken out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recsys._jit import in_threads, jit
from recsys.multilinear.arrays import Target, weight_mask
from recsys.multilinear.losses import loss_slope
from recsys.multilinear.pairs import PAIR_CHUNKS, Side

__all__ = ["gather"]

Vector = NDArray[np.float64]


def gather(
    side: Side, target: Target, stale: bool, packed: Vector, held: Vector, old: Vector, c: Vector,
    sums: Vector, threads: int | None,
) -> None:  # fmt: skip
    """Sum, for each object, the gradient and curvature of the loss in its own A^1…A^m over its pairs.

    The change of the last sweep is brought into the predictions on the way, if they lack it (`stale`).
    Chunks of pairs are fixed: no result depends on the number of threads, and a thread stays with its
    own predictions.

    Parameters
    ----------
    packed : (partners, 2m)
        Each partner's factors in that change, and its A^0…A^(m−1).
    held : (objects, m + 1)
        The objects' own factors in that change.
    old, c : (m + 1,)
        The coefficients of that change, and those of the term.
    sums : (chunks, objects, m + m·m)
        Filled with m gradients and m·m curvatures an object.
    """
    in_threads(
        threads, _gather, side.ptr, side.entries, side.partners, target.y, target.pred,
        target.row_weights, target.loss, stale, packed, held, old, c, sums,
    )  # fmt: skip


# ---- kernels


@jit
def _gather_chunk(
    ptr, entries, partners, y, pred, row_weights, loss, stale, packed, held, old, c, sums
):  # fmt: skip
    m, mask = len(c) - 1, weight_mask(row_weights)
    total, b = np.empty(m + m * m), np.empty(m)
    for u in range(len(ptr) - 1):
        first, last = ptr[u], ptr[u + 1]
        if m == 2:
            g0 = g1 = h0 = h1 = count = 0.0
            a, e1 = old[1] * held[u, 1], old[2] * held[u, 0]
            for e in range(first, last):
                i, v = entries[e], partners[e]
                p = pred[i]
                if stale:
                    p += a * packed[v, 0] + e1 * packed[v, 1]
                    pred[i] = p
                weight = row_weights[i & mask]
                r = weight * loss_slope(loss, p, y[i])
                x = packed[v, 3]
                g0 += r * x
                g1 += r
                h0 += weight * x * x
                h1 += weight * x
                count += weight
            sums[u, 0], sums[u, 1] = c[1] * g0, c[2] * g1
            sums[u, 2], sums[u, 4] = c[1] * c[1] * h0, c[1] * c[2] * h1
            sums[u, 3], sums[u, 5] = c[1] * c[2] * h1, c[2] * c[2] * count
            continue
        if m == 3:
            g0 = g1 = g2 = h00 = h01 = h11 = h0 = h1 = count = 0.0
            a, e1, e2 = old[1] * held[u, 2], old[2] * held[u, 1], old[3] * held[u, 0]
            for e in range(first, last):
                i, v = entries[e], partners[e]
                p = pred[i]
                if stale:
                    p += a * packed[v, 0] + e1 * packed[v, 1] + e2 * packed[v, 2]
                    pred[i] = p
                weight = row_weights[i & mask]
                r = weight * loss_slope(loss, p, y[i])
                x, z = packed[v, 5], packed[v, 4]
                g0 += r * x
                g1 += r * z
                g2 += r
                h00 += weight * x * x
                h01 += weight * x * z
                h11 += weight * z * z
                h0 += weight * x
                h1 += weight * z
                count += weight
            c1, c2, c3 = c[1], c[2], c[3]
            sums[u, 0], sums[u, 1], sums[u, 2] = c1 * g0, c2 * g1, c3 * g2
            sums[u, 3] = c1 * c1 * h00
            sums[u, 6], sums[u, 7] = c2 * c1 * h01, c2 * c2 * h11
            sums[u, 9], sums[u, 10] = c3 * c1 * h0, c3 * c2 * h1
            sums[u, 11] = c3 * c3 * count
            continue
        total[:] = 0.0
        for e in range(first, last):
            i, v = entries[e], partners[e]
            p = pred[i]
            if stale:
                for t in range(m):
                    p += old[t + 1] * packed[v, t] * held[u, m - 1 - t]
                pred[i] = p
            weight = row_weights[i & mask]
            r = weight * loss_slope(loss, p, y[i])
            for t in range(m):
                x = packed[v, 2 * m - 1 - t]
                b[t] = x
                total[t] += r * x
                x *= weight
                for w in range(t + 1):
                    total[m + t * m + w] += x * b[w]
        for t in range(m):
            sums[u, t] = c[t + 1] * total[t]
            for w in range(t + 1):
                sums[u, m + t * m + w] = c[t + 1] * c[w + 1] * total[m + t * m + w]


@jit
def _gather(
    part, stride, ptr, entries, partners, y, pred, row_weights, loss, stale, packed, held, old, c, sums
):  # fmt: skip
    for chunk in range(part, PAIR_CHUNKS, stride):
        _gather_chunk(
            ptr[chunk], entries, partners, y, pred, row_weights, loss, stale, packed, held, old, c,
            sums[chunk],
        )  # fmt: skip
