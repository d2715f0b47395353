"""Candidates of a blend: the data for their fits and measurements, and how all of them are fitted."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import FitError
from recsys.rankers._clock import Clock
from recsys.rankers._held_out import HeldOut
from recsys.rankers._standardised import add_standardised, fitted
from recsys.rankers._ties import tie_order
from recsys.rankers.base import Ranker
from recsys.utils.attempts import Dropped, attempt
from recsys.utils.sparse import masked

NOT_FITTED, NOT_SCORED = "it could not be fitted", "its scores could not be had"
JUDGES = 200  # held-out users who judge on a sample


@dataclass
class Task:
    """The data on which candidates are fitted and measured."""

    train: sp.csr_matrix  # all interactions but the hidden ones, (users, items)
    times: sp.csr_matrix | None  # of these
    held: NDArray[np.int64]  # the users of whom some are hidden
    test: sp.csr_matrix  # these, (held, items)
    seed: int
    ties: str | None = None  # the blend's
    item_features: sp.csr_matrix | None = None

    def sample(self, likes: int) -> Task:
        """Return the task on `likes` interactions of whole users, with `JUDGES` or more held out."""
        rng = np.random.default_rng(self.seed)
        judges = np.sort(rng.permutation(len(self.held))[:JUDGES])
        first = self.held[judges]
        order = np.concatenate(
            [first, rng.permutation(np.setdiff1d(np.arange(self.train.shape[0]), first))]
        )
        lengths = np.diff(self.train.indptr)
        count = max(len(first), int(np.searchsorted(np.cumsum(lengths[order]), likes)))
        taken = np.zeros(len(order), dtype=bool)
        taken[order[:count]] = True
        mask = np.repeat(taken, lengths)
        return Task(
            masked(self.train, mask), None if self.times is None else masked(self.times, mask), first,
            self.test[judges], self.seed, self.ties, self.item_features,
        )  # fmt: skip

    def hidden_share(self) -> float:
        """Return the share of the interactions that is hidden."""
        return float(self.test.nnz / max(1, self.train.nnz + self.test.nnz))

    def fit(self, spec: str) -> Ranker:
        """Return a candidate, fitted."""
        return fitted(spec, self.train, self.times, self.item_features)

    def scores(self, ranker: Ranker) -> NDArray[np.float32]:
        """Return its standardised scores of the held-out users' rows, as a blend asks for them.

        A FitError says that one is not a finite number.
        """
        block = np.zeros(self.test.shape, dtype=np.float32)
        timed = {} if self.times is None else {"times": self.times[self.held]}
        scores = ranker.scores(self.held, self.train[self.held], recalculate_user=True, **timed)
        add_standardised(block, scores, 1.0)
        if not np.isfinite(block).all():
            raise FitError("some are not finite numbers")
        return block

    def held_out(self, scores: dict[str, NDArray[np.float32]]) -> HeldOut:
        """Return the data on which weights are searched."""
        return HeldOut(self.train[self.held], self.test, scores, self.seed, self.prior())

    def prior(self) -> NDArray[np.float64] | None:
        """Return the prior that orders items of equal scores, as in the blend."""
        if self.ties is None:
            return None
        users = np.bincount(self.train.indices, minlength=self.train.shape[1])
        return tie_order(users.astype(np.float32)).rank


@dataclass
class Result:
    """The result of a race."""

    scores: dict[str, NDArray[np.float32]] = field(default_factory=dict)  # (held, items) each
    seconds: dict[str, float] = field(default_factory=dict)  # of the last fit
    models: dict[str, Ranker] = field(default_factory=dict)  # those fits that may not be repeated
    dropped: dict[str, str] = field(default_factory=dict)  # why others have no scores


def run_all(task: Task, specs: list[str], clock: Clock) -> Result:
    """Fit every candidate on everything."""
    found = Result()
    for number, spec in enumerate(specs):
        with clock.step(f"{spec}, {number + 1} of {len(specs)}", number):
            start = time.perf_counter()
            ranker = attempt(lambda spec=spec: task.fit(spec))  # type: ignore[misc]
            if isinstance(ranker, Dropped):  # a degree above what these rows allow, say
                found.dropped[spec] = f"{NOT_FITTED}: {ranker.reason}"
                continue
            seconds = time.perf_counter() - start
            scores = attempt(lambda ranker=ranker: task.scores(ranker))  # type: ignore[misc]
            if isinstance(scores, Dropped):
                found.dropped[spec] = f"{NOT_SCORED}: {scores.reason}"
                continue
            found.seconds[spec], found.scores[spec] = seconds, scores
    return found
