"""The Ranker protocol: the calls of implicit's `RecommenderBase`, checked, and the hooks of a ranker.

A ranker subclasses `Ranker` as a dataclass whose fields are its parameters. It writes `_fit(data)` and
`_scores(rows, users)`, and, if it can, `_explain`, `_item_similarity` and `_user_similarity`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys import errors
from recsys.errors import CapabilityError
from recsys.rankers.protocol import (
    CHECKS,
    Callback,
    Candidate,
    Check,
    Data,
    Explanation,
    Floats,
    Ints,
    Lists,
    Recommendations,
    Rows,
    Shares,
    Users,
    aligned,
    best_items,
    checked_data,
    checked_times,
    nearest,
)
from recsys.rankers.registry import read_ranker, write_ranker
from recsys.registry import check_parameters
from recsys.utils.progress import bar_of_fit
from recsys.utils.topn import allowed_items
from recsys.utils.validation import check_ids, check_integer, clean_matrix

DENSE_ITEMS = 8_000  # up to which matrices of all pairs of items are made
# Numbers of items for which `auto` tries a candidate.
SMALL, MEDIUM, LARGE = (0, DENSE_ITEMS), (2_000, DENSE_ITEMS), (DENSE_ITEMS + 1, np.inf)

# What a ranker can do, and the method that says so.
ABILITIES = {
    "explain": "_explain",
    "similar-items": "_item_similarity",
    "similar-users": "_user_similarity",
    "cold-items": "_item_vectors",
    "cold-users": "_history_features",
    "embeddings": "item_embeddings",
}


class Ranker:
    """Base of all rankers; the protocol is that of implicit's `RecommenderBase`.

    Parameters are the dataclass fields of the subclass. Those that several rankers have:

    Parameters
    ----------
    factors : int ≥ 1
        Rank: number of components of the model.
    regularization : float ≥ 0
    degree : int from 2 to 6
        Highest order of the products of features.
    iterations : int ≥ 1
        Largest number of passes.
    learning_rate : float > 0
    neg_prop : int ≥ 1
        Items sampled as negative per liked item.
    top_k : int ≥ 1, optional
        Number of neighbors: of the most similar items that predict an item. None is all.
    votes : float ≥ 0
        Exponent of user weights |profile|^−votes; 0 gives equal weights.
    recency : float ≥ 0
        With times, an interaction with k newer ones in its profile has the weight (k + 1)^−recency; 0
        gives equal weights.
    num_threads : int ≥ 0
        Threads of the fit; 0 for all.
    random_state : int ≥ 0

    Attributes
    ----------
    n_users_, n_items_ : int
    popularity_ : (items,) float32
        Users per item at fit.
    times_ : (users, items) float64 CSR
        Time of each interaction, for rankers that use times.

    Examples
    --------
    >>> import numpy as np
    >>> from recsys import EASE
    >>> likes = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]])
    >>> model = EASE(regularization=1.0).fit(likes, show_progress=False)
    >>> model.recommend(0, likes[[0]], N=1).ids
    array([2], dtype=int32)
    """

    name: ClassVar[str]
    capabilities: ClassVar[frozenset[str]] = frozenset()  # of `ABILITIES`, "fold-in" and "times"
    uses: ClassVar[frozenset[str]] = frozenset()  # item_features, item_texts, user_features, times
    folds_in: ClassVar[bool] = True  # whether rows alone, of users not in the fit, can be scored
    weighted: ClassVar[bool] = False  # whether weights of interactions count
    needs: ClassVar[str] = ""  # an optional module that `fit` imports
    # For tuning: by parameter a tuple of choices, or ("real" or "log", low, high); "times" comes last if
    # only protocols in time search it. `searched_where` restricts a parameter to values of another one.
    search_space: ClassVar[dict[str, Any]] = {}
    searched_where: ClassVar[dict[str, tuple[str, tuple[Any, ...]]]] = {}
    checks: ClassVar[dict[str, Check]] = CHECKS  # by parameter; None passes where it is the default
    candidates: ClassVar[tuple[Candidate, ...]] = ()  # settings for `auto`
    offered: ClassVar[tuple[str, ...]] = ("",)  # settings in lists of models
    n_users_: int
    n_items_: int
    popularity_: NDArray[np.float32]
    times_: sp.csr_matrix | None = None

    def __init_subclass__(cls) -> None:
        """Derive the abilities from the methods of the class."""
        super().__init_subclass__()
        able = {name for name, method in ABILITIES.items() if hasattr(cls, method)}
        able |= {"fold-in"} if cls.folds_in else set()
        cls.capabilities = frozenset(able | (cls.uses & {"times"}))

    # What a ranker writes

    def _check_parameters(self) -> None:
        """Raise an InputError for parameters out of range."""
        for name, check in self.checks.items():
            value = getattr(self, name, None)
            if value is not None or getattr(type(self), name, None) is not None:
                check(name, value)

    def _fit(self, data: Data) -> None:
        """Fit; attributes whose names end in _ are kept in files."""
        raise NotImplementedError

    def _scores(self, rows: Rows, users: Users = None) -> NDArray[np.floating]:
        """Return new finite scores, (rows, items); `users` are None for rows of others than the fit's.

        `_explain(rows, items, users)` returns the `Shares` of some items in each row's scores, aligned
        with its indices, `items` an array for each row; `_item_similarity(ids)` (ids, items)
        similarities, and `_user_similarity(ids)` those of users.
        """
        raise NotImplementedError

    def _best(self, rows: Rows, N: int, skip_liked: bool, mask: NDArray[np.uint8]) -> Lists | None:
        """Return lists of N made without the scores of all items, or None."""
        return None

    def reads_times(self) -> bool:
        """Return whether scores depend on times of interactions."""
        return "times" in self.uses and getattr(self, "recency", 1.0) > 0

    def falls_back(self, users: Users, rows: sp.csr_matrix) -> NDArray[np.bool_]:
        """Return a mask of the rows without information; their scores are popularities."""
        return np.diff(rows.indptr) == 0

    # Parameters

    def __sklearn_tags__(self) -> Any:
        # Asked for before a search fits, which counts an error of its scorer as NaN.
        if not self.folds_in:
            raise CapabilityError(
                f"{self.name} cannot rank users it was not fitted on: use evaluate or recsys.tuning"
            )
        from sklearn.base import BaseEstimator  # late: it takes half a second

        return BaseEstimator().__sklearn_tags__()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` is ignored."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; `fit` checks the values."""
        check_parameters(f"ranker {self.name!r}", params, self.get_params())
        for key, value in params.items():
            setattr(self, key, value)
        return self

    @classmethod
    def arrange(cls, params: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of the constructor for parameters by name."""
        known = [f.name for f in dataclasses.fields(cls)]  # type: ignore[arg-type]
        check_parameters(f"ranker {cls.name!r}", params, known)
        return params

    def _saved_params(self) -> dict[str, Any]:
        """Return the parameters as JSON values, for a file."""
        return self.get_params()

    def wanted(self) -> frozenset[str]:
        """Return the side information that a fit with these parameters uses."""
        return self.uses if self.reads_times() else self.uses - {"times"}

    # The protocol

    def fit(
        self,
        user_items: Any,
        show_progress: bool = True,
        callback: Callback | None = None,
        *,
        item_features: Any = None,
        user_features: Any = None,
        times: Any = None,
    ) -> Self:
        """Fit on liked items.

        Parameters
        ----------
        user_items : (users, items) sparse matrix or array
            Values above 0 are liked items. Rows may be empty.
        show_progress : bool
            Whether to show a progress bar in a terminal or notebook after three seconds.
        callback : callable, optional
            Called as callback(iteration, seconds, loss) by iterative fits.
        item_features, user_features : (items, …), (users, …) matrix or array, optional
            Finite numbers; ignored by rankers that do not use them.
        times : (users, items) sparse matrix, optional
            Positive time of each interaction, in any unit. A time of 0 is unknown and counts as the
            oldest. Times that are all equal are ignored.
        """
        self._check_parameters()
        data = checked_data(user_items, times, item_features, user_features)
        data = dataclasses.replace(data, show_progress=show_progress, callback=callback)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        with bar_of_fit(show_progress):
            self._fit(data)
        if data.times is not None and self.reads_times():
            self.times_ = data.times
        self.n_users_, self.n_items_ = data.liked.shape
        self.popularity_ = np.bincount(data.liked.indices, minlength=self.n_items_).astype(np.float32)
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
        *,
        times: Any = None,
    ) -> Recommendations:
        """Return the best items for one user or several.

        Parameters
        ----------
        userid : int or (users,) int array
            Row numbers of the fit. With `recalculate_user` they are only labels.
        user_items : (users asked for, items) sparse matrix
            One row per user in `userid`, in that order.
        N : int ≥ 1
            Length of a list; shorter if there are fewer candidates.
        filter_already_liked_items : bool
            Whether to leave out the items of the row; with `items` they come last instead.
        filter_items, items : int array, optional
            Items to leave out, or the only items to rank; not both. As in implicit, the list has all of
            `items`; liked ones are last, by index and with the lowest float32 as score, unless
            `filter_already_liked_items` is False.
        recalculate_user : bool
            Whether to rank by these rows, also for users who were not in the fit.
        times : (users asked for, items) sparse matrix, optional
            Time of each interaction of these rows, as in `fit`. By default, users of the fit have the
            times of the fit, and interactions of other rows are equally recent.

        Returns
        -------
        (ids, scores)
            Best first, ties by item index. For one user, arrays of up to N items; for several users,
            (users, N), padded with id −1 and the lowest float32.
        """
        users, rows = self._request(userid, user_items, recalculate_user, times)
        N, allowed = check_integer("N", N, 1), allowed_items(self.n_items_, filter_items, items)
        ids, best = best_items(self, users, rows, N, filter_already_liked_items, allowed)
        empty = self.falls_back(users, rows.matrix)
        if np.ndim(userid) == 0:
            kept = ids[0] >= 0
            return Recommendations(ids[0][kept], best[0][kept], bool(empty[0]))
        return Recommendations(ids, best, empty)

    def scores(
        self,
        userids: int | ArrayLike,
        user_items: Any,
        recalculate_user: bool = False,
        *,
        times: Any = None,
    ) -> NDArray[np.float32]:
        """Return the scores of all items, (users asked for, items); parameters as of `recommend`."""
        return self._all_scores(*self._request(userids, user_items, recalculate_user, times))

    def explain(
        self,
        userid: int,
        user_items: Any,
        itemid: int,
        N: int = 10,
        *,
        recalculate_user: bool = False,
        times: Any = None,
    ) -> Explanation:
        """Return the N largest contributions of one user's liked items to the score of an item.

        The bias includes the others. Other parameters: as of `recommend`.
        """
        self._check_capability("explain")
        item, N = check_integer("itemid", itemid, 0), check_integer("N", N, 1)
        userid = check_integer("userid", userid, 0)
        row = clean_matrix(user_items, n_items=self.n_items_, n_rows=1)
        options = {"recalculate_user": recalculate_user, "times": times}
        [(scores, [shares])] = self.shares(userid, row, [[item]], **options)
        order, score = np.argsort(-np.abs(shares), kind="stable")[:N], float(scores[0])
        ids, values = row.indices[order].tolist(), shares[order].tolist()
        return Explanation(score, score - sum(values), list(zip(ids, values, strict=True)))

    def shares(
        self,
        userid: int | ArrayLike,
        user_items: Any,
        items: Sequence[ArrayLike],
        *,
        recalculate_user: bool = False,
        times: Any = None,
    ) -> list[Shares]:
        """Return (scores, shares) of some items of each user, (n,) and (n, liked) float64.

        Shares are in the order of the row's indices; `items` are an int array for each user. Other
        parameters: as of `recommend`.
        """
        self._check_capability("explain")
        users, rows = self._request(userid, user_items, recalculate_user, times)
        ids = [check_ids("itemid", some, self.n_items_) for some in items]
        full = np.diff(rows.matrix.indptr) > 0
        out: list[Shares] = []
        if full.any():
            some = rows if full.all() else Rows(rows.matrix[full], rows.times)
            listed = [of for of, liked in zip(ids, full, strict=True) if liked]
            out = self._explain(some, listed, None if users is None else users[full])  # type: ignore[attr-defined]
        for k in np.flatnonzero(~full).tolist():
            scores = self._all_scores(None if users is None else users[k : k + 1], rows.part(k, k + 1))
            out.insert(k, (scores[0, ids[k]].astype(float), np.zeros((len(ids[k]), 0))))
        return out

    def similarities(self, items: ArrayLike, others: ArrayLike) -> NDArray[np.floating]:
        """Return the similarities between items, as in `similar_items`."""
        self._check_capability("similar-items")
        return self._similarities(*(check_ids("items", ids, self.n_items_) for ids in (items, others)))

    def _similarities(self, items: Ints, others: Ints) -> NDArray[np.floating]:
        return self._item_similarity(items)[:, others]  # type: ignore[attr-defined, no-any-return]

    def similar_items(
        self,
        itemid: int | ArrayLike,
        N: int = 10,
        recalculate_item: bool = False,
        item_users: Any = None,
        filter_items: ArrayLike | None = None,
        items: ArrayLike | None = None,
    ) -> Lists:
        """Return the items most similar to one or several items, including these items.

        Parameters and result: as of `recommend`; `recalculate_item` must be False.
        """
        self._check_capability("similar-items")
        if recalculate_item:
            raise CapabilityError(f"{self.name} cannot recalculate items: pass recalculate_item=False")
        allowed = allowed_items(self.n_items_, filter_items, items)
        ids = check_ids("itemid", itemid, self.n_items_)
        return nearest(self._item_similarity, ids, N, allowed, np.ndim(itemid) == 0)  # type: ignore[attr-defined]

    def similar_users(
        self,
        userid: int | ArrayLike,
        N: int = 10,
        filter_users: ArrayLike | None = None,
        users: ArrayLike | None = None,
    ) -> Lists:
        """Return the users most similar to one or several users, including these users."""
        self._check_capability("similar-users")
        allowed = allowed_items(self.n_users_, filter_users, users, "users")
        ids = check_ids("userid", userid, self.n_users_)
        return nearest(self._user_similarity, ids, N, allowed, np.ndim(userid) == 0)  # type: ignore[attr-defined]

    def save(self, path: str | Path, others: dict[str, Any] | None = None) -> None:
        """Write the fitted ranker, with other arrays by name, to `path` atomically."""
        self._check_fitted()
        write_ranker(path, self, others or {})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a ranker from a file of `save`."""
        return read_ranker(path, cls)[0]  # type: ignore[no-any-return]

    def _all_scores(self, users: Users, rows: Rows) -> NDArray[Any]:
        """Return the scores of all items, (rows, items); of rows that fall back popularity."""
        out = self._scores(rows, users)
        empty = self.falls_back(users, rows.matrix)
        if empty.any():
            out[empty] = self.popularity_
        return out

    # Checks

    def _request(
        self, userid: Any, user_items: Any, recalculate: bool, times: Any
    ) -> tuple[Users, Rows]:
        self._check_fitted()
        if recalculate and not self.folds_in:
            raise CapabilityError(
                f"{self.name} cannot rank users it was not fitted on (recalculate_user)"
            )
        userids = check_ids("userid", userid, None if recalculate else self.n_users_)
        rows = clean_matrix(user_items, n_items=self.n_items_, n_rows=len(userids))
        users = None if recalculate else userids
        return users, Rows(rows, self._times_of_rows(users, rows, times))

    def _times_of_rows(self, users: Users, rows: sp.csr_matrix, times: Any) -> Floats | None:
        """Return the times of the rows' interactions; None where none are known or none are read."""
        given = checked_times(times, rows.shape)
        if not self.reads_times():
            return None
        if given is not None:
            return aligned(rows, given)
        return None if users is None or self.times_ is None else aligned(rows, self.times_, users)

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_items_"):
            raise errors.NotFittedError(f"this {self.name} ranker is not fitted: call fit(user_items)")

    def _check_capability(self, capability: str) -> None:
        self._check_fitted()
        if capability not in self.capabilities:
            can = ", ".join(sorted(self.capabilities)) or "nothing beyond recommend"
            other = "; Recommender.explain has other reasons" if capability == "explain" else ""
            raise CapabilityError(f"{self.name} has no {capability}; it offers: {can}{other}")
