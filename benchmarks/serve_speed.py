"""`recsys serve` under 16 keep-alive clients on MovieLens 1M, N = 10, beside a bare endpoint.

The bare endpoint is FastAPI and the model's arithmetic, nothing else: the user's row lies ready, the
scores are computed, the liked are masked, ten are named. Client and server share the two cores.

python -m benchmarks.serve_speed [RANKER …]
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from pathlib import Path

import numpy as np

from benchmarks.lab.common import arguments, write_csv
from recsys import make_ranker
from recsys.datasets import load_dataset
from recsys.rankers import fit_package

CLIENTS = 16
SECONDS = 6.0
PORT = 8771
BARE = """
import numpy as np, uvicorn
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from recsys.rankers import load_package
from pydantic import BaseModel
class Request(BaseModel):
    user: str
app = FastAPI()
package = load_package(%r)
ranker, names = package.ranker, list(package.item_ids)
users = {str(u): k for k, u in enumerate(package.user_ids)}
rows = [package.user_items[k] for k in range(len(users))]
@app.get("/health")
async def health():
    return {}
@app.post("/recommend")
async def recommend(request: Request):
    user = users[request.user]
    scores = ranker.scores(user, rows[user])[0]
    scores[rows[user].indices] = -np.inf
    best = np.argpartition(-scores, 10)[:10]
    best = best[np.argsort(-scores[best])]
    return JSONResponse({"items": [{"item": names[k], "title": names[k], "score": float(scores[k])} for k in best]})
uvicorn.run(app, port=%d, log_level="warning")
"""


def start(command: list[str]) -> subprocess.Popen:
    """Start a server and wait until it answers."""
    process = subprocess.Popen(command, env=os.environ | {"NUMBA_NUM_THREADS": "1"})
    for _ in range(120):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=1)
            return process
        except OSError:
            time.sleep(0.5)
    raise SystemExit("the server did not start")


def stop(process: subprocess.Popen) -> None:
    """End a server."""
    process.terminate()
    process.wait(15)


def post(body: dict) -> bytes:
    """Return a request to /recommend as it is sent."""
    content = json.dumps(body).encode()
    head = (
        "POST /recommend HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def answer(connection: socket.socket) -> int:
    """Read one response and return its status."""
    text = b""
    while b"\r\n\r\n" not in text:
        text += connection.recv(1 << 16)
    head, body = text.split(b"\r\n\r\n", 1)
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(1 << 16)
    return int(head[9:12])


def load(requests: list[bytes], seconds: float) -> tuple[float, float, float]:
    """Return answers a second and the median and 99th percentile in ms of `CLIENTS` clients."""
    times: list[float] = []
    statuses: Counter[int] = Counter()
    until = time.perf_counter() + seconds

    def client(first: int) -> None:
        with socket.create_connection(("127.0.0.1", PORT)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            k = first
            while (sent := time.perf_counter()) < until:
                connection.sendall(requests[k % len(requests)])
                statuses[answer(connection)] += 1
                times.append(time.perf_counter() - sent)
                k += CLIENTS

    threads = [threading.Thread(target=client, args=(first,)) for first in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if set(statuses) - {200}:
        print(f"other answers than 200: {dict(statuses)}", flush=True)
    median, last = np.percentile(times, (50, 99))
    return len(times) / seconds, 1000 * float(median), 1000 * float(last)


def processor_seconds(process: subprocess.Popen) -> float:
    """Return the processor time of a process and its workers so far."""
    import psutil

    parent = psutil.Process(process.pid)
    return sum(sum(one.cpu_times()[:2]) for one in [parent, *parent.children(recursive=True)])


def main() -> None:
    """Measure and write."""
    models = arguments(usual=("cf-komd", "auto"))
    data = load_dataset("movielens-1m")
    rng = np.random.default_rng(0)
    users = [post({"user": str(u)}) for u in rng.choice(data.user_ids, 2000)]
    histories = [
        post({"history": [str(i) for i in data.item_ids[data.matrix[u].indices][:1000]]})
        for u in rng.integers(0, data.n_users, 2000)
    ]
    kinds = {
        "known users": users,
        "histories": histories,
        "80% known users": users[:1600] + histories[:400],
    }
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in models:
            path = Path(folder) / name
            fit_package(make_ranker(name), data, show_progress=False).save(path)
            service = ["-c", "from recsys.cli import run; run()", "serve", "--ranker", str(path)]
            commands = {
                "": [*service, "--port", str(PORT)],
                ", 2 processes": [*service, "--port", str(PORT), "--workers", "2"],
                ", bare endpoint": ["-c", BARE % (str(path), PORT)],
            }
            for suffix, command in commands.items():
                server = start([sys.executable, *command])
                for kind, requests in kinds.items():
                    if "bare" in suffix and kind != "known users":
                        continue
                    mixed = [requests[k] for k in rng.permutation(len(requests))]
                    load(mixed, 1.0)
                    before = processor_seconds(server)
                    rate, median, last = load(mixed, SECONDS)
                    cost = 1000 * (processor_seconds(server) - before) / (rate * SECONDS)
                    rows.append((name, kind + suffix, rate, median, last, cost))
                    print(*rows[-1], flush=True)
                stop(server)
    columns = ("model", "what", "requests_per_second", "median_ms", "p99_ms", "processor_ms")
    write_csv("serve_speed", columns, rows)


if __name__ == "__main__":
    main()
