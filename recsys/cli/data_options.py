"""The options that say which data a command works on: one object, the same for every command."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from recsys.cli import terminal
from recsys.cli.options import DataDir
from recsys.data import PROTOCOLS, Interactions
from recsys.data.reading import with_tables
from recsys.datasets import load_dataset
from recsys.errors import InputError
from recsys.utils.progress import bar, listening

Protocol = Annotated[
    str | None,
    typer.Option(
        help=f"Protocol: {', '.join(PROTOCOLS)}; next-K for any K. The default is half-profile, or "
        "published for data with a test half."
    ),
]
Test = Annotated[Path | None, typer.Option(help="Test table; all other interactions are for training.")]
COLUMN_OPTIONS = (
    "user_col item_col rating_col time_col weight_col duplicates names header delimiter encoding "
    "decimal day_first"
).split()


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """Options for interactions and the features of their items and users; a field is an option."""

    dataset: Annotated[str | None, typer.Option(help="A named dataset; see `recsys datasets`.")] = None
    interactions: Annotated[
        Path | None,
        typer.Option(help="Delimited text, JSON, Parquet or Excel; plain, gzip, bz2, xz, zstd or zip."),
    ] = None
    user_col: Annotated[str | None, typer.Option(help="Column of user ids.")] = None
    item_col: Annotated[str | None, typer.Option(help="Column of item ids.")] = None
    rating_col: Annotated[str | None, typer.Option(help="Column of ratings.")] = None
    time_col: Annotated[str | None, typer.Option(help="Column of times.")] = None
    weight_col: Annotated[str | None, typer.Option(help="Column of counts or amounts.")] = None
    min_rating: Annotated[float | None, typer.Option(help="Drop rows rated below this.")] = None
    duplicates: Annotated[
        str | None,
        typer.Option(help="Weight of repeated pairs: sum of weights, count of rows, or the last row."),
    ] = None
    names: Annotated[str | None, typer.Option(help="Columns of a file without a header: NAME,NAME.")] = (
        None
    )
    header: Annotated[
        bool | None, typer.Option("--header/--no-header", help="Whether the first row has column names.")
    ] = None
    delimiter: Annotated[str | None, typer.Option(help="Delimiter: one character, or ::.")] = None
    encoding: Annotated[str | None, typer.Option(help="Encoding of the text, such as cp1252.")] = None
    decimal: Annotated[str | None, typer.Option(help="Decimal mark of numbers: . or ,.")] = None
    day_first: Annotated[
        bool | None, typer.Option("--day-first/--no-day-first", help="Whether 01/02/2020 is 1 February.")
    ] = None
    items: Annotated[Path | None, typer.Option(help="Table of item features and titles.")] = None
    item_id: Annotated[str | None, typer.Option(help="Its id column.")] = None
    users: Annotated[Path | None, typer.Option(help="Table of user features.")] = None
    user_id: Annotated[str | None, typer.Option(help="Its id column.")] = None
    cold_items: Annotated[
        bool,
        typer.Option("--cold-items", help="Include items and users that occur only in their own table."),
    ] = False
    data_dir: DataDir = None

    def load(self, quiet: bool = False, test: Path | None = None) -> Interactions:
        """Return the interactions with their features and test half; notes about them go to stderr."""
        for option, column, table in (
            ("items", self.item_id, self.items),
            ("users", self.user_id, self.users),
        ):
            if column is not None and table is None:
                raise InputError(f"--{option[:-1]}-id needs --{option} FILE")
        with bar(not quiet) as progress, listening(progress):
            data = self._interactions()
        if test is not None:
            data = data.with_test(test, min_rating=self.min_rating)
        data = with_tables(data, self.items, self.users, self.cold_items, self.item_id, self.user_id)
        if not quiet:
            for note in data.notes:
                terminal.say(f"note: {data.name}: {note}")
        return data

    def _interactions(self) -> Interactions:
        columns = {name.removesuffix("_col"): getattr(self, name) for name in COLUMN_OPTIONS}
        if self.names is not None:
            columns["names"] = [name.strip() for name in self.names.split(",")]
        if self.interactions is not None:
            if self.dataset is not None:
                raise InputError("pass --dataset or --interactions, not both")
            return Interactions.from_frame(self.interactions, min_rating=self.min_rating, **columns)
        if any(value is not None for value in columns.values()):
            raise InputError("options for columns and formats need --interactions FILE")
        data = load_dataset("sample" if self.dataset is None else self.dataset, self.data_dir)
        return data.positive() if self.min_rating is None else data.rated(self.min_rating)


def takes_data(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the data options in place of its parameter `data`, which gets a `DataOptions`."""
    options = inspect.signature(DataOptions, eval_str=True).parameters
    signature = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        if name == "data":
            parameters.extend(options.values())
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def wrapper(**values: Any) -> None:
        data = DataOptions(**{name: values.pop(name) for name in options})
        command(data=data, **values)

    wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    # Typer takes annotations from here, not from the signature.
    wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapper
