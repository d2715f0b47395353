"""Long work off the page: jobs on threads with progress and cancel, shared by all sessions."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from recsys import InputError
from recsys.utils.progress import listening

CANCELLED = "cancelled"
KEPT_SHARE = 0.2  # of the machine's memory, for finished results of all sessions
ENTRY = 8_000  # bytes that a result of no arrays counts as: threads, texts and keys
SPARED = 60.0  # seconds
DEEPEST = 6  # levels of objects in which arrays are looked for

Progress = Callable[[str, float, int], None]


class Cancelled(BaseException):
    """Raised inside a job whose user pressed cancel. No `except Exception` on its way holds it up."""


class Job:
    """A function running on a thread of its own.

    Parameters
    ----------
    work : callable
        Called as work(progress); progress(step, done, total) raises `Cancelled` when it shall stop.
        What `recsys.utils.progress.report` says inside is heard, too.
    text : str
        What it does, as it is shown: "Fitting ease".
    delay : float
        Seconds to wait before it begins; a cancel ends them at once.

    Attributes
    ----------
    step : str
        Where it is.
    done, total : int
        Steps over, and steps there are; 0 of 0 while unknown.
    error : str or None
        One sentence, when it failed; "cancelled" as soon as it is cancelled.
    result
        What the work returned.
    size : int
        Bytes of the result's arrays.
    used : float
        When it was last asked for, on the clock of `time.monotonic`.
    """

    def __init__(self, work: Callable[[Progress], Any], text: str = "", delay: float = 0.0) -> None:
        self.text, self.step, self.done, self.total = text, "", 0.0, 0
        self.error: str | None = None
        self.result: Any = None
        self.size = 0
        self.began, self.ended = time.monotonic(), 0.0
        self.used = self.began
        self._first: tuple[float, float] | None = None  # when, and at which share, it first told
        self._stop, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(work, delay), daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[Progress], Any], delay: float) -> None:
        result, error = None, None
        try:
            if self._stop.wait(delay):
                raise Cancelled
            with listening(self._progress):
                result = work(self._progress)
        except Cancelled:
            error = CANCELLED
        except InputError as found:
            error = str(found)
        except MemoryError:
            error = "Out of memory: choose a smaller dataset or another model."
        except Exception as found:  # noqa: BLE001 - a page shows one sentence, whatever happened
            error = f"{type(found).__name__}: {found}"
        if not self._stop.is_set():
            self.result, self.error = result, error
            self.size = size_of(result)
        self.ended = time.monotonic()
        self._over.set()

    def _progress(self, step: str, done: float, total: int) -> None:
        if self._stop.is_set():
            raise Cancelled
        self.step, self.done, self.total = step, done, total
        if total and self._first is None:
            self._first = (time.monotonic(), done / total)

    @property
    def over(self) -> bool:
        """Whether there is nothing to wait for: it has ended, or was cancelled."""
        return self._over.is_set() or self._stop.is_set()

    @property
    def running(self) -> bool:
        """Whether its thread still works, if only until it hears that it was cancelled."""
        return not self._over.is_set()

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._stop.is_set()

    @property
    def share(self) -> float:
        """How much of it is done, 0 to 1."""
        return min(self.done / self.total, 1.0) if self.total else 0.0

    @property
    def seconds(self) -> float:
        """For how long it has run."""
        return (self.ended or time.monotonic()) - self.began

    @property
    def left(self) -> float | None:
        """Seconds to go, by its pace since its first report; None while there is no telling."""
        if self._first is None:
            return None
        since, at = self._first
        gone = time.monotonic() - since
        if gone < 1.0 or self.share <= at:
            return None
        return gone * (1.0 - self.share) / (self.share - at)

    def wait(self, seconds: float) -> bool:
        """Wait for the end at most so long; return whether it has come."""
        return self.over or self._over.wait(seconds) or self.over

    def cancel(self) -> None:
        """Cancel: the job is over at once, and its thread stops at its next report."""
        if not self._over.is_set():
            self.error = CANCELLED
            self._stop.set()


class Jobs:
    """Jobs by key: the first call starts one, later calls with its key get the same.

    A failed job is forgotten once it has been read, so that it can be tried again. Results are kept
    while they fit into memory set aside for them; those unused for longest go first.

    Parameters
    ----------
    most : int or None
        Bytes of results to keep; None is a fifth of the machine's memory.
    alive : callable
        Whether a session is still there: who has closed the page waits for nothing.
    spared : float
        Seconds since it was asked for in which a result is kept, whatever its size.
    """

    def __init__(
        self,
        most: int | None = None,
        alive: Callable[[str], bool] = lambda session: True,
        spared: float = SPARED,
    ) -> None:
        self._alive, self.spared = alive, spared
        self.most = int(KEPT_SHARE * _memory()) if most is None else most
        self._lock = threading.Lock()
        self._jobs: OrderedDict[Hashable, Job] = OrderedDict()
        # The sessions that asked for a job, each with its browser.
        self._wanted: dict[Hashable, dict[str, str]] = {}

    def get(
        self,
        key: Hashable,
        work: Callable[[Progress], Any],
        text: str = "",
        session: str = "",
        browser: str = "",
        delay: float = 0.0,
    ) -> Job:
        """Return the job of this key, starting it if there is none or it was cancelled.

        One that is started waits `delay` seconds before it works.
        """
        with self._lock:
            job = self._jobs.get(key)
            if job is None or job.cancelled:
                job = self._jobs[key] = Job(work, text, delay)
                self._wanted[key] = {}
            self._jobs.move_to_end(key)
            wanted = self._wanted[key]
            for other in [one for one in wanted if not self._alive(one)]:
                del wanted[other]  # its page was closed
            wanted[session] = browser
            job.used = time.monotonic()
            self._drop()
            return job

    def find(self, key: Hashable) -> Job | None:
        """Return the job of this key, if there is one."""
        with self._lock:
            return self._jobs.get(key)

    def of(self, session: str, browser: str = "") -> dict[Hashable, Job]:
        """Return the unfinished jobs that a session has asked for, or its browser before a reload."""
        with self._lock:
            return {
                key: job
                for key, job in self._jobs.items()
                if not job.over
                and (session in self._wanted[key] or (browser in self._wanted[key].values() and browser))
            }

    def leave(self, key: Hashable, session: str) -> None:
        """Say that a session no longer waits for a job: it is cancelled when no other session does."""
        with self._lock:
            job, wanted = self._jobs.get(key), self._wanted.get(key, {})
            wanted.pop(session, None)
            if job is not None and not any(self._alive(other) for other in wanted):
                job.cancel()

    def forget(self, key: Hashable) -> None:
        """Drop a job, so that it is started anew when asked for."""
        with self._lock:
            self._jobs.pop(key, None)
            self._wanted.pop(key, None)

    def _drop(self) -> None:
        total = sum(job.size + ENTRY for job in self._jobs.values())
        now = time.monotonic()
        for key, job in list(self._jobs.items()):
            if total <= self.most:
                return
            # What a page has just asked for is kept: its next run asks for it again, after all else.
            if job.over and now - job.used > self.spared:
                total -= job.size + ENTRY
                del self._jobs[key], self._wanted[key]


def size_of(found: Any) -> int:
    """Return the bytes of the arrays and texts that an object holds, each counted once."""
    seen: set[int] = set()

    def of(one: Any, depth: int) -> int:
        if id(one) in seen or depth > DEEPEST or one is None:
            return 0
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            base = one.base
            if isinstance(base, np.ndarray):
                return of(base, depth)
            return one.nbytes + (64 * one.size if one.dtype == object else 0)
        if isinstance(one, (str, bytes)):
            return sys.getsizeof(one)
        if isinstance(one, dict):
            return sum(of(value, depth + 1) for value in one.values())
        if isinstance(one, (list, tuple, set, frozenset)):
            if len(one) > 100 and isinstance(next(iter(one)), (str, int, float)):
                return 64 * len(one)
            return sum(of(value, depth + 1) for value in one)
        if hasattr(one, "memory_usage"):
            used = one.memory_usage(deep=False)
            return int(used if np.isscalar(used) else used.sum())
        held = getattr(one, "__dict__", None)
        slots = [getattr(one, name, None) for name in getattr(type(one), "__slots__", ())]
        return of(held, depth + 1) + of(slots, depth + 1) if held or slots else 0

    return of(found, 0)


def _memory() -> int:
    """Return the machine's memory in bytes, 4 GB where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 4_000_000_000
