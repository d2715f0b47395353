"""A fitted ranker together with what it was fitted on: ids, titles and histories, in one file.

`Ranker.save` keeps numbers only, as implicit does. The command line, the app and the
service speak in ids, so their files hold both.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.data import Interactions
from recsys.data.columns import Columns
from recsys.data.events import Changes, with_events
from recsys.data.interactions import titles_of, unknown_ids
from recsys.data.side_information import SideInformation, described, start_of
from recsys.errors import CapabilityError, InputError, ModelFileError
from recsys.rankers.base import Ranker
from recsys.rankers.catalogue_file import (
    packed,
    plain_columns,
    plain_features,
    plain_ids,
    read_columns,
    read_features,
    read_texts,
    unpacked,
    whole,
)
from recsys.rankers.files import read_ranker
from recsys.utils import model_file
from recsys.utils.dates import FIRST, LAST, date_text, dated, moment, number_of
from recsys.utils.recency import aligned
from recsys.utils.sparse import enlarged, entries_of, masked, row_of
from recsys.utils.validation import check_real

LEAST_WEIGHT, MOST_WEIGHT = 1e-9, 1e9  # accepted weights of an item in a history
TEXTS = ("user_ids", "item_ids", "titles")
FEATURES = ("item_features", "user_features")


@dataclass(frozen=True)
class Profile:
    """The profile that a list is made for: a user of the fit, or the items of a new user.

    Examples
    --------
    >>> somebody = Profile.in_order([4, 1], 6)
    >>> somebody.userid, somebody.items.tolist(), somebody.fold_in
    (0, [1, 4], True)
    >>> somebody.times.toarray()
    array([[0., 2., 0., 0., 1., 0.]])
    """

    user: int | None  # the row at fit; None for a new user
    row: sp.csr_matrix  # the liked items, (1, items)
    unknown: tuple[str, ...] = ()  # ids of items that the catalogue does not have
    when: NDArray[np.float64] | None = None  # times, aligned with row.indices; 0 is unknown, and oldest
    as_of: float | None = None  # if given, the row has only interactions before this time

    @classmethod
    def in_order(cls, items: Sequence[int], n_items: int, unknown: tuple[str, ...] = ()) -> Self:
        """Return the profile of a new user who liked these items, the oldest interaction first."""
        return cls.at_times(items, np.arange(1.0, len(items) + 1), n_items, unknown)

    @classmethod
    def at_times(
        cls, items: Sequence[int], times: ArrayLike, n_items: int, unknown: tuple[str, ...] = (),
        weights: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Return the profile of a new user who liked these items at these times, so much of each.

        An item that occurs twice is refused.
        """
        row = row_of(items, n_items)
        if row.nnz < len(items):
            raise InputError("an item is in the history twice: name each item once")
        ascending = np.argsort(np.asarray(items, dtype=np.int64))
        if weights is not None:
            row.data[:] = np.asarray(weights)[ascending]
        return cls(None, row, unknown, np.asarray(times, dtype=np.float64)[ascending])

    @property
    def userid(self) -> int:
        """The user index for rankers; a new user's is only a label."""
        return 0 if self.user is None else self.user

    @property
    def fold_in(self) -> bool:
        """Whether the ranker has to fold the row in, as it is not the row of the fit."""
        return self.user is None or self.as_of is not None

    @cached_property
    def times(self) -> sp.csr_matrix | None:
        """Times of the interactions, (1, items) float64 of the row's pattern; None if none are known."""
        return None if self.when is None else entries_of(self.row, self.when)

    @property
    def new_times(self) -> sp.csr_matrix | None:
        """The times to pass to a ranker; None where it has them from its fit."""
        return self.times if self.fold_in else None

    def before(self, as_of: float) -> Profile:
        """Return the profile before a time; unknown times are the oldest, and some must be known."""
        if self.times is None:
            raise InputError(f"as of {as_of:g}: nothing is known of when these items were liked")
        row, times = _earlier(self.row, self.times, as_of)
        return Profile(self.user, row, self.unknown, times.data, as_of)

    @property
    def items(self) -> NDArray[np.int32]:
        """The liked items, ascending."""
        return self.row.indices


