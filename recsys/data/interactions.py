"""Interactions: who liked what, with string ids, ratings, times and features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.data.columns import Columns, Ids, floats, ids_of, times_of, title_column
from recsys.data.tables import as_arrow
from recsys.errors import InputError, OutOfRangeError
from recsys.utils.validation import check_choice, check_real, clean_matrix

MERGED = {  # what becomes of repeated pairs
    "sum": "their weights summed",
    "count": "their rows counted",
    "last": "the latest row kept",
}
COLUMNS = ("rating", "time", "held_out", "weight")  # optional, one value a pair


@dataclass(frozen=True, repr=False)
class Interactions:
    """Distinct pairs of users and items, with optional ratings, times, weights and features.

    Examples
    --------
    >>> from recsys.data import Interactions
    >>> likes = Interactions.from_ids(["ada", "ada", "bob"], ["tea", "milk", "tea"])
    >>> likes.n_users, likes.n_items
    (2, 2)
    >>> likes.matrix.toarray()
    array([[1., 1.],
           [1., 0.]], dtype=float32)
    """

    users: NDArray[np.int32]  #: (pairs,) indices into `user_ids`
    items: NDArray[np.int32]  #: (pairs,) indices into `item_ids`
    user_ids: NDArray[np.object_]  #: in order of first appearance; ids of a file are text
    item_ids: NDArray[np.object_]  #: in order of first appearance
    rating: NDArray[np.float64] | None = None  #: (pairs,)
    time: NDArray[np.float64] | None = None  #: (pairs,), in any unit; −inf is the oldest
    user_features: pd.DataFrame | None = None  #: one row per id, in the order of the ids
    item_features: pd.DataFrame | None = None  #: one row per id; the column `title` has titles
    name: str = "interactions"  #: in messages and reports
    notes: tuple[str, ...] = field(default=())  #: roles of columns, rows left out, merged duplicates
    columns: Columns | None = None  #: how the table was read
    held_out: NDArray[np.bool_] | None = None  #: (pairs,), the test half of the protocol `published`
    weight: NDArray[np.float64] | None = None  #: (pairs,) above 0, the values of `matrix`
    excluded: Interactions | None = None  #: pairs rated below the threshold, kept for updates

    def __post_init__(self) -> None:
        """Refuse pairs that do not fit each other or the ids, before matrices are built from them."""
        for what, ids in (("users", self.user_ids), ("items", self.item_ids)):
            index = np.asarray(getattr(self, what))
            if index.ndim != 1 or index.dtype.kind not in "iu":
                raise InputError(
                    f"{self.name}: {what} must be integers in one dimension (from_ids takes ids)"
                )
            if len(index) and (index.min() < 0 or index.max() >= len(ids)):
                raise OutOfRangeError(f"{self.name}: {what} must be within 0…{len(ids) - 1}")
        for what in ("items", *COLUMNS):
            shape = np.shape(getattr(self, what))
            if getattr(self, what) is not None and shape != np.shape(self.users):
                raise InputError(f"{self.name}: {what} has shape {shape} for {len(self.users)} pairs")

    @classmethod
    def from_ids(
        cls,
        users: ArrayLike | Sequence[Any],
        items: ArrayLike | Sequence[Any],
        rating: ArrayLike | None = None,
        time: ArrayLike | None = None,
        name: str = "interactions",
        notes: tuple[str, ...] = (),
        *,
        weight: ArrayLike | None = None,
        duplicates: str | None = None,
    ) -> Interactions:
        """Return interactions of ids; repeated pairs are merged.

        Values are matched by position; indices of Series are ignored.

        Parameters
        ----------
        users, items : (rows,) array, Series or list
            Ids, text or integers. None and NaN are missing. Surrounding blanks are removed.
        rating : (rows,) array, Series or list of numbers, optional
        time : (rows,) array, Series or list of numbers or datetimes, optional
            Datetimes become seconds since 1970-01-01, in UTC if they have no time zone.
        name : str
        notes : tuple of str
        weight : (rows,) array, Series or list of numbers above 0, optional
            Counts or amounts: the values of `matrix`.
        duplicates : "sum", "count" or "last", optional
            Weight of a repeated pair: the sum of its weights, the number of its rows, or the weight of
            its latest row (by time, else by position). The default is the sum if there are weights, else
            the latest row. Rating and time are always from the latest row.
        """
        given = {"users": users, "items": items, "rating": rating, "time": time, "weight": weight}
        columns = {
            what: _column(name, what, column)
            for what, column in given.items()
            if column is not None or what in ("users", "items")
        }
        if len(set(map(len, columns.values()))) > 1:
            sizes = ", ".join(f"{len(column):,} {what}" for what, column in columns.items())
            raise InputError(f"{name}: columns must have equal lengths; there are {sizes}")
        if len(columns["users"]) == 0:
            raise InputError(f"{name}: no interactions")
        check_duplicates(duplicates, weight is not None)
        u, i = (_ids(name, what, columns.pop(what)) for what in ("users", "items"))
        numbers: dict[str, Any] = {
            what: _numbers(name, what, column) for what, column in columns.items()
        }
        return merged(
            u.codes, i.codes, u.ids, i.ids, **numbers, duplicates=duplicates, name=name, notes=notes
        )

    @classmethod
    def from_frame(
        cls,
        table: Any,
        *,
        user: str | None = None,
        item: str | None = None,
        rating: str | None = None,
        time: str | None = None,
        weight: str | None = None,
        items: Any = None,
        users: Any = None,
        min_rating: float | None = None,
        duplicates: str | None = None,
        names: Sequence[str] | None = None,
        header: bool | None = None,
        delimiter: str | None = None,
        encoding: str | None = None,
        decimal: str | None = None,
        day_first: bool | None = None,
        name: str | None = None,
        cold_items: bool = False,
    ) -> Interactions:
        """Return the interactions of a table of users, items, and optional ratings, times and weights.

        By default, names and values determine the columns. `notes` lists these decisions and counts
        invalid rows, which are left out.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, or path
            Files are delimited text, JSON (lines or an array), Parquet or Excel; text may be compressed.
        user, item : str, optional
            Columns of ids, text or integers. Ids of a file are text.
        rating : str, optional
            Column of numbers. Without `min_rating`, rows rated at or below 0 are left out.
        time : str, optional
            Column of dates or numbers. Dates and epochs become seconds since 1970, in UTC.
        weight : str, optional
            Column of positive counts or amounts: the values of `matrix`.
        items, users : table or path, optional
            Features of items and users, such as titles, years and genres. Ids are in the column with the
            same name as in `table`, in a column with a usual name, or in the index of a pandas frame.
        min_rating : float, optional
            Lowest rating of an interaction.
        duplicates : "sum", "count" or "last", optional
            As in `from_ids`.
        names : sequence of str, optional
            Names of the columns of a file without a header.
        header : bool, optional
            Whether the first row of a file has column names.
        delimiter, encoding : str, optional
            Delimiter and encoding of delimited text, such as ";" and "cp1252".
        decimal : "." or ",", optional
            Decimal mark of ratings and weights.
        day_first : bool, optional
            Whether 01/02/2020 is 1 February. Required if the dates are ambiguous.
        name : str, optional
            Name in messages and reports.
        cold_items : bool
            Whether to include items and users that occur only in their own table.

        Examples
        --------
        >>> import pandas as pd
        >>> from recsys.data import Interactions
        >>> likes = pd.DataFrame({"who": ["ada", "bob", "bob"], "what": [7, 7, 9], "stars": [5, 4, 1]})
        >>> data = Interactions.from_frame(likes, min_rating=4)
        >>> data.n_users, data.item_ids.tolist()
        (2, [7])
        >>> data.notes[0]
        'user = who, item = what, time: none, rating = stars; rows: 3, pairs: 3'
        """
        from recsys.data.reading import read_rows, with_tables

        columns = {"user": user, "item": item, "rating": rating, "time": time, "weight": weight}
        data = read_rows(
            table,
            columns,
            duplicates=duplicates,
            decimal=decimal,
            day_first=day_first,
            name=name,
            names=names,
            header=header,
            delimiter=delimiter,
            encoding=encoding,
        )
        data = data.positive() if min_rating is None else data.rated(min_rating)
        return with_tables(data, items, users, cold_items)

    @classmethod
    def from_matrix(cls, matrix: sp.spmatrix, name: str = "matrix") -> Interactions:
        """Return the interactions of a (users, items) matrix; ids are row and column numbers.

        Values other than 1 are weights.
        """
        pairs = clean_matrix(matrix, name=name).tocoo()
        users, items = (np.array(range(size), dtype=object) for size in pairs.shape)
        weight = pairs.data.astype(np.float64) if (pairs.data != 1).any() else None
        return cls(pairs.row, pairs.col, users, items, weight=weight, name=name)

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.item_ids)

    @property
    def matrix(self) -> sp.csr_matrix:
        """(users, items) float32 CSR of ones or weights; indices sorted."""
        return self.submatrix(slice(None))

    def submatrix(self, rows: NDArray[np.int64] | slice) -> sp.csr_matrix:
        """Return the chosen pairs as a (users, items) float32 CSR matrix of ones or weights."""
        users, items = self.users[rows], self.items[rows]
        values = np.ones(len(users), np.float32) if self.weight is None else self.weight[rows]
        shape = self.n_users, self.n_items
        out = sp.csr_matrix((values, (users, items)), shape, dtype=np.float32)
        out.sort_indices()
        return out

    @property
    def titles(self) -> NDArray[np.object_]:
        """Titles of the items, their ids where they have none."""
        features = self.item_features
        name = None if features is None else title_column(features.columns.tolist())
        if features is None or name is None:
            return self.item_ids
        titles = features[name].to_numpy(dtype=object)
        return np.where(pd.isna(titles) | (titles == ""), self.item_ids, titles)

    def rated(self, least: float) -> Interactions:
        """Return the pairs rated at least `least`, with the remaining users and items."""
        least = check_real("min_rating", least, -np.inf, open_low=True)
        if self.rating is None:
            raise InputError(f"{self.name}: a minimum rating needs a column of ratings")
        out = self._pairs(self.rating >= least, f"rated below {least:g}")
        return replace(out, columns=replace(self.columns or Columns(), min_rating=least))

    def positive(self) -> Interactions:
        """Return the pairs rated above 0; all pairs without ratings or after a threshold."""
        if self.rating is None or (self.columns is not None and self.columns.min_rating is not None):
            return self
        return self._pairs(self.rating > 0, "rated at or below 0, which is no interaction")

    def _pairs(self, keep: NDArray[np.bool_], others: str) -> Interactions:
        if keep.all():
            return self
        if not keep.any():
            raise InputError(f"{self.name}: no interactions left; all {len(keep):,} rows are {others}")
        return subset(self, keep, f"{others}, left out: {int((~keep).sum()):,}")

    def with_features(
        self,
        *,
        users: pd.DataFrame | None = None,
        items: pd.DataFrame | None = None,
        cold_items: bool = False,
    ) -> Interactions:
        """Return the interactions with feature tables indexed by id; missing rows give missing values.

        `cold_items` includes items and users that occur only in their own table.
        """
        out, notes = self, list(self.notes)
        for what, table in (("user", users), ("item", items)):
            if table is None:
                continue
            ids = getattr(self, f"{what}_ids")
            table = table[~table.index.duplicated()]
            check_ids(what, table.index, ids)
            without = int((~pd.Index(ids).isin(table.index)).sum())
            if without:
                notes.append(f"{what}s without a row in the {what} table: {without:,}")
            only = table.index[~table.index.isin(ids)]
            if cold_items and len(only):
                ids = np.concatenate([ids, np.array(list(only), dtype=object)])
                notes.append(f"{what}s without interactions, taken from the {what} table: {len(only):,}")
            elif len(only):
                notes.append(
                    f"{what}s that only the {what} table has, left out: {len(only):,} "
                    "(cold_items=True or --cold-items takes them in)"
                )
            if what == "item" and (title := title_column(table.columns.tolist())) not in (None, "title"):
                notes.append(f"{str(title)[:40]} of the item table is read as the titles of the items")
            attached: dict[str, Any] = {f"{what}_features": table.reindex(ids), f"{what}_ids": ids}
            out = replace(out, **attached)
        return replace(out, notes=tuple(notes))

    def with_test(self, test: Any, *, min_rating: float | None = None) -> Interactions:
        """Return the interactions with a fixed test half for the protocol `published`.

        Ids are matched as text. Users without interactions are left out; items that occur only in the
        test half become candidates. Notes count both.

        Parameters
        ----------
        test : Interactions, table or path
            A table with the column names of the interactions, or usual names.
        min_rating : float, optional
            Lowest rating of a test interaction; by default that of the interactions.
        """
        from recsys.data.reading import with_test

        return with_test(self, test, min_rating)

    @staticmethod
    def lookup(what: str, known: NDArray[np.object_], ids: Sequence[str | int]) -> NDArray[np.int64]:
        """Return the indices of ids; `what` is "user" or "item"."""
        found = pd.Index(known).get_indexer(pd.Index(ids, dtype=object))
        if (found < 0).any():
            raise unknown_ids(what, known, [ids[k] for k in np.flatnonzero(found < 0).tolist()])
        return found.astype(np.int64)

    def __repr__(self) -> str:
        optional = ("rating", "time", "weight", "held_out", "item_features", "user_features")
        has = [f", {name}" for name in optional if getattr(self, name) is not None]
        return (
            f"<Interactions {self.name!r}: users: {self.n_users:,}, items: {self.n_items:,}, "
            f"pairs: {len(self.users):,}{''.join(has)}>"
        )


def check_duplicates(duplicates: str | None, weighted: bool) -> None:
    """Check the treatment of repeated pairs."""
    if duplicates is not None:
        check_choice("duplicates", duplicates, tuple(MERGED))
        if duplicates == "sum" and not weighted:
            raise InputError(
                "duplicates='sum' adds weights: name their column with weight=, or use 'count'"
            )


def check_ids(what: str, index: pd.Index, ids: NDArray[np.object_]) -> None:
    """Refuse a table of items or users that has none of the ids."""
    if len(index) and not index.isin(ids).any():
        raise InputError(
            f"{what}s: no {what} id of this table occurs in the interactions; ids are such as "
            f"{index[0]!r} here and {ids[0]!r} there. Name the id column, or use set_index"
        )


def merged(
    u: NDArray[Any],
    i: NDArray[Any],
    user_ids: NDArray[np.object_],
    item_ids: NDArray[np.object_],
    rating: NDArray[np.float64] | None = None,
    time: NDArray[np.float64] | None = None,
    weight: NDArray[np.float64] | None = None,
    duplicates: str | None = None,
    name: str = "interactions",
    notes: tuple[str, ...] = (),
    *,
    compact: bool = False,
) -> Interactions:
    """Return the interactions of rows of indices, repeated pairs merged as `Interactions.from_ids` does.

    With `compact` ids that no row has are left out; the others are in the order of their first row.
    """
    if compact:
        (u, known_users), (i, known_items) = pd.factorize(u), pd.factorize(i)
        user_ids, item_ids = user_ids[known_users], item_ids[known_items]
    mode = duplicates or ("last" if weight is None else "sum")
    if mode == "count":
        weight = np.ones(len(u))
    key = u.astype(np.int64)
    key *= len(item_ids)
    key += i
    again = np.sort(key)
    again = again[1:][again[1:] == again[:-1]]
    if len(again):
        rows = np.flatnonzero(pd.Series(key, copy=False).isin(again))
        order = np.arange(len(rows)) if time is None else np.argsort(time[rows], kind="stable")
        rows = rows[order[::-1]]  # latest first
        _, first, pair_of = np.unique(key[rows], return_index=True, return_inverse=True)
        latest, keep = rows[first], np.ones(len(key), dtype=bool)
        keep[rows], keep[latest] = False, True
        notes = (*notes, f"repeated pairs merged, {MERGED[mode]}: {len(again):,}")
        if weight is not None and mode != "last":
            weight = weight.copy()
            weight[latest] = np.bincount(pair_of, weight[rows])
        u, i = u[keep], i[keep]
        rating, time, weight = (
            None if column is None else column[keep] for column in (rating, time, weight)
        )
    u, i = u.astype(np.int32, copy=False), i.astype(np.int32, copy=False)
    return Interactions(u, i, user_ids, item_ids, rating, time, name=name, notes=notes, weight=weight)


def subset(data: Interactions, keep: NDArray[np.bool_], note: str = "") -> Interactions:
    """Return some of the pairs with the ids that remain, in their order; the others are excluded."""
    changed: dict[str, Any] = {"excluded": _excluded(data, ~keep)}
    for what in ("user", "item"):
        index, ids = getattr(data, f"{what}s")[keep], getattr(data, f"{what}_ids")
        used = np.bincount(index, minlength=len(ids)) > 0
        table = getattr(data, f"{what}_features")
        changed[f"{what}s"] = (np.cumsum(used) - 1)[index].astype(np.int32)
        changed[f"{what}_ids"] = ids[used]
        changed[f"{what}_features"] = None if table is None else table.reindex(ids[used])
    for name in COLUMNS:
        column = getattr(data, name)
        changed[name] = None if column is None else column[keep]
    return replace(data, notes=(*data.notes, note) if note else data.notes, **changed)


def _excluded(data: Interactions, out: NDArray[np.bool_]) -> Interactions:
    """Return the pairs that were left out, these among them, over all ids of the reading."""
    before = [] if data.excluded is None else [data.excluded]
    columns: dict[str, Any] = {}
    for what in ("user", "item"):
        columns[f"{what}_ids"] = ids = getattr((*before, data)[0], f"{what}_ids")
        places = pd.Index(ids).get_indexer(pd.Index(getattr(data, f"{what}_ids")))
        columns[f"{what}s"] = places[getattr(data, f"{what}s")].astype(np.int32)
    columns |= {"time": data.time, "weight": data.weight}
    for name, column in columns.items():
        if not name.endswith("_ids") and column is not None:
            columns[name] = np.concatenate([*(getattr(one, name) for one in before), column[out]])
    return Interactions(**columns)


def unknown_ids(what: str, known: NDArray[np.object_], absent: Sequence[Any]) -> InputError:
    """Return the error for ids that there are not; it names the first of them."""
    more = f" and {len(absent) - 5} more" if len(absent) > 5 else ""
    shown = ", ".join(repr(name[:60] if isinstance(name, str) else name)[:80] for name in absent[:5])
    such = f"there are {len(known):,}, such as {known[0]!r}" if len(known) else "the model names none"
    return InputError(f"unknown {what} id {shown}{more}; {such}")


def _column(name: str, what: str, given: Any) -> Any:
    """Return a column as arrow has it, without its index."""
    if isinstance(given, (pd.Series, pd.Index)):
        given = given.array
    if not isinstance(given, pd.api.extensions.ExtensionArray):
        # [1, "a"] is no array of text
        given = np.asarray(given, dtype=None if isinstance(given, np.ndarray) else object)
        if given.ndim != 1:
            raise InputError(f"{name}: {what} must be a column with one entry per row")
    return as_arrow(name, what, given)


def _ids(name: str, what: str, column: Any) -> Ids:
    ids = ids_of(name, what, column)
    if (ids.codes < 0).any():
        row = int(np.argmax(ids.codes < 0))
        raise InputError(f"{name}: row {row} of {what} has no id (None or NaN): drop or fill such rows")
    return ids


def _numbers(name: str, what: str, column: Any) -> NDArray[np.float64]:
    """Return ratings, times or weights as numbers."""
    dates = pa.types.is_date(column.type) or pa.types.is_timestamp(column.type)
    out = times_of(name, what, column).values if dates and what == "time" else floats(column)
    if out is None:
        kinds = "numbers or datetimes" if what == "time" else "numbers"
        raise InputError(f"{name}: {what} must be {kinds}, not {column.type}")
    if np.isposinf(out).any() or (what != "time" and np.isneginf(out).any()):
        oldest = ", or −inf for the oldest" if what == "time" else ""
        raise InputError(f"{name}: {what} contains infinity: use finite numbers{oldest}")
    if np.isnan(out).any():
        row = int(np.argmax(np.isnan(out)))
        raise InputError(f"{name}: row {row} of {what} is missing; drop such rows or fill them in")
    if what == "weight" and (out <= 0).any():
        row = int(np.argmax(out <= 0))
        raise InputError(f"{name}: weight is {out[row]:g} in row {row}; weights must be positive")
    return out
