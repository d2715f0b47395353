"""What candidates of a blend are fitted on and measured by, and how all of them are."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import FitError, InputError
from recsys.rankers._clock import Clock
from recsys.rankers._held_out import HeldOut
from recsys.rankers._standardised import add_standardised, fitted
from recsys.rankers._ties import tie_order
from recsys.rankers.base import Ranker

JUDGES = 200  # held-out users who judge on a sample


@dataclass
class Task:
    """What candidates are fitted on and measured by.

    Parameters
    ----------
    train : (users, items) CSR
        All likes but the hidden ones.
    times : (users, items) CSR, optional
        When they happened.
    held : (held,) int64
        The users of whom some are hidden.
    test : (held, items) CSR
        These.
    seed : int
    ties : str, optional
        The blend's.
    """

    train: sp.csr_matrix
    times: sp.csr_matrix | None
    held: NDArray[np.int64]
    test: sp.csr_matrix
    seed: int
    ties: str | None = None

    def sample(self, likes: int) -> Task:
        """Return the task with so many likes, of whole users, `JUDGES` held-out ones at least."""
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
            _masked(self.train, mask), None if self.times is None else _masked(self.times, mask), first,
            self.test[judges], self.seed, self.ties,
        )  # fmt: skip

    def hidden_share(self) -> float:
        """Return the share of the likes that is hidden."""
        return float(self.test.nnz / max(1, self.train.nnz + self.test.nnz))

    def fit(self, spec: str) -> Ranker:
        """Return a candidate, fitted."""
        return fitted(spec, self.train, self.times)

    def scores(self, ranker: Ranker) -> NDArray[np.float32]:
        """Return its standardised scores of the held-out users' rows, as a blend asks for them."""
        block = np.zeros(self.test.shape, dtype=np.float32)
        timed = {} if self.times is None else {"times": self.times[self.held]}
        scores = ranker.scores(self.held, self.train[self.held], recalculate_user=True, **timed)
        add_standardised(block, scores, 1.0)
        return block

    def held_out(self, scores: dict[str, NDArray[np.float32]]) -> HeldOut:
        """Return what weights are found on."""
        return HeldOut(self.train[self.held], self.test, scores, self.seed, self.prior())

    def prior(self) -> NDArray[np.float64] | None:
        """Return what orders items of equal scores, as the blend will."""
        if self.ties is None:
            return None
        users = np.bincount(self.train.indices, minlength=self.train.shape[1])
        return tie_order(users.astype(np.float32)).rank


@dataclass
class Result:
    """What a race found.

    Attributes
    ----------
    scores : dict of str to (held, items) float32
        Of the candidates that came through.
    seconds : dict of str to float
        What the last fit of each took.
    models : dict of str to Ranker
        Those fits themselves, where there is no time to repeat them.
    dropped : dict of str to str
        Why others did not.
    """

    scores: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    models: dict[str, Ranker] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)


def run_all(task: Task, specs: list[str], clock: Clock) -> Result:
    """Fit every candidate on everything."""
    found = Result()
    for number, spec in enumerate(specs):
        with clock.step(f"{spec}, {number + 1} of {len(specs)}", number):
            start = time.perf_counter()
            try:
                ranker = task.fit(spec)
            except (FitError, InputError) as error:  # a degree above what these rows allow
                found.dropped[spec] = f"it could not be fitted: {error}"
                continue
            found.seconds[spec] = time.perf_counter() - start
            found.scores[spec] = task.scores(ranker)
    return found


def _masked(R: sp.csr_matrix, mask: NDArray[np.bool_]) -> sp.csr_matrix:
    """Return some of the entries."""
    indptr = np.concatenate([[0], np.cumsum(mask)])[R.indptr]
    return sp.csr_matrix((R.data[mask], R.indices[mask], indptr), R.shape)
