"""Work that may fail: its result, or the reason in one line."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, TypeVar

from recsys.errors import FitError, InputError, RecsysError, one_line

T = TypeVar("T")
LONGEST = 300  # characters of a reason


class Dropped(NamedTuple):
    """Why a candidate is left out."""

    reason: str  # one line
    wrong_input: bool  # an InputError: what was asked for cannot be done with these data


def attempt(work: Callable[[], T]) -> T | Dropped:
    """Return the result of the work, or why it failed; KeyboardInterrupt and its like pass."""
    try:
        return work()
    except Exception as error:
        return Dropped(why(error), isinstance(error, InputError))


def why(error: Exception) -> str:
    """Return an error in one line; of one that is not ours, its kind first."""
    if isinstance(error, RecsysError):
        return one_line(str(error), LONGEST)
    kind = "out of memory" if isinstance(error, MemoryError) else type(error).__name__
    return one_line(": ".join(filter(None, (kind, str(error)))), LONGEST)


def check_some_left(what: str, labels: Collection[str], failed: Mapping[str, Dropped]) -> None:
    """Raise one error with every reason, if each candidate has failed."""
    if len(failed) < len(labels):
        return
    text = f"{what}: " + "; ".join(f"{label}: {one.reason}" for label, one in failed.items())
    raise InputError(text) if all(one.wrong_input for one in failed.values()) else FitError(text)
