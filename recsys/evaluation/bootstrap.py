"""Bootstrap intervals of means over users."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
CHUNK_BYTES = 64_000_000
QUANTILES = (0.025, 0.975)  # quantiles between which 95% lie


def resamples(users: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Yield how often each user is drawn, (draws, users) int64 a block, `RESAMPLES` draws in all."""
    rng = np.random.default_rng(seed)
    chunk = max(1, CHUNK_BYTES // (8 * users))
    for start in range(0, RESAMPLES, chunk):
        size = min(chunk, RESAMPLES - start)
        drawn = rng.integers(0, users, (size, users)) + np.arange(size)[:, None] * users
        yield np.bincount(drawn.ravel(), minlength=size * users).reshape(size, users)


def mean_intervals(
    values: NDArray[np.float64], users: NDArray[np.int64], folds: NDArray[np.int64], seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return 95% percentile-bootstrap intervals of means over folds of means over users.

    The users are resampled as clusters: all values of a user, over all folds, are drawn together.
    Values, (rows, columns), are NaN where there was nothing to measure; `users` and `folds`, (rows,),
    say whose value it is, and in which fold. Low and high, (columns,), are NaN for a column without
    values.

    Examples
    --------
    >>> values = np.tile([[0.0], [1.0]], (50, 1))
    >>> low, high = mean_intervals(values, np.arange(100), np.zeros(100, dtype=int))
    >>> bool(0.38 < low[0] < 0.42 and 0.58 < high[0] < 0.62)
    True
    """
    columns = values.shape[1]
    nothing = np.full(columns, np.nan)
    if len(values) == 0:
        return nothing, nothing.copy()
    known = np.isfinite(values)
    filled = np.where(known, values, 0.0)
    distinct, who = np.unique(users, return_inverse=True)
    parts = [np.flatnonzero(folds == fold) for fold in np.unique(folds)]
    means = []
    for times in resamples(len(distinct), seed):
        total, counted = np.zeros((len(times), columns)), np.zeros((len(times), columns))
        for rows in parts:
            weights = times[:, who[rows]].astype(np.float64)
            size = weights @ known[rows]
            mean = np.divide(weights @ filled[rows], size, out=np.zeros_like(size), where=size > 0)
            total += mean
            counted += size > 0
        out = np.full(total.shape, np.nan)
        means.append(np.divide(total, counted, out=out, where=counted > 0))
    drawn = np.concatenate(means)
    low, high = nothing, nothing.copy()
    for column in range(columns):
        found = drawn[np.isfinite(drawn[:, column]), column]
        if len(found):
            low[column], high[column] = np.quantile(found, QUANTILES)
    return low, high
