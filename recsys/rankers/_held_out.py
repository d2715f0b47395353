"""How blends rank held-out items: AUC and nDCG@10 of weighted sums, many of them in one pass.

Where items are few, all are taken. Of a large catalogue it is the positives and the first items of each
candidate's list, one by one, and of the rest a sample that stands for it: positions near the top are
exact, and the AUC is an unbiased estimate, from the same draws for all blends that are compared.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import in_parts, jit, parallel
from recsys.utils.topn import top_n

CUTOFF = 10  # of nDCG
FIRST = 50  # items of each candidate's list that are taken one by one
REST = 1_000  # of the others that are drawn
BINS = 256  # between the lowest and the highest positive
WHOLE = 3_000  # items up to which all are taken


class HeldOut:
    """Held-out users' positives among other items, and the candidates' scores of these.

    Rows of `train` and `test` are what is known of held-out users, and what is to be predicted;
    `scores`, (users, items) each, are standardised. `prior`, (items,), orders items of equal scores. The
    items of user u are entries starts[u] to starts[u + 1], of which the first positives[u] are
    positives; each stands for `worth` items.
    """

    def __init__(
        self,
        train: sp.csr_matrix,
        test: sp.csr_matrix,
        scores: dict[str, NDArray[np.float32]],
        seed: int,
        prior: NDArray[np.float64] | None = None,
    ) -> None:
        self.users = np.flatnonzero(np.diff(test.indptr))
        m = test.shape[1]
        tops = [] if m <= WHOLE else [_first(block, train) for block in scores.values()]
        rng = np.random.default_rng(seed)
        entries, worth, sizes, positives = [], [], [], []
        for user in self.users:
            good = test.indices[test.indptr[user] : test.indptr[user + 1]]
            free = np.ones(m, dtype=bool)
            free[train.indices[train.indptr[user] : train.indptr[user + 1]]] = False
            free[good] = False
            one = np.zeros(m, dtype=bool)
            for top in tops:
                one[top[user][top[user] >= 0]] = True
            one &= free
            rest = np.flatnonzero(free & ~one)
            drawn = rest if m <= WHOLE or len(rest) <= REST else rng.choice(rest, REST, replace=False)
            one = np.flatnonzero(one)
            entries.append(np.concatenate([good, one, np.sort(drawn)]))
            worth.append(np.ones(len(entries[-1])))
            worth[-1][len(good) + len(one) :] = len(rest) / max(1, len(drawn))
            sizes.append(len(entries[-1]))
            positives.append(len(good))
        self.starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self.positives, self.worth = np.array(positives, dtype=np.int64), np.concatenate(worth)
        items, rows = np.concatenate(entries), np.repeat(self.users, sizes)
        self.prior = np.zeros(len(items)) if prior is None else prior[items]
        self.scores = {name: block[rows, items] for name, block in scores.items()}

    def figures(
        self, total: NDArray[np.float32], added: NDArray[np.float32], weights: NDArray[np.float32]
    ) -> NDArray[np.float64]:
        """Return AUC and nDCG@10 of total + weight × added for each weight, (users, weights, 2).

        NaN for a user with every item.
        """
        out = np.empty((len(self.positives), len(weights), 2))
        with parallel() as threads:
            in_parts(
                threads, _places, self.starts, self.positives, self.worth, self.prior, total, added,
                weights, out,
            )  # fmt: skip
        return out


def _first(block: NDArray[np.float32], train: sp.csr_matrix) -> NDArray[np.int32]:
    """Return the first items of each user's list, −1 where there are fewer."""
    ids = np.full((len(block), FIRST), -1, dtype=np.int32)
    best = np.empty(ids.shape, dtype=np.float32)
    top_n(block, train, True, np.ones(block.shape[1], dtype=np.uint8), ids, best)
    return ids


# ---- kernels


@jit(inline="always")
def _above(s, r, t, q):
    return s > t or (s == t and r > q)


@jit
def _in_bins(total, added, weight, lowest, scale, values, bins, n):
    """Fill sums and where they lie between the lowest and the highest positive, −1 below."""
    for j in range(n):
        s = total[j] + weight * added[j]
        values[j] = s
        place = min((s - lowest) * scale, np.float32(BINS - 1))
        bins[j] = np.int32(place) if s >= lowest else np.int32(-1)


@jit
def _places(first, stride, starts, positives, worth, prior, total, added, weights, out):
    most = positives.max()
    good, behind = np.empty(most, dtype=np.float32), np.empty(most)
    above, higher = np.empty(most + 1), np.empty(BINS, dtype=np.int64)
    longest = 0
    for u in range(first, len(positives), stride):
        longest = max(longest, starts[u + 1] - starts[u] - positives[u])
    values, bins = np.empty(longest, dtype=np.float32), np.empty(longest, dtype=np.int32)
    for u in range(first, len(positives), stride):
        begin, count = starts[u], positives[u]
        others = 0.0
        for p in range(begin + count, starts[u + 1]):
            others += worth[p]
        ideal = 0.0
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
            lowest = good[count - 1]
            spread = good[0] - lowest
            scale = np.float32((BINS - 1) / spread if spread > 1e-30 else 0.0)
            n = starts[u + 1] - begin - count
            _in_bins(
                total[begin + count :], added[begin + count :], weight, lowest, scale, values, bins, n
            )
            k = 0
            for b in range(BINS - 1, -1, -1):  # how many positives are in the bins above
                higher[b] = k
                while k < count and np.int32((good[k] - lowest) * scale) >= b:
                    k += 1
            above[: count + 1] = 0.0
            for j in range(n):
                if bins[j] < 0:  # below all positives
                    continue
                s, low, stands = values[j], higher[bins[j]], worth[begin + count + j]
                while low < count and good[low] > s:
                    low += 1
                if low == count or good[low] != s:
                    above[low] += stands
                    continue
                r = prior[begin + count + j]
                while low < count and good[low] == s and behind[low] > r:
                    low += 1
                tied = low
                while tied < count and good[tied] == s and behind[tied] == r:
                    tied += 1
                above[low] += 0.5 * stands
                above[tied] += 0.5 * stands
            ahead = wrong = gain = 0.0
            for k in range(count):
                ahead += above[k]  # others before this positive, those that tie by half
                wrong += ahead
                if k + 1 + ahead <= CUTOFF:
                    gain += 1.0 / np.log2(k + 2.0 + ahead)
            out[u, w, 0] = 1.0 - wrong / (count * others) if others > 0 else np.nan
            out[u, w, 1] = gain / ideal
