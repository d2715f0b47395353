"""Rules about an item: "people who liked A and B like this".

Conjunctions of one or two of a profile's items are the first features of the mC kernels' space
over users. They are chosen on half of the users and measured on the other half.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.checks import check_integer
from recsys.errors import InputError
from recsys.kernels.gram import columns

Z = 1.0  # standard errors that a precision is lowered by before it is compared


@dataclass(frozen=True)
class ItemRule:
    """Liking these items predicts another.

    Attributes
    ----------
    items : tuple of int
        One or two liked items.
    support : int
        Users of the measuring half who like them all, the one asked for left out.
    precision : float
        Share of these who like the explained item.
    base : float
        Share of that half's users who do.
    """

    items: tuple[int, ...]
    support: int
    precision: float
    base: float


def item_rule(
    user_items: sp.csr_matrix,
    liked: NDArray[np.int64],
    item: int,
    *,
    exclude: int | None = None,
    min_support: int = 5,
    most_items: int = 60,
    seed: int = 0,
) -> ItemRule | None:
    """Return the conjunction of liked items that best predicts an item.

    Parameters
    ----------
    user_items : (users, items) CSR
    liked : (items,) int
        The profile.
    item : int
    exclude : int, optional
        The user asked about, who must not witness for themselves.
    min_support : int ≥ 1
        Users that must hold the conjunction in the choosing half.
    most_items : int ≥ 1
        Of a longer profile those are tried that most users share with the item.
    seed : int
        Of the halves.

    Returns
    -------
    ItemRule or None
        None where no conjunction beats the base rate in both halves.

    Raises
    ------
    InputError
        If an index is out of range.
    """
    users, m = user_items.shape
    check_integer("item", item, 0, m - 1)
    check_integer("min_support", min_support, 1)
    liked = np.setdiff1d(np.asarray(liked, dtype=np.int64), [item])
    if len(liked) and (liked.min() < 0 or liked.max() >= m):
        raise InputError(f"liked holds indices outside 0…{m - 1}")
    if len(liked) == 0 or users < 4:
        return None
    by_item = columns(user_items)
    target = np.zeros(users, dtype=bool)
    target[by_item.indices[by_item.indptr[item] : by_item.indptr[item + 1]]] = True
    half = np.random.default_rng(seed).random(users) < 0.5
    here = half.copy()
    there = ~half
    if exclude is not None:
        here[exclude] = there[exclude] = False
    has = np.zeros((len(liked), users), dtype=bool)
    for k, other in enumerate(liked):
        has[k, by_item.indices[by_item.indptr[other] : by_item.indptr[other + 1]]] = True
    if len(liked) > most_items:
        shared = (has[:, here] & target[here]).sum(axis=1)
        keep = np.sort(np.argsort(-shared, kind="stable")[:most_items])
        liked, has = liked[keep], has[keep]
    support, hits = _pairs(has[:, here], target[here])
    base = float(target[here].mean()) if here.any() else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        p = (hits + base) / (support + 1.0)  # one prior user
        low = p - Z * np.sqrt(p * (1 - p) / (support + 1.0))
    low[support < min_support] = -1.0
    low = np.triu(low)
    # A pair must add to its parts: what is no better than a single item is not shown as two.
    single = np.diag(low)
    gain = low - np.maximum(single[:, None], single[None, :])
    low[(gain < 0.02) & ~np.eye(len(low), dtype=bool)] = -1.0
    a, b = np.unravel_index(int(np.argmax(low)), low.shape)
    if low[a, b] <= base:
        return None
    both = has[a] & has[b] & there
    count = int(both.sum())
    precision = float(target[both].mean()) if count else 0.0
    rate = float(target[there].mean()) if there.any() else 0.0
    if count == 0 or precision <= rate:
        return None
    members = tuple(int(liked[k]) for k in sorted({int(a), int(b)}))
    return ItemRule(members, count, precision, rate)


def _pairs(has: NDArray[np.bool_], target: NDArray[np.bool_]) -> tuple[NDArray, NDArray]:
    """Return how many users hold each pair of items (the diagonal: one item), and like the target."""
    dense = has.astype(np.float32)
    return (dense @ dense.T).astype(np.float64), (dense[:, target] @ dense[:, target].T).astype(
        np.float64
    )