@dataclass(frozen=True)
class ModelPackage:
    """A ranker and its catalogue.

    Attributes
    ----------
    ranker : Ranker
    user_ids, item_ids, titles : (users,), (items,), (items,) object
        Ids are text or integers; requests match them by their text.
    user_items : (users, items) float32 CSR
        The interactions of the fit.
    times : (users, items) float64 CSR or None
        Times of the interactions, above 0, or 0 if unknown, with the pattern of `user_items`; None where
        the data have no times.
    item_features, user_features : DataFrame or None
        One row per id. Features of users are kept only for rankers that use them.
    columns : Columns or None
        How the table of the data was read.
    excluded : Interactions or None
        The pairs that a threshold left out, which an update may need.
    start : float
        What was subtracted from the times of the data, so that all known ones are above 0: 0, or, where
        some were not, the oldest less 1. Requests use the times of the data.

    Examples
    --------
    >>> from recsys import load_dataset, make_ranker
    >>> package = fit_package(make_ranker("ease"), load_dataset("sample"), show_progress=False)
    >>> package.user_items.shape == (len(package.user_ids), len(package.item_ids))
    True
    >>> whole, earlier = package.profile("u0001"), package.profile("u0001", as_of="2004-10-08")
    >>> package.dated, whole.row.nnz, earlier.row.nnz
    (True, 32, 2)
    """

    ranker: Ranker
    user_ids: NDArray[np.object_]
    item_ids: NDArray[np.object_]
    titles: NDArray[np.object_]
    user_items: sp.csr_matrix
    times: sp.csr_matrix | None = None
    item_features: pd.DataFrame | None = None
    user_features: pd.DataFrame | None = None
    columns: Columns | None = None
    start: float = 0.0
    excluded: Interactions | None = None

    def save(self, path: model_file.Target) -> None:
        """Write everything to exactly `path`, atomically, or to a file open for writing bytes."""
        arrays: dict[str, Any] = {
            "catalogue.user_ids": packed(plain_ids(self.user_ids)),
            "catalogue.item_ids": packed(plain_ids(self.item_ids)),
            "catalogue.titles": packed([str(title) for title in self.titles]),
        }
        for key in FEATURES:
            if getattr(self, key) is not None:
                arrays[f"catalogue.{key}"] = packed(plain_features(getattr(self, key)))
        if self.columns is not None:
            arrays["catalogue.columns"] = packed(plain_columns(self.columns))
        for part in ("data", "indices", "indptr"):
            arrays[f"history.{part}"] = getattr(self.user_items, part)
        if self.times is not None:
            arrays["history.times"] = self.times.data
            if self.start:
                arrays["history.start"] = np.array([self.start])
        if self.excluded is not None:
            for key in ("user_ids", "item_ids"):
                arrays[f"excluded.{key}"] = packed(plain_ids(getattr(self.excluded, key)))
            for key in ("users", "items", "time", "weight"):
                if getattr(self.excluded, key) is not None:
                    arrays[f"excluded.{key}"] = getattr(self.excluded, key)
        self.ranker.save(path, arrays)

    @cached_property
    def user_index(self) -> dict[str, int]:
        """Rows of the users by id."""
        return {str(name): k for k, name in enumerate(self.user_ids)}

    @cached_property
    def item_index(self) -> dict[str, int]:
        """Columns of the items by id."""
        return {str(name): k for k, name in enumerate(self.item_ids)}

    @cached_property
    def _whole(self) -> frozenset[str]:
        """The kinds of ids, of "user" and "item", that are integers."""
        ids = {"user": self.user_ids, "item": self.item_ids}
        return frozenset(what for what, known in ids.items() if whole(known))

    @cached_property
    def dated(self) -> bool:
        """Whether the times can be seconds since 1970, and not positions in an order."""
        return self.times is not None and dated(self.times.data)

    @cached_property
    def _span(self) -> tuple[float, float]:
        """The earliest and the latest known time; 0 where all are unknown."""
        known = np.zeros(1) if self.times is None else self.times.data[self.times.data > 0]
        return (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)

    @cached_property
    def item_users(self) -> sp.csc_matrix:
        """Who liked each item: `user_items` by column."""
        return self.user_items.tocsc()

    @cached_property
    def feature_names(self) -> dict[str, tuple[str, ...]]:
        """Names of the features that the ranker was fitted with: `item_features` and `user_features`.

        Those that it was fitted without have none.
        """
        found: dict[str, tuple[str, ...]] = {}
        for key in FEATURES:
            given = getattr(self.ranker, f"{key}_", None)
            if given is None:
                continue
            table = described(getattr(self, key))
            if table is not None and len(table.names) == given.shape[1]:
                found[key] = tuple(table.names)
            else:  # the table is not kept, or another version encoded it in another way
                found[key] = tuple(f"{key[:4]} feature {k}" for k in range(given.shape[1]))
        return found

    def rows(self, users: Sequence[str | int]) -> tuple[NDArray[np.int64], sp.csr_matrix]:
        """Return indices and histories of users by id; an unknown id is named."""
        found = _indices("user", self.user_ids, self.user_index, users)
        return found, self.user_items[found]

    def items(self, ids: Sequence[str | int]) -> NDArray[np.int64]:
        """Return the indices of items by id; an unknown id is named."""
        return _indices("item", self.item_ids, self.item_index, ids)

    def known_items(self, ids: Sequence[str]) -> tuple[list[int], list[str]]:
        """Return the indices of those items that there are, and the ids that are unknown."""
        index = self.item_index
        return [index[i] for i in ids if i in index], [i for i in ids if i not in index]

    @cached_property
    def interactions(self) -> Interactions:
        """The data of the fit: interactions with their times, and features of users and items."""
        rows = self.user_items.tocoo()
        time = None
        if self.times is not None:
            time = np.where(self.times.data > 0, self.times.data + self.start, -np.inf)
        features = self.item_features
        if features is None and (self.titles != texts_of(self.item_ids)).any():
            features = pd.DataFrame({"title": self.titles}, index=pd.Index(self.item_ids, dtype=object))
        weight = rows.data.astype(np.float64) if (rows.data != 1).any() else None
        return Interactions(
            rows.row.astype(np.int32), rows.col.astype(np.int32), self.user_ids, self.item_ids,
            time=time, user_features=self.user_features, item_features=features, columns=self.columns,
            weight=weight, excluded=self.excluded,
        )  # fmt: skip

    def histories(
        self, users: NDArray[np.int64] | None = None, as_of: float | str | None = None
    ) -> tuple[sp.csr_matrix, sp.csr_matrix | None]:
        """Return users' interactions and their times, (users, items) each; times are None if unknown.

        Parameters
        ----------
        users : (n,) int, optional
            Their rows; all when not given.
        as_of : number or str, optional
            As in `profile`.

        Raises
        ------
        InputError
            As `profile`, of `as_of`.
        """
        before = None if as_of is None else self._moment(as_of)
        rows, times = self.user_items, self.times
        if users is not None:
            rows, times = rows[users], None if times is None else times[users]
        if before is None or times is None:
            return rows, times
        return _earlier(rows, times, before)

    def profile(
        self,
        user: str | int | None = None,
        history: Sequence[str | int] | None = None,
        *,
        times: Sequence[float | str] | None = None,
        weights: Sequence[float] | None = None,
        as_of: float | str | None = None,
        skip_unknown: bool = False,
    ) -> Profile:
        """Return the profile of a user by id, or of a new user who liked the items of these ids.

        Parameters
        ----------
        user : str, optional
        history : sequence of str, optional
            In order, the oldest interaction first. Exactly one of the two; a history may be empty.
        times : sequence of number or str, optional
            When each interaction of the history happened, instead of its order: numbers in the data's
            unit, or ISO dates.
        weights : sequence of number from 1e-9 to 1e9, optional
            How much of each item of the history, for a ranker that takes weights; else 1 of each.
        as_of : number or str, optional
            Leave out what was liked then or later: a number in the data's unit or an ISO date. Of a
            user, or of a history with times.
        skip_unknown : bool
            Keep unknown ids of a history in the profile's `unknown` instead of refusing them.

        Raises
        ------
        InputError
            If not exactly one is given; an id is unknown, which is named, or in the history twice; a
            time is none; there are no times to look `as_of` up in, or it is not in their unit; a weight
            is out of range, or the ranker takes none.
        CapabilityError
            If the ranker cannot fold in: neither a history, nor what a user had liked `as_of` a time.
        """
        if (user is None) == (history is None):
            raise InputError("name whom by exactly one of user and history")
        if user is not None:
            if times is not None or weights is not None:
                raise InputError("times and weights are given with a history; those of a user are known")
            return self._known(user, as_of)
        return self._new([str(name) for name in history or ()], times, weights, as_of, skip_unknown)

    def _known(self, user: str | int, as_of: float | str | None) -> Profile:
        index = self.user_index.get(str(user), -1)
        if index < 0:
            self.rows([user])  # refuses it by name
        matrix = self.user_items
        # Without scipy's indexing, which takes as long as a recommendation.
        own = slice(matrix.indptr[index], matrix.indptr[index + 1])
        row = row_of(matrix.indices[own], matrix.shape[1])
        row.data[:] = matrix.data[own]  # weights, for a ranker that takes them
        when = None if self.times is None else self.times.data[own]
        found = Profile(index, row, when=when)
        return found if as_of is None else found.before(self._moment(as_of))

    def _new(
        self,
        history: Sequence[str],
        times: Sequence[float | str] | None,
        weights: Sequence[float] | None,
        as_of: float | str | None,
        skip_unknown: bool,
    ) -> Profile:
        if "fold-in" not in self.ranker.capabilities:
            raise CapabilityError(
                f"{self.ranker.name} ranks the users that it was fitted on, and no history; fit a "
                "ranker that folds in"
            )
        if len(set(history)) < len(history):
            twice = next(name for k, name in enumerate(history) if name in history[:k])
            raise InputError(f"item {twice[:60]!r} is in the history twice: name each item once")
        if times is None:
            if as_of is not None:
                raise InputError(
                    f"as of {str(as_of)[:40]!r}: a history without times cannot be cut; give each of "
                    "its items a time, or name a user"
                )
            when = np.arange(1.0, len(history) + 1)
        else:
            if len(times) != len(history):
                raise InputError(f"{len(times)} times are given for a history of {len(history)} items")
            pairs = zip(history, times, strict=True)
            when = np.array([moment(f"time of item {name[:60]!r},", given) for name, given in pairs])
        much = None if weights is None else self._weights(history, weights)
        known = np.array([name in self.item_index for name in history], dtype=bool)
        unknown = tuple(name for name in history if name not in self.item_index)
        if unknown and not skip_unknown:
            self.items(unknown)  # refuses them by name
        items = [self.item_index[name] for name in history if name in self.item_index]
        found = Profile.at_times(
            items, when[known], self.user_items.shape[1], unknown, None if much is None else much[known]
        )
        return found if as_of is None else found.before(moment("as of", as_of))

    def _weights(self, history: Sequence[str], weights: Sequence[float]) -> NDArray[np.float64]:
        if not takes_weights(self.ranker):
            raise InputError(
                f"{self.ranker.name} takes no weights: leave them out, or fit a ranker that learns from "
                "them, such as als"
            )
        if np.shape(weights) != (len(history),):
            raise InputError(
                f"weights must be a list of {len(history)} numbers, one for each item of the history"
            )
        for name, weight in zip(history, weights, strict=True):
            check_real(f"weight of item {name[:60]!r}", weight, LEAST_WEIGHT, MOST_WEIGHT)
        return np.asarray(weights, dtype=np.float64)

    def _moment(self, given: float | str) -> float:
        """Return a point in time in the unit of the times, where it can be one."""
        shown = f"as of {str(given)[:40]!r}"
        if self.times is None:
            raise InputError(f"{shown}: these data have no times; fit on interactions that have some")
        if "fold-in" not in self.ranker.capabilities:
            raise CapabilityError(
                f"{shown}: {self.ranker.name} ranks users by all that it was fitted on; fit a ranker "
                "that folds in"
            )
        return self._in_unit(shown, moment("as of", given, early=self.start < 0), given)

    def time_of_event(self, given: float | str | None) -> float | None:
        """Return when an event happened in the unit of the times; None, for now, where it does not say.

        Raises
        ------
        InputError
            If it cannot be in their unit, or they are no dates and it does not say.
        """
        if given is None:
            if self.times is not None and not self.dated:
                low, high = self._span
                raise InputError(
                    "an event has no time, and the times of these data are no dates, but numbers from "
                    f"{low:g} to {high:g}; give each event one"
                )
            return None
        found = moment("time", given, early=self.start < 0)
        return found if self.times is None else self._in_unit(f"time {str(given)[:40]!r}", found, given)

    def _in_unit(self, shown: str, found: float, given: float | str) -> float:
        """Return a point in time, refused where it cannot be in the unit of the times."""
        if self.start:  # counted from the oldest: dates and numbers are alike here
            return max(found - self.start, 0.0)
        low, high = self._span
        if self.dated and not FIRST <= found < LAST:
            raise InputError(
                f"{shown}: the times of these data are dates from {date_text(low)[:10]} to "
                f"{date_text(high)[:10]}; give a date"
            )
        if not self.dated and isinstance(given, str) and np.isnan(number_of(given)):
            raise InputError(
                f"{shown}: the times of these data are no dates, but numbers from {low:g} to {high:g}; "
                "give a number"
            )
        return found

    def check_ids(self, users: Iterable[str], items: Iterable[str]) -> None:
        """Refuse ids that are not of the kind of those there are.

        Raises
        ------
        InputError
            If ids are integers, and one of these is none.
        """
        for what, given in (("user", users), ("item", items)):
            if what in self._whole:
                for name in given:
                    _whole_id(what, name)

    def refitted(self, changes: Changes) -> ModelPackage:
        """Return a model package after these events, with a copy of the ranker that is fitted again.

        Raises
        ------
        InputError
            If nothing is left to fit on.
        """
        self.check_ids(changes.users, changes.items)
        data = with_events(self.interactions, changes)
        data = replace(
            data,
            user_ids=self._extended("user", self.user_ids, data.user_ids[len(self.user_ids) :].tolist()),
            item_ids=self._extended("item", self.item_ids, data.item_ids[len(self.item_ids) :].tolist()),
        )
        matrix = _with_values(data.matrix, self.user_items, _added(data, changes))
        made = fit_package(copy.deepcopy(self.ranker), data, matrix=matrix, show_progress=False)
        return replace(made, columns=self.columns, start=self.start)

    def described(self, item_features: pd.DataFrame) -> ModelPackage:
        """Return a model package of which this is known of the items, by id: features and titles."""
        table = item_features.reindex(self.item_ids)
        titles = texts_of(titles_of(self.item_ids, table))
        return replace(self, item_features=table, titles=titles)

    def _extended(self, what: str, ids: NDArray[np.object_], new: list[str]) -> NDArray[np.object_]:
        """Return ids with new ones behind them, of their kind."""
        own = [int(name) for name in new] if what in self._whole else new
        return np.concatenate([ids, np.array(own, dtype=object)]) if new else ids


