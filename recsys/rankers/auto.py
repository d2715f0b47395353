"""Auto: a blend whose parts and weights are chosen on held-out halves of profiles."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.errors import FitError
from recsys.rankers.base import Data, Ranker
from recsys.rankers.blend import StandardizedSum, popularity_ranks, standardized
from recsys.rankers.protocol import POSITIVE, Ints, integer, one_of, real
from recsys.rankers.registry import RANKERS, list_rankers, ranker_of, register_ranker
from recsys.rankers.weight_search import HeldOut, criterion, find_weights
from recsys.utils.attempts import Dropped, attempt
from recsys.utils.progress import within
from recsys.utils.sparse import binary, masked

CELLS = 24_000_000  # held-out users × items: what the scores of a candidate may hold
ALONE = ("cf-komd", "popularity")  # where no user has two interactions, the first that can be fitted
BLEND = "blend"
TRYING = 0.6  # of the budget, for fits of candidates; the rest is for the parts on all profiles


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
