"""A fitted ranker with ids, titles, histories and tables in one file; `Ranker.save` has numbers only."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data import Interactions
from recsys.data.columns import Columns
from recsys.data.features import SideInformation, start_of
from recsys.data.interactions import unknown_ids
from recsys.errors import CapabilityError, InputError, ModelFileError
from recsys.rankers.base import Ranker
from recsys.rankers.protocol import Ints
from recsys.rankers.registry import read_ranker
from recsys.utils import model_file
from recsys.utils.dates import moment
from recsys.utils.sparse import entries_of, row_of
from recsys.utils.validation import check_real

NAMES = ("user_ids", "item_ids", "titles")
FEATURES = ("item_features", "user_features")
EXCLUDED = ("users", "items", "time", "weight")


@dataclass(frozen=True)
class Profile:
    """The liked items of a user of the fit, or of a new user."""

    row: sp.csr_matrix  # (1, items) float32
    times: sp.csr_matrix | None  # float64 with the pattern of `row`; 0 is unknown, and the oldest
    user: int | None = None  # row at fit; None for a new user
    unknown: tuple[str, ...] = ()  # ids of liked items that the catalog does not have

    @property
    def userid(self) -> int:
        """The user index for rankers; a new user's is only a label."""
        return 0 if self.user is None else self.user

    @property
    def fold_in(self) -> bool:
        """Whether the ranker was not fitted on the row."""
        return self.user is None

    @property
    def options(self) -> dict[str, Any]:
        """The keyword arguments of a ranker's methods; a user of the fit has the times of the fit."""
        return {"recalculate_user": self.fold_in, "times": self.times if self.fold_in else None}

    @property
    def items(self) -> NDArray[np.int32]:
        """The liked items, ascending."""
        return self.row.indices


