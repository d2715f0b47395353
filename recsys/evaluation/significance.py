"""Intervals of means over users, paired comparisons of models, and which model to use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.errors import InputError, listing
from recsys.utils.validation import real_array

LEVEL = 0.05  # of Holm's p-values, below which a difference is clear
RESAMPLES = 2000
CHUNK_BYTES = 64_000_000
QUANTILES = (0.025, 0.975)  # between which 95% lie


@dataclass(frozen=True)
class Comparison:
    """The difference of two models on one metric, over users.

    Attributes
    ----------
    difference : float
        Mean over users of first − second; for users in several folds, of their mean over folds.
    low, high : float
        95% percentile-bootstrap interval of that mean.
    p_value : float
        Of Wilcoxon's signed-rank test; 1 if no user differs.
    users : int
        Number of users with a value of both models.
    p_holm : float
        The p-value after Holm's correction over all comparisons of a report.

    Examples
    --------
    >>> import numpy as np
    >>> from recsys.evaluation import compare
    >>> first = np.array([0.9, 0.8, 0.7, 0.9, 0.8, 0.7])
    >>> found = compare(first, first - [0.3, 0.1, 0.2, 0.4, 0.15, 0.25])
    >>> round(found.difference, 2), round(found.p_value, 2), found.differs_clearly
    (0.23, 0.03, True)
    """

    difference: float
    low: float
    high: float
    p_value: float
    users: int
    p_holm: float = 1.0

    @property
    def differs_clearly(self) -> bool:
        """Whether the interval excludes 0 and `p_holm` is below 0.05."""
        return (self.low > 0.0 or self.high < 0.0) and self.p_holm < LEVEL


def compare(first: NDArray[np.float64], second: NDArray[np.float64], seed: int = 0) -> Comparison | None:
    """Compare two models' values per user, NaN for missing ones; None if no user has both."""
    found = compare_all([first, second], seed)
    return found[0][2] if found else None


def compare_all(
    values: list[NDArray[np.float64]], seed: int = 0, users: NDArray[np.int64] | None = None
) -> list[tuple[int, int, Comparison]]:
    """Compare every pair of models on the users with a value of all models.

    `values` has one array per model, (rows,), and `users` the user of each row. Values of a user in
    several folds are not independent, so their mean counts once.
    """
    if len({len(array) for array in values}) > 1:
        raise InputError("the models were measured on different numbers of users")
    table = np.array(values)
    known = np.isfinite(table).all(axis=0)
    table = table[:, known]
    if users is not None and len(np.unique(users[known])) < table.shape[1]:
        distinct, column = np.unique(users[known], return_inverse=True)
        sums = [np.bincount(column, weights=row, minlength=len(distinct)) for row in table]
        table = np.array(sums) / np.bincount(column, minlength=len(distinct))
    pairs = list(combinations(range(len(values)), 2))
    if table.shape[1] == 0 or not pairs:
        return []
    deltas = np.array([table[i] - table[j] for i, j in pairs])
    tested = table.shape[1]  # resampled, the same draws for every pair
    means = [times @ deltas.T / tested for times in resamples(tested, seed)]
    low, high = np.quantile(np.concatenate(means), QUANTILES, axis=0).tolist()
    from scipy import stats  # late: it takes most of a second

    out = []
    for row, ((i, j), delta) in enumerate(zip(pairs, deltas, strict=True)):
        p = float(stats.wilcoxon(delta, method="approx").pvalue) if delta.any() else 1.0
        out.append((i, j, Comparison(float(delta.mean()), low[row], high[row], p, tested, p)))
    return out


