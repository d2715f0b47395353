"""Rules of many users at once, with control of false discoveries.

A rule is searched for in one half of the data and tested in the other, so that the search does not bias
its p-value. The rule of a user's interactions is tested against a null model of activity and popularity
alone (`likes_rule`). The rule of a deployed ranker's top set is tested against a set that is independent
of the attributes (`ranker_rule`). `discover` keeps those rules of all users among which the expected
share of false ones is at most a given one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys._jit import jit
from recsys.errors import InputError
from recsys.explain.association import lower_bound
from recsys.explain.rules.item_attributes import Attributes
from recsys.explain.rules.rule import Rule, balanced
from recsys.explain.rules.search import search_rule
from recsys.explain.rules.user_rules import BUDGET, SHAPES, bits_and_lift, taste_rule
from recsys.utils.validation import check_choice, check_ids, check_integer, check_real

DEPENDENCE = ("any", "positive")
LEAST = 5  # items of the set described in each half
User = TypeVar("User")


@dataclass(frozen=True)
class RuleTest:
    """A rule learned from one half of some items, with its test on the other half.

    Attributes
    ----------
    rule : Rule
        Over the items' attributes.
    source : "likes" or "ranker"
    learned : int
        Items of the set described (interactions, or the ranker's top set) that it was learned from.
    items, covered : int
        Items of the testing half, and those that the rule covers.
    tested, hits : int
        Items of the set among them, and those that the rule covers.
    precision, base : float
        hits / covered, and tested / items; NaN where nothing is covered.
    low : float
        Lower end of the exact one-sided 95% interval of hits / tested.
    fidelity : float
        Share of the testing half where the rule tells right whether an item is of the set.
    p_value : float in 0…1
        Of at least so many hits where there is nothing to the rule.

    Examples
    --------
    >>> import numpy as np
    >>> X = (np.random.default_rng(0).random((400, 8)) < 0.3).astype(np.uint8)
    >>> order = np.argsort(1 - X[:, 2], kind="stable")  # a ranker that knows one attribute
    >>> found = ranker_rule(order, Attributes(X, tuple("abcdefgh")), top=60)
    >>> print(found.rule, found.hits == found.tested, found.p_value < 1e-6)
    c True True
    """

    rule: Rule
    source: str
    learned: int
    items: int
    covered: int
    tested: int
    hits: int
    precision: float
    base: float
    low: float
    fidelity: float
    p_value: float


class Discovery(NamedTuple, Generic[User]):
    """A rule among many.

    Attributes
    ----------
    user : object
        As it was given.
    found : RuleTest
    q_value : float in 0…1
        The smallest level at which the rule is among the discoveries.
    shown : bool
        Whether it is one at the level that was asked for.

    Examples
    --------
    >>> import numpy as np
    >>> X = (np.random.default_rng(0).random((400, 8)) < 0.3).astype(np.uint8)
    >>> order = np.argsort(1 - X[:, 2], kind="stable")
    >>> found = ranker_rule(order, Attributes(X, tuple("abcdefgh")), top=60)
    >>> discover([("u1", found), ("u2", found)])[1].shown
    True
    """

    user: User
    found: RuleTest
    q_value: float
    shown: bool


def q_values(p_values: ArrayLike, dependence: str = "any") -> NDArray[np.float64]:
    """Return q-values: rejecting all that are at most q keeps the expected share of false ones at q.

    Parameters
    ----------
    p_values : (tests,) float in 0…1
        Of all tests that were made, not only of those that look good.
    dependence : "any" or "positive"
        "any" (Benjamini and Yekutieli) holds however the tests depend on each other, as several rules of
        one user do, and costs a factor of 1 + ½ + … + 1/tests; "positive" (Benjamini and Hochberg)
        holds for independent tests, and those of positive regression dependence.

    Returns
    -------
    (tests,) float64 in 0…1

    Raises
    ------
    InputError
        If p_values are no numbers in 0…1, or `dependence` is unknown.

    Notes
    -----
    Source: Benjamini and Hochberg 1995; Benjamini and Yekutieli 2001, Theorem 1.3.

    Examples
    --------
    >>> q_values([0.01, 0.5, 0.02, 0.04], "positive").round(4).tolist()
    [0.04, 0.5, 0.04, 0.0533]
    """
    check_choice("dependence", dependence, DEPENDENCE)
    try:
        p = np.asarray(p_values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("p_values must be a list of numbers in 0…1") from None
    if p.ndim != 1 or not ((p >= 0.0) & (p <= 1.0)).all():
        raise InputError("p_values must be a list of numbers in 0…1")
    tests = len(p)
    ranks = np.arange(1, tests + 1)
    factor = float((1.0 / ranks).sum()) if dependence == "any" else 1.0
    order = np.argsort(p, kind="stable")
    # In this order: what is at the level itself stays there, whatever the number of tests.
    raised = np.minimum(p[order] * (factor * tests / ranks), 1.0)
    out = np.empty(tests)
    out[order] = np.minimum.accumulate(raised[::-1])[::-1]
    return out


def discover(
    rules: Iterable[tuple[User, RuleTest | None]], level: float = 0.05, dependence: str = "any"
) -> list[Discovery[User]]:
    """Return the rules of all users with q-values, the surest first.

    Parameters
    ----------
    rules : iterable of (user, RuleTest or None)
        One or several of each user; None where nothing could be tested.
    level : float in 0…1
        Of the rules shown at most this share is expected to be false, as long as `rules` holds all that
        were tested.
    dependence : "any" or "positive"
        See `q_values`.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Examples
    --------
    >>> discover([("u1", None)])
    []
    """
    check_real("level", level, 0.0, 1.0)
    try:
        made = [(user, found) for user, found in rules if found is not None]
        if not all(isinstance(found, RuleTest) for _, found in made):
            raise TypeError
    except (TypeError, ValueError):
        raise InputError("rules must be pairs of a user and a rule that was tested, or None") from None
    p_values = np.array([found.p_value for _, found in made])
    q = q_values(p_values, dependence)
    out = []
    for k in np.lexsort((p_values, q)):
        user, found = made[k]
        out.append(Discovery(user, found, float(q[k]), bool(q[k] <= level)))
    return out


def likes_rule(
    items: ArrayLike,
    attributes: Attributes,
    popularity: ArrayLike,
    odds: ArrayLike,
    *,
    held_out: float = 0.5,
    seed: int = 0,
) -> RuleTest | None:
    """Learn a rule from a part of a profile, and test it on the rest.

    The p-value is under a null model of activity and popularity: each user has an item with odds that
    are the user's activity times the item's odds (`item_odds`, Rasch's model of all interactions). Given
    the number of held-out interactions, the activity cancels, and the number of covered ones has an
    exact distribution. A rule that only follows popularity is therefore significant as rarely as chance
    has it.

    Parameters
    ----------
    items : (liked,) int
        The profile.
    attributes : Attributes
        Of the catalogue.
    popularity : (items,) float
        How many users like each item, the user left out; the search weighs by it.
    odds : (items,) float ≥ 0
        Of interactions that include the profile: `item_odds`.
    held_out : float in 0…1, neither
        Share of the profile that the rule is tested on.
    seed : int
        Of the parts.

    Returns
    -------
    RuleTest or None
        None if a part has fewer than 5 interactions, or no rule covers anything of the learning part.

    Raises
    ------
    InputError
        If indices or shapes disagree, or a parameter is out of range.

    Notes
    -----
    The user's own interactions are among those that the odds are of: with few users that makes p-values
    larger than they need be, never smaller.

    Examples
    --------
    >>> import numpy as np
    >>> X = (np.random.default_rng(3).random((300, 12)) < 0.3).astype(np.uint8)
    >>> liked = np.flatnonzero(X[:, 2] & X[:, 7])
    >>> found = likes_rule(liked, Attributes(X, tuple("abcdefghijkl")), np.full(300, 20.0), np.ones(300))
    >>> print(found.rule, found.hits, found.tested, found.p_value < 1e-9)
    c ∧ h 15 15 True
    """
    m = len(attributes.X)
    check_integer("seed", seed, 0)
    if not 0.0 < check_real("held_out", held_out, 0.0, 1.0) < 1.0:
        raise InputError("held_out must be above 0 and below 1: both parts need interactions")
    counts, worth = _of_items("popularity", popularity, m), _of_items("odds", odds, m)
    liked = np.unique(check_ids("items", items, m))
    if not worth[liked].all():
        raise InputError("odds are 0 of an item of the profile: use interactions that include it")
    count = round(held_out * len(liked))
    if min(count, len(liked) - count) < LEAST or len(liked) >= m:
        return None
    mixed = _mixed(liked, seed)
    held, learned = mixed[:count], np.sort(mixed[count:])
    # The search is told of the learning part only: to it the held-out interactions are items like
    # others.
    found = taste_rule(learned, attributes, counts, held_out=0.0, seed=seed)
    if found is None or not found.rule.clauses:
        return None
    outside = np.ones(m, dtype=bool)
    outside[learned] = False
    covers = found.rule.covers(attributes.X)
    hits = int(covers[held].sum())
    likely = outside & (worth > 0.0)
    p = tail(worth[likely], covers[likely], count, hits)
    return _tested(found.rule, "likes", len(learned), outside, covers, held, p)


def ranker_rule(
    ranked: ArrayLike,
    attributes: Attributes,
    top: int = 50,
    *,
    max_clauses: int = 3,
    max_literals: int = 3,
    seed: int = 0,
) -> RuleTest | None:
    """Learn a rule from a ranker's decisions: its top set against all others that it could recommend.

    The candidates are halved at random. In one half the rule is searched for that tells the top set from
    the rest (`search_rule`, with as many clauses and literals as save most bits, or cost fewest); the
    other half says how far it holds, also on items that were ranked low. The p-value is Fisher's
    exact one: of so many hits where the top set has nothing to do with the attributes.

    Parameters
    ----------
    ranked : (candidates,) int
        All items that could be recommended to a user, the ranker's best first.
    attributes : Attributes
        Of the catalogue.
    top : int ≥ 1
        How many of the first make the top set.
    max_clauses, max_literals : int ≥ 1
    seed : int
        Of the halves.

    Returns
    -------
    RuleTest or None
        None if a half has fewer than 5 items of the top set or of the rest, or no rule is found.

    Raises
    ------
    InputError
        If indices are out of range or come twice, or a parameter is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> X = (np.random.default_rng(1).random((500, 6)) < 0.4).astype(np.uint8)
    >>> liking = 1.0 * (X[:, 0] & X[:, 3]) + 1e-3 * np.arange(500) / 500
    >>> found = ranker_rule(np.argsort(-liking), Attributes(X, tuple("abcdef")), top=70)
    >>> print(found.rule, found.fidelity > 0.95)
    a ∧ d True
    """
    check_integer("top", top, 1)
    check_integer("max_clauses", max_clauses, 1)
    check_integer("max_literals", max_literals, 1)
    check_integer("seed", seed, 0)
    X = attributes.X
    order = check_ids("ranked", ranked, len(X))
    if len(np.unique(order)) < len(order):
        raise InputError("ranked holds an item twice")
    first = np.zeros(len(X), dtype=bool)
    first[order[:top]] = True
    mixed = _mixed(np.sort(order), seed)
    halves = mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :]
    counts = [n for half in halves for n in (int(first[half].sum()), int((~first[half]).sum()))]
    if min(counts) < LEAST or X.shape[1] == 0:
        return None
    rule = _best(X[halves[0]], first[halves[0]], max_clauses, max_literals, attributes.names)
    if not rule.clauses:
        return None
    covers, testing = rule.covers(X), np.zeros(len(X), dtype=bool)
    testing[halves[1]] = True
    held = np.flatnonzero(testing & first)
    covered = int(covers[testing].sum())
    from scipy.stats import hypergeom  # late: it takes most of a second

    p = float(hypergeom.sf(int(covers[held].sum()) - 1, int(testing.sum()), covered, len(held)))
    return _tested(rule, "ranker", counts[0], testing, covers, held, min(p, 1.0))


def _of_items(name: str, given: ArrayLike, items: int) -> NDArray[np.float64]:
    """Return a number ≥ 0 of each item."""
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number of each item") from None
    if values.shape != (items,):
        raise InputError(f"{name} has shape {values.shape} for {items} items")
    if not ((values >= 0.0) & np.isfinite(values)).all():
        raise InputError(f"{name} must be numbers of 0 or more")
    return values


def _mixed(items: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Return them mixed, not as a caller's own generator of that seed would: `ranked` may be of one."""
    return np.random.default_rng([0x52554C45, seed]).permutation(items)


def _best(
    X: NDArray[np.uint8], first: NDArray[np.bool_], clauses: int, literals: int, names: tuple[str, ...]
) -> Rule:
    """Return the rule that saves most bits in naming the first items, of one search a shape."""
    signed = balanced(np.where(first, 1.0, -1.0))
    wanted = np.flatnonzero(first)
    shapes = {(min(a, clauses), min(b, literals)) for a, b in (*SHAPES, (clauses, literals))}
    best, most = Rule((), names), -np.inf
    for a, b in sorted(shapes):
        rule = search_rule(X, signed, max_clauses=a, max_literals=b, budget=BUDGET, names=names).rule
        if rule.clauses:
            bits, _ = bits_and_lift(rule, X, wanted, np.ones(len(X)))
            if bits > most:
                best, most = rule, bits
    return best


def _tested(
    rule: Rule, source: str, learned: int, testing: NDArray[np.bool_], covers: NDArray[np.bool_],
    held: NDArray[np.int64], p_value: float,
) -> RuleTest:  # fmt: skip
    items, covered = int(testing.sum()), int((covers & testing).sum())
    hits = int(covers[held].sum())
    return RuleTest(
        rule=rule,
        source=source,
        learned=learned,
        items=items,
        covered=covered,
        tested=len(held),
        hits=hits,
        precision=hits / covered if covered else float("nan"),
        base=len(held) / items,
        low=lower_bound(hits, len(held)),
        fidelity=1.0 - (covered - hits + len(held) - hits) / items,
        p_value=p_value,
    )


def tail(odds: ArrayLike, covers: ArrayLike, drawn: int, hits: int) -> float:
    """Return the probability of at least `hits` covered ones among `drawn` items drawn with given odds.

    A set of `drawn` items has a probability in proportion to the product of its odds. Each item alone
    with its odds, times a constant that makes `drawn` the expected number; then the counts of the
    covered and of the others, given their sum. The constant cancels.

    >>> round(tail(np.ones(4), [True, True, False, False], 2, 2), 9)  # 1 of the 6 pairs
    0.166666667
    """
    weights, inside = np.asarray(odds, dtype=np.float64), np.asarray(covers, dtype=bool)
    if not 0 <= drawn <= len(weights):
        raise InputError(f"drawn must be in 0…{len(weights)}")
    if hits <= max(drawn - int((~inside).sum()), 0):
        return 1.0
    if hits > min(drawn, int(inside.sum())):
        return 0.0
    if drawn == len(weights):
        return 1.0
    low, high = -np.log(weights.max()) - 50.0, -np.log(weights.min()) + 50.0
    for _ in range(100):  # the expected number grows with the constant
        middle = 0.5 * (low + high)
        c = np.exp(middle) * weights
        low, high = (middle, high) if (c / (1.0 + c)).sum() < drawn else (low, middle)
    c = np.exp(0.5 * (low + high)) * weights
    shares = c / (1.0 + c)
    a, b = _count(shares[inside], drawn), _count(shares[~inside], drawn)
    joint = a * b[::-1]
    return float(min(joint[hits:].sum() / joint.sum(), 1.0))


# ---- kernels


@jit
def _count(shares, most):
    """Return the distribution of the number of successes, 0…most, of independent trials."""
    out = np.zeros(most + 1)
    out[0] = 1.0
    top = 0
    for p in shares:
        top = min(top + 1, most)
        for k in range(top, 0, -1):
            out[k] = out[k] * (1.0 - p) + out[k - 1] * p
        out[0] *= 1.0 - p
    return out
