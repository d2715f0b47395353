"""Lists of users in blocks, the rows that they become, and files of rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.explain import Reasons, because, reasons_for_lists
from recsys.rankers import ModelPackage, Recommendations
from recsys.rankers.package import Profile
from recsys.recommender.filters import left_out
from recsys.reranking import rerank
from recsys.utils.export import csv_text, json_text
from recsys.utils.files import replacing
from recsys.utils.progress import report
from recsys.utils.tasks import run_tasks
from recsys.utils.validation import check_flag, check_integer, check_real

BLOCK = 4096  # users whose lists are held at once
EXPLAINED = 256  # users whose shares are
NAMED = 3  # liked items in a sentence
MODEL, POPULAR = "model", "popular"  # values of the column source
COLUMNS: dict[str, Any] = {
    "user": str,
    "rank": int,
    "item": str,
    "title": str,
    "score": float,
    "source": str,
    "why": str,
}
Row = tuple[Any, ...]


@dataclass(frozen=True)
class ListOptions:
    """The options of a list, as in `Recommender.recommend`."""

    items: Any = None
    exclude: Any = None
    filters: Mapping[str, Any] | None = None
    dislikes: Any = ()
    diversity: float = 0.0
    filter_liked: bool = True


@dataclass(frozen=True)
class Users:
    """The users, or the one new user, that lists are for."""

    labels: Sequence[Any]
    ids: NDArray[np.int64]
    rows: sp.csr_matrix
    recalculate_user: bool = False  # whether the ranker was not fitted on the rows
    times: sp.csr_matrix | None = None

    @classmethod
    def known(cls, package: ModelPackage, users: Sequence[Any] | None = None) -> Users:
        """Return users by id; all for None."""
        if users is None:
            every = np.arange(len(package.user_ids))
            return cls(list(package.user_ids), every, package.user_items)
        ids, rows = package.rows(users)
        return cls([package.user_ids[k] for k in ids], ids, rows)

    @classmethod
    def new(cls, label: Any, profile: Profile) -> Users:
        """Return a new user with a history."""
        return cls([label], np.array([profile.userid]), profile.row, **profile.options)

    def part(self, start: int, stop: int) -> Users:
        """Return some of them."""
        where = slice(start, stop)
        times = None if self.times is None else self.times[where]
        rows = self.rows[where]
        return Users(self.labels[where], self.ids[where], rows, self.recalculate_user, times)

    def __len__(self) -> int:
        return len(self.labels)

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments of a ranker's methods for these users."""
        return {"recalculate_user": self.recalculate_user, "times": self.times}


def row_blocks(
    package: ModelPackage, users: Users, n: int, options: ListOptions, why: bool = True, n_jobs: int = 1
) -> Iterator[list[Row]]:
    """Yield the rows of lists, one cell for each of `COLUMNS`, a block of users at a time."""
    check_integer("n", n, 1)

    def task(block: tuple[int, Users]) -> tuple[int, list[Row]]:
        start, users = block
        return start, rows_of(package, users, lists(package, users, n, options), why)

    parts = ((start, users.part(start, start + BLOCK)) for start in range(0, len(users), BLOCK))
    done: dict[int, list[Row]] = {}
    first = 0
    report("lists", 0, len(users))
    for start, rows in run_tasks(task, parts, n_jobs):
        done[start] = rows
        while first in done:
            yield done.pop(first)
            first += BLOCK
            report("lists", min(first, len(users)), len(users))


def lists(package: ModelPackage, users: Users, n: int, options: ListOptions) -> list[Recommendations]:
    """Return the lists of a block of users."""
    disliked = package.items(options.dislikes, "dislikes")
    diversity = check_real("diversity", options.diversity, 0.0, 1.0)
    filters: dict[str, Any] = {
        "filter_items": left_out(package, options.items, options.exclude, options.filters),
        "filter_already_liked_items": check_flag("filter_liked", options.filter_liked),
    }
    if len(disliked) or diversity:
        filters |= {"dislikes": disliked, "diversity": diversity}
        filters["item_users"] = package.item_users if diversity else None
        every = (users.part(k, k + 1) for k in range(len(users)))
        return [
            rerank(package.ranker, int(one.ids[0]), one.rows, n, **filters, **one.options())
            for one in every
        ]
    result = package.ranker.recommend(users.ids, users.rows, N=n, **filters, **users.options())
    return [
        Recommendations(ids[ids >= 0], scores[ids >= 0], flag)  # without the padding
        for ids, scores, flag in zip(*result, np.atleast_1d(result.fallback), strict=True)
    ]


