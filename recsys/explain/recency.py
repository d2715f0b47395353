"""Ages of a profile's interactions: in newer interactions, and in days where times are dates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from recsys.errors import InputError
from recsys.rankers.base import Ranker
from recsys.utils.dates import date_text, dated, day_of
from recsys.utils.recency import aligned, newer


@dataclass(frozen=True)
class Age:
    """Age of an interaction of a profile.

    Attributes
    ----------
    newer : int
        How many interactions of the profile are newer; those of an equal time are not.
    alike : int
        How many others of the profile have the same time.
    days : int or None
        Calendar days (UTC) from the like to the profile's latest one, or to the date that is looked
        back from; None where the times are no dates.
    since : str
        That date; empty for the latest interaction.

    Examples
    --------
    >>> Age(newer=2, alike=0, days=9).since
    ''
    """

    newer: int
    alike: int = 0
    days: int | None = None
    since: str = ""


def in_time(ranker: Ranker) -> bool:
    """Return whether a fitted ranker's scores depend on the ages of interactions, with its parameters.

    Examples
    --------
    >>> from recsys import make_ranker
    >>> in_time(make_ranker("ease")), in_time(make_ranker("ease", recency=0.5))
    (False, True)
    """
    return ranker.reads_times()


def known_times(ranker: Ranker, userid: int, times: Any) -> Any:
    """Return the times given, or those of this user that the ranker was fitted on, as `explain` does."""
    fitted = ranker.times_
    if times is not None or fitted is None or not 0 <= userid < fitted.shape[0]:
        return times
    return fitted[userid]


def ages(row: sp.csr_matrix, times: Any, as_of: float | None = None) -> dict[int, Age]:
    """Return how long ago each interaction of a profile was; nothing where all are equally recent.

    Parameters
    ----------
    row : (1, items) CSR
        The liked items.
    times : (1, items) sparse matrix
        When each interaction happened; 0 or absent is unknown, and the oldest.
    as_of : float, optional
        What the days are counted to; the latest interaction when not given.

    Returns
    -------
    dict of int to Age
        By item, those of unknown times left out.

    Raises
    ------
    InputError
        If `times` are not of one row.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> times = sp.csr_matrix([[1e9, 0.0, 1e9 + 7 * 86_400.0]])
    >>> found = ages(times, times)
    >>> found[0].newer, found[0].days, found[2].newer
    (1, 7, 0)
    >>> ages(times, sp.csr_matrix([[0, 0, 1.0]]))
    {2: Age(newer=0, alike=0, days=None, since='')}
    """
    known = sp.csr_matrix(times, dtype=np.float64)
    if known.shape != row.shape or row.shape[0] != 1:
        raise InputError(f"times are of shape {known.shape} for a row of shape {row.shape}")
    row, known = row.sorted_indices(), known.sorted_indices()
    when = aligned(row, known)
    if len(when) == 0 or (when == when[0]).all():
        return {}
    behind = newer(row.indptr, when)
    alike = np.bincount(behind)[behind] - 1
    dates = dated(when)
    until = when.max() if as_of is None else as_of
    since = date_text(as_of) if dates and as_of is not None else ""
    days = day_of(until) - day_of(when)
    return {
        int(k): Age(int(n), int(a), int(d) if dates else None, since)
        for k, n, a, d, t in zip(row.indices, behind, alike, days, when, strict=True)
        if t > 0
    }
