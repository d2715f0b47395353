"""Auto: a blend whose parts and weights are chosen on held-out halves of profiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import FitError, counted
from recsys.evaluation import metrics as M
from recsys.rankers._candidates import NOT_FITTED, Result, Task, run_all
from recsys.rankers._clock import Clock
from recsys.rankers._race import MARGIN, SEARCHING, Race, refitting
from recsys.rankers._standardised import StandardisedSum, fitted
from recsys.rankers._ties import break_ties, tie_order
from recsys.rankers._weight_search import criterion, find_weights
from recsys.rankers.base import DENSE_ITEMS, Ranker
from recsys.rankers.registry import RANKERS, list_rankers
from recsys.utils.attempts import Dropped, attempt
from recsys.utils.sparse import binary, masked
from recsys.utils.validation import check_choice, check_integer, check_real

CELLS = 24_000_000  # held-out users × items: what the scores of a candidate may hold
NOT_CHOSEN = "the search for weights did not choose it"
ALONE = ("cf-komd", "popularity")  # where no user has two interactions, the first that can be fitted
BLEND = "blend"
AFTERWARDS = 4  # steps of progress that blending and the fits on everything count as


@RANKERS.add("auto")
@dataclass(eq=False)
class Auto(StandardisedSum):
    """A blend whose parts and weights are chosen on held-out half profiles of the training users.

    Candidates are fitted without half of the profiles of `validation_fraction` of the users, the later
    half where there are times; these halves are predicted. Parts are selected greedily, with
    replacement: each step adds the candidate and the weight (3, 1, 0.3, 0.1 or 0.03 times that of all
    parts so far) that raise log(AUC − ½) + log nDCG@10 most, as long as it rises by 0.0003 or more.
    Logarithms make relative changes of the two metrics comparable. Then weights are refined one by one,
    and the chosen ones are fitted again on everything. Candidates are what
    the rankers declare (`Ranker.candidates`), those in time where there are times, and those of item
    features where there are some. `user-knn` and `tifu-knn` are none: with `user-knn`, AUC on validation
    changed by +0.0009 (95% interval −0.0002 to 0.0021) on the sample, by +0.0011 (−0.0007 to
    0.0031) on FilmTrust and by 0 on MovieLens 100K. Nor are `cosine`, `tfidf` and `bm25`: no interval
    of the differences that they made excludes 0.

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
        Seconds that a fit may take by the clock. Popularity, one `msdw` and one linear `cf-komd` are
        fitted first, with recency where there are times, and kept. Where it is too short for all
        candidates the others are raced on growing
        samples of users, and those that cannot win are dropped (successive halving); where it is too
        short to fit a part again, the part stays as it was fitted without what was hidden. What comes
        out then depends on the machine. Compiling counts, up to half of it before anything is measured.
        Where it is too short for any, the one that was the fastest on a sample is fitted, or popularity
        where none was measured.
    processor_budget : float > 0, optional
        The same in processor seconds of this process, all threads together: what other programs take
        of the machine does not count. With both, the first that is spent ends it.
    ties : "popularity" or None
        What orders items of equal scores, as those are that no part knows anything of.

    Attributes
    ----------
    part_names_ : list of str
    part_weights_ : (parts,) float64
    validation_ : dict of str to list of two floats
        AUC and nDCG@10 of each candidate alone, and at last of the "blend".
    dropped_ : dict of str to str
        Why each candidate that was not selected was not.

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
    processor_budget: float | None = None
    ties: str | None = "popularity"

    name: ClassVar[str] = "auto"
    reads_texts: ClassVar[bool] = True

    def _check_parameters(self) -> None:
        check_real("validation_fraction", self.validation_fraction, 0.0, 0.9, open_low=True)
        check_integer("users", self.users, 1)
        check_integer("rounds", self.rounds, 1)
        check_choice("hide", self.hide, ("half", "last"))
        check_integer("random_state", self.random_state, 0)
        for key in ("budget", "processor_budget"):
            if getattr(self, key) is not None:
                check_real(key, getattr(self, key), 0.0, open_low=True)

    def _fit(
        self,
        liked: sp.csr_matrix,
        show_progress: bool,
        callback: Any,
        *,
        item_features: sp.csr_matrix | None = None,
        times: sp.csr_matrix | None = None,
    ) -> None:
        described = item_features is not None and item_features.nnz > 0
        specs = tried(liked.shape[1], liked.nnz, times is not None, described)
        clock = Clock(self.budget, len(specs) + AFTERWARDS, self.processor_budget)
        hidden, held = self._hidden(liked, None if times is None else times.data)
        ones = binary(liked, np.float32)
        train, test = masked(ones, ~hidden), masked(ones, hidden)[held]
        if len(held) == 0:
            self.validation_, self.dropped_ = {}, {}
            for spec in ALONE:
                part = attempt(lambda spec=spec: fitted(spec, liked))  # type: ignore[misc]
                if not isinstance(part, Dropped):
                    self._adopt([spec], [part], np.ones(1))
                    return
                self.dropped_[spec] = f"{NOT_FITTED}: {part.reason}"
            raise _nothing_fitted(self.dropped_)
        known = None if times is None else masked(times, ~hidden)
        task = Task(train, known, held, test, self.random_state, self.ties, item_features)
        limited = np.isfinite(clock.budget)
        found = Race(task, clock).run(specs) if limited else run_all(task, specs, clock)
        if not found.scores:
            raise _nothing_fitted(found.dropped)
        again, most = refitting(task, found), clock.spent() + SEARCHING * clock.budget
        with clock.step("blending", len(specs)):
            weights = find_weights(
                task.held_out(found.scores), self.rounds,
                lambda: clock.spent() > most and clock.left() < again,
            )  # fmt: skip
        self.validation_ = _figures(found.scores, weights, task)
        self.dropped_ = found.dropped | {s: NOT_CHOSEN for s in found.scores if s not in weights}
        parts = self._fitted_again(weights, found, (liked, times, item_features), clock)
        if not parts:
            raise _nothing_fitted(self.dropped_)
        names = [spec for spec in weights if spec in parts]
        shares = np.array([weights[spec] for spec in names])
        self._adopt(names, [parts[spec] for spec in names], shares / shares.sum())

    def _fitted_again(
        self, weights: dict[str, float], found: Result, known: tuple[Any, ...], clock: Clock
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
                    part = attempt(lambda spec=spec: fitted(spec, *known))  # type: ignore[misc]
                if not isinstance(part, Dropped):
                    parts[spec] = part
                elif spec in found.models:
                    parts[spec] = found.models[spec]
                else:
                    self.dropped_[spec] = f"on all profiles {NOT_FITTED}: {part.reason}"
        return parts

    def choice(self) -> str:
        """Return a sentence on the chosen ranker, and the runner-up's loss on held-out interactions.

        The runner-up is the best other candidate alone.

        Raises
        ------
        NotFittedError
        """
        self._check_fitted()
        figures = self.validation_
        if BLEND not in figures:
            return f"auto took {self.part_names_[0]}: no user has two interactions to validate on."
        alone = [spec for spec in figures if spec != BLEND]
        parts = self.part_names_
        chosen = parts[0] if len(parts) == 1 else f"a blend of {len(parts)}"
        auc, ndcg = figures[BLEND]
        told = (
            f"auto chose {chosen} of {counted(len(alone), 'candidate')}: nDCG@10 {ndcg:.4f} and AUC "
            f"{auc:.4f} on what it hid"
        )
        others = [spec for spec in alone if parts != [spec]]
        if not others:
            return f"{told}."
        second = max(others, key=lambda spec: float(criterion(np.array(figures[spec]))))
        its_auc, its_ndcg = figures[second]
        return (
            f"{told}; the runner-up, {second} alone, has nDCG@10 {its_ndcg:.4f} "
            f"({_change(its_ndcg, ndcg)}) and AUC {its_auc:.4f} ({_change(its_auc, auc)})."
        )

    def _check_state(self) -> None:
        super()._check_state()
        told = vars(self).get("dropped_", {})
        if not isinstance(told, dict) or not all(isinstance(why, str) for why in told.values()):
            raise ValueError("dropped_ does not tell why a candidate was dropped")

    def _hidden(
        self, liked: sp.csr_matrix, when: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Return a mask of the hidden interactions, the latest of some users, and these users."""
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


def _change(value: float, reference: float) -> str:
    """Return by how many percent a value differs from another."""
    return f"{100 * (value / reference - 1):+.1f} %".replace("-", "−") if reference else "no share of 0"


def _nothing_fitted(dropped: dict[str, str]) -> FitError:
    told = "; ".join(f"{spec}: {why}" for spec, why in dropped.items())
    return FitError(f"no candidate of auto could be fitted: {told}")


def tried(items: int, likes: int, timed: bool = False, described: bool = False) -> list[str]:
    """Return the specifications that are tried on data of this size, as the rankers declare them."""
    found = []
    for name in list_rankers():
        kind = RANKERS.get(name)
        for candidate in kind.candidates:
            if candidate.suits(items, likes, timed, described) and not (
                kind.dense and items > DENSE_ITEMS
            ):
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
