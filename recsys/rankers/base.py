"""The Ranker protocol: what callers call, checked, and the hooks that a ranker writes.

A ranker subclasses `Ranker` as a dataclass whose fields are its parameters, and writes `_fit` and one of
`_fold_in_scores`, which sees a row only, and `_scores`, which sees whose it is. What else it can do
follows from what else it writes (`ABILITIES`). Everything a caller can get wrong is refused here.
Lists are made in `_lists`, equal scores ordered in `_ties`; what was learned is kept by `state`.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys import errors
from recsys.errors import CapabilityError, InputError
from recsys.rankers._files import read_ranker, write_ranker
from recsys.rankers._lists import Request, best_lists, nearest, score_rows
from recsys.rankers._ties import TieOrder, check_ties
from recsys.rankers.answers import Explanation, Recommendations
from recsys.rankers.state import State, state_of, take_over
from recsys.rankers.state import expect as expect  # which rankers import from here
from recsys.registry import check_parameters
from recsys.utils import model_file
from recsys.utils.progress import bar_of_python
from recsys.utils.recency import aligned
from recsys.utils.sparse import entries_of
from recsys.utils.topn import LOWEST as LOWEST
from recsys.utils.topn import Candidates, candidates
from recsys.utils.validation import check_ids, check_integer, clean_matrix

DENSE_ITEMS = 8_000  # up to which `auto` tries models of all pairs of items

Callback = Callable[..., Any]
Shares = tuple[float, NDArray[np.float64]]  # a score, and what each interaction of the row adds to it
Times = NDArray[np.float64] | None  # of rows' interactions, aligned with their indices

# What a ranker can do, and the methods of which one's presence says so.
ABILITIES = {
    "fold-in": ("_fold_in_scores",),
    "explain": ("_explain", "_explain_items"),
    "similar-items": ("_item_similarity",),
    "similar-users": ("_user_similarity",),
    "cold-items": ("_item_vectors",),
    "cold-users": ("_rows",),
    "embeddings": ("item_embeddings",),
    "updates": ("_change_rows",),
}
SIDE_INFORMATION = frozenset(("item_features", "user_features", "times"))


@dataclass(frozen=True)
class Candidate:
    """Parameters that `auto` tries a ranker with, and for which data."""

    params: str = ""  # as after the colon of a specification: "kernel=mc,degree=2"
    least_items: int = 0
    most_items: float = np.inf
    most_likes: float = np.inf  # interactions: beyond, its fit takes too long
    timed: bool = False  # whether it is for data with times only
    described: bool = False  # whether it is for data with item features only, which it is fitted with

    def suits(self, items: int, likes: int, timed: bool = False, described: bool = False) -> bool:
        """Return whether it is tried on data of this size, with times and item features or without."""
        fits = self.least_items <= items <= self.most_items and likes <= self.most_likes
        return fits and (timed or not self.timed) and (described or not self.described)


class Ranker:
    """Base of all rankers; the protocol is that of implicit's `RecommenderBase`.

    Parameters are the dataclass fields of the subclass; `get_params`, `set_params` and
    `sklearn.base.clone` work on them. These mean the same wherever they are:

    Parameters
    ----------
    recency : float ≥ 0
        Where times are given, an interaction with k newer ones in its profile has the weight (k +
        1)^−recency; with 0 all have the same.
    ties : "popularity", optional
        Items of equal scores, including those of score 0, are ordered by popularity; cold items count
        as items of mean popularity.
    random_state : int ≥ 0

    Attributes
    ----------
    n_users_, n_items_ : int
        Sizes at fit.
    popularity_ : (items,) float32
        Users per item at fit.
    times_ : (users, items) float64 CSR
        Time of each interaction, for a ranker that was given times and reads them.

    Notes
    -----
    Under `ties` items of different scores keep their order, and `scores` are float64. Rounded to
    float32, they equal the scores without `ties`, and `recommend` and `explain` return them so.

    A class says of itself:

    capabilities : frozenset of str
        The optional methods that the class has: "fold-in" (ranks for users that were not in the fit),
        "explain", "similar-items", "similar-users", "cold-items" and "cold-users" (ranks items and users
        without interactions by their features), "embeddings", "updates" (exact updates without a refit),
        "times" (scores can depend on the ages of interactions).
    uses : frozenset of str
        Which side information it can read, when it is fitted or when it scores: among "item_features",
        "user_features", "times"; and "item_texts" under `reads_texts`.
    reads_texts : bool
        Whether its item features include the words of texts.
    dense : bool
        Whether it always stores every pair of items; `auto` then tries it on smaller catalogues only.
    needs : str
        A module that its fit needs, and that the package does not install by itself.
    search_space : dict
        Search space of `recsys.tuning`: per parameter a tuple of choices, or ("real" or "log", low,
        high). With "times" as last entry it is searched only under protocols that predict the future.
    searched_where : dict
        For a parameter that is searched only for some values of another one: the name of the other, and
        these values.
    candidates : tuple of Candidate
        The settings that `auto` tries.
    offered : tuple of str
        Parameters, as after the colon of a specification, with which lists of models offer it.

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
    capabilities: ClassVar[frozenset[str]] = frozenset()
    uses: ClassVar[frozenset[str]] = frozenset()
    dense: ClassVar[bool] = False
    reads_texts: ClassVar[bool] = False
    needs: ClassVar[str] = ""
    search_space: ClassVar[dict[str, Any]] = {}
    searched_where: ClassVar[dict[str, tuple[str, tuple[Any, ...]]]] = {}
    candidates: ClassVar[tuple[Candidate, ...]] = ()
    offered: ClassVar[tuple[str, ...]] = ("",)
    n_users_: int
    n_items_: int
    popularity_: NDArray[np.float32]
    times_: sp.csr_matrix | None = None
    ties: str | None = None  # a field of rankers that can order equal scores
    _ties: TieOrder | None = None  # made of `popularity_` when it is asked for
    parts_: list[Ranker]  # of a ranker that consists of others
    _fitted_on: ClassVar[frozenset[str]] = frozenset()  # the side information that `_fit` takes
    _scores_in_time: ClassVar[bool] = False  # whether what scores takes times

    def __init_subclass__(cls) -> None:
        """Derive what the class can do from what it implements."""
        super().__init_subclass__()
        cls.capabilities = frozenset(
            ability
            for ability, methods in ABILITIES.items()
            if any(getattr(cls, name, None) is not getattr(Ranker, name, None) for name in methods)
        )
        cls._fitted_on = _named(cls._fit) & SIDE_INFORMATION
        cls._scores_in_time = "times" in _named(cls._fold_in_scores) | _named(cls._scores)
        cls.uses = cls._fitted_on | ({"times"} if cls._scores_in_time else set())
        cls.uses |= {"item_texts"} if cls.reads_texts else set()
        cls.capabilities |= cls.uses & {"times"}

    def _repr_html_(self) -> str:
        """Return the ranker as a notebook shows it."""
        from recsys.rankers.diagram import diagram

        return diagram(self)

    def __sklearn_tags__(self) -> Any:
        # Its searches and cross-validation ask for tags before they fit, and count an error of a scorer,
        # after a fit, as NaN: what cannot rank the users of a test fold is refused here.
        if "fold-in" not in self.capabilities:
            raise CapabilityError(
                f"{self.name} cannot rank users it was not fitted on, which cross-validation by "
                "scikit-learn asks for: use recsys.evaluate or recsys.tuning"
            )
        from sklearn.base import BaseEstimator  # late: it takes half a second

        return BaseEstimator().__sklearn_tags__()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` is scikit-learn's, and changes nothing."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    @classmethod
    def arrange(cls, params: dict[str, Any]) -> dict[str, Any]:
        """Return parameters given by name as the constructor takes them.

        Raises
        ------
        InputError
            For a name that there is not, with the nearest that there is.
        """
        known = [f.name for f in dataclasses.fields(cls)]  # type: ignore[arg-type]
        check_parameters(f"ranker {cls.name!r}", params, known)
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name.

        Raises
        ------
        InputError
            If there is no such parameter; `fit` checks the values.
        """
        check_parameters(f"ranker {self.name!r}", params, self.get_params())
        for key, value in params.items():
            setattr(self, key, value)
        return self

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
            A value above 0 is liked. CSR is taken as it is, other formats are converted.
            Rows may be empty. Never changed.
        show_progress : bool
            Show a progress bar in a terminal or a notebook, from the third second on, where fitting
            has steps.
        callback : callable, optional
            Called as callback(iteration, seconds, loss) where fitting iterates.
        item_features, user_features : (items, …), (users, …) matrix or array, optional
            Features, as finite numbers. A ranker with "cold-items" or "cold-users" ranks by them items
            or users without interactions.
        times : (users, items) sparse matrix, optional
            Time of each interaction, above 0, in any unit. A time of 0 is unknown and counts as oldest.
            Times that are all equal are ignored.

        Returns
        -------
        Ranker
            This object. Side information that it does not use (see `uses`) is checked and ignored.

        Raises
        ------
        InputError
            If the matrix or a parameter cannot be used.
        """
        self.check_parameters()
        liked = clean_matrix(user_items)
        users, items = liked.shape
        if users == 0 or items == 0 or liked.nnz == 0:
            raise InputError(
                f"user_items of shape ({users}, {items}) holds no liked item (no value above 0): "
                "there is nothing to fit"
            )
        side = {
            "item_features": _features("item_features", item_features, items, "items"),
            "user_features": _features("user_features", user_features, users, "users"),
            "times": _fitted_times(liked, checked_times(times, liked.shape)),
        }
        vars(self).pop("times_", None)
        with bar_of_python(show_progress):
            self._fit(liked, show_progress, callback, **{key: side[key] for key in self._fitted_on})
        if side["times"] is not None and self.reads_times():
            self.times_ = side["times"]
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
        *,
        times: Any = None,
    ) -> Recommendations:
        """Return the best items for one user or several.

        Parameters
        ----------
        userid : int or (users,) int array
            Row numbers at fit. With `recalculate_user` they are labels only.
        user_items : (users asked for, items) sparse matrix
            One row per user in `userid`, in that order.
        N : int ≥ 1
            Length of a list; it is shorter where there are fewer candidates.
        filter_already_liked_items : bool
            Leave out the items of the row; with `items` they come last instead.
        filter_items, items : int array, optional
            Items to leave out, or the only items to rank; not both. As in implicit, all of `items` are
            ranked, each once. Those of the user's row are ranked by score if
            `filter_already_liked_items` is False. Otherwise they come last, by index, with the lowest
            float32 as score.
        times : (users asked for, items) sparse matrix, optional
            Time of each interaction of these rows, as in `fit`. By default users of the fit have the
            times of the fit; interactions that were not in the fit count as oldest. Interactions of
            other rows are equally recent.
        recalculate_user : bool
            Rank by the given rows, also for users that were not in the fit.

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
        asked = self._request(userid, user_items, recalculate_user, times)
        allowed = candidates(self.n_items_, filter_items, items)
        ids, best = best_lists(self, asked, N, filter_already_liked_items, allowed)
        empty = self.falls_back(asked.users, asked.rows)
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
        """Return the scores of all items, liked ones included.

        Parameters
        ----------
        userids : int or (users,) int array
        user_items : (users asked for, items) sparse matrix
        recalculate_user : bool
            Score by the given rows, for users never seen too; `userids` are labels only.
        times : (users asked for, items) sparse matrix, optional
            As in `recommend`.

        Returns
        -------
        (users asked for, items) float32
            float64 from a kernel ranker whose scores differ by less than float32 can hold: mD of a
            degree in the dozens; and from one with `ties`.

        Raises
        ------
        InputError, NotFittedError
        CapabilityError
            If the ranker has no "fold-in" and `recalculate_user` is asked for.
        """
        self._check_fitted()
        return score_rows(self, self._request(userids, user_items, recalculate_user, times))

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
        """Return the shares of the user's liked items in one item's score.

        Parameters
        ----------
        userid : int
        user_items : (1, items) sparse matrix
        itemid : int
        N : int ≥ 1
            How many contributions to list; the rest is in the bias.
        recalculate_user : bool
            Explain the score of the given row, for a user never seen too; `userid` is a label only.
        times : (1, items) sparse matrix, optional
            As in `recommend`.

        Returns
        -------
        Explanation

        Raises
        ------
        InputError, NotFittedError, CapabilityError
        """
        item = check_integer("itemid", itemid, 0)
        return self.explain_items(
            userid, user_items, [item], N, recalculate_user=recalculate_user, times=times
        )[0]

    def explain_items(
        self,
        userid: int,
        user_items: Any,
        itemids: ArrayLike,
        N: int = 10,
        *,
        recalculate_user: bool = False,
        times: Any = None,
    ) -> list[Explanation]:
        """Return the explanations of several items at once; the user's weights are computed once.

        Parameters
        ----------
        userid, user_items, N, recalculate_user, times
            As in `explain`.
        itemids : (n,) int

        Raises
        ------
        InputError, NotFittedError, CapabilityError
        """
        self._check_capability("explain")
        N = check_integer("N", N, 1)
        userid = check_integer("userid", userid, 0)
        asked = self._request(userid, user_items, recalculate_user, times)
        rows, items = asked.rows, check_ids("itemid", itemids, self.n_items_)
        if rows.nnz == 0:
            scores = score_rows(self, asked)[0, items].astype(float)
            return [Explanation(score, score, []) for score in scores.tolist()]
        explained = self._explain_folded_in() if recalculate_user else None
        explained = explained or self._explain_items
        found = []
        for score, shares in explained(userid, rows, items, **self._timed(asked.times)):
            order = np.lexsort((rows.indices, -np.abs(shares)))[:N]
            listed = [(int(rows.indices[k]), float(shares[k])) for k in order]
            found.append(Explanation(score, score - sum(value for _, value in listed), listed))
        return found

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

    def save(self, path: model_file.Target, interactions: dict[str, Any] | None = None) -> None:
        """Write the fitted ranker to exactly `path`, atomically.

        Parameters
        ----------
        path : path, or file open for writing bytes
            An existing ranker file there is replaced in one step. To an open file the bytes are
            written where it stands, and it is left open.
        interactions : dict, optional
            Arrays to keep with it under names of their own, as the command line does with
            ids and histories.

        Raises
        ------
        NotFittedError, InputError
            If the ranker is not fitted, or the file cannot be written.
        """
        self._check_fitted()
        write_ranker(path, self, interactions or {})

    @classmethod
    def load(cls, path: model_file.Target) -> Self:
        """Read a ranker that `save` wrote; its scores are the same to the bit.

        Parameters
        ----------
        path : path, or file open for reading bytes
            An open file is read from where it stands to its end, and left open.

        Raises
        ------
        ModelFileError
            If the file is truncated, altered, of another kind or too new.
        """
        ranker: Self = read_ranker(path, cls)[0]
        return ranker

    def check_parameters(self) -> None:
        """Refuse parameters out of range, as `fit` does.

        Raises
        ------
        InputError
        """
        self._check_parameters()
        check_ties(self.ties)

    def get_state(self) -> State:
        """Return the learned state: the attributes whose names end in _."""
        return state_of(self)

    def set_state(self, state: State) -> Self:
        """Take over what `get_state` gave, checked as if it came from a stranger.

        Raises
        ------
        ValueError
            If the arrays are not finite, or do not fit each other.
        """
        take_over(self, state)
        self._check_state()
        return self

    def reads_times(self) -> bool:
        """Return whether scores depend on the ages of interactions, by class and parameters."""
        return "times" in self.capabilities and self._reads_times()

    def wanted(self) -> frozenset[str]:
        """Return which side information a fit with these parameters makes anything of: of `uses`."""
        return self.uses if self.reads_times() else self.uses - ({"times"} - self._fitted_on)

    def size_note(self, n_items: int) -> str | None:
        """Return what a fit on so many items takes in memory and in the file, where that is much."""
        return None

    def _saved_params(self) -> dict[str, Any]:
        """Return the parameters as JSON values, for a file."""
        return self.get_params()

    # What a ranker writes

    def _check_parameters(self) -> None:
        """Refuse parameters out of range."""

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Callback | None) -> None:
        """Fit on a canonical CSR matrix of at least one liked item.

        Who learns from side information takes it as keywords of the names in `SIDE_INFORMATION`,
        float64 CSR or None; times have the pattern of `liked`. Who scores by times takes them as a
        keyword of `_scores` or `_fold_in_scores`, whichever it writes, and of `_explain`: float64,
        aligned with rows.indices, or None where all interactions are equally recent. Both make up
        `uses`.
        """
        raise NotImplementedError

    def _reads_times(self) -> bool:
        """Return whether scores under these parameters depend on times, of a ranker that can."""
        return bool(getattr(self, "recency", 1.0) > 0)

    def _scores(
        self, userids: NDArray[np.int64], rows: sp.csr_matrix, *args: Any, **times: Any
    ) -> NDArray[np.floating]:
        """Return new (rows, items) finite scores of users of the fit: float32, or float64 if need be."""
        return self._fold_in_scores(rows, **times)

    def _fold_in_scores(self, rows: sp.csr_matrix) -> NDArray[np.floating]:
        """Return the scores of rows alone, of users of the fit or not."""
        raise NotImplementedError

    def _prunes(self) -> bool:
        """Return whether lists are made without scoring every item: by `_fill_best`."""
        return False

    def _fill_best(
        self, rows: sp.csr_matrix, times: Times, skip_liked: bool, mask: NDArray[np.uint8],
        ids: NDArray[np.int32], best: NDArray[np.float32],
    ) -> None:  # fmt: skip
        """Fill ids and best as `top_n` would from the scores, to the bit.

        Rows without interactions may be filled with anything.
        """
        raise NotImplementedError

    def falls_back(self, userids: NDArray[np.int64] | None, rows: sp.csr_matrix) -> NDArray[np.bool_]:
        """Return for which rows nothing is known to personalize with: their scores are popularity.

        `userids` are None for new users.
        """
        return np.diff(rows.indptr) == 0

    def _explain(self, userid: int, row: sp.csr_matrix, item: int) -> Shares:
        """Return the score, and the share of each liked item, aligned with row.indices."""
        raise NotImplementedError

    def _explain_items(
        self, userid: int, row: sp.csr_matrix, items: NDArray[np.int64], **timed: Any
    ) -> list[Shares]:
        """Return `_explain` of several items; for rankers that can share work between them."""
        return [self._explain(userid, row, item, **timed) for item in items.tolist()]

    def _explain_folded_in(self) -> Callable[..., list[Shares]] | None:
        """Return a function that explains scores of rows alone, as `_explain_items` does, or None."""
        return self._explain_items if "explain" in self.capabilities else None

    def _item_similarity(self, ids: NDArray[np.int64]) -> NDArray[np.floating]:
        """Return (ids, items) similarities."""
        raise NotImplementedError

    def _user_similarity(self, ids: NDArray[np.int64]) -> NDArray[np.floating]:
        """Return (ids, users) similarities."""
        raise NotImplementedError

    def _check_state(self) -> None:
        """Refuse loaded arrays whose shapes do not fit each other."""

    # Shared checks

    def _timed(self, when: NDArray[np.float64] | None) -> dict[str, Any]:
        """Return the keyword that hooks of a ranker in time take; none for others."""
        return {"times": when} if self._scores_in_time else {}

    def _times_of_rows(
        self, userids: NDArray[np.int64] | None, rows: sp.csr_matrix, times: Any
    ) -> NDArray[np.float64] | None:
        """Return the times of the rows' interactions; None where none are known or none are read."""
        given = checked_times(times, rows.shape)
        if not self.reads_times():
            return None
        if given is not None:
            return aligned(rows, given)
        if userids is None or self.times_ is None:
            return None
        return aligned(rows, self.times_, userids)

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
        ids, best = nearest(similarity, asked, N, allowed)
        if single:
            kept = ids[0] >= 0
            return ids[0][kept], best[0][kept]
        return ids, best

    def _request(self, userid: Any, user_items: Any, recalculate: bool, times: Any) -> Request:
        """Return checked rows to rank items for, with their times."""
        if recalculate and "fold-in" not in self.capabilities:
            raise CapabilityError(
                f"{self.name} cannot rank users it was not fitted on (recalculate_user)"
            )
        userids = check_ids("userid", userid, None if recalculate else self.n_users_)
        rows = clean_matrix(user_items, n_items=self.n_items_, n_rows=len(userids))
        users = None if recalculate else userids
        return Request(users, rows, self._times_of_rows(users, rows, times))

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_items_"):
            # Asked for here: scikit-learn, whose error it is, too, takes most of a second to import.
            raise errors.NotFittedError(
                f"this {self.name} ranker is not fitted: call fit(user_items) first"
            )

    def _check_capability(self, capability: str) -> None:
        self._check_fitted()
        if capability not in self.capabilities:
            can = ", ".join(sorted(self.capabilities)) or "nothing beyond recommend"
            other = "; Recommender.explain has other reasons" if capability == "explain" else ""
            raise CapabilityError(f"{self.name} has no {capability}; it offers: {can}{other}")


def _named(hook: Callable[..., Any]) -> frozenset[str]:
    """Return the names of the parameters that a method declares; what ** gathers is none of them."""
    parameters = inspect.signature(hook).parameters.values()
    return frozenset(one.name for one in parameters if one.kind is not one.VAR_KEYWORD)


def _features(name: str, given: Any, rows: int, what: str) -> sp.csr_matrix | None:
    """Return features as float64 CSR of one row an item or user, a copy; None stays None."""
    if given is None:
        return None
    F = _numbers(name, given)
    if F.shape[0] != rows:
        raise InputError(f"{name} have {F.shape[0]} rows for {rows} {what}")
    F.sum_duplicates()
    return F


def _numbers(name: str, given: Any, unknown: str = "") -> sp.csr_matrix:
    """Return a float64 CSR copy of a matrix of finite numbers."""
    try:
        X = sp.csr_matrix(given, dtype=np.float64, copy=True)  # the caller's stays as it is
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be a matrix of numbers") from error
    if not np.isfinite(X.data).all():
        raise InputError(f"{name} hold NaN or infinity{unknown}")
    return X


def checked_times(given: Any, shape: tuple[int, int]) -> sp.csr_matrix | None:
    """Return times as float64 CSR of the interactions' shape, indices sorted; None stays None."""
    if given is None:
        return None
    times = _numbers("times", given, ": 0 is unknown")
    if times.shape != shape:
        raise InputError(f"times are of shape {times.shape} for interactions of shape {shape}")
    if (times.data < 0).any():
        raise InputError("times hold a value below 0: they count from a start, such as Unix seconds")
    entries = times.nnz
    times.sum_duplicates()
    if times.nnz < entries:
        raise InputError("times hold an item twice in a row: name each item once")
    return times


def _fitted_times(liked: sp.csr_matrix, times: sp.csr_matrix | None) -> sp.csr_matrix | None:
    """Return times on the pattern of the interactions; None where they tell nothing apart."""
    if times is None:
        return None
    when = aligned(liked, times)
    if (when == when[0]).all():
        return None
    return entries_of(liked, when)
