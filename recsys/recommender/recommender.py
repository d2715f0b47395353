"""A recommender in ids and tables, over any ranker."""

from __future__ import annotations

import copy
import importlib.util
import logging
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys import errors
from recsys.data import Interactions, tables
from recsys.data.columns import Columns
from recsys.errors import CapabilityError, InputError, counted
from recsys.explain import Attributes, item_attributes
from recsys.rankers import ModelPackage, Ranker, fit_package, load_package
from recsys.rankers.package import fit_notes, id_list
from recsys.rankers.registry import ranker_of
from recsys.recommender.explained import Rules, Why, explained, list_rules
from recsys.recommender.filters import left_out
from recsys.recommender.lists import (
    COLUMNS,
    POPULAR,
    ListOptions,
    Row,
    Users,
    any_popular,
    columns_of,
    lists,
    most_popular,
    row_blocks,
    rows_of,
    types_of,
    word_of,
    write_rows,
)
from recsys.recommender.updates import updated
from recsys.reranking import similar
from recsys.utils.progress import bar, listening
from recsys.utils.tasks import count_jobs
from recsys.utils.validation import check_choice, check_flag, check_integer, check_real

LOG = logging.getLogger(__name__)
UNKNOWN = ("error", "skip", "popular")
Id = str | int


