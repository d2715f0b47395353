"""Auto: a blend whose parts and weights are chosen on held-out halves of profiles."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import in_threads, jit
from recsys.errors import FitError
from recsys.rankers.base import Data, Ranker
from recsys.rankers.blend import StandardizedSum, popularity_ranks, standardized
from recsys.rankers.protocol import POSITIVE, Floats, Ints, integer, one_of, real
from recsys.rankers.registry import RANKERS, list_rankers, ranker_of, register_ranker
from recsys.utils.progress import within
from recsys.utils.sparse import binary, masked
from recsys.utils.tasks import Dropped, attempt
from recsys.utils.topn import top_n

CELLS = 24_000_000  # held-out users × items: what the scores of a candidate may hold
ALONE = ("cf-komd", "popularity")  # where no user has two interactions, the first that can be fitted
BLEND = "blend"
TRYING = 0.6  # of the budget, for fits of candidates; the rest is for the parts on all profiles
GRID = (1.0, 0.3, 0.1, 0.03)  # weights of an addition, relative to what is there
FACTORS = (2.0, 1.41)  # by which weights are changed at the end
LEAST = 3e-4  # of the criterion that an addition must gain: less is chance, and every part costs time
CUTOFF = 10  # of nDCG
FIRST = 50  # items of each candidate's list that are taken one by one
REST = 500  # of the others that are drawn
STALE = 0.7  # of the best gain of a step: candidates whose last gain is less are not tried


@register_ranker("auto")
class Auto(StandardizedSum):
    """A blend with parts and weights selected on held-out half profiles of training users.

    Candidates (`Ranker.candidates`) predict held-out halves of the profiles of `validation_fraction` of
    the users: the later halves if there are times, else random halves. Greedy selection with replacement
    (Caruana et al. 2004) adds the candidate and weight with the largest increase of log(AUC − ½) +
    log nDCG@10, as long as it is at least 0.0003. Then the weights are refined one by one, and the
    selected parts are fitted on all data.

    Parameters
    ----------
    validation_fraction : float in (0, 0.9]
        Share of users with held-out halves.
    users : int ≥ 1
        Largest number of these users; fewer above 16,000 items.
    rounds : int ≥ 1
        Largest number of additions, including the first.
    hide : "half" or "last"
        Held-out part of a profile: half of it, or its last item.
    budget : float > 0, optional
        Wall-clock seconds of a fit. Candidates are tried in order until the time is up; parts without
        time for a new fit keep that of the selection. The result then depends on the machine.

    Other parameters: as of `Ranker` and `Blend`.

    Attributes
    ----------
    validation_ : dict of str to list of two floats
        AUC and nDCG@10 of each candidate, and of the "blend".
    dropped_ : dict of str to str
        Reason for each candidate that was not selected.

    Examples
    --------
    >>> from recsys import load_dataset
    >>> likes = load_dataset("sample").matrix[:60]
    >>> model = Auto(rounds=2).fit(likes, show_progress=False)
    >>> model.recommend(0, likes[0], N=3).ids.shape
    (3,)
    """

    validation_fraction: float = 0.5
    users: int = 1500
    rounds: int = 12
    hide: str = "half"
    random_state: int = 0
    budget: float | None = None
    ties: str | None = "popularity"

    checks = StandardizedSum.checks | {
        "validation_fraction": real(0.0, 0.9, open_low=True),
        "users": integer(1),
        "rounds": integer(1),
        "hide": one_of("half", "last"),
        "budget": POSITIVE,
    }
    uses = frozenset({"item_features", "item_texts", "times"})

    def _fit(self, data: Data) -> None:
        self.dropped_: dict[str, str] = {}
        self.validation_: dict[str, Any] = {}
        if choice := vars(self).pop("choice_of_update", None):
            names, weights = choice
            self._keep(names, [_fitted(spec, data) for spec in names], weights)
            return
        start, limit = time.perf_counter(), np.inf if self.budget is None else float(self.budget)
        liked, described = data.liked, data.item_features is not None and data.item_features.nnz > 0
        hidden, held = self._hidden(data)
        if len(held) == 0:
            for spec in ALONE:
                if part := self._attempt(spec, partial(_fitted, spec, Data(liked))):
                    self._keep([spec], [part], np.ones(1))
                    return
            raise self._nothing_fitted()
        ones = binary(liked, np.float32)
        train, test = masked(ones, ~hidden), masked(ones, hidden)[held]
        times = None if data.times is None else masked(data.times, ~hidden)
        part_data = Data(train, times, data.item_features)
        unseen = bool((np.bincount(liked.indices, minlength=liked.shape[1]) == 0).any())
        specs = candidate_specs(liked.shape[1], liked.nnz, times is not None, described, unseen)
        scores: dict[str, NDArray[np.float32]] = {}
        models: dict[str, Ranker] = {}
        steps = len(specs) + 2
        for number, spec in enumerate(specs):
            if scores and time.perf_counter() - start > TRYING * limit:
                self.dropped_[spec] = "there was no time left to try it"
                continue
            with within(f"{spec}, {number + 1} of {len(specs)}", number, steps):
                result = self._attempt(spec, partial(_fitted_and_scored, spec, part_data, held))
            if result:
                models[spec], scores[spec] = result
            if self.budget is None:
                models.clear()
        if not scores:
            raise self._nothing_fitted()
        with within("blending", len(specs), steps):
            users = np.bincount(train.indices, minlength=train.shape[1]).astype(np.float64)
            prior = np.zeros(len(users)) if self.ties is None else popularity_ranks(users)
            evidence = HeldOut(train[held], test, scores, self.random_state, prior)
            weights, self.validation_ = find_weights(evidence, self.rounds)
        for spec in scores:
            if spec not in weights:
                self.dropped_[spec] = "the search for weights did not choose it"
        parts: dict[str, Ranker] = {}
        for number, spec in enumerate(sorted(weights, key=lambda spec: -weights[spec])):
            if spec in models and time.perf_counter() - start > limit:
                parts[spec] = models[spec]
                continue
            share = 1 / len(weights)
            with within(f"{spec} on all profiles", steps - 1 + number * share, steps, part=share):
                part = self._attempt(spec, partial(_fitted, spec, data), "on all profiles ")
            if part:
                parts[spec] = part
        if not parts:
            raise self._nothing_fitted()
        names = [spec for spec in weights if spec in parts]
        shares = np.array([weights[spec] for spec in names])
        self._keep(names, [parts[spec] for spec in names], shares / shares.sum())

    def _attempt(self, spec: str, fit: Callable[[], Any], where: str = "") -> Any:
        """Return the result of a fit, or None where it fails, which `dropped_` says."""
        result = attempt(fit)
        if isinstance(result, Dropped):
            self.dropped_[spec] = f"{where}it could not be fitted: {result.reason}"
            return None
        return result

    def _nothing_fitted(self) -> FitError:
        reasons = "; ".join(f"{spec}: {why}" for spec, why in self.dropped_.items())
        return FitError(f"no candidate of auto could be fitted: {reasons}")

    def _hidden(self, data: Data) -> tuple[NDArray[np.bool_], Ints]:
        """Return a mask of the hidden interactions, the latest of some users, and these users."""
        liked, when = data.liked, None if data.times is None else data.times.data
        rng = np.random.default_rng(self.random_state)
        able = np.flatnonzero(np.diff(liked.indptr) >= 2)
        most = min(self.users, round(self.validation_fraction * len(able)), CELLS // liked.shape[1])
        count = max(1, most) if len(able) else 0
        held = np.sort(rng.choice(able, size=count, replace=False)) if count else able
        hidden = np.zeros(liked.nnz, dtype=bool)
        for user in held:
            begin, end = liked.indptr[user], liked.indptr[user + 1]
            later = rng.permutation(end - begin)
            if when is not None:
                later = later[np.argsort(-when[begin:end][later], kind="stable")]
            hidden[begin + later[: 1 if self.hide == "last" else (end - begin) // 2]] = True
        return hidden, held

    def choice(self) -> str:
        """Return a sentence on the selected ranker and the best other candidate."""
        self._check_fitted()
        names, figures = self.part_names_, self.validation_
        if BLEND not in figures:
            return f"auto took {names[0]}: no user has two interactions to validate on."
        chosen = names[0] if len(names) == 1 else f"a blend of {len(names)}"
        auc, ndcg = figures[BLEND]
        text = f"auto chose {chosen}: nDCG@10 {ndcg:.4f} and AUC {auc:.4f} on what it hid"
        others = [spec for spec in figures if spec != BLEND and names != [spec]]
        if not others:
            return f"{text}."
        second = max(others, key=lambda spec: float(criterion(np.array(figures[spec]))))
        auc, ndcg = figures[second]
        return f"{text}; the runner-up, {second} alone, has nDCG@10 {ndcg:.4f} and AUC {auc:.4f}."


def candidate_specs(
    items: int, likes: int, timed: bool = False, described: bool = False, unseen: bool = False
) -> list[str]:
    """Return the candidates for data of this size, with such information or without."""
    return [
        f"{name}:{one.params}" if one.params else name
        for name in list_rankers()
        for one in RANKERS.get(name).candidates
        if one.items[0] <= items <= one.items[1] and likes <= one.most_likes
        if timed >= one.timed and described >= one.described and unseen >= one.unseen
    ]


def _fitted(spec: str, data: Data) -> Ranker:
    """Return a ranker, fitted; item features go to candidates for described data."""
    ranker = ranker_of(spec)
    described = any(candidate.described for candidate in ranker.candidates)
    features = data.item_features if described else None
    return ranker.fit(data.liked, show_progress=False, times=data.times, item_features=features)


def _fitted_and_scored(spec: str, data: Data, held: Ints) -> tuple[Ranker, NDArray[np.float32]]:
    """Return a candidate, fitted, and its standardized scores of the held-out users' rows."""
    ranker = _fitted(spec, data)
    times = None if data.times is None else data.times[held]
    scores = ranker.scores(held, data.liked[held], recalculate_user=True, times=times)
    block = standardized(scores)
    if not np.isfinite(block).all():
        raise FitError("some scores are not finite numbers")
    return ranker, block


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
