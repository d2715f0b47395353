"""Search for the parts of a blend and their weights, by AUC and nDCG@10 on hidden interactions."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import in_threads, jit
from recsys.rankers.protocol import Floats
from recsys.utils.topn import top_n

GRID = (1.0, 0.3, 0.1, 0.03)  # weights of an addition, relative to what is there
FACTORS = (2.0, 1.41)  # by which weights are changed at the end
LEAST = 3e-4  # of the criterion that an addition must gain: less is chance, and every part costs time
CUTOFF = 10  # of nDCG
FIRST = 50  # items of each candidate's list that are taken one by one
REST = 500  # of the others that are drawn
STALE = 0.7  # of the best gain of a step: candidates whose last gain is less are not tried


class HeldOut:
    """Held-out users' positives among other items, and the candidates' scores of these.

    The positives and the first items of each candidate's list are taken one by one, and of the rest a
    sample that stands for it: positions near the top are exact, and the AUC is an unbiased estimate,
    from the same draws for all blends. `prior`, (items,), orders items of equal scores. User u has the
    entries starts[u] to starts[u + 1], the first positives[u] are positives; each stands for `worth`
    items.
    """

    def __init__(
        self,
        train: sp.csr_matrix,
        test: sp.csr_matrix,
        scores: dict[str, NDArray[np.float32]],
        seed: int,
        prior: Floats,
    ) -> None:
        users, m = np.flatnonzero(np.diff(test.indptr)), test.shape[1]
        tops = []
        if m > REST:
            every = np.ones(m, dtype=np.uint8)
            tops = [top_n(block, train, FIRST, True, every)[0] for block in scores.values()]
        rng = np.random.default_rng(seed)
        entries, worth, positives = [], [], []
        for user in users:
            good = test.indices[test.indptr[user] : test.indptr[user + 1]]
            free, top = np.ones(m, dtype=bool), np.zeros(m, dtype=bool)
            free[train.indices[train.indptr[user] : train.indptr[user + 1]]] = free[good] = False
            for ids in tops:
                top[ids[user][ids[user] >= 0]] = True
            first, rest = np.flatnonzero(top & free), np.flatnonzero(free & ~top)
            drawn = rest if len(rest) <= REST else np.sort(rng.choice(rest, REST, replace=False))
            entries.append(np.concatenate([good, first, drawn]))
            stands_for = len(rest) / max(1, len(drawn))
            worth.append(np.repeat([1.0, stands_for], [len(good) + len(first), len(drawn)]))
            positives.append(len(good))
        sizes = [len(some) for some in entries]
        self.starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self.positives, self.worth = np.array(positives, dtype=np.int64), np.concatenate(worth)
        items, rows = np.concatenate(entries), np.repeat(users, sizes)
        self.prior = prior[items]
        self.scores = {name: block[rows, items] for name, block in scores.items()}

    def figures(
        self, total: NDArray[np.float32], added: NDArray[np.float32], weights: list[float]
    ) -> Floats:
        """Return AUC and nDCG@10 of total + weight × added for each weight, (weights, 2)."""
        values = np.empty((len(self.positives), len(weights), 2))
        arrays = (self.starts, self.positives, self.worth, self.prior, total, added)
        in_threads(None, _figures, *arrays, np.array(weights, dtype=np.float32), values)
        known = np.isfinite(values[:, 0, 0])  # not of a user with every item
        return values[known].mean(axis=0) if known.any() else np.full(values.shape[1:], 0.5)


def criterion(figures: Floats) -> Floats:
    """Return log(AUC − ½) + log nDCG@10 of (…, 2) metric values: gains and losses count relatively."""
    auc, ndcg = np.moveaxis(figures, -1, 0)
    return np.asarray(np.log(np.maximum(auc - 0.5, 1e-6)) + np.log(np.maximum(ndcg, 1e-6)))


def find_weights(held: HeldOut, rounds: int) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Return the weights of a blend, which sum to 1, and AUC and nDCG@10 of each candidate and of it.

    The candidate that is best alone begins. Each step adds the candidate, with the weight of `GRID`,
    that raises the criterion most, while it rises by `LEAST`; candidates are tried in the order of their
    last gains, until these are below `STALE` of the best of the step. Then weights are multiplied and
    divided by `FACTORS`, and parts left out, while that raises it or costs next to nothing. There are at
    most `rounds` additions, the first among them.
    """
    nothing = np.zeros(len(held.worth), dtype=np.float32)
    alone = {name: held.figures(nothing, added, [1.0])[0] for name, added in held.scores.items()}

    def values(total: NDArray[np.float32], name: str, weights: list[float]) -> list[float]:
        return criterion(held.figures(total, held.scores[name], weights)).tolist()

    first = max(alone, key=lambda name: float(criterion(alone[name])))
    weights, total = {first: 1.0}, held.scores[first].copy()
    best = float(criterion(alone[first]))
    gains = dict.fromkeys(held.scores, np.inf)
    for _ in range(1, rounds):
        size = float(np.sqrt(np.mean(np.square(total, dtype=np.float64))))
        steps = [size * weight for weight in GRID]
        value, weight, name = -np.inf, 0.0, first
        for candidate in sorted(gains, key=lambda one: -gains[one]):
            if gains[candidate] < STALE * (value - best):
                break
            values_of = values(total, candidate, steps)
            highest = max(values_of)
            gains[candidate] = highest - best
            if highest > value:
                value, weight, name = highest, steps[values_of.index(highest)], candidate
        if value <= best + LEAST:
            break
        best, total = value, total + np.float32(weight) * held.scores[name]
        weights[name] = weights.get(name, 0.0) + weight
    for factor in FACTORS:
        changed = len(weights) > 1
        while changed:
            changed = False
            for name in list(weights):
                rest = total - np.float32(weights[name]) * held.scores[name]
                steps = [weights[name] * factor, weights[name] / factor, 0.0]
                more, less, without = values(rest, name, steps)
                if len(weights) > 1 and without >= max(best - LEAST / 4, max(more, less) - LEAST):
                    best, total, changed = without, rest, True
                    del weights[name]
                elif max(more, less) > best + LEAST / 4:
                    weights[name] = steps[0] if more >= less else steps[1]
                    best, changed = max(more, less), True
                    total = rest + np.float32(weights[name]) * held.scores[name]
    share = sum(weights.values())
    figures = {name: value.tolist() for name, value in alone.items()}
    figures["blend"] = held.figures(nothing, total, [1.0])[0].tolist()
    return {name: weight / share for name, weight in weights.items()}, figures


