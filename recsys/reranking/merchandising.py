"""Merchandising rules: pinned items, boosted scores, a limit of items per brand, a protected group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from recsys.rankers.answers import Recommendations
from recsys.reranking.fair import Fair


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
    fair : Fair, optional
        How many of the first items are of a protected group, where there are enough that the limits
        allow; all other ranks are by score. Pinned items count.

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
    fair: Fair | None = None

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
        protected = np.zeros(len(found.ids), dtype=bool)
        least = np.zeros(min(len(first) + N, len(found.ids)), dtype=np.int64)
        if self.fair is not None:
            protected, least = self.fair.protected[found.ids], self.fair.minimums(len(least))
        waiting = [np.flatnonzero(~protected), np.flatnonzero(protected)]
        next_of = [0, 0]  # of each of the two: items before it are listed or left out
        has = int(protected[first].sum())
        rest: list[int] = []
        while len(rest) < N:
            heads = []
            for kind, those in enumerate(waiting):
                while next_of[kind] < len(those) and (
                    those[next_of[kind]] in skip
                    or not self._allows(int(found.ids[those[next_of[kind]]]), counts)
                ):  # limits only tighten: what they leave out stays out
                    next_of[kind] += 1
                heads.append(int(those[next_of[kind]]) if next_of[kind] < len(those) else len(found.ids))
            if min(heads) == len(found.ids):
                break
            short = has < least[len(first) + len(rest)] and heads[1] < len(found.ids)
            mine = short or heads[1] < heads[0]
            next_of[mine] += 1
            has += mine
            self._count(int(found.ids[heads[mine]]), counts)
            rest.append(heads[mine])
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
