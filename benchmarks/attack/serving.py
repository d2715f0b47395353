"""What the fuzz tests of the service share: a model, the service as a process, and requests."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd

from benchmarks.attack.common import members, noted, prepared_once
from benchmarks.lab import http_load
from recsys.data import Interactions
from recsys.rankers import ModelPackage, fit_package, make_ranker

USERS, ITEMS = 3000, 2000
HOST = b"Host: localhost\r\n"  # one that a service on this machine answers to
MOST_FILE = 1 << 28  # bytes of a file that the service may write
WORKERS = (1, 2)  # processes of a service: every fuzz test of the service runs with each


def get(path: str) -> bytes:
    """Return a request as it is sent."""
    return http_load.get(path)


def post(path: str, body: object) -> bytes:
    """Return a request as it is sent."""
    return http_load.post(path, body)


def model_file(name: str = "ease") -> Path:
    """Return the file of a fitted model, which is fitted once for all fuzz tests of a run."""
    return prepared_once(f"served-{name}", lambda path: package(name).save(path))


def package(name: str = "ease", seed: int = 0) -> ModelPackage:
    """Return a fitted ranker over invented likes of a few dozen each, a few items much liked."""
    rng = np.random.default_rng(seed)
    liked = (ITEMS * rng.random((USERS, 40)) ** 2).astype(int)
    pairs = pd.DataFrame({
        "user_id": [f"u{k}" for k in np.repeat(np.arange(USERS), 40)],
        "item_id": [f"i{k}" for k in liked.ravel()],
    })  # fmt: skip
    return fit_package(make_ranker(name), Interactions.from_frame(pairs), show_progress=False)


def known(count: int, random: Random) -> list[bytes]:
    """Return requests for lists of known users."""
    return [post("/recommend", {"user": f"u{random.randrange(USERS)}"}) for _ in range(count)]


def heavy(count: int, random: Random) -> list[bytes]:
    """Return requests that take long: a history, dislikes, a long and varied list."""
    found = []
    for _ in range(count):
        items = [f"i{k}" for k in random.sample(range(ITEMS // 4), 38)]
        body = {"history": items[:30], "dislikes": items[30:], "n": 100, "diversity": 0.3}
        found.append(post("/recommend", body))
    return found


class Service:
    """`recsys serve` in a process of its own, which runs the Python code `before` first.

    What it writes to stderr (`said`) and stdout (`told`) is in the folder.
    """

    def __init__(
        self,
        model: Path,
        folder: Path,
        *options: str,
        before: str = "",
        env: dict[str, str] | None = None,
    ) -> None:
        self.said, self.told = folder / "service.err", folder / "service.out"
        self.said.write_bytes(b"")
        command = [sys.executable, "-c", f"{before}\nfrom recsys.cli import run; run()", "serve"]
        command += ["--ranker", str(model), "--port", "0", *options]
        # No fault may fill the disk of the machine that looks for it.
        limit = (MOST_FILE, resource.getrlimit(resource.RLIMIT_FSIZE)[1])
        with self.said.open("ab") as err, self.told.open("ab") as out:
            self.process = subprocess.Popen(
                command, stdout=out, stderr=err, start_new_session=True,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
                env=os.environ | {"NUMBA_NUM_THREADS": "1"} | (env or {}),
            )  # fmt: skip
        noted(self.process.pid)
        try:
            self.address = ("127.0.0.1", self._port())
        except BaseException:
            self.kill()
            raise

    def _port(self) -> int:
        until = time.monotonic() + 120
        while time.monotonic() < until and self.process.poll() is None:
            found = re.search(r"serving .*:(\d+)", self.said.read_text())
            if found:
                return int(found[1])
            time.sleep(0.05)
        raise RuntimeError(f"the service did not start: {self.said.read_text()[-500:]}")

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            pass
        self.kill()

    def kill(self) -> None:
        """End every process of the service at once, as a power cut does."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        noted(self.process.pid, False)

    def processes(self) -> list[int]:
        """Return the ids of its processes that live, the first one's own among them."""
        return members(self.process.pid)

    def memory(self) -> int:
        """Bytes that its processes hold; what they share is counted in each."""
        found = 0
        for number in self.processes():
            with contextlib.suppress(OSError):
                found += int(Path(f"/proc/{number}/statm").read_text().split()[1])
        return found * os.sysconf("SC_PAGE_SIZE")

    def answers(
        self, request: bytes, wait: float = 10.0, count: int = 1, half_close: bool = False
    ) -> list[int]:
        """Return the statuses of up to `count` answers on a connection of its own.

        An answer before the last one (100 Continue) is none. What arrived before a reset is read.
        """
        until, got = time.monotonic() + wait, b""
        found: list[int] = []
        with contextlib.suppress(OSError), socket.create_connection(self.address, wait) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(request)
                if half_close:
                    connection.shutdown(socket.SHUT_WR)
            while len(found) < count and (left := until - time.monotonic()) > 0:
                connection.settimeout(left)
                given = connection.recv(1 << 16)
                if not given:
                    break
                got += given
                statuses = map(int, re.findall(rb"HTTP/1\.[01] (\d{3}) ", got))
                found = [status for status in statuses if status >= 200]
        return found

    def ask(self, request: bytes, wait: float = 10.0) -> tuple[int, float]:
        """Return the status of one answer on a connection of its own, 0 for none, and its seconds."""
        started = time.perf_counter()
        found = self.answers(request, wait)
        return (found[0] if found else 0), time.perf_counter() - started

    def healthy(self) -> bool:
        """Whether /health answers within ten seconds."""
        return self.ask(get("/health"))[0] == 200

    def faults(self, *expected: str) -> str:
        """Return what its log holds beside its address and lines that are expected."""
        told = self.said.read_text().splitlines()
        lines = [line for line in told if "serving" not in line and line not in expected]
        return "; ".join(lines)[-300:]


@contextlib.contextmanager
def running(model: Path, folder: Path, workers: int, *options: str, **more: object) -> Iterator[Service]:
    """Give a service of so many processes, all of which answer."""
    with Service(model, folder, "--workers", str(workers), *options, **more) as service:  # type: ignore[arg-type]
        until = time.monotonic() + 60
        while not service.healthy() and time.monotonic() < until:
            time.sleep(0.1)
        yield service


class Probe:
    """Asks /health every 50 ms in a thread; the longest answer."""

    def __init__(self, service: Service) -> None:
        self.service, self.times, self.failed = service, [0.0], 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def _ask(self) -> None:
        while not self._stop.wait(0.05):
            status, seconds = self.service.ask(get("/health"))
            self.times.append(seconds)
            self.failed += status != 200

    def __enter__(self) -> Probe:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
