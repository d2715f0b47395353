"""The Ranker protocol: checks, blocks, top-N with its padding, ties and filters, in one place.

A ranker subclasses `Ranker` as a dataclass whose fields are its parameters, and writes
`_fit` and `_scores` (and `_explain`, `_item_similarity`, `_user_similarity` where its
`capabilities` say so). Everything a caller can get wrong is refused here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.errors import CapabilityError, InputError, NotFittedError
from recsys.utils.topn import LOWEST, Candidates, candidates, top_n
from recsys.utils.validation import check_ids, check_integer, clean_matrix

BLOCK_BYTES = 64_000_000

Callback = Callable[..., Any]


class Recommendations(tuple[NDArray[np.int32], NDArray[np.float32]]):
    """The pair (ids, scores), with `fallback`: which users had no liked item.

    For those the scores are popularities (numbers of users per item), since there is
    nothing to personalise with. A bool for a single user, else a boolean array.
    """

    fallback: bool | NDArray[np.bool_]

    def __new__(
        cls,
        ids: NDArray[np.int32],
        scores: NDArray[np.float32],
        fallback: bool | NDArray[np.bool_] = False,
    ) -> Self:
        """Make the pair."""
        pair = super().__new__(cls, (ids, scores))
        pair.fallback = fallback
        return pair

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return what `__new__` takes: copies are made by calling it, and a tuple would give it one."""
        return (*self, self.fallback)

    @property
    def ids(self) -> NDArray[np.int32]:
        """Item indices, best first."""
        return self[0]

    @property
    def scores(self) -> NDArray[np.float32]:
        """Their scores, non-increasing."""
        return self[1]


@dataclass(frozen=True)
class Explanation:
    """Why a score is what it is: score = bias + the contributions' sum.

    Attributes
    ----------
    score : float
        The item's score for this user.
    bias : float
        What the listed items do not account for: the model's constant, and the liked
        items beyond the N listed.
    contributions : list of (int, float)
        Liked items and their shares, largest magnitude first.
    """

    score: float
    bias: float
    contributions: list[tuple[int, float]] = field(default_factory=list)


