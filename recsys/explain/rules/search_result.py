"""What a search for a rule found, and what it can promise."""

from __future__ import annotations

from typing import NamedTuple

from recsys.explain.rules.rule import Rule


class SearchResult(NamedTuple):
    """A rule, and what the search that found it can promise.

    Attributes
    ----------
    rule : Rule
    weight : float
        (7.1): the sum of the signed weights of the rows it covers.
    n_iter : int
        Steps of the search: searches for one clause (`search_rule`), or the generation in which the
        rule first appeared (`genetic_search`; 0: the random ones).
    bound : float
        No rule within the limits on clauses and literals has a larger worth. Worth is the weight,
        less `min_gain` for each clause where that was asked for.
    gap : float ≥ 0
        Bound less the worth of this rule.
    exact : bool
        Whether no rule within the limits is worth more: the gap is 0 but for rounding.
    capped : bool
        Whether the search stopped at its limit of work, so that a better rule may exist.

    Examples
    --------
    >>> from recsys.explain import search_rule
    >>> found = search_rule([[1, 1, 0], [0, 1, 1], [1, 0, 0]], [0.5, 0.5, -1.0])
    >>> found.exact, found.gap
    (True, 0.0)
    """

    rule: Rule
    weight: float
    n_iter: int
    bound: float = float("inf")
    gap: float = float("inf")
    exact: bool = False
    capped: bool = False
