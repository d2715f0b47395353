"""Columns of interactions: their usual names, and those that were chosen."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from recsys.errors import InputError
from recsys.registry import did_you_mean

USER_NAMES = ("user_id", "user", "userid", "userId", "uid", "UserId")
ITEM_NAMES = ("item_id", "item", "itemid", "itemId", "iid", "movie_id", "movieId", "ItemId")
RATING_NAMES = ("rating",)
TIME_NAMES = ("timestamp", "time")
MOST = 20  # names in a message
SHORT = 4  # letters of an abbreviated name
MOST_LETTERS = 60  # of a name that is not there
MOST_HINT = 100  # of what it may have been meant to be


@dataclass(frozen=True)
class Columns:
    """The columns of a table and how they are read, kept so that later rows are read alike."""

    user: str = "user"
    item: str = "item"
    rating: str | None = None
    time: str | None = None
    min_rating: float | None = None  # rows rated below it are no interactions
    kind: str = "pandas"  # of table: "pandas", "polars" or "pyarrow"
    weight: str | None = None  # counts or amounts
    decimal: str | None = None  # "." or ","; None where nothing told
    day_first: bool | None = None  # how dates such as 01/02/2020 were read
    duplicates: str | None = None  # what became of repeated pairs: "sum", "count" or "last"

    def among(self, names: Sequence[str]) -> dict[str, str | None]:
        """Return the names of the columns of users, items, ratings and times, None for absent ones."""
        roles = ("user", "item", "rating", "time")
        return {role: found if (found := getattr(self, role)) in names else None for role in roles}


def some(names: Sequence[str]) -> str:
    """Return names for a message: the first of them, each cut at 40 characters, and how many more."""
    more = f" and {len(names) - MOST:,} more" if len(names) > MOST else ""
    return ", ".join(str(name)[:40] for name in names[:MOST]) + more


def absent(where: str, name: str, names: Sequence[str]) -> InputError:
    """Return the error for a column that a table does not have; it suggests the nearest name."""
    name = str(name)[:MOST_LETTERS]
    hint = did_you_mean(name, names)
    near = f" ({hint[:MOST_HINT]})" if hint.startswith("did") else ""
    return InputError(f"{where}: no column {name!r}{near}; found: {some(names)}")


def usual(names: Sequence[str], known: tuple[str, ...]) -> str | None:
    """Return the first usual name that there is, None without any."""
    return next((name for name in known if name in names), None)


# Labels and values of the select boxes of the app's page Data.
PAGE_LABELS = {"delimiter": "Delimiter", "encoding": "Encoding", "decimal": "Decimal mark"}
PAGE_CHOICES = {
    ("header", True): "“First row: names of columns”",
    ("header", False): "“First row: cells”",
    ("day_first", True): "“01/02/2020: 1 February”",
    ("day_first", False): "“01/02/2020: 2 January”",
}


@dataclass(frozen=True)
class Spelling:
    """How messages write options, by the interface through which the table came.

    >>> Spelling("terminal").of("user"), Spelling().of("user", "Kunde")
    ('--user-col', "user='Kunde'")
    >>> Spelling("terminal").choice("day_first", False), Spelling().choice("day_first", False)
    ('--no-day-first', 'day_first=False')
    """

    interface: str = "python"  # "python", "terminal", "page" or "dataset"

    def of(self, option: str, value: str = "") -> str:
        """Return an option, with a value where one is given."""
        column = option in ("user", "item", "rating", "time", "weight")
        if self.interface == "terminal":
            text = f"--{option}-col" if column else f"--{option.replace('_', '-')}"
            return f"{text} {shlex.quote(value)}" if value else text
        if self.interface == "page":
            text = f"{option.capitalize()} column" if column else PAGE_LABELS.get(option, option)
            return f"{text} {value}" if value else text
        return f"{option}={value!r}" if value else f"{option}="

    def choice(self, option: str, value: bool) -> str:
        """Return an option that is true or false."""
        if self.interface in ("python", "dataset"):
            return f"{option}={value}"
        text = option.replace("_", "-")
        if self.interface == "terminal":
            return f"--{text}" if value else f"--no-{text}"
        return PAGE_CHOICES[option, value]


def no_ids(
    where: str,
    what: str,
    names: Sequence[str],
    known: Sequence[str],
    spelling: Spelling,
    option: str,
) -> InputError:
    """Return the error for a table without a usual column of users or items.

    It names the option that says which is meant, with a column that may be: a usual name in another
    case, or one that begins alike and is short or ends in "id".
    """
    lower = {name.lower() for name in known}
    near = [name for name in names if name.lower() in lower]
    alike = [name for name in names if name[:1].lower() == what[0]]
    near += [name for name in alike if len(name) <= SHORT or name.lower().endswith("id")]
    such = f", as in {spelling.of(option, near[0][:40])}" if near else ""
    written = spelling.of(option).removesuffix("=")
    return InputError(f"{where}: no {what} column; found: {some(names)}. Name it with {written}{such}")
