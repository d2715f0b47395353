"""What rankers are fitted on and asked for: data, rows, and the settings that `auto` tries."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.rankers.recency import aligned
from recsys.utils.sparse import entries_of
from recsys.utils.validation import clean_matrix


@dataclass(frozen=True)
class Candidate:
    """Parameters that `auto` tries a ranker with, and for which data."""

    params: str = ""  # as after the colon of a specification: "kernel=mc,degree=2"
    least_items: int = 0
    most_items: float = np.inf
    most_likes: float = np.inf
    timed: bool = False  # for data with times only
    described: bool = False  # for data with item features only, which it is fitted with
    unseen: bool = False  # for data with items that have no users only

    def suits(
        self,
        items: int,
        likes: int,
        timed: bool = False,
        described: bool = False,
        unseen: bool = False,
    ) -> bool:
        """Return whether it is tried on data of this size, with such information or without."""
        return (
            self.least_items <= items <= self.most_items
            and likes <= self.most_likes
            and timed >= self.timed
            and described >= self.described
            and unseen >= self.unseen
        )


@dataclass(frozen=True)
class Data:
    """What a ranker is fitted on."""

    liked: sp.csr_matrix  # (users, items) float32, canonical, of at least one liked item
    times: sp.csr_matrix | None = None  # of the same pattern; None where unknown or all equal
    item_features: sp.csr_matrix | None = None  # float64
    user_features: sp.csr_matrix | None = None
    show_progress: bool = False
    callback: Callable[..., Any] | None = None


@dataclass(frozen=True)
class Rows:
    """Rows to rank items for."""

    matrix: sp.csr_matrix  # (rows, items) float32, canonical
    times: NDArray[np.float64] | None = None  # aligned with matrix.indices; None: all equally recent

    @property
    def spans(self) -> list[slice]:
        """Where the entries of each row are."""
        bounds = self.matrix.indptr.tolist()
        return [slice(*pair) for pair in itertools.pairwise(bounds)]

    def part(self, start: int, stop: int) -> Rows:
        """Return some of the rows."""
        matrix, indptr = self.matrix[start:stop], self.matrix.indptr
        times = None if self.times is None else self.times[indptr[start] :][: matrix.nnz]
        return Rows(matrix, times)


def checked_data(user_items: Any, times: Any, item_features: Any, user_features: Any) -> Data:
    """Return what `Ranker.fit` is given as data."""
    liked = clean_matrix(user_items)
    users, items = liked.shape
    if users == 0 or items == 0 or liked.nnz == 0:
        raise InputError(
            f"user_items of shape ({users}, {items}) has no liked items (no values above 0)"
        )
    when = checked_times(times, liked.shape)
    if when is not None:
        values = aligned(liked, when)
        when = None if (values == values[0]).all() else entries_of(liked, values)
    of_items = _features("item_features", item_features, items)
    return Data(liked, when, of_items, _features("user_features", user_features, users))


def _features(name: str, given: Any, rows: int) -> sp.csr_matrix | None:
    if given is None:
        return None
    F = _numbers(name, given)
    if F.shape[0] != rows:
        raise InputError(f"{name} have {F.shape[0]} rows for {rows} {name[:4]}s")
    F.sum_duplicates()
    return F


def _numbers(name: str, given: Any, unknown: str = "") -> sp.csr_matrix:
    """Return a float64 CSR copy of a matrix of finite numbers."""
    try:
        X = sp.csr_matrix(given, dtype=np.float64, copy=True)  # the caller's stays as it is
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be a matrix of numbers") from error
    if not np.isfinite(X.data).all():
        raise InputError(f"{name} contain NaN or infinity{unknown}")
    return X


def checked_times(given: Any, shape: tuple[int, int]) -> sp.csr_matrix | None:
    """Return times as float64 CSR of the interactions' shape, indices sorted; None stays None."""
    if given is None:
        return None
    times = _numbers("times", given, ": 0 is unknown")
    if times.shape != shape:
        raise InputError(f"times are of shape {times.shape} for interactions of shape {shape}")
    if (times.data < 0).any():
        raise InputError("times contain a negative value: use times from a start, such as Unix seconds")
    entries = times.nnz
    times.sum_duplicates()
    if times.nnz < entries:
        raise InputError("times repeat an item in a row: give each item one time")
    return times
