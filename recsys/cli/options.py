"""Options that several commands share, and what they load."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import numba
import typer

from recsys.cli import terminal
from recsys.data import PROTOCOLS, Interactions, read_features, read_interactions
from recsys.datasets import load_dataset
from recsys.errors import InputError
from recsys.utils.validation import check_integer

Protocol = Enum("Protocol", {name: name for name in PROTOCOLS}, type=str)  # type: ignore[misc]

DatasetOption = Annotated[
    str | None, typer.Option("--dataset", help="A named dataset; see `recsys datasets`.")
]
FileOption = Annotated[
    Path | None, typer.Option("--interactions", help="CSV, TSV or Parquet, plain or gzip.")
]
UserCol = Annotated[str | None, typer.Option("--user-col", help="Column of user ids.")]
ItemCol = Annotated[str | None, typer.Option("--item-col", help="Column of item ids.")]
RatingCol = Annotated[str | None, typer.Option("--rating-col", help="Column of ratings.")]
TimeCol = Annotated[str | None, typer.Option("--time-col", help="Column of times.")]
MinRating = Annotated[float | None, typer.Option("--min-rating", help="Drop rows rated below this.")]
ItemsOption = Annotated[Path | None, typer.Option("--items", help="Table of item features and titles.")]
ItemId = Annotated[str | None, typer.Option("--item-id", help="Its id column.")]
UsersOption = Annotated[Path | None, typer.Option("--users", help="Table of user features.")]
UserId = Annotated[str | None, typer.Option("--user-id", help="Its id column.")]
DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Folder of datasets, looked in first.")]
Threads = Annotated[int | None, typer.Option("--threads", help="Processors to use, all by default.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress and no notes.")]
Json = Annotated[str | None, typer.Option("--json", help="Write JSON to a file, or to stdout for -.")]
RankerFile = Annotated[Path, typer.Option("--ranker", help="A file that `recsys fit` wrote.")]
Count = Annotated[int, typer.Option("-n", "--number", help="How many.")]
History = Annotated[str | None, typer.Option("--history", help="Item ids a new user likes: ID,ID.")]


def load_data(
    dataset: str | None,
    file: Path | None,
    data_dir: Path | None,
    user_col: str | None,
    item_col: str | None,
    rating_col: str | None,
    time_col: str | None,
    min_rating: float | None,
    items: Path | None,
    item_id: str | None,
    users: Path | None,
    user_id: str | None,
    quiet: bool,
) -> Interactions:
    """Return the interactions that the options describe; notes about them go to stderr."""
    if dataset is not None and file is not None:
        raise InputError("pass --dataset or --interactions, not both")
    if file is not None:
        data = read_interactions(
            file,
            user_col=user_col,
            item_col=item_col,
            rating_col=rating_col,
            time_col=time_col,
            min_rating=min_rating,
        )
    else:
        if any((user_col, item_col, rating_col, time_col)):
            raise InputError("column names are for --interactions FILE; a named dataset knows its own")
        data = load_dataset("sample" if dataset is None else dataset, data_dir)
        data = data if min_rating is None else data.rated(min_rating)
    if items is not None:
        data = data.with_features(items=read_features(items, item_id, "item"))
    if users is not None:
        data = data.with_features(users=read_features(users, user_id, "user"))
    if not quiet:
        for note in data.notes:
            terminal.say(f"note: {data.name}: {note}")
    return data


def use_threads(threads: int | None) -> None:
    """Set the number of processors; more than there are is capped, with a note."""
    if threads is not None:
        most = numba.config.NUMBA_NUM_THREADS
        check_integer("--threads", threads, 1)
        if threads > most:
            terminal.say(f"note: --threads {threads} is more than this machine has; using {most}")
        numba.set_num_threads(min(threads, most))
