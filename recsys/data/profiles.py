"""Text files of profiles: a line a user, the user's number and then the items', as LightGCN has them."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys.data.columns import Columns
from recsys.data.interactions import Interactions
from recsys.data.sources import Source, read_text
from recsys.errors import InputError, counted
from recsys.utils.files import check_file, shown

TRAIN, TEST = ("train.txt", "train.txt.gz"), ("test.txt", "test.txt.gz")
VALIDATION = ("valid.txt", "val.txt", "validation.txt")
NUMBERS = re.compile(r"\s*\d+(?: +\d+)*\s*", re.ASCII)
MOST_LINES = 1_000  # that the form is decided by
LISTS = "the user and then the user's items, integers separated by blanks"


class Profiles(NamedTuple):
    """Pairs as they stand in a file."""

    users: NDArray[np.object_]  # (rows,) ids as text
    items: NDArray[np.object_]
    empty: int  # users without items


def is_profiles(path: str | Path) -> bool:
    """Return whether a file is one of profiles: .txt (or .txt.gz), its first line integers alone.

    A file in which a user begins two of the first lines, all of one length, has a row an interaction.
    """
    path = Path(path)
    if not path.name.lower().endswith((".txt", ".txt.gz")):
        return False
    lines = Source(path).head()[0].split("\n")
    lines = [line for line in lines if line.strip()][:MOST_LINES]
    if not lines or NUMBERS.fullmatch(lines[0]) is None:
        return False
    first = [line.split() for line in lines]
    users = {cells[0] for cells in first}
    return len(users) == len(first) or len({len(cells) for cells in first}) > 1


def read_profiles(path: str | Path) -> Profiles:
    """Read a file of profiles, plain or gzip."""
    path = Path(path)
    numbers: dict[str, int] = {}  # of the line of each user
    items: list[str] = []
    lengths: list[int] = []
    for line_number, line in enumerate(read_text(path).split("\n"), 1):
        user, *profile = line.split() or ("",)
        if not user:
            continue
        if not NUMBERS.fullmatch(line.strip()):
            bad = next((cell for cell in (user, *profile) if not NUMBERS.fullmatch(cell)), line)
            raise InputError(
                f"{shown(path)}, line {line_number}: {bad[:40]!r} is not an integer; each line is "
                f"{LISTS}"
            )
        if user in numbers:
            raise InputError(
                f"{shown(path)}, line {line_number}: user {user} has line {numbers[user]} already; "
                f"without a header each line is {LISTS}. Give rows of user, item and rating a header"
            )
        numbers[user] = line_number
        lengths.append(len(profile))
        items += profile
    if not items:
        raise InputError(f"{shown(path)}: no interactions; each line is {LISTS}")
    users = np.repeat(np.array(list(numbers), dtype=object), lengths)
    return Profiles(users, np.array(items, dtype=object), lengths.count(0))


def profiles_of(path: str | Path, name: str | None = None) -> Interactions:
    """Return the interactions in a file of profiles; parameters and errors as of `read_profiles`."""
    found = read_profiles(path)
    without = (f"{counted(found.empty, 'user')} without items left out",) if found.empty else ()
    data = Interactions.from_ids(found.users, found.items, name=name or Path(path).name, notes=without)
    return replace(data, columns=Columns())  # what later rows are called


def read_split(folder: str | Path, name: str | None = None) -> Interactions:
    """Read a folder with train.txt and, where there is one, test.txt, which is marked in `held_out`."""
    folder = Path(folder)
    train, test = (_first(folder, names) for names in (TRAIN, TEST))
    if train is None:
        raise InputError(
            f"{shown(folder)} is a folder; name a file, or a folder with train.txt and test.txt"
        )
    data = profiles_of(train, name or folder.resolve().name)
    if test is None:
        return data
    data = data.with_test(test)
    notes = [
        *data.notes,
        f"protocols other than published, and fit, take the pairs of {test.name} as any",
    ]
    unread = _first(folder, VALIDATION)
    if unread is not None:
        notes.append(f"{unread.name} is not read")
    return replace(data, notes=tuple(notes))


def _first(folder: Path, names: tuple[str, ...]) -> Path | None:
    for name in names:
        if os.path.exists(folder / name):
            check_file(folder / name)
            return folder / name
    return None


def check_plain(path: str | Path, **options: Any) -> None:
    """Refuse options about columns for files that have none."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise InputError(
            f"{shown(path)} has a line a user and no columns: leave {' and '.join(given)} out"
        )
