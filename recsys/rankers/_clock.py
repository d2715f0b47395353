"""Seconds spent and left of a budget, told as progress, and an end to what takes too long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context

import numpy as np

from recsys.utils.progress import listening, report


class OutOfTime(Exception):
    """A fit has been stopped: it took longer than there was time."""


class Clock:
    """Seconds spent and left, and the progress that tells them.

    There may be a budget by the clock, and another, `processor`, of processor seconds of this process,
    all its threads together; `budget` is then the smaller of both. `steps` are of progress, where there
    is no budget.
    """

    def __init__(self, budget: float | None, steps: int = 1, processor: float | None = None) -> None:
        self._most = tuple(np.inf if most is None else float(most) for most in (budget, processor))
        self.budget = min(self._most)
        self.steps, self.start = steps, self.now()

    def now(self) -> tuple[float, float]:
        """Return the clock and the processor seconds, which are 0 where they are not limited."""
        limited = np.isfinite(self._most[1])
        return time.perf_counter(), time.process_time() if limited else 0.0

    def since(self, start: tuple[float, float]) -> float:
        """Return the seconds since `now` was `start`: the more of those that are limited."""
        passed = [now - then for now, then in zip(self.now(), start, strict=True)]
        limited = [seconds for seconds, most in zip(passed, self._most, strict=True) if most < np.inf]
        return max(limited, default=passed[0])

    def spent(self) -> float:
        """Return the seconds of the budget that are spent."""
        return self.budget - self.left() if np.isfinite(self.budget) else self.since(self.start)

    def left(self) -> float:
        """Return the seconds left of the budget that ends first, below 0 when it is late."""
        passed = (now - then for now, then in zip(self.now(), self.start, strict=True))
        return min(most - seconds for most, seconds in zip(self._most, passed, strict=True))

    @contextmanager
    def step(
        self, text: str, done: float = 0.0, part: float = 1.0, most: float = np.inf
    ) -> Iterator[None]:
        """Report a step and the steps within it; with a budget, also the share that is spent.

        Without a budget `done` steps are before it, and it is `part` of one. Its first report after
        `most` seconds raises `OutOfTime`.
        """
        start = self.now()

        def told(text: str, done: float) -> None:
            if np.isfinite(self.budget):
                done, steps = min(self.spent(), self.budget), int(np.ceil(self.budget))
            else:
                steps = self.steps
            report(text, done, steps)
            if self.since(start) > most:
                raise OutOfTime

        told(text, done)
        outer = copy_context()

        def inner(its: str, k: float, n: int) -> None:
            outer.run(told, f"{text}, {its}", done + (part * k / n if n else 0.0))

        with listening(inner):
            yield
