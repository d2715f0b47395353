"""Dask's workers: of a cluster that runs, or started on this machine."""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import Any

from recsys.engines.base import Engine, installed, run_far, without_package
from recsys.errors import InputError
from recsys.utils.extras import install_hint

PATIENCE = 10  # seconds for an address to answer, and for its first worker
CLOSING = 5  # seconds that workers of our own get to end by themselves


class DaskEngine(Engine):
    """Workers of Dask; those that died are replaced by Dask, and their units done again.

    The address is of a scheduler, such as tcp://10.0.0.5:8786. Without one, processes are started that
    this machine alone can reach, one a core if not told otherwise, one thread each and without a
    dashboard; they end with this one.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        try:
            import distributed
        except ImportError:
            raise InputError(f"engine dask needs Dask: {install_hint('dask')}") from None
        self.name = "dask" if address is None else f"dask={address}"
        self._cluster: Any = None
        self._client: Any = None
        self._folder: Any = None
        self._logger = logging.getLogger("distributed")
        self._level = self._logger.level
        self._logger.setLevel(logging.CRITICAL + 1)  # what goes wrong comes as an error, once
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of versions and ports: those that matter are compared
                if address is None:
                    self._start(distributed, workers or os.cpu_count() or 1)
                else:
                    _check_scheduler(distributed, address)
                self._client = distributed.Client(
                    self._cluster or address, timeout=PATIENCE, set_as_default=False
                )
                self._client.wait_for_workers(1, timeout=PATIENCE)
            self.workers = len(self._client.scheduler_info(n_workers=-1)["workers"])
        except BaseException as error:
            connected = self._client is not None
            self.close()
            if not isinstance(error, (OSError, ValueError, TypeError)):
                raise
            told = str(error).splitlines()[0][:120] if str(error) else f"not within {PATIENCE} s"
            why = f"no scheduler answers there: {told}"
            if connected:
                why = "its scheduler has no workers: start some"
            raise InputError(f"engine {self.name}: {why}") from None

    def _start(self, distributed: Any, workers: int) -> None:
        import dask

        self._folder = tempfile.TemporaryDirectory(prefix="recsys-dask-", ignore_cleanup_errors=True)
        folder = self._folder.name
        # the scheduler, too, has a folder, from which modules may be imported: not one that all users
        # may write to
        with dask.config.set({"temporary-directory": folder}):
            self._cluster = distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1",
                dashboard_address=None, worker_dashboard_address=None,
                # its pages of health stay, at a port that is free
                scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                # a mapped model counts in full for each worker, though they share it: no limit
                memory_limit=None, local_directory=folder, silence_logs=logging.CRITICAL + 1,
            )  # fmt: skip

    def _results(
        self, task: Callable[[Any], Any], units: Sequence[Any], threads: int | None
    ) -> Iterator[tuple[Any, float]]:
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        futures = self._client.map(
            run_far, [task] * len(units), list(units), threads=threads, versions=installed(), pure=False
        )
        try:
            yield from self._in_order(futures, lambda one: one.result())
        except ImportError as error:
            raise without_package(self.name, error) from None
        except KilledWorker:
            raise InputError(
                f"engine {self.name}: workers that were given one unit ended, one after another (out of "
                "memory?); what is written stays: run it again, with fewer workers"
            ) from None
        except (CancelledError, CommClosedError):
            raise InputError(
                f"engine {self.name}: its scheduler is gone; what is written stays: run it again"
            ) from None

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        mine, self._client, self._cluster = (self._client, self._cluster), None, None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for one in mine:
                    if one is not None:
                        one.close(timeout=CLOSING)
        except (OSError, TimeoutError):
            pass  # a worker that does not answer is killed with its cluster
        finally:  # also where closing is interrupted
            if self._folder is not None:
                self._folder.cleanup()
            self._logger.setLevel(self._level)


def _check_scheduler(distributed: Any, address: str) -> None:
    """Raise an error unless a scheduler answers in time; a client would wait without end."""

    async def ask() -> Any:
        arguments = distributed.Security().get_connection_args("client")
        async with distributed.rpc(address, connection_args=arguments) as scheduler:
            return await scheduler.identity()

    async def bounded() -> Any:
        return await asyncio.wait_for(ask(), PATIENCE)

    with ThreadPoolExecutor(1) as aside:  # a notebook's own thread has a loop already
        answer = aside.submit(asyncio.run, bounded()).result()
    if answer["type"] != "Scheduler":
        raise ValueError(f"a {answer['type']} does")
