"""Paired comparison of two models over the same users."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

BOOTSTRAPS = 2000


@dataclass(frozen=True)
class Comparison:
    """The difference of two models on one metric, over users.

    Attributes
    ----------
    difference : float
        Mean over users of first − second.
    low, high : float
        95% percentile-bootstrap interval of that mean.
    p_value : float
        Wilcoxon's signed-rank test; 1 when no user differs.
    p_holm : float
        The same after Holm's correction over all comparisons of a report.
    users : int
        Users on whom both have a value.
    """

    difference: float
    low: float
    high: float
    p_value: float
    users: int
    p_holm: float = 1.0


def compare(first: NDArray[np.float64], second: NDArray[np.float64], seed: int = 0) -> Comparison | None:
    """Compare values per user, NaN where there was nothing to predict.

    Parameters
    ----------
    first, second : (users,) float64
    seed : int
        Of the bootstrap.

    Returns
    -------
    Comparison, or None where no user has both values.
    """
    both = np.isfinite(first) & np.isfinite(second)
    delta = (first - second)[both]
    if len(delta) == 0:
        return None
    rng = np.random.default_rng(seed)
    means = np.empty(BOOTSTRAPS)
    for b in range(BOOTSTRAPS):
        means[b] = delta[rng.integers(0, len(delta), len(delta))].mean()
    low, high = np.quantile(means, [0.025, 0.975])
    p = 1.0
    if np.any(delta != 0):
        p = float(stats.wilcoxon(delta, zero_method="wilcox", method="approx").pvalue)
    return Comparison(float(delta.mean()), float(low), float(high), p, len(delta))


def holm(p_values: list[float]) -> list[float]:
    """Return p-values corrected for their number by Holm's step-down procedure."""
    order = np.argsort(p_values)
    out = np.empty(len(p_values))
    running = 0.0
    for rank, k in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[k]))
        out[k] = running
    return out.tolist()
