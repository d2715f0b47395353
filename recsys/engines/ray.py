"""Ray's workers: of a cluster that runs, or started on this machine."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import socket
import sys
import tempfile
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from recsys.engines.base import Engine, installed, run_far
from recsys.errors import InputError

PATIENCE = 10  # seconds for an address to answer
STORE = 256_000_000  # bytes of shared memory for results; models are mapped files and never there
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # 0: one machine, on every system; read at import
TOKENS = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
USUAL = 6379  # the port of a cluster's head
CLIENT = "ray://"


class RayEngine(Engine):
    """Workers of Ray; those that died are replaced by Ray, and their units done again.

    A program that called `ray.init` itself has its cluster used, and left as it is.

    Parameters
    ----------
    address : str, optional
        HOST:PORT of a cluster's head, ray://HOST:PORT, or auto. When not given, processes are started
        that this machine alone can reach, without a dashboard and with a token of their own that no
        file holds; they end with this one.
    workers : int ≥ 1, optional
        How many to start: one a core when not given.

    Raises
    ------
    InputError
        If Ray is not installed, or nothing answers at the address.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        self.name = "ray" if address is None else f"ray={address}"
        self._folder: str | None = None
        self._mine = False
        before = {name: os.environ.get(name) for name in (*TOKENS, LOOPBACK)}
        if address is None and "ray" not in sys.modules:
            os.environ[LOOPBACK] = "0"
        try:
            import ray
        except ImportError:
            _restore(before)
            raise InputError("engine ray needs Ray: pip install 'recsys[ray]'") from None
        self._ray, self._before = ray, before
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of releases to come
                if not ray.is_initialized():
                    self._mine = True
                    self._init(address, workers)
                elif address is not None:
                    raise InputError(
                        f"engine {self.name}: this program is connected to a cluster of Ray: name it "
                        "ray, or call ray.shutdown() first"
                    )
            self.workers = max(1, int(ray.cluster_resources().get("CPU", 1)))
        except BaseException:
            self.close()
            raise

    def _init(self, address: str | None, workers: int | None) -> None:
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        if address is None:
            if not any(os.environ.get(name) for name in TOKENS):
                os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)  # it would write one to the home
            self._folder = tempfile.mkdtemp(prefix="recsys-ray-")
            self._ray.init(
                address="local", num_cpus=workers or os.cpu_count() or 1, include_dashboard=False,
                _node_ip_address="127.0.0.1", object_store_memory=STORE, _temp_dir=self._folder, **quiet,
            )  # fmt: skip
            return
        _knock(self.name, address)
        try:
            self._ray.init(address=address, **quiet)
        except (OSError, RuntimeError, ValueError, AssertionError) as error:
            told = " ".join(str(error).split())[:160]
            raise InputError(f"engine {self.name} cannot be used: {told}") from None

    def _results(
        self, task: Callable[[Any], Any], units: Sequence[Any], threads: int | None
    ) -> Iterator[tuple[Any, float]]:
        ray = self._ray
        far = ray.remote(num_cpus=1)(run_far)
        running = deque(far.remote(task, unit, threads, installed()) for unit in units)
        try:
            while running:
                yield ray.get(running.popleft())  # and let go of
        except ray.exceptions.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, InputError):
                raise cause from None
            raise (cause if isinstance(cause, Exception) else error) from error
        except ray.exceptions.RuntimeEnvSetupError as error:
            raise InputError(f"engine {self.name}: {' '.join(str(error).split())[:160]}") from None
        except (ray.exceptions.RayError, ConnectionError) as error:
            raise InputError(
                f"engine {self.name}: its workers ended before the work did "
                f"({type(error).__name__}; out of memory?); what is written stays: run it again, with "
                "fewer workers"
            ) from None
        finally:
            for one in running:
                with suppress(Exception):
                    ray.cancel(one, force=False)

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        if self._mine:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._ray.shutdown()
            self._mine = False
        _restore(self._before)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _restore(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _knock(name: str, address: str) -> None:
    """Refuse an address where nothing listens: Ray itself tries for minutes, and may end the process."""
    if address in ("auto", "local"):
        return
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    if not port.isdecimal():
        host, port = address.removeprefix(CLIENT), "10001" if address.startswith(CLIENT) else str(USUAL)
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
    except (OSError, OverflowError, UnicodeError) as error:
        told = getattr(error, "strerror", None) or str(error)
        raise InputError(f"engine {name}: nothing answers there: {told}") from None
