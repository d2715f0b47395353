"""Metrics: entries of a registry, with their definitions and functions."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError
from recsys.evaluation.metrics.first_items import FirstItems
from recsys.registry import Registry
from recsys.utils.validation import clean_matrix

TIES = "expectation over all orders of tied items"

Function = TypeVar("Function", bound=Callable)
# From the expected gain of each user, k and each user's number of positives to the metric.
Normalise = Callable[[NDArray[np.float64], int, NDArray[np.int64]], NDArray[np.float64]]


@dataclass(frozen=True)
class ListContext:
    """The fold that ranked lists were made for, as metrics of lists need it.

    Parameters
    ----------
    train : (users, items) CSR
        Of all users, as the model has seen it.
    test : (users, items) CSR, optional
    users : (lists,) int64, optional
        Whose lists they are, as rows of `train` and `test`; all users in their order when not given.
    item_features : DataFrame, optional
        One row an item.

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
    users: NDArray[np.int64] | Sequence[int] | None = None
    item_features: pd.DataFrame | None = None
    whole: ListContext | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the matrices."""
        object.__setattr__(self, "train", clean_matrix(self.train, name="train"))
        if self.test is not None:
            test = clean_matrix(self.test, n_items=self.n_items, n_rows=self.n_users, name="test")
            object.__setattr__(self, "test", test)

    @property
    def n_users(self) -> int:
        """Number of users in training."""
        return self.train.shape[0]

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.train.shape[1]

    @cached_property
    def popularity(self) -> NDArray[np.float64]:
        """Number of users of each item; (items,) float64."""
        if self.whole is not None:
            return self.whole.popularity
        return np.bincount(self.train.indices, minlength=self.n_items).astype(np.float64)

    @cached_property
    def unit_items(self) -> sp.csr_matrix:
        """Items as unit vectors over users, (items, users) float64 CSR; cold items are 0."""
        if self.whole is not None:
            return self.whole.unit_items
        columns = sp.csr_matrix((self.train != 0).T, dtype=np.float64)
        return sp.csr_matrix(sp.diags(1.0 / np.sqrt(np.maximum(self.popularity, 1.0))) @ columns)

    @cached_property
    def profiles(self) -> sp.csr_matrix:
        """Training items of the users of the lists, (lists, items) float64 CSR of ones."""
        return sp.csr_matrix(self.train[self._rows] != 0, dtype=np.float64)

    @cached_property
    def tested(self) -> sp.csr_matrix:
        """Test items of the users of the lists, (lists, items) float64 CSR of ones.

        Raises
        ------
        InputError
            If that was not given.
        """
        if self.test is None:
            raise InputError("this metric needs test items: give ListContext a test matrix")
        return sp.csr_matrix(self.test[self._rows] != 0, dtype=np.float64)

    def first(self, given: ArrayLike | FirstItems) -> FirstItems:
        """Return ranked ids, or the first items by scores, as the first items of this context's lists.

        Raises
        ------
        InputError
            If the number of lists differs from that of the users, or an id is no item.
        """
        found = given if isinstance(given, FirstItems) else FirstItems.of_ids(given, self.n_items)
        if found.sure.shape != (len(self._rows), self.n_items) and self.users is not None:
            raise InputError(f"{found.sure.shape[0]} lists are given for {len(self._rows)} users")
        return found

    def part(self, rows: slice) -> ListContext:
        """Return the context of some of the lists; what is known of items is found once for all."""
        out = copy.copy(self)
        vars(out).pop("profiles", None)
        vars(out).pop("tested", None)
        vars(out).update(users=self._rows[rows], whole=self)
        return out

    @property
    def _rows(self) -> NDArray[np.int64]:
        return np.arange(self.n_users) if self.users is None else np.asarray(self.users, dtype=np.int64)


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
    better : "more", "less" or ""
        Whether higher or lower values are better; "" for neither.
    feature : str, optional
        The items' column that it is about, of a metric that takes one: NAME:COLUMN@k.
    takes_feature : bool

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
    better: str = "more"
    feature: str | None = None
    takes_feature: bool = False


@dataclass(frozen=True)
class RankingMetric(Metric):
    """A metric of the whole ranking of each user, ties by expectation."""

    gain: int = 0  # what is added up over the first k positions: a constant of `expectation`
    normalise: Normalise = lambda total, k, positives: total


@dataclass(frozen=True)
class ListMetric(Metric):
    """A metric of the first k ids of each user, ties by item index."""

    # From ids, (users, k) int64 with −1 for padding, and a `ListContext` to values, (users,) float64, or
    # to one value for all.
    measure: Callable[..., NDArray[np.float64] | float] = lambda ids, context: 0.0


@dataclass(frozen=True)
class SetMetric(Metric):
    """A metric of which items are among the first k, ties by expectation."""

    measure: Callable[[FirstItems, ListContext], NDArray[np.float64]] = lambda first, context: np.zeros(
        len(first.drawn)
    )


METRICS: Registry[Metric] = Registry("metric", package="recsys.evaluation.metrics")


def ranking_metric(
    name: str, definition: str, gain: int, normalise: Normalise, *, cutoff: bool = True
) -> Callable[[Function], Function]:
    """Register a `RankingMetric` beside the function that measures it alone; arguments as there."""

    def register(function: Function) -> Function:
        METRICS.add(name)(RankingMetric(name, definition, cutoff=cutoff, gain=gain, normalise=normalise))
        return function

    return register


def list_metric(
    name: str,
    definition: str,
    *,
    per_user: bool = True,
    better: str = "more",
    takes_feature: bool = False,
) -> Callable[[Function], Function]:
    """Register the decorated function as a `ListMetric`; arguments as there.

    One that takes a feature is called with the items' column as `feature`, or with None.
    """

    def register(function: Function) -> Function:
        METRICS.add(name)(
            ListMetric(
                name, definition, per_user=per_user, better=better, takes_feature=takes_feature,
                measure=function,
            )
        )  # fmt: skip
        return function

    return register


def set_metric(name: str, definition: str, *, better: str = "more") -> Callable[[Function], Function]:
    """Register the decorated function as a `SetMetric`; arguments as there."""

    def register(function: Function) -> Function:
        METRICS.add(name)(SetMetric(name, definition, better=better, measure=function))
        return function

    return register


def parse_metric(text: str) -> tuple[Metric, int, str]:
    """Return metric, k and full name of `NAME[:FEATURE][@k]`, k = 10 by default.

    Raises
    ------
    InputError
        If the name is unknown, it takes no feature, or k is not an integer of at least 1.
    """
    name, at, k = text.strip().rpartition("@") if "@" in text else (text.strip(), "", "")
    kind, colon, feature = name.partition(":")
    metric = METRICS.get(kind)
    if colon:
        if not metric.takes_feature or not feature:
            told = "name a column after the colon" if metric.takes_feature else "it takes no feature"
            raise InputError(f"metric {text!r}: {kind}: {told}")
        metric = replace(metric, feature=feature)
    if not metric.cutoff:
        if at:
            raise InputError(f"metric {text!r}: {name} takes no @k")
        return metric, 0, name
    if at and not (k.isascii() and k.isdigit() and int(k) >= 1):
        raise InputError(f"metric {text!r}: after @ an integer of at least 1 is needed, as in {name}@10")
    cut = int(k) if at else 10
    return metric, cut, f"{name}@{cut}"
