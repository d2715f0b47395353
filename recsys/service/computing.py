"""Computation of answers: a few threads behind a short queue."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from time import thread_time
from typing import Any

from recsys.errors import RecsysError
from recsys.service.background import Background

# Seconds that a request may queue: SHORT_WAIT, or PATIENCE times the time that it takes itself.
SHORT_WAIT = 0.015
GROUPED_WAIT = 0.05  # of what is computed together: the more of it waits, the less each of it takes
PATIENCE = 3.0
TOGETHER = 16  # requests of one kind that are computed in one call, at most
SMOOTHING = 0.1  # of the newest request in the mean seconds of its kind, exponentially smoothed
FIRST_TAKES = 0.001  # seconds, until it is known
OUTLIER = 4.0  # times what is expected, that a single request counts for at most


class Overloaded(RecsysError):
    """There is more to compute than a request may wait for."""


@dataclass(eq=False, slots=True)
class Job:
    """One request's computation."""

    kind: str  # requests of one kind take about equally long
    group: Hashable  # jobs of one group can be computed in one call; None is alone
    # from the arguments of several jobs to as many results
    compute: Callable[[Sequence[Any]], Sequence[Any]]
    argument: Any
    answer: asyncio.Future[Any]  # of the event loop
    # seconds of a processor: those of the clock would grow with the load, and fewer would be taken the
    # more there are
    expected: float


class Line:
    """State shared by the threads of one event loop."""

    def __init__(self) -> None:
        self.jobs: deque[Job] = deque()
        self.changed = threading.Condition()
        self.ended = False


class Computing:
    """Threads that compute what requests ask for, so that the event loop is free to answer others.

    What waits is counted when it arrives, in requests and in seconds. A request that would wait longer
    than `short_wait`, and longer than `PATIENCE` times what its kind takes, is refused at once: under
    any load those that are taken are answered soon, and the others know soon that they are not. What is
    computed together may wait for `GROUPED_WAIT`. At most `at_once` requests are computed or wait
    (`in_flight`).

    The clock of what a request takes is the thread's processor time, as the clock on the wall counts
    others' work, too. What waits for a database takes none: pass `time.monotonic`. The background is
    told what the loops of the threads raised.

    All but `_work` runs in the event loop's thread.
    """

    def __init__(
        self,
        threads: int,
        at_once: int,
        short_wait: float = SHORT_WAIT,
        clock: Callable[[], float] = thread_time,
        background: Background | None = None,
    ) -> None:
        self.threads, self.at_once, self.short_wait, self.clock = threads, at_once, short_wait, clock
        self.background = background or Background()
        self.in_flight = 0
        self._seconds = 0.0  # that what is in flight is expected to take
        self._taken: dict[str, float] = {}
        self._grouped: set[str] = set()  # kinds that are computed together
        self._line = Line()
        self._loop: asyncio.AbstractEventLoop | None = None

    def full(self, kind: str) -> bool:
        """Return whether another request of a kind, or of all that begin so, would wait too long."""
        if self.in_flight >= self.at_once:
            return True
        own = max((t for k, t in self._taken.items() if k.startswith(kind)), default=FIRST_TAKES)
        # As if there were one thread: how much of the work can be done side by side is not known.
        grouped = any(one.startswith(kind) for one in self._grouped)
        wait = max(self.short_wait, GROUPED_WAIT) if grouped else self.short_wait
        return self._seconds > max(wait, PATIENCE * own)

    async def one(self, kind: str, compute: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of a function called in a thread; `Overloaded` if it would wait too long."""
        return await self._run(kind, None, _alone, (compute, arguments))

    async def together(
        self,
        kind: str,
        group: Hashable,
        compute: Callable[[Sequence[Any]], Sequence[Any]],
        argument: Any,
    ) -> Any:
        """Return a function's result for one of its arguments; those of a group that wait share a call.

        `compute` returns as many results as it is given arguments of one group. `Overloaded` as of
        `one`.
        """
        self._grouped.add(kind)
        return await self._run(kind, group, compute, argument)

    async def _run(
        self,
        kind: str,
        group: Hashable,
        compute: Callable[[Sequence[Any]], Sequence[Any]],
        argument: Any,
    ) -> Any:
        if self.full(kind):
            raise Overloaded("too many requests at once")
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._begin(loop)
        job = Job(
            kind, group, compute, argument, loop.create_future(), self._taken.get(kind, FIRST_TAKES)
        )
        self.in_flight += 1
        self._seconds += job.expected
        with self._line.changed:
            self._line.jobs.append(job)
            self._line.changed.notify()
        return await job.answer

    def stop(self) -> None:
        """Let the threads end when nothing waits; the next request begins anew."""
        with self._line.changed:
            self._line.ended = True
            self._line.changed.notify_all()
        self._loop = None

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self.stop()  # of another event loop, if there was one
        self._loop, self._line = loop, Line()
        self.in_flight, self._seconds = 0, 0.0
        for _ in range(self.threads):
            threading.Thread(target=self._work, args=(loop, self._line), daemon=True).start()

    def _work(self, loop: asyncio.AbstractEventLoop, line: Line) -> None:
        while (jobs := self._next(line)) is not None:
            results: list[Any] = [RuntimeError("a thread that computes has failed")] * len(jobs)
            spent = 0.0
            with self.background.guard("computing"):
                started = self.clock()
                results = computed(jobs)
                spent = self.clock() - started
            try:
                loop.call_soon_threadsafe(self._answer, jobs, results, spent)
            except RuntimeError:  # the loop was closed meanwhile
                return

    def _next(self, line: Line) -> list[Job] | None:
        """Return a job and those behind it that can be computed in the same call; None is the end."""
        with line.changed:
            while not line.jobs:
                if line.ended:
                    return None
                line.changed.wait()
            jobs = [line.jobs.popleft()]
            group = jobs[0].group
            # What waits is shared among the threads.
            most = min(TOGETHER, 1 + len(line.jobs) // self.threads)
            while group is not None and len(jobs) < most and line.jobs[0].group == group:
                jobs.append(line.jobs.popleft())
            return jobs

    def _answer(self, jobs: list[Job], results: list[Any], spent: float) -> None:
        each = spent / len(jobs)
        for job, result in zip(jobs, results, strict=True):
            self.in_flight -= 1
            self._seconds -= job.expected
            if not isinstance(result, BaseException):  # what is refused takes nothing
                before = self._taken.get(job.kind, FIRST_TAKES)
                self._taken[job.kind] = before + SMOOTHING * (min(each, OUTLIER * before) - before)
        for job, result in zip(jobs, results, strict=True):
            if job.answer.cancelled():
                continue
            if isinstance(result, BaseException):
                job.answer.set_exception(result)
            else:
                job.answer.set_result(result)
        if not self.in_flight:
            self._seconds = 0.0  # no drift of sums


def computed(jobs: Sequence[Job]) -> list[Any]:
    """Return the results of jobs of one group, or what computing raised, for each its own."""
    try:
        results = list(jobs[0].compute([job.argument for job in jobs]))
        if len(results) != len(jobs):
            raise RuntimeError(f"{len(results)} answers to {len(jobs)} requests")
        return results
    except BaseException as error:  # the thread goes on, whatever happens to one request
        if len(jobs) > 1:
            return [found for job in jobs for found in computed([job])]
        return [RuntimeError(repr(error)) if isinstance(error, StopIteration) else error]


def _alone(calls: Sequence[Any]) -> list[Any]:
    return [compute(*arguments) for compute, arguments in calls]
