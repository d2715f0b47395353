"""Kernels of dense rows against dense bases by products of matrices, where these are accurate.

The ANOVA kernel of order m comes from the power sums Σ_j (ω_j x_j)^t, t ≤ m, a product of matrices each,
by Newton's identities. Their terms have both signs: what they are off by is that of summing all products
of m features, equal ones among them, h_m(|ωx|), where walking is off by that of distinct ones,
e_m(|ωx|). No entry having more than a share s of Σ_j |ω_j x_j|, h_m/e_m ≤ Π_{t<m} (1 + ts)/(1 − ts), as
each next feature has at least 1 − ts, and at most 1 + ts, of the sum to choose from. Rows where that is
above LIMIT are walked: a few entries outweigh the rest there.

Of signs alone, Π_j (1 + ω_j x_j) is the exponential of Σ_j log |1 + ω_j x_j| = Σ_j a_j + Σ_j ω_j b_j,
which is off by as many roundings as Σ_j |log| has units: rows where that is above LIMIT are walked.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.random_features._bases import dense_map

__all__ = ["anova_products", "kernel_map", "subsets_products"]

LIMIT = 16.0  # times the error of walking at which a row is walked
DENSE = 8  # a row is dense with one feature in so many: its walk costs more than whole products
BATCH = 1 << 19  # entries of a batch of dense rows, of a block of the bases, and of their product
WIDE = 1024  # components at a time of bases that are as they are

Matrix = NDArray[np.float64]


def kernel_map(X: sp.csr_matrix, bases: Matrix, degree: int, scale: float = 1.0) -> Matrix:
    """Do as `dense_map`, by products of matrices for dense rows where these are accurate."""
    features, components = bases.shape
    dense = np.diff(X.indptr) * DENSE > features
    signs = _signs_alone(bases) if dense.any() else False
    if not dense.any() or (degree == 0 and not signs):
        return dense_map(X, bases, degree, scale)
    out = np.empty((X.shape[0], components))
    width = max(1, min(components, WIDE if signs else BATCH // features))  # others have powers
    step = max(1, BATCH // (max(features, width) * max(degree, 1)))
    chosen, walked = np.flatnonzero(dense), ~dense
    for start in range(0, len(chosen), step):
        at = chosen[start : start + step]
        rows = X[at].toarray()
        fine = accurate_subsets(rows) if degree == 0 else accurate_rows(rows, degree, signs)
        walked[at[~fine]] = True
        at, rows = at[fine], rows[fine]
        for left in range(0, components if len(at) else 0, width):
            block = slice(left, left + width)
            if degree == 0:
                found = subsets_products(rows, bases[:, block])
            else:
                found, fine = anova_products(rows, bases[:, block], degree, signs)
                walked[at[~fine]] = True
            out[at, block] = scale * found
    rest = np.flatnonzero(walked)
    if len(rest):
        out[rest] = dense_map(X[rest], bases, degree, scale)
    return out


def _signs_alone(bases: Matrix) -> bool:
    """Return whether all entries are −1 or 1."""
    step = max(1, BATCH // bases.shape[1])
    return all(
        bool((np.abs(bases[start : start + step]) == 1.0).all()) for start in range(0, len(bases), step)
    )


def excess(share: Matrix, degree: int) -> Matrix:
    """Return the bound of h_m/e_m where no entry has more than this share of the sum."""
    bound = np.ones_like(share)
    with np.errstate(divide="ignore", invalid="ignore"):
        for t in range(1, degree):
            bound *= np.where(t * share < 1.0, (1.0 + t * share) / (1.0 - t * share), np.inf)
    return bound


def accurate_rows(rows: Matrix, degree: int, signs: bool) -> NDArray[np.bool_]:
    """Return which rows are not 0 and, where the bases are signs, products are accurate for."""
    sizes = np.abs(rows)
    top = sizes.max(axis=1)
    if not signs:
        return top > 0.0
    scaled = sizes / np.where(top > 0.0, top, 1.0)[:, None]  # whose sum is in range
    share = 1.0 / np.maximum(scaled.sum(axis=1), 1.0)
    return (top > 0.0) & (excess(share, degree) <= LIMIT)


def anova_products(
    rows: Matrix, bases: Matrix, degree: int, signs: bool
) -> tuple[Matrix, NDArray[np.bool_]]:
    """Return A^degree of rows with bases, and for which rows it is accurate, if the bases are not signs.

    Every row has an entry other than 0.
    """
    _, exponent = np.frexp(np.abs(rows).max(axis=1))  # by a power of 2, so that no power leaves float64
    rows = np.ldexp(rows, -exponent[:, None])
    fine: NDArray[np.bool_] = np.ones(len(rows), dtype=bool)
    x, w, sums = rows, bases, []
    for t in range(1, degree + 1):
        if t > 1:
            x = x * rows
        if signs:
            sums.append(x @ bases if t % 2 else x.sum(axis=1)[:, None])  # ω^t is ω, or 1
        else:
            w = w * bases if t > 1 else bases
            sums.append(x @ w)
    if not signs and degree > 1:
        whole = np.abs(rows) @ np.abs(bases)  # the largest |ωx| is at most the root of Σ (ωx)²
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(whole > 0.0, np.sqrt(np.maximum(sums[1], 0.0)) / whole, 1.0)
        fine = np.all(excess(share, degree) <= LIMIT, axis=1)
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(_newton(sums), degree * exponent[:, None]), fine


def _newton(sums: list[Matrix]) -> Matrix:
    """Return e_m as `newton_identities` does, in few passes over the arrays."""
    e = [np.ones((1, 1)), sums[0]]
    for t in range(2, len(sums) + 1):
        total = e[t - 1] * sums[0]
        for r in range(2, t + 1):
            term = e[t - r] * sums[r - 1] if r < t else sums[r - 1]
            if r % 2:
                total += term
            else:
                total -= term
        total /= t
        e.append(total)
    return e[-1]


def accurate_subsets(rows: Matrix) -> NDArray[np.bool_]:
    """Return for which rows the logarithms of all 1 ± x are finite, and few units altogether."""
    with np.errstate(divide="ignore"):
        sizes = np.maximum(np.abs(_log_size(rows)), np.abs(_log_size(-rows)))
    return sizes.sum(axis=1) <= LIMIT


def subsets_products(rows: Matrix, bases: Matrix) -> Matrix:
    """Return Π_j (1 + ω_j x_j) of rows without a 1 or −1, and bases of signs."""
    plus, minus = _log_size(rows), _log_size(-rows)
    out = np.exp((0.5 * (plus - minus)) @ bases + 0.5 * (plus + minus).sum(axis=1)[:, None])
    large = np.abs(rows) > 1.0
    some = np.flatnonzero(large.any(axis=1))
    if len(some):  # of a large x, 1 + ωx is negative where ω has the other sign
        agree = np.where(large[some], np.sign(rows[some]), 0.0) @ bases
        negative = np.rint(0.5 * (large[some].sum(axis=1)[:, None] - agree))
        out[some] *= 1.0 - 2.0 * (negative % 2.0)
    return out


def _log_size(x: Matrix) -> Matrix:
    """Return log |1 + x|, accurate for small x and near −1; −2 − x has a rounding at most."""
    return np.log1p(np.where(x < -1.0, -2.0 - x, x))
