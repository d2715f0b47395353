"""The Ranker protocol: checks, blocks, top-N with its padding, ties and filters, in one place.

A ranker subclasses `Ranker` as a dataclass whose fields are its parameters, and writes `_fit` and one of
`_fold_in_scores`, which sees a row only, and `_scores`, which sees whose it is. What else it can do
follows from what else it writes (`ABILITIES`). Everything a caller can get wrong is refused here.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys import errors
from recsys.errors import CapabilityError, InputError
from recsys.rankers._ties import TieOrder, break_ties, check_ties, tie_order
from recsys.rankers.answers import Explanation, Recommendations
from recsys.registry import check_parameters
from recsys.utils import model_file
from recsys.utils.recency import aligned
from recsys.utils.topn import LOWEST, Candidates, candidates, top_n
from recsys.utils.validation import check_ids, check_integer, clean_matrix

BLOCK_BYTES = 64_000_000
LIST_BLOCK = 8_192  # users at a time where not all items are scored
DENSE_ITEMS = 8_000  # up to which `auto` tries models of all pairs of items

Callback = Callable[..., Any]

# What a ranker can do, and the method whose presence says so.
ABILITIES = {
    "fold-in": "_fold_in_scores",
    "explain": "_explain",
    "similar-items": "_item_similarity",
    "similar-users": "_user_similarity",
    "cold-items": "_item_vectors",
    "cold-users": "_row_vectors",
    "embeddings": "item_embeddings",
    "updates": "_change_rows",
}
SIDE_INFORMATION = frozenset(("item_features", "user_features", "times"))


@dataclass(frozen=True)
class Candidate:
    """Parameters that `auto` tries a ranker with, and for which data.

    Attributes
    ----------
    params : str
        As after the colon of a specification: "kernel=mc,degree=2".
    least_items, most_items : int
        Sizes of catalogue that it is tried on.
    most_likes : int, optional
        Beyond so many likes its fit takes too long.
    timed : bool
        Whether it is for data with times only.
    """

    params: str = ""
    least_items: int = 0
    most_items: float = np.inf
    most_likes: float = np.inf
    timed: bool = False

    def suits(self, items: int, likes: int, timed: bool = False) -> bool:
        """Return whether it is tried on data of this size, with times or without."""
        fits = self.least_items <= items <= self.most_items and likes <= self.most_likes
        return fits and (timed or not self.timed)


@dataclass(frozen=True)
class State:
    """What a ranker has learned, apart from its class: what a file keeps.

    Attributes
    ----------
    arrays : dict of str to ndarray
        A CSR matrix `x_` is `x_.data`, `x_.indices` and `x_.indptr`; a list of arrays `x_.0`, `x_.1`, ….
    scalars : dict of str to a JSON value
        With `x_.shape` of each CSR matrix.
    parts : list of Ranker
        The rankers that it consists of, each with a state of its own.
    """

    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    scalars: dict[str, Any] = field(default_factory=dict)
    parts: list[Ranker] = field(default_factory=list)


class Ranker:
    """Base of all rankers; the protocol is that of implicit's `RecommenderBase`.

    Parameters are the dataclass fields of the subclass; `get_params`, `set_params` and
    `sklearn.base.clone` work on them.

    Attributes
    ----------
    capabilities : frozenset of str
        Among "fold-in" (ranks rows of users never seen), "explain", "similar-items", "similar-users",
        "cold-items" and "cold-users" (ranks those without likes by their features), "embeddings",
        "updates" (exact ones, without a refit): of the methods that the class has; "times" if it can
        tell an older like from a newer one.
    uses : frozenset of str
        Which side information it can read, when it is fitted or when it scores: among "item_features",
        "user_features", "times".
    dense : bool
        Whether it holds every pair of items, always: `auto` tries it on smaller catalogues only.
    search_space : dict
        What `recsys.tuning` searches: per parameter a tuple of choices, or ("real" or "log", low, high);
        with "times" as last entry where the future is predicted only.
    searched_where : dict
        Of a parameter that is searched for some values of another only: its name, and the values.
    candidates : tuple of Candidate
        What `auto` tries of it.
    offered, compared : tuple of str
        Parameters, as after the colon of a specification, with which lists of models offer it, and with
        which `recsys evaluate` measures it when no model is named.
    n_users_, n_items_ : int
        Sizes at fit.
    popularity_ : (items,) float32
        Users per item at fit.
    times_ : (users, items) float64 CSR
        When each like happened, of a ranker that was given it and reads it.

    Notes
    -----
    A ranker with a parameter `ties` can put items of equal scores, those at 0 among them, in the order
    of their popularity, of which those that nobody has get the mean: no two items of different scores
    change places. Its `scores` are float64 then, and those without it when rounded to float32, which
    what `recommend` and `explain` tell are.

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
    search_space: ClassVar[dict[str, Any]] = {}
    searched_where: ClassVar[dict[str, tuple[str, tuple[Any, ...]]]] = {}
    candidates: ClassVar[tuple[Candidate, ...]] = ()
    offered: ClassVar[tuple[str, ...]] = ("",)
    compared: ClassVar[tuple[str, ...]] = ()
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
            for ability, method in ABILITIES.items()
            if getattr(cls, method, None) is not getattr(Ranker, method, None)
        )
        cls._fitted_on = _named(cls._fit) & SIDE_INFORMATION
        cls._scores_in_time = "times" in _named(cls._fold_in_scores) | _named(cls._scores)
        cls.uses = cls._fitted_on | ({"times"} if cls._scores_in_time else set())
        cls.capabilities |= cls.uses & {"times"}

    def _repr_html_(self) -> str:
        """Return the ranker as a notebook shows it."""
        from recsys.rankers.diagram import diagram

        return diagram(self)

    def __sklearn_tags__(self) -> Any:
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
            Show a progress bar where fitting iterates.
        callback : callable, optional
            Called as callback(iteration, seconds, loss) where fitting iterates.
        item_features, user_features : (items, …), (users, …) matrix or array, optional
            What is known of them, as finite numbers. Items nobody has and users without a like are
            ranked by it, where the ranker has "cold-items" and "cold-users".
        times : (users, items) sparse matrix, optional
            When each like happened, above 0, in any unit; 0 is unknown, and counts as oldest. Times that
            are all alike are no times.

        Returns
        -------
        Ranker
            This object. Side information that it does not use (see `uses`) is checked and left unread.

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
            How many; at most the number of candidates is returned.
        filter_already_liked_items : bool
            Leave out what the row likes; with `items` they come last instead.
        filter_items, items : int array, optional
            Items to leave out, or the only items to rank; not both. As in implicit, all of `items` are
            ranked, each once: those that the row likes by their scores too if
            `filter_already_liked_items` is False, else after all others, by index, with the
            lowest float32 as score.
        times : (users asked for, items) sparse matrix, optional
            When each like of these rows happened, as in `fit`. When not given, users of the fit have the
            times that were fitted, where a like that was not fitted has none and counts as oldest, and
            likes of other rows are equally recent.
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
        when = self._times_of_rows(None if recalculate_user else userids, rows, times)
        allowed = candidates(self.n_items_, filter_items, items)
        width = min(N, self.n_items_ if allowed.size == 0 else allowed.size)
        ids = np.full((len(userids), width), -1, dtype=np.int32)
        best = np.full((len(userids), width), LOWEST, dtype=np.float32)
        users = None if recalculate_user else userids
        # With `items` all are ranked, liked ones last: no fewer are scored for that.
        prunes = self._prunes() and not allowed.listed
        block = LIST_BLOCK if prunes else max(1, BLOCK_BYTES // (4 * self.n_items_))
        for start in range(0, len(userids), block):
            part = slice(start, start + block)
            some, then = rows, when
            if len(userids) > block:  # slicing costs a call 0.05 ms
                some = rows[part]
                then = None if when is None else when[rows.indptr[start] :][: some.nnz]
            self._fill_lists(
                None if users is None else users[part], some, then, filter_already_liked_items, allowed,
                prunes, ids[part], best[part],
            )  # fmt: skip
        empty = self._without(users, rows)
        if single:
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
        ids, rows = self._check_users(userids, user_items, recalculate_user)
        users = None if recalculate_user else ids
        return self._score_rows(users, rows, self._times_of_rows(users, rows, times))

    def explain(
        self, userid: int, user_items: Any, itemid: int, N: int = 10, *, times: Any = None
    ) -> Explanation:
        """Return the shares of the user's liked items in one item's score.

        Parameters
        ----------
        userid : int
        user_items : (1, items) sparse matrix
        itemid : int
        N : int ≥ 1
            How many contributions to list; the rest is in the bias.
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
        return self.explain_items(userid, user_items, [item], N, times=times)[0]

    def explain_items(
        self, userid: int, user_items: Any, itemids: ArrayLike, N: int = 10, *, times: Any = None
    ) -> list[Explanation]:
        """Return what `explain` does for several items, in one go: the user's weights are found once.

        Parameters
        ----------
        userid, user_items, N, times
            As in `explain`.
        itemids : (n,) int

        Raises
        ------
        InputError, NotFittedError, CapabilityError
        """
        self._check_capability("explain")
        N = check_integer("N", N, 1)
        ids, rows = self._check_users(check_integer("userid", userid, 0), user_items, False)
        items = check_ids("itemid", itemids, self.n_items_)
        when = self._times_of_rows(ids, rows, times)
        if rows.nnz == 0:
            scores = self._score_rows(ids, rows, when)[0, items].astype(float)
            return [Explanation(score, score, []) for score in scores.tolist()]
        found = []
        for score, shares in self._explain_items(int(ids[0]), rows, items, **self._timed(when)):
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
        from recsys.rankers.serialization import write_ranker  # which knows all rankers by name

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
        from recsys.rankers.serialization import read_ranker

        return read_ranker(path, cls)[0]  # type: ignore[return-value]

    def check_parameters(self) -> None:
        """Refuse parameters out of range, as `fit` does.

        Raises
        ------
        InputError
        """
        self._check_parameters()
        check_ties(self.ties)

    def get_state(self) -> State:
        """Return what was learned: the attributes whose names end in _."""
        state = State()
        for key, value in vars(self).items():
            if not key.endswith("_"):
                continue
            if isinstance(value, np.ndarray):
                state.arrays[key] = value
            elif sp.issparse(value):
                for part in ("data", "indices", "indptr"):
                    state.arrays[f"{key}.{part}"] = getattr(value, part)
                state.scalars[f"{key}.shape"] = list(value.shape)
            elif isinstance(value, list) and value and isinstance(value[0], np.ndarray):
                state.arrays.update({f"{key}.{k}": array for k, array in enumerate(value)})
            elif isinstance(value, list) and value and isinstance(value[0], Ranker):
                state.parts.extend(value)
            elif value is not None:
                state.scalars[key] = value
        return state

    def set_state(self, state: State) -> Self:
        """Take over what `get_state` gave, checked as if it came from a stranger.

        Raises
        ------
        ValueError
            If the arrays are not finite, or do not fit each other.
        """
        own: dict[str, Any] = dict(state.scalars)
        arrays = dict(state.arrays)
        for key in [key for key in own if key.endswith("_.shape")]:
            name = key.removesuffix(".shape")
            own[name] = model_file.csr(name, arrays, own.pop(key))
        for key in sorted(arrays, key=lambda key: (len(key), key)):  # x_.2 before x_.10
            name, _, number = key.partition(".")
            if not number:
                own[name] = arrays[key]
            elif number == str(len(own.setdefault(name, []))):
                own[name].append(arrays[key])
            else:
                raise ValueError(f"{key} belongs to nothing")
        for key, value in own.items():
            if not key.isidentifier() or not key.endswith("_") or key.startswith("__"):
                raise ValueError(f"{key!r} is no name of a fitted attribute")
            for array in value if isinstance(value, list) else [value]:
                values = array.data if sp.issparse(array) else array
                floating = isinstance(values, np.ndarray) and values.dtype.kind == "f"
                if floating and not np.isfinite(values).all():
                    raise ValueError(f"{key} holds NaN or infinity")
        for key in [key for key in vars(self) if key.endswith("_")]:
            delattr(self, key)
        vars(self).update(own)
        if state.parts:
            self.parts_ = state.parts
        users, items = self.n_users_, self.n_items_
        if not (type(users) is type(items) is int and users >= 1 and items >= 1):
            raise ValueError("n_users_ and n_items_ should be whole numbers above 0")
        expect("popularity_", self.popularity_, (items,), np.float32)
        if (self.popularity_ < 0).any():
            raise ValueError("popularity_ counts fewer than nobody")
        if self.times_ is not None:
            fits = sp.issparse(self.times_) and self.times_.shape == (users, items)
            if not fits or self.times_.dtype != np.float64 or (self.times_.data < 0).any():
                raise ValueError("times_ does not fit the likes")
        self._check_state()
        return self

    def reads_times(self) -> bool:
        """Return whether scores depend on how old likes are: it can, and its parameters have it so."""
        return "times" in self.capabilities and self._reads_times()

    def wanted(self) -> frozenset[str]:
        """Return which side information a fit with these parameters makes anything of: of `uses`."""
        return self.uses if self.reads_times() else self.uses - ({"times"} - self._fitted_on)

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
        aligned with rows.indices, or None where all likes are equally recent. Both make up `uses`.
        """
        raise NotImplementedError

    def _reads_times(self) -> bool:
        """Return whether scores under these parameters depend on times, of a ranker that can."""
        return True

    def _scores(
        self, userids: NDArray[np.int64], rows: sp.csr_matrix, *args: Any, **times: Any
    ) -> NDArray[np.floating]:
        """Return new (rows, items) finite scores of users of the fit: float32, or float64 if need be."""
        return self._fold_in_scores(rows, **times)

    def _fold_in_scores(self, rows: sp.csr_matrix) -> NDArray[np.floating]:
        """Return the same of rows alone, whoever's they are."""
        raise NotImplementedError

    def _prunes(self) -> bool:
        """Return whether lists are made without scoring every item: by `_fill_best`."""
        return False

    def _fill_best(
        self, userids: NDArray[np.int64] | None, rows: sp.csr_matrix, times: NDArray[np.float64] | None,
        skip_liked: bool, mask: NDArray[np.uint8], ids: NDArray[np.int32], best: NDArray[np.float32],
    ) -> None:  # fmt: skip
        """Fill ids and best as `top_n` would from the scores, to the bit.

        Rows without a like may be filled with anything.
        """
        raise NotImplementedError

    def _without(self, userids: NDArray[np.int64] | None, rows: sp.csr_matrix) -> NDArray[np.bool_]:
        """Return for which rows there is nothing to personalise with; users are None for new ones."""
        return np.diff(rows.indptr) == 0

    def _explain(self, userid: int, row: sp.csr_matrix, item: int) -> tuple[float, NDArray[np.float64]]:
        """Return the score, and the share of each liked item, aligned with row.indices."""
        raise NotImplementedError

    def _explain_items(
        self, userid: int, row: sp.csr_matrix, items: NDArray[np.int64], **timed: Any
    ) -> list[tuple[float, NDArray[np.float64]]]:
        """Return `_explain` of several items; for rankers that can share work between them."""
        return [self._explain(userid, row, item, **timed) for item in items.tolist()]

    def _explain_folded_in(self) -> Callable[..., list[tuple[float, NDArray[np.float64]]]] | None:
        """Return what explains scores of rows alone as `_explain_items` does, None where nothing can."""
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
        """Return when each like of the rows happened; None where nothing tells, or nothing asks."""
        given = checked_times(times, rows.shape)
        if not self.reads_times():
            return None
        if given is not None:
            return aligned(rows, given)
        if userids is None or self.times_ is None:
            return None
        return aligned(rows, self.times_, userids)

    def _fill_lists(
        self, userids: NDArray[np.int64] | None, rows: sp.csr_matrix, when: NDArray[np.float64] | None,
        skip_liked: bool, allowed: Candidates, prunes: bool, ids: NDArray[np.int32],
        best: NDArray[np.float32],
    ) -> None:  # fmt: skip
        """Fill ids and best, given as −1 and `LOWEST`, with each row's best candidates."""
        if not prunes:
            scores = self._score_rows(userids, rows, when)
            top_n(scores, rows, skip_liked, allowed.mask, ids, best, liked_last=allowed.listed)
            return
        timed = when if self._scores_in_time else None
        self._fill_best(userids, rows, timed, skip_liked, allowed.mask, ids, best)
        empty = np.flatnonzero(self._without(userids, rows))
        if len(empty):
            ids[empty], best[empty] = self._most_popular(allowed, ids.shape[1])

    def _most_popular(
        self, allowed: Candidates, N: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the list of rows without a like."""
        ids = np.full((1, N), -1, dtype=np.int32)
        best = np.full((1, N), LOWEST, dtype=np.float32)
        nothing = sp.csr_matrix((1, self.n_items_), dtype=np.float32)
        top_n(self.popularity_[None], nothing, False, allowed.mask, ids, best)
        return ids[0], best[0]

    def _score_rows(
        self,
        userids: NDArray[np.int64] | None,
        rows: sp.csr_matrix,
        when: NDArray[np.float64] | None = None,
    ) -> NDArray[np.floating]:
        timed = self._timed(when)
        if userids is None:
            out = self._fold_in_scores(rows, **timed)
        else:
            out = self._scores(userids, rows, **timed)
        if self.ties is not None:
            out = break_ties(out, self._tie_order())
        empty = self._without(userids, rows)
        if empty.any():
            out[empty] = self.popularity_
        return out

    def _tie_order(self) -> TieOrder:
        """Return the order of items of equal scores; kept until `popularity_` is another."""
        if self._ties is None or self._ties.popularity is not self.popularity_:
            self._ties = tie_order(self.popularity_)
        return self._ties

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
            # Asked for here: scikit-learn, whose error it is, too, takes most of a second to import.
            raise errors.NotFittedError(
                f"this {self.name} ranker is not fitted: call fit(user_items) first"
            )

    def _check_capability(self, capability: str) -> None:
        self._check_fitted()
        if capability not in self.capabilities:
            can = ", ".join(sorted(self.capabilities)) or "nothing beyond recommend"
            raise CapabilityError(f"{self.name} has no {capability}; it offers: {can}")


def expect(name: str, array: Any, shape: tuple[int, ...], dtype: type) -> None:
    """Refuse an array of another shape or dtype than the ranker computes with."""
    if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
        found = getattr(array, "shape", type(array).__name__)
        raise ValueError(f"{name} should be {np.dtype(dtype).name} of shape {shape}, not {found}")


def _named(hook: Callable[..., Any]) -> frozenset[str]:
    """Return the names of the parameters that a method declares; what ** gathers is none of them."""
    parameters = inspect.signature(hook).parameters.values()
    return frozenset(one.name for one in parameters if one.kind is not one.VAR_KEYWORD)


def _features(name: str, given: Any, rows: int, what: str) -> sp.csr_matrix | None:
    """Return features as float64 CSR of one row an item or user, a copy; None stays None."""
    if given is None:
        return None
    try:
        F = sp.csr_matrix(given, dtype=np.float64, copy=True)  # the caller's stays as it is
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be a matrix of numbers") from error
    if not np.isfinite(F.data).all():
        raise InputError(f"{name} hold NaN or infinity")
    if F.shape[0] != rows:
        raise InputError(f"{name} have {F.shape[0]} rows for {rows} {what}")
    F.sum_duplicates()
    return F


def checked_times(given: Any, shape: tuple[int, int]) -> sp.csr_matrix | None:
    """Return times as float64 CSR of the likes' shape, indices sorted; None stays None."""
    if given is None:
        return None
    try:
        times = sp.csr_matrix(given, dtype=np.float64, copy=True)  # the caller's stays as it is
    except (TypeError, ValueError) as error:
        raise InputError("times must be a matrix of numbers") from error
    if times.shape != shape:
        raise InputError(f"times are of shape {times.shape} for likes of shape {shape}")
    if not np.isfinite(times.data).all():
        raise InputError("times hold NaN or infinity: 0 is unknown")
    if (times.data < 0).any():
        raise InputError("times hold a value below 0: they count from a start, such as Unix seconds")
    entries = times.nnz
    times.sum_duplicates()
    if times.nnz < entries:
        raise InputError("times hold an item twice in a row: name each item once")
    return times


def _fitted_times(liked: sp.csr_matrix, times: sp.csr_matrix | None) -> sp.csr_matrix | None:
    """Return times on the pattern of the likes; None where they tell nothing apart."""
    if times is None:
        return None
    when = aligned(liked, times)
    if (when == when[0]).all():
        return None
    return sp.csr_matrix((when, liked.indices, liked.indptr), liked.shape)
