"""`recsys fit`, `recommend`, `similar` and `explain`: one ranker and its file."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import typer

from recsys.cli import terminal
from recsys.cli.app import app
from recsys.cli.lists import COLUMNS, Line, write_lists
from recsys.cli.options import (
    Count,
    DataDir,
    DatasetOption,
    FileOption,
    History,
    ItemCol,
    ItemId,
    ItemsOption,
    MinRating,
    Quiet,
    RankerFile,
    RatingCol,
    Threads,
    TimeCol,
    UserCol,
    load_data,
    use_threads,
)
from recsys.data import Interactions
from recsys.errors import InputError, counted
from recsys.explain import reasons
from recsys.rankers import Bundle, fit_bundle, load_bundle, make_ranker
from recsys.rankers.base import Recommendations
from recsys.reranking import similar as similar_items
from recsys.reranking import steer
from recsys.utils.spec import parse_spec
from recsys.utils.topn import all_but
from recsys.utils.validation import check_integer

USERS = 4096  # whose lists are held at once
Only = Annotated[str | None, typer.Option("--items", help="Rank these item ids only: ID,ID.")]
Without = Annotated[str | None, typer.Option("--filter-items", help="Item ids to leave out: ID,ID.")]
Diversity = Annotated[
    float, typer.Option("--diversity", help="From 0 (best first) to 1 (unlike first).")
]


@app.command()
def fit(
    out: Annotated[Path, typer.Option("--out", help="The ranker file to write.")],
    model: Annotated[str, typer.Option("--model", help="NAME[:key=value,…]")] = "cf-komd",
    dataset: DatasetOption = None,
    interactions: FileOption = None,
    user_col: UserCol = None,
    item_col: ItemCol = None,
    rating_col: RatingCol = None,
    time_col: TimeCol = None,
    min_rating: MinRating = None,
    items: ItemsOption = None,
    item_id: ItemId = None,
    data_dir: DataDir = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Fit a ranker and write it, with ids, titles and histories, to one file."""
    use_threads(threads)
    name, params = parse_spec(model)
    ranker = make_ranker(name, **params)
    if not out.parent.is_dir():
        raise InputError(f"--out {out}: the folder {out.parent} does not exist")
    data = load_data(
        dataset,
        interactions,
        data_dir,
        user_col,
        item_col,
        rating_col,
        time_col,
        min_rating,
        items,
        item_id,
        None,
        None,
        quiet,
    )
    start = time.perf_counter()
    fit_bundle(ranker, data, show_progress=not quiet and sys.stderr.isatty()).save(out)
    if not quiet:
        print(
            f"{name} fitted on {counted(data.n_users, 'user')} and {counted(data.n_items, 'item')} in "
            f"{time.perf_counter() - start:.1f} s, written to {terminal.literal(out)}"
        )


@app.command()
def recommend(
    ranker: RankerFile,
    user: Annotated[list[str] | None, typer.Option("--user", help="User id; repeat for more.")] = None,
    everyone: Annotated[bool, typer.Option("--all", help="All users.")] = False,
    history: History = None,
    number: Count = 10,
    items: Only = None,
    filter_items: Without = None,
    dislike: Annotated[
        str | None, typer.Option("--dislike", help="Item ids to keep away from, and what is like them.")
    ] = None,
    diversity: Diversity = 0.0,
    out: Annotated[
        Path | None, typer.Option("--out", help="CSV file to write (.json, .parquet).")
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="No apostrophe before formulas in CSV.")] = False,
    threads: Threads = None,
) -> None:
    """Print or write the best items for users, or for a history given by item ids."""
    use_threads(threads)
    if (user is not None) + everyone + (history is not None) != 1:
        raise InputError(
            "name whom to recommend to by exactly one of --user ID, --all and --history ID,ID"
        )
    bundle = load_bundle(ranker)
    labels, ids, rows, fold_in = _whom(bundle, user, everyone, history)
    wishes: dict[str, Any] = {
        "dislikes": _items(bundle, dislike) or [], "diversity": diversity, "recalculate_user": fold_in,
        "items": _items(bundle, items), "filter_items": _items(bundle, filter_items),
        "item_users": bundle.user_items.tocsc() if diversity else None,
    }  # fmt: skip
    without = [0]
    blocks = _lists(bundle, labels, ids, rows, check_integer("-n", number, 1), wishes, without)
    if out is not None or everyone:
        write_lists(out, blocks, raw)
    else:
        lines = [(*line[:4], f"{line[4]:.4g}") for block in blocks for line in block]
        _print_items(bundle, lines, COLUMNS)
    if without[0]:
        get = "gets" if without[0] == 1 else "get"
        who = counted(without[0], "user")
        terminal.say(f"note: {who} without liked items {get} the most popular ones")


