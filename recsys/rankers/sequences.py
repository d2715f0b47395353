"""SLIST: sequential recommendation by a directed regression between items, or by a directed cosine.

All splits of a history into past and future are summed by recursions along it: nothing loops over them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lapack
from scipy.special import gamma

from recsys._jit import in_threads, jit
from recsys.errors import FitError, InputError
from recsys.rankers.base import DENSE_ITEMS, SMALL, Candidate, Data, Rows
from recsys.rankers.msdw import weigh
from recsys.rankers.protocol import POSITIVE, Floats, Ints, Items, Shares, Users, one_of, real
from recsys.rankers.registry import register_ranker
from recsys.rankers.scoring import ItemWeights, co_occurrences, weighted_rows
from recsys.utils.resources import check_memory, safe_blas
from recsys.utils.sparse import entries_of, owners, row_votes

FEW, MANY = (0, DENSE_ITEMS // 2), (DENSE_ITEMS // 2, np.inf)  # items, for candidates
STEP = 3.0  # from one exponential of a power law to the next
FASTEST = 6.0  # e^−6 of the newest interaction's own term is what is left out above
SLOWEST = 0.03  # over the longest gap; what is slower counts as constant
STEEPEST = 3.0  # power whose sum of exponentials still is the law
LAW = re.compile(r"(exp|power)(\d*\.?\d+)|none")
ACCEPTED = "expX (e^−(gap/X)), powerX ((gap + 1)^−X, X up to 3) or none, joined by +, as in exp1+exp8"


@register_ranker("slist")
class SLIST(ItemWeights):
    """Linear model of sequences, learned from all splits of the histories into past and future.

    In the form "ridge", each split of a history is a row of a regression: the interactions before it
    predict those after it. An interaction g positions before the last one has the weight decay(g), and
    the g-th interaction after the split has the weight target(g). A score sums B = (XᵀX + Λ)⁻¹XᵀY over
    the interactions with decayed weights. With several laws in `decay`, an item is one feature per law.

    In the form "cosine", for large catalogs,
    W_ij = (c_ij / (|U_i|^beta · |U_j|^alpha))^locality, where c_ij sums the votes of users who like j
    after i, decayed by the distance of their positions under the last law of `decay`. A score sums W
    over the interactions, decayed by age under the first law.

    Without times, or with equal times, the order is random and nothing decays. Sources: Choi et al.
    2021, Session-aware linear item-item models (the transitions of SLIST), here with several decays and
    decayed targets; Aiolli 2013 for the asymmetric cosine.

    Parameters
    ----------
    decay : str
        Weights of the interactions before a split: `expX`, e^−(g/X); `powerX`, (g + 1)^−X, X up to 3; or
        `none`. Several laws are joined by +.
    inference_decay : str, optional
        Weights of the interactions of a scored row, one law for each law of `decay`; by default `decay`.
    target_decay : str
        Weights of the interactions after a split. Fast decay emphasizes the next item.
    regularization : float > 0
        Λ, relative to the mean of the diagonal of each block of XᵀX.
    form : "auto", "ridge" or "cosine"
        "auto" is "ridge" up to 8,000 items and "cosine" above.
    alpha, beta : float in 0…1
        Exponents of the popularity of candidate and source in the form "cosine".
    backward : float in 0…1
        Weight of j before i relative to j after i in the form "cosine".
    locality : float > 0
        As of `MSDw`, in the form "cosine".

    Other parameters: as of `Ranker`.

    Examples
    --------
    >>> likes = [[1, 1, 1, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 1, 1, 1]]
    >>> times = [[1, 2, 3, 0], [1, 2, 3, 0], [0, 1, 2, 3], [0, 1, 2, 3]]
    >>> model = SLIST().fit(likes, show_progress=False, times=times)
    >>> model.recommend(0, [[0, 1, 1, 0]], times=[[0, 1, 2, 0]], N=1, recalculate_user=True).ids
    array([3], dtype=int32)
    """

    decay: str = "exp1+exp20"
    inference_decay: str | None = None
    target_decay: str = "power1.5"
    regularization: float = 0.3
    votes: float = 0.0
    form: str = "auto"
    alpha: float = 0.2
    beta: float = 0.5
    backward: float = 0.4
    locality: float = 0.6
    random_state: int = 0

    checks = ItemWeights.checks | {
        "regularization": POSITIVE,
        "form": one_of("auto", "ridge", "cosine"),
        **dict.fromkeys(("alpha", "beta", "backward"), real(0.0, 1.0)),
        "locality": POSITIVE,
    }
    search_space = {
        "decay": ("power1", "exp1+exp20", "exp3+exp60"),
        "target_decay": ("power0.25", "power0.5", "power1", "power1.5"),
        "regularization": ("log", 0.1, 30.0),
        "votes": (0.0, 0.5, 1.0),
        "alpha": ("real", 0.0, 0.8),
        "beta": ("real", 0.0, 0.8),
        "backward": ("real", 0.0, 1.0),
        "locality": ("real", 0.5, 2.0),
    }

    candidates = (
        Candidate(
            "decay=power1,inference_decay=power0.4,target_decay=power0.5,regularization=3",
            SMALL,
            timed=True,
        ),
        Candidate(
            "decay=exp5+exp100,target_decay=power0.6,regularization=20,votes=0.5", FEW, timed=True
        ),
        Candidate("", FEW, timed=True),
        Candidate("form=cosine", MANY, timed=True),
        Candidate("form=cosine,decay=power0.5,alpha=0.4,backward=1", MANY, timed=True),
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if len(self._inference_laws()) != len(parse_decays("decay", self.decay)):
            raise InputError(
                f"inference_decay must have one law for each law of decay={self.decay!r}, "
                f"not {self.inference_decay!r}"
            )
        if len(parse_decays("target_decay", self.target_decay)) != 1:
            raise InputError(f"target_decay must be one law, not {self.target_decay!r}")

    def _inference_laws(self) -> list[Decay]:
        return parse_decays("inference_decay", self.inference_decay or self.decay)

    def reads_times(self) -> bool:
        """Return True."""
        return True

    def _fit(self, data: Data) -> None:
        liked, items = data.liked, data.liked.shape[1]
        times = None if data.times is None else data.times.data
        votes = row_votes(liked, float(self.votes))
        histories = ordered_histories(liked, times, votes, self.random_state)
        longest = int(np.diff(liked.indptr).max())
        self.ordered_ = times is not None
        laws = parse_decays("decay", self.decay) if self.ordered_ else [Decay("none")]
        if self.form == "cosine" or (self.form == "auto" and items > DENSE_ITEMS):
            rates, (law,) = sums_of_exponentials(laws[-1:], longest)
            W = transitions(histories, co_occurrences(liked), rates, law, float(self.backward))
            weigh(W, np.bincount(liked.indices, minlength=items), self.beta, self.alpha, self.locality)
            self.weights_ = W
            return
        need = 8 * (items * len(laws)) ** 2 + 20 * items * items * len(laws)
        check_memory(need, f"slist on {items:,} items")
        before = sums_of_exponentials(laws, longest)
        after = sums_of_exponentials(parse_decays("target_decay", self.target_decay), longest)
        gram, cross = normal_equations(histories, items, before, after)
        self.weights_ = _solved(gram, cross, len(laws), float(self.regularization))

    @property
    def _blocks(self) -> int:
        return 1 if sp.issparse(self.weights_) else len(self.weights_) // self.weights_.shape[1]

    def _laws_votes(self, rows: Rows) -> list[Floats]:
        """Return the weight of each entry of the rows under each law."""
        if rows.times is None or not self.ordered_:
            return [np.ones(rows.matrix.nnz)] * self._blocks
        return [law(rows.gaps) for law in self._inference_laws()[: self._blocks]]

    def _votes(self, rows: Rows) -> Floats:
        return self._laws_votes(rows)[0]

    def _scores(self, rows: Rows, users: Users = None) -> NDArray[np.float32]:
        if sp.issparse(self.weights_):
            return super()._scores(rows)
        n = self.n_items_
        blocks = [
            weighted_rows(rows.matrix, votes, self.weights_[k * n : (k + 1) * n])
            for k, votes in enumerate(self._laws_votes(rows))
        ]
        return np.asarray(np.sum(blocks, axis=0), dtype=np.float32)

    def _explain(self, rows: Rows, items: Items, users: Users = None) -> list[Shares]:
        votes, out = self._laws_votes(rows), []
        for span, some in zip(rows.spans, items, strict=True):
            shares = np.zeros((len(some), span.stop - span.start))
            for k, vote in enumerate(votes):
                features = rows.matrix.indices[span] + k * self.n_items_
                shares += vote[span] * self._contributions(features, some)
            out.append((shares.sum(axis=1), shares))
        return out

    def _item_similarity(self, ids: Ints) -> NDArray[np.float32]:
        blocks = [
            super(SLIST, self)._item_similarity(ids + k * self.n_items_) for k in range(self._blocks)
        ]
        return np.sum(blocks, axis=0)


def _solved(gram: Floats, cross: Floats, blocks: int, ridge: float) -> NDArray[np.float32]:
    """Return (XᵀX + Λ)⁻¹XᵀY, block after block; both matrices are used up."""
    n, items = cross.shape
    diagonal = gram.reshape(-1)[:: n + 1]
    for k in range(blocks):
        mean = diagonal[k::blocks].mean()
        diagonal[k::blocks] += ridge * (mean if mean > 0 else 1.0)
    with safe_blas(n):
        factor, failed = lapack.dpotrf(gram.T, lower=True, overwrite_a=True, clean=False)
        if failed:
            raise FitError(f"slist cannot solve its regression: raise regularization ({ridge:g})")
        B, _ = lapack.dpotrs(factor, np.asfortranarray(cross), lower=True, overwrite_b=True)
    out = np.empty((n, items), dtype=np.float32)
    for k in range(blocks):
        out[k * items : (k + 1) * items] = B[k::blocks]
    return out


@dataclass(frozen=True)
class Decay:
    """A law of decay: e^−(g/x) for "exp", (g + 1)^−x for "power", 1 for "none".

    The gap g is 0 for the newest interaction, then the number of newer ones.
    """

    kind: str
    x: float = 0.0

    def __call__(self, gap: ArrayLike) -> Floats:
        """Return the weights of interactions with these gaps."""
        gap = np.asarray(gap, dtype=np.float64)
        if self.kind == "exp":
            return np.exp(-gap / self.x)
        return (gap + 1.0) ** -self.x if self.kind == "power" else np.ones(gap.shape)


def parse_decays(name: str, text: str) -> list[Decay]:
    """Return the laws of a text such as `exp1+exp8`."""
    laws = []
    for part in str(text).split("+"):
        match = LAW.fullmatch(part.strip())
        kind, x = (match[1] or "none", float(match[2] or 0.0)) if match else ("", 0.0)
        if not match or (match[1] and not 0 < x <= (STEEPEST if kind == "power" else math.inf)):
            raise InputError(f"{name} must be {ACCEPTED}, not {text!r}")
        laws.append(Decay(kind, x))
    return laws


def sums_of_exponentials(laws: Sequence[Decay], longest: int) -> tuple[Floats, Floats]:
    """Return laws as sums of exponentials: of law k, Σ_e coefficients[k,e]·e^−(gap/rates[e]).

    A power law is (g + 1)^−a = 1/Γ(a)·∫ e^(a·x − e^x·(g + 1)) dx by the trapezoidal rule, to .001 up to
    a = 1.5. They agree up to the gap `longest`. Rates, (exponentials,), ascend, and are infinite for a
    constant; no coefficient, (laws, exponentials), is below 0.
    """
    count = math.ceil(math.log(FASTEST * max(longest, 1) / SLOWEST) / math.log(STEP)) + 1
    speeds = FASTEST * STEP ** -np.arange(float(count))
    terms: list[dict[float, float]] = []
    for law in laws:
        if law.kind == "exp":
            terms.append({law.x: 1.0})
        elif law.kind == "none":
            terms.append({math.inf: 1.0})
        else:
            parts = math.log(STEP) / gamma(law.x) * speeds**law.x * np.exp(-speeds)
            rest = (speeds[-1] / math.sqrt(STEP)) ** law.x / gamma(law.x + 1.0)
            terms.append(dict(zip(1.0 / speeds, parts, strict=True)) | {math.inf: rest})
    rates = np.array(sorted(set().union(*terms)))
    return rates, np.array([[term.get(rate, 0.0) for rate in rates] for term in terms])


class Histories(NamedTuple):
    """Interactions of each user from oldest to newest; those of equal times are in random order."""

    items: NDArray[np.int32]
    gaps: Ints  # how many positions newer than the one before; equal times share one
    begins: Ints  # where the history of each interaction begins and ends
    ends: Ints
    votes: Floats  # of the user of each interaction
    starts: Ints  # the interactions of item i are places[starts[i] : starts[i + 1]]
    places: Ints


def ordered_histories(liked: sp.csr_matrix, times: Floats | None, votes: Floats, seed: int) -> Histories:
    """Return the interactions in order; `times` are aligned with liked.indices, None for equal times."""
    owner, indptr = owners(liked), liked.indptr.astype(np.int64)
    when = np.zeros(liked.nnz) if times is None else times
    order = np.lexsort((np.random.default_rng(seed).random(liked.nnz), when, owner))
    when, items = when[order], liked.indices[order]
    first = np.ones(liked.nnz, dtype=bool)  # of its time
    first[1:] = (when[1:] != when[:-1]) | (owner[1:] != owner[:-1])
    group = np.cumsum(first) - 1
    place = np.append(np.flatnonzero(first)[1:], liked.nnz)[group] - 1  # the newest of the group
    gaps = np.diff(place, prepend=0)
    gaps[indptr[:-1][np.diff(indptr) > 0]] = 0
    starts = np.concatenate(([0], np.cumsum(np.bincount(items, minlength=liked.shape[1]))))
    places = np.argsort(items, kind="stable")
    return Histories(items, gaps, indptr[owner], indptr[owner + 1], votes[owner], starts, places)


def normal_equations(
    histories: Histories, items: int, before: tuple[Floats, Floats], after: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """Return XᵀX and XᵀY of all splits of all histories: items·blocks rows.

    `before` are the laws of X as rates, (exponentials,), and coefficients, (blocks, exponentials):
    column i·blocks + k is item i, law k. `after` is the one law of Y.
    """
    (rates, sources), (t_rates, (targets,)) = before, after
    steps, t_steps = (np.exp(-histories.gaps[:, None] / rate) for rate in (rates, t_rates))
    blocks = len(sources)
    gram = np.empty((items * blocks, items * blocks))
    cross = np.empty((items * blocks, items))
    ahead = _splits_ahead(histories, steps, sources)
    laws = (steps, t_steps, sources, targets, ahead)
    in_threads(None, _normal_equations, tuple(histories), laws, gram, cross)
    gram += gram.T
    return gram, cross


def _splits_ahead(histories: Histories, steps: Floats, sources: Floats) -> Floats:
    """Return out[s, k, e] = Σ over the splits after s of law k there times exponential e, both from s.

    From the newest interaction of every history backwards, all histories at once.
    """
    ends, lengths = np.unique(histories.ends, return_counts=True)
    longest_first = np.argsort(-lengths, kind="stable")
    ends, lengths = ends[longest_first], lengths[longest_first]
    both = np.zeros((len(ends), steps.shape[1], steps.shape[1]))
    out = np.empty((len(steps), len(sources), steps.shape[1]))
    for back in range(int(lengths[0])):
        active = int(np.searchsorted(-lengths, -back))  # longer than `back`
        at = ends[:active] - 1 - back
        if back:
            step = steps[at + 1]
            both[:active] = 1.0 + step[:, :, None] * step[:, None, :] * both[:active]
        out[at] = np.einsum("kb,uab->uka", sources, both[:active])
    return out


def transitions(
    histories: Histories, pairs: sp.csr_matrix, rates: Floats, law: Floats, backward: float
) -> sp.csr_matrix:
    """Return weights of j after i, Σ_u votes_u·law(positions from i to j): (items, items) float32 CSR.

    The law of the gap is a sum of exponentials. j before i counts `backward` of j after i. `pairs` has
    the pattern of items that share a user.
    """
    steps = np.exp(-np.arange(histories.gaps.max() + 1.0)[:, None] / rates)
    data = np.empty(pairs.nnz, dtype=np.float32)
    arrays = (steps, law, backward, pairs.indptr, pairs.indices, data)
    in_threads(None, _transitions, tuple(histories), *arrays)
    out = entries_of(pairs, data)
    out.eliminate_zeros()  # the diagonal, and where only i comes after j
    return out


# ---- kernels


@jit
def _normal_equations(first, stride, histories, laws, gram, cross):
    """Rows of the item's features: pairs in which it comes first; half of its own."""
    items, _, _, ends, votes, starts, places = histories
    steps, t_steps, sources, targets, ahead = laws
    m, E = len(starts) - 1, steps.shape[1]
    blocks, F = len(sources), len(targets)
    xx = np.empty((blocks, m * blocks))
    xy = np.empty((blocks, m))
    decayed = np.empty(E)  # each exponential from the item to here, times the user's votes
    law = np.empty(blocks)
    future = np.empty((blocks, F))
    for i in range(first, m, stride):
        xx[:] = 0.0
        xy[:] = 0.0
        for c in range(starts[i], starts[i + 1]):
            s = places[c]
            decayed[:] = votes[s]
            future[:] = 0.0
            for q in range(s, ends[s]):
                j = items[q]
                if q > s:
                    for k in range(blocks):
                        total = 0.0
                        for b in range(F):
                            future[k, b] = future[k, b] * t_steps[q, b] + law[k]
                            total += targets[b] * future[k, b]
                        xy[k, j] += total
                    for e in range(E):
                        decayed[e] *= steps[q, e]
                share = 1.0 if q > s else 0.5  # the transpose adds the other half
                for k in range(blocks):
                    value = 0.0
                    for e in range(E):
                        value += sources[k, e] * decayed[e]
                    law[k] = value
                    for other in range(blocks):
                        total = 0.0
                        for e in range(E):
                            total += sources[k, e] * decayed[e] * ahead[q, other, e]
                        xx[k, j * blocks + other] += share * total
        for k in range(blocks):
            row = i * blocks + k  # entry by entry: assigning a row compiles for two seconds
            for j in range(m * blocks):
                gram[row, j] = xx[k, j]
            for j in range(m):
                cross[row, j] = xy[k, j]


@jit
def _transitions(first, stride, histories, steps, law, backward, indptr, indices, data):
    items, gaps, begins, ends, votes, starts, places = histories
    total, decayed = np.zeros(len(starts) - 1), np.empty(len(law))
    for i in range(first, len(total), stride):
        for c in range(starts[i], starts[i + 1]):
            s = places[c]
            for sign, weight in ((1, votes[s]), (-1, backward * votes[s])):
                decayed[:] = law * weight
                q = s + sign
                while begins[s] <= q < ends[s]:
                    gap, value = gaps[max(q, q - sign)], 0.0
                    for e in range(len(law)):
                        decayed[e] *= steps[gap, e]
                        value += decayed[e]
                    total[items[q]] += value
                    q += sign
        for p in range(indptr[i], indptr[i + 1]):
            data[p] = total[indices[p]]
            total[indices[p]] = 0.0