def fit_package(
    ranker: Ranker, data: Interactions, *, matrix: sp.csr_matrix | None = None, **options: Any
) -> ModelPackage:
    """Fit a ranker on interactions, with the features and times that it uses, and keep ranker and data.

    Ratings at or below 0 are no interactions. Weights are kept for rankers that are `weighted`.

    Parameters
    ----------
    ranker : Ranker
    data : Interactions
    matrix : (users, items) float32 CSR, optional
        The pairs of `data` with other weights than theirs.
    **options
        Of `Ranker.fit`.
    """
    data = data.positive()
    if data.weight is not None and not takes_weights(ranker):
        data = replace(data, weight=None)
    matrix = data.matrix if matrix is None else matrix
    known = SideInformation(data).of(ranker)
    ranker.fit(matrix, **known, **options)
    return ModelPackage(
        ranker, data.user_ids, data.item_ids, texts_of(data.titles), matrix, times_of(data),
        data.item_features, data.user_features if "user_features" in ranker.wanted() else None,
        data.columns, start_of(data), data.excluded,
    )  # fmt: skip


def fit_notes(ranker: Ranker, data: Interactions) -> list[str]:
    """Return what a user should know before a fit: what it leaves out."""
    notes = []
    if data.weight is not None and not takes_weights(ranker):
        notes.append(f"{ranker.name} takes every interaction alike: weights are left out")
    return notes


