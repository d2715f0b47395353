"""Rules about an item: "of the 13 other people who liked A and B, 11 like this too".

Conjunctions of one or two of a profile's items are the first features of the mC kernels' space over
users. They are chosen on half of the users and must be confirmed on the other half. The counts of the
chosen one are over all users but the one asked about.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.kernels.gram.counts import columns
from recsys.utils.validation import check_integer, clean_matrix

CONFIDENCE = 0.95
MOST_ITEMS = 60  # of a longer profile those are tried that most users share with the item
Z = 1.0  # standard errors that a precision is lowered by while rules are compared
SUPPORT = 10  # users


@dataclass(frozen=True)
class ItemRule:
    """A rule "users who like these also like another", with counts over all but the user asked about.

    Attributes
    ----------
    items : tuple of int
        One or two liked items.
    support : int
        How many users like all of `items`.
    hits : int
        How many of them like the explained item.
    precision : float
        Their share, hits / support.
    others : int
        All others: the users who do not like all of `items`.
    others_hits : int
        How many of the others like the explained item.
    base : float
        Their share, others_hits / others.
    low : float
        Lower end of the exact one-sided 95% interval of `hits` of `support`, above `base`; too high,
        since the rule was chosen on half of these users.
    tested, tested_hits : int
        `support` and `hits` among the users on whom the rule was not chosen.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> likes = np.zeros((60, 3), np.float32)
    >>> likes[:30, [0, 2]] = likes[30:, 1] = 1
    >>> found = item_rule(sp.csr_matrix(likes), np.array([0, 1]), 2)
    >>> found.items, found.hits, found.support, found.others_hits, found.others
    ((0,), 30, 30, 0, 30)
    """

    items: tuple[int, ...]
    support: int
    hits: int
    precision: float
    others: int
    others_hits: int
    base: float
    low: float
    tested: int = 0
    tested_hits: int = 0

    @property
    def tested_low(self) -> float:
        """The bound of `tested_hits` of `tested`: it holds for a rule that was chosen on the others."""
        return lower_bound(self.tested_hits, self.tested)


def lower_bound(hits: int, of: int, confidence: float = CONFIDENCE) -> float:
    """Return the lower end of the exact one-sided interval of a share.

    Parameters
    ----------
    hits, of : int
        0 ≤ hits ≤ of.
    confidence : float in (0, 1)

    Returns
    -------
    float
        The share at which `hits` or more of `of` have probability 1 − confidence; 0 without hits.

    Notes
    -----
    Source: Clopper and Pearson 1934. Exact rather than Wilson's: it never covers less than it
    says, also for five users.

    Examples
    --------
    >>> round(lower_bound(9, 10), 3), lower_bound(0, 10)
    (0.606, 0.0)
    """
    from scipy.special import betaincinv  # late: a list does without it

    return 0.0 if hits <= 0 else float(betaincinv(hits, of - hits + 1, 1.0 - confidence))


def item_rule(
    user_items: sp.csr_matrix,
    liked: NDArray[np.integer],
    item: int,
    *,
    exclude: int | None = None,
    min_support: int = SUPPORT,
    seed: int = 0,
    item_users: sp.csc_matrix | None = None,
) -> ItemRule | None:
    """Return the conjunction of liked items that best predicts an item.

    The rule is chosen on a random half of the users, among those that half of `min_support` of them
    satisfy. It is returned if, on the other half and on all users, the lower bound of its precision is
    above the share among all other users, and `min_support` users satisfy it.

    Parameters
    ----------
    user_items : (users, items) CSR
    liked : (items,) int
        The profile.
    item : int
    exclude : int, optional
        The user asked about, who must not witness for themselves.
    min_support : int ≥ 1
        Users that must hold the conjunction.
    seed : int
        Of the halves.
    item_users : (users, items) CSC, optional
        `user_items` by column, where it is at hand: making it takes longer than the search.

    Returns
    -------
    ItemRule or None
        None where no conjunction is shown to be better than the share among all other users.

    Raises
    ------
    InputError
        If an index is out of range.

    Examples
    --------
    >>> from recsys import load_dataset
    >>> likes = load_dataset("sample").matrix
    >>> found = item_rule(likes, likes[1].indices, 6, exclude=1)
    >>> found.items, found.hits, found.support, found.others_hits, found.others
    ((1, 4), 12, 13, 8, 386)
    """
    by_item = columns(clean_matrix(user_items)) if item_users is None else item_users
    users, m = by_item.shape
    check_integer("item", item, 0, m - 1)
    check_integer("min_support", min_support, 1)
    if exclude is not None:
        check_integer("exclude", exclude, 0, users - 1)
    liked = np.setdiff1d(np.asarray(liked, dtype=np.int64), [item])
    if len(liked) and (liked.min() < 0 or liked.max() >= m):
        raise InputError(f"liked holds indices outside 0…{m - 1}")
    if len(liked) == 0 or users < 4:
        return None
    target = np.zeros(users, dtype=bool)
    target[by_item.indices[by_item.indptr[item] : by_item.indptr[item + 1]]] = True
    here = np.random.default_rng(seed).random(users) < 0.5
    there = ~here
    everybody = np.ones(users, dtype=bool)
    if exclude is not None:
        here[exclude] = there[exclude] = everybody[exclude] = False
    has = np.zeros((len(liked), users), dtype=bool)
    for k, other in enumerate(liked):
        has[k, by_item.indices[by_item.indptr[other] : by_item.indptr[other + 1]]] = True
    if len(liked) > MOST_ITEMS:
        shared = (has[:, here] & target[here]).sum(axis=1)
        keep = np.sort(np.argsort(-shared, kind="stable")[:MOST_ITEMS])
        liked, has = liked[keep], has[keep]
    support, hits = _pairs(has[:, here], target[here])
    base = float(target[here].mean()) if here.any() else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        p = (hits + base) / (support + 1.0)  # one prior user
        low = p - Z * np.sqrt(p * (1 - p) / (support + 1.0))
    low[support < max(1, min_support // 2)] = -1.0
    low = np.triu(low)
    # A pair must add to its parts: what is no better than a single item is not shown as two.
    single = np.diag(low)
    gain = low - np.maximum(single[:, None], single[None, :])
    low[(gain < 0.02) & ~np.eye(len(low), dtype=bool)] = -1.0
    a, b = np.unravel_index(int(np.argmax(low)), low.shape)
    if low[a, b] <= base:
        return None
    members = tuple(int(liked[k]) for k in sorted({int(a), int(b)}))
    both = has[a] & has[b]
    apart = _counted(members, both, target, there)
    found = _counted(members, both, target, everybody)
    # The half that did not choose decides; the counts over all are what the user reads.
    fine = apart.low > apart.base and found.low > found.base and found.support >= min_support
    return replace(found, tested=apart.support, tested_hits=apart.hits) if fine else None


def _counted(
    items: tuple[int, ...],
    holds: NDArray[np.bool_],
    target: NDArray[np.bool_],
    users: NDArray[np.bool_],
) -> ItemRule:
    """Return a rule with its counts over these users; shares of no users are 0."""
    mine, rest = holds & users, ~holds & users
    support, hits = int(mine.sum()), int((mine & target).sum())
    others, others_hits = int(rest.sum()), int((rest & target).sum())
    return ItemRule(
        items,
        support,
        hits,
        hits / max(support, 1),
        others,
        others_hits,
        others_hits / max(others, 1),
        lower_bound(hits, support),
    )


def _pairs(has: NDArray[np.bool_], target: NDArray[np.bool_]) -> tuple[NDArray, NDArray]:
    """Return how many users hold each pair of items (the diagonal: one item), and like the target."""
    dense = has.astype(np.float32)
    return (dense @ dense.T).astype(np.float64), (dense[:, target] @ dense[:, target].T).astype(
        np.float64
    )
