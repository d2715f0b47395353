"""Auto: a blend whose parts and weights are chosen on held-out halves of profiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import FitError
from recsys.evaluation import metrics as M
from recsys.rankers._candidates import Result, Task, run_all
from recsys.rankers._clock import Clock
from recsys.rankers._race import MARGIN, SEARCHING, Race, refitting
from recsys.rankers._standardised import StandardisedSum, fitted
from recsys.rankers._ties import break_ties, tie_order
from recsys.rankers._weight_search import find_weights
from recsys.rankers.base import DENSE_ITEMS, Ranker
from recsys.rankers.registry import RANKERS, list_rankers
from recsys.utils.sparse import owners
from recsys.utils.validation import check_choice, check_integer, check_real

CELLS = 24_000_000  # held-out users × items: what the scores of a candidate may hold
NOT_CHOSEN = "the search for weights did not choose it"
BLEND = "blend"
AFTERWARDS = 4  # steps of progress that blending and the fits on everything count as


@RANKERS.add("auto")
@dataclass(eq=False)
class Auto(StandardisedSum):
    """A blend whose parts and weights are chosen on held-out half profiles of the training users.

    Candidates are fitted without half of the profiles of `validation_fraction` of the users, the later
    half where there are times; these halves are predicted, and parts are added one at a time (and again,
    which weighs them more), each with the weight, of 3, 1, 0.3, 0.1 and 0.03 times what is there, that
    raises log(AUC − ½) + log nDCG@10 most, while it rises by 0.0003 or more. Then weights are refined
    one by one. What is gained and lost counts as a share of itself: where nDCG is small, no AUC is
    bought with the top of the list. The chosen ones are fitted again on everything. Candidates are what
    the rankers declare (`Ranker.candidates`), those in time where there are times.

    Parameters
    ----------
    validation_fraction : float in (0, 0.9]
        Of the users; at most `users` of them.
    users : int ≥ 1
        Fewer where there are more than 16,000 items: they are scored on all.
    rounds : int ≥ 1
        Additions at most, the first among them.
    hide : "half" or "last"
        What is hidden: half of a profile, or its last item, as fits what comes next.
    random_state : int ≥ 0
    budget : float > 0, optional
        Seconds that a fit may take. Where that is too short for all candidates they are raced on growing
        samples of users, and those that cannot win are dropped (successive halving); where it is too
        short to fit a part again, the part stays as it was fitted without what was hidden. What comes
        out then depends on the machine. Compiling counts, up to half of it before anything is measured.
        Where it is too short for any, the one that was the fastest on a sample is fitted, or popularity
        where none was measured.
    ties : "popularity" or None
        What orders items of equal scores, as those are that no part knows anything of.

    Attributes
    ----------
    part_names_ : list of str
    part_weights_ : (parts,) float64
    validation_ : dict of str to list of two floats
        AUC and nDCG@10 of each candidate alone, and at last of the "blend".
    dropped_ : dict of str to str
        Why each candidate that is no part is none.

    Notes
    -----
    Greedy selection with replacement is that of Caruana et al. 2004, successive halving that of Jamieson
    and Talwalkar 2016.

    Examples
    --------
    >>> from recsys.datasets import planted_catalogue
    >>> likes = planted_catalogue(40, 30, seed=1).interactions.matrix
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

    name: ClassVar[str] = "auto"
    compared: ClassVar[tuple[str, ...]] = ("",)

    def _check_parameters(self) -> None:
        check_real("validation_fraction", self.validation_fraction, 0.0, 0.9, open_low=True)
        check_integer("users", self.users, 1)
        check_integer("rounds", self.rounds, 1)
        check_choice("hide", self.hide, ("half", "last"))
        check_integer("random_state", self.random_state, 0)
        if self.budget is not None:
            check_real("budget", self.budget, 0.0, open_low=True)

    def _fit(
        self,
        liked: sp.csr_matrix,
        show_progress: bool,
        callback: Any,
        *,
        times: sp.csr_matrix | None = None,
    ) -> None:
        specs = tried(liked.shape[1], liked.nnz, times is not None)
        clock = Clock(self.budget, len(specs) + AFTERWARDS)
        hidden, held = self._hidden(liked, None if times is None else times.data)
        train, test = _part(liked, ~hidden), _part(liked, hidden)[held]
        if len(held) == 0:
            self.validation_, self.dropped_ = {}, {}
            self._adopt(["cf-komd"], [fitted("cf-komd", liked)], np.ones(1))
            return
        known = None if times is None else _part(liked, ~hidden, times.data)
        task = Task(train, known, held, test, self.random_state, self.ties)
        found = run_all(task, specs, clock) if self.budget is None else Race(task, clock).run(specs)
        if not found.scores:
            raise FitError(f"no candidate of auto could be fitted: {found.dropped}")
        again, most = refitting(task, found), clock.spent() + SEARCHING * clock.budget
        with clock.step("blending", len(specs)):
            weights = find_weights(
                task.held_out(found.scores), self.rounds,
                lambda: clock.spent() > most and clock.left() < again,
            )  # fmt: skip
        self.validation_ = _figures(found.scores, weights, task)
        self.dropped_ = found.dropped | {s: NOT_CHOSEN for s in found.scores if s not in weights}
        parts = self._fitted_again(weights, found, liked, times, clock)
        names = [spec for spec in weights if spec in parts]
        shares = np.array([weights[spec] for spec in names])
        self._adopt(names, [parts[spec] for spec in names], shares / shares.sum())

    def _fitted_again(
        self, weights: dict[str, float], found: Result, liked: sp.csr_matrix,
        times: sp.csr_matrix | None, clock: Clock,
    ) -> dict[str, Ranker]:  # fmt: skip
        """Return the parts fitted on everything, or as they are where time is up; those gone first."""
        parts: dict[str, Ranker] = {}
        order = sorted(weights, key=lambda spec: (spec in found.models, -weights[spec]))
        for number, spec in enumerate(order):
            late = MARGIN * found.seconds[spec] > clock.left()
            if late and spec in found.models:
                parts[spec] = found.models[spec]
            elif late and parts:
                self.dropped_[spec] = "there was no time to fit it on all profiles"
            else:
                share = AFTERWARDS / len(weights)
                done = clock.steps - AFTERWARDS + number * share
                with clock.step(f"{spec} on all profiles", done, share):
                    parts[spec] = fitted(spec, liked, times)
        return parts

    def _check_state(self) -> None:
        super()._check_state()
        told = vars(self).get("dropped_", {})
        if not isinstance(told, dict) or not all(isinstance(why, str) for why in told.values()):
            raise ValueError("dropped_ does not tell why a candidate was dropped")

    def _hidden(
        self, liked: sp.csr_matrix, when: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Return which likes are hidden, the later ones of some users, and these users."""
        rng = np.random.default_rng(self.random_state)
        lengths = np.diff(liked.indptr)
        able = np.flatnonzero(lengths >= 2)
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


def _figures(
    scores: dict[str, NDArray[np.float32]], weights: dict[str, float], task: Task
) -> dict[str, list[float]]:
    """Return AUC and nDCG@10 of each candidate alone, and at last of the "blend"."""
    parsed = [M.parse_metric(name) for name in ("auc", "ndcg@10")]
    blend = np.zeros(task.test.shape, dtype=np.float32)
    for spec, weight in weights.items():
        blend += np.float32(weight) * scores[spec]
    found, train = {}, task.train[task.held]
    users = np.bincount(task.train.indices, minlength=blend.shape[1]).astype(np.float32)
    for spec, block in [*scores.items(), (BLEND, blend)]:
        told = block if task.ties is None else break_ties(block, tie_order(users))
        values = M.ranking_values(parsed, told, train, task.test)
        known = np.isfinite(values)
        means = np.where(known, values, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        found[spec] = means.tolist()
    return found
