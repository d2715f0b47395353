"""Interactions: who liked what, with string ids, ratings, times and features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.data.columns import Columns
from recsys.errors import InputError, OutOfRangeError, counted


@dataclass(frozen=True, repr=False)
class Interactions:
    """Pairs of users and items, one row each, no pair twice.

    Attributes
    ----------
    users, items : (pairs,) int32
        Indices into the id arrays.
    user_ids, item_ids : (users,), (items,) object
        Ids in order of first appearance: text exactly as it was read from a file, or, from
        `from_ids`, as given. A ranker's file keeps them as text.
    rating : (pairs,) float64, optional
    time : (pairs,) float64, optional
        Any unit. Most models and all protocols use the order only; `slist` with a `time_scale`, and ages
        in explanations, what lies between. −inf is "oldest".
    user_features, item_features : DataFrame, optional
        One row per id, aligned; titles are the column `title`.
    name : str
        What messages and reports call them.
    notes : tuple of str
        What reading did that the user should know: duplicates merged, rows dropped.
    columns : Columns, optional
        How the table was read that they came from.
    held_out : (pairs,) bool, optional
        Which pairs are the test half that was published with them, or given: what the protocol
        `published` tests. All else takes them as interactions like the others.

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

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    user_ids: NDArray[np.object_]
    item_ids: NDArray[np.object_]
    rating: NDArray[np.float64] | None = None
    time: NDArray[np.float64] | None = None
    user_features: pd.DataFrame | None = None
    item_features: pd.DataFrame | None = None
    name: str = "interactions"
    notes: tuple[str, ...] = field(default=())
    columns: Columns | None = None
    held_out: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        """Refuse pairs that do not fit each other or the ids; matrices are made of them.

        Raises
        ------
        InputError
            If an array has another length than `users`, or indices are no whole numbers.
        OutOfRangeError
            If an index is beyond the ids.
        """
        for what, ids in (("users", self.user_ids), ("items", self.item_ids)):
            index = np.asarray(getattr(self, what))
            if index.ndim != 1 or index.dtype.kind not in "iu":
                raise InputError(
                    f"{self.name}: {what} must be whole numbers in one dimension (from_ids takes ids), "
                    f"not {index.ndim}-dimensional {index.dtype}"
                )
            if len(index) and (index.min() < 0 or index.max() >= len(ids)):
                raise OutOfRangeError(f"{self.name}: {what} must be within 0…{len(ids) - 1}")
        for what in ("items", "rating", "time", "held_out"):
            given = getattr(self, what)
            if given is not None and np.shape(given) != np.shape(self.users):
                raise InputError(
                    f"{self.name}: {what} has shape {np.shape(given)} for {len(self.users)} pairs"
                )

    @classmethod
    def from_ids(
        cls,
        users: ArrayLike | Sequence[Any],
        items: ArrayLike | Sequence[Any],
        rating: ArrayLike | None = None,
        time: ArrayLike | None = None,
        name: str = "interactions",
        notes: tuple[str, ...] = (),
    ) -> Interactions:
        """Index ids and merge repeated pairs.

        Of a repeated pair the latest row is kept (by time, else by position), and the
        number merged is noted, with how many of them disagreed on the rating.

        Parameters
        ----------
        users, items : (rows,) array, Series or list
            Ids, text or whole numbers; numbers stay int, and are text once a ranker's file has
            kept them. None and NaN are no ids.
        rating : (rows,) array, Series or list of numbers, optional
        time : (rows,) array, Series or list of numbers or datetimes, optional
            Datetimes become seconds since 1970-01-01 (UTC where they have no zone).
        name : str
        notes : tuple of str

        Everything is taken by position: a Series' index is not looked at.

        Raises
        ------
        InputError
            If there is no row, lengths differ, an id is missing or neither text nor a whole number,
            or ratings or times are no numbers.
        """
        u, user_ids = _numbered(name, "users", users)
        i, item_ids = _numbered(name, "items", items)
        rating = None if rating is None else _column(name, "rating", rating)
        time = None if time is None else _column(name, "time", time)
        lengths = {"users": len(u), "items": len(i)}
        lengths |= {k: len(v) for k, v in (("rating", rating), ("time", time)) if v is not None}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{size:,} {what}" for what, size in lengths.items())
            raise InputError(f"{name}: one entry a row is needed of each; there are {told}")
        if len(u) == 0:
            raise InputError(f"{name}: no interactions")
        key = u.astype(np.int64) * len(item_ids) + i
        order = np.arange(len(key)) if time is None else np.argsort(time, kind="stable")
        unique, inverse = np.unique(key, return_inverse=True)
        last = np.zeros(len(unique), dtype=np.int64)  # position of each pair's latest row
        last[inverse[order]] = order
        keep = np.sort(last)
        merged = len(key) - len(keep)
        if merged:
            clash = ""
            if rating is not None:
                differing = int((rating != rating[last][inverse]).sum())
                clash = f" ({differing:,} with another rating)" if differing else ""
            notes = (*notes, f"{counted(merged, 'repeated pair')} merged, the latest row kept{clash}")
        return cls(
            u[keep].astype(np.int32),
            i[keep].astype(np.int32),
            np.asarray(user_ids, dtype=object),
            np.asarray(item_ids, dtype=object),
            None if rating is None else rating[keep],
            None if time is None else time[keep],
            name=name,
            notes=notes,
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
        items: Any = None,
        users: Any = None,
        min_rating: float | None = None,
        name: str | None = None,
    ) -> Interactions:
        """Read a table of rows: who, what, and, where there are, how much and when.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, or path of a CSV, TSV, Parquet or Excel file
            One row a pair; of a repeated pair the latest row is kept.
        user, item : str, optional
            Columns of ids, text or whole numbers; usual names are looked for when not given. Those of
            a file are text.
        rating : str, optional
            Column of numbers; `rating` is taken where there is one.
        time : str, optional
            Column of datetimes, ISO dates or numbers of any unit; `timestamp` or `time` is taken where
            there is one.
        items, users : table or path, optional
            What is known of items and users: titles (column `title`), years, genres. Their ids are in
            the column called as in `table`, in one of a usual name, or in the index of a pandas frame.
        min_rating : float, optional
            The rating from which on a row is a like; every row when not given.
        name : str, optional
            What messages and reports call them.

        Raises
        ------
        InputError
            If a column is absent, an id missing, a rating or time no number, or nothing is left; one
            line that names it.

        Examples
        --------
        >>> import pandas as pd
        >>> from recsys.data import Interactions
        >>> likes = pd.DataFrame({"who": ["ada", "bob", "bob"], "what": [7, 7, 9], "stars": [5, 4, 1]})
        >>> films = pd.DataFrame({"what": [7, 9], "title": ["Alien", "Brazil"]})
        >>> data = Interactions.from_frame(
        ...     likes, user="who", item="what", rating="stars", min_rating=4, items=films
        ... )
        >>> data.n_users, data.item_ids.tolist(), data.titles.tolist()
        (2, [7], ['Alien'])
        """
        from recsys.data.tables import checked, interactions_of

        given = {"user": user, "item": item, "rating": rating, "time": time}
        return interactions_of(table, checked(given, min_rating), items, users, name)

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
        """(users, items) float32 CSR of ones, indices sorted."""
        return self.submatrix(np.arange(len(self.users)))

    def submatrix(self, rows: NDArray[np.int64], values: bool = False) -> sp.csr_matrix:
        """Return the chosen pairs as a (users, items) float32 CSR matrix of ones (or ratings)."""
        data = np.ones(len(rows), dtype=np.float32)
        if values and self.rating is not None:
            data = self.rating[rows].astype(np.float32)
        shape = (self.n_users, self.n_items)
        out = sp.csr_matrix((data, (self.users[rows], self.items[rows])), shape)
        out.sort_indices()
        return out

    @property
    def titles(self) -> NDArray[np.object_]:
        """Titles of the items, their ids where they have none."""
        return titles_of(self.item_ids, self.item_features)

    def rated(self, least: float) -> Interactions:
        """Return the pairs rated at least `least`, with the users and items that remain.

        Raises
        ------
        InputError
            If there are no ratings, or none is high enough.
        """
        if self.rating is None:
            raise InputError(f"{self.name} has no ratings: a minimum rating cannot be applied")
        keep = self.rating >= least
        if not keep.any():
            raise InputError(
                f"{self.name}: no interactions left; all {len(keep):,} rows are rated below {least:g}"
            )
        dropped = int((~keep).sum())
        if dropped == 0:
            columns = self.columns
            return (
                self
                if columns is None
                else replace(self, columns=replace(columns, min_rating=float(least)))
            )
        out = Interactions.from_ids(
            self.user_ids[self.users[keep]],
            self.item_ids[self.items[keep]],
            self.rating[keep],
            None if self.time is None else self.time[keep],
            self.name,
            (*self.notes, f"{counted(dropped, 'row')} rated below {least:g} dropped"),
        )
        return replace(
            out,
            user_features=None
            if self.user_features is None
            else self.user_features.reindex(out.user_ids),
            item_features=None
            if self.item_features is None
            else self.item_features.reindex(out.item_ids),
            columns=None if self.columns is None else replace(self.columns, min_rating=float(least)),
            held_out=None if self.held_out is None else self.held_out[keep],
        )

    def with_features(
        self, *, users: pd.DataFrame | None = None, items: pd.DataFrame | None = None
    ) -> Interactions:
        """Attach tables indexed by id; ids without a row get missing values, and are counted."""
        out, notes = self, list(self.notes)
        for what, table, ids in (("user", users, self.user_ids), ("item", items, self.item_ids)):
            if table is None:
                continue
            aligned = table[~table.index.duplicated()].reindex(ids)
            absent = int((~pd.Index(ids).isin(table.index)).sum())
            if absent:
                have = "has" if absent == 1 else "have"
                of = counted(len(ids), what)
                notes.append(f"{absent:,} of {of} {have} no row in the {what} table")
            out = (
                replace(out, user_features=aligned)
                if what == "user"
                else replace(out, item_features=aligned)
            )
        return replace(out, notes=tuple(notes))

    def with_test(self, test: Any, *, min_rating: float | None = None) -> Interactions:
        """Mark what is to be tested, for the protocol `published`; a pair of it does not train.

        Ids are matched as text. Users who are not among the interactions are left out, and items that
        only the test half has are added, as candidates that nobody has in training; notes count both.

        Parameters
        ----------
        test : Interactions, table or path
            A table or file is read as the interactions were: its columns are called as theirs, or by a
            usual name. A .txt of whole numbers has a line a user, the user and then the items.
        min_rating : float, optional
            Rows rated below it are not tested, where it has ratings; what the interactions were read
            with when not given.

        Raises
        ------
        InputError
            If it cannot be read, or has no user or no item of the interactions.

        Examples
        --------
        >>> from recsys.data import Interactions, split
        >>> likes = Interactions.from_ids(["ada", "ada", "bob"], ["tea", "milk", "tea"])
        >>> later = Interactions.from_ids(["bob", "eve"], ["milk", "tea"])
        >>> fold = next(split(likes.with_test(later), "published"))
        >>> fold.test.toarray()
        array([[0., 0.],
               [0., 1.]], dtype=float32)
        """
        from recsys.data.given_test import with_test

        return with_test(self, test, min_rating)

    @staticmethod
    def lookup(what: str, known: NDArray[np.object_], ids: Sequence[str | int]) -> NDArray[np.int64]:
        """Return the positions of ids among the known ones; `what` is "user" or "item".

        Raises
        ------
        InputError
            If some are unknown, naming them.
        """
        found = pd.Index(known).get_indexer(pd.Index(ids, dtype=object))
        if (found < 0).any():
            raise unknown_ids(what, known, [ids[k] for k in np.flatnonzero(found < 0).tolist()])
        return found.astype(np.int64)

    def __repr__(self) -> str:
        has = [
            text
            for value, text in (
                (self.rating, "ratings"), (self.time, "times"), (self.item_features, "item features"),
                (self.user_features, "user features"), (self.held_out, "a test half"),
            )
            if value is not None
        ]  # fmt: skip
        sizes = (
            f"{counted(self.n_users, 'user')}, {counted(self.n_items, 'item')}, "
            f"{counted(len(self.users), 'pair')}"
        )
        return f"<Interactions {self.name!r}: {sizes}{''.join(f', {text}' for text in has)}>"


def titles_of(ids: NDArray[np.object_], features: pd.DataFrame | None) -> NDArray[np.object_]:
    """Return the titles in a table of items, aligned with `ids`; the ids where they have none."""
    if features is None or "title" not in features:
        return ids
    titles = features["title"].to_numpy(dtype=object)
    return np.where(pd.isna(titles) | (titles == ""), ids, titles)


def unknown_ids(what: str, known: NDArray[np.object_], absent: Sequence[Any]) -> InputError:
    """Return the error for ids that there are not; it names the first of them."""
    more = f" and {len(absent) - 5} more" if len(absent) > 5 else ""
    shown = ", ".join(repr(name[:60] if isinstance(name, str) else name)[:80] for name in absent[:5])
    return InputError(f"unknown {what} id {shown}{more}; there are {len(known):,}, such as {known[0]!r}")


def _vector(name: str, what: str, given: Any) -> Any:
    """Return a column as a one-dimensional array, without its index."""
    if isinstance(given, (str, bytes)):
        raise InputError(f"{name}: {what} must be a column, one entry a row, not {given[:60]!r}")
    if isinstance(given, (pd.Series, pd.Index)):
        given = given.array
    if isinstance(given, pd.api.extensions.ExtensionArray):
        return given
    try:
        array = np.asarray(given)
        if array.dtype.kind in "US" and not isinstance(given, np.ndarray):
            array = np.asarray(given, dtype=object)  # [1, "a"] would have become text
    except ValueError:
        array = np.zeros((0, 0))
    if array.ndim != 1:
        raise InputError(f"{name}: {what} must be a column, one entry a row")
    return array


def _numbered(name: str, what: str, given: Any) -> tuple[NDArray[np.int64], NDArray[np.object_]]:
    """Return a number for each id, and the ids in order of first appearance."""
    try:
        numbers, ids = pd.factorize(_vector(name, what, given))
    except TypeError:  # lists, dicts: what has no hash
        raise InputError(f"{name}: {what} must be text or whole numbers, one a row") from None
    if (numbers < 0).any():
        row = int(np.flatnonzero(numbers < 0)[0])
        raise InputError(
            f"{name}: row {row} of {what} has no id (None or NaN); drop such rows or name them"
        )
    known = np.empty(len(ids), dtype=object)
    known[:] = [k.item() if isinstance(k, np.generic) else k for k in ids]
    for k in known:
        if isinstance(k, bool) or not isinstance(k, (str, int)):
            raise InputError(
                f"{name}: {what} must be text or whole numbers, not {str(k)[:60]!r} "
                f"({type(k).__name__}); convert them, as by .astype(str)"
            )
        if isinstance(k, int) and not -(2**63) <= k < 2**63:
            raise InputError(f"{name}: {what} hold a number beyond 64 bits; make them text")
    if len({type(k) for k in known}) > 1:
        raise InputError(
            f"{name}: {what} are text and whole numbers mixed; make them one kind, as by .astype(str)"
        )
    return numbers, known


