"""`recsys fit`, `recommend`, `similar` and `explain`: one ranker and its file."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import typer

from recsys.checks import check_integer
from recsys.cli import terminal
from recsys.cli.app import app
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
from recsys.errors import InputError
from recsys.rankers import Bundle, fit_bundle, load_bundle, make_ranker, parse_spec


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
            f"{name} fitted on {data.n_users:,} users and {data.n_items:,} items in "
            f"{time.perf_counter() - start:.1f} s, written to {terminal.literal(out)}"
        )


@app.command()
def recommend(
    ranker: RankerFile,
    user: Annotated[list[str] | None, typer.Option("--user", help="User id; repeat for more.")] = None,
    everyone: Annotated[bool, typer.Option("--all", help="All users.")] = False,
    history: History = None,
    number: Count = 10,
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
    found = bundle.ranker.recommend(ids, rows, N=number, recalculate_user=fold_in)
    if found.fallback.any():
        terminal.say(
            f"note: {int(found.fallback.sum()):,} without liked items get the most popular ones"
        )
    lines = [
        (labels[u], place + 1, bundle.item_ids[i], bundle.titles[i], float(found.scores[u, place]))
        for u in range(len(labels))
        for place, i in enumerate(found.ids[u])
        if i >= 0
    ]
    columns = ("user_id", "rank", "item_id", "title", "score")
    if out is not None and out.suffix == ".parquet":
        terminal.write_bytes(out, terminal.parquet_bytes(columns, lines))
    elif out is not None and out.suffix == ".json":
        terminal.write_json(str(out), [dict(zip(columns, line, strict=True)) for line in lines])
    elif out is not None:
        terminal.write_text(out, terminal.csv_text(columns, lines, raw))
    elif everyone:
        sys.stdout.write(terminal.csv_text(columns, lines, raw))
    else:
        _print_items(bundle, [(*line[:4], f"{line[4]:.4g}") for line in lines], columns)


@app.command()
def similar(
    ranker: RankerFile,
    item: Annotated[str, typer.Option("--item", help="Item id.")],
    number: Count = 10,
) -> None:
    """Print the items most similar to one."""
    bundle = load_bundle(ranker)
    index = int(Interactions.lookup("item", bundle.item_ids, [item])[0])
    check_integer("-n", number, 1)
    ids, scores = bundle.ranker.similar_items(index, N=number, filter_items=[index])
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
    why = bundle.ranker.explain(int(ids[0]), rows, index, N=number)
    lines = [(bundle.item_ids[i], bundle.titles[i], f"{value:+.4g}") for i, value in why.contributions]
    rest = "everything else" if lines else "popularity: nothing is liked"
    lines += [("", rest, f"{why.bias:+.4g}"), ("", "score", f"{why.score:.4g}")]
    _print_items(bundle, lines, ("item_id", "because you like", "share"), f"Why {bundle.titles[index]}")


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


def _print_items(bundle: Bundle, lines: list[Any], columns: tuple[str, ...], title: str = "") -> None:
    """Print a table, without the titles where they only repeat the ids."""
    if "title" in columns and all(a == b for a, b in zip(bundle.titles, bundle.item_ids, strict=True)):
        drop = columns.index("title")
        lines = [line[:drop] + line[drop + 1 :] for line in lines]
        columns = columns[:drop] + columns[drop + 1 :]
    terminal.table(title, columns, lines)
