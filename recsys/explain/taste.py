"""A user's taste as a rule over the items' attributes.

A rule is worth the bits it saves in naming the profile's items against drawing them by
popularity, less the bits it takes to write down. Candidates are read from kernel machines
that separate the profile from the rest of the catalogue.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.checks import check_integer, check_real
from recsys.errors import InputError
from recsys.explain.attributes import Attributes
from recsys.explain.rule import Rule, agreement, balanced
from recsys.explain.search import search_rule
from recsys.machines import KOMD

OTHERS = 300  # sampled for the machine
SHAPES = ((1, 1), (1, 2), (2, 1), (2, 2), (3, 2), (1, 3))  # most clauses and literals of a candidate
LEAST_LIFT = 1.5  # a rule below it says little more than "you like items"


@dataclass(frozen=True)
class TasteRule:
    """A rule about one user, and how far to trust it.

    Attributes
    ----------
    rule : Rule
        Over the items' attributes.
    shown : bool
        Whether it beats the trivial rule (every item): its lift, less a standard error, is
        above the least one, and it saves bits, by popularity or evenly. Decided without the
        held-out items.
    support : int
        Items of the profile's learning part that it covers.
    profile : int
        Their number.
    catalogue : int
        Items that it covers.
    bits : float
        Bits saved in naming the profile, after paying for the rule; may be negative.
    precision, base : float
        Share of held-out likes among the covered and among all candidates, which are the items
        outside the learning part; NaN without held-out items.
    recall : float
        Share of the held-out likes that it covers; NaN without any.
    fidelity : float
        Share of the held-out likes and sampled other items where rule and machine agree.
    accuracy : float
        Mean of the shares of held-out likes covered and of other items not covered.
    """

    rule: Rule
    shown: bool
    support: int
    profile: int
    catalogue: int
    bits: float
    precision: float
    base: float
    recall: float
    fidelity: float
    accuracy: float


def taste_rule(
    items: NDArray[np.int64],
    attributes: Attributes,
    popularity: NDArray[np.float64],
    *,
    held_out: float = 0.3,
    least_lift: float = LEAST_LIFT,
    seed: int = 0,
) -> TasteRule | None:
    """Describe the items that a user likes.

    Parameters
    ----------
    items : (liked,) int
        The profile.
    attributes : Attributes
        Of the catalogue.
    popularity : (items,) float
        How many users like each item, the user left out.
    held_out : float in 0…0.9
        Share of the profile that only measures.
    least_lift : float ≥ 1
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
    """
    X, m = attributes.X, len(attributes.X)
    check_real("held_out", held_out, 0.0, 0.9)
    check_real("least_lift", least_lift, 1.0)
    check_integer("seed", seed, 0)
    liked = np.unique(np.asarray(items, dtype=np.int64))
    if len(liked) and (liked[0] < 0 or liked[-1] >= m):
        raise InputError(f"items hold indices outside 0…{m - 1}")
    if np.shape(popularity) != (m,):
        raise InputError(f"popularity has shape {np.shape(popularity)} for {m} items")
    if len(liked) < 5 or len(liked) >= m or X.shape[1] == 0:
        return None
    rng = np.random.default_rng(seed)
    mixed = rng.permutation(liked)
    count = round(held_out * len(liked))
    held, learned = mixed[:count], np.sort(mixed[count:])
    weight = np.asarray(popularity, dtype=np.float64) + 0.5
    machine, others = _machine(X, learned, weight, rng)
    best: tuple[bool, float, Rule] | None = None
    for rule in _candidates(X, learned, others, weight, machine, attributes.names):
        bits, lift = _worth(rule, X, learned, weight)
        even, _ = _worth(rule, X, learned, np.ones(m))
        # Chosen among many, a rule must pay for its own description against some prior.
        key = (lift > least_lift and max(bits, even) > 0, bits, rule)
        if best is None or key[:2] > best[:2]:
            best = key
    return None if best is None else _measured(best, X, learned, held, others, machine)


def _machine(
    X: Any, learned: Any, weight: Any, rng: np.random.Generator
) -> tuple[KOMD, NDArray[np.int64]]:
    """Return a machine that tells the profile from items sampled by popularity, and these."""
    keys = rng.exponential(size=len(X)) / weight
    keys[learned] = np.inf
    others = np.argsort(keys, kind="stable")[: min(OTHERS, len(X) - len(learned))]
    rows = np.concatenate([learned, others])
    y = np.r_[np.ones(len(learned), int), np.zeros(len(others), int)]
    return KOMD(0.9, kernel="mdnf-sum", kernel_params={"d": 2, "c": 2}, tol=1e-4).fit(X[rows], y), others


def _candidates(
    X: Any, learned: Any, others: Any, weight: Any, machine: KOMD, names: tuple[str, ...]
) -> list[Rule]:
    rows = np.concatenate([learned, others])
    found: dict[tuple[tuple[int, ...], ...], Rule] = {}
    views = [(X[rows], balanced(machine.dual_))]
    # The whole catalogue instead of a sample, by popularity and evenly: the centroids of λ = 1.
    for prior in (weight, np.ones(len(X))):
        signed = -prior.copy()
        signed[learned] = 1.0
        views.append((X, balanced(signed)))
    for rows_of, signed in views:
        for clauses, literals in SHAPES:
            rule = search_rule(
                rows_of, signed, max_clauses=clauses, max_literals=literals, names=names
            ).rule
            if rule.clauses:
                found[rule.clauses] = rule
    return list(found.values())


def _worth(rule: Rule, X: Any, learned: Any, weight: Any) -> tuple[float, float]:
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
    best: tuple[bool, float, Rule], X: Any, learned: Any, held: Any, others: Any, machine: KOMD
) -> TasteRule:
    shown, bits, rule = best
    covered = rule.covers(X)
    rest = np.ones(len(X), dtype=bool)
    rest[learned] = False
    nan = float("nan")
    strangers = np.setdiff1d(others, held)
    rows = np.concatenate([held, strangers])
    says = machine.decision_function(X[rows]) > 0
    return TasteRule(
        rule=rule,
        shown=shown,
        support=int(covered[learned].sum()),
        profile=len(learned),
        catalogue=int(covered.sum()),
        bits=bits,
        precision=float(covered[held].sum() / max(int(covered[rest].sum()), 1)) if len(held) else nan,
        base=float(len(held) / rest.sum()) if len(held) else nan,
        recall=float(covered[held].mean()) if len(held) else nan,
        fidelity=agreement(rule, X[rows], says),
        accuracy=float(0.5 * (covered[held].mean() + (~covered[strangers]).mean()))
        if len(held) and len(strangers)
        else nan,
    )
