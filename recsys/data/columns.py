"""Which columns of a table say who liked what: the usual names, and those that were chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recsys.errors import InputError
from recsys.registry import did_you_mean

USER_NAMES = ("user_id", "user", "userid", "userId", "uid", "UserId")
ITEM_NAMES = ("item_id", "item", "itemid", "itemId", "iid", "movie_id", "movieId", "ItemId")
RATING_NAMES = ("rating",)
TIME_NAMES = ("timestamp", "time")
MOST = 20  # names in a message
MOST_LETTERS = 60  # of a name that is not there
MOST_HINT = 100  # of what it may have been meant to be


@dataclass(frozen=True)
class Columns:
    """How the rows of a table are read, kept so that later rows are read alike.

    Attributes
    ----------
    user, item : str
    rating, time : str or None
    min_rating : float or None
        Rows rated below it are no likes.
    kind : "pandas", "polars" or "pyarrow"
        Of the table.

    Examples
    --------
    >>> Columns("who", "what").time is None
    True
    """

    user: str = "user"
    item: str = "item"
    rating: str | None = None
    time: str | None = None
    min_rating: float | None = None
    kind: str = "pandas"

    def among(self, names: Sequence[str]) -> dict[str, str | None]:
        """Return what user, item, rating and time are called, None where a table has no such column."""
        roles = ("user", "item", "rating", "time")
        return {role: found if (found := getattr(self, role)) in names else None for role in roles}


def some(names: Sequence[str], most: int = MOST) -> str:
    """Return names for a message: the first of them, each cut at 40 characters, and how many more."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(str(name)[:40] for name in names[:most]) + more


def absent(where: str, name: str, names: Sequence[str]) -> InputError:
    """Return the error for a column that a table does not have; it suggests the nearest name."""
    name = str(name)[:MOST_LETTERS]
    hint = did_you_mean(name, names)
    near = f" ({hint[:MOST_HINT]})" if hint.startswith("did") else ""
    return InputError(f"{where}: no column {name!r}{near}; found: {some(names)}")


def usual(names: Sequence[str], known: tuple[str, ...]) -> str | None:
    """Return the first usual name that there is, None without any."""
    return next((name for name in known if name in names), None)


def no_ids(
    where: str, what: str, names: Sequence[str], known: tuple[str, ...], option: str, sign: str
) -> InputError:
    """Return the error for a table without a usual column of users or items.

    It names the option that says which is meant, with a column that may be: a usual name in another
    case, or one that begins alike. Option and sign are, as they are written, `--user-col` and a blank.
    """
    lower = {name.lower() for name in known}
    near = [name for name in names if name.lower() in lower]
    near += [name for name in names if name[:1].lower() == what[0]]
    such = f", as in {option}{sign}{near[0][:40]}" if near else ""
    return InputError(f"{where}: no {what} column; found: {some(names)}. Name it with {option}{such}")
