"""The result of a search for a rule: the rule, and a bound on all others."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from recsys.errors import counted
from recsys.explain.rules.rule import Rule


class SearchResult(NamedTuple):
    """A rule, and the guarantee of the search that found it.

    Attributes
    ----------
    rule : Rule
    weight : float
        (7.1): the sum of the signed weights of the rows it covers.
    n_iter : int
        How many searches for one clause were made.
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

    def guarantee(self, max_clauses: int, max_literals: int, min_gain: float = 0.0) -> str:
        """Return in a sentence how near the rule is to the optimum.

        Parameters
        ----------
        max_clauses, max_literals : int ≥ 1
            What was asked for, of which the sentence tells.
        min_gain : float ≥ 0

        Examples
        --------
        >>> from recsys.explain import search_rule
        >>> X, weights = [[1, 1, 0], [0, 1, 1], [1, 0, 0]], [0.5, 0.5, -1.0]
        >>> search_rule(X, weights).guarantee(10, 5)
        'No rule of at most 10 clauses of at most 5 literals weighs more.'
        """
        least = f"{counted(max_clauses, 'clause')} of at most {counted(max_literals, 'literal')}"
        cost = f", {min_gain:g} taken off for each clause" if min_gain else ""
        if self.exact:
            return f"No rule of at most {least} weighs more{cost}."
        worth = self.bound - self.gap
        if worth > 0 and self.gap < 10 * worth:
            # rounded up: what is said is no less than what was proved
            more = f"at most {ceil(1000 * self.gap / worth - 1e-9) / 10:.1f}% more"
        else:
            more = f"at most {self.bound:.3g}, and this one {worth:.3g}"
        return f"The best rule of at most {least} weighs {more}{cost}."