def rows_of(package: ModelPackage, users: Users, results: list[Recommendations], why: bool) -> list[Row]:
    """Return the rows of users' lists."""
    item_ids, titles, word = package.item_ids, package.titles, word_of(package)
    rows: list[Row] = []
    reasons: list[list[Reasons]] = []
    for start in range(0, len(users) if why else 0, EXPLAINED):
        part, some = users.part(start, start + EXPLAINED), results[start : start + EXPLAINED]
        ids, scores = [one.ids for one in some], [one.scores for one in some]
        reasons += reasons_for_lists(
            package.ranker, part.ids, part.rows, ids, NAMED, scores=scores, **part.options()
        )
    for k, result in enumerate(results):
        items, scores = result.ids.tolist(), result.scores.tolist()
        sentences = [because(titles, one, word=word) for one in reasons[k]] if why else [""] * len(items)
        source = POPULAR if result.fallback else MODEL
        rows += [
            (users.labels[k], rank, item_ids[item], str(titles[item]), score, source, sentence)
            for rank, (item, score, sentence) in enumerate(zip(items, scores, sentences, strict=True), 1)
        ]
    return rows


def most_popular(package: ModelPackage, n: int, options: ListOptions) -> Recommendations:
    """Return the items with the most users, for an unknown user."""
    users = package.ranker.popularity_.astype(np.float32)
    filtered = left_out(package, options.items, options.exclude, options.filters)
    if filtered is not None:
        users[filtered] = -1.0
    users[package.items(options.dislikes, "dislikes")] = -1.0
    best = np.argsort(-users, kind="stable")[: check_integer("n", n, 1)]
    best = best[users[best] >= 0]
    return Recommendations(best.astype(np.int32), users[best], True)


def columns_of(package: ModelPackage, popular: bool, why: bool) -> list[str]:
    """Return the names of the columns that say something."""
    reasons = package.ranker.name == "popularity" or not package.ranker.capabilities.isdisjoint(
        ("explain", "similar-items")
    )
    shown = {"title": package.titled, "source": popular, "why": why and reasons}
    return [name for name in COLUMNS if shown.get(name, True)]


def types_of(package: ModelPackage) -> dict[str, type]:
    """Return the types of the cells of each column."""
    ids = {"user": package.user_ids, "item": package.item_ids}
    return COLUMNS | {name: type(known[0]) if len(known) else str for name, known in ids.items()}


def word_of(package: ModelPackage) -> str:
    """Return "rated" where every rating counts, else "liked"."""
    columns = package.columns
    every = columns is not None and columns.rating is not None and columns.min_rating is None
    return "rated" if every else "liked"


def any_popular(package: ModelPackage, users: Users) -> bool:
    """Return whether a user has an empty profile, and gets the most popular items."""
    ids = None if users.recalculate_user else users.ids
    return bool(package.ranker.falls_back(ids, users.rows).any())


def write_rows(
    path: Path, columns: Mapping[str, type], blocks: Iterable[Sequence[Row]], raw: bool = False
) -> None:
    """Write blocks of rows in the format of the suffix; that of CSV may be .txt or missing.

    `raw` omits the apostrophe before spreadsheet formulas in CSV. On an error, an old file does not
    change.
    """
    suffix = path.suffix.lower()
    if suffix not in ("", ".txt", ".csv", ".parquet", ".json", ".jsonl"):
        raise InputError(f"{path}: the ending must be .csv, .parquet, .json or .jsonl")
    with replacing(path) as file:
        if suffix == ".parquet":
            _write_parquet(file, columns, blocks)
            return
        objects = (dict(zip(columns, row, strict=True)) for row in chain.from_iterable(blocks))
        if suffix == ".json":
            texts = _json(objects)
        elif suffix == ".jsonl":
            texts = (f"{json.dumps(one, ensure_ascii=False, allow_nan=False)}\n" for one in objects)
        else:
            texts = _csv(columns, blocks, raw)
        for text in texts:
            file.write(text.encode("utf-8", errors="surrogatepass"))


def _csv(columns: Mapping[str, type], blocks: Iterable[Sequence[Row]], raw: bool) -> Iterator[str]:
    header: Sequence[str] | None = tuple(columns)
    for block in blocks:
        yield csv_text(header, block, raw)
        header = None


def _json(objects: Iterable[dict[str, Any]]) -> Iterator[str]:
    between = "["
    for one in objects:
        yield f"{between}\n{json_text(one).strip()}"
        between = ","
    yield "\n]\n" if between == "," else "[]\n"


def _write_parquet(file: Any, columns: Mapping[str, type], blocks: Iterable[Sequence[Row]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in columns.items()])
    with pq.ParquetWriter(file, schema) as writer:
        for block in blocks:
            cells = {name: [row[k] for row in block] for k, name in enumerate(columns)}
            writer.write_table(pa.Table.from_pydict(cells, schema))
