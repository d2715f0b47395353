"""The options that say which data a command works on: one object, the same for every command."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from recsys.cli import terminal
from recsys.cli.options import DataDir
from recsys.data import PROTOCOLS, Interactions, read_features, read_interactions
from recsys.datasets import load_dataset
from recsys.errors import InputError

Protocol = Annotated[
    str | None,
    typer.Option(
        "--protocol",
        help=f"How the data are divided: {', '.join(PROTOCOLS)}; next-K for any K. half-profile when "
        "not given, published with --test.",
        autocompletion=lambda: list(PROTOCOLS),
    ),
]
Test = Annotated[
    Path | None,
    typer.Option(
        "--test", help="What is tested, all else trains: a table, or a .txt with a line a user."
    ),
]


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """Which interactions, and what is known of their items and users; a field is an option.

    Attributes
    ----------
    dataset, interactions
        A dataset's name, or a file; the sample where both are None.
    user_col, item_col, rating_col, time_col
        Columns of the file.
    min_rating
        The rating below which rows are dropped.
    items, item_id, users, user_id
        Tables of features, and their id columns.
    data_dir
        Folder of datasets.
    """

    dataset: Annotated[
        str | None, typer.Option("--dataset", help="A named dataset; see `recsys datasets`.")
    ] = None
    interactions: Annotated[
        Path | None,
        typer.Option(
            "--interactions",
            help="CSV, TSV, Parquet or Excel; plain or gzip; a folder with train.txt and test.txt.",
        ),
    ] = None
    user_col: Annotated[str | None, typer.Option("--user-col", help="Column of user ids.")] = None
    item_col: Annotated[str | None, typer.Option("--item-col", help="Column of item ids.")] = None
    rating_col: Annotated[str | None, typer.Option("--rating-col", help="Column of ratings.")] = None
    time_col: Annotated[str | None, typer.Option("--time-col", help="Column of times.")] = None
    min_rating: Annotated[
        float | None, typer.Option("--min-rating", help="Drop rows rated below this.")
    ] = None
    items: Annotated[Path | None, typer.Option("--items", help="Table of item features and titles.")] = (
        None
    )
    item_id: Annotated[str | None, typer.Option("--item-id", help="Its id column.")] = None
    users: Annotated[Path | None, typer.Option("--users", help="Table of user features.")] = None
    user_id: Annotated[str | None, typer.Option("--user-id", help="Its id column.")] = None
    data_dir: DataDir = None

    def load(self, quiet: bool = False, test: Path | None = None) -> Interactions:
        """Return the interactions with their features and test half; notes about them go to stderr.

        Raises
        ------
        InputError
            If the options contradict each other, or a file cannot be read.
        """
        for option, column, table in (
            ("items", self.item_id, self.items), ("users", self.user_id, self.users),
        ):  # fmt: skip
            if column is not None and table is None:
                raise InputError(f"--{option[:-1]}-id names a column of --{option} FILE: give that, too")
        data = self._interactions()
        if test is not None:
            data = data.with_test(test, min_rating=self.min_rating)
        if self.items is not None:
            data = data.with_features(items=read_features(self.items, self.item_id, "item"))
        if self.users is not None:
            data = data.with_features(users=read_features(self.users, self.user_id, "user"))
        if not quiet:
            for note in data.notes:
                terminal.say(f"note: {data.name}: {note}")
        return data

    def _interactions(self) -> Interactions:
        columns: dict[str, Any] = {
            "user_col": self.user_col, "item_col": self.item_col, "rating_col": self.rating_col,
            "time_col": self.time_col,
        }  # fmt: skip
        if self.interactions is not None:
            if self.dataset is not None:
                raise InputError("pass --dataset or --interactions, not both")
            return read_interactions(self.interactions, min_rating=self.min_rating, **columns)
        if any(columns.values()):
            raise InputError("column names are for --interactions FILE; a named dataset knows its own")
        data = load_dataset("sample" if self.dataset is None else self.dataset, self.data_dir)
        return data if self.min_rating is None else data.rated(self.min_rating)


def takes_data(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the data options in place of its parameter `data`, which gets a `DataOptions`.

    Typer reads a command's options from its signature: there each field of `DataOptions` stands as
    an option of its own, with its annotation and default.
    """
    names = [field.name for field in fields(DataOptions)]
    hints = get_type_hints(DataOptions, include_extras=True)
    options = {
        field.name: inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(DataOptions)
    }  # fmt: skip
    signature = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        if name == "data":
            parameters.extend(options.values())
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def wrapper(**given: Any) -> None:
        data = DataOptions(**{name: given.pop(name) for name in names})
        command(data=data, **given)

    wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    # Typer takes annotations from here, not from the signature.
    wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapper
