"""Points in time: numbers, or ISO dates and datetimes as seconds since 1970 in UTC."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from recsys.errors import InputError

DAY = 86_400.0  # seconds
# Between them numbers are taken for seconds since 1970: from March 1973 to the end of 2099. Counts of
# weeks, days or positions stay far below, milliseconds far above.
FIRST, LAST = 1e8, 4_102_444_800.0


def iso_seconds(text: str) -> float:
    """Return an ISO date or datetime as seconds since 1970, UTC without a zone; NaN for other text."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return math.nan
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def moment(what: str, given: Any) -> float:
    """Return a point in time as a number of at least 0: a number, or an ISO date or datetime."""
    try:
        text = given.isoformat() if isinstance(given, date) else str(given)  # datetimes are dates
        seconds = float(text) if "_" not in text else math.nan
    except ValueError:
        seconds = iso_seconds(text) if isinstance(given, (str, date, np.datetime64)) else math.nan
    if not math.isfinite(seconds):
        raise InputError(
            f"{what} {repr(given)[:40]} is not a time: use a number or an ISO date such as "
            "2024-01-31 or 2024-01-31T18:05"
        )
    if seconds < 0:
        raise InputError(f"{what} {repr(given)[:40]} is before 1970; times must not be negative")
    return seconds


def dated(times: ArrayLike) -> bool:
    """Return whether all known times (those above 0) can be seconds since 1970, in 1973…2099."""
    values = np.asarray(times, dtype=np.float64)
    known = values[values > 0]
    return bool(len(known)) and bool(known.min() >= FIRST and known.max() < LAST)


def date_text(seconds: float) -> str:
    """Return the calendar day in UTC, with the time of day where that is not midnight."""
    when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=float(seconds))
    return when.strftime("%Y-%m-%d" if seconds % DAY == 0 else "%Y-%m-%d %H:%M")
