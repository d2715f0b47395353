"""A race of candidates against the clock: fits on growing samples of users where time is short."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from recsys._jit import compiling
from recsys.errors import FitError, InputError
from recsys.rankers._candidates import Result, Task
from recsys.rankers._clock import Clock, OutOfTime
from recsys.rankers._standardised import fitted
from recsys.rankers._weight_search import criterion, find_weights
from recsys.rankers.base import Ranker

SHARES = (1 / 64, 1 / 16, 1 / 4)  # of the likes, in each sample; the first tells the time only
LEAST_LIKES = (1_000, 8_000, 8_000)  # in each sample
KEPT = 6  # candidates that reach the end of a race, and stay in memory
MARGIN = 1.2  # by which a fit may take longer than foreseen
SCALES = 0.25  # a fit grows with the likes by this share of itself at least
SEARCHING = 0.1  # share of the budget that finding the weights may take
COMPILING = 0.5  # share of it that compiling may take before anything is measured
QUICK = "popularity"  # fitted where there was no time to measure any
ROOM = 2_000_000_000  # bytes that models which stay in memory may take, of all pairs of items
TOO_LATE = "there was no time left to try it"


class Race:
    """Candidates against the clock: halved on samples until the rest can be fitted on everything.

    Each is fitted on samples of 1/64, 1/16 and 1/4 of the likes, as far as need be. What two samples
    took foretells what everything will take, as a + b × likes. While all that are left would take too
    long, the better half goes on, `KEPT` at least: first the parts of the best blend of a sample, then
    the others by the criterion. As soon as there is time for all that are left, they are fitted on
    everything.

    Parameters
    ----------
    task : Task
    clock : Clock
    """

    def __init__(self, task: Task, clock: Clock) -> None:
        self.task, self.clock, self.found = task, clock, Result()
        self.took: dict[str, list[tuple[int, float]]] = {}  # likes and seconds of each fit
        self.scoring: dict[str, float] = {}  # seconds a held-out user
        self.judged = False
        self.bench: list[str] = []  # behind in the last halving, the best first

    def run(self, specs: list[str]) -> Result:
        """Return what came through."""
        # What takes no time to fit comes first: it is what is left where there is none.
        alive = sorted(specs, key=lambda spec: spec != QUICK)
        total = self.task.train.nnz
        for spec in alive:
            if self.clock.spent() < COMPILING * self.clock.budget:
                self._warm_up(spec)
        for number, (share, least) in enumerate(zip(SHARES, LEAST_LIKES, strict=True)):
            likes = max(least, round(share * total))
            if 2 * likes > total or len(alive) < 2:
                break
            what = f"{share:.1%} of the likes"
            sample = self.task.sample(likes)
            scores = self._round(sample, alive, what, number > 0)
            alive = [spec for spec in alive if spec not in self.found.dropped]
            if number > 0 and scores:
                self.judged = True
                alive = self._in_order(sample, scores, alive)
                if self._affordable(alive):
                    break
                alive = self._halved(alive, what)
        if not self.judged:
            alive.sort(key=self._whole)
        self._finish(alive or [min(self.took, key=self._whole, default=QUICK)])
        return self.found

    def expected(self, spec: str, likes: int) -> float:
        """Return the seconds that a fit on so many likes will take."""
        took = self.took[spec]
        n, seconds = took[-1]
        grown = seconds * likes / max(1, n)
        if len(took) == 1:
            return grown
        before, shorter = took[-2]
        slope = max(0.0, (seconds - shorter) / max(1, n - before))
        return max(seconds + slope * (likes - n), SCALES * grown, seconds)

    def _whole(self, spec: str) -> float:
        """Return the seconds that a candidate will take on everything, its scores among them."""
        if spec not in self.took:
            return 0.0  # never measured: data are few
        return self.expected(spec, self.task.train.nnz) + self.scoring.get(spec, 0.0) * len(
            self.task.held
        )

    def _affordable(self, alive: list[str]) -> bool:
        """Return whether there is time for all, and to fit the parts again."""
        whole = [MARGIN * self._whole(spec) for spec in alive]
        again = 0.0 if len(alive) <= KEPT else sum(sorted(whole)[-KEPT:])
        return sum(whole) + again <= self.clock.left() - SEARCHING * self.clock.budget

    def _warm_up(self, spec: str) -> None:
        """Compile what a candidate runs, on a corner of the likes, so that it is not timed."""
        R = self.task.train
        rows = np.argsort(-np.diff(R.indptr), kind="stable")[:30]
        items = np.argsort(-np.bincount(R.indices, minlength=R.shape[1]), kind="stable")[:40]
        corner = R[rows][:, np.sort(items)]
        try:
            most = COMPILING * self.clock.budget - self.clock.spent()
            with self.clock.step(f"{spec}, compiling", most=most):
                fitted(spec, corner).scores(np.arange(1), corner[:1])
        except (FitError, InputError, OutOfTime):  # the samples will tell
            pass

    def _round(
        self, task: Task, specs: list[str], what: str, judged: bool
    ) -> dict[str, NDArray[np.float32]]:
        """Fit on a sample, take the times, and return the scores if they are to be judged."""
        scores = {}
        for spec in specs:
            # Half of what is left: a fit that takes it on a sample takes too long on everything.
            spare = self.clock.left() / 2
            if spare <= 0:
                self.found.dropped[spec] = TOO_LATE
                continue
            if spec in self.took and self.expected(spec, task.train.nnz) > spare:
                self._drop_slow(spec, what, self.expected(spec, task.train.nnz), spare)
                continue
            ranker = self._fit(task, spec, what, spare)
            if ranker is None or not judged:
                continue
            start = time.perf_counter()
            scores[spec] = task.scores(ranker)
            self.scoring[spec] = (time.perf_counter() - start) / len(task.held)
        return scores

    def _fit(self, task: Task, spec: str, what: str, most: float) -> Ranker | None:
        """Return a candidate fitted within so many seconds, or None and keep the reason."""
        start = time.perf_counter()
        try:
            with compiling() as compiled, self.clock.step(f"{spec} on {what}", most=most):
                ranker = task.fit(spec)
        except (FitError, InputError) as error:
            self.found.dropped[spec] = f"it could not be fitted: {error}"
            return None
        except OutOfTime:
            self.found.dropped[spec] = f"its fit was stopped after {time.perf_counter() - start:.1f} s"
            return None
        seconds = max(1e-4, time.perf_counter() - start - compiled.seconds)
        self.took.setdefault(spec, []).append((task.train.nnz, seconds))
        return ranker

    def _in_order(
        self, sample: Task, scores: dict[str, NDArray[np.float32]], alive: list[str]
    ) -> list[str]:
        """Return those left, the parts of their best blend first, then by themselves."""
        held = sample.held_out(scores)
        with self.clock.step("comparing"):
            parts = list(find_weights(held, KEPT, lambda: self.clock.left() < self.clock.budget / 2))
        zero = np.zeros(1, dtype=np.float32)
        alone = {
            spec: float(criterion(np.nanmean(held.figures(block, block, zero), axis=0))[0])
            for spec, block in held.scores.items()
        }
        return parts + sorted((spec for spec in alive if spec not in parts), key=lambda s: -alone[s])

    def _halved(self, alive: list[str], what: str) -> list[str]:
        """Return the better half, without those that could never be fitted in time."""
        kept: list[str] = []
        self.bench = []
        for place, spec in enumerate(alive):
            whole, spare = self._whole(spec), self.clock.left() - SEARCHING * self.clock.budget
            if MARGIN * whole > spare:
                self._drop_slow(spec, "everything", whole, spare)
            elif len(kept) >= max(KEPT, len(alive) // 2):
                self.found.dropped[spec] = f"it was number {place + 1} of {len(alive)} on {what}"
                self.bench.append(spec)
            else:
                kept.append(spec)
        return kept

    def _finish(self, alive: list[str]) -> None:
        """Fit on everything, the best first, while there is time; at least the fastest.

        Where none was judged, the fastest come first, and none is dropped for want of room: data are
        few. Where time is left then, those that the last halving left behind come, too.
        """
        again = self._affordable(alive) and len(alive) > KEPT  # time to fit parts again, no room for all
        room = max(KEPT, ROOM // (8 * self.task.train.shape[1] ** 2))
        if all(MARGIN * self._whole(spec) > self._spare() for spec in alive):
            alive = sorted(alive, key=self._whole)
            last = alive[0]
        else:
            last = ""
        for spec in alive:
            self.found.dropped.pop(spec, None)
            whole, spare = self._whole(spec), self._spare()
            if again:
                spare -= sum(sorted(self.found.seconds.values())[-KEPT:])
            if MARGIN * whole > spare and spec != last:
                self._drop_slow(spec, "everything", whole, spare)
                continue
            if not again and self.judged and len(self.found.scores) >= room:
                self.found.dropped[spec] = f"there is room for {room} in a race"
                continue
            self._enter(spec, np.inf if spec == last else spare, again)
        for spec in self.bench:
            # What is left of the time fits the parts again, on all likes, before it tries others.
            spare = self._spare() - MARGIN * sum(sorted(self.found.seconds.values())[-KEPT:])
            fits = not again and len(self.found.scores) < room
            if fits and 2 * MARGIN * self._whole(spec) <= spare:
                self._enter(spec, spare, again)
        for spec in [*alive, QUICK]:
            if not self.found.scores:  # what was to be fitted could not be
                self._enter(spec, np.inf, again=False)

    def _enter(self, spec: str, most: float, again: bool) -> None:
        """Fit a candidate on everything, and keep what it says of the hidden likes."""
        ranker = self._fit(self.task, spec, "everything", most)
        if ranker is None:
            return
        self.found.dropped.pop(spec, None)
        self.found.seconds[spec] = self.took[spec][-1][1]
        self.found.scores[spec] = self.task.scores(ranker)
        if not again:
            self.found.models[spec] = ranker

    def _spare(self) -> float:
        """Return the seconds left beside the search for weights."""
        return self.clock.left() - SEARCHING * self.clock.budget

    def _drop_slow(self, spec: str, what: str, seconds: float, spare: float) -> None:
        self.found.dropped[spec] = (
            f"its fit on {what} would take about {seconds:.2g} s of the {spare:.2g} s there are"
            if spare > 0
            else TOO_LATE
        )
