"""A race of candidates against the clock: fits on growing samples of users where time is short."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from recsys._jit import compiling
from recsys.rankers._candidates import NOT_FITTED, NOT_SCORED, Result, Task
from recsys.rankers._clock import Clock, OutOfTime
from recsys.rankers._standardised import fitted
from recsys.rankers._weight_search import criterion, find_weights
from recsys.rankers.base import Ranker
from recsys.utils.attempts import Dropped, attempt
from recsys.utils.memory import free_memory
from recsys.utils.spec import parse_spec

SHARES = (1 / 64, 1 / 16, 1 / 4)  # of the interactions, in each sample; the first tells the time only
LEAST_LIKES = (1_000, 8_000, 8_000)  # in each sample
KEPT = 6  # candidates that reach the end of a race at least, and parts that a blend may have
MARGIN = 1.2  # by which a fit may take longer than foreseen
SCALES = 0.25  # least share of a fit's time that is taken to grow with the interactions
AT_ONCE = 0.05  # share of the budget that a fit on everything may take without having been judged
SETTLING = 0.35  # share of it for all of these
PROBING = 0.1  # share of it for one fit on everything that a sample foretells to be longer
SAMPLING = 0.25  # share of what is left that a sample may take once candidates have been judged
SEARCHING = 0.1  # share of the budget that finding the weights may take
COMPILING = 0.5  # share of it that compiling may take before anything is measured
FEW = 0.02  # of the interactions hidden: parts that were fitted without them are as good as fitted again
QUICK = "popularity"  # fitted where there was no time to measure any
CHEAP = (QUICK, "msdw", "cf-komd")  # rankers of which one candidate each is fitted before all others
ROOM = 0.25  # of the memory that is free: what models which stay in it may take
STOPPED = "its fit was stopped"
TOO_LATE = "there was no time left to try it"


def refitting(task: Task, found: Result, more: Collection[float] = ()) -> float:
    """Return the seconds that fitting `KEPT` parts again will take, as what was fitted, or `more`, took.

    Where few interactions were hidden, parts stay as they were fitted, but for those that were not kept.
    """
    if task.hidden_share() <= FEW:
        gone = found.seconds.keys() - found.models.keys()
        return MARGIN * sum(found.seconds[spec] for spec in gone)
    seconds = [*found.seconds.values(), *more]
    return MARGIN * KEPT * float(np.mean(seconds)) if seconds else 0.0


def cheap(specs: Collection[str]) -> list[str]:
    """Return the candidates that are fitted first: one of each ranker of `CHEAP`, of the linear kernel.

    With recency where one of them has it.

    Examples
    --------
    >>> cheap(["cf-komd:kernel=hp", "cf-komd", "cf-komd:recency=1", "ease", "popularity"])
    ['popularity', 'cf-komd:recency=1']
    """
    found = []
    for name in CHEAP:
        own = [(spec, parse_spec(spec)) for spec in specs]
        linear = [(spec, given) for spec, (one, given) in own if one == name and "kernel" not in given]
        linear.sort(key=lambda one: "recency" not in one[1])
        found += [spec for spec, _ in linear[:1]]
    return found


class Race:
    """Successive halving of candidates within a time budget, until the rest can be fitted on all data.

    Candidates are fitted on samples of 1/64, 1/16 and 1/4 of the interactions, as many as needed. The
    time of the first fit predicts that of a fit on everything, in proportion to the interactions. Where
    the number of items dominates the cost, time grows less; a fit on everything shows this, and is then
    expected of other candidates of the same ranker. So after the first sample the quick candidates are
    fitted on everything, the quickest first; often these are all. The others are raced: two samples
    predict a time of a + b × interactions. While all that are left would take too long, the better half
    continues, at least `KEPT`: first the parts of the best blend of a sample, then the others by the
    criterion. As soon as there is time for all that are left, or a larger sample would take too much of
    it, they are fitted on everything, in this order.
    """

    def __init__(self, task: Task, clock: Clock) -> None:
        self.task, self.clock, self.found = task, clock, Result()
        self.took: dict[str, list[tuple[int, float]]] = {}  # interactions and seconds of each fit
        self.scoring: dict[str, float] = {}  # seconds a held-out user
        self.growth: dict[str, float] = {}  # by ranker: of a fit, relative to the interactions
        self.room = int(ROOM * free_memory())
        self.judged = False
        self.bench: list[str] = []  # behind in the last halving, the best first

    def run(self, specs: list[str]) -> Result:
        """Return the fitted candidates, and the reasons why others were dropped."""
        # What takes little time comes first, before others are compiled: it is what is left where there
        # is none.
        first = cheap(specs)
        alive = [*first, *(spec for spec in specs if spec not in first)]
        total = self.task.train.nnz
        for spec in first:
            self._enter_early(spec, max(LEAST_LIKES[0], round(SHARES[0] * total)))
        for spec in alive:
            if spec not in self.took and self.clock.spent() < COMPILING * self.clock.budget:
                self._warm_up(spec)
        for number, (share, least) in enumerate(zip(SHARES, LEAST_LIKES, strict=True)):
            likes = max(least, round(share * total))
            if 2 * likes > total or len(alive) < 2:
                break
            if self.judged and self._sampling(alive, likes) > SAMPLING * self._spare():
                break
            what = f"{share:.1%} of the interactions"
            sample = self.task.sample(likes)
            scores = self._round(sample, alive, what, number > 0)
            alive = [spec for spec in alive if spec not in self.found.dropped]
            if number == 0:
                self._settle(alive)
            elif scores:
                self.judged = True
                alive = self._in_order(sample, scores, alive)
            if self._affordable(self._waiting(alive)):
                break
            if self.judged:
                alive = self._halved(alive, what)
        alive = self._waiting(alive)
        if not self.judged:
            alive.sort(key=self._whole)
        if alive or not self.found.scores:
            self._finish(alive or [min(self.took, key=self._whole, default=QUICK)])
        scores = self.found.scores  # as they were given: the first of equals is chosen
        self.found.scores = {spec: scores[spec] for spec in [*specs, QUICK] if spec in scores}
        return self.found

    def _enter_early(self, spec: str, likes: int) -> None:
        """Fit a cheap candidate on all data, unless a fit on `likes` interactions was slow."""
        if spec != QUICK and self.clock.spent() < COMPILING * self.clock.budget:
            self._warm_up(spec)
        if spec != QUICK and 2 * likes <= self.task.train.nnz:
            self._fit(self.task.sample(likes), spec, "a sample", self.clock.left() / 2)
        whole = MARGIN * self._whole(spec)
        if (
            spec == QUICK
            or spec in self.took
            and whole <= min(AT_ONCE * self.clock.budget, self._spare())
        ):
            self._enter(spec, np.inf if spec == QUICK else self._spare())
        if spec not in self.found.scores:  # it is raced with the others
            self.took.pop(spec, None)
            self.found.dropped.pop(spec, None)

    def _waiting(self, alive: list[str]) -> list[str]:
        """Return those that have not been fitted on everything."""
        return [spec for spec in alive if spec not in self.found.scores]

    def _settle(self, alive: list[str]) -> None:
        """Fit the quick ones on everything, and find out whether the others are as slow as they seem."""
        spent, failed = self.clock.spent(), False
        waiting = self._waiting(alive)
        while waiting:
            waiting.sort(key=self._whole)
            whole = [MARGIN * self._whole(spec) for spec in waiting]
            spare = self._spare() - self._again()
            early = self.clock.spent() - spent + whole[0] <= SETTLING * self.clock.budget
            quick = early and whole[0] <= AT_ONCE * self.clock.budget
            if whole[0] <= spare and (quick or sum(whole) <= spare):
                self._enter(waiting[0], spare)
            else:
                unknown = [spec for spec in waiting if parse_spec(spec)[0] not in self.growth]
                most = min(PROBING * self.clock.budget, spare)
                if failed or not unknown or MARGIN * self.took[unknown[0]][-1][1] > most:
                    return
                self._enter(unknown[0], most)
                failed = self.found.dropped.get(unknown[0], "").startswith(STOPPED)
                if failed:  # as slow as it seemed: it is raced
                    del self.found.dropped[unknown[0]]
                    self.growth[parse_spec(unknown[0])[0]] = 1.0
            waiting = self._waiting([spec for spec in waiting if spec not in self.found.dropped])

    def expected(self, spec: str, likes: int) -> float:
        """Return the predicted seconds of a fit on `likes` interactions."""
        took = self.took[spec]
        n, seconds = took[-1]
        growth = self.growth.get(parse_spec(spec)[0], 1.0)
        grown = seconds * likes / max(1, n)
        if len(took) == 1:
            return max(seconds, growth * grown)
        before, shorter = took[-2]
        slope = max(0.0, (seconds - shorter) / max(1, n - before))
        return max(seconds + slope * (likes - n), min(SCALES, growth) * grown, seconds)

    def _whole(self, spec: str) -> float:
        """Return the seconds that a candidate will take on everything, its scores among them."""
        if spec not in self.took:
            return 0.0  # never measured: data are few
        return self.expected(spec, self.task.train.nnz) + self.scoring.get(spec, 0.0) * len(
            self.task.held
        )

    def _sampling(self, alive: list[str], likes: int) -> float:
        """Return the predicted seconds of fits on `likes` interactions."""
        return sum(self.expected(spec, likes) for spec in alive if spec in self.took)

    def _affordable(self, waiting: list[str]) -> bool:
        """Return whether there is time for all, and to fit the parts again."""
        whole = [self._whole(spec) for spec in waiting]
        again = refitting(self.task, self.found, whole) if len(waiting) > KEPT else 0.0
        return MARGIN * sum(whole) + again <= self._spare()

    def _again(self) -> float:
        """Return the seconds that fitting the parts again will take, of what has been fitted."""
        return refitting(self.task, self.found)

    def _warm_up(self, spec: str) -> None:
        """Compile the code of a candidate by a fit on a few interactions, so that it is not timed."""
        R = self.task.train
        rows = np.argsort(-np.diff(R.indptr), kind="stable")[:30]
        items = np.argsort(-np.bincount(R.indices, minlength=R.shape[1]), kind="stable")[:40]
        corner = R[rows][:, np.sort(items)]
        most = COMPILING * self.clock.budget - self.clock.spent()
        with suppress(OutOfTime), self.clock.step(f"{spec}, compiling", most=most):
            attempt(  # the samples will tell whether it can be fitted
                lambda: fitted(spec, corner).scores(np.arange(1), corner[:1], recalculate_user=True)
            )

    def _round(
        self, task: Task, specs: list[str], what: str, judged: bool
    ) -> dict[str, NDArray[np.float32]]:
        """Fit on a sample, take the times, and return the scores if they are to be judged."""
        scores = {}
        for spec in specs:
            # Half of what is left: a fit that takes it on a sample takes too long on everything.
            spare = self.clock.left() / 2
            settled = spec in self.found.scores  # it is in, and here to be compared with
            if settled and not judged:
                continue
            if not settled and spare <= 0:
                self.found.dropped[spec] = TOO_LATE
                continue
            if not settled and spec in self.took and self.expected(spec, task.train.nnz) > spare:
                self._drop_slow(spec, what, self.expected(spec, task.train.nnz), spare)
                continue
            if not judged and (alike := self._slow_kin(spec)):
                self.took[spec] = [alike]
                continue
            ranker = self._fit(task, spec, what, spare)
            if settled:
                self.found.dropped.pop(spec, None)
            if ranker is None or not judged:
                continue
            start = self.clock.now()
            found = self._scores(task, spec, ranker)
            if found is not None:
                scores[spec] = found
                self.scoring[spec] = self.clock.since(start) / len(task.held)
        return scores

    def _slow_kin(self, spec: str) -> tuple[int, float] | None:
        """Return (interactions, seconds) of a long fit of this ranker with other parameters, or None."""
        least = AT_ONCE / 2 * self.clock.budget
        name = parse_spec(spec)[0]
        kin = [took[-1] for one, took in self.took.items() if parse_spec(one)[0] == name]
        return max((took for took in kin if took[1] >= least), key=lambda took: took[1], default=None)

    def _fit(self, task: Task, spec: str, what: str, most: float) -> Ranker | None:
        """Return a candidate fitted within `most` seconds, or None and record the reason."""
        start = self.clock.now()
        try:
            with compiling() as compiled, self.clock.step(f"{spec} on {what}", most=most):
                ranker = attempt(lambda: task.fit(spec))
        except OutOfTime:
            self.found.dropped[spec] = f"{STOPPED} after {self.clock.since(start):.1f} s"
            return None
        if isinstance(ranker, Dropped):
            self.found.dropped[spec] = f"{NOT_FITTED}: {ranker.reason}"
            return None
        seconds = max(1e-4, self.clock.since(start) - compiled.seconds)
        self.took.setdefault(spec, []).append((task.train.nnz, seconds))
        return ranker

    def _scores(self, task: Task, spec: str, ranker: Ranker) -> NDArray[np.float32] | None:
        """Return a candidate's scores, or None and keep the reason."""
        found = attempt(lambda: task.scores(ranker))
        if isinstance(found, Dropped):
            self.found.dropped[spec] = f"{NOT_SCORED}: {found.reason}"
            return None
        return found

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
        others = [spec for spec in alive if spec not in parts]
        return parts + sorted(others, key=lambda spec: -alone.get(spec, -np.inf))

    def _halved(self, alive: list[str], what: str) -> list[str]:
        """Return the better half, without those that could never be fitted in time."""
        waiting = self._waiting(alive)
        kept = [spec for spec in alive if spec not in waiting]
        most, self.bench = len(kept) + max(KEPT, len(waiting) // 2), []
        for spec in waiting:
            whole, spare = self._whole(spec), self._spare()
            if MARGIN * whole > spare:
                self._drop_slow(spec, "everything", whole, spare)
            elif len(kept) >= most:
                place = alive.index(spec) + 1
                self.found.dropped[spec] = f"it was number {place} of {len(alive)} on {what}"
                self.bench.append(spec)
            else:
                kept.append(spec)
        return kept

    def _finish(self, alive: list[str]) -> None:
        """Fit on everything, the best first, while there is time; if there is nothing yet, the fastest.

        Where none was judged, the fastest come first. Where time is left then, those that the last
        halving left behind come, too.
        """
        last = ""
        if not self.found.scores and all(MARGIN * self._whole(spec) > self._spare() for spec in alive):
            alive = sorted(alive, key=self._whole)
            last = alive[0]
        for spec in alive:
            self.found.dropped.pop(spec, None)
            kept = self.found.scores.keys() <= self.found.models.keys()
            whole, spare = self._whole(spec), self._spare() - (0.0 if kept else self._again())
            if MARGIN * whole > spare and spec != last:
                self._drop_slow(spec, "everything", whole, spare)
                continue
            self._enter(spec, np.inf if spec == last else spare)
        for spec in self.bench:
            # What is left of the time fits the parts again, on all interactions, before it tries others.
            spare = self._spare() - self._again()
            if 2 * MARGIN * self._whole(spec) <= spare:
                self._enter(spec, spare)
        for spec in [*alive, QUICK]:
            if not self.found.scores:  # what was to be fitted could not be
                self._enter(spec, np.inf)

    def _enter(self, spec: str, most: float) -> None:
        """Fit a candidate on everything, and keep its scores of the held-out interactions."""
        ranker = self._fit(self.task, spec, "everything", most)
        if ranker is None:
            return
        scores = self._scores(self.task, spec, ranker)
        if scores is None:
            return
        self.found.dropped.pop(spec, None)
        (first, sampled), (everything, seconds) = self.took[spec][0], self.took[spec][-1]
        if everything > first:
            name, grown = parse_spec(spec)[0], sampled * everything / first
            self.growth[name] = max(self.growth.get(name, 0.0), seconds / grown)
        self.found.seconds[spec] = seconds
        self.found.scores[spec] = scores
        size = sum(array.nbytes for array in ranker.get_state().arrays.values())
        if size <= self.room:
            self.room -= size
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
