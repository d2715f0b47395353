"""Points in time: numbers, or ISO dates and datetimes as seconds since 1970 in UTC."""

from __future__ import annotations

import math
import numbers
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from recsys.errors import InputError

DAY = 86_400.0  # seconds
# Between them numbers are taken for seconds since 1970: from March 1973 to the end of 2099. Counts of
# weeks, days or positions stay far below, milliseconds far above.
FIRST, LAST = 1e8, 4_102_444_800.0
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ACCEPTED = "a number or an ISO date such as 2024-01-31 or 2024-01-31T18:05"


def iso_seconds(text: str) -> float:
    """Return an ISO date or datetime as seconds since 1970, UTC without a zone; NaN for other text.

    >>> iso_seconds("1970-01-02"), iso_seconds("1970-01-01T02:00+02:00"), iso_seconds("31/12/2020")
    (86400.0, 0.0, nan)
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return math.nan
    return ((found if found.tzinfo else found.replace(tzinfo=UTC)) - EPOCH).total_seconds()


def number_of(text: str) -> float:
    """Return text as a finite number, NaN for other text (and for 1_000, which Python takes).

    >>> number_of("12.5"), number_of("1e400"), number_of("1_000")
    (12.5, nan, nan)
    """
    try:
        found = float(text)
    except ValueError:
        return math.nan
    return found if math.isfinite(found) and "_" not in text else math.nan


def moment(what: str, given: Any, *, early: bool = False) -> float:
    """Return a point in time as a number, of at least 0 if not `early`, as dates before 1970 are.

    It is given as a number in the data's unit, also as text, or as an ISO date or datetime.

    >>> moment("as of", "1970-01-02T00:00:30"), moment("as of", 30)
    (86430.0, 30.0)
    """
    if isinstance(given, np.datetime64):
        given = str(given)
    elif isinstance(given, date):  # datetimes are dates; pandas' timestamps are datetimes
        given = given.isoformat()
    if isinstance(given, str):
        found = number_of(given)
        found = iso_seconds(given) if math.isnan(found) else found
    elif isinstance(given, numbers.Real) and not isinstance(given, bool):
        try:
            found = float(given)
        except OverflowError:  # of an integer beyond 1e308
            found = math.inf
    else:
        found = math.nan
    if isinstance(given, str):
        shown = repr(given[:40])
    else:
        shown = f"{given!r}"[:40] if not math.isinf(found) else "infinity"
    if not math.isfinite(found):
        raise InputError(f"{what} {shown} is not a time: use {ACCEPTED}")
    if found < 0 and not early:
        raise InputError(f"{what} {shown} is before 1970; times must not be negative")
    return found


def dated(times: ArrayLike) -> bool:
    """Return whether all known times (those above 0) can be seconds since 1970, in 1973…2099.

    >>> dated([0.0, 875_071_561.0]), dated([1.0, 2.0]), dated([0.0])
    (True, False, False)
    """
    values = np.asarray(times, dtype=np.float64)
    known = values[values > 0]
    return bool(len(known)) and bool(known.min() >= FIRST and known.max() < LAST)


def date_text(seconds: float) -> str:
    """Return the calendar day in UTC, with the time of day where that is not midnight.

    >>> date_text(875_059_200.0), date_text(875_071_561.0)
    ('1997-09-24', '1997-09-24 03:26')
    """
    found = EPOCH + timedelta(seconds=float(seconds))
    return found.strftime("%Y-%m-%d" if seconds % DAY == 0 else "%Y-%m-%d %H:%M")
