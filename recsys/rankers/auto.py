"""Auto: a blend whose parts and weights are chosen on held-out halves of profiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import FitError, InputError
from recsys.evaluation import metrics as M
from recsys.rankers._standardised import StandardisedSum, add_standardised, fitted
from recsys.rankers.base import DENSE_ITEMS
from recsys.rankers.registry import RANKERS, list_rankers
from recsys.utils.progress import report, within
from recsys.utils.sparse import owners
from recsys.utils.validation import check_choice, check_integer, check_real

SEPARATOR = " + "
LEAST = 1e-3  # of AUC + nDCG@10 that an addition must gain: less is chance, and every part costs time
LOSS = 0.01  # share of AUC − ½, and of nDCG@10, that it may cost
AFTERWARDS = 4  # steps of progress that blending and the fits on everything count as
WEIGHTS = (1.0, 0.3, 0.1)  # of an addition; the first part has 1


@RANKERS.add("auto")
@dataclass(eq=False)
class Auto(StandardisedSum):
    """A blend whose parts and weights are chosen on held-out half profiles of the training users.

    Candidates are fitted without half of the profiles of `validation_fraction` of the users, the later
    half where there are times; these halves are predicted, and parts are added one at a time (and again,
    which weighs them more), with weight 1 and then with finer ones, while AUC plus nDCG@10 rises by
    0.001 or more and neither falls by more than a hundredth of itself: where nDCG is small, no AUC is
    bought with the top of the list. The chosen ones are fitted again on everything. Candidates are what
    the rankers declare (`Ranker.candidates`), those in time where there are times.

    Parameters
    ----------
    validation_fraction : float in (0, 0.9]
        Of the users; at most `users` of them.
    users : int ≥ 1
    rounds : int ≥ 1
        Additions at most, the first among them.
    hide : "half" or "last"
        What is hidden: half of a profile, or its last item, as fits what comes next.
    random_state : int ≥ 0

    Attributes
    ----------
    part_names_ : list of str
    part_weights_ : (parts,) float64
    validation_ : dict
        AUC plus nDCG@10 of each candidate alone, and of the blend.

    Notes
    -----
    Greedy selection with replacement is that of Caruana et al. 2004.

    Examples
    --------
    >>> from recsys.datasets import planted_catalogue
    >>> likes = planted_catalogue(40, 30, seed=1).interactions.matrix
    >>> model = Auto(rounds=2).fit(likes, show_progress=False)
    >>> model.recommend(0, likes[0], N=3).ids.shape
    (3,)
    """

    validation_fraction: float = 0.5
    users: int = 600
    rounds: int = 12
    hide: str = "half"
    random_state: int = 0

    name: ClassVar[str] = "auto"
    compared: ClassVar[tuple[str, ...]] = ("",)

    def _check_parameters(self) -> None:
        check_real("validation_fraction", self.validation_fraction, 0.0, 0.9, open_low=True)
        check_integer("users", self.users, 1)
        check_integer("rounds", self.rounds, 1)
        check_choice("hide", self.hide, ("half", "last"))
        check_integer("random_state", self.random_state, 0)

    def _fit(
        self,
        liked: sp.csr_matrix,
        show_progress: bool,
        callback: Any,
        *,
        times: sp.csr_matrix | None = None,
    ) -> None:
        hidden, held = self._hidden(liked, None if times is None else times.data)
        train, test = _part(liked, ~hidden), _part(liked, hidden)[held]
        if len(held) == 0:
            self.validation_ = {}
            self._adopt(["cf-komd"], [fitted("cf-komd", liked)], np.ones(1))
            return
        known = None if times is None else _part(liked, ~hidden, times.data)
        scores: dict[str, NDArray[np.float32]] = {}
        specs = tried(liked.shape[1], liked.nnz, times is not None)
        steps = len(specs) + AFTERWARDS
        for number, spec in enumerate(specs):
            with within(f"{spec} ({number + 1} of {len(specs)})", number, steps):
                try:
                    part = fitted(spec, train, known)
                except (FitError, InputError):  # a degree above what these rows allow
                    continue
                block = np.zeros((len(held), liked.shape[1]), dtype=np.float32)
                add_standardised(block, part.scores(held, train[held]), 1.0)
                scores[spec] = block
        report("blending", len(specs), steps)
        weights, figures = _greedy(scores, train[held], test, self.rounds)
        self.validation_ = figures
        shares = np.array(list(weights.values()))
        parts = []
        for number, spec in enumerate(weights):
            share = AFTERWARDS * number / len(weights)
            with within(f"{spec} on all profiles", len(specs) + share, steps, AFTERWARDS / len(weights)):
                parts.append(fitted(spec, liked, times))
        self._adopt(list(weights), parts, shares / shares.sum())

    def _hidden(
        self, liked: sp.csr_matrix, when: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Return which likes are hidden, the later ones of some users, and these users."""
        rng = np.random.default_rng(self.random_state)
        lengths = np.diff(liked.indptr)
        able = np.flatnonzero(lengths >= 2)
        count = min(self.users, max(1, round(self.validation_fraction * len(able)))) if len(able) else 0
        held = np.sort(rng.choice(able, size=count, replace=False)) if count else able
        hidden = np.zeros(liked.nnz, dtype=bool)
        for user in held:
            begin, end = liked.indptr[user], liked.indptr[user + 1]
            later = rng.permutation(end - begin)
            if when is not None:
                later = later[np.argsort(-when[begin:end][later], kind="stable")]
            hidden[begin + later[: 1 if self.hide == "last" else (end - begin) // 2]] = True
        return hidden, held


def _part(
    liked: sp.csr_matrix, mask: NDArray[np.bool_], values: NDArray[np.float64] | None = None
) -> sp.csr_matrix:
    """Return some of the likes, with ones or values."""
    data = np.ones(int(mask.sum()), dtype=np.float32) if values is None else values[mask]
    return sp.csr_matrix((data, (owners(liked)[mask], liked.indices[mask])), liked.shape)


def tried(items: int, likes: int, timed: bool = False) -> list[str]:
    """Return the specifications that are tried on data of this size, as the rankers declare them."""
    found = []
    for name in list_rankers():
        kind = RANKERS.get(name)
        for candidate in kind.candidates:
            if candidate.suits(items, likes, timed) and not (kind.dense and items > DENSE_ITEMS):
                found.append(f"{name}:{candidate.params}" if candidate.params else name)
    return found


def _greedy(
    scores: dict[str, NDArray[np.float32]], train: sp.csr_matrix, test: sp.csr_matrix, rounds: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Add candidates while the figure rises; return their weights in order, and the figures."""
    parsed = [M.parse_metric(name) for name in ("auc", "ndcg@10")]

    def figures(block: NDArray[np.float32]) -> NDArray[np.float64]:
        found = M.ranking_values(parsed, block, train, test)
        known = np.isfinite(found)
        means = np.where(known, found, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        return np.asarray(means, dtype=np.float64)

    alone = {spec: figures(block) for spec, block in scores.items()}
    first = max(alone, key=lambda spec: alone[spec].sum())
    weights, total, best = {first: 1.0}, scores[first].copy(), alone[first]
    parts = 1
    for weight in WEIGHTS:  # the finer ones when whole ones gain no more
        while parts < rounds:
            steps = {spec: figures(total + np.float32(weight) * block) for spec, block in scores.items()}
            kept = {spec: found for spec, found in steps.items() if (found >= _least(best)).all()}
            spec = max(kept, key=lambda spec: kept[spec].sum(), default="")
            if not spec or kept[spec].sum() <= best.sum() + LEAST:
                break
            best, total, parts = kept[spec], total + np.float32(weight) * scores[spec], parts + 1
            weights[spec] = weights.get(spec, 0.0) + weight
    sums = {spec: float(found.sum()) for spec, found in alone.items()}
    return weights, sums | {SEPARATOR.join(weights): float(best.sum())}


def _least(best: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what AUC and nDCG must not fall below: a hundredth of themselves, of AUC beyond chance."""
    return best - LOSS * (best - np.array([0.5, 0.0]))
