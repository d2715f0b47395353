"""Rows of lists, with a sentence that explains each, and the tables and files they become."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from recsys.explain import Reasons, because, reasons_for_items
from recsys.rankers import ModelPackage, Recommendations
from recsys.recommender.explained import word_of
from recsys.recommender.fitted import Fitted
from recsys.recommender.lists import MODEL, POPULAR, Block, Lists, most_popular
from recsys.utils import frames

NAMED = 3  # liked items in a sentence
NAMES = ("user", "rank", "item", "title", "score", "source", "why")
TYPES: dict[str, type] = {"rank": int, "title": str, "score": float, "source": str, "why": str}
Row = tuple[Any, int, Any, str, float, str, str]


@dataclass(frozen=True)
class ListRows:
    """What makes rows of lists of a fitted recommender, and tables of pandas, polars or pyarrow."""

    fitted: Fitted
    kind: str = "pandas"

    @property
    def package(self) -> ModelPackage:
        """The ranker, ids, titles and histories."""
        return self.fitted.package

    def of(self, lists: Lists, k: int, found: Recommendations, why: bool) -> list[Row]:
        """Return the rows of one user's list, with a cell for each of `NAMES`."""
        package, request = self.package, lists.request
        items = found.ids.tolist()
        told = [""] * len(items)
        if why:
            user, row, times = request.one(k)
            known = reasons_for_items(
                package.ranker, user, row, items, NAMED, recalculate_user=request.fold_in, times=times
            )
            told = [self._sentence(one) for one in known]
        source = POPULAR if found.fallback else MODEL
        return self._listed(request.labels[k], items, found.scores.tolist(), source, told)

    def written(
        self, lists: Lists, why: bool, source: bool = False
    ) -> tuple[dict[str, type], Callable[[Block], list[list[Any]]]]:
        """Return the columns of a file of lists, and what makes its rows of a block of users."""
        types, kept = self.types, self._columns(why, source or lists.some_popular)
        places = [place for place, name in enumerate(NAMES) if name in kept]

        def made(block: Block) -> list[list[Any]]:
            return [
                [row[place] for place in places]
                for k, one in block
                for row in self.of(lists, k, one, why)
            ]

        return {name: types[name] for name in NAMES if name in kept}, made

    def popular(self, label: Any, n: int, lists: Lists, why: bool) -> list[Row]:
        """Return the rows of a list of the most popular items, for a user without interactions."""
        found = most_popular(self.package.ranker.popularity_, lists, n)
        items, scores = found.ids[:n].tolist(), found.scores[:n].tolist()
        told = [
            self._sentence(Reasons("popularity", number, number, [], unit="users")) if why else ""
            for number in scores
        ]
        return self._listed(label, items, scores, POPULAR, told)

    def table(self, rows: list[tuple[Any, ...]], why: bool) -> Any:
        """Return the table of these rows, without the columns that say nothing."""
        columns = {name: [row[k] for row in rows] for k, name in enumerate(NAMES)}
        if len({type(name) for name in columns["user"]}) > 1:  # an unknown user of another kind
            columns["user"] = [str(name) for name in columns["user"]]
        kept = {name: columns[name] for name in self._columns(why, POPULAR in columns["source"])}
        return frames.make(kept, self.kind, self.types)

    @property
    def types(self) -> dict[str, type]:
        """The kinds of the cells of each column."""
        user, item = type(self.package.user_ids[0]), type(self.package.item_ids[0])
        return TYPES | {"user": user, "item": item, "to": item}

    def _listed(
        self, label: Any, items: list[int], scores: list[float], source: str, told: list[str]
    ) -> list[Row]:
        ids, titles = self.package.item_ids, self.package.titles
        return [
            (label, rank, ids[item], str(titles[item]), score, source, text)
            for rank, (item, score, text) in enumerate(zip(items, scores, told, strict=True), 1)
        ]

    def _sentence(self, found: Reasons) -> str:
        return because(self.package.titles, found, word=word_of(self.package))

    def _columns(self, why: bool, source: bool) -> list[str]:
        has, name = self.package.ranker.capabilities, self.package.ranker.name
        explains = "explain" in has or "similar-items" in has or name == "popularity"
        shown = {"title": self.fitted.titled, "source": source, "why": why and explains}
        return [name for name in NAMES if shown.get(name, True)]