@dataclass(frozen=True)
class ModelPackage:
    """A ranker and the data of its fit.

    Examples
    --------
    >>> from recsys import load_dataset, make_ranker
    >>> package = fit_package(make_ranker("ease"), load_dataset("sample"), show_progress=False)
    >>> package.user_items.shape == (len(package.user_ids), len(package.item_ids))
    True
    >>> package.profile("u0001").row.nnz
    32
    """

    ranker: Ranker
    user_ids: NDArray[np.object_]  #: text or integers; requests match them by their text
    item_ids: NDArray[np.object_]
    titles: NDArray[np.object_]
    user_items: sp.csr_matrix  #: (users, items) float32
    times: sp.csr_matrix | None = None  #: of the interactions, above 0, or 0 if unknown
    item_features: pd.DataFrame | None = None  #: one row per id
    user_features: pd.DataFrame | None = None  #: kept only for rankers that use them
    columns: Columns | None = None  #: how the table of the data was read
    start: float = 0.0  #: offset subtracted from the times, so that all known times are positive
    excluded: Interactions | None = None  #: pairs below the rating threshold, kept for updates

    def save(self, path: str | Path) -> None:
        """Write the model to `path` atomically."""
        tables: dict[str, Any] = {key: getattr(self, key).tolist() for key in NAMES}
        tables |= {"columns": self.columns and asdict(self.columns), "start": self.start}
        for key in FEATURES:
            table = getattr(self, key)
            tables[key] = None if table is None else _cells(table)
        arrays: dict[str, Any] = {}
        if self.excluded is not None:
            tables["excluded"] = [self.excluded.user_ids.tolist(), self.excluded.item_ids.tolist()]
            pairs = {f"excluded.{key}": getattr(self.excluded, key) for key in EXCLUDED}
            arrays |= {name: array for name, array in pairs.items() if array is not None}
        content = json.dumps(tables, allow_nan=False, default=_plain).encode()
        arrays["package.json"] = np.frombuffer(content, dtype=np.uint8)
        for part in ("data", "indices", "indptr"):
            arrays[f"history.{part}"] = getattr(self.user_items, part)
        if self.times is not None:
            arrays["history.times"] = self.times.data
        self.ranker.save(path, arrays)

    @cached_property
    def user_index(self) -> dict[str, int]:
        """Rows of the users by id."""
        return {str(name): k for k, name in enumerate(self.user_ids)}

    @cached_property
    def item_index(self) -> dict[str, int]:
        """Columns of the items by id."""
        return {str(name): k for k, name in enumerate(self.item_ids)}

    @property
    def kind(self) -> str:
        """The kind of tables that it was fitted on: "pandas", "polars" or "pyarrow"."""
        return "pandas" if self.columns is None else self.columns.kind

    @cached_property
    def titled(self) -> bool:
        """Whether items have titles besides their ids."""
        return any(str(a) != str(b) for a, b in zip(self.titles, self.item_ids, strict=True))

    @cached_property
    def item_users(self) -> sp.csc_matrix:
        """Who liked each item: `user_items` by column."""
        return self.user_items.tocsc()

    def rows(self, users: Any) -> tuple[Ints, sp.csr_matrix]:
        """Return indices and histories of one user or several by id; an unknown id is named."""
        places = _indices("user", self.user_ids, self.user_index, id_list("users", users))
        return places, self.user_items[places]

    def items(self, ids: Any, what: str = "items") -> Ints:
        """Return the indices of one item or several by id; an unknown id is named."""
        return _indices("item", self.item_ids, self.item_index, id_list(what, ids))

    def known_items(self, ids: Sequence[str]) -> tuple[list[int], list[str]]:
        """Return the indices of the known ids, and the unknown ids."""
        index = self.item_index
        return [index[i] for i in ids if i in index], [i for i in ids if i not in index]

    @cached_property
    def interactions(self) -> Interactions:
        """The data of the fit: interactions with their times, and features of users and items."""
        rows, time = self.user_items.tocoo(), None
        if self.times is not None:
            time = np.where(self.times.data > 0, self.times.data + self.start, -np.inf)
        weight = rows.data.astype(np.float64) if (rows.data != 1).any() else None
        return Interactions(
            rows.row.astype(np.int32),
            rows.col.astype(np.int32),
            self.user_ids,
            self.item_ids,
            time=time,
            user_features=self.user_features,
            item_features=self.item_features,
            columns=self.columns,
            weight=weight,
            excluded=self.excluded,
        )

    def profile(
        self,
        user: str | int | None = None,
        history: Any = None,
        *,
        times: Sequence[float | str] | None = None,
        weights: Sequence[float] | None = None,
        skip_unknown: bool = False,
    ) -> Profile:
        """Return the profile of a user by id, or of a new user who liked the items of these ids.

        Parameters
        ----------
        user : str, optional
        history : sequence of str, optional
            Instead of a user: the oldest interaction first, or no interactions.
        times : sequence of number or str, optional
            When each interaction of the history happened, instead of its order: numbers in the data's
            unit, or ISO dates.
        weights : sequence of number from 1e-9 to 1e9, optional
            How much of each item of the history, for a ranker that takes weights; else 1 of each.
        skip_unknown : bool
            Keep unknown ids of a history in the profile's `unknown` instead of refusing them.
        """
        if (user is None) == (history is None):
            raise InputError("pass exactly one of user and history")
        if history is not None:
            names = [str(name) for name in id_list("history", history)]
            return self._of_history(names, times, weights, skip_unknown)
        if times is not None or weights is not None:
            raise InputError("times and weights need a history")
        index = self.user_index.get(str(one_id("user", user)))
        if index is None:
            raise unknown_ids("user", self.user_ids, [str(user)])
        matrix = self.user_items
        # Without scipy's indexing, which takes as long as a recommendation.
        own = slice(matrix.indptr[index], matrix.indptr[index + 1])
        row = row_of(matrix.indices[own], matrix.shape[1])
        row.data[:] = matrix.data[own]
        return Profile(row, None if self.times is None else entries_of(row, self.times.data[own]), index)

    def _of_history(
        self,
        history: list[str],
        times: Sequence[float | str] | None,
        weights: Sequence[float] | None,
        skip_unknown: bool,
    ) -> Profile:
        if not self.ranker.folds_in:
            raise CapabilityError(f"{self.ranker.name} cannot rank a history, only users of the fit")
        twice = [name for name, count in Counter(history).items() if count > 1]
        if twice:
            raise InputError(f"item {twice[0][:60]!r} is in the history twice: list each item once")
        count, names = len(history), [repr(name[:60]) for name in history]
        for what, given in (("times", times), ("weights", weights)):
            if given is not None and not (hasattr(given, "__len__") and len(given) == count):
                raise InputError(f"{what} must be a list of {count}, one per item of the history")
        when = np.arange(1.0, len(history) + 1)
        if times is not None:
            pairs = zip(names, times, strict=True)
            when = np.array([moment(f"time of item {name},", given) for name, given in pairs])
        if weights is not None:
            if not self.ranker.weighted:
                raise InputError(
                    f"{self.ranker.name} does not use weights: leave them out, or use als for example"
                )
            for name, weight in zip(names, weights, strict=True):
                check_real(f"weight of item {name}", weight, 1e-9, 1e9)
        unknown = tuple(name for name in history if name not in self.item_index)
        if unknown and not skip_unknown:
            raise unknown_ids("item", self.item_ids, unknown)
        places = np.array([self.item_index.get(name, -1) for name in history], dtype=np.int64)
        order = np.argsort(places, kind="stable")[len(unknown) :]  # by index, without unknown ones
        row = row_of(places[order], len(self.item_ids))
        if weights is not None:
            row.data[:] = np.asarray(weights)[order]
        return Profile(row, entries_of(row, when[order]), None, unknown)


