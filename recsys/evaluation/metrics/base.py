"""What a metric is: an entry of the registry, with its definition and how it is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError
from recsys.registry import Registry
from recsys.utils.validation import clean_matrix

TIES = "expectation over all orders of tied items"

Function = TypeVar("Function", bound=Callable)
# From the expected gain of each user, k and each user's number of positives to the metric.
Normalise = Callable[[NDArray[np.float64], int, NDArray[np.int64]], NDArray[np.float64]]


@dataclass(frozen=True)
class ListContext:
    """What a metric of ranked lists may ask about: the fold that they were made for.

    Parameters
    ----------
    train : (users, items) CSR
        Of all users, as the model has seen it.
    test : (users, items) CSR, optional
    users : (lists,) int64, optional
        Whose lists they are, as rows of `train` and `test`; all users in their order when not given.

    Raises
    ------
    InputError
        If `train` is no matrix.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from recsys.evaluation.metrics import ListContext, coverage
    >>> train = sp.csr_matrix([[1, 0, 0], [1, 1, 0]])
    >>> coverage([[1, 2], [2, -1]], ListContext(train))
    0.6666666666666666
    """

    train: sp.csr_matrix
    test: sp.csr_matrix | None = None
    users: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        """Check the matrix."""
        object.__setattr__(self, "train", clean_matrix(self.train, name="train"))

    @property
    def n_users(self) -> int:
        """How many users the model has seen."""
        return self.train.shape[0]

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return self.train.shape[1]

    @cached_property
    def popularity(self) -> NDArray[np.float32]:
        """How many users have each item; (items,) float32."""
        return np.bincount(self.train.indices, minlength=self.n_items).astype(np.float32)


@dataclass(frozen=True)
class Metric:
    """A metric by its command-line name.

    Attributes
    ----------
    name : str
    definition : str
        The sentence that goes into reports.
    per_user : bool
        Whether it has one value a user, which models can be compared by, or one a fold.
    cutoff : bool
        Whether it takes @k.

    Examples
    --------
    >>> from recsys.evaluation.metrics import METRICS
    >>> METRICS.get("coverage").per_user, METRICS.get("auc").cutoff
    (False, False)
    """

    name: str
    definition: str
    per_user: bool = True
    cutoff: bool = True


@dataclass(frozen=True)
class RankingMetric(Metric):
    """A metric of the whole ranking of each user, ties by expectation.

    Attributes
    ----------
    gain : int
        What is added up over the first k places: a constant of `expectation`.
    normalise : callable
        Makes the metric of it, see `Normalise`.
    """

    gain: int = 0
    normalise: Normalise = lambda total, k, positives: total


@dataclass(frozen=True)
class ListMetric(Metric):
    """A metric of the first k ids of each user, ties by item index.

    Attributes
    ----------
    measure : callable
        From ids, (users, k) int64 with −1 for padding, and a `ListContext` to values, (users,) float64,
        or to one value for all.
    """

    measure: Callable[[ArrayLike, ListContext], NDArray[np.float64] | float] = lambda ids, context: 0.0


METRICS: Registry[Metric] = Registry("metric", package="recsys.evaluation.metrics")


def ranking_metric(
    name: str, definition: str, gain: int, normalise: Normalise, *, cutoff: bool = True
) -> Callable[[Function], Function]:
    """Register a `RankingMetric` beside the function that measures it alone; arguments as there."""

    def register(function: Function) -> Function:
        METRICS.add(name)(RankingMetric(name, definition, cutoff=cutoff, gain=gain, normalise=normalise))
        return function

    return register


def list_metric(name: str, definition: str, *, per_user: bool = True) -> Callable[[Function], Function]:
    """Register the decorated function as a `ListMetric`; arguments as there."""

    def register(function: Function) -> Function:
        METRICS.add(name)(ListMetric(name, definition, per_user=per_user, measure=function))
        return function

    return register


def parse_metric(text: str) -> tuple[Metric, int, str]:
    """Return metric, k and full name of `NAME[@k]`, k = 10 by default.

    Raises
    ------
    InputError
        If the name is unknown or k no whole number of at least 1.
    """
    name, at, k = text.strip().partition("@")
    metric = METRICS.get(name)
    if not metric.cutoff:
        if at:
            raise InputError(f"metric {text!r}: {name} takes no @k")
        return metric, 0, name
    if at and not (k.isascii() and k.isdigit() and int(k) >= 1):
        raise InputError(
            f"metric {text!r}: after @ a whole number of at least 1 is needed, as in {name}@10"
        )
    cut = int(k) if at else 10
    return metric, cut, f"{name}@{cut}"
