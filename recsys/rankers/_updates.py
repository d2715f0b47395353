"""Users that come and go without a refit: the linear kernel's matrix gives its counts back."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.rankers.base import expect
from recsys.utils.validation import check_ids, clean_matrix


def row_digests(rows: sp.csr_matrix) -> NDArray[np.int64]:
    """Return a 64-bit digest of each row's set of items; 0 for an empty row. (rows,) int64.

    The sum, modulo 2⁶⁴, of a mixing of each item (SplitMix64): the order of items is of no account.
    """
    z = (rows.indices.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    total = np.concatenate(([np.uint64(0)], np.cumsum(z ^ (z >> np.uint64(31)), dtype=np.uint64)))
    return (total[rows.indptr[1:]] - total[rows.indptr[:-1]]).view(np.int64)


class CountUpdates:
    """`partial_fit` and `forget` of rankers whose Gram matrix is the dense normalised co-occurrence.

    `row_digests_` tells each user's row from any other, so that what was never added is not taken out.
    """

    name: ClassVar[str]
    n_users_: int
    n_items_: int
    popularity_: NDArray[np.float32]
    row_digests_: NDArray[np.int64]
    times_: sp.csr_matrix | None

    def partial_fit(self, user_items: Any, *, times: Any = None) -> Any:
        """Add users, (new users, items): the result is that of a refit with them, without the old rows.

        For the linear kernel in the dense form, whose counts its entries give back exactly. `times`, of
        the same shape, are kept for the new users where the ranker reads any (`recency`); without them
        their likes are equally recent.

        Raises
        ------
        InputError, NotFittedError
            For another kernel or form, or an item that more than four million users like: fit again.
        """
        self._check_fitted()  # type: ignore[attr-defined]
        rows = clean_matrix(user_items, n_items=self.n_items_)
        when = self._times_of_rows(None, rows, times)  # type: ignore[attr-defined]
        self._add_rows(rows, 1)
        if when is not None or self.times_ is not None:
            old = (
                self.times_ if self.times_ is not None else sp.csr_matrix((self.n_users_, self.n_items_))
            )
            new = np.zeros(rows.nnz) if when is None else when
            added = sp.csr_matrix((new, rows.indices, rows.indptr), rows.shape)
            self.times_ = sp.csr_matrix(sp.vstack([old, added]))
        self.row_digests_ = np.concatenate([self.row_digests_, row_digests(rows)])
        self.n_users_ += rows.shape[0]
        return self

    def forget(self, userid: int, user_items: Any) -> Any:
        """Take a user's row, (1, items), out: the result is that of a refit with the row empty.

        Raises
        ------
        InputError, NotFittedError
            As for `partial_fit`; for a row that is not the user's, or was taken out before.
        """
        self._check_fitted()  # type: ignore[attr-defined]
        user = int(check_ids("userid", userid, self.n_users_)[0])
        row = clean_matrix(user_items, n_items=self.n_items_, n_rows=1)
        self._check_updates()
        if not self.row_digests_[user]:
            raise InputError(
                f"user {user} has no likes in this ranker: forgotten before, or never had any"
            )
        if row_digests(row)[0] != self.row_digests_[user]:
            raise InputError(
                f"the row of {row.nnz} likes is not the one user {user} was fitted with: pass that row"
            )
        self._add_rows(row, -1)
        self.row_digests_ = self.row_digests_.copy()
        self.row_digests_[user] = 0
        if self.times_ is not None:
            kept = np.ones(self.n_users_)
            kept[user] = 0.0
            self.times_ = sp.csr_matrix(sp.diags(kept) @ self.times_)
            self.times_.eliminate_zeros()
        return self

    def _remember(self, liked: sp.csr_matrix) -> None:
        vars(self).pop("row_digests_", None)
        if self._counted():
            self.row_digests_ = row_digests(liked)

    def _counted(self) -> bool:
        """Return whether the Gram matrix is the normalised co-occurrence."""
        return True

    def _check_updates(self) -> None:
        if not self._counted():
            raise InputError(f"{self.name} with votes or windows is not updated: fit again instead")
        if not hasattr(self, "row_digests_"):
            raise InputError("this file was written before rows were told apart: fit again instead")

    def _add_rows(self, rows: sp.csr_matrix, sign: int) -> None:
        """Change co-occurrence counts by these rows, and the kernel with them."""
        self._check_updates()
        nothing = sp.csr_matrix(rows.shape, dtype=np.float32)
        counts = self.counts  # type: ignore[attr-defined]
        taken, added = (nothing, rows) if sign > 0 else (rows, nothing)
        vectors = counts.vectors + (rows.shape[0] if sign > 0 else 0)
        self._keep(counts.changed(taken, added, vectors))  # type: ignore[attr-defined]
        self.popularity_ = self.sizes_.astype(np.float32)  # type: ignore[attr-defined]

    def _check_state(self) -> None:
        super()._check_state()  # type: ignore[misc]
        if hasattr(self, "row_digests_"):
            expect("row_digests_", self.row_digests_, (self.n_users_,), np.int64)