def fit_package(ranker: Ranker, data: Interactions, **options: Any) -> ModelPackage:
    """Fit a ranker on interactions, with the features and times that it uses, and keep ranker and data.

    Ratings at or below 0 are no interactions. Weights are kept for rankers that are `weighted`. Options
    are those of `Ranker.fit`.
    """
    data = data.positive()
    if data.weight is not None and not ranker.weighted:
        data = replace(data, weight=None)
    known = SideInformation(data)
    ranker.fit(data.matrix, **known.of(ranker), **options)
    times = known.times
    if times is not None:
        times.sort_indices()
    return ModelPackage(
        ranker,
        data.user_ids,
        data.item_ids,
        _objects([str(title) for title in data.titles]),
        data.matrix,
        times,
        data.item_features,
        data.user_features if "user_features" in ranker.uses else None,
        data.columns,
        start_of(data),
        data.excluded,
    )


def fit_notes(ranker: Ranker, data: Interactions) -> list[str]:
    """Return notes on data that a fit does not use."""
    if data.weight is not None and not ranker.weighted:
        return [f"{ranker.name} takes every interaction alike: weights are left out"]
    return []


@model_file.refuses
def load_package(path: str | Path, *, mapped: bool = False) -> ModelPackage:
    """Read a file of `ModelPackage.save`; `mapped` as `mmap` of `load_ranker`."""
    ranker, arrays = read_ranker(path, mapped=mapped)
    if "package.json" not in arrays:
        raise ModelFileError(
            f"{path} contains a ranker without ids: write it with `recsys fit --out` or Recommender.save"
        )
    tables = json.loads(arrays["package.json"].tobytes())
    user_ids, item_ids, titles = (_objects(tables[key]) for key in NAMES)
    # A model that was fitted from counts has counted users and names none.
    users, items = len(user_ids) and ranker.n_users_, ranker.n_items_
    if (len(user_ids), len(item_ids), len(titles)) != (users, items, items):
        raise ModelFileError(f"{path}: its ids do not fit the ranker")
    features = {
        key: pd.DataFrame(tables[key], index=pd.Index(ids, dtype=object))
        for key, ids in zip(FEATURES, (item_ids, user_ids), strict=True)
        if tables[key] is not None
    }
    history = model_file.csr("history", arrays, (users, items))
    when = arrays.get("history.times")
    if when is not None and when.shape != history.data.shape:
        raise ModelFileError(f"{path}: its times do not fit the interactions")
    excluded = None
    if "excluded" in tables:
        own: dict[str, Any] = {key: arrays.get(f"excluded.{key}") for key in EXCLUDED}
        own["user_ids"], own["item_ids"] = map(_objects, tables["excluded"])
        excluded = Interactions(**own)
    return ModelPackage(
        ranker,
        user_ids,
        item_ids,
        titles,
        history,
        None if when is None else entries_of(history, when),
        columns=None if tables["columns"] is None else Columns(**tables["columns"]),
        start=tables.get("start", 0.0),
        excluded=excluded,
        **features,
    )


def id_list(what: str, ids: Any) -> list[str | int]:
    """Return one id, or a sequence, array or Series of ids, as a list; `what` names them in messages."""
    if isinstance(ids, (str, int, np.integer)):
        return [one_id(what, ids)]
    for method in ("to_pylist", "to_list", "tolist"):  # pyarrow, polars and pandas, NumPy
        if hasattr(ids, method):
            ids = getattr(ids, method)()
            break
    if isinstance(ids, (bytes, Mapping)) or not hasattr(ids, "__iter__"):
        ids = [ids]
    return [one_id(what, one) for one in ids]


def one_id(what: str, name: Any) -> str | int:
    """Return an id as text or an integer."""
    if not isinstance(name, (str, int, np.integer)) or isinstance(name, bool):
        shown = repr(name)[:60].split("\n")[0]
        raise InputError(f"{what} must be ids, text or integers, not {shown}")
    return str(name) if isinstance(name, str) else int(name)


def _indices(
    what: str, known: NDArray[np.object_], index: dict[str, int], ids: Sequence[str | int]
) -> Ints:
    absent = [name for name in ids if str(name) not in index]
    if absent:
        raise unknown_ids(what, known, absent)
    return np.array([index[str(name)] for name in ids], dtype=np.int64)


def _objects(values: Sequence[Any]) -> NDArray[np.object_]:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _cells(table: pd.DataFrame) -> dict[Any, list[Any]]:
    """Return the columns of a table for JSON; None where a value is unknown or infinite."""
    cells = table.replace([np.inf, -np.inf], np.nan).astype(object)
    return cells.where(cells.notna(), None).rename(columns=str).to_dict("list")


def _plain(value: Any) -> Any:
    """Return a value that JSON does not have as a number or as text."""
    return value.item() if isinstance(value, np.generic) else str(value)
