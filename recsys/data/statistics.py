"""Statistics of a dataset: its sparsity, its long tails, and the density of an item kernel on it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.utils.sparse import binary


class PowerLaw(NamedTuple):
    """count(rank) ≈ scale · rank^(−exponent), with the share of log-variance it explains."""

    exponent: float
    scale: float
    r_squared: float


class Profile(NamedTuple):
    """Densities and tails of a user × item matrix."""

    density: float  # of the matrix
    kernel_density: float  # of RᵀR, its diagonal counted as non-zero
    kernel_estimate: float  # (10.7), which assumes interactions spread evenly and independently
    user_law: PowerLaw  # of Figure 10.1
    item_law: PowerLaw  # of Figure 10.2
    users: NDArray[np.int64]  # (users,) interactions of each, most first
    items: NDArray[np.int64]  # (items,) interactions of each, most first


def profile(user_items: sp.csr_matrix, kernel: bool = True) -> Profile:
    """Return densities and tails of a (users, items) matrix.

    How dense the `kernel` is takes memory to measure; NaN without it. Source: Polato's thesis, 10.3,
    (10.6), (10.7) and Table 10.1.
    """
    n, m = user_items.shape
    density = user_items.nnz / (n * m)
    dense = np.nan
    if kernel:
        ones = binary(user_items, np.float32)
        gram = (ones.T @ ones).tocsr()
        dense = (m + gram.nnz - int(np.count_nonzero(gram.diagonal()))) / m**2
    p = -np.expm1(n * np.log1p(-(density**2))) if density < 1 else 1.0
    by_user = np.sort(np.diff(user_items.indptr))[::-1].astype(np.int64)
    by_item = np.sort(np.bincount(user_items.indices, minlength=m))[::-1].astype(np.int64)
    estimate = (m + (m * m - m) * p) / m**2
    laws = power_law(by_user), power_law(by_item)
    return Profile(density, dense, estimate, *laws, by_user, by_item)


def power_law(counts: ArrayLike) -> PowerLaw:
    """Fit count = scale·rank^(−exponent) by least squares on logarithms, zeros left out.

    Ranks are weighted evenly on the logarithmic axis, as the eye does on a log-log plot.
    """
    values = np.sort(np.asarray(counts, dtype=np.float64))[::-1]
    values = values[values > 0]
    if len(values) < 2:
        return PowerLaw(0.0, float(values[0]) if len(values) else 0.0, 1.0)
    ranks = np.arange(1, len(values) + 1)
    x, y, w = np.log(ranks), np.log(values), 1.0 / ranks
    slope, intercept = np.polyfit(x, y, 1, w=np.sqrt(w))  # polyfit weights residuals, not squares
    total = w @ (y - np.average(y, weights=w)) ** 2
    left = w @ (y - intercept - slope * x) ** 2
    explained = float(1 - left / total) if total > 0 else 1.0
    return PowerLaw(float(-slope), float(np.exp(intercept)), explained)
