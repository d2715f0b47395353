"""Metrics by name, with their definitions, and what metrics of lists are measured against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError
from recsys.registry import Registry
from recsys.utils.validation import as_array, clean_matrix

TIES = "expectation over all orders of tied items; lists by item index"

Function = TypeVar("Function", bound=Callable)
# From the expected gain of each user, k and each user's number of positives to the metric.
Normalize = Callable[[NDArray[np.float64], int, NDArray[np.int64]], NDArray[np.float64]]


@dataclass(frozen=True)
class ListContext:
    """The fold of ranked lists.

    Parameters
    ----------
    train : (users, items) CSR
        Training rows of all users.
    test : (users, items) CSR, optional
    users : (lists,) int64, optional
        Users of the lists, as rows of `train` and `test`; all users by default.
    """

    train: sp.csr_matrix
    test: sp.csr_matrix | None = None
    users: NDArray[np.int64] | Sequence[int] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "train", clean_matrix(self.train, name="train"))
        if self.test is not None:
            users, items = self.train.shape
            test = clean_matrix(self.test, n_items=items, n_rows=users, name="test")
            object.__setattr__(self, "test", test)

    @cached_property
    def popularity(self) -> NDArray[np.float64]:
        """Number of users of each item; (items,) float64."""
        return np.bincount(self.train.indices, minlength=self.train.shape[1]).astype(np.float64)

    @cached_property
    def unit_items(self) -> sp.csr_matrix:
        """Items as unit vectors over users, (items, users) float64 CSR; cold items are 0."""
        columns = sp.csr_matrix((self.train != 0).T, dtype=np.float64)
        return sp.csr_matrix(sp.diags(1.0 / np.sqrt(np.maximum(self.popularity, 1.0))) @ columns)

    def rows(self, matrix: sp.csr_matrix) -> sp.csr_matrix:
        """Return the rows of the users of the lists, as float64 ones."""
        chosen = matrix if self.users is None else matrix[np.asarray(self.users, dtype=np.int64)]
        return sp.csr_matrix(chosen != 0, dtype=np.float64)

    def ids(self, ranked: ArrayLike) -> NDArray[np.int64]:
        """Return checked ranked ids, (lists, k)."""
        ids = check_ranked(ranked, self.train.shape[1])
        if self.users is not None and len(ids) != len(self.users):
            raise InputError(f"lists: {len(ids)}, users: {len(self.users)}; pass one list per user")
        return ids

    def listed(self, ids: NDArray[np.int64]) -> sp.csr_matrix:
        """Return ids as a (lists, items) float64 CSR of ones."""
        rows, places = np.nonzero(ids >= 0)
        shape = (len(ids), self.train.shape[1])
        return sp.csr_matrix((np.ones(len(rows)), (rows, ids[rows, places])), shape)


def check_ranked(ranked: ArrayLike, items: int) -> NDArray[np.int64]:
    """Return ranked ids, (lists, k): each an item or −1, and an item once in a list."""
    array = as_array("ranked ids", ranked)
    if array.ndim != 2 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(f"ranked ids must be integers, (users, k), not {array.shape} {array.dtype}")
    array = array.astype(np.int64)
    if array.size and (array.min() < -1 or array.max() >= items):
        raise InputError(f"ranked ids must be within −1…{items - 1}")
    ordered = np.sort(array, axis=1)
    if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
        raise InputError("ranked ids repeat an item within a list")
    return array


@dataclass(frozen=True)
class Metric:
    """A metric by its command-line name.

    Attributes
    ----------
    name : str
    definition : str
        The definition in reports.
    per_user : bool
        Whether it has one value per user, so that models can be compared, or one per fold.
    cutoff : bool
        Whether it accepts @k.
    better : "more", "less" or ""
        Whether higher or lower values are better; "" for neither.
    """

    name: str
    definition: str
    per_user: bool = True
    cutoff: bool = True
    better: str = "more"


@dataclass(frozen=True)
class RankingMetric(Metric):
    """A metric of the whole ranking of each user, with expectations over ties."""

    gain: int = 0  # what is added up over the first k positions: a constant of `expectation`
    normalize: Normalize = lambda total, k, positives: total


@dataclass(frozen=True)
class ListMetric(Metric):
    """A metric of the first k ids of each user, ties by item index."""

    # From ids, (users, k) int64 with −1 for padding, and a `ListContext` to values, (users,) float64, or
    # to one value for all.
    measure: Callable[..., NDArray[np.float64] | float] = lambda ids, context: 0.0


METRICS: Registry[Metric] = Registry("metric", package="recsys.evaluation.metrics")


def list_metric(
    name: str, definition: str, *, per_user: bool = True, better: str = "more"
) -> Callable[[Function], Function]:
    """Register the decorated function as a `ListMetric`."""

    def register(function: Function) -> Function:
        METRICS.add(name)(
            ListMetric(name, definition, per_user=per_user, better=better, measure=function)
        )
        return function

    return register


def parse_metric(text: str) -> tuple[Metric, int, str]:
    """Return metric, k and full name of `NAME[@k]`, k = 10 by default."""
    name, at, k = text.strip().partition("@")
    metric = METRICS.get(name)
    if not metric.cutoff:
        if at:
            raise InputError(f"metric {text!r}: {name} does not accept @k")
        return metric, 0, name
    if at and not (k.isascii() and k.isdigit() and int(k) >= 1):
        raise InputError(
            f"metric {text!r}: the number after @ must be an integer of at least 1, as in {name}@10"
        )
    cut = int(k) if at else 10
    return metric, cut, f"{name}@{cut}"
