"""Dask's workers: of a cluster that runs, or started on this machine."""

from __future__ import annotations

import asyncio
import logging
import os
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from recsys.engines.base import Engine, check_same, installed, run_far
from recsys.engines.folders import OwnFolder
from recsys.errors import InputError

PATIENCE = 10  # seconds for an address to answer, and for its first worker
CLOSING = 5  # seconds that workers of our own get to end by themselves
NOISY = ("distributed", "tornado.application", "asyncio", "bokeh")


class DaskEngine(Engine):
    """Workers of Dask; those that died are replaced by Dask, and their units done again.

    Parameters
    ----------
    address : str, optional
        Of a scheduler, such as tcp://10.0.0.5:8786. When not given, processes are started that this
        machine alone can reach, one thread each and without a dashboard; they end with this one.
    workers : int ≥ 1, optional
        How many to start: one a core when not given.

    Raises
    ------
    InputError
        If Dask is not installed, nothing answers at the address, or a worker has other versions.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        try:
            import distributed
        except ImportError:
            raise InputError("engine dask needs Dask: pip install 'recsys[dask]'") from None
        self.name = "dask" if address is None else f"dask={address}"
        self._cluster: Any = None
        self._client: Any = None
        self._folder: OwnFolder | None = None
        self._levels = {name: logging.getLogger(name).level for name in NOISY}
        for name in NOISY:  # what goes wrong comes as an error, once
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of versions and ports: those that matter are compared
                if address is None:
                    self._start(distributed, workers or os.cpu_count() or 1)
                self._connect(distributed, address)
            self._check()
        except BaseException:
            self.close()
            raise

    def _start(self, distributed: Any, workers: int) -> None:
        import dask

        self._folder = OwnFolder("recsys-dask-")
        folder = self._folder.path
        # the scheduler, too, has a folder, from which modules may be imported: not one for everybody
        with dask.config.set({"temporary-directory": folder}):
            self._cluster = distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1",
                dashboard_address=None, worker_dashboard_address=None,
                # its pages of health stay, at a port that is free
                scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                # a mapped model counts in full for each worker, though they share it: no limit
                memory_limit=None, local_directory=folder, silence_logs=logging.CRITICAL + 1,
            )  # fmt: skip

    def _connect(self, distributed: Any, address: str | None) -> None:
        if address is not None:
            self._knock(distributed, address)
        self._client = distributed.Client(
            self._cluster or address, timeout=PATIENCE, set_as_default=False
        )
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise InputError(f"engine {self.name}: its scheduler has no workers: start some") from None

    def _knock(self, distributed: Any, address: str) -> None:
        """Refuse an address where no scheduler answers: a client would wait for one that is silent."""

        async def ask() -> Any:
            ways = distributed.Security().get_connection_args("client")
            async with distributed.rpc(address, connection_args=ways) as scheduler:
                return await scheduler.identity()

        async def bounded() -> Any:
            return await asyncio.wait_for(ask(), PATIENCE)

        try:
            with ThreadPoolExecutor(1) as aside:  # a notebook's own thread has a loop already
                answer = aside.submit(asyncio.run, bounded()).result()
            if answer["type"] != "Scheduler":
                raise ValueError(f"a {answer['type']} does")
        except Exception as error:  # what answers may be anything
            told = str(error).splitlines()[0][:120] if str(error) else f"not within {PATIENCE} s"
            raise InputError(f"engine {self.name}: no scheduler answers there: {told}") from None

    def _check(self) -> None:
        found = self._client.run(installed, on_error="return")
        for worker, told in found.items():
            if isinstance(told, Exception):
                raise InputError(
                    f"worker {worker} cannot run recsys {installed()['recsys']}: "
                    f"{type(told).__name__}: {str(told).splitlines()[0][:120] if str(told) else ''}"
                )
        check_same(found)
        self.workers = len(found)

    def _results(
        self, task: Callable[[Any], Any], units: Sequence[Any], threads: int | None
    ) -> Iterator[tuple[Any, float]]:
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        running = deque(
            self._client.map(
                run_far, [task] * len(units), list(units), threads=threads, versions=installed(),
                pure=False,
            )
        )  # fmt: skip
        one: Any = None
        try:
            while running:
                one = running.popleft()
                found = one.result()
                one = None  # let go of
                yield found
        except KilledWorker:
            raise InputError(
                f"engine {self.name}: workers that were given one unit ended, one after another (out of "
                "memory?); what is written stays: run it again, with fewer workers"
            ) from None
        except (CancelledError, CommClosedError, TimeoutError):
            if one is not None and one.status == "error":  # the task's own
                raise
            raise InputError(
                f"engine {self.name}: its scheduler is gone; what is written stays: run it again"
            ) from None
        finally:
            with suppress(Exception):
                self._client.cancel(list(running))

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        client, cluster, self._client, self._cluster = self._client, self._cluster, None, None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for one in (client, cluster):
                    with suppress(OSError, TimeoutError):
                        if one is not None:
                            one.close(timeout=CLOSING)
        finally:  # also where closing is interrupted
            if self._folder is not None:
                self._folder.remove()
            for name, level in self._levels.items():
                logging.getLogger(name).setLevel(level)