def holm(p_values: list[float]) -> list[float]:
    """Return p-values corrected by Holm's step-down procedure.

    Examples
    --------
    >>> holm([0.01, 0.5, 0.02])
    [0.03, 0.5, 0.04]
    """
    given = real_array("p_values", p_values, 1)
    if not ((given >= 0) & (given <= 1)).all():
        raise InputError("p_values must be numbers from 0 to 1")
    order = np.argsort(given, kind="stable")
    steps = np.minimum(1.0, given[order] * np.arange(len(given), 0, -1))
    out = np.empty(len(given))
    out[order] = np.maximum.accumulate(steps)
    return out.tolist()


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
    """
    low, high = np.full((2, values.shape[1]), np.nan)
    known = np.isfinite(values)
    columns = np.flatnonzero(known.any(axis=0))
    if len(columns) == 0:
        return low, high
    filled = np.where(known, values, 0.0)
    distinct, who = np.unique(users, return_inverse=True)
    parts = [np.flatnonzero(folds == fold) for fold in np.unique(folds)]
    means = []
    with np.errstate(invalid="ignore"):
        for times in resamples(len(distinct), seed):
            draws = [(times[:, who[rows]].astype(np.float64), rows) for rows in parts]
            of_folds = [(w @ filled[rows]) / (w @ known[rows]) for w, rows in draws]
            means.append(np.nansum(of_folds, axis=0) / np.isfinite(of_folds).sum(axis=0))
    drawn = np.concatenate(means)
    for column in columns:
        low[column], high[column] = np.nanquantile(drawn[:, column], QUANTILES)
    return low, high


def verdict(c: dict[str, Any]) -> str:
    """Return a comparison, an entry of `Report.comparisons`, as a sentence."""
    better = c.get("better", "more")
    less = better == "less"
    sign = 1 if (c["difference"] <= 0 if less else c["difference"] >= 0) else -1
    first, second = (c["first"], c["second"]) if sign > 0 else (c["second"], c["first"])
    sign = -sign if less else sign  # values are told as how much better the first is
    low, high = sorted((sign * c["low"], sign * c["high"]))
    by = _decimal(abs(c["difference"]))
    if not c["differs_clearly"]:
        amount = "less" if less else "more"
        said = f"{first} and {second} do not differ clearly: {first} has {by} {amount} over users"
    elif better:
        said = f"{first} is better than {second} by {by}{' less' if less else ''} over users"
    else:
        said = f"{first} has {by} more than {second} over users"
    return (
        f"{c['metric']}: {said}, 95% interval [{_decimal(low)}, {_decimal(high)}], "
        f"Wilcoxon p = {c['p_holm']:.2g} (Holm), users: {c['users']:,}"
    )


def _decimal(value: float) -> str:
    """Return four decimals, or two significant digits of what these would round to 0."""
    return f"{value:.4f}" if value == 0 or abs(value) >= 5e-5 else f"{value:.1e}"


def decision(comparisons: list[dict[str, Any]]) -> str:
    """Return a recommended model and the metrics on which it is better, without a full stop.

    The recommended model has the largest number of better minus worse comparisons over all metrics with
    a direction; ties are resolved by the number of better means. "" without comparisons.
    """
    leads: dict[str, tuple[int, int]] = {}  # better less worse comparisons, and means
    outcomes: dict[str, list[tuple[int, str, str]]] = {}  # of each model: whether clear, other, metric
    for c in comparisons:
        if not (better := c.get("better", "more")):
            continue
        sign = (-1 if better == "less" else 1) * int(np.sign(c["difference"]))
        for one, other, ahead in ((c["first"], c["second"], sign), (c["second"], c["first"], -sign)):
            clear = ahead if c["differs_clearly"] else 0
            outcomes.setdefault(one, []).append((clear, other, c["metric"]))
            wins, means = leads.get(one, (0, 0))
            leads[one] = (wins + clear, means + ahead)
    if not leads:
        return ""
    best = max(leads, key=leads.__getitem__)
    if not any(clear for of_model in outcomes.values() for clear, _, _ in of_model):
        return f"No model is better than another: {listing(list(leads))} do not differ clearly"
    said = []
    words = {1: "is better than", 0: "does not differ clearly from", -1: "is worse than"}
    for how in words:
        others: dict[str, list[str]] = {}  # by metric
        for clear, other, metric in outcomes[best]:
            if clear == how:
                others.setdefault(metric, []).append(other)
        for group in dict.fromkeys(map(tuple, others.values())):
            on = [metric for metric, names in others.items() if tuple(names) == group]
            said.append(f"{words[how]} {listing(group)} on {listing(on)}")
    # with a comma before "and" also between two: each part lists metrics with an "and" of its own
    return f"Use {best}: it {', '.join([*said[:-1], f'and {said[-1]}'] if said[1:] else said)}"
