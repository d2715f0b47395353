"""A recommender that speaks in ids and tables, over any ranker."""

from __future__ import annotations

import copy
import functools
import importlib.util
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from recsys import errors
from recsys.data import Interactions
from recsys.data.columns import Columns
from recsys.data.events import Changes
from recsys.engines import Engine
from recsys.errors import InputError, counted
from recsys.explain import (
    Attributes,
    Reasons,
    because,
    item_attributes,
    item_rule,
    reasons,
    reasons_for_items,
    taste_rule,
)
from recsys.explain import text as wording
from recsys.rankers import Bundle, Ranker, Recommendations, fit_bundle, load_bundle, make_ranker
from recsys.rankers.catalogue import Profile, texts_of
from recsys.recommender import updates
from recsys.recommender.answers import Rules, Why
from recsys.recommender.everybody import plain_options, write_everybody
from recsys.recommender.filters import left_out
from recsys.recommender.ids import id_list, one_id
from recsys.recommender.lists import USERS, Asked, Block, Lists
from recsys.reranking import similar as similar_items
from recsys.utils import frames
from recsys.utils.files import is_folder
from recsys.utils.frames import KINDS
from recsys.utils.model_file import Target
from recsys.utils.rows import write_rows
from recsys.utils.spec import parse_spec
from recsys.utils.topn import LOWEST
from recsys.utils.validation import check_integer, check_real

UNKNOWN = ("error", "skip", "popular")
NAMED = 3  # liked items in a sentence
LEAST_PROFILE = 5  # liked items below which no taste rule is looked for
Id = str | int
Some = Id | Sequence[Id]
Method = TypeVar("Method", bound=Callable[..., Any])
NAMES = ("user", "rank", "item", "title", "score", "why")
TYPES: dict[str, type] = {"rank": int, "title": str, "score": float, "why": str}


def _of_one_state(method: Method) -> Method:
    """Answer from the state that there is when the call comes, whatever an update puts in its place."""

    @functools.wraps(method)
    def answer(self: Any, *given: Any, **named: Any) -> Any:
        return method(copy.copy(self), *given, **named)

    return answer  # type: ignore[return-value]


def _one_at_a_time(method: Method) -> Method:
    """Let a change see the changes before it, whichever threads they come from."""

    @functools.wraps(method)
    def change(self: Any, *given: Any, **named: Any) -> Any:
        with self._changing:
            return method(self, *given, **named)

    return change  # type: ignore[return-value]


class _Fitted:
    """A bundle, and what is made of it once."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle

    @cached_property
    def titled(self) -> bool:
        """Whether items have titles besides their ids."""
        return bool((self.bundle.titles != texts_of(self.bundle.item_ids)).any())

    @cached_property
    def item_users(self) -> Any:
        """Who liked each item, as CSC."""
        return self.bundle.user_items.tocsc()

    @cached_property
    def attributes(self) -> Attributes:
        """The items' attributes."""
        return item_attributes(self.bundle.interactions)


