"""What the campaigns over HTTP share: a model, the service as a process, and requests."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd

from benchmarks.lab.http_load import get, post
from recsys.data import Interactions
from recsys.rankers import Bundle, fit_bundle, make_ranker

USERS, ITEMS = 3000, 2000


def bundle(name: str = "ease", seed: int = 0) -> Bundle:
    """Return a fitted ranker over invented likes of a few dozen each, a few items much liked."""
    rng = np.random.default_rng(seed)
    liked = (ITEMS * rng.random((USERS, 40)) ** 2).astype(int)
    pairs = pd.DataFrame({
        "user_id": [f"u{k}" for k in np.repeat(np.arange(USERS), 40)],
        "item_id": [f"i{k}" for k in liked.ravel()],
    })  # fmt: skip
    return fit_bundle(make_ranker(name), Interactions.from_frame(pairs), show_progress=False)


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
    """`recsys serve` in a process of its own.

    Attributes
    ----------
    address : (host, port)
    said : path
        What it wrote to stderr.
    """

    def __init__(self, model: Path, folder: Path, *options: str) -> None:
        self.said = folder / "service.err"
        command = [sys.executable, "-c", "from recsys.cli import run; run()", "serve"]
        command += ["--ranker", str(model), "--port", "0", *options]
        with self.said.open("wb") as err:
            self.process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=err, start_new_session=True,
                env=os.environ | {"NUMBA_NUM_THREADS": "1"},
            )  # fmt: skip
        self.address = ("127.0.0.1", self._port())

    def _port(self) -> int:
        until = time.monotonic() + 300
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
            self.process.kill()
            self.process.wait()

    def memory(self) -> int:
        """Bytes that it holds."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def ask(self, request: bytes, wait: float = 10.0) -> tuple[int, float]:
        """Return the status of one answer on a connection of its own, 0 for none, and its seconds."""
        started = time.perf_counter()
        status = 0
        try:
            with socket.create_connection(self.address, timeout=wait) as connection:
                connection.sendall(request)
                got = connection.recv(4096)
                status = int(got[9:12]) if got.startswith(b"HTTP/1.1 ") else 0
        except (OSError, ValueError):
            pass
        return status, time.perf_counter() - started

    def healthy(self) -> bool:
        """Whether /health answers within ten seconds."""
        return self.ask(get("/health"))[0] == 200

    def faults(self) -> str:
        """Return what its log holds beside its address."""
        lines = [line for line in self.said.read_text().splitlines() if "serving" not in line]
        return "; ".join(lines)[-300:]


class Probe:
    """Asks /health every 50 ms in a thread; the longest answer."""

    def __init__(self, service: Service) -> None:
        import threading

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