# ---- kernels


@jit(inline="always")
def _above(s, r, t, q):
    return s > t or (s == t and r > q)


@jit
def _figures(first, stride, starts, positives, worth, prior, total, added, weights, out):
    most = positives.max()
    good, behind, above = np.empty(most, dtype=np.float32), np.empty(most), np.empty(most + 1)
    for u in range(first, len(positives), stride):
        begin, count, end = starts[u], positives[u], starts[u + 1]
        others = ideal = 0.0
        for p in range(begin + count, end):
            others += worth[p]
        for k in range(min(count, CUTOFF)):
            ideal += 1.0 / np.log2(k + 2.0)
        for w in range(len(weights)):
            weight = weights[w]
            for k in range(count):  # best first
                s = total[begin + k] + weight * added[begin + k]
                r, place = prior[begin + k], k
                while place > 0 and _above(s, r, good[place - 1], behind[place - 1]):
                    good[place], behind[place] = good[place - 1], behind[place - 1]
                    place -= 1
                good[place], behind[place] = s, r
            above[: count + 1] = 0.0
            for p in range(begin + count, end):
                s = total[p] + weight * added[p]
                if s < good[count - 1]:  # below all positives
                    continue
                r, low, high = prior[p], 0, count
                while low < high:
                    middle = (low + high) // 2
                    if _above(good[middle], behind[middle], s, r):
                        low = middle + 1
                    else:
                        high = middle
                tied = low
                while tied < count and good[tied] == s and behind[tied] == r:
                    tied += 1
                above[low] += 0.5 * worth[p]
                above[tied] += 0.5 * worth[p]
            ahead = wrong = gain = 0.0
            for k in range(count):
                ahead += above[k]  # others before this positive, those that tie by half
                wrong += ahead
                if k + 1 + ahead <= CUTOFF:
                    gain += 1.0 / np.log2(k + 2.0 + ahead)
            out[u, w, 0] = 1.0 - wrong / (count * others) if others > 0 else np.nan
            out[u, w, 1] = gain / ideal
