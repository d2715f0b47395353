"""Rules about an item: 11 of the 13 other users who liked A and B like this too.

Conjunctions of one or two of a profile's items are the first features of the mC kernels' space over
users. A rule is chosen on half of the users and must hold on the other half.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.utils.validation import check_ids, check_integer, clean_matrix

CONFIDENCE = 0.95
MOST_ITEMS = 60  # of a longer profile those are tried that most users share with the item
MIN_GAIN = 0.02  # what a second item must add to the lower bound of the precision


@dataclass(frozen=True)
class ItemRule:
    """A rule "users who like these also like the item", counted over all other users.

    The remaining users are all who do not like all of `items`.
    """

    items: tuple[int, ...]  #: one or two liked items
    support: int  #: users who like all of `items`
    hits: int  #: of these, users who like the item as well
    precision: float  #: hits / support
    others: int  #: remaining users
    others_hits: int  #: of these, users who like the item
    base: float  #: others_hits / others
    low: float  #: lower bound of the exact one-sided 95% interval of the precision
    tested: int = 0  #: `support` and `hits` among the users of the other half, which tests the rule
    tested_hits: int = 0


def lower_bound(hits: int, of: int, confidence: float = CONFIDENCE) -> float:
    """Return the lower bound of the exact one-sided interval of a share (Clopper and Pearson 1934)."""
    from scipy.special import betaincinv  # late: a list does without it

    return 0.0 if hits <= 0 else float(betaincinv(hits, of - hits + 1, 1.0 - confidence))


def item_rule(
    user_items: sp.csr_matrix,
    liked: NDArray[np.integer],
    item: int,
    *,
    exclude: int | None = None,
    min_support: int = 10,
    seed: int = 0,
    item_users: sp.csc_matrix | None = None,
) -> ItemRule | None:
    """Return the conjunction of liked items that best predicts an item.

    The rule is chosen on a random half of the users. It is returned if the lower bound of its precision
    exceeds the share of the remaining users, on the other half and on all users; else None.

    Parameters
    ----------
    user_items : (users, items) CSR
    liked : (items,) int
        The profile.
    item : int
    exclude : int, optional
        User to leave out of all counts.
    min_support : int ≥ 1
    seed : int
    item_users : (users, items) CSC, optional
        `user_items` as CSC, to save time.

    Examples
    --------
    >>> from recsys import load_dataset
    >>> likes = load_dataset("sample").matrix
    >>> rule = item_rule(likes, likes[1].indices, 6, exclude=1)
    >>> rule.items, rule.hits, rule.support, rule.others_hits, rule.others
    ((1, 4), 12, 13, 8, 386)
    """
    by_item = clean_matrix(user_items).tocsc() if item_users is None else item_users
    users, m = by_item.shape
    check_integer("item", item, 0, m - 1)
    check_integer("min_support", min_support, 1)
    if exclude is not None:
        check_integer("exclude", exclude, 0, users - 1)
    liked = np.setdiff1d(check_ids("liked", liked, m), [item])
    if len(liked) == 0 or users < 4:
        return None
    chosen_on = np.random.default_rng(seed).random(users) < 0.5
    tested_on, everybody = ~chosen_on, np.ones(users, dtype=bool)
    if exclude is not None:
        chosen_on[exclude] = tested_on[exclude] = everybody[exclude] = False
    has = np.zeros((len(liked) + 1, users), dtype=bool)
    for k, one in enumerate((*liked, item)):
        has[k, by_item.indices[by_item.indptr[one] : by_item.indptr[one + 1]]] = True
    has, target = has[:-1], has[-1]
    if len(liked) > MOST_ITEMS:
        shared = (has[:, chosen_on] & target[chosen_on]).sum(axis=1)
        keep = np.sort(np.argsort(-shared, kind="stable")[:MOST_ITEMS])
        liked, has = liked[keep], has[keep]
    base = float(target[chosen_on].mean()) if chosen_on.any() else 0.0
    low = _precisions(has[:, chosen_on], target[chosen_on], base, max(1, min_support // 2))
    a, b = np.unravel_index(int(np.argmax(low)), low.shape)
    if low[a, b] <= base:
        return None
    items, both = tuple(sorted({int(liked[a]), int(liked[b])})), has[a] & has[b]
    tested = _counted(items, both, target, tested_on)
    rule = _counted(items, both, target, everybody)
    holds = tested.low > tested.base and rule.low > rule.base and rule.support >= min_support
    return replace(rule, tested=tested.support, tested_hits=tested.hits) if holds else None


def _precisions(
    has: NDArray[np.bool_], target: NDArray[np.bool_], base: float, min_support: int
) -> NDArray[np.float64]:
    """Return of each pair of items the precision less a standard error; −1 where it is no rule."""
    dense = has.astype(np.float32)
    support = (dense @ dense.T).astype(np.float64)
    hits = (dense[:, target] @ dense[:, target].T).astype(np.float64)
    p = (hits + base) / (support + 1.0)  # one prior user
    low = np.triu(p - np.sqrt(p * (1 - p) / (support + 1.0)))
    low[support < min_support] = -1.0
    single = np.diag(low)
    gain = low - np.maximum(single[:, None], single[None, :])
    low[(gain < MIN_GAIN) & ~np.eye(len(low), dtype=bool)] = -1.0
    return low


def _counted(
    items: tuple[int, ...],
    holds: NDArray[np.bool_],
    target: NDArray[np.bool_],
    users: NDArray[np.bool_],
) -> ItemRule:
    """Return the rule with its counts over some users; a share of no users is 0."""
    inside, outside = holds & users, ~holds & users
    support, hits = int(inside.sum()), int((inside & target).sum())
    others, others_hits = int(outside.sum()), int((outside & target).sum())
    precision, base = hits / max(support, 1), others_hits / max(others, 1)
    low = lower_bound(hits, support)
    return ItemRule(items, support, hits, precision, others, others_hits, base, low)
