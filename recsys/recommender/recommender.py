"""A recommender that speaks in ids and tables, over any ranker."""

from __future__ import annotations

import copy
import logging
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys import errors
from recsys.data import Interactions
from recsys.data.columns import Columns
from recsys.data.events import Changes
from recsys.errors import InputError, counted
from recsys.rankers import ModelPackage, Ranker, fit_package
from recsys.rankers.catalogue import fit_notes
from recsys.rankers.registry import ranker_of
from recsys.recommender import updates
from recsys.recommender.answers import Rules, Why
from recsys.recommender.explained import explained, list_rules, word_of
from recsys.recommender.filters import candidates, left_out, merchandising
from recsys.recommender.fitted import Fitted, of_matrix, of_one_state, one_at_a_time
from recsys.recommender.ids import id_list, one_id
from recsys.recommender.list_rows import ListRows, Row
from recsys.recommender.lists import MODEL, POPULAR, ListRequest, Lists
from recsys.recommender.model_rules import FIRST, ModelRule, model_rule
from recsys.reranking import Merchandising
from recsys.reranking import similar as similar_items
from recsys.utils import frames
from recsys.utils.model_file import Target
from recsys.utils.progress import QUIET, bar, listening
from recsys.utils.rows import arrow_batch, arrow_schema, write_rows
from recsys.utils.validation import check_choice, check_flag, check_integer, check_real, clean_matrix

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from typing_extensions import TypeVar as WithDefault

    Table = WithDefault("Table", default=Any)  # the kind of the tables that were given, and come back
else:
    Table = TypeVar("Table")

LOG = logging.getLogger(__name__)
UNKNOWN = ("error", "skip", "popular")
SCORE_BLOCK = 16_000_000  # scores that are held at once
Id = str | int
Some = Id | Sequence[Id]


