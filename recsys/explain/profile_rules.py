"""Rules of a profile over the items' attributes.

A rule is worth the bits that it saves in naming the profile's items against drawing them by popularity,
less the bits to write it down. Candidates are read from a kernel machine and from two centroids.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from recsys.data import Interactions
from recsys.data.features import SEPARATOR, encode_column
from recsys.errors import InputError
from recsys.explain.item_rules import lower_bound
from recsys.explain.rule import Rule, balanced
from recsys.explain.rule_search import search_rule
from recsys.utils.validation import check_ids, check_integer, check_real

SKIPPED = ("title", "name", "url", "description", "overview", "imdb", "image")
MOST_VALUES = 40  # of a column with one value a cell; more is an id, not a category
MOST_TAGS = 400  # of a column with several values a cell
MOST_OTHERS = 300  # items outside the profile that the machine learns from
SHAPES = ((1, 1), (1, 2), (2, 1), (2, 2), (3, 2), (1, 3))  # most clauses and literals of a candidate
MIN_LIFT = 1.5  # a rule below it says little


@dataclass(frozen=True)
class Attributes:
    """The attributes of a catalog's items."""

    X: NDArray[np.uint8]  #: (items, attributes)
    names: tuple[str, ...]  #: the value of a genre or decade, else `column=value`

    def __len__(self) -> int:
        return len(self.names)


def item_attributes(data: Interactions, min_items: int = 3) -> Attributes:
    """Return the attributes of the items: decades of years, values of cells such as `Drama|War`.

    At least `min_items` items have an attribute, and as many do not have it.

    Examples
    --------
    >>> from recsys import load_dataset
    >>> result = item_attributes(load_dataset("sample"))
    >>> result.X.shape == (300, len(result.names)), "Comedy" in result.names
    (True, True)
    """
    table, size = data.item_features, data.n_items
    columns: dict[str, NDArray[np.bool_]] = {}
    for name in () if table is None else table.columns:
        if table is not None and str(name).lower() not in SKIPPED:
            columns |= _attributes_of(str(name), table[name])
    kept = {k: v for k, v in columns.items() if min_items <= v.sum() <= size - min_items}
    X = np.array(list(kept.values()), dtype=np.uint8).reshape(len(kept), size).T.copy()
    return Attributes(X, tuple(kept))


def _attributes_of(name: str, column: pd.Series) -> dict[str, NDArray[np.bool_]]:
    lower = name.lower()
    if lower in ("year", "release_year"):
        encoded = encode_column(name, column, numbers="decades")
        X = encoded.X.toarray() > 0
        return {str(value): X[:, k] for k, value in enumerate(encoded.values)}
    several = bool(column.astype(str).str.contains(SEPARATOR, regex=False).any())
    encoded = encode_column(name, column, numbers="values")
    kept = [k for k, value in enumerate(encoded.values) if value != "nan"]
    if len(kept) > (MOST_TAGS if several else MOST_VALUES):
        return {}
    plain = several or lower in ("genre", "genres", "category", "categories", "tags")
    X = encoded.X.toarray() > 0
    return {str(encoded.values[k]) if plain else encoded.names[k]: X[:, k] for k in kept}


@dataclass(frozen=True)
class TasteRule:
    """A rule that describes a profile, with its counts.

    It is learned from a part of the profile and tested on the rest; counts cover all items. A shown rule
    saves bits, its lift exceeds a minimum, the lower bound of its share of the profile exceeds its share
    of other items, and it covers a candidate.
    """

    rule: Rule
    shown: bool
    support: int  #: covered items of the profile
    profile: int  #: items of the profile
    catalogue: int  #: covered items of the catalog
    items: int  #: items of the catalog
    unseen: int  #: covered candidates
    candidates: int
    tested: int  #: held-out items of the profile
    tested_hits: int  #: covered ones of these
    low: float  #: lower bound of the exact one-sided 95% interval of support / profile
    elsewhere: float  #: covered share of the items outside the profile
    bits: float  #: saved to describe the training items, minus the bits of the rule


