"""An upper bound on the weight of all rules, where there are too many sets of clauses to enumerate.

A rule of at most D clauses covers positive rows and pays for the negative rows it covers, each once.
For any λᵢ between 0 and the weight of the positive row i, any ρ between 0 and 1, and any t that the
rule pays at least, it is worth at most

    Σᵢ (wᵢ − λᵢ) − (1 − ρ) t + the sum of the D largest vₖ > 0 over its clauses k,
    vₖ = Σ_{i ∈ k} λᵢ − ρ nₖ / D − cost,

where nₖ is the negative weight of the clause alone: a covered row is in at least one clause, so that
what is left of its weight is paid for by the λ of the clauses; and together the clauses pay at least
the mean of what each pays. A rule that pays at most t' has no clause that pays more. So what rules may
pay is cut into intervals, and an interval at a negative row, which they cover and pay for or do not
cover; λ and ρ are made better by subgradients, and what is open with the largest bound is cut next.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys._jit import jit
from recsys.explain.rules.cells import bitsets
from recsys.explain.rules.cover import list_clauses, members_of, undominated

CLAUSES = 200_000
WORDS = 4_000_000  # of 64 rows each, of all clauses together
MEMBERS = 10_000_000  # rows of all clauses together
ROUNDS = 30  # of the multipliers, of each part
FIRST = 32  # intervals to begin with
OPEN = 50_000  # parts; with more the one that ends soonest is cut, not the one that is worth most
PARTS = 255  # to which multipliers are kept
UNDECIDED, PAID, UNCOVERED = 0, 1, 2  # negative rows of a part


class Clauses(NamedTuple):
    """The clauses of which rules are made, each with the rows of weight that it covers.

    `features` is (clauses, literals). The rows of the clauses, `members`, are one clause after another,
    and begin at `starts`. A clause that is not among them covers at most the positive weight `rest`; 0
    if none is left out.
    """

    features: NDArray[np.int32]
    sizes: NDArray[np.int64]
    starts: NDArray[np.int64]
    members: NDArray[np.int32]
    rest: float

    def named(self, chosen: NDArray[np.int64]) -> list[tuple[int, ...]]:
        """Return some of them as tuples of features."""
        return [tuple(sorted(int(f) for f in self.features[k, : self.sizes[k]])) for k in chosen]


def clauses_of(
    rows: Any, weights: NDArray[np.float64], literals: int, most: int = CLAUSES, entries: int = MEMBERS
) -> Clauses:
    """Return the clauses within limits: those that cover most positive weight, where all are too many.

    No weight is 0. `most` and `entries` bound the clauses, and their rows together.
    """
    total = float(np.maximum(weights, 0.0).sum())
    masks, rest, small = bitsets(rows.T.tocsr()), 0.0, 1e-12 * float(np.abs(weights).sum())
    most = max(min(most, WORDS // masks.shape[1]), 1)
    while True:
        features, sizes, covers, whole = list_clauses(
            masks, weights, literals, most, max(rest, small), entries
        )
        if whole or rest >= total:
            break
        rest = max(2.0 * rest, total / 1024)
    keep = undominated(covers, sizes, weights)
    starts, members = members_of(covers[keep])
    return Clauses(features[keep], sizes[keep], starts, members, rest)


class Relaxation:
    """A bound on the worth of all rules of up to `most` clauses that falls as it is worked on.

    `cost` is that of a clause.
    """

    def __init__(self, clauses: Clauses, weights: NDArray[np.float64], most: int, cost: float) -> None:
        self._clauses, self._weights, self._most, self._cost = clauses, weights, most, cost
        total = float(np.maximum(weights, 0.0).sum())
        self._small = 1e-12 * float(np.abs(weights).sum())
        self.bound, self._stuck, self._made = max(total - cost, 0.0), 0.0, 0
        states = np.zeros(len(weights), dtype=np.int8)
        shares = np.full(len(weights), PARTS // 2, dtype=np.uint8)
        ends = np.linspace(0.0, total, FIRST + 1).tolist()
        self._open: list[tuple[Any, ...]] = [
            (ends[k] - self.bound, k - FIRST, ends[k], ends[k + 1], states, shares, 0.0)
            for k in range(FIRST)
        ]

    @property
    def over(self) -> bool:
        """Whether more work leaves the bound as it is."""
        return not self._open

    def work(self, least: float, budget: float) -> float:
        """Make the bound smaller for a while; rules worth no more than `least` are of no interest.

        Returns the work that was done: rows of clauses looked at.
        """
        done = 0.0
        while self._open and done < budget:
            full = len(self._open) > OPEN
            part = self._open.pop() if full else heapq.heappop(self._open)
            if -part[0] > least + self._small:
                done += self._cut(part, least)
            top = -self._open[0][0] if self._open else 0.0
            self.bound = min(self.bound, max(top, self._stuck, least))
        return done

    def _cut(self, part: tuple[Any, ...], least: float) -> float:
        """Bound a part, and put what it is cut into among the open ones."""
        above, _, low, high, states, shares, rho = part
        some, positive = self._clauses, np.maximum(self._weights, 0.0)
        high = min(high, float(positive.sum()) - least)  # who pays more is worth less
        if low > high + self._small:
            return 1.0
        bound, lam, rho, seen, work = _multipliers(
            some.starts, some.members, self._weights, states, positive * shares / PARTS, low, high, rho,
            self._most, self._cost, some.rest, least, ROUNDS, self._small,
        )  # fmt: skip
        bound = min(bound, -above)
        if bound <= least + self._small:
            return float(work)
        shares = np.rint(PARTS * lam / np.where(positive > 0, positive, 1.0)).astype(np.uint8)
        paid = -float(self._weights[states == PAID].sum())
        low = max(low, paid)
        free = (states == UNDECIDED) & (self._weights < 0)
        gaps = np.where(free, -self._weights * (np.minimum(seen, 1.0) - rho * seen / self._most), 0.0)
        row = int(np.argmax(gaps))
        if gaps[row] <= self._small:
            self._stuck = max(self._stuck, bound)
            return float(work)
        for state in (UNCOVERED, PAID):
            new = states.copy()
            new[row] = state
            self._made += 1
            heapq.heappush(self._open, (-bound, self._made, low, high, new, shares, rho))
        return float(work)


# ---- kernels


@jit
def _multipliers(
    starts, members, weights, states, lam, low, high, rho, most, cost, rest, least, rounds, small
):  # fmt: skip
    """Return a bound of a part, its λ and ρ, how often negative rows were covered, and the work."""
    n, rows = len(starts) - 1, len(weights)
    paid = base = 0.0
    for i in range(rows):
        if states[i] == PAID:
            paid -= weights[i]
        if weights[i] > 0.0:
            base += weights[i]
    seen = np.zeros(rows)
    best_lam, best_rho, best = lam.copy(), rho, base
    if paid > high + small:
        return 0.0, best_lam, rho, seen, 1.0
    low = max(low, paid)
    open_ = np.empty(n, dtype=np.int64)
    losses = np.zeros(n)
    count, work = 0, 0.0
    for k in range(n):
        loss, fits = 0.0, True
        for s in range(starts[k], starts[k + 1]):
            i = members[s]
            if weights[i] < 0.0:
                if states[i] == UNCOVERED:
                    fits = False
                    break
                if states[i] == UNDECIDED:
                    loss -= weights[i]
        work += starts[k + 1] - starts[k]
        if fits and loss <= high - paid + small:
            open_[count] = k
            losses[count] = loss
            count += 1
    prices = np.zeros(rows)
    times = np.zeros(rows)
    values = np.zeros(n)
    top = np.zeros(most)
    which = np.zeros(most, dtype=np.int64)
    floor = max(rest - cost if rest > 0.0 else 0.0, 0.0)
    pace, idle = 1.0, 0
    for turn in range(rounds):
        bound = -(1.0 - rho) * low - rho * paid
        for i in range(rows):
            if weights[i] > 0.0:
                prices[i] = lam[i]
                bound += weights[i] - lam[i]
            else:
                prices[i] = rho * weights[i] / most if states[i] == UNDECIDED else 0.0
            times[i] = 0.0
        top[:] = floor
        which[:] = -1
        for t in range(count):
            k = open_[t]
            value = -cost
            for s in range(starts[k], starts[k + 1]):
                value += prices[members[s]]
            work += starts[k + 1] - starts[k]
            values[t] = value
            if value > top[most - 1]:
                at = most - 1
                while at > 0 and top[at - 1] < value:
                    top[at] = top[at - 1]
                    which[at] = which[at - 1]
                    at -= 1
                top[at] = value
                which[at] = t
        slope = low - paid
        for r in range(most):
            bound += top[r]
            if which[r] >= 0:
                t = which[r]
                slope -= losses[t] / most
                k = open_[t]
                for s in range(starts[k], starts[k + 1]):
                    times[members[s]] += 1.0
        if bound < best - 1e-4 * base:
            idle = 0
        else:
            idle += 1
        if bound < best:
            best, best_rho = bound, rho
            best_lam[:] = lam
        if best <= least + small:
            break
        if floor == 0.0 and bound - top[most - 1] + top[0] > least:
            kept = 0  # a clause with which the rest is worth no more than `least` is left out
            for t in range(count):
                if bound - top[most - 1] + values[t] > least:
                    open_[kept] = open_[t]
                    losses[kept] = losses[t]
                    kept += 1
            count = kept
        for i in range(rows):
            seen[i] = 0.8 * seen[i] + 0.2 * times[i] if turn else times[i]
        norm = 0.0
        for i in range(rows):
            if weights[i] > 0.0:
                g = times[i] - 1.0
                if (g > 0.0 and lam[i] > 0.0) or (g < 0.0 and lam[i] < weights[i]):
                    norm += weights[i] * g * g
        if (slope > 0.0 and rho > 0.0) or (slope < 0.0 and rho < 1.0):
            norm += slope * slope
        if norm <= 0.0:
            break
        if idle >= 8:
            pace, idle = 0.5 * pace, 0
            lam[:] = best_lam
            rho = best_rho
            continue
        step = pace * (bound - least) / norm
        for i in range(rows):
            if weights[i] > 0.0:
                lam[i] = min(max(lam[i] - step * weights[i] * (times[i] - 1.0), 0.0), weights[i])
        rho = min(max(rho - step * slope, 0.0), 1.0)
    return max(best, 0.0), best_lam, best_rho, seen, work
