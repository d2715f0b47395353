"""What a dataset is like, in numbers and plain sentences, and what cannot be done with so little."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data import PROTOCOLS
from recsys.errors import counted
from recsys.explain import listing
from recsys.utils.dates import dated

FEW = 5  # likes below which a user or an item is called cold
NOISY = 0.25  # share of cold users from which metric values are called noisy
MOST_BARS = 40  # of a histogram of ratings
LOWER = "does not count"
NARROW = 30  # users below which metric values are of very few


def cold(matrix: sp.csr_matrix) -> tuple[int, int]:
    """Return how many users have fewer than `FEW` likes, and how many items are liked by fewer."""
    users = np.diff(matrix.indptr)
    items = np.bincount(matrix.indices, minlength=matrix.shape[1])
    return int((users < FEW).sum()), int((items < FEW).sum())


def cold_sentences(matrix: sp.csr_matrix, word: str) -> list[str]:
    """Return two sentences: cold users, cold items."""
    n, m = matrix.shape
    users, items = cold(matrix)
    are = "is" if items == 1 else "are"
    return [
        f"{users:,} of {counted(n, 'user')} ({users / n:.1%}) {word} fewer than {FEW} items.",
        f"{items:,} of {counted(m, 'item')} ({items / m:.1%}) {are} {word} by fewer than {FEW} users.",
    ]


def limits(
    matrix: sp.csr_matrix, time: NDArray[np.float64] | None, rating: NDArray[np.float64] | None
) -> tuple[list[str], list[str]]:
    """Return what cannot be done with so little, and what should be known of what can be.

    Parameters
    ----------
    matrix : (users, items) CSR
    time, rating : (pairs,) float64 or None
    """
    n, m = matrix.shape
    lengths = np.diff(matrix.indptr)
    cannot, know = [], []
    if n == 1:
        cannot.append(
            "There is one user only: models learn from what users have in common, and of one there is "
            "nothing to learn."
        )
    several = int((lengths >= 2).sum())
    if several == 0:
        cannot.append(
            "No user has two items, so none can be hidden and predicted: Compare has nothing to measure."
        )
    elif n == 1:
        cannot.append("Compare divides users into groups and needs two of them.")
    elif several < NARROW:
        know.append(
            f"Compare can hide items of {counted(several, 'user')} only: its intervals will be wide."
        )
    full = int((lengths == m).sum())
    if full == n:
        cannot.append("Every user has every item: nothing is left to recommend.")
    elif full:
        have = "has" if full == 1 else "have"
        know.append(f"{counted(full, 'user')} {have} every item: nothing is left to recommend to them.")
    if m == 1:
        cannot.append("There is one item only: there is nothing to choose from.")
    users, _ = cold(matrix)
    if n > 1 and users / n >= NOISY:
        know.append(
            f"Many have fewer than {FEW} items: lists for them rest on little, and metric values of "
            "them are noisy."
        )
    alone = int((np.bincount(matrix.indices, minlength=m) == 1).sum())
    if m > 1 and alone / m >= NOISY:
        are = "is" if alone == 1 else "are"
        know.append(
            f"{counted(alone, 'item')} of {m:,} ({alone / m:.0%}) {are} known from one user only."
        )
    timed = [name for name in PROTOCOLS if PROTOCOLS.get(name).times == "needed"]
    if time is None:
        know.append(
            f"There are no times: the protocols {listing(timed)} and what comes next are not to be had."
        )
    elif len(np.unique(time)) == 1:
        know.append(f"All times are equal: the protocols {listing(timed)} have nothing to divide.")
    if rating is None:
        know.append("There are no ratings: every row counts as a like.")
    return cannot, know


def over_time(time: NDArray[np.float64]) -> tuple[pd.DataFrame, str] | None:
    """Return how many likes there were in each day, month or year; None for times that are no dates.

    Parameters
    ----------
    time : (pairs,) float64
        Seconds since 1970; 0 and below is unknown.

    Returns
    -------
    frame : DataFrame
        `start` (datetime, UTC) of each period from the first to the last, and `likes`.
    period : "day", "month" or "year"
    """
    known = time[time > 0]
    if not dated(time) or len(known) == 0:
        return None
    days = (known.max() - known.min()) / 86_400
    period = "day" if days <= 92 else "month" if days <= 3_660 else "year"
    unit = {"day": "D", "month": "M", "year": "Y"}[period]
    starts = known.astype("datetime64[s]").astype(f"datetime64[{unit}]")
    first, last = starts.min(), starts.max()
    size = int((last - first).astype(np.int64)) + 1
    counts = np.bincount((starts - first).astype(np.int64), minlength=size)
    places = pd.to_datetime((first + np.arange(size)).astype("datetime64[s]"))
    return pd.DataFrame({"start": places, "likes": counts}), period


def span(time: NDArray[np.float64]) -> str:
    """Return the first and the last day that are known, as a sentence."""
    known = time[time > 0]
    first, last = (
        datetime.fromtimestamp(float(t), UTC).date().isoformat() for t in (known.min(), known.max())
    )
    return f"They are from {first} to {last}." if first != last else f"All are from {first}."


def ratings(rating: NDArray[np.float64], least: float, word: str) -> pd.DataFrame:
    """Return how often each rating was given and whether it counts, in the order of the scale.

    More than `MOST_BARS` different ratings are put together, a bar never on both sides of `least`.
    """
    grades, counts = np.unique(rating, return_counts=True)
    labels = [f"{grade:g}" for grade in grades]
    if len(grades) > MOST_BARS:
        edges = np.unique([*np.linspace(grades[0], grades[-1], MOST_BARS), least])
        place = np.clip(np.searchsorted(edges, grades, side="right") - 1, 0, len(edges) - 1)
        counts = np.bincount(place, weights=counts, minlength=len(edges)).astype(np.int64)
        grades, labels = edges, [f"{edge:.3g}…" for edge in edges]
    return pd.DataFrame(
        {"rating": labels, "rows": counts, "counts": np.where(grades >= least, word, LOWER)}
    )


def tail(counts: NDArray[np.int64], law: Any, what: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return points of a rank plot and the fitted line, evenly spaced on a logarithmic axis.

    Parameters
    ----------
    counts : (n,) int64
        Most first.
    law : PowerLaw
    what : str
        What the points are called.
    """
    at = np.unique(np.geomspace(1, max(len(counts), 1), 80).astype(int))
    points = pd.DataFrame({"rank": at, "likes": counts[at - 1].astype(float), "what": what})
    line = pd.DataFrame({"rank": at, "likes": law.scale * at**-law.exponent, "what": formula(law)})
    return points[points["likes"] >= 0.5], line[line["likes"] >= 0.5]


def formula(law: Any) -> str:
    """Return a fitted power law as text; an exponent that rounds to 0 has no sign."""
    power = 0.0 - round(law.exponent, 2)
    return f"fit: {law.scale:,.0f} · rank^({power + 0.0:.2f}), R² {law.r_squared:.2f}"
