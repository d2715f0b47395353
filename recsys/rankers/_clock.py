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

    Parameters
    ----------
    budget : float, optional
        In seconds; no end without one.
    steps : int
        Of progress, where there is no budget that it is a share of.
    """

    def __init__(self, budget: float | None, steps: int = 1) -> None:
        self.budget = np.inf if budget is None else float(budget)
        self.steps, self.start = steps, time.perf_counter()

    def spent(self) -> float:
        """Return the seconds since the start."""
        return time.perf_counter() - self.start

    def left(self) -> float:
        """Return the seconds left of the budget, below 0 when it is late."""
        return self.budget - self.spent()

    @contextmanager
    def step(
        self, text: str, done: float = 0.0, part: float = 1.0, most: float = np.inf
    ) -> Iterator[None]:
        """Report a step, and what it reports itself: with a budget, how much of it is spent.

        Parameters
        ----------
        done, part : float
            Steps before it, and how much of one it is, where there is no budget.
        most : float
            Seconds after which its next report raises `OutOfTime`.
        """
        end = time.perf_counter() + most

        def told(text: str, done: float) -> None:
            if np.isfinite(self.budget):
                done, steps = min(self.spent(), self.budget), int(np.ceil(self.budget))
            else:
                steps = self.steps
            report(text, done, steps)
            if time.perf_counter() > end:
                raise OutOfTime

        told(text, done)
        outer = copy_context()

        def inner(its: str, k: float, n: int) -> None:
            outer.run(told, f"{text}, {its}", done + (part * k / n if n else 0.0))

        with listening(inner):
            yield
