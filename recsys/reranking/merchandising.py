"""Merchandising rules: pinned items, boosted scores, and a limit of items per brand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from recsys.rankers.answers import Recommendations


@dataclass(frozen=True)
class Merchandising:
    """Rules of a shop for every list.

    Attributes
    ----------
    pinned : sequence of int
        Items that come first, in this order, unless a filter leaves them out.
    boosts : mapping of int to float ≥ 0
        Factors f of items' scores s, which become s + (f − 1)·|s|; f above 1 also raises scores below 0.
    at_most : sequence of (callable, int ≥ 1)
        Pairs of a function and a limit. The function returns the values of an attribute of an item. A
        list holds at most that many items of each value. Items without a value are not limited. Pinned
        items are always listed, and count.

    Examples
    --------
    >>> brands = [["A"], ["A"], ["B"], []]
    >>> found = Recommendations(np.array([0, 1, 2, 3], np.int32), np.array([4, 3, 2, 1], np.float32))
    >>> rules = Merchandising(pinned=[3], at_most=[(brands.__getitem__, 1)])
    >>> pinned, others = rules.applied(rules.boosted(found), 10)
    >>> pinned.ids.tolist(), others.ids.tolist()
    ([3], [0, 2])
    """

    pinned: Sequence[int] = ()
    boosts: Mapping[int, float] = field(default_factory=dict)
    at_most: Sequence[tuple[Callable[[int], Sequence[str]], int]] = ()

    def boosted(self, found: Recommendations) -> Recommendations:
        """Return the complete ranking by boosted scores; equal scores are ordered by index."""
        if not self.boosts:
            return found
        factors = np.array([self.boosts.get(k, 1.0) for k in found.ids.tolist()])
        scores = found.scores.astype(np.float64)
        scores += (factors - 1.0) * np.abs(scores)
        order = np.lexsort((found.ids, -scores))
        return Recommendations(found.ids[order], scores[order].astype(np.float32), found.fallback)

    def applied(self, found: Recommendations, N: int) -> tuple[Recommendations, Recommendations]:
        """Return the pinned items of a complete ranking, and the best N others within the limits."""
        where = {k: at for at, k in enumerate(found.ids.tolist())}
        first = [where[k] for k in self.pinned if k in where]
        counts = [Counter[str]() for _ in self.at_most]
        for at in first:
            self._count(int(found.ids[at]), counts)
        skip = set(first)
        rest: list[int] = []
        for at, item in enumerate(found.ids.tolist()):
            if len(rest) == N:
                break
            if at not in skip and self._allows(item, counts):
                self._count(item, counts)
                rest.append(at)
        return _some(found, first), _some(found, rest)

    def _allows(self, item: int, counts: list[Counter[str]]) -> bool:
        return all(
            count[value] < most
            for (values, most), count in zip(self.at_most, counts, strict=True)
            for value in values(item)
        )

    def _count(self, item: int, counts: list[Counter[str]]) -> None:
        for (values, _), count in zip(self.at_most, counts, strict=True):
            count.update(values(item))


def _some(found: Recommendations, at: list[int]) -> Recommendations:
    return Recommendations(found.ids[at], found.scores[at], found.fallback)
