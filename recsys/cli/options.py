"""Options that several commands share; those about data are one object, the same for every command."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from recsys._jit import max_threads
from recsys.cli import terminal
from recsys.data import PROTOCOLS, Interactions
from recsys.data.reading import with_tables
from recsys.data.tables import read_text
from recsys.errors import InputError
from recsys.rankers import ModelPackage
from recsys.rankers.package import Profile
from recsys.utils.files import check_target
from recsys.utils.progress import bar, listening
from recsys.utils.validation import check_integer

COLUMN_OPTIONS = (
    "user_col item_col rating_col time_col weight_col duplicates names header delimiter encoding "
    "decimal day_first"
).split()


def writable(path: str | Path | None) -> str | Path | None:
    """Refuse a file that cannot be written, before anything is computed."""
    if path not in (None, "-") and not (isinstance(path, str) and path.endswith("/")):
        check_target(path)
    return path


Threads = Annotated[int | None, typer.Option(help="Threads; all processors by default.")]
Jobs = Annotated[int | None, typer.Option(help="Processes; -1 for all processors.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress and no notes.")]
Json = Annotated[
    str | None,
    typer.Option("--json", help="Write JSON to a file, or to stdout for -.", callback=writable),
]
DataDir = Annotated[Path | None, typer.Option(help="Folder of datasets to search first.")]
RankerFile = Annotated[Path, typer.Option(help="A file written by `recsys fit`.")]
Count = Annotated[int, typer.Option("-n", "--number", help="Number of items.")]
User = Annotated[str | None, typer.Option(help="User id.")]
History = Annotated[
    str | None,
    typer.Option(help="Item ids of a new user, oldest first: ID,ID, or with times: ID@TIME,ID@TIME."),
]
LIST = "ID,ID, or @FILE with one id per line."
Only = Annotated[str | None, typer.Option(help=f"Rank only these item ids: {LIST}")]
Without = Annotated[str | None, typer.Option(help=f"Item ids to leave out: {LIST}")]
Filter = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        help="Condition on item attributes: genres=Drama,War or year=1980..1999 (1980.. and "
        "..1999 work too); repeat for more.",
    ),
]
Diversity = Annotated[
    float, typer.Option(help="From 0, order by score, to 1, order by dissimilarity to the items above.")
]


def ids_of(text: str) -> list[str]:
    """Return the ids of a text like ID,ID."""
    return [part.strip() for part in text.split(",") if part.strip()]


def ids_or_file(text: str) -> list[str]:
    """Return the ids of a text like ID,ID, or the lines of a file for @FILE."""
    if not _names_file(text):
        if text.startswith("@") and ("." in text or "/" in text):
            raise InputError(f"there is no file {text[1:][:60]}")
        return ids_of(text)
    return [line.strip() for line in read_text(Path(text[1:])).split("\n") if line.strip()]


def _names_file(text: str) -> bool:
    return text.startswith("@") and Path(text[1:]).is_file()


def item_ids(package: ModelPackage, option: str, text: str | None) -> list[str] | None:
    """Return the item ids of `ids_or_file`; unknown ids of a file, a stock, are left out with a note."""
    if text is None:
        return None
    ids = ids_or_file(text)
    if not _names_file(text):
        return ids
    known = [one for one in ids if one in package.item_index]
    if ids and not known:
        raise InputError(f"{option} {text}: none of the {len(ids):,} ids is an item of the model")
    if absent := len(ids) - len(known):
        terminal.say(f"note: {option}: ids that are not in the model, left out: {absent:,}")
    return known


def filters_of(conditions: list[str] | None) -> dict[str, Any] | None:
    """Return the filters of --filter NAME=VALUE, as `Recommender.recommend` takes them."""
    filters: dict[str, Any] = {}
    for condition in conditions or ():
        name, _, wanted = condition.rpartition("=")
        if not name or not wanted or name in filters:
            raise InputError(
                f"--filter {condition[:60]!r}: give each column once, as in --filter genres=Drama,War"
            )
        least, between, most = wanted.partition("..")
        filters[name] = (_end(least), _end(most)) if between else ids_of(wanted)
    return filters or None


def _end(text: str) -> float | str | None:
    """Return an end of a range: a number, a date as it is, or None where there is none."""
    try:
        return float(text) if text.strip() else None
    except ValueError:
        return text.strip()


def profile_of(package: ModelPackage, user: str | None, history: str | None) -> Profile:
    """Return the profile of a user, or of a new user with this history."""
    if history is None:
        return package.profile(user)
    parts = ids_of(history)
    # An id may hold an @ itself; what the catalogue knows is an id.
    pairs = [(part, "", "") if part in package.item_index else part.rpartition("@") for part in parts]
    timed = [pair for pair in pairs if pair[1]]
    if not timed:
        return package.profile(user, parts)
    if len(timed) < len(parts):
        raise InputError(
            f"--history has times for {len(timed)} of {len(parts)} items: give all items "
            "a time (ID@TIME), or none"
        )
    return package.profile(user, [one for one, _, _ in timed], times=[t for *_, t in timed])


def use_threads(threads: int | None) -> None:
    """Set the number of threads; passes use at most one for each processor."""
    if threads is not None:
        max_threads.set(check_integer("--threads", threads, 1))


Protocol = Annotated[
    str | None,
    typer.Option(
        help=f"Protocol: {', '.join(PROTOCOLS)}; next-K for any K. The default is half-profile, or "
        "published for data with a test half."
    ),
]
Test = Annotated[Path | None, typer.Option(help="Test table; all other interactions are for training.")]


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
        from recsys.datasets import load_dataset  # late: only these commands need it

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