def _column(name: str, what: str, given: Any) -> NDArray[np.float64]:
    """Return ratings or times as numbers."""
    column = _vector(name, what, given)
    kind = column.dtype.kind
    dated = kind == "M" or (
        kind == "O"
        and pd.api.types.infer_dtype(np.asarray(column, dtype=object)) in ("datetime", "date")
    )
    try:
        if what == "time" and dated:
            moments = pd.to_datetime(pd.Series(column), utc=True).to_numpy("datetime64[ns]")
            out = np.where(np.isnat(moments), np.nan, moments.astype(np.int64) / 1e9)
        elif kind not in "biufO" or (kind == "O" and any(isinstance(value, str) for value in column)):
            raise TypeError  # "4" would have been read as a number
        else:
            out = np.asarray(pd.Series(column).to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        hint = "numbers or datetimes" if what == "time" else "numbers"
        raise InputError(f"{name}: {what} must be {hint}, not {column.dtype}") from None
    if what == "rating" and np.isinf(out).any():
        raise InputError(f"{name}: rating holds infinity; finite numbers are needed")
    if np.isposinf(out).any():
        raise InputError(f"{name}: time holds infinity: give finite numbers, or −inf for the oldest")
    if np.isnan(out).any():
        row = int(np.flatnonzero(np.isnan(out))[0])
        raise InputError(f"{name}: row {row} of {what} is missing; drop such rows or fill them in")
    return out
