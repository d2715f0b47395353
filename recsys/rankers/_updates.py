"""Exact updates of users and items without a refit: inputs are checked here, each ranker counts."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.errors import CapabilityError, InputError, counted
from recsys.rankers.base import Ranker, checked_times, expect
from recsys.utils.digests import row_digests
from recsys.utils.recency import aligned
from recsys.utils.sparse import binary, enlarged, entries_of, masked, with_rows
from recsys.utils.validation import MOST as MOST_ITEMS
from recsys.utils.validation import check_ids, check_integer, check_real, clean_matrix

MOST = 2**24  # users of one item that `popularity_`, float32, counts exactly


class Updatable(Ranker):
    """A ranker that takes new, changed and forgotten rows as if it were fitted again with them.

    A subclass calls `_remember(liked)` in `_fit` and defines `_change_rows` and `_extend`, and
    `_check_updates` if not all of its settings can be updated. These methods compute everything before
    they change the ranker, so that an error leaves it as it was. They replace arrays instead of writing
    into them, so that shallow copies made before do not change: a service answers requests from such a
    copy.

    Attributes
    ----------
    row_digests_ : (users,) int64
        Digests that identify each user's row, so that only rows that were added can be removed.
    """

    row_digests_: NDArray[np.int64]

    def partial_fit(self, user_items: Any, *, times: Any = None) -> Self:
        """Append users: the result is that of a refit with them.

        Parameters
        ----------
        user_items : (new users, items) sparse matrix or array
        times : the same shape, optional
            Time of each interaction, where the ranker reads times; without them these interactions are
            equally recent.

        Raises
        ------
        InputError, CapabilityError, NotFittedError
            The ranker is then as it was.
        """
        self.check_updates()
        rows = clean_matrix(user_items, n_items=self.n_items_)
        when = self._times_of_rows(None, rows, times)
        users = np.arange(self.n_users_, self.n_users_ + rows.shape[0])
        self._change(users, sp.csr_matrix(rows.shape, dtype=np.float32), rows, when)
        return self

    def update_rows(self, userids: ArrayLike, before: Any, after: Any, *, times: Any = None) -> Self:
        """Change rows of known users: the result is that of a refit with the new rows.

        Parameters
        ----------
        userids : int or (users,) int array
            No user twice.
        before, after : (users, items) sparse matrix or array
            The rows until now, checked against the digests that the ranker keeps, and the new rows.
        times : the same shape, optional
            When each interaction of `after` happened. Without them interactions that stay keep their
            times, and new ones have none: they count as oldest.

        Raises
        ------
        InputError, CapabilityError, NotFittedError
            Also for a row that is not the user's. The ranker is then as it was.
        """
        self.check_updates()
        users = check_ids("userids", userids, self.n_users_)
        unique, counts = np.unique(users, return_counts=True)
        if len(unique) < len(users):
            raise InputError(
                f"userids hold user {unique[counts > 1][0]} twice: pass the last row of each user once"
            )
        old = clean_matrix(before, n_items=self.n_items_, n_rows=len(users), name="before")
        new = clean_matrix(after, n_items=self.n_items_, n_rows=len(users), name="after")
        self._check_rows(users, old)
        self._change(users, old, new, self._times_of_rows(users, new, times))
        return self

    def forget(self, userid: int, user_items: Any) -> Self:
        """Take a user's row, (1, items), out: the result is that of a refit with the row empty.

        Raises
        ------
        InputError, CapabilityError, NotFittedError
            As for `update_rows`; for a user without interactions, such as one forgotten before.
        """
        self.check_updates()
        users = check_ids("userid", userid, self.n_users_)
        if len(users) != 1:
            raise InputError(f"forget takes one user at a time, not {len(users)}: call it for each")
        row = clean_matrix(user_items, n_items=self.n_items_, n_rows=1)
        if not self.row_digests_[users[0]]:
            raise InputError(
                f"user {users[0]} has no interactions in this ranker: forgotten before, or never had any"
            )
        self._check_rows(users, row)
        self._change(users, row, sp.csr_matrix(row.shape, dtype=np.float32), None)
        return self

    def add_items(self, count: int) -> Self:
        """Append `count` cold items to the catalogue.

        Raises
        ------
        InputError, CapabilityError, NotFittedError
        """
        self.check_updates()
        items = self.n_items_ + check_integer("count", count, 1, MOST_ITEMS - self.n_items_)
        popularity = np.concatenate([self.popularity_, np.zeros(items - self.n_items_, np.float32)])
        self._extend(items)
        self.n_items_, self.popularity_ = items, popularity
        if self.times_ is not None:
            self.times_ = enlarged(self.times_, (self.n_users_, items))
        return self

    def forget_before(self, time: float, user_items: Any, times: Any) -> Self:
        """Remove all interactions older than `time`, as a sliding window does.

        Parameters
        ----------
        time : float ≥ 0
            In the unit of the times.
        user_items, times : (users, items) sparse matrix
            All rows that the ranker was fitted on, and their times; a time of 0, or none, is unknown and
            counts as oldest.

        Raises
        ------
        InputError, CapabilityError, NotFittedError
            As for `update_rows`.
        """
        self.check_updates()
        time = check_real("time", time, 0.0)
        rows = clean_matrix(user_items, n_items=self.n_items_, n_rows=self.n_users_)
        known = checked_times(times, rows.shape)
        if known is None:
            raise InputError("forget_before needs times: when each interaction of user_items happened")
        given = aligned(rows, known)
        everybody = np.arange(self.n_users_)
        self._check_rows(everybody, rows)
        kept = given >= time
        left = masked(rows, kept)
        changed = np.flatnonzero(np.diff(left.indptr) < np.diff(rows.indptr))
        after = left[changed]
        when = entries_of(left, given[kept])[changed].data
        self._change(changed, rows[changed], after, when if self.times_ is not None else None)
        return self

    def check_updates(self) -> None:
        """Refuse what this ranker, as it was fitted, has no exact updates for.

        Raises
        ------
        CapabilityError, NotFittedError
        """
        self._check_fitted()
        self._check_updates()
        if not hasattr(self, "row_digests_"):
            raise CapabilityError(
                f"this {self.name} was written before digests of rows were kept: fit again instead"
            )

    # What a ranker writes

    def _change_rows(self, taken: sp.csr_matrix, added: sp.csr_matrix, users: int) -> None:
        """Take rows out and add others, (changed users, items) float32 ones: each whole row.

        Rows of new users are empty before. `users` is `n_users_` afterwards; it and `popularity_` are
        still the old ones.
        """
        raise NotImplementedError

    def _extend(self, items: int) -> None:
        """Grow the catalogue to `items` items; `n_items_` is still the old number."""
        raise NotImplementedError

    def _check_updates(self) -> None:
        """Refuse settings that cannot be updated, by a CapabilityError that says so."""

    # Shared

    def _remember(self, liked: sp.csr_matrix) -> None:
        self.row_digests_ = row_digests(liked)

    def _check_rows(self, users: NDArray[np.int64], rows: sp.csr_matrix) -> None:
        wrong = np.flatnonzero(row_digests(rows) != self.row_digests_[users])
        if len(wrong):
            first = wrong[0]
            likes = counted(int(rows.indptr[first + 1] - rows.indptr[first]), "interaction")
            raise InputError(
                f"the row of {likes} is not the one user {users[first]} was fitted with: pass that row"
            )

    def _change(
        self,
        users: NDArray[np.int64],
        before: sp.csr_matrix,
        after: sp.csr_matrix,
        when: NDArray[np.float64] | None,
    ) -> None:
        """Commit rows that passed every check: all of it, or nothing."""
        n_users = max(self.n_users_, int(users.max(initial=-1)) + 1)
        popularity = self.popularity_.astype(np.float64)
        popularity += np.bincount(after.indices, minlength=self.n_items_)
        popularity -= np.bincount(before.indices, minlength=self.n_items_)
        if popularity.max() > MOST:
            raise InputError(
                f"an item would have more than {MOST:,} users, which float32 cannot count: drop some"
            )
        if popularity.min() < 0:
            raise InputError("a row to be removed has items without users: fit again instead")
        digests = np.zeros(n_users, dtype=np.int64)
        digests[: self.n_users_] = self.row_digests_
        digests[users] = row_digests(after)
        times = self._changed_times(users, after, when, n_users)
        moved = np.flatnonzero(digests[users] != row_digests(before))
        taken, added = binary(before[moved], np.float32), binary(after[moved], np.float32)
        self._change_rows(taken, added, n_users)
        self.n_users_, self.popularity_ = n_users, popularity.astype(np.float32)
        self.row_digests_ = digests
        if times is not None:
            self.times_ = times

    def _changed_times(
        self,
        users: NDArray[np.int64],
        after: sp.csr_matrix,
        when: NDArray[np.float64] | None,
        n_users: int,
    ) -> sp.csr_matrix | None:
        """Return the times of all interactions after some rows changed; None where none are known."""
        if when is None and self.times_ is None:
            return None
        shape = (n_users, self.n_items_)
        old = sp.csr_matrix(shape) if self.times_ is None else enlarged(self.times_, shape)
        return with_rows(old, users, entries_of(after, np.zeros(after.nnz) if when is None else when))

    def _check_state(self) -> None:
        super()._check_state()
        if hasattr(self, "row_digests_"):
            expect("row_digests_", self.row_digests_, (self.n_users_,), np.int64)


class CountUpdates(Updatable):
    """Updates of rankers whose model is the counts of the CF-KOMD family."""

    def _counted(self) -> bool:
        """Return whether every row counts once, whatever else is in it."""
        return True

    def _check_updates(self) -> None:
        if not self._counted():
            raise CapabilityError(f"{self.name} with votes or windows is not updated: fit again instead")

    def _change_rows(self, taken: sp.csr_matrix, added: sp.csr_matrix, users: int) -> None:
        self._keep(self.counts.changed(taken, added, users))  # type: ignore[attr-defined]

    def _extend(self, items: int) -> None:
        self._keep(self.counts.extended(items))  # type: ignore[attr-defined]