class Recommender:
    """Lists with explanations, similar items and rules for your ids and tables.

    Results have the original ids, text or integers; requests match ids as text. Results are pandas,
    polars or pyarrow tables, like the input.

    Parameters
    ----------
    model : str or Ranker
        A specification such as "cf-komd:kernel=mc,degree=2", or a ranker; `fit` fits a copy.

    Attributes
    ----------
    notes : tuple of str
        Decisions of the reader and data that the ranker does not use; empty after loading.

    Examples
    --------
    >>> import recsys
    >>> model = recsys.Recommender("ease").fit(recsys.load_dataset("sample"))
    >>> table = model.recommend("u0001", n=2)
    >>> list(table.columns)
    ['user', 'rank', 'item', 'title', 'score', 'why']
    >>> print(table["why"][0])
    Because you liked Crimson Compass (1954), Quiet Kingdom (1962) and Electric Garden (1987).
    """

    def __init__(self, model: str | Ranker = "auto") -> None:
        if isinstance(model, str):
            ranker_of(model)  # refuses a wrong one now
        elif not isinstance(model, Ranker):
            raise InputError(f"model must be a ranker or its name, not {type(model).__name__}")
        self.model = model
        self.notes: tuple[str, ...] = ()
        self._package: ModelPackage | None = None
        self._attributes: tuple[ModelPackage, Attributes] | None = None

    @classmethod
    def of(cls, package: ModelPackage, kind: str | None = None) -> Self:
        """Return the recommender of a fitted model package; `kind` is that of its tables."""
        recommender = cls(package.ranker)
        if kind is not None:
            package = replace(package, columns=replace(package.columns or Columns(), kind=kind))
        recommender._package = package
        return recommender

    def fit(
        self,
        data: Interactions | str | os.PathLike[str] | sp.csr_matrix | Any,
        *,
        show_progress: bool = False,
        **columns: Any,
    ) -> Self:
        """Fit on interactions.

        Parameters
        ----------
        data : Interactions, table, path or (users, items) sparse matrix
            For a matrix, ids are row and column numbers, values above 0 are interactions, and weighted
            models use the values.
        **columns
            Of a table or path, as of `Interactions.from_frame`: user, item, rating, time, weight, …
        """
        if columns and (isinstance(data, Interactions) or sp.issparse(data)):
            raise InputError(f"{next(iter(columns))} applies only to a table or file")
        if sp.issparse(data):
            data = Interactions.from_matrix(data, name="data")
        elif not isinstance(data, Interactions):
            data = Interactions.from_frame(data, **columns)
        data = data.positive()
        ranker = ranker_of(self.model) if isinstance(self.model, str) else copy.deepcopy(self.model)
        self.notes = (*data.notes, *fit_notes(ranker, data))
        for note in self.notes:
            LOG.info("%s: %s", data.name, note)
        self._fit(ranker, data, show_progress)
        return self

    def _fit(self, ranker: Ranker, data: Interactions, show_progress: bool) -> None:
        start = time.perf_counter()
        self._package = fit_package(ranker, data, show_progress=show_progress)
        LOG.info("fitted %s in %.1f s", repr(self)[1:-1], time.perf_counter() - start)

    @property
    def package(self) -> ModelPackage:
        """The ranker, ids, titles and interactions."""
        if self._package is None:
            raise errors.NotFittedError("this recommender is not fitted yet: call fit(data)")
        return self._package

    @property
    def ranker(self) -> Ranker:
        """The fitted ranker."""
        return self.package.ranker

    @property
    def user_ids(self) -> NDArray[np.object_]:
        """Ids of the users."""
        return self.package.user_ids

    @property
    def item_ids(self) -> NDArray[np.object_]:
        """Ids of the items."""
        return self.package.item_ids

    @property
    def kind(self) -> str:
        """The kind of result tables: "pandas", "polars" or "pyarrow"."""
        return self.package.kind

    def recommend(
        self, users: Any, n: int = 10, *, unknown: str = "error", why: bool = True, **options: Any
    ) -> Any:
        """Return the best items for users.

        Parameters
        ----------
        users : id, or sequence of ids
        n : int ≥ 1
            Largest number of items per user.
        unknown : "error", "skip" or "popular"
            Result for an unknown user: an error, no rows, or the most popular items.
        why : bool
            Whether each item has a sentence that explains it.
        items, exclude : sequence of ids, optional
            The only items to recommend, and items to leave out.
        filters : mapping, optional
            Conditions on item attributes: {"year": (1980, 1999), "genres": ["Drama", "War"]}. A pair is
            an inclusive range; a list matches any of its values.
        dislikes : sequence of ids
            Items to leave out; similar items are ranked lower.
        diversity : float in 0…1
            Weight of diversity; 0 keeps the order of the scores.
        filter_liked : bool
            Whether to leave out the user's own items; True by default.

        Returns
        -------
        table
            Columns user, rank, item, title, score, why; title and why are omitted if not available.
            Users without interactions get the most popular items, scored by their number of users; a
            column source then contains "popular" or "model".
        """
        check_choice("unknown", unknown, UNKNOWN)
        package, chosen, names = self.package, ListOptions(**options), id_list("users", users)
        known = [name for name in names if unknown == "error" or str(name) in package.user_index]
        rows = list(chain(*row_blocks(package, Users.known(package, known), n, chosen, why)))
        new = [name for name in names if str(name) not in package.user_index]
        if unknown == "popular" and new:
            empty = sp.csr_matrix((len(new), len(package.item_ids)), dtype=np.float32)
            ids = np.zeros(len(new), dtype=np.int64)
            strangers = Users(new, ids, empty, package.ranker.folds_in)
            rows += rows_of(package, strangers, [most_popular(package, n, chosen)] * len(new), why)
            order = {str(name): k for k, name in enumerate(names)}
            rows.sort(key=lambda row: order[str(row[0])])
        return _table(package, rows, why)

    def recommend_history(
        self,
        history: Sequence[Id],
        n: int = 10,
        *,
        times: Sequence[float | str] | None = None,
        weights: Sequence[float] | None = None,
        user: Id = "new",
        why: bool = True,
        **options: Any,
    ) -> Any:
        """Return the best items for a new user with this history.

        Parameters
        ----------
        history : sequence of ids
            Oldest item first; may be empty.
        times, weights : sequences, optional
            Times of the items, instead of their order, and weights.
        user : str or int
            Value of the column user.

        Other parameters: as of `recommend`.
        """
        package = self.package
        users = Users.new(user, package.profile(None, history, times=times, weights=weights))
        blocks = row_blocks(package, users, n, ListOptions(**options), why)
        return _table(package, list(chain(*blocks)), why)

    def recommend_all(
        self,
        path: str | os.PathLike[str] | None = None,
        n: int = 10,
        *,
        why: bool = False,
        raw: bool = False,
        n_jobs: int = 1,
        show_progress: bool = False,
        **options: Any,
    ) -> Any:
        """Return the lists of all users, or write them to a file in blocks.

        Parameters
        ----------
        path : path, optional
            File that ends in .parquet or .csv; by default a table is returned.
        raw : bool
            Whether to write cells of CSV without an apostrophe before spreadsheet formulas.
        n_jobs : int
            Number of processes (joblib); −1 for all processors.

        Other parameters: as of `recommend`.
        """
        package, chosen, n_jobs = self.package, ListOptions(**options), count_jobs(n_jobs)
        users = Users.known(package)
        with bar(check_flag("show_progress", show_progress)) as progress, listening(progress):
            blocks = row_blocks(package, users, n, chosen, check_flag("why", why), n_jobs)
            if path is None:
                return _table(package, list(chain(*blocks)), why)
            if not isinstance(path, (str, os.PathLike)):
                raise InputError(f"path must name a file, not {type(path).__name__}")
            target = Path(path)
            if target.suffix not in (".parquet", ".csv"):
                raise InputError(f"{target}: the ending must be .parquet or .csv")
            names, types = columns_of(package, any_popular(package, users), why), types_of(package)
            places = [list(COLUMNS).index(name) for name in names]
            cells = ([tuple(row[place] for place in places) for row in block] for block in blocks)
            write_rows(target, {name: types[name] for name in names}, cells, raw)
            return target

    def similar(
        self,
        items: Any,
        n: int = 10,
        *,
        candidates: Sequence[Id] | None = None,
        exclude: Sequence[Id] | None = None,
        filters: Any = None,
        diversity: float = 0.0,
    ) -> Any:
        """Return the items most similar to one or several: columns to, rank, item, title, score.

        `candidates` are the only items to return; other parameters as of `recommend`.
        """
        package, diversity = self.package, check_real("diversity", diversity, 0.0, 1.0)
        options: dict[str, Any] = {"filter_items": left_out(package, candidates, exclude, filters)}
        options |= {"diversity": diversity, "item_users": package.item_users if diversity else None}
        indices = package.items(items).tolist()
        lists = [similar(package.ranker, index, n, **options) for index in indices]
        return _neighbors(package, "item", indices, lists)

    def similar_users(self, users: Any, n: int = 10) -> Any:
        """Return the users most similar to one or several: columns to, rank, user, score."""
        package = self.package
        indices = package.rows(users)[0].tolist()
        ranker = package.ranker
        lists = [ranker.similar_users(index, N=n, filter_users=[index]) for index in indices]
        return _neighbors(package, "user", indices, lists)

    def predict(self, users: Any, items: Any) -> Any:
        """Return scores of pairs of users and items, or of one with each: columns user, item, score."""
        package = self.package
        who, what = package.rows(users)[0], package.items(items)
        if len(who) != len(what) and 1 not in (len(who), len(what)):
            raise InputError(f"users and items must have equal lengths, not {len(who)} and {len(what)}")
        who, what = np.broadcast_arrays(who, what)
        scores = np.zeros(len(who))
        every, at = np.unique(who, return_inverse=True)
        size = max(1, 16_000_000 // len(package.item_ids))  # users whose scores are held at once
        for start in range(0, len(every), size):
            part = every[start : start + size]
            inside = (at >= start) & (at < start + size)
            block = package.ranker.scores(part, package.user_items[part])
            scores[inside] = block[at[inside] - start, what[inside]]
        columns = {
            "user": [package.user_ids[k] for k in who],
            "item": [package.item_ids[k] for k in what],
            "score": scores.tolist(),
        }
        return tables.make(columns, package.kind, types_of(package))

    def explain(
        self,
        user: Id | None = None,
        item: Id | None = None,
        n: int = 10,
        *,
        history: Sequence[Id] | None = None,
        times: Sequence[float | str] | None = None,
        weights: Sequence[float] | None = None,
        changes: int = 0,
    ) -> Why:
        """Explain an item to a user, or to a new user with a history as of `recommend_history`.

        `n` is the largest number of liked items to list, `changes` the number of liked items for the
        counterfactual ranks, largest effects first.
        """
        if item is None:
            raise InputError("explain needs an item")
        profile = self.package.profile(user, history, times=times, weights=weights)
        return explained(self.package, profile, item, n, changes=changes)

    def rules(self, user: Id, n: int = 10) -> Rules:
        """Return the rules for a user's list of n items, counted without the user; no model is asked."""
        package = self.package
        profile, users = package.profile(user), Users.known(package, [user])
        [result] = lists(package, users, check_integer("n", n, 1), ListOptions())
        if self._attributes is None or self._attributes[0] is not package:
            self._attributes = package, item_attributes(package.interactions)
        return list_rules(package, profile, result.ids.tolist(), self._attributes[1])

    def update(
        self, add: Any = None, *, remove: Any = None, items: Any = None, show_progress: bool = False
    ) -> Self:
        """Add and remove rows, and fit again with the same parameters.

        The result equals a fit on all rows with the columns, thresholds and duplicates of the first fit.

        Parameters
        ----------
        add : table, path or Interactions, optional
            New rows in the form of the fit. A newer rating below the threshold removes a like.
        remove : table or path, optional
            A column of users and one of items; without items, all rows of a user.
        items : table or path, optional
            New or changed attributes of items; new items are taken in if the fit had `cold_items`.
        """
        package = self.package
        if not len(package.user_ids):
            raise CapabilityError("this model was fitted on counts and keeps no interactions: fit it")
        ranker, data = copy.deepcopy(package.ranker), updated(package, add, remove, items)
        if ranker.name == "auto":
            choice = (ranker.part_names_, ranker.part_weights_)  # type: ignore[attr-defined]
            vars(ranker)["choice_of_update"] = choice
        self.notes += data.notes
        self._fit(ranker, data, show_progress)
        return self

    def save(self, path: str | Path) -> None:
        """Write the model, with the ids and histories of all users, to `path` atomically."""
        self.package.save(path)

    def __repr__(self) -> str:
        if self._package is None:
            return f"Recommender({self.model!r})"
        word = "interaction" if word_of(self.package) == "liked" else "rating"
        return (
            f"<Recommender: {self.ranker.name} on {counted(len(self.user_ids), 'user')}, "
            f"{counted(len(self.item_ids), 'item')}, {counted(self.package.user_items.nnz, word)}>"
        )


def load(path: str | Path, frames: str | None = None) -> Recommender:
    """Read a file, or a path, of `Recommender.save` or `recsys fit --out`.

    `frames` is the kind of result tables: "pandas", "polars" or "pyarrow"; by default that of the fit.
    """
    if frames is not None:
        check_choice("frames", frames, ("pandas", "polars", "pyarrow"))
    recommender = Recommender.of(load_package(path), frames)
    if frames is None and importlib.util.find_spec(recommender.package.kind) is None:
        return Recommender.of(recommender.package, "pandas")
    return recommender


def _table(package: ModelPackage, rows: list[Row], why: bool) -> Any:
    """Return a table of rows, without the columns that say nothing."""
    names = columns_of(package, any(row[5] == POPULAR for row in rows), why)
    columns = {name: [row[k] for row in rows] for k, name in enumerate(COLUMNS) if name in names}
    if len({type(name) for name in columns["user"]}) > 1:  # an unknown user of another type
        columns["user"] = [str(name) for name in columns["user"]]
    return tables.make(columns, package.kind, types_of(package))


def _neighbors(package: ModelPackage, what: str, indices: list[int], lists: list[Any]) -> Any:
    """Return a table of the most similar items or users of each of some."""
    names, types = getattr(package, f"{what}_ids"), types_of(package)
    rows = [
        (names[index], rank, names[k], str(package.titles[k]) if what == "item" else "", score)
        for index, (ids, scores) in zip(indices, lists, strict=True)
        for rank, (k, score) in enumerate(zip(ids, scores.tolist(), strict=True), 1)
    ]
    columns = ("to", "rank", what, "title", "score")
    table = {name: [row[k] for row in rows] for k, name in enumerate(columns)}
    if what == "user" or not package.titled:
        del table["title"]
    return tables.make(table, package.kind, types | {"to": types[what]})
