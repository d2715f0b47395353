"""A user profile rule over the items' attributes.

A rule is worth the bits it saves in naming the profile's items against drawing them by
popularity, less the bits it takes to write down. Candidates are read from a kernel machine of its
own and from two centroids that tell the profile from the rest of the catalogue. None of this asks
the ranker whose list is shown: how far that follows the rule is measured apart, by `following`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.explain.association import lower_bound
from recsys.explain.rules.item_attributes import Attributes
from recsys.explain.rules.rule import Rule, agreement, balanced
from recsys.explain.rules.search import search_rule
from recsys.utils.validation import check_ids, check_integer, check_real

if TYPE_CHECKING:
    from recsys.kernel_machines import KOMD

OTHERS = 300  # sampled for the machine
SHAPES = ((1, 1), (1, 2), (2, 1), (2, 2), (3, 2), (1, 3))  # most clauses and literals of a candidate
BUDGET = 5_000_000  # of a search for a proof: fractions of a second
LEAST_LIFT = 1.5  # a rule below it says little more than "you like items"


@dataclass(frozen=True)
class TasteRule:
    """A rule about one user, and how far to trust it.

    It is learned from a part of the profile and tested on the rest; `support`, `catalogue` and
    `unseen` are counts over everything. What it says is about the interactions and the attributes of the
    items, not about the ranker whose list may be shown beside it: see `following`.

    Attributes
    ----------
    rule : Rule
        Over the items' attributes.
    shown : bool
        Whether it says something: its lift in the learning part, less a standard error, is above
        the least one, and it saves bits, by popularity or evenly; the lower bound of its share of
        the profile is above its share of the other items; and it covers an unseen item.
    source : str
        What it was read from: "machine" (a kernel machine of its own that tells the learning part
        from sampled other items), "popularity" or "catalogue" (the centroids of the learning part
        and of all items, weighed by popularity or evenly).
    support, profile : int
        Items of the profile that it covers, and all.
    catalogue, items : int
        Items that it covers, and all.
    unseen, candidates : int
        Candidates that it covers, and all. None is of the profile.
    tested, tested_hits : int
        Interactions set aside, and those that it covers.
    low : float
        Lower end of the exact one-sided 95% interval of support / profile.
    elsewhere : float
        Share of the items outside the profile that it covers.
    bits : float
        Bits saved in naming the learning part, after paying for the rule; may be negative.
    precision, base : float
        Share of held-out interactions among the covered and among all items outside the learning part;
        NaN without held-out items.
    recall : float
        tested_hits / tested; NaN without any.
    fidelity : float
        Share of the held-out interactions and sampled other items where the rule and the kernel machine
        of its own agree; nothing is said of the ranker.
    accuracy : float
        Mean of the shares of held-out interactions covered and of other items not covered.

    Examples
    --------
    >>> import numpy as np
    >>> from recsys.explain import Attributes, taste_rule
    >>> rng = np.random.default_rng(3)
    >>> X = (rng.random((300, 12)) < 0.3).astype(np.uint8)
    >>> liked = np.flatnonzero(X[:, 2] & X[:, 7])[3:]
    >>> found = taste_rule(liked, Attributes(X, tuple("abcdefghijkl")), np.ones(300))
    >>> print(found.rule, found.support == found.profile == len(liked), found.unseen)
    c ∧ h True 3
    """

    rule: Rule
    shown: bool
    source: str
    support: int
    profile: int
    catalogue: int
    items: int
    unseen: int
    candidates: int
    tested: int
    tested_hits: int
    low: float
    elsewhere: float
    bits: float
    precision: float
    base: float
    recall: float
    fidelity: float
    accuracy: float


@dataclass(frozen=True)
class Following:
    """How far a ranker's list for a user follows a rule, among all items that the list may hold.

    Attributes
    ----------
    follows : tuple of bool
        For each item of the list.
    rest, rest_follow : int
        Candidates outside the list, and those that the rule covers.
    covered, agreed : int
        Candidates that the rule covers, and how many of these are among as many that the ranker
        puts first.
    chance : float
        What `agreed` would be on average if the ranker knew nothing of the rule: covered² / n.
    agreement : float
        Share of the candidates that are both covered and among the ranker's first, or neither:
        the rule's fidelity to the ranker.

    Examples
    --------
    >>> import numpy as np
    >>> from recsys.explain import Attributes, Rule, following
    >>> attributes = Attributes(np.array([[1], [0], [1], [0]], np.uint8), ("Drama",))
    >>> ranked = np.array([0, 1, 2, 3])  # the ranker's order
    >>> found = following(Rule(((0,),)), attributes, ranked, ranked[:2])
    >>> found.follows, found.covered, found.agreed, found.chance
    ((True, False), 2, 1, 1.0)
    """

    follows: tuple[bool, ...]
    rest: int
    rest_follow: int
    covered: int
    agreed: int
    chance: float
    agreement: float


def following(
    rule: Rule, attributes: Attributes, ranked: NDArray[np.int64], listed: NDArray[np.int64]
) -> Following:
    """Measure how far a ranker's order of the unseen items agrees with a rule.

    Parameters
    ----------
    rule : Rule
    attributes : Attributes
        Of the catalogue.
    ranked : (candidates,) int
        All items that could be recommended, the ranker's best first.
    listed : (shown,) int
        Those in the list that is shown, all of them candidates.

    Raises
    ------
    InputError
        If there is no candidate, or the list holds others.

    Examples
    --------
    >>> from recsys import load_dataset, make_ranker
    >>> from recsys.explain import Rule, following, item_attributes
    >>> data = load_dataset("sample")
    >>> attributes, row = item_attributes(data), data.matrix[0]
    >>> rule = Rule(((attributes.names.index("Drama"),),), attributes.names)
    >>> model = make_ranker("ease").fit(data.matrix, show_progress=False)
    >>> ranked = model.recommend(0, row, N=data.n_items).ids
    >>> found = following(rule, attributes, ranked, ranked[:10])
    >>> sum(found.follows), found.rest_follow, found.rest, found.covered
    (4, 75, 258, 79)
    """
    order = np.asarray(ranked, dtype=np.int64)
    some = np.asarray(listed, dtype=np.int64)
    if len(order) == 0 or not np.isin(some, order).all():
        raise InputError("listed must hold items of ranked, and ranked at least one item")
    covers = rule.covers(attributes.X)
    inside = covers[order]
    n, r = len(order), int(inside.sum())
    agreed = int(inside[:r].sum())
    return Following(
        follows=tuple(bool(flag) for flag in covers[some]),
        rest=n - len(some),
        rest_follow=r - int(covers[some].sum()),
        covered=r,
        agreed=agreed,
        chance=r * r / n,
        agreement=1.0 - 2.0 * (r - agreed) / n,
    )


def taste_rule(
    items: NDArray[np.int64],
    attributes: Attributes,
    popularity: NDArray[np.float64],
    *,
    candidates: NDArray[np.int64] | None = None,
    held_out: float = 0.3,
    seed: int = 0,
) -> TasteRule | None:
    """Describe the items of a profile by a rule.

    Parameters
    ----------
    items : (liked,) int
        The profile.
    attributes : Attributes
        Of the catalogue.
    popularity : (items,) float
        How many users like each item, the user left out.
    candidates : int array, optional
        Items that may be recommended; those of the profile do not count among them. All others
        when not given.
    held_out : float in 0…0.9
        Share of the profile that only measures.
    seed : int
        Of the held-out part and of the sampled other items.

    Returns
    -------
    TasteRule or None
        None if the profile has fewer than 5 items, nothing outside it, or no attribute.

    Raises
    ------
    InputError
        If indices or shapes disagree.

    Examples
    --------
    >>> from recsys import load_dataset
    >>> from recsys.explain import item_attributes, taste_rule
    >>> data = load_dataset("sample")
    >>> row, attributes = data.matrix[0], item_attributes(data)
    >>> others = np.bincount(data.matrix.indices, minlength=data.n_items) - row.toarray().ravel()
    >>> found = taste_rule(row.indices, attributes, others)
    >>> print(found.rule, found.shown)
    1950s ∨ 1960s True
    >>> found.support, found.profile, found.catalogue, found.items
    (25, 32, 38, 300)
    """
    X, m = attributes.X, len(attributes.X)
    check_real("held_out", held_out, 0.0, 0.9)
    check_integer("seed", seed, 0)
    liked = np.unique(np.asarray(items, dtype=np.int64))
    if len(liked) and (liked[0] < 0 or liked[-1] >= m):
        raise InputError(f"items hold indices outside 0…{m - 1}")
    if np.shape(popularity) != (m,):
        raise InputError(f"popularity has shape {np.shape(popularity)} for {m} items")
    if candidates is None:
        unseen = np.ones(m, dtype=bool)
    else:
        unseen = np.zeros(m, dtype=bool)
        unseen[check_ids("candidates", candidates, m)] = True
    unseen[liked] = False
    if len(liked) < 5 or len(liked) >= m or X.shape[1] == 0:
        return None
    rng = np.random.default_rng(seed)
    mixed = rng.permutation(liked)
    count = round(held_out * len(liked))
    held, learned = mixed[:count], np.sort(mixed[count:])
    weight = np.asarray(popularity, dtype=np.float64) + 0.5
    machine, others = _machine(X, learned, weight, rng)
    best: tuple[bool, float, Rule, str] | None = None
    for rule, source in _candidates(X, learned, others, weight, machine, attributes.names):
        bits, lift = bits_and_lift(rule, X, learned, weight)
        even, _ = bits_and_lift(rule, X, learned, np.ones(m))
        leaves = bool((rule.covers(X) & unseen).any())
        # Chosen among many, a rule must pay for its own description against some prior.
        key = (leaves and lift > LEAST_LIFT and max(bits, even) > 0, bits, rule, source)
        if best is None or key[:2] > best[:2]:
            best = key
    return None if best is None else _measured(best, X, learned, held, others, machine, unseen)


def _machine(
    X: Any, learned: Any, weight: Any, rng: np.random.Generator
) -> tuple[KOMD, NDArray[np.int64]]:
    """Return a machine that tells the profile from items sampled by popularity, and these."""
    from recsys.kernel_machines import KOMD  # late: scikit-learn takes most of a second to import

    keys = rng.exponential(size=len(X)) / weight
    keys[learned] = np.inf
    others = np.argsort(keys, kind="stable")[: min(OTHERS, len(X) - len(learned))]
    rows = np.concatenate([learned, others])
    y = np.r_[np.ones(len(learned), int), np.zeros(len(others), int)]
    return KOMD(0.9, kernel="mdnf-sum", kernel_params={"d": 2, "c": 2}, tol=1e-4).fit(X[rows], y), others


def _candidates(
    X: Any, learned: Any, others: Any, weight: Any, machine: KOMD, names: tuple[str, ...]
) -> list[tuple[Rule, str]]:
    rows = np.concatenate([learned, others])
    found: dict[tuple[tuple[int, ...], ...], tuple[Rule, str]] = {}
    views = [(X[rows], balanced(machine.dual_), "machine")]
    # The whole catalogue instead of a sample, by popularity and evenly: the centroids of λ = 1.
    for prior, source in ((weight, "popularity"), (np.ones(len(X)), "catalogue")):
        signed = -prior.copy()
        signed[learned] = 1.0
        views.append((X, balanced(signed), source))
    for rows_of, signed, source in views:
        for clauses, literals in SHAPES:
            rule = search_rule(
                rows_of, signed, max_clauses=clauses, max_literals=literals, budget=BUDGET, names=names
            ).rule
            if rule.clauses:
                found.setdefault(rule.clauses, (rule, source))
    return list(found.values())


def bits_and_lift(rule: Rule, X: Any, learned: Any, weight: Any) -> tuple[float, float]:
    """Return the bits that a rule saves, and its lift over the catalogue less a standard error."""
    covered = rule.covers(X)
    n, k = len(learned), int(covered[learned].sum())
    share = float(weight[covered].sum() / weight.sum())
    cost = 1.0 + sum(1.0 + np.log2(X.shape[1]) for clause in rule.clauses for _ in clause)
    p = k / n
    if k == 0 or p <= share:
        return -np.inf, 0.0
    saved = k * np.log2(p / share)
    if k < n:
        saved += (n - k) * np.log2((1 - p) / (1 - share))
    low = p - np.sqrt(max(p * (1 - p), 0.25 / n) / n)
    return float(saved - cost), float(low / max(covered.mean(), 1e-12))


def _measured(
    best: tuple[bool, float, Rule, str], X: Any, learned: Any, held: Any, others: Any, machine: KOMD,
    unseen: NDArray[np.bool_],
) -> TasteRule:  # fmt: skip
    shown, bits, rule, source = best
    covered = rule.covers(X)
    outside = np.ones(len(X), dtype=bool)
    outside[learned] = False
    nan = float("nan")
    strangers = np.setdiff1d(others, held)
    rows = np.concatenate([held, strangers])
    says = machine.decision_function(X[rows]) > 0
    liked = np.concatenate([learned, held])
    support, catalogue = int(covered[liked].sum()), int(covered.sum())
    low = lower_bound(support, len(liked))
    elsewhere = (catalogue - support) / (len(X) - len(liked))
    return TasteRule(
        rule=rule,
        shown=shown and low > elsewhere,
        source=source,
        support=support,
        profile=len(liked),
        catalogue=catalogue,
        items=len(X),
        unseen=int((covered & unseen).sum()),
        candidates=int(unseen.sum()),
        tested=len(held),
        tested_hits=int(covered[held].sum()),
        low=low,
        elsewhere=elsewhere,
        bits=bits,
        precision=float(covered[held].sum() / max(int(covered[outside].sum()), 1)) if len(held) else nan,
        base=float(len(held) / outside.sum()) if len(held) else nan,
        recall=float(covered[held].mean()) if len(held) else nan,
        fidelity=agreement(rule, X[rows], says),
        accuracy=float(0.5 * (covered[held].mean() + (~covered[strangers]).mean()))
        if len(held) and len(strangers)
        else nan,
    )