def takes_weights(ranker: Any) -> bool:
    """Return whether a ranker learns from how much, and not only from whether."""
    return bool(getattr(ranker, "weighted", False))


def times_of(data: Interactions) -> sp.csr_matrix | None:
    """Return the times of the interactions of `data.matrix`, as a model package keeps them, or None."""
    found = SideInformation(data).times
    if found is not None:
        found.sort_indices()
    return found


def _indices(
    what: str, known: NDArray[np.object_], index: dict[str, int], ids: Sequence[str | int]
) -> NDArray[np.int64]:
    """Return the places of ids; an unknown one is named."""
    found = np.array([index.get(str(name), -1) for name in ids], dtype=np.int64)
    if (found < 0).any():
        raise unknown_ids(what, known, [ids[k] for k in np.flatnonzero(found < 0).tolist()])
    return found


def _whole_id(what: str, name: str) -> None:
    """Refuse text that is not an integer as it is written: `007` would be another's 7."""
    try:
        fine = str(int(name)) == name
    except ValueError:
        fine = False
    if not fine:
        raise InputError(f"{what} id {name[:60]!r}: the ids of these data are integers")


def texts_of(names: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return names as text."""
    return np.array([str(name) for name in names], dtype=object)


def _added(data: Interactions, changes: Changes) -> sp.csr_matrix | None:
    """Return the weights that events add, (users, items); None where they have none."""
    if not changes.weights:
        return None
    users = {str(name): k for k, name in enumerate(data.user_ids)}
    items = {str(name): k for k, name in enumerate(data.item_ids)}
    rows = [
        (users[user], items[item], weight)
        for user, mine in changes.weights.items()
        for item, weight in mine.items()
    ]
    u, i, weights = zip(*rows, strict=True)
    return sp.csr_matrix((np.array(weights), (u, i)), (data.n_users, data.n_items))


def _with_values(
    matrix: sp.csr_matrix, before: sp.csr_matrix, added: sp.csr_matrix | None = None
) -> sp.csr_matrix:
    """Return a matrix of ones with the weights that pairs had before, and what is added to them."""
    values = aligned(matrix, enlarged(before, matrix.shape))
    if added is not None:
        values = values + aligned(matrix, added)
    values[values == 0] = 1.0
    return entries_of(matrix, values.astype(np.float32))


def _earlier(
    rows: sp.csr_matrix, times: sp.csr_matrix, before: float
) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Return the interactions of rows before a time, and their times; unknown times are the oldest."""
    kept = times.data < before
    return masked(rows, kept), masked(times, kept)


@model_file.refuses
def load_package(
    path: model_file.Target, *, mapped: bool = False, checked: str | None = None
) -> ModelPackage:
    """Read a file of `ModelPackage.save`, from a path or a file open for reading bytes.

    Parameters
    ----------
    path : path or open file
    mapped : bool
        Leave the arrays in the file, where processes that read it share one copy in memory; what one
        of them changes is its own. The file may be replaced or removed, but never be cut or written to.
    checked : str, optional
        The checksum that the file has to name, when the caller has checked the content.

    Raises
    ------
    ModelFileError
        If the file is damaged or forged, or holds a ranker without its catalogue.
    """
    ranker, arrays = read_ranker(path, mapped=mapped, checked=checked)
    path = model_file.name_of(path)
    if not all(f"catalogue.{key}" in arrays for key in TEXTS):
        raise ModelFileError(
            f"{path} holds a ranker without ids: write it with `recsys fit --out`, or with "
            f"`recsys.Recommender({ranker.name!r}).fit(matrix).save(...)`"
        )
    users, items = ranker.n_users_, ranker.n_items_
    texts: dict[str, Any] = {
        key: read_texts(path, key, arrays[f"catalogue.{key}"], users if key == "user_ids" else items)
        for key in TEXTS
    }
    others: dict[str, Any] = {
        key: read_features(path, key, arrays[f"catalogue.{key}"], texts[f"{key[:4]}_ids"])
        for key in FEATURES
        if f"catalogue.{key}" in arrays
    }
    if "catalogue.columns" in arrays:
        others["columns"] = read_columns(path, arrays["catalogue.columns"])
    history = model_file.sparse(path, "history", arrays, (users, items))
    if history.data.dtype != np.float32 or not (np.isfinite(history.data) & (history.data > 0)).all():
        raise ModelFileError(f"{path}: the histories hold values that are not above 0")
    times = _read_times(path, arrays, history)
    if "history.start" in arrays:
        others["start"] = _read_start(path, arrays["history.start"])
    if "excluded.users" in arrays:
        others["excluded"] = _read_excluded(path, arrays)
    return ModelPackage(ranker, user_items=history, times=times, **texts, **others)


def _read_times(path: str, arrays: dict[str, Any], history: sp.csr_matrix) -> sp.csr_matrix | None:
    when = arrays.get("history.times")
    if when is None:
        return None
    if when.dtype != np.float64 or when.shape != history.data.shape:
        raise ModelFileError(f"{path}: the times of the histories are not one number per interaction")
    if not (np.isfinite(when) & (when >= 0)).all():
        raise ModelFileError(
            f"{path}: the times of the histories hold values that are below 0 or no numbers"
        )
    return entries_of(history, when)


def _read_excluded(path: str, arrays: dict[str, Any]) -> Interactions:
    ids = [
        np.array(unpacked(path, key, arrays[f"excluded.{key}"]), dtype=object)
        for key in ("user_ids", "item_ids")
    ]
    try:
        return Interactions(
            arrays["excluded.users"], arrays["excluded.items"], *ids,
            time=arrays.get("excluded.time"), weight=arrays.get("excluded.weight"),
        )
    except (InputError, KeyError):
        raise ModelFileError(f"{path}: the pairs left out by a threshold do not fit their ids") from None


def _read_start(path: str, start: NDArray[Any]) -> float:
    if start.dtype != np.float64 or start.shape != (1,) or not -np.inf < start[0] < 0:
        raise ModelFileError(f"{path}: the start of the times is not one number below 0")
    return float(start[0])
