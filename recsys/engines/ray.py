"""Ray's workers: of a cluster that runs, or started on this machine."""

from __future__ import annotations

import logging
import os
import socket
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from recsys.engines.base import Engine, installed, run_far, without_package
from recsys.errors import InputError
from recsys.utils.extras import install_hint

PATIENCE = 10  # seconds for an address to answer
STORE = 256_000_000  # bytes of shared memory for results; models are mapped files and never there
MOST_FOLDER = 20  # characters: names of sockets are short, and Ray's take most of one
CLIENT = "ray://"
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # 0: one machine, on every system; read at import
PORT, CLIENT_PORT = "6379", "10001"  # usual ones: of a cluster's head, of its server for clients


class RayEngine(Engine):
    """Workers of Ray; those that died are replaced by Ray, and their units done again.

    A program that called `ray.init` itself has its cluster used, and left as it is. The address is
    HOST:PORT of a cluster's head, ray://HOST:PORT, or auto. Without one, processes are started that this
    machine alone can reach, one a core if not told otherwise, without a dashboard; they end with this
    one.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        self.name = "ray" if address is None else f"ray={address}"
        self._kept = os.environ.get(LOOPBACK)
        if address is None:
            os.environ[LOOPBACK] = "0"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of releases to come
                import ray
        except ImportError:
            self._restore()
            raise InputError(f"engine ray needs Ray: {install_hint('ray')}") from None
        self._ray = ray
        self._folder: Any = None
        self._mine = not ray.is_initialized()
        if not self._mine and address is not None:
            raise InputError(
                f"engine {self.name}: this program is connected to a cluster of Ray: name it ray, or "
                "call ray.shutdown() first"
            )
        try:
            if self._mine:
                self._init(address, workers)
            self.workers = int(ray.cluster_resources().get("CPU", 0))
            if self.workers < 1:
                raise InputError(
                    f"engine {self.name}: its machines offer no processors: start some that do"
                )
        except BaseException:
            self.close()
            raise

    def _init(self, address: str | None, workers: int | None) -> None:
        how: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        if address is None:
            long = len(tempfile.gettempdir()) > MOST_FOLDER and os.path.isdir("/tmp")
            self._folder = tempfile.TemporaryDirectory(
                prefix="recsys-ray-", dir="/tmp" if long else None, ignore_cleanup_errors=True
            )
            how |= {
                "num_cpus": workers or os.cpu_count() or 1, "include_dashboard": False,
                "_node_ip_address": "127.0.0.1", "object_store_memory": STORE,
                "_temp_dir": self._folder.name,
            }  # fmt: skip
        else:
            _check_reachable(self.name, address)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._ray.init(address=address or "local", **how)
        except Exception as error:  # Ray has many kinds
            told = " ".join(str(error).split())[:160]
            raise InputError(f"engine {self.name} cannot be used: {told}") from None

    def _results(
        self, task: Callable[[Any], Any], units: Sequence[Any], threads: int | None
    ) -> Iterator[tuple[Any, float]]:
        ray = self._ray
        far = ray.remote(num_cpus=1)(run_far)
        try:
            futures = [far.remote(task, unit, threads, installed()) for unit in units]
            yield from self._in_order(futures, ray.get)
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, (ImportError, ray.exceptions.RaySystemError)):
                raise without_package(self.name, error.cause) from None
            if isinstance(error.cause, Exception):
                raise error.cause from None
            raise
        except (ray.exceptions.RayError, ConnectionError) as error:
            raise InputError(
                f"engine {self.name}: its workers ended before the work did "
                f"({type(error).__name__}; out of memory?); what is written stays: run it again, with "
                "fewer workers"
            ) from None

    def _cancel(self, future: Any) -> None:
        self._ray.cancel(future, force=False)

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        mine, self._mine = self._mine, False
        try:
            if mine:
                self._ray.shutdown()
        finally:  # also where closing is interrupted
            self._restore()
            if self._folder is not None:
                self._folder.cleanup()

    def _restore(self) -> None:
        os.environ.pop(LOOPBACK, None)
        if self._kept is not None:
            os.environ[LOOPBACK] = self._kept


def _check_reachable(name: str, address: str) -> None:
    """Refuse an address where nothing answers: Ray itself tries for minutes, and tells at length."""
    if address == "auto":
        return
    where = address.removeprefix(CLIENT)
    host, _, port = where.rpartition(":")
    if not port.isdecimal():
        host, port = where, PORT if where == address else CLIENT_PORT
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
    except (OSError, OverflowError, UnicodeError) as error:
        told = getattr(error, "strerror", None) or str(error)
        raise InputError(f"engine {name}: nothing answers there: {told}") from None