class Ranker:
    """Base of all rankers; the protocol is that of implicit's `RecommenderBase`.

    Attributes
    ----------
    capabilities : frozenset of str
        Among "fold-in" (ranks rows of users never seen), "explain", "similar-items",
        "similar-users", "cold-items" and "cold-users" (ranks those without likes by their features),
        "embeddings".
    n_users_, n_items_ : int
        Sizes at fit.
    popularity_ : (items,) float32
        Users per item at fit.
    """

    name: ClassVar[str]
    capabilities: ClassVar[frozenset[str]] = frozenset()
    n_users_: int
    n_items_: int
    popularity_: NDArray[np.float32]

    def fit(self, user_items: Any, show_progress: bool = True, callback: Callback | None = None) -> Self:
        """Fit on liked items.

        Parameters
        ----------
        user_items : (users, items) sparse matrix or array
            A value above 0 is liked. CSR is taken as it is, other formats are converted.
            Rows may be empty. Never changed.
        show_progress : bool
            Show a progress bar where fitting iterates.
        callback : callable, optional
            Called as callback(iteration, seconds, loss) where fitting iterates.

        Returns
        -------
        Ranker
            This object.

        Raises
        ------
        InputError
            If the matrix or a parameter cannot be used.
        """
        self._check_parameters()
        liked = clean_matrix(user_items)
        users, items = liked.shape
        if users == 0 or items == 0 or liked.nnz == 0:
            raise InputError(
                f"user_items of shape ({users}, {items}) holds no liked item (no value above 0): "
                "there is nothing to fit"
            )
        self._fit(liked, show_progress, callback)
        self.n_users_, self.n_items_ = users, items
        self.popularity_ = np.bincount(liked.indices, minlength=items).astype(np.float32)
        return self

    def recommend(
        self,
        userid: int | ArrayLike,
        user_items: Any,
        N: int = 10,
        filter_already_liked_items: bool = True,
        filter_items: ArrayLike | None = None,
        recalculate_user: bool = False,
        items: ArrayLike | None = None,
    ) -> Recommendations:
        """Return the best items for one user or several.

        Parameters
        ----------
        userid : int or (users,) int array
            Row numbers at fit. With `recalculate_user` they are labels only.
        user_items : (users asked for, items) sparse matrix
            One row per user in `userid`, in that order.
        N : int ≥ 1
            How many; at most the number of candidates is returned.
        filter_already_liked_items : bool
            Leave out what the row likes; with `items` they come last instead.
        filter_items, items : int array, optional
            Items to leave out, or the only items to rank; not both. As in implicit, all of `items` are
            ranked, each once: those that the row likes by their scores too if
            `filter_already_liked_items` is False, else after all others, by index, with the
            lowest float32 as score.
        recalculate_user : bool
            Rank by the given rows, for users never seen too.

        Returns
        -------
        Recommendations
            (ids, scores): for one user 1-D, shorter than N when fewer are left; for several
            (users, N), padded with id −1 and the lowest float32. Best first, equal scores by
            item index.

        Raises
        ------
        InputError, NotFittedError
        CapabilityError
            If the ranker has no "fold-in" and `recalculate_user` is asked for.
        """
        self._check_fitted()
        N = check_integer("N", N, 1)
        single = np.ndim(userid) == 0
        userids, rows = self._check_users(userid, user_items, recalculate_user)
        allowed = candidates(self.n_items_, filter_items, items)
        width = min(N, self.n_items_ if allowed.size == 0 else allowed.size)
        ids = np.full((len(userids), width), -1, dtype=np.int32)
        best = np.full((len(userids), width), LOWEST, dtype=np.float32)
        block = max(1, BLOCK_BYTES // (4 * self.n_items_))
        for start in range(0, len(userids), block):
            part = slice(start, start + block)
            some = rows if len(userids) <= block else rows[part]  # slicing costs a call 0.05 ms
            scores = self._score_rows(userids[part], some, recalculate_user)
            top_n(
                scores, some, filter_already_liked_items, allowed.mask, ids[part], best[part],
                liked_last=allowed.listed,
            )  # fmt: skip
        empty = self._without(userids, rows, recalculate_user)
        if single:
            kept = ids[0] >= 0
            return Recommendations(ids[0][kept], best[0][kept], bool(empty[0]))
        return Recommendations(ids, best, empty)

    def scores(self, userids: int | ArrayLike, user_items: Any) -> NDArray[np.float32]:
        """Return the scores of all items, liked ones included.

        Parameters
        ----------
        userids : int or (users,) int array
        user_items : (users asked for, items) sparse matrix

        Returns
        -------
        (users asked for, items) float32
            float64 from a kernel ranker whose scores differ by less than float32 can hold: mD of a
            degree in the dozens.

        Raises
        ------
        InputError, NotFittedError
        """
        self._check_fitted()
        ids, rows = self._check_users(userids, user_items, False)
        return self._score_rows(ids, rows, False)

    def explain(self, userid: int, user_items: Any, itemid: int, N: int = 10) -> Explanation:
        """Return the shares of the user's liked items in one item's score.

        Parameters
        ----------
        userid : int
        user_items : (1, items) sparse matrix
        itemid : int
        N : int ≥ 1
            How many contributions to list; the rest is in the bias.

        Returns
        -------
        Explanation

        Raises
        ------
        InputError, NotFittedError, CapabilityError
        """
        self._check_capability("explain")
        N = check_integer("N", N, 1)
        ids, rows = self._check_users(check_integer("userid", userid, 0), user_items, False)
        item = int(check_ids("itemid", check_integer("itemid", itemid, 0), self.n_items_)[0])
        if rows.nnz == 0:
            score = float(self._score_rows(ids, rows, False)[0, item])
            return Explanation(score, score, [])
        score, shares = self._explain(int(ids[0]), rows, item)
        order = np.lexsort((rows.indices, -np.abs(shares)))[:N]
        listed = [(int(rows.indices[k]), float(shares[k])) for k in order]
        return Explanation(score, score - sum(value for _, value in listed), listed)

    def similar_items(
        self,
        itemid: int | ArrayLike,
        N: int = 10,
        recalculate_item: bool = False,
        item_users: Any = None,
        filter_items: ArrayLike | None = None,
        items: ArrayLike | None = None,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the items most similar to one item or several, themselves among them.

        Parameters
        ----------
        itemid : int or (items asked for,) int array
        N : int ≥ 1
        recalculate_item : bool
            Not offered; True is refused.
        item_users : ignored unless `recalculate_item`
        filter_items, items : int array, optional
            Items to leave out, or the only ones to consider; not both.

        Returns
        -------
        (ids, scores)
            As in `recommend`.

        Raises
        ------
        InputError, NotFittedError, CapabilityError
        """
        self._check_capability("similar-items")
        if recalculate_item:
            raise CapabilityError(f"{self.name} cannot recalculate items: pass recalculate_item=False")
        allowed = candidates(self.n_items_, filter_items, items)
        return self._nearest("itemid", itemid, self.n_items_, N, allowed, self._item_similarity)

    def similar_users(
        self,
        userid: int | ArrayLike,
        N: int = 10,
        filter_users: ArrayLike | None = None,
        users: ArrayLike | None = None,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the users most similar to one user or several, themselves among them.

        Parameters
        ----------
        userid : int or (users asked for,) int array
        N : int ≥ 1
        filter_users, users : int array, optional
            Users to leave out, or the only ones to consider; not both.

        Returns
        -------
        (ids, scores)
            As in `recommend`.

        Raises
        ------
        InputError, NotFittedError, CapabilityError
        """
        self._check_capability("similar-users")
        allowed = candidates(self.n_users_, filter_users, users, "users")
        return self._nearest("userid", userid, self.n_users_, N, allowed, self._user_similarity)

    # What a ranker writes

    def _check_parameters(self) -> None:
        """Refuse parameters out of range."""

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Callback | None) -> None:
        """Fit on a canonical CSR matrix of at least one liked item."""
        raise NotImplementedError

    def _scores(
        self, userids: NDArray[np.int64], rows: sp.csr_matrix, recalculate: bool
    ) -> NDArray[np.float32]:
        """Return a new (rows, items) array of finite scores: float32, or float64 where need be."""
        raise NotImplementedError

    def _without(
        self, userids: NDArray[np.int64], rows: sp.csr_matrix, recalculate: bool
    ) -> NDArray[np.bool_]:
        """Return for which rows there is nothing to personalise with."""
        return np.diff(rows.indptr) == 0

    def _explain(self, userid: int, row: sp.csr_matrix, item: int) -> tuple[float, NDArray[np.float64]]:
        raise NotImplementedError

    def _item_similarity(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        raise NotImplementedError

    def _user_similarity(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        raise NotImplementedError

    # Shared checks

    def _score_rows(
        self, userids: NDArray[np.int64], rows: sp.csr_matrix, recalculate: bool
    ) -> NDArray[np.float32]:
        out = self._scores(userids, rows, recalculate)
        empty = self._without(userids, rows, recalculate)
        if empty.any():
            out[empty] = self.popularity_
        return out

    def _nearest(
        self,
        what: str,
        given: Any,
        size: int,
        N: int,
        allowed: Candidates,
        similarity: Callable[[NDArray[np.int64]], NDArray[np.float32]],
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        N = check_integer("N", N, 1)
        single = np.ndim(given) == 0
        asked = check_ids(what, given, size)
        scores = similarity(asked)
        width = min(N, max(1, allowed.size))
        ids = np.full((len(asked), width), -1, dtype=np.int32)
        best = np.full((len(asked), width), LOWEST, dtype=np.float32)
        nothing = sp.csr_matrix((len(asked), size), dtype=np.float32)
        top_n(scores, nothing, False, allowed.mask, ids, best)
        if single:
            kept = ids[0] >= 0
            return ids[0][kept], best[0][kept]
        return ids, best

    def _check_users(
        self, userid: Any, user_items: Any, recalculate: bool
    ) -> tuple[NDArray[np.int64], sp.csr_matrix]:
        if recalculate and "fold-in" not in self.capabilities:
            raise CapabilityError(
                f"{self.name} cannot rank users it was not fitted on (recalculate_user)"
            )
        userids = check_ids("userid", userid, None if recalculate else self.n_users_)
        return userids, clean_matrix(user_items, n_items=self.n_items_, n_rows=len(userids))

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_items_"):
            raise NotFittedError(f"this {self.name} ranker is not fitted: call fit(user_items) first")

    def _check_capability(self, capability: str) -> None:
        self._check_fitted()
        if capability not in self.capabilities:
            can = ", ".join(sorted(self.capabilities)) or "nothing beyond recommend"
            raise CapabilityError(f"{self.name} has no {capability}; it offers: {can}")
