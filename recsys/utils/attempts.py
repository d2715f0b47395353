"""One of several candidates is tried: if it fails, it is dropped with its reason; the others go on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextvars import copy_context
from typing import NamedTuple, TypeVar

from recsys.errors import FitError, InputError, RecsysError, one_line
from recsys.utils.progress import listening, report

__all__ = ["Dropped", "attempt", "check_some_left", "why"]

T = TypeVar("T")
LONGEST = 300  # characters of a reason


class Dropped(NamedTuple):
    """Why a candidate is left out.

    >>> attempt(lambda: 1 / 0)
    Dropped(reason='ZeroDivisionError: division by zero', wrong_input=False)
    """

    reason: str  # one line
    wrong_input: bool  # an InputError: what was asked for cannot be done with these data


def attempt(work: Callable[[], T]) -> T | Dropped:
    """Return the result of the work, or why it failed.

    Every Exception is a reason, running out of memory too: other candidates may need less. What stops
    the work on purpose passes: KeyboardInterrupt and its like, and whatever a listener to its progress
    raises.
    """
    outer, stops = copy_context(), list[BaseException]()

    def heard(step: str, done: float, total: int) -> None:
        try:
            outer.run(report, step, done, total)
        except BaseException as stop:
            stops.append(stop)
            raise

    try:
        with listening(heard):
            return work()
    except Exception as error:
        if any(error is stop for stop in stops):
            raise
        return Dropped(why(error), isinstance(error, InputError))


def why(error: Exception) -> str:
    """Return an error in one line; of one that is not ours, its kind first."""
    text = str(error)
    if isinstance(error, MemoryError):
        text = f"out of memory{': ' if text else ''}{text}"
    elif not isinstance(error, RecsysError):
        text = f"{type(error).__name__}{': ' if text else ''}{text}"
    return one_line(text, LONGEST)


def check_some_left(what: str, labels: Collection[str], failed: Mapping[str, Dropped]) -> None:
    """Raise one error that lists every reason, if each candidate has failed.

    It is an InputError if all were refused for what was asked, else a FitError. `what` says what none of
    the labels is or could do, as "no model could be evaluated".
    """
    if len(failed) < len(labels):
        return
    text = f"{what}: " + "; ".join(f"{label}: {one.reason}" for label, one in failed.items())
    raise InputError(text) if all(one.wrong_input for one in failed.values()) else FitError(text)
