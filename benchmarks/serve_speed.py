"""`recsys serve` under 16 keep-alive clients on MovieLens 1M, N = 10, beside a bare endpoint.

The bare endpoint is FastAPI and the model's arithmetic, nothing else: the user's row lies ready, the scores are
computed, the liked are masked, ten are named. Client and server share the two cores.

    python -m benchmarks.serve_speed [RANKER …]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import psutil

from benchmarks.lab.common import Results, arguments
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


def load(requests: list[str], seconds: float) -> tuple[float, float, float]:
    """Return responses a second and the median and 99th percentile in ms of `CLIENTS` clients."""
    times: list[float] = []
    refused: list[int] = []
    until = time.perf_counter() + seconds

    def client(first: int) -> None:
        connection, k = HTTPConnection("127.0.0.1", PORT), first
        while (sent := time.perf_counter()) < until:
            body = requests[k % len(requests)]
            connection.request("POST", "/recommend", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            response.read()
            if response.status != 200:
                refused.append(response.status)
                return
            times.append(time.perf_counter() - sent)
            k += CLIENTS

    threads = [threading.Thread(target=client, args=(first,)) for first in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if refused:
        raise SystemExit(f"statuses {sorted(set(refused))} of {len(refused)} clients")
    median, last = np.percentile(times, (50, 99))
    return len(times) / seconds, 1000 * float(median), 1000 * float(last)


def cpu_seconds(process: subprocess.Popen) -> float:
    """Return the CPU time of a process and its workers so far."""
    parent = psutil.Process(process.pid)
    return sum(sum(one.cpu_times()[:2]) for one in [parent, *parent.children(recursive=True)])


def main() -> None:
    models = arguments(usual=("cf-komd", "auto"))
    data = load_dataset("movielens-1m")
    rng = np.random.default_rng(0)
    users = [json.dumps({"user": str(u)}) for u in rng.choice(data.user_ids, 2000)]
    rows = [data.matrix[u].indices[:1000] for u in rng.integers(0, data.n_users, 2000)]
    histories = [json.dumps({"history": list(map(str, data.item_ids[row]))}) for row in rows]
    mixed = users[:1600] + histories[:400]
    kinds = {"known users": users, "histories": histories, "80% known users": mixed}
    columns = ("model", "what", "requests_per_second", "median_ms", "p99_ms", "processor_ms")
    results = Results("serve_speed", columns)
    results.replace([])
    with tempfile.TemporaryDirectory() as folder:
        for name in models:
            path = Path(folder) / name
            fit_package(make_ranker(name), data, show_progress=False).save(path)
            service = ["-c", "from recsys.cli import run; run()", "serve", "--ranker", str(path)]
            service += ["--port", str(PORT)]
            commands = {
                "": service,
                ", 2 processes": [*service, "--workers", "2"],
                ", bare endpoint": ["-c", BARE % (str(path), PORT)],
            }
            for suffix, command in commands.items():
                server = start([sys.executable, *command])
                for kind in kinds if "bare" not in suffix else ("known users",):
                    requests = rng.permutation(kinds[kind]).tolist()
                    load(requests, 1.0)
                    before = cpu_seconds(server)
                    rate, median, last = load(requests, SECONDS)
                    cost = 1000 * (cpu_seconds(server) - before) / (rate * SECONDS)
                    results.add((name, kind + suffix, rate, median, last, cost))
                server.terminate()
                server.wait(15)


if __name__ == "__main__":
    main()
