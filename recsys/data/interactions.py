"""Interactions: who liked what, with string ids, ratings, times and features."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import InputError, counted


@dataclass(frozen=True)
class Interactions:
    """Pairs of users and items, one row each, no pair twice.

    Attributes
    ----------
    users, items : (pairs,) int32
        Indices into the id arrays.
    user_ids, item_ids : (users,), (items,) object
        Ids as text, exactly as they were read, in order of first appearance.
    rating : (pairs,) float64, optional
    time : (pairs,) float64, optional
        Any unit; only the order within a user, or overall, is used. −inf is "oldest".
    user_features, item_features : DataFrame, optional
        One row per id, aligned; titles are the column `title`.
    notes : tuple of str
        What reading did that the user should know: duplicates merged, rows dropped.
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

    @classmethod
    def from_ids(
        cls,
        users: NDArray[np.object_],
        items: NDArray[np.object_],
        rating: NDArray[np.float64] | None = None,
        time: NDArray[np.float64] | None = None,
        name: str = "interactions",
        notes: tuple[str, ...] = (),
    ) -> Interactions:
        """Index ids and merge repeated pairs.

        Of a repeated pair the latest row is kept (by time, else by position), and the
        number merged is noted, with how many of them disagreed on the rating.

        Parameters
        ----------
        users, items : (rows,) object
            Ids as text.
        rating, time : (rows,) float64, optional
        name : str
        notes : tuple of str

        Raises
        ------
        InputError
            If there is no row.
        """
        if len(users) == 0:
            raise InputError(f"{name}: no interactions")
        u, user_ids = pd.factorize(users)
        i, item_ids = pd.factorize(items)
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
        if self.item_features is None or "title" not in self.item_features:
            return self.item_ids
        titles = self.item_features["title"].to_numpy(dtype=object)
        return np.where(pd.isna(titles) | (titles == ""), self.item_ids, titles)

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
            return self
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

    @staticmethod
    def lookup(what: str, known: NDArray[np.object_], ids: list[str]) -> NDArray[np.int64]:
        """Return the positions of ids among the known ones; `what` is "user" or "item".

        Raises
        ------
        InputError
            If some are unknown, naming them.
        """
        found = pd.Index(known).get_indexer(pd.Index(ids, dtype=object))
        if (found < 0).any():
            absent = [ids[k] for k in np.flatnonzero(found < 0)]
            more = f" and {len(absent) - 5} more" if len(absent) > 5 else ""
            shown = ", ".join(repr(name[:60]) for name in absent[:5])
            raise InputError(
                f"unknown {what} id {shown}{more}; there are {len(known):,}, such as {known[0]!r}"
            )
        return found.astype(np.int64)
