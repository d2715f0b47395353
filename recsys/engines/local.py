"""The engines of one machine: this process, or a few of its own."""

from __future__ import annotations

import os
import queue
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from multiprocessing.util import Finalize
from typing import Any

from recsys.engines.base import Engine, run_unit
from recsys.errors import InputError

ENDED = (
    "a worker process ended before its work did (out of memory?); what is written stays: run it again, "
    "with fewer workers"
)
PATIENCE = 10.0  # seconds that a process has to end by itself when it has nothing more to do


class LocalEngine(Engine):
    """Runs units in this process, each when its result is asked for."""

    def _results(
        self, task: Callable[[Any], Any], units: Sequence[Any], threads: int | None
    ) -> Iterator[tuple[Any, float]]:
        for unit in units:
            yield run_unit(task, unit, threads)


class ProcessEngine(Engine):
    """Processes of this machine, started by spawn: a fork would not keep the threads of compiled code.

    Each process has a thread of this one and a pipe between the two, and shares neither lock nor queue
    with the others: one that is killed, at whatever moment, ends its pipe, and the thread that waits
    hears of it. (The standard library's pool may wait for ever: a unit that is submitted while the pool
    learns of a process's end is told to nobody.)

    Parameters
    ----------
    workers : int ≥ 1
    """

    def __init__(self, workers: int) -> None:
        self.name, self.workers = f"local={workers}", workers
        self._members = [_Worker() for _ in range(workers)]
        self._idle: queue.LifoQueue[_Worker] = queue.LifoQueue()  # one that was started is taken first
        for one in reversed(self._members):
            self._idle.put(one)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="worker")
        # An engine that nobody closes would be waited for at the program's end.
        self._dropped = Finalize(self, _end_all, args=(self._members,), exitpriority=10)

    def _results(
        self, task: Callable[[Any], Any], units: Sequence[Any], threads: int | None
    ) -> Iterator[tuple[Any, float]]:
        packed = [_packed(task, unit, threads) for unit in units]
        running = deque(self._threads.submit(self._run, one) for one in packed)
        del packed
        try:
            while running:
                yield running.popleft().result()  # and let go of
        finally:
            for one in running:
                one.cancel()

    def _run(self, packed: bytes) -> tuple[Any, float]:
        """Have one unit done by a process that is free: there is one, as there are as many threads."""
        worker = self._idle.get()
        try:
            done = worker.run(packed)
        except (EOFError, OSError):
            self._terminate()  # the units that wait are told the same, each by its own pipe
            raise InputError(ENDED) from None
        finally:
            self._idle.put(worker)
        found, error, told = ForkingPickler.loads(done)
        if error is not None:
            error.add_note(f"In a worker process:\n{told}")
            raise error
        return found

    def close(self) -> None:
        """End the processes, when the units that they are at are done."""
        self._threads.shutdown(cancel_futures=True)
        self._dropped()

    def __exit__(self, *raised: Any) -> None:
        """End the processes; those of a command that is interrupted also in the middle of a unit.

        To wait for it would take longer than a command has, and what it holds of the system would be
        left behind. What a unit writes is there whole or not at all.
        """
        kind = raised[0] if raised else None
        if kind is not None and not issubclass(kind, Exception):
            self._terminate()
        self.close()

    def _terminate(self) -> None:
        for one in self._members:
            one.terminate()


class _Worker:
    """A process and the pipe to it, from the first unit on; when either has ended, so has the other."""

    def __init__(self) -> None:
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._ended = False
        self._lock = threading.Lock()  # between who starts it and who ends it

    def run(self, packed: bytes) -> bytes:
        """Return what became of a unit.

        Raises
        ------
        EOFError, OSError
            If the process has ended.
        """
        pipe = self._pipe or self._start()
        pipe.send_bytes(packed)
        return pipe.recv_bytes()

    def _start(self) -> Connection:
        context = get_context("spawn")
        with self._lock:
            if self._ended:
                raise EOFError
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs,))
            with theirs:  # this side's copy: with it open, the end of the process would not be heard
                self._process.start()
            return self._pipe

    def terminate(self) -> None:
        """End the process in the middle of its unit; who waits for it hears of it."""
        with self._lock:
            self._ended = True
            if self._process is not None and self._process.is_alive():
                self._process.terminate()

    def dismiss(self) -> None:
        """Tell a process that has no unit that none comes."""
        with self._lock:
            self._ended = True
            if self._pipe is not None:
                self._pipe.close()

    def join(self) -> None:
        """Wait for the end of the process, and bring it about if it does not come."""
        if self._process is not None and self._process.pid is not None:
            self._process.join(PATIENCE)
            if self._process.is_alive():
                self._process.kill()
                self._process.join()


def _end_all(members: list[_Worker]) -> None:
    for one in members:
        one.dismiss()
    for one in members:
        one.join()


def _packed(task: Callable[[Any], Any], unit: Any, threads: int | None) -> bytes:
    try:
        return bytes(ForkingPickler.dumps((task, unit, threads)))
    except Exception as error:  # of whatever cannot be pickled
        why = " ".join(str(error).split())[:200]
        raise InputError(
            f"a unit of work cannot be sent to processes ({why}): tasks are functions of a module, "
            "units plain values"
        ) from None


def _serve(pipe: Connection) -> None:
    """Do the units that come, one after another, until the pipe ends: what a worker process is."""
    _end_with_parent()
    while True:
        try:
            packed = pipe.recv_bytes()
        except (EOFError, OSError):
            return
        pipe.send_bytes(_done(packed))


def _done(packed: bytes) -> bytes:
    """Return what became of a unit: what came out, or the error and where it arose."""
    try:
        task, unit, threads = ForkingPickler.loads(packed)
        return bytes(ForkingPickler.dumps((run_unit(task, unit, threads), None, "")))
    except BaseException as error:
        told = "".join(traceback.format_exception(error))
        try:
            failed = bytes(ForkingPickler.dumps((None, error, told)))
            ForkingPickler.loads(failed)  # an error may be sent and still not be made again of what was
            return failed
        except Exception:
            plain = RuntimeError(f"{type(error).__name__}: {error}")
            return bytes(ForkingPickler.dumps((None, plain, told)))


def _end_with_parent() -> None:
    """End this process when the one that started it is gone: killed, it could not say so.

    Ctrl-C goes to all processes of a terminal: it is the parent's to answer.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:

        def wait() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=wait, daemon=True, name="parent").start()
