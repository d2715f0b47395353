"""Local search for a better rule: some clauses are removed, and the best ones inserted instead."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import jit
from recsys.explain.rules.relaxed import Clauses

AFRESH = 64  # trials without a better rule, after which it begins from none


class Improvement:
    """A search for better rules that can be continued from its present state, without an end.

    Clauses are thrown out by chance, then the best clause is added while that helps, then each in turn
    is replaced by the best one given the others. What is worth more is kept; after many trials in vain
    it begins from no clause. The same work finds the same rules on every machine. `worth` is that of the
    best rule of up to `most` clauses found: the weight of the rows it covers less the cost of its
    clauses.
    """

    def __init__(self, clauses: Clauses, weights: NDArray[np.float64], most: int, cost: float) -> None:
        n = len(clauses.sizes)
        ones = np.ones(len(clauses.members), dtype=np.int8)
        holds = sp.csr_matrix((ones, clauses.members, clauses.starts), shape=(n, len(weights))).tocsc()
        self._clauses, self._weights, self._most, self._cost = clauses, weights, min(most, n), cost
        self._of_rows = holds.indptr.astype(np.int64), holds.indices.astype(np.int32)
        self._state = np.array([1], dtype=np.uint64)
        self._best, self._size, self.worth = np.zeros(max(self._most, 1), dtype=np.int64), 0, 0.0

    @property
    def rule(self) -> list[tuple[int, ...]]:
        """The clauses of the best rule found."""
        return self._clauses.named(self._best[: self._size])

    def work(self, budget: float) -> float:
        """Try for a while; return the work that was done: clauses and rows looked at."""
        if self._most == 0:
            return budget
        some = self._clauses
        self._size, self.worth, done = _improve(
            some.starts, some.members, *self._of_rows, self._weights, self._cost, self._best, self._size,
            self.worth, self._state, float(budget), AFRESH,
            1e-12 * float(np.abs(self._weights).sum()),
        )  # fmt: skip
        return float(done)


# ---- kernels


@jit
def splitmix(state):
    """Advance splitmix64."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@jit
def below(state, n):
    """Return a random number below n."""
    return np.int64((splitmix(state) >> np.uint64(11)) % np.uint64(n))


@jit
def _switch(c, sign, starts, members, of_starts, of_members, weights, times, gains):
    """Add a clause to a rule (sign 1), or take it out (−1); keep what each clause would add."""
    work = 0
    for s in range(starts[c], starts[c + 1]):
        i = members[s]
        before = times[i]
        times[i] += sign
        if (sign == 1 and before == 0) or (sign == -1 and before == 1):
            for t in range(of_starts[i], of_starts[i + 1]):
                gains[of_members[t]] -= sign * weights[i]
            work += of_starts[i + 1] - of_starts[i]
    return work


@jit
def _improve(
    starts, members, of_starts, of_members, weights, cost, best, size, worth, state, budget, afresh,
    small,
):  # fmt: skip
    """Improve the rule `best` in place; return its number of clauses, its worth, and the work."""
    n, most = len(starts) - 1, len(best)
    times = np.zeros(len(weights), dtype=np.int64)
    gains = np.zeros(n)
    for k in range(n):
        for s in range(starts[k], starts[k + 1]):
            gains[k] += weights[members[s]]
    alone = gains.copy()
    rule = np.zeros(most, dtype=np.int64)
    kept = best.copy()  # what trials start from: not always the best
    many, level, vain = size, worth, 0
    count = 0
    work = 2.0 * len(members)
    while work < budget:
        times[:] = 0
        gains[:] = alone
        work += n
        count = 0
        if vain >= afresh:
            many, level, vain = 0, 0.0, 0
        out = 1 + below(state, 3) if many else 0
        for c in range(many):
            rule[c] = kept[c]
        left = many
        for _ in range(min(out, many)):
            at = below(state, left)
            rule[at] = rule[left - 1]
            left -= 1
        value = 0.0
        for c in range(left):
            value += gains[rule[c]] - cost
            work += _switch(rule[c], 1, starts, members, of_starts, of_members, weights, times, gains)
            count += 1
        if many == 0:  # any clause, if there is one that is worth something alone: beginnings differ
            c = below(state, n)
            for _ in range(50):
                if gains[c] - cost > small:
                    break
                c = below(state, n)
            rule[0], count, value = c, 1, gains[c] - cost
            work += _switch(c, 1, starts, members, of_starts, of_members, weights, times, gains)
        changed = True
        while changed and work < budget:
            changed = False
            while count < most:
                c = np.argmax(gains)
                work += n
                if gains[c] - cost <= small:
                    break
                value += gains[c] - cost
                rule[count] = c
                count += 1
                work += _switch(c, 1, starts, members, of_starts, of_members, weights, times, gains)
            for _ in range(count):
                old = rule[0]  # the oldest; the new one goes to the end
                for c in range(count - 1):
                    rule[c] = rule[c + 1]
                work += _switch(old, -1, starts, members, of_starts, of_members, weights, times, gains)
                c = np.argmax(gains)
                work += n
                if gains[c] <= gains[old] + 1000 * small:
                    c = old
                else:
                    changed = True
                if gains[c] - cost <= small:  # nothing is worth a clause here
                    value -= gains[old] - cost
                    count -= 1
                    changed = True
                    break
                value += gains[c] - gains[old]
                rule[count - 1] = c
                work += _switch(c, 1, starts, members, of_starts, of_members, weights, times, gains)
        vain += 1
        if value > level - small:
            if value > level + 1000 * small:
                vain = 0
            level, many = value, count
            kept[:count] = rule[:count]
        if value > worth + 1000 * small:
            worth, size = value, count
            best[:count] = rule[:count]
    return size, worth, work
