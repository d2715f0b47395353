"""Ray's workers: of a cluster that runs, or started on this machine."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from recsys.engines.base import Engine, check_same, installed, run_far
from recsys.engines.folders import OwnFolder
from recsys.errors import InputError

PATIENCE = 10  # seconds for an address to answer
START = 60  # seconds for a cluster's first worker, which imports this package
STORE = 256_000_000  # bytes of shared memory for results; models are mapped files and never there
MOST_FOLDER = 20  # characters
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # 0: one machine, on every system; read at import
TOKENS = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
LEFT = ("RAY_CLIENT_MODE", "RAY_USAGE_STATS_ENABLED")  # Ray sets them and leaves them
PORT, CLIENT_PORT = "6379", "10001"  # usual ones: of a cluster's head, of its server for clients
CLIENT = "ray://"

_token: str | None = None  # one a process: Ray keeps the first that it has read


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
        If Ray is not installed, nothing answers at the address, or its workers cannot do units.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        self.name = "ray" if address is None else f"ray={address}"
        self._folder: OwnFolder | None = None
        self._mine = False
        before = {name: os.environ.get(name) for name in (*TOKENS, LOOPBACK, *LEFT)}
        if address is None and "ray" not in sys.modules:
            os.environ[LOOPBACK] = "0"
        try:
            import ray
        except ImportError:
            _restore(before)
            raise InputError("engine ray needs Ray: pip install 'recsys[ray]'") from None
        self._ray, self._before = ray, before
        signals = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
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
            if threading.current_thread() is threading.main_thread():
                for number, handler in signals.items():  # Ray's own print where the program was
                    if handler is not None:
                        signal.signal(number, handler)
            self._check(started_here=self._mine and address is None)
        except BaseException:
            self.close()
            raise

    def _init(self, address: str | None, workers: int | None) -> None:
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        if address is None:
            if not any(os.environ.get(name) for name in TOKENS):
                os.environ["RAY_AUTH_TOKEN"] = _own_token()  # it would write one to the home
                _forget_token(self._ray)
            # names of sockets are short, and Ray's take most of one
            short = (
                "/tmp" if len(tempfile.gettempdir()) > MOST_FOLDER and os.path.isdir("/tmp") else None
            )
            self._folder = OwnFolder("recsys-ray-", short)
            quiet |= {
                "num_cpus": workers or os.cpu_count() or 1, "include_dashboard": False,
                "_node_ip_address": "127.0.0.1", "object_store_memory": STORE,
                "_temp_dir": self._folder.path,
            }  # fmt: skip
        else:
            _knock(self.name, address)
        try:
            self._ray.init(address=address or "local", **quiet)
        except (
            OSError,
            RuntimeError,
            ValueError,
            AssertionError,
            self._ray.exceptions.RayError,
        ) as error:
            told = " ".join(str(error).split())[:160]
            raise InputError(f"engine {self.name} cannot be used: {told}") from None

    def _check(self, started_here: bool) -> None:
        """Refuse a cluster that would keep units for ever, or whose workers lack this package."""
        ray = self._ray
        self.workers = int(ray.cluster_resources().get("CPU", 0))
        if self.workers < 1:
            raise InputError(f"engine {self.name}: its machines offer no processors: start some that do")
        if started_here:
            return
        try:
            found = ray.get(ray.remote(num_cpus=0)(installed).remote(), timeout=START)
        except ray.exceptions.GetTimeoutError:
            raise InputError(f"engine {self.name}: no worker began within {START} s") from None
        except (ray.exceptions.RayError, ImportError) as error:
            told = str(error).strip().splitlines()
            raise InputError(
                f"engine {self.name}: a worker cannot run recsys {installed()['recsys']}: "
                f"{told[-1][:160] if told else type(error).__name__}"
            ) from None
        check_same({"of the cluster": found})

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
        mine, self._mine = self._mine, False
        try:
            if mine:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self._ray.shutdown()
        finally:  # also where closing is interrupted
            _restore(self._before)
            if mine:
                _forget_token(self._ray)
            if self._folder is not None:
                self._folder.remove()


def _own_token() -> str:
    global _token
    _token = _token or secrets.token_hex(32)
    return _token


def _forget_token(ray: Any) -> None:
    """Let Ray look for its token again: the next cluster of this process may have another."""
    with suppress(Exception):  # no public name of Ray's; without it the token of ours stays the same
        ray._raylet.AuthenticationTokenLoader.instance().reset_cache()


def _restore(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _knock(name: str, address: str) -> None:
    """Refuse an address where no cluster answers: Ray itself tries for minutes, and tells at length."""
    if address == "auto":
        return
    place = address.removeprefix(CLIENT)
    host, _, port = place.rpartition(":")
    if not port.isdecimal():
        host, port = place, CLIENT_PORT if place != address else PORT
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
    except (OSError, OverflowError, UnicodeError) as error:
        told = getattr(error, "strerror", None) or str(error)
        raise InputError(f"engine {name}: nothing answers there: {told}") from None
    if place != address:
        return
    ask = (sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", f"{host}:{port}")
    try:
        done = subprocess.run(ask, capture_output=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        raise InputError(f"engine {name}: no cluster answers there within {PATIENCE} s") from None
    if done.returncode:
        raise InputError(f"engine {name}: what answers there is no cluster of this Ray, or refuses")
