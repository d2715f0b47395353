"""For whom one model is better than another: their differences, user by user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.evaluation.significance import user_means

if TYPE_CHECKING:
    from recsys.evaluation.report import Report

ROUNDING = 1e-12  # within which two means over folds are one


@dataclass(frozen=True)
class UserDifferences:
    """The differences of two models on one metric.

    Attributes
    ----------
    metric, first, second : str
    users : (users,) int64
        Who has a value of both, as numbers of `Report.evaluated`.
    first_values, second_values : (users,) float64
        Of each user, the mean over the folds in which both have a value.
    better : "more", "less" or ""

    Examples
    --------
    >>> import numpy as np
    >>> values = np.array([0.5, 0.25]), np.array([0.25, 0.25])
    >>> UserDifferences("auc", "a", "b", np.arange(2), *values).counts()
    (1, 1, 0)
    """

    metric: str
    first: str
    second: str
    users: NDArray[np.int64]
    first_values: NDArray[np.float64]
    second_values: NDArray[np.float64]
    better: str = "more"

    @property
    def values(self) -> NDArray[np.float64]:
        """First less second, (users,) float64."""
        return self.first_values - self.second_values

    def counts(self) -> tuple[int, int, int]:
        """Return for how many users the first is better, the two are equal, the second is better.

        For a metric without a direction, more counts as better.
        """
        sign = -1.0 if self.better == "less" else 1.0
        gain = sign * self.values
        ahead, behind = int((gain > ROUNDING).sum()), int((gain < -ROUNDING).sum())
        return ahead, len(self.values) - ahead - behind, behind


def user_differences(report: Report, metric: str, first: str, second: str) -> UserDifferences:
    """Return the differences of two models of a report, user by user.

    Parameters
    ----------
    report : Report
    metric : str
        As the report names it.
    first, second : str
        Models of the report.

    Raises
    ------
    InputError
        If there is no such model, or the metric was not measured or has no value for each user.

    Examples
    --------
    >>> from recsys import evaluate, load_dataset
    >>> report = evaluate(load_dataset("sample"), ["ease", "popularity"])
    >>> found = user_differences(report, "auc", "ease", "popularity")
    >>> sum(found.counts()) == len(found.users)
    True
    """
    if metric not in report.definitions or metric in report.per_fold or report.evaluated is None:
        raise InputError(f"{metric} has no value for each user in this report")
    table = np.array([report.result(model).per_user[metric] for model in (first, second)])
    both = np.isfinite(table).all(axis=0)
    users, means = user_means(table[:, both], report.evaluated.users[both])
    better = report.better.get(metric, "more")
    return UserDifferences(metric, first, second, users.astype(np.int64), means[0], means[1], better)
