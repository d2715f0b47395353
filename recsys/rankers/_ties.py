"""The order of items of equal scores: by popularity, in the bits that float64 has beyond float32.

Between two neighbouring float32 numbers lie 2²⁹ of float64. What breaks ties is added to a float32 score
in units of the last bit of its float64 form, and is less than a quarter of the way to the next float32
number. So, exactly: two items whose scores differ as float32 stay in that order; two of equal scores, 0
among them, are in the order of the prior; two that are equal in both tie still; and rounded to float32
the scores are those without a prior. No ε would do that in float32 itself, where 1 and the number after
it leave no room.

A cold item counts as an item of mean popularity, as under `unrated="mean"` of the margin
rankers: it would not be in the catalogue if no user were expected to want it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys.errors import InputError

PRIORS = ("popularity",)
AT_ZERO = 2.0**-178  # the unit at 0 and near it: 2⁻²⁹ of the smallest float32, and no subnormal float64
MOST_RANKS = 2**27  # a quarter of the way to the next float32: beyond, rounding would change the score


class TieOrder(NamedTuple):
    """In which order a prior puts items of equal scores."""

    popularity: NDArray[np.float32]  # what it was made of, (items,)
    order: NDArray[np.int32]  # the items, those of the highest prior first and equal ones by index
    place: NDArray[np.int32]  # where each comes in it
    rank: NDArray[np.float64]  # how many different values of the prior are below an item's


UNORDERED = TieOrder(np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0))


def check_ties(given: str | None) -> None:
    """Refuse a value of the parameter `ties` that is neither None nor among `PRIORS`."""
    if given is not None and (not isinstance(given, str) or given not in PRIORS):
        raise InputError(f"ties must be one of {', '.join(PRIORS)}, or none for no order, not {given!r}")


def tie_order(popularity: NDArray[np.float32]) -> TieOrder:
    """Return the order of items by their users, (items,) float32."""
    known = popularity > 0
    mean = popularity[known].mean(dtype=np.float64) if known.any() else 0.0
    values, rank = np.unique(np.where(known, popularity, mean), return_inverse=True)
    assert len(values) <= MOST_RANKS
    order = np.argsort(-rank, kind="stable").astype(np.int32)
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return TieOrder(popularity, order, place, rank.astype(np.float64))


def break_ties(scores: NDArray[np.floating], ties: TieOrder) -> NDArray[np.float64]:
    """Return float64 scores of which equal ones are in the order of the prior.

    Rounded to float32 they are the given ones.
    """
    assert scores.dtype == np.float32  # float64 has no bits left
    out = scores.astype(np.float64)
    unit = np.abs(out)
    np.maximum(np.spacing(unit, out=unit), AT_ZERO, out=unit)
    unit *= ties.rank
    out += unit
    return out


def tie_order_of(ranker: Any) -> TieOrder:
    """Return the order of a ranker's items of equal scores; kept until `popularity_` is another."""
    if ranker._ties is None or ranker._ties.popularity is not ranker.popularity_:
        ranker._ties = tie_order(ranker.popularity_)
    order: TieOrder = ranker._ties
    return order