class Recommender(Generic[Table]):
    """Lists with explanations for users, similar items, and rules, all in your ids.

    Parameters
    ----------
    model : str or Ranker
        A ranker's specification such as "auto", "ease" or "cf-komd:kernel=mc,degree=2", or a ranker, of
        which a copy is fitted.

    Attributes
    ----------
    ranker : Ranker
        The fitted one; it works with matrices.
    package : ModelPackage
        The ranker, the ids and titles, and the interactions: the content of a file.
    notes : tuple of str
        Notes on how the data were read, and on what the ranker does not use; empty after loading a file.

    Notes
    -----
    Ids are returned as they were passed, as text or integers, also after saving and loading. Requests
    match ids by their text. Tables are returned in the kind that was passed: pandas, polars or pyarrow;
    type checkers know which after `fit` of a path or a table of pandas or polars.

    Examples
    --------
    >>> import recsys
    >>> data = recsys.load_dataset("sample")
    >>> model = recsys.Recommender("ease").fit(data)
    >>> found = model.recommend("u0001", n=2)
    >>> list(found.columns)
    ['user', 'rank', 'item', 'title', 'score', 'why']
    >>> print(found["why"][0])
    Because you liked Crimson Compass (1954), Quiet Kingdom (1962) and Electric Garden (1987).
    >>> model.recommend_history(["m0001", "m0005"], n=3, filters={"year": (1980, None)})["rank"].tolist()
    [1, 2, 3]

    Of a SciPy matrix of users × items, ids are the numbers of its rows and columns:

    >>> model = recsys.Recommender("als").fit(data.matrix)
    >>> model.recommend(3, n=2)["user"].tolist()
    [3, 3]
    """

    notes: tuple[str, ...] = ()

    def __init__(self, model: str | Ranker = "auto") -> None:
        if isinstance(model, str):
            ranker_of(model)  # refuses it now
        elif not isinstance(model, Ranker):
            raise InputError(
                f"model must be a ranker or a specification such as 'ease', not {type(model).__name__}"
            )
        self.model = model
        self._fitted: Fitted | None = None
        self._kind: str | None = None
        self._changing = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copies and pickles, without the lock."""
        return {name: value for name, value in vars(self).items() if name != "_changing"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state, with a new lock."""
        vars(self).update(state)
        self._changing = threading.RLock()

    @classmethod
    def of(cls, package: ModelPackage, kind: str | None = None) -> Self:
        """Return the recommender of a fitted model package; `kind` is the kind of its tables."""
        made = cls(package.ranker)
        made._fitted, made._kind = Fitted(package), kind
        return made

    @overload
    def fit(
        self,
        data: pd.DataFrame | str | os.PathLike[str],
        *,
        show_progress: bool = False,
        **columns: Any,
    ) -> Recommender[pd.DataFrame]: ...

    @overload
    def fit(
        self, data: pl.DataFrame, *, show_progress: bool = False, **columns: Any
    ) -> Recommender[pl.DataFrame]: ...

    @overload
    def fit(self, data: Any, *, show_progress: bool = False, **columns: Any) -> Self: ...

    @one_at_a_time
    def fit(
        self,
        data: Interactions | str | os.PathLike[str] | sp.csr_matrix | Any,
        *,
        show_progress: bool = False,
        **columns: Any,
    ) -> Recommender[Any]:
        """Fit on who liked what.

        Parameters
        ----------
        data : Interactions, table, path or (users, items) SciPy sparse matrix
            A table or file is read as `Interactions.from_frame` does. Ids of a matrix, CSR or of another
            format, are its row and column numbers. Its values above 0 are interactions, and weights in
            the models that read them (`als`, `cosine`, `tfidf`, `bm25`, `user-knn`, `tifu-knn`).
        show_progress : bool
        **columns
            What `Interactions.from_frame` takes: user, item, rating, time, weight, min_rating and so on.

        Raises
        ------
        InputError
            If the data cannot be read or fitted on.
        """
        if columns and (isinstance(data, Interactions) or sp.issparse(data)):
            these = "this is a matrix" if sp.issparse(data) else "these are interactions"
            raise InputError(f"{next(iter(columns))} is for a table or a file; {these}")
        if sp.issparse(data):
            data = of_matrix(clean_matrix(data, name="data"))
        elif not isinstance(data, Interactions):
            data = Interactions.from_frame(data, **columns)
        model = self.model
        ranker = ranker_of(model) if isinstance(model, str) else copy.deepcopy(model)
        data = data.positive()
        notes = (*data.notes, *fit_notes(ranker, data))
        for note in notes:
            LOG.info("%s: %s", data.name, note)
        start = time.perf_counter()
        fitted = Fitted(fit_package(ranker, data, show_progress=show_progress))
        self._fitted, self._kind, self.notes = fitted, None, notes
        LOG.info("fitted %s in %.1f s", repr(self)[1:-1], time.perf_counter() - start)
        return self

    @property
    def package(self) -> ModelPackage:
        """The ranker, ids, titles and histories."""
        return self._now.package

    @property
    def _now(self) -> Fitted:
        if self._fitted is None:
            raise errors.NotFittedError("this recommender is not fitted yet: call fit(data)")
        return self._fitted

    @property
    def ranker(self) -> Ranker:
        """The fitted ranker."""
        return self.package.ranker

    @property
    def user_ids(self) -> NDArray[np.object_]:
        """Ids of the users, (users,) object, in order of first appearance."""
        return self.package.user_ids

    @property
    def item_ids(self) -> NDArray[np.object_]:
        """Ids of the items, (items,) object, in order of first appearance."""
        return self.package.item_ids

    # Lists

    @of_one_state
    def recommend(
        self,
        users: Any,
        n: int = 10,
        *,
        items: Sequence[Id] | Mapping[Id, Sequence[Id]] | None = None,
        exclude: Sequence[Id] | None = None,
        dislikes: Sequence[Id] = (),
        diversity: float = 0.0,
        filters: Mapping[str, Any] | None = None,
        filter_liked: bool = True,
        pinned: Sequence[Id] = (),
        boosts: Mapping[Id, float] | None = None,
        at_most: Mapping[str, int] | None = None,
        fair: Mapping[str, Any] | None = None,
        as_of: float | str | None = None,
        unknown: str = "error",
        why: bool = True,
    ) -> Table:
        """Return the best items for users.

        Parameters
        ----------
        users : id, or sequence of ids
        n : int ≥ 1
            Largest number of items per user.
        items : sequence of ids, or mapping of user to sequence of ids, optional
            The only items that may be recommended: to all users, or to each one.
        exclude : sequence of ids, optional
            Items that may not be recommended.
        dislikes : sequence of ids
            Disliked items: they are left out, and similar items are ranked lower.
        diversity : float in 0…1
            Weight of diversity; 0 keeps the order of the scores.
        filters : mapping, optional
            Conditions on items' features: {"year": (1980, 1999), "genres": ["Drama", "War"]}. A pair is
            a range that includes both ends, a list matches any of its values, and a single value matches
            itself.
        filter_liked : bool
            Whether the user's own items are left out of the list; with False they are ranked
            like all others.
        pinned : sequence of ids
            Items that come first, in this order, whatever their scores, unless they are left out.
        boosts : mapping of id to float ≥ 0, optional
            Factors f of items' scores s, which become s + (f − 1)·|s|: f above 1 raises a score, below 1
            lowers it.
        at_most : mapping of str to int, optional
            Largest number of items of one value in a list, by column of the items' features: {"genres":
            2}. Each value of a cell such as `Drama|War` counts, and so do pinned items.
        fair : mapping, optional
            {"protected": {"genres": "Drama"}, "p": 0.5, "alpha": 0.1}: among the first k items, for
            each k, as many of the protected group (conditions as of `filters`) as a binomial test of
            share `p` at significance `alpha` asks for (FA*IR). p and alpha may be left out. All other
            ranks are by score. A list with too few left is reported by `logging`. Not with `diversity`.
        as_of : number or str, optional
            Rank by these users' interactions before this time: a number in the data's unit, or a date.
            The model itself was fitted on later interactions, too, and counts of users include them.
        unknown : "error", "skip" or "popular"
            The result for an unknown user: an error, no rows, or the most popular items.
        why : bool
            Whether each item has a sentence that explains it. Sentences take as long as the lists, or
            longer.

        Returns
        -------
        table
            Columns user, rank, item, title, score, why; title is absent where items have none, and why
            where the model cannot explain. Users without interactions get the most popular items, scored
            by their number of users. If there are such rows, a column source after score is "popular"
            for them and "model" for all others.

        Raises
        ------
        InputError
            If an id is unknown, a number out of range, or nothing passes the filters.
        """
        check_choice("unknown", unknown, UNKNOWN)
        why = check_flag("why", why)
        given = id_list("users", users)
        index = self.package.user_index
        wanted = merchandising(self.package, pinned, boosts, at_most, fair)
        made, found = self._list_rows, dict[str, list[Row]]()
        for names, allowed in candidates(given, items):
            known = names if unknown == "error" else [name for name in names if str(name) in index]
            try:
                lists = self._lists(
                    ListRequest.of_users(self.package, known, as_of), n, allowed, exclude, dislikes,
                    diversity, filters, filter_liked, wanted,
                )  # fmt: skip
            except InputError as error:
                if allowed is items:
                    raise
                raise InputError(f"user {names[0]!r}: {error}") from None
            for block in lists.blocks():
                found |= {str(lists.request.labels[k]): made.of(lists, k, one, why) for k, one in block}
            for name in names if unknown == "popular" else ():
                if str(name) not in found:
                    found[str(name)] = made.popular(name, n, lists, why)
        return made.table([row for name in given for row in found.get(str(name), [])], why)

    @of_one_state
    def recommend_history(
        self,
        history: Sequence[Id],
        n: int = 10,
        *,
        times: Sequence[float | str] | None = None,
        weights: Sequence[float] | None = None,
        items: Sequence[Id] | None = None,
        exclude: Sequence[Id] | None = None,
        dislikes: Sequence[Id] = (),
        diversity: float = 0.0,
        filters: Mapping[str, Any] | None = None,
        filter_liked: bool = True,
        pinned: Sequence[Id] = (),
        boosts: Mapping[Id, float] | None = None,
        at_most: Mapping[str, int] | None = None,
        fair: Mapping[str, Any] | None = None,
        why: bool = True,
        user: Id = "new",
    ) -> Table:
        """Return the best items for a new user with this history.

        Parameters
        ----------
        history : sequence of ids
            In order, the oldest interaction first; it may be empty.
        times, weights : sequences, optional
            When each was liked, instead of the order; how much, above 0, for a model that takes weights.
        n, items, exclude, dislikes, diversity, filters, filter_liked, pinned, boosts, at_most, fair, why
            As in `recommend`.
        user : str or int
            What stands in the column user.

        Raises
        ------
        InputError
            As `recommend`; if an item is in the history twice.
        CapabilityError
            If the model ranks the users of its fit only.
        """
        why = check_flag("why", why)
        profile = self.package.profile(history=id_list("history", history), times=times, weights=weights)
        lists = self._lists(
            ListRequest.of_profile(user, profile), n, items, exclude, dislikes, diversity, filters,
            filter_liked, merchandising(self.package, pinned, boosts, at_most, fair),
        )  # fmt: skip
        [[(k, one)]] = list(lists.blocks())
        return self._list_rows.table(self._list_rows.of(lists, k, one, why), why)

    @of_one_state
    def recommend_all(
        self,
        path: str | os.PathLike[str] | Any = None,
        n: int = 10,
        *,
        items: Sequence[Id] | None = None,
        exclude: Sequence[Id] | None = None,
        dislikes: Sequence[Id] = (),
        diversity: float = 0.0,
        filters: Mapping[str, Any] | None = None,
        filter_liked: bool = True,
        pinned: Sequence[Id] = (),
        boosts: Mapping[Id, float] | None = None,
        at_most: Mapping[str, int] | None = None,
        fair: Mapping[str, Any] | None = None,
        as_of: float | str | None = None,
        why: bool = False,
        raw: bool = False,
        stream: bool = False,
        show_progress: bool = False,
    ) -> Any:
        """Make the lists of all users, and write them to a file a block of users at a time.

        Parameters
        ----------
        path : path, optional
            Ending in .parquet, .json, .jsonl (an object a line) or .csv: a file, there whole or not at
            all. A table is returned when not given.
        n, items, exclude, dislikes, diversity, filters, filter_liked, pinned, boosts, at_most : optional
            As in `recommend`; `items` are the same for all users.
        fair, as_of, why
            As in `recommend`.
        raw : bool
            Whether text in CSV that a spreadsheet would run as a formula (it begins with =, +, - or @)
            stays as it is; it gets an apostrophe otherwise.
        stream : bool
            Whether to return a pyarrow RecordBatchReader, which makes a block of lists when it is asked
            for the next one.
        show_progress : bool
            Whether to draw a bar in a terminal or a notebook, from two seconds on.

        Returns
        -------
        Path, table, or pyarrow.RecordBatchReader

        Raises
        ------
        InputError
            As `recommend`; if the file cannot be written.
        """
        if check_flag("show_progress", show_progress):
            request = {
                name: one for name, one in locals().items() if name not in ("self", "show_progress")
            }
            with bar(True, QUIET) as drawn, listening(drawn):
                return self.recommend_all(**request)
        if stream and path is not None:
            raise InputError("stream=True returns the lists: leave out path")
        if path is not None and not isinstance(path, (str, os.PathLike)):
            raise InputError(f"path must name a file, not {type(path).__name__}")
        why = check_flag("why", why)
        lists = self._lists(
            ListRequest.of_users(self.package, None, as_of), n, items, exclude, dislikes, diversity,
            filters, filter_liked, merchandising(self.package, pinned, boosts, at_most, fair),
        )  # fmt: skip
        made = self._list_rows
        if stream:
            import pyarrow as pa

            columns, rows_of = made.written(lists, why)
            schema = arrow_schema(columns)
            batches = (arrow_batch(schema, rows_of(some)) for some in lists.blocks())
            return pa.RecordBatchReader.from_batches(schema, batches)
        if path is None:
            rows = (made.of(lists, k, one, why) for block in lists.blocks() for k, one in block)
            return made.table([row for some in rows for row in some], why)
        target = Path(path)
        if target.suffix not in (".parquet", ".json", ".jsonl", ".csv"):
            raise InputError(f"{target}: the ending must be .parquet, .json, .jsonl or .csv")
        columns, rows_of = made.written(lists, why)
        write_rows(target, columns, (rows_of(some) for some in lists.blocks()), raw)
        return target

    @of_one_state
    def similar(
        self,
        items: Some,
        n: int = 10,
        *,
        candidates: Sequence[Id] | None = None,
        exclude: Sequence[Id] | None = None,
        diversity: float = 0.0,
        filters: Mapping[str, Any] | None = None,
    ) -> Table:
        """Return the items most similar to one or several.

        Parameters
        ----------
        items : id, or sequence of ids
        n, exclude, diversity, filters
            As in `recommend`.
        candidates : sequence of ids, optional
            The only items that may be in the answer.

        Returns
        -------
        table
            Columns to (the item asked for), rank, item, title, score.

        Raises
        ------
        InputError
            As `recommend`.
        CapabilityError
            If the model has no similarities.
        """
        package = self.package
        without = left_out(package, candidates, exclude, filters, "candidates")
        check_integer("n", n, 1)
        diversity = check_real("diversity", diversity, 0.0, 1.0)
        rows: list[tuple[Any, ...]] = []
        for place in package.items(id_list("items", items)):
            ids, scores = similar_items(
                package.ranker, int(place), n, diversity=diversity, filter_items=without,
                item_users=self._now.item_users if diversity else None,
            )  # fmt: skip
            rows += [
                (
                    package.item_ids[place],
                    rank,
                    package.item_ids[k],
                    str(package.titles[k]),
                    float(score),
                )
                for rank, (k, score) in enumerate(zip(ids, scores, strict=True), 1)
            ]
        names = ["to", "rank", "item", "title", "score"]
        columns = {name: [row[k] for row in rows] for k, name in enumerate(names)}
        if not self._now.titled:
            del columns["title"]
        return frames.make(columns, self.kind, self._list_rows.types)

    @of_one_state
    def similar_users(self, users: Some, n: int = 10) -> Table:
        """Return the users most similar to one or several, themselves left out.

        Parameters
        ----------
        users : id, or sequence of ids
        n : int ≥ 1

        Returns
        -------
        table
            Columns to (the user asked for), rank, user, score.

        Raises
        ------
        InputError
            If an id is unknown.
        CapabilityError
            If the model has no similarities of users, as factor models have.
        """
        package = self.package
        check_integer("n", n, 1)
        rows: list[tuple[Any, ...]] = []
        for place in package.rows(id_list("users", users))[0]:
            ids, scores = package.ranker.similar_users(int(place), N=n, filter_users=[int(place)])
            rows += [
                (package.user_ids[place], rank, package.user_ids[k], float(score))
                for rank, (k, score) in enumerate(zip(ids, scores, strict=True), 1)
            ]
        names = ("to", "rank", "user", "score")
        columns = {name: [row[k] for row in rows] for k, name in enumerate(names)}
        return frames.make(columns, self.kind, self._list_rows.types | {"to": type(self.user_ids[0])})

    @of_one_state
    def predict(self, users: Some, items: Some) -> Table:
        """Return the model's scores of pairs of a user and an item, liked ones among them.

        Parameters
        ----------
        users, items : id, or sequence of ids
            Of equal lengths, one pair a position; one id goes with each of the other sequence.

        Returns
        -------
        table
            Columns user, item, score, in the order given; the score of a user without interactions is
            the number of users who like the item, and a column source says so, as in `recommend`.

        Raises
        ------
        InputError
            If an id is unknown, or the lengths differ.
        """
        package = self.package
        who = package.rows(id_list("users", users))[0]
        what = package.items(id_list("items", items))
        if len(who) != len(what) and 1 not in (len(who), len(what)):
            raise InputError(f"{len(who)} users and {len(what)} items are no pairs: give equally many")
        who, what = np.broadcast_arrays(who, what)
        scores = np.zeros(len(who))
        some, at = np.unique(who, return_inverse=True)
        popular = np.zeros(len(some), dtype=bool)
        size = max(1, SCORE_BLOCK // len(package.item_ids))
        for start in range(0, len(some), size):
            part = some[start : start + size]
            rows = package.histories(part)[0]
            popular[start : start + size] = package.ranker.falls_back(part, rows)
            inside = np.flatnonzero((at >= start) & (at < start + size))
            scores[inside] = package.ranker.scores(part, rows)[at[inside] - start, what[inside]]
        columns: dict[str, list[Any]] = {
            "user": [package.user_ids[k] for k in who], "item": [package.item_ids[k] for k in what],
            "score": scores.tolist(),
        }  # fmt: skip
        if popular.any():
            columns["source"] = [POPULAR if one else MODEL for one in popular[at]]
        return frames.make(columns, self.kind, self._list_rows.types)

    # Reasons

    @of_one_state
    def explain(
        self, user: Id, item: Id, n: int = 10, *, as_of: float | str | None = None, formulas: int = 0,
        changes: int = 0, model_rule: int = 0,
    ) -> Why:  # fmt: skip
        """Return why an item would be recommended to a user.

        Parameters
        ----------
        user, item : id
        n : int ≥ 1
            How many liked items are listed.
        as_of : number or str, optional
            As in `recommend`.
        formulas : int ≥ 0
            List so many conjunctions or disjunctions of users that hold for the item, by their weight
            in the model: of `cf-komd` with kernel "mc", "mc-sum", "md" or "linear", `ecf-omd` and
            `cf-omd`. A note says why another model has none.
        changes : int ≥ 0
            List so many liked items without which the item's rank would be worst.
        model_rule : int ≥ 0
            Tell for which other users, at most 500 drawn from those without the item, the model puts it
            among so many first, by one or two liked items; and which items it puts there for this user,
            by one or two attributes of the item. A note says so where a rule did not hold its test.

        Raises
        ------
        InputError
            If an id is unknown, or a number is negative.
        """
        profile = self.package.profile(one_id("user", user), as_of=as_of)
        return explained(
            self.package, profile, item, n, kind=self.kind, formulas=formulas, changes=changes,
            model_rule=model_rule, attributes=self._now.attributes if model_rule else None,
        )  # fmt: skip

    @of_one_state
    def explain_history(
        self, history: Sequence[Id], item: Id, n: int = 10, *,
        times: Sequence[float | str] | None = None, weights: Sequence[float] | None = None,
        formulas: int = 0, changes: int = 0, model_rule: int = 0,
    ) -> Why:  # fmt: skip
        """Return why an item would be recommended to a new user with this history."""
        profile = self.package.profile(history=id_list("history", history), times=times, weights=weights)
        return explained(
            self.package, profile, item, n, kind=self.kind, formulas=formulas, changes=changes,
            model_rule=model_rule, attributes=self._now.attributes if model_rule else None,
        )  # fmt: skip

    @of_one_state
    def rules(self, user: Id, n: int = 10) -> Rules:
        """Return the rules behind a user's list: of the user's profile, and of others' interactions.

        Both are counted in the data, the user's own interactions left out; the model uses neither.

        Parameters
        ----------
        user : id
        n : int ≥ 1
            Length of the list for whose items rules are looked for.

        Raises
        ------
        InputError
            If the id is unknown.
        """
        package = self.package
        profile = package.profile(one_id("user", user))
        lists = self._lists(ListRequest.of_users(package, [user]), n, None, None, (), 0.0, None)
        [[(_, found)]] = list(lists.blocks())
        return list_rules(self._now, profile, found.ids.tolist(), self.kind)

    @of_one_state
    def model_rule(self, *, user: Id | None = None, item: Id | None = None, n: int = FIRST) -> ModelRule:
        """Return a rule read from the model's own lists, and how far it holds.

        Of a user: which items the model puts first, as a formula over the items' attributes. Of an item:
        for which users the model puts it first, as a formula over what they like. It is learned from
        one half of the items, or users, and tested on the other.

        Parameters
        ----------
        user, item : id
            Exactly one of the two.
        n : int ≥ 1
            A list's first so many items are what the model puts first.

        Raises
        ------
        InputError
            If an id is unknown, or not exactly one is given.

        Examples
        --------
        >>> import recsys
        >>> model = recsys.Recommender("ease").fit(recsys.load_dataset("sample"))
        >>> print(model.model_rule(user="u0001", n=30))
        For u0001 ease puts first ...
        """
        return model_rule(self._now, user, item, n)

    # What changes, and files

    @one_at_a_time
    def update(
        self, rows: Any, *, items: Any = None, decimal: str | None = None, day_first: bool | None = None
    ) -> Self:
        """Take in new interactions: exactly and quickly where the ranker can, else by a new fit.

        Parameters
        ----------
        rows : table, path or Interactions
            With the columns that the first table had. New users and items are added. Where the fit took
            ratings from some value on only, a lower one takes an interaction back. Weights are added to
            those that are known.
        items : table or path, optional
            What is known of new items, or now of old ones.
        decimal, day_first : optional
            As in `Interactions.from_frame`; as at the fit when not given.

        What was noticed when the rows were read is logged, as a warning where rows are left out or
        thousands separators were found.

        Raises
        ------
        InputError
            If a column is absent, times are needed and missing, or an id is of another kind or has lost
            the leading zeros of a known one.
        """
        data = updates.rows_of(self.package, rows, decimal, day_first)
        changes = updates.changes_of(self.package, data)
        package = self.package if items is None else updates.with_items(self.package, items, data)
        self._fitted = Fitted(updates.changed(package, changes))
        return self

    @one_at_a_time
    def forget(self, users: Some) -> Self:
        """Forget what users liked: the model is then as if they had never liked anything.

        Their ids stay, with an empty history; their lists are the most popular items.

        Raises
        ------
        InputError
            If an id is unknown, or no user with interactions is left.
        """
        given = id_list("users", users)
        self.package.rows(given)  # refuses unknown ones
        names = [str(name) for name in given]
        package = updates.without_features(self.package, names)
        self._fitted = Fitted(
            updates.changed(package, Changes({name: {} for name in names}, set(names)))
        )
        return self

    @of_one_state
    def save(self, path: Target) -> None:
        """Write everything to exactly `path`, atomically, for `recsys.load` and `recsys serve`.

        The file holds the ids and histories of all users.
        """
        package = self.package
        if self._kind is not None:
            columns = replace(package.columns or Columns(), kind=self._kind)
            package = replace(package, columns=columns)
        package.save(path)

    @property
    def kind(self) -> str:
        """Of the tables that come back: "pandas", "polars" or "pyarrow"."""
        if self._kind is not None:
            return self._kind
        columns = self.package.columns
        return "pandas" if columns is None else columns.kind

    def __repr__(self) -> str:
        if self._fitted is None:
            return f"Recommender({self.model!r})"
        users = counted(len(self.user_ids), "user")
        items = counted(len(self.item_ids), "item")
        word = "interaction" if word_of(self.package) == "liked" else "rating"
        pairs = counted(self.package.user_items.nnz, word)
        return f"<Recommender: {self.ranker.name} on {users}, {items}, {pairs}>"

    def _repr_html_(self) -> str:
        """Return the HTML view for a notebook: the data of the fit, and the ranker."""
        if self._fitted is None:
            return f"<pre>{escape(repr(self))}</pre>"
        diagram = getattr(self.ranker, "_repr_html_", lambda: escape(repr(self.ranker)))()
        return f"<p>{escape(repr(self)[1:-1])}</p>{diagram}"

    # Within

    def _lists(
        self,
        request: ListRequest,
        n: int,
        items: Any,
        exclude: Any,
        dislikes: Any,
        diversity: float,
        filters: Any,
        filter_liked: bool = True,
        wanted: Merchandising | None = None,
    ) -> Lists:
        lists = Lists(
            self.package, request, check_integer("n", n, 1),
            self.package.items(id_list("dislikes", dislikes)).tolist(),
            check_real("diversity", diversity, 0.0, 1.0),
            left_out(self.package, items, exclude, filters), check_flag("filter_liked", filter_liked),
            wanted,
        )  # fmt: skip
        if told := lists.unlisted_pins():
            LOG.warning(told)
        return lists

    @property
    def _list_rows(self) -> ListRows:
        return ListRows(self._now, self.kind)
