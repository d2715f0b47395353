"""Long work off the page: jobs on threads with progress and cancel, built once for all sessions."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

from recsys import InputError

KEPT = 12  # finished jobs: fitted rankers and reports


class Cancelled(Exception):
    """Raised inside a job whose user pressed cancel."""


class Job:
    """A function running on a thread of its own.

    Attributes
    ----------
    text, done, total
        Latest progress.
    error : str or None
        One sentence, when it failed.
    """

    def __init__(self, work: Callable[[Callable[[str, int, int], None]], Any]) -> None:
        self.text, self.done, self.total = "starting", 0, 0
        self.error: str | None = None
        self.result: Any = None
        self._stop, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[Callable[[str, int, int], None]], Any]) -> None:
        try:
            self.result = work(self._progress)
        except Cancelled:
            self.error = "cancelled"
        except InputError as error:
            self.error = str(error)
        except MemoryError:
            self.error = "out of memory: choose a smaller dataset or another model"
        except Exception as error:  # noqa: BLE001 - a page shows one sentence, whatever happened
            self.error = f"{type(error).__name__}: {error}"
        finally:
            self._over.set()

    def _progress(self, text: str, done: int, total: int) -> None:
        if self._stop.is_set():
            raise Cancelled
        self.text, self.done, self.total = text, done, total

    @property
    def over(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self._over.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait for the end at most so long; return whether it has come."""
        return self._over.wait(seconds)

    def cancel(self) -> None:
        """Ask it to stop at its next progress report."""
        self._stop.set()


class Jobs:
    """Jobs by key: whoever asks first starts one, everybody gets the same.

    A failed job is forgotten once it has been read, so that it can be tried again. The
    least recently used results are dropped.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: OrderedDict[Hashable, Job] = OrderedDict()

    def get(self, key: Hashable, work: Callable[[Callable[[str, int, int], None]], Any]) -> Job:
        """Return the job of this key, starting it if there is none."""
        with self._lock:
            job = self._jobs.get(key)
            if job is None:
                job = self._jobs[key] = Job(work)
            self._jobs.move_to_end(key)
            for old in [k for k, j in self._jobs.items() if j.over][: max(0, len(self._jobs) - KEPT)]:
                del self._jobs[old]
            return job

    def forget(self, key: Hashable) -> None:
        """Drop a job, so that it is started anew when asked for."""
        with self._lock:
            self._jobs.pop(key, None)