def taste_rule(
    items: ArrayLike,
    attributes: Attributes,
    popularity: ArrayLike,
    *,
    candidates: ArrayLike | None = None,
    held_out: float = 0.3,
    seed: int = 0,
) -> TasteRule | None:
    """Return a rule that describes the items of a profile.

    None for a profile of fewer than 5 items or of all items, or without attributes.

    Parameters
    ----------
    items : (liked,) int
    attributes : Attributes
    popularity : (items,) float
        Number of other users of each item.
    candidates : int array, optional
        Items that can be recommended; by default all items outside the profile.
    held_out : float in 0…0.9
        Share of the profile for the test of the rule.
    seed : int ≥ 0

    Examples
    --------
    >>> from recsys import load_dataset
    >>> data = load_dataset("sample")
    >>> row, attributes = data.matrix[0], item_attributes(data)
    >>> others = np.bincount(data.matrix.indices, minlength=data.n_items) - row.toarray().ravel()
    >>> result = taste_rule(row.indices, attributes, others)
    >>> print(result.rule, result.shown)
    1950s ∨ 1960s True
    >>> result.support, result.profile, result.catalogue, result.items
    (25, 32, 38, 300)
    """
    X, m = attributes.X, len(attributes.X)
    check_real("held_out", held_out, 0.0, 0.9)
    check_integer("seed", seed, 0)
    liked = np.unique(check_ids("items", items, m))
    if np.shape(popularity) != (m,):
        raise InputError(f"popularity has shape {np.shape(popularity)} for {m} items")
    free = np.full(m, candidates is None)
    if candidates is not None:
        free[check_ids("candidates", candidates, m)] = True
    free[liked] = False
    if len(liked) < 5 or len(liked) >= m or X.shape[1] == 0:
        return None
    rng = np.random.default_rng(seed)
    mixed = rng.permutation(liked)
    count = round(held_out * len(liked))
    held, learned = mixed[:count], np.sort(mixed[count:])
    weight = np.asarray(popularity, dtype=np.float64) + 0.5
    best: tuple[bool, float, Rule] | None = None
    for rule in _candidates(X, learned, weight, attributes.names, rng):
        bits, lift = _bits_and_lift(rule, X, learned, weight)
        even_bits, _ = _bits_and_lift(rule, X, learned, np.ones(m))
        # Chosen among many, a rule must pay for its own description.
        holds = lift > MIN_LIFT and max(bits, even_bits) > 0 and bool((rule.covers(X) & free).any())
        if best is None or (holds, bits) > best[:2]:
            best = (holds, bits, rule)
    if best is None:
        return None
    holds, bits, rule = best
    covered = rule.covers(X)
    support, catalogue = int(covered[liked].sum()), int(covered.sum())
    low, elsewhere = lower_bound(support, len(liked)), (catalogue - support) / (m - len(liked))
    return TasteRule(
        rule=rule,
        shown=holds and low > elsewhere,
        support=support,
        profile=len(liked),
        catalogue=catalogue,
        items=m,
        unseen=int((covered & free).sum()),
        candidates=int(free.sum()),
        tested=len(held),
        tested_hits=int(covered[held].sum()),
        low=low,
        elsewhere=elsewhere,
        bits=bits,
    )


def _candidates(
    X: Any, learned: Any, weight: Any, names: tuple[str, ...], rng: np.random.Generator
) -> list[Rule]:
    """Return rules that separate the profile from other items."""
    from recsys.kernel_machines import KOMD  # late: scikit-learn takes most of a second to import

    keys = rng.exponential(size=len(X)) / weight  # the smallest are a sample by popularity
    keys[learned] = np.inf
    others = np.argsort(keys, kind="stable")[: min(MOST_OTHERS, len(X) - len(learned))]
    rows = np.concatenate([learned, others])
    y = np.r_[np.ones(len(learned), int), np.zeros(len(others), int)]
    machine = KOMD(0.9, kernel="mdnf-sum", kernel_params={"d": 2, "c": 2}, tol=1e-4).fit(X[rows], y)
    views = [(X[rows], balanced(machine.dual_))]
    # The centroids of λ = 1 over the whole catalog, by popularity and evenly.
    for prior in (weight, np.ones(len(X))):
        signed = -prior
        signed[learned] = 1.0
        views.append((X, balanced(signed)))
    rules: dict[tuple[tuple[int, ...], ...], Rule] = {}
    for table, signed in views:
        for clauses, literals in SHAPES:
            rule = search_rule(
                table, signed, max_clauses=clauses, max_literals=literals, names=names
            ).rule
            if rule.clauses:
                rules.setdefault(rule.clauses, rule)
    return list(rules.values())


def _bits_and_lift(rule: Rule, X: Any, learned: Any, weight: Any) -> tuple[float, float]:
    """Return the bits that a rule saves, and its lift over the catalog less a standard error."""
    covered = rule.covers(X)
    n, k = len(learned), int(covered[learned].sum())
    share = float(weight[covered].sum() / weight.sum())
    cost = 1.0 + rule.literals * (1.0 + np.log2(X.shape[1]))
    p = k / n
    if k == 0 or p <= share:
        return -np.inf, 0.0
    saved = k * np.log2(p / share)
    if k < n:
        saved += (n - k) * np.log2((1 - p) / (1 - share))
    low = p - np.sqrt(max(p * (1 - p), 0.25 / n) / n)
    return float(saved - cost), float(low / max(covered.mean(), 1e-12))