class Recommender:
    """Lists with reasons for people, items like an item, and what is behind them, in your ids.

    Parameters
    ----------
    model : str or Ranker
        A ranker's specification such as "auto", "ease" or "cf-komd:kernel=mc,degree=2", or a ranker, of
        which a copy is fitted.

    Attributes
    ----------
    ranker : Ranker
        The fitted one; it works with matrices.
    bundle : Bundle
        The ranker, the ids and titles, and who liked what: what a file holds.

    Notes
    -----
    Ids come back as they came in, text or whole numbers, also after a file; asked for, they are matched
    by their text. Tables come back of the kind that came in: pandas, polars or pyarrow.

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
    """

    def __init__(self, model: str | Ranker = "auto") -> None:
        if isinstance(model, str):
            name, params = parse_spec(model)
            make_ranker(name, **params)  # refuses it now
        elif not isinstance(model, Ranker):
            raise InputError(
                f"model must be a ranker or a specification such as 'ease', not {type(model).__name__}"
            )
        self.model = model
        self._fitted: _Fitted | None = None
        self._kind: str | None = None
        self._changing = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        """Return what copies and pickles are made of: a lock is no part of it."""
        return {name: value for name, value in vars(self).items() if name != "_changing"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take it up, with a lock of its own."""
        vars(self).update(state)
        self._changing = threading.RLock()

    @classmethod
    def of(cls, bundle: Bundle, kind: str | None = None) -> Self:
        """Return the recommender of a fitted bundle, whose tables are of a kind."""
        made = cls(bundle.ranker)
        made._fitted, made._kind = _Fitted(bundle), kind
        return made

    @_one_at_a_time
    def fit(self, data: Any, *, show_progress: bool = False, **columns: Any) -> Self:
        """Fit on who liked what.

        Parameters
        ----------
        data : Interactions, table or path
            A table or file is read as `Interactions.from_frame` does.
        show_progress : bool
        **columns
            What `Interactions.from_frame` takes: user, item, rating, time, items, users, min_rating.

        Raises
        ------
        InputError
            If the data cannot be read or fitted on.
        """
        if not isinstance(data, Interactions):
            data = Interactions.from_frame(data, **columns)
        elif columns:
            raise InputError(f"{next(iter(columns))} is for a table or a file; these are interactions")
        if isinstance(self.model, str):
            name, params = parse_spec(self.model)
            ranker = make_ranker(name, **params)
        else:
            ranker = copy.deepcopy(self.model)
        fitted = _Fitted(fit_bundle(ranker, data, show_progress=show_progress))
        self._fitted, self._kind = fitted, None
        return self

    @property
    def bundle(self) -> Bundle:
        """The ranker, ids, titles and histories."""
        return self._now.bundle

    @property
    def _now(self) -> _Fitted:
        if self._fitted is None:
            raise errors.NotFittedError("this recommender is not fitted yet: call fit(data)")
        return self._fitted

    @property
    def ranker(self) -> Ranker:
        """The fitted ranker."""
        return self.bundle.ranker

    @property
    def user_ids(self) -> NDArray[np.object_]:
        """Ids of the users, (users,) object, in order of first appearance."""
        return self.bundle.user_ids

    @property
    def item_ids(self) -> NDArray[np.object_]:
        """Ids of the items, (items,) object, in order of first appearance."""
        return self.bundle.item_ids

    # Lists

    @_of_one_state
    def recommend(
        self,
        users: Any,
        n: int = 10,
        *,
        items: Sequence[Id] | None = None,
        exclude: Sequence[Id] | None = None,
        dislikes: Sequence[Id] = (),
        diversity: float = 0.0,
        filters: Mapping[str, Any] | None = None,
        as_of: float | str | None = None,
        unknown: str = "error",
        why: bool = True,
    ) -> Any:
        """Return the best items for users; what they like already is in no list.

        Parameters
        ----------
        users : id, or sequence of ids
        n : int ≥ 1
            Items a user, at most.
        items, exclude : sequence of ids, optional
            The only items that may be recommended, and those that may not.
        dislikes : sequence of ids
            Items to keep away from; what goes with them is lowered.
        diversity : float in 0…1
            0 keeps the order of the scores.
        filters : mapping, optional
            By what is known of items: {"year": (1980, 1999), "genres": ["Drama", "War"]}; a pair is a
            range with both ends, a list any of its values, a single value itself.
        as_of : number or str, optional
            Rank by what these users had liked before: a number in the data's unit, a date or a datetime.
            The model was fitted on what came later, too, and counts of people are of all times.
        unknown : "error", "skip" or "popular"
            What an unknown user gets.
        why : bool
            Whether each item comes with a sentence; it takes as long as the lists, or longer.

        Returns
        -------
        table
            Columns user, rank, item, title, score, why; without title where items have none, and without
            why where the model has no reasons. Users without likes get the most popular items.

        Raises
        ------
        InputError
            If an id is unknown, a number out of range, or nothing passes the filters.
        """
        if not isinstance(unknown, str) or unknown not in UNKNOWN:
            raise InputError(f"unknown must be one of {', '.join(UNKNOWN)}, not {unknown!r}")
        given = id_list("users", users)
        index = self.bundle.user_index
        known = given if unknown == "error" else [name for name in given if str(name) in index]
        lists = self._lists(
            Asked.of_users(self.bundle, known, as_of), n, items, exclude, dislikes, diversity, filters
        )
        found = {str(lists.asked.labels[k]): self._rows(lists, k, one, why)
                 for block in lists.blocks() for k, one in block}  # fmt: skip
        if unknown == "popular":
            for name in given:
                if str(name) not in found:
                    found[str(name)] = self._popular(name, n, lists, why)
        return self._frame([row for name in given for row in found.get(str(name), [])], why)

    @_of_one_state
    def recommend_history(
        self,
        history: Sequence[Id],
        n: int = 10,
        *,
        times: Sequence[float | str] | None = None,
        items: Sequence[Id] | None = None,
        exclude: Sequence[Id] | None = None,
        dislikes: Sequence[Id] = (),
        diversity: float = 0.0,
        filters: Mapping[str, Any] | None = None,
        why: bool = True,
        user: Id = "new",
    ) -> Any:
        """Return the best items for somebody who likes these, whether the model knows them or not.

        Parameters
        ----------
        history : sequence of ids
            In order, the oldest like first; it may be empty.
        times : sequence of number or str, optional
            When each was liked, instead of the order.
        n, items, exclude, dislikes, diversity, filters, why
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
        profile = self.bundle.profile(history=id_list("history", history), times=times)
        lists = self._lists(
            Asked.of_profile(user, profile), n, items, exclude, dislikes, diversity, filters
        )
        [[(k, one)]] = list(lists.blocks())
        return self._frame(self._rows(lists, k, one, why), why)

    @_of_one_state
    def recommend_all(
        self,
        path: str | os.PathLike[str] | None = None,
        n: int = 10,
        *,
        items: Sequence[Id] | None = None,
        exclude: Sequence[Id] | None = None,
        dislikes: Sequence[Id] = (),
        diversity: float = 0.0,
        filters: Mapping[str, Any] | None = None,
        as_of: float | str | None = None,
        why: bool = False,
        raw: bool = False,
        engine: str | Engine = "local",
        workers: int | None = None,
        threads: int | None = None,
        block: int | None = None,
    ) -> Any:
        """Make the lists of all users, and write them to a file or a folder a block of users at a time.

        Parameters
        ----------
        path : path, optional
            Ending in .parquet, .json or .csv: a file, there whole or not at all. Ending in a slash or in
            nothing, or a folder that is there: a folder, of one Parquet file a block. A run that was
            stopped is gone on with by the same call: parts that are there are left as they are. A table
            is returned when not given.
        n, items, exclude, dislikes, diversity, filters, as_of, why
            As in `recommend`.
        raw : bool
            Whether text in CSV that a spreadsheet would run as a formula (it begins with =, +, - or @)
            stays as it is; it gets an apostrophe otherwise.
        engine : str or Engine
            Who makes the parts of a folder, as `recsys.engines.engine` takes it: "local", this process;
            "local=2", two of its own; "dask" or "ray", also with "=ADDRESS". Workers map one file: the
            model is written to the folder for as long as they need it. It pays from minutes of work on.
        workers, threads : int ≥ 1, optional
            How many workers to start; threads of each, 1 where they are processes.
        block : int ≥ 1, optional
            Users a part of a folder, 4,096 when not given. Parts equal a file to the bit where it is a
            multiple of that.

        Returns
        -------
        Path or table

        Raises
        ------
        InputError
            As `recommend`; if the file or folder cannot be written, or the folder holds parts of another
            model or of lists made in another way; if the engine is not installed or not reached, or its
            workers ended, of which the parts that are written stay.
        """
        if path is not None and not isinstance(path, (str, os.PathLike)):
            raise InputError(f"path must name a file, not {type(path).__name__}")
        if path is not None and (is_folder(path) or not Path(path).suffix):
            options = plain_options(n, items, exclude, dislikes, diversity, filters, as_of, why)
            return write_everybody(
                path, self.bundle, options, on=engine, workers=workers, threads=threads,
                block=USERS if block is None else block,
            ).folder  # fmt: skip
        if engine != "local" or (workers, threads, block) != (None, None, None):
            raise InputError(
                "engine, workers, threads and block are for a folder: end the path in a slash"
            )
        lists = self._lists(
            Asked.of_users(self.bundle, None, as_of), n, items, exclude, dislikes, diversity, filters
        )
        if path is None:
            rows = (self._rows(lists, k, one, why) for block in lists.blocks() for k, one in block)
            return self._frame([row for some in rows for row in some], why)
        target = Path(path)
        if target.suffix not in (".parquet", ".json", ".csv"):
            raise InputError(f"{target}: the ending must be .parquet, .json or .csv")
        columns, made = self._written(lists, why)
        write_rows(target, columns, (made(some) for some in lists.blocks()), raw)
        return target

    @_of_one_state
    def similar(
        self,
        items: Some,
        n: int = 10,
        *,
        candidates: Sequence[Id] | None = None,
        exclude: Sequence[Id] | None = None,
        diversity: float = 0.0,
        filters: Mapping[str, Any] | None = None,
    ) -> Any:
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
        bundle = self.bundle
        without = left_out(bundle, candidates, exclude, filters)
        check_integer("n", n, 1)
        rows: list[tuple[Any, ...]] = []
        for place in bundle.items(id_list("items", items)):
            ids, scores = similar_items(
                bundle.ranker, int(place), n, diversity=diversity, filter_items=without,
                item_users=self._now.item_users if diversity else None,
            )  # fmt: skip
            rows += [
                (bundle.item_ids[place], rank, bundle.item_ids[k], str(bundle.titles[k]), float(score))
                for rank, (k, score) in enumerate(zip(ids, scores, strict=True), 1)
            ]
        names = ["to", "rank", "item", "title", "score"]
        columns = {name: [row[k] for row in rows] for k, name in enumerate(names)}
        if not self._now.titled:
            del columns["title"]
        return frames.make(columns, self.kind, self._types())

    # Reasons

    @_of_one_state
    def explain(self, user: Id, item: Id, n: int = 10, *, as_of: float | str | None = None) -> Why:
        """Return why an item would be recommended to a user.

        Parameters
        ----------
        user, item : id
        n : int ≥ 1
            How many liked items are listed.
        as_of : number or str, optional
            As in `recommend`.

        Raises
        ------
        InputError
            If an id is unknown.
        """
        return self._why(self.bundle.profile(one_id("user", user), as_of=as_of), item, n)

    @_of_one_state
    def explain_history(
        self,
        history: Sequence[Id],
        item: Id,
        n: int = 10,
        *,
        times: Sequence[float | str] | None = None,
    ) -> Why:
        """Return why an item would be recommended to somebody with this history."""
        profile = self.bundle.profile(history=id_list("history", history), times=times)
        return self._why(profile, item, n)

    @_of_one_state
    def rules(self, user: Id, n: int = 10) -> Rules:
        """Return the rules behind a user's list: their taste by attributes, and other people's likes.

        Both are counted in the data, the user's own likes left out; the model uses neither.

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
        bundle = self.bundle
        profile = bundle.profile(one_id("user", user))
        lists = self._lists(Asked.of_users(bundle, [user]), n, None, None, (), 0.0, None)
        [[(_, found)]] = list(lists.blocks())
        told = []
        for k in found.ids.tolist():
            rule = item_rule(bundle.user_items, profile.items, k, exclude=profile.user)
            if rule is not None:
                sentence = wording.people(bundle.titles, rule, word=self._word)
                told.append((bundle.item_ids[k], str(bundle.titles[k]), sentence, rule))
        taste = self._taste(profile)
        said: tuple[str, ...] = ()
        if taste is not None:
            said = (
                f"This taste as a rule: {wording.readable(taste.rule)}.",
                *wording.taste(taste, word=self._word),
            )
        return Rules(taste, said, tuple(told), self.kind)

    # What changes, and files

    @_one_at_a_time
    def update(self, rows: Any, *, items: Any = None) -> Self:
        """Take in new likes: exactly and quickly where the ranker can, else by a new fit.

        Parameters
        ----------
        rows : table, path or Interactions
            With the columns that the first table had. New users and items are added. Where the fit took
            ratings from some value on only, a lower one takes a like back.
        items : table or path, optional
            What is known of new items, or now of old ones.

        Raises
        ------
        InputError
            If a column is absent, times are needed and missing, or an id is of another kind.
        """
        data = updates.rows_of(self.bundle, rows)
        changes = updates.changes_of(self.bundle, data)
        bundle = self.bundle if items is None else updates.with_items(self.bundle, items, data)
        self._fitted = _Fitted(updates.changed(bundle, changes))
        return self

    @_one_at_a_time
    def forget(self, users: Some) -> Self:
        """Forget what users liked: the model is then as if they had never liked anything.

        Their ids stay, with an empty history; their lists are the most popular items.

        Raises
        ------
        InputError
            If an id is unknown, or nobody who likes anything is left.
        """
        given = id_list("users", users)
        self.bundle.rows(given)  # refuses unknown ones
        names = [str(name) for name in given]
        bundle = updates.without_features(self.bundle, names)
        self._fitted = _Fitted(
            updates.changed(bundle, Changes({name: {} for name in names}, set(names)))
        )
        return self

    @_of_one_state
    def save(self, path: Target) -> None:
        """Write everything to exactly `path`, atomically, for `recsys.load` and `recsys serve`.

        The file holds the ids and histories of all users.
        """
        bundle = self.bundle
        if self._kind is not None:
            columns = replace(bundle.columns or Columns(), kind=self._kind)
            bundle = replace(bundle, columns=columns)
        bundle.save(path)

    @property
    def kind(self) -> str:
        """Of the tables that come back: "pandas", "polars" or "pyarrow"."""
        if self._kind is not None:
            return self._kind
        columns = self.bundle.columns
        return "pandas" if columns is None else columns.kind

    def __repr__(self) -> str:
        if self._fitted is None:
            return f"Recommender({self.model!r})"
        users = counted(len(self.user_ids), "user")
        items = counted(len(self.item_ids), "item")
        return f"<Recommender: {self.ranker.name} on {users}, {items}, {self._likes()}>"

    def _repr_html_(self) -> str:
        """Return it as a notebook shows it: what it is fitted on, and what the ranker is made of."""
        if self._fitted is None:
            return f"<pre>{escape(repr(self))}</pre>"
        diagram = getattr(self.ranker, "_repr_html_", lambda: escape(repr(self.ranker)))()
        return f"<p>{escape(repr(self)[1:-1])}</p>{diagram}"

    # Within

    def _likes(self) -> str:
        return counted(self.bundle.user_items.nnz, "like" if self._word == "liked" else "rating")

    @property
    def _word(self) -> str:
        """What having an item means: "rated" where every rating counted."""
        columns = self.bundle.columns
        every = columns is not None and columns.rating is not None and columns.min_rating is None
        return "rated" if every else "liked"

    def _lists(
        self,
        asked: Asked,
        n: int,
        items: Any,
        exclude: Any,
        dislikes: Any,
        diversity: float,
        filters: Any,
    ) -> Lists:
        return Lists(
            self.bundle, asked, check_integer("n", n, 1),
            self.bundle.items(id_list("dislikes", dislikes)).tolist(),
            check_real("diversity", diversity, 0.0, 1.0), left_out(self.bundle, items, exclude, filters),
        )  # fmt: skip

    def _rows(
        self, lists: Lists, k: int, found: Recommendations, why: bool
    ) -> list[tuple[Any, int, Any, str, float, str]]:
        """Return the rows of one user's list: user, rank, item, title, score, why."""
        bundle, asked = self.bundle, lists.asked
        items = found.ids.tolist()
        told = [""] * len(items)
        if why:
            user, row, times = asked.one(k)
            known = reasons_for_items(bundle.ranker, user, row, items, NAMED, times=times)
            told = [self._sentence(one) for one in known]
        return self._listed(asked.labels[k], items, found.scores.tolist(), told)

    def _written(
        self, lists: Lists, why: bool
    ) -> tuple[dict[str, type], Callable[[Block], list[list[Any]]]]:
        """Return the columns of a file of lists, and what makes its rows of a block of users."""
        types, kept = self._types(), self._columns(why)
        places = [place for place, name in enumerate(NAMES) if name in kept]

        def made(block: Block) -> list[list[Any]]:
            return [
                [row[place] for place in places]
                for k, one in block
                for row in self._rows(lists, k, one, why)
            ]

        return {name: types[name] for name in NAMES if name in kept}, made

    def _popular(
        self, label: Any, n: int, lists: Lists, why: bool
    ) -> list[tuple[Any, int, Any, str, float, str]]:
        """Return the rows of a list of the most popular items, for somebody of whom nothing is known."""
        people = self.ranker.popularity_.astype(np.float64)
        for without in (lists.left_out, lists.dislikes):
            if without is not None:
                people[without] = LOWEST
        best = np.argsort(-people, kind="stable")[:n]
        items = best[people[best] > LOWEST].tolist()
        scores = people[items].tolist()
        told = [
            self._sentence(Reasons("popularity", number, number, [], unit="people")) if why else ""
            for number in scores
        ]
        return self._listed(label, items, scores, told)

    def _listed(
        self, label: Any, items: list[int], scores: list[float], told: list[str]
    ) -> list[tuple[Any, int, Any, str, float, str]]:
        ids, titles = self.bundle.item_ids, self.bundle.titles
        return [
            (label, rank, ids[item], str(titles[item]), score, text)
            for rank, (item, score, text) in enumerate(zip(items, scores, told, strict=True), 1)
        ]

    def _sentence(self, found: Reasons) -> str:
        return because(self.bundle.titles, found, word=self._word)

    def _columns(self, why: bool) -> list[str]:
        title, reason = ["title"] if self._now.titled else [], ["why"] if why and self._says_why else []
        return ["user", "rank", "item", *title, "score", *reason]

    @property
    def _says_why(self) -> bool:
        has = self.ranker.capabilities
        return "explain" in has or "similar-items" in has or self.ranker.name == "popularity"

    def _frame(self, rows: list[tuple[Any, ...]], why: bool) -> Any:
        columns = {name: [row[k] for row in rows] for k, name in enumerate(NAMES)}
        if len({type(name) for name in columns["user"]}) > 1:  # an unknown user of another kind
            columns["user"] = [str(name) for name in columns["user"]]
        kept = {name: columns[name] for name in self._columns(why)}
        return frames.make(kept, self.kind, self._types())

    def _types(self) -> dict[str, type]:
        """Return what the cells of each column are."""
        user, item = type(self.user_ids[0]), type(self.item_ids[0])
        return TYPES | {"user": user, "item": item, "to": item}

    def _why(self, profile: Profile, item: Id, n: int) -> Why:
        bundle = self.bundle
        place = int(bundle.items([one_id("item", item)])[0])
        found = reasons(
            bundle.ranker, profile.userid, profile.row, place, n, times=profile.times,
            as_of=profile.as_of,
        )  # fmt: skip
        rule = None
        if profile.row.nnz:
            rule = item_rule(bundle.user_items, profile.items, place, exclude=profile.user)
        rows = tuple(
            (
                bundle.item_ids[k], str(bundle.titles[k]), float(value),
                wording.ago(found.ages[k], word=self._word) if k in found.ages else "",
            )
            for k, value in found.items
        )  # fmt: skip
        return Why(
            bundle.item_ids[place], str(bundle.titles[place]), self._sentence(found),
            "" if rule is None else wording.people(bundle.titles, rule, word=self._word),
            found.score, found.base, found, rows, self.kind,
        )  # fmt: skip

    def _taste(self, profile: Profile) -> Any:
        """Return the rule that describes a profile, where there is one that holds its test."""
        if len(self._now.attributes) < 2 or profile.row.nnz < LEAST_PROFILE:
            return None
        popularity = self.ranker.popularity_.astype(np.float64)
        if profile.user is not None:
            popularity[profile.items] -= 1
        others = np.setdiff1d(np.arange(len(self.item_ids)), profile.items)
        found = taste_rule(
            profile.items.astype(np.int64), self._now.attributes, popularity, candidates=others
        )
        return found if found is not None and found.shown else None


def load(path: Target, frames: str | None = None) -> Recommender:
    """Read what `Recommender.save` or `recsys fit --out` wrote.

    Parameters
    ----------
    path : path, or a file open for reading bytes
    frames : "pandas", "polars" or "pyarrow", optional
        The kind of tables that come back: that of the table fitted on when not given, or pandas where
        that kind is not installed.

    Raises
    ------
    ModelFileError
        If the file is damaged or forged, or holds a ranker without its catalogue.

    Examples
    --------
    >>> import recsys, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.recsys"
    >>> recsys.Recommender("ease").fit(recsys.load_dataset("sample")).save(path)
    >>> recsys.load(path)
    <Recommender: ease on 400 users, 300 items, 10,746 likes>
    """
    if frames is not None and frames not in KINDS:
        raise InputError(f"frames must be one of {', '.join(KINDS)}, not {frames!r}")
    made = Recommender.of(load_bundle(path), frames)
    if frames is None and importlib.util.find_spec(made.kind) is None:
        made._kind = "pandas"
    return made