@app.command()
def similar(
    ranker: RankerFile,
    item: Annotated[str, typer.Option("--item", help="Item id.")],
    number: Count = 10,
    items: Only = None,
    filter_items: Without = None,
    diversity: Diversity = 0.0,
) -> None:
    """Print the items most similar to one."""
    bundle = load_bundle(ranker)
    index = int(Interactions.lookup("item", bundle.item_ids, [item])[0])
    check_integer("-n", number, 1)
    ids, scores = similar_items(
        bundle.ranker, index, number, diversity=diversity,
        item_users=bundle.user_items.tocsc() if diversity else None,
        items=_items(bundle, items), filter_items=_items(bundle, filter_items),
    )  # fmt: skip
    lines = [
        (place + 1, bundle.item_ids[i], bundle.titles[i], f"{score:.4g}")
        for place, (i, score) in enumerate(zip(ids, scores, strict=True))
    ]
    _print_items(
        bundle, lines, ("rank", "item_id", "title", "similarity"), f"Similar to {bundle.titles[index]}"
    )


@app.command()
def explain(
    ranker: RankerFile,
    item: Annotated[str, typer.Option("--item", help="Item id to explain.")],
    user: Annotated[str | None, typer.Option("--user", help="User id.")] = None,
    history: History = None,
    number: Count = 10,
) -> None:
    """Print which liked items an item's score comes from."""
    if (user is None) == (history is None):
        raise InputError("name whom to explain to by exactly one of --user ID and --history ID,ID")
    bundle = load_bundle(ranker)
    index = int(Interactions.lookup("item", bundle.item_ids, [item])[0])
    _, ids, rows, _ = _whom(bundle, None if user is None else [user], False, history)
    bundle.ranker.explain(int(ids[0]), rows, index, N=1)  # refuses where there are no shares
    why = reasons(bundle.ranker, int(ids[0]), rows, index, check_integer("-n", number, 1))
    lines = [(bundle.item_ids[i], bundle.titles[i], f"{value:+.4g}") for i, value in why.items]
    if why.unlisted:
        lines.append(("", counted(why.unlisted, "other liked item"), f"{why.others:+.4g}"))
    base = "what no liked item adds" if lines else "popularity: nothing is liked"
    lines += [("", base, f"{why.base:+.4g}"), ("", "score", f"{why.score:.4g}")]
    title = f"Why {bundle.titles[index]}: what adds up to its score"
    _print_items(bundle, lines, ("item_id", "because you like", "adds to the score"), title)


def _whom(
    bundle: Bundle, users: list[str] | None, everyone: bool, history: str | None
) -> tuple[list[str], Any, sp.csr_matrix, bool]:
    """Return labels, row numbers, rows, and whether the rows are of a user never seen."""
    if history is not None:
        row = bundle.history([part.strip() for part in history.split(",") if part.strip()])
        return ["new"], np.zeros(1, dtype=np.int64), row, "fold-in" in bundle.ranker.capabilities
    if everyone:
        return list(bundle.user_ids), np.arange(len(bundle.user_ids)), bundle.user_items, False
    ids, rows = bundle.rows(users or [])
    return list(users or []), ids, rows, False


def _items(bundle: Bundle, given: str | None) -> list[int] | None:
    """Return the indices of comma-separated item ids; an unknown one is named."""
    if given is None:
        return None
    names = [part.strip() for part in given.split(",") if part.strip()]
    return Interactions.lookup("item", bundle.item_ids, names).tolist()


def _lists(
    bundle: Bundle, labels: list[str], ids: Any, rows: sp.csr_matrix, number: int,
    wishes: dict[str, Any], without: list[int],
) -> Iterator[list[Line]]:  # fmt: skip
    """Yield the lines of a block of users at a time; counts those without liked items."""
    steered = len(wishes["dislikes"]) or wishes["diversity"]
    plain = {key: wishes[key] for key in ("items", "filter_items", "recalculate_user")}
    if plain["filter_items"] is None:  # of the items named, those that a user likes are left out
        others = all_but(len(bundle.item_ids), plain["items"])
        plain |= {"items": None, "filter_items": others}
    for start in range(0, max(1, len(labels)), USERS):
        part = slice(start, start + USERS)
        if steered:
            each = [
                steer(bundle.ranker, int(u), rows[k], number, **wishes)
                for k, u in enumerate(ids[part], start)
            ]
        else:
            found = bundle.ranker.recommend(ids[part], rows[part], N=number, **plain)
            each = [
                Recommendations(i, s, f)
                for i, s, f in zip(found.ids, found.scores, np.atleast_1d(found.fallback), strict=True)
            ]
        without[0] += sum(bool(one.fallback) for one in each)
        yield [
            (label, place + 1, bundle.item_ids[i], bundle.titles[i], float(score))
            for label, one in zip(labels[part], each, strict=True)
            for place, (i, score) in enumerate(zip(one.ids, one.scores, strict=True))
            if i >= 0
        ]


def _print_items(bundle: Bundle, lines: list[Any], columns: tuple[str, ...], title: str = "") -> None:
    """Print a table, without the titles where they only repeat the ids."""
    if "title" in columns and all(a == b for a, b in zip(bundle.titles, bundle.item_ids, strict=True)):
        drop = columns.index("title")
        lines = [line[:drop] + line[drop + 1 :] for line in lines]
        columns = columns[:drop] + columns[drop + 1 :]
    terminal.table(title, columns, lines)
