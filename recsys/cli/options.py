"""Options that several commands share; those about data are in `data_options`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from recsys._jit import max_threads
from recsys.cli import terminal
from recsys.data.tables import read_text
from recsys.errors import InputError
from recsys.rankers import ModelPackage
from recsys.rankers.package import Profile
from recsys.utils.files import check_target
from recsys.utils.validation import check_integer


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
    float,
    typer.Option(help="From 0, order by score, to 1, order by dissimilarity to the items above."),
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
