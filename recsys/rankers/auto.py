"""Auto: a blend whose parts and weights are chosen on held-out halves of profiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.evaluation import metrics as M
from recsys.rankers._standardised import StandardisedSum, add_standardised, fitted
from recsys.rankers.base import DENSE_ITEMS
from recsys.rankers.registry import RANKERS, list_rankers
from recsys.utils.sparse import owners
from recsys.utils.validation import check_integer, check_real

SEPARATOR = " + "
LEAST = 2e-3  # of AUC + nDCG@10 that an addition must gain: less is chance, and every part costs time


@RANKERS.add("auto")
@dataclass(eq=False)
class Auto(StandardisedSum):
    """A blend whose parts and weights are chosen on held-out half profiles of the training users.

    Candidates are fitted without half of the profiles of `validation_fraction` of the users, these
    halves are predicted, and parts are added one at a time (and again, which weighs them more) while
    AUC plus nDCG@10 rises by 0.002 or more; the chosen ones are fitted again on everything. Candidates
    are what the rankers declare (`Ranker.candidates`).

    Parameters
    ----------
    validation_fraction : float in (0, 0.9]
        Of the users; at most `users` of them.
    users : int ≥ 1
    rounds : int ≥ 1
        Additions at most, the first among them.
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
    random_state: int = 0

    name: ClassVar[str] = "auto"
    compared: ClassVar[tuple[str, ...]] = ("",)

    def _check_parameters(self) -> None:
        check_real("validation_fraction", self.validation_fraction, 0.0, 0.9, open_low=True)
        check_integer("users", self.users, 1)
        check_integer("rounds", self.rounds, 1)
        check_integer("random_state", self.random_state, 0)

    def _fit(
        self,
        liked: sp.csr_matrix,
        show_progress: bool,
        callback: Any,
        *,
        times: sp.csr_matrix | None = None,
    ) -> None:
        train, test, held = self._halves(liked, times)
        if len(held) == 0:
            self.validation_ = {}
            self._adopt(["cf-komd"], [fitted("cf-komd", liked)], np.ones(1))
            return
        scores: dict[str, NDArray[np.float32]] = {}
        for spec in tried(liked.shape[1], liked.nnz):
            try:
                part = fitted(spec, train)
            except InputError:  # a degree above what these rows allow
                continue
            block = np.zeros((len(held), liked.shape[1]), dtype=np.float32)
            add_standardised(block, part.scores(held, train[held]), 1.0)
            scores[spec] = block
        order, figures = _greedy(scores, train[held], test, self.rounds)
        chosen = sorted(set(order), key=order.index)
        weights = np.array([order.count(spec) for spec in chosen], dtype=np.float64)
        self.validation_ = figures
        self._adopt(chosen, [fitted(spec, liked) for spec in chosen], weights / weights.sum())

    def _halves(
        self, liked: sp.csr_matrix, times: sp.csr_matrix | None
    ) -> tuple[sp.csr_matrix, sp.csr_matrix, NDArray[np.int64]]:
        """Hide half of some users' items; return what is left, the hidden rows, and the users."""
        rng = np.random.default_rng(self.random_state)
        lengths = np.diff(liked.indptr)
        able = np.flatnonzero(lengths >= 2)
        count = min(self.users, max(1, round(self.validation_fraction * len(able)))) if len(able) else 0
        held = np.sort(rng.choice(able, size=count, replace=False)) if count else able
        hidden = np.zeros(liked.nnz, dtype=bool)
        owner = owners(liked)
        when = None if times is None else times.data  # on the pattern of the likes
        for user in held:
            begin, end = liked.indptr[user], liked.indptr[user + 1]
            later = rng.permutation(end - begin)
            if when is not None:
                later = later[np.argsort(-when[begin:end][later], kind="stable")]
            hidden[begin + later[: (end - begin) // 2]] = True

        def part(mask: NDArray[np.bool_]) -> sp.csr_matrix:
            ones = np.ones(int(mask.sum()), dtype=np.float32)
            return sp.csr_matrix((ones, (owner[mask], liked.indices[mask])), liked.shape)

        return part(~hidden), part(hidden)[held], held


def tried(items: int, likes: int) -> list[str]:
    """Return the specifications that are tried on data of this size, as the rankers declare them."""
    found = []
    for name in list_rankers():
        kind = RANKERS.get(name)
        for candidate in kind.candidates:
            if candidate.suits(items, likes) and not (kind.dense and items > DENSE_ITEMS):
                found.append(f"{name}:{candidate.params}" if candidate.params else name)
    return found


def _greedy(
    scores: dict[str, NDArray[np.float32]], train: sp.csr_matrix, test: sp.csr_matrix, rounds: int
) -> tuple[list[str], dict[str, float]]:
    """Add candidates while the figure rises; return them in order, and the figures."""
    parsed = [M.parse_metric(name) for name in ("auc", "ndcg@10")]

    def figure(block: NDArray[np.float32]) -> float:
        found = M.ranking_values(parsed, block, train, test)
        known = np.isfinite(found)
        return float((np.where(known, found, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)).sum())

    alone = {spec: figure(block) for spec, block in scores.items()}
    order = [max(alone, key=lambda spec: alone[spec])]
    total, best = scores[order[0]].copy(), alone[order[0]]
    for _ in range(rounds - 1):
        tried = {spec: figure(total + block) for spec, block in scores.items()}
        spec = max(tried, key=lambda spec: tried[spec])
        if tried[spec] <= best + LEAST:
            break
        best, total = tried[spec], total + scores[spec]
        order.append(spec)
    return order, alone | {SEPARATOR.join(order): best}
