"""`recsys serve` under 16 keep-alive clients on MovieLens 1M, N = 10, beside a bare endpoint.

The bare endpoint is FastAPI and the model's arithmetic, nothing else: the user's row lies ready, the
scores are computed, the liked are masked, ten are named. Client and server share the two cores.

`--stock` measures what an item set of 50,000 of 60,000 items adds to a list: pairs of blocks of requests of one client, without the
set and with it, in turn; medians of the pairs' differences in milliseconds and in the server's processor time.

python -m benchmarks.serve_speed [RANKER …]
python -m benchmarks.serve_speed --stock [PAIRS]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np

from benchmarks.lab.common import write_csv
from benchmarks.lab.http_load import closed_loop, post
from recsys import Interactions, make_ranker
from recsys.datasets import load_dataset
from recsys.rankers import fit_package

CLIENTS = 16
SECONDS = 6.0
BARE = """
import numpy as np, uvicorn
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from recsys.rankers import load_package
from pydantic import BaseModel
class Asked(BaseModel):
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
async def recommend(ask: Asked):
    user = users[ask.user]
    scores = ranker.scores(user, rows[user])[0]
    scores[rows[user].indices] = -np.inf
    best = np.argpartition(-scores, 10)[:10]
    best = best[np.argsort(-scores[best])]
    return JSONResponse({"items": [{"item": names[k], "title": names[k], "score": float(scores[k])} for k in best]})
uvicorn.run(app, port=%d, log_level="warning")
"""


def start(command: list[str], port: int) -> subprocess.Popen:
    process = subprocess.Popen(command, env=os.environ | {"NUMBA_NUM_THREADS": "1"})
    for _ in range(120):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
            return process
        except OSError:
            time.sleep(0.5)
    raise SystemExit("the server did not start")


def measured(address: tuple[str, int], bodies: list[bytes]) -> tuple[float, float, float]:
    """Return requests a second, and the median and the 99th percentile in ms, of `CLIENTS` clients."""
    closed_loop(address, bodies, CLIENTS, 1.0)
    found = closed_loop(address, bodies, CLIENTS, SECONDS)
    strange = {status: len(times) for status, times in found.times.items() if status != 200}
    if strange:
        print(f"other answers than 200: {strange}", flush=True)
    return found.rate(), found.ms(0.5), found.ms(0.99)


def shares(process: subprocess.Popen, path: Path) -> tuple[float, float]:
    """Return the MB of the model's file that all workers hold together, and of one mapping of it."""
    together = size = 0.0
    for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
        within = False
        for line in Path(f"/proc/{child}/smaps").read_text().splitlines():
            if "-" in line.split()[0]:
                within = line.endswith(str(path))
            elif within and line.startswith(("Pss:", "Size:")):
                megabytes = int(line.split()[1]) / 1024
                together += megabytes if line.startswith("Pss:") else 0.0
                size = max(size, megabytes)
    return together, size


def serve(path: Path, *options: str) -> subprocess.Popen:
    """Start the service on port 8771."""
    command = [sys.executable, "-c", "from recsys.cli import run; run()", "serve", "--ranker", str(path)]
    return start([*command, "--port", "8771", *options], 8771)


def stop(process: subprocess.Popen) -> None:
    """End it."""
    process.terminate()
    process.wait(15)


def stocked(items: int = 60_000, users: int = 3_000, each: int = 40) -> Interactions:
    """Return drawn interactions of a shop, some items far more popular than others."""
    rng = np.random.default_rng(0)
    drawn = (items * rng.random((users, each)) ** 3).astype(np.int64)
    key = np.unique(np.repeat(np.arange(users), each) * items + drawn.ravel())
    ids = (
        np.array([f"{what}{k}" for k in range(n)], object) for what, n in (("u", users), ("i", items))
    )
    return Interactions((key // items).astype(np.int32), (key % items).astype(np.int32), *ids)


def processor_seconds(process: subprocess.Popen) -> float:
    """Return the processor time of a process and its workers so far."""
    import psutil

    every = psutil.Process(process.pid)
    return sum(sum(one.cpu_times()[:2]) for one in [every, *every.children(recursive=True)])


def stock(pairs: int, block: int = 200) -> None:
    """Measure lists with an item set beside lists without, and print and write the medians."""
    data, rng = stocked(), np.random.default_rng(1)
    set_of = data.item_ids[np.sort(rng.choice(data.n_items, 50_000, replace=False))].tolist()
    ranker = make_ranker("als", factors=32, iterations=2)
    plain = [{"user": f"u{u}", "n": 10} for u in rng.integers(0, data.n_users, 500)]
    bodies = {
        "all items": [post("/recommend", one) for one in plain],
        "50,000 of 60,000": [post("/recommend", one | {"item_set": "stock"}) for one in plain],
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in bodies}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        fit_package(ranker, data, show_progress=False).save(path)
        server = serve(path)
        address = ("127.0.0.1", 8771)
        upload = urllib.request.Request(
            f"http://{address[0]}:{address[1]}/item-sets/stock", method="PUT",
            data=json.dumps({"items": set_of}).encode(), headers={"Content-Type": "application/json"},
        )  # fmt: skip
        assert json.load(urllib.request.urlopen(upload, timeout=60))["unknown"] == 0
        try:
            for pair in range(-2, pairs):  # the first ones compile
                for name in list(bodies)[:: 1 if pair % 2 else -1]:
                    before, asked = processor_seconds(server), 0
                    times: list[float] = []
                    while asked < block:
                        load = closed_loop(address, bodies[name], 1, 0.5)
                        strange = {status: len(of) for status, of in load.times.items() if status != 200}
                        if strange and pair >= 0:
                            print(f"other answers than 200: {strange}", flush=True)
                        times += load.times.get(200, [])
                        asked = len(times)
                    spent = processor_seconds(server) - before
                    if pair >= 0:
                        found[name].append((1000 * float(np.median(times)), 1000 * spent / asked))
        finally:
            stop(server)
    first, second = (np.array(found[name]) for name in bodies)
    rows = []
    for column, what in enumerate(("median ms", "processor ms")):
        one, other = first[:, column], second[:, column]
        row = (
            what, pairs, float(np.median(one)), float(np.median(other)), float(np.median(other - one)),
            float(np.median(other / one)),
        )  # fmt: skip
        rows.append(row)
        print(row, flush=True)
    columns = ("what", "pairs", "all items", "50,000 of 60,000", "difference", "ratio")
    write_csv("serve_stock", columns, rows)


def main() -> None:
    """Measure and write."""
    if sys.argv[1:2] == ["--stock"]:
        stock(int(sys.argv[2]) if len(sys.argv) > 2 else 40)
        return
    data = load_dataset("movielens-1m")
    rng = np.random.default_rng(0)
    users = [post("/recommend", {"user": str(u)}) for u in rng.choice(data.user_ids, 2000)]
    posted = []
    for u in rng.integers(0, data.n_users, 2000):
        history = [str(i) for i in data.item_ids[data.matrix[u].indices][:1000]]
        posted.append(post("/recommend", {"history": history}))
    kinds = (
        ("known users", users),
        ("posted histories", posted),
        ("80% known, 20% posted", [*users[:1600], *posted[:400]]),
    )
    rows: list[tuple[str, str, float, float, float]] = []

    def told(*row: object) -> None:
        rows.append(row)  # type: ignore[arg-type]
        print(row, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or (
            "cf-komd",
            "auto",
        ):  # auto is the default of the app and of evaluate
            ranker = make_ranker(name)
            package = fit_package(ranker, data, show_progress=False)
            times = []
            for u in rng.integers(0, data.n_users, 2000):
                row = package.user_items[u]
                started = time.perf_counter()
                ranker.recommend(int(u), row, N=10)
                times.append(1000 * (time.perf_counter() - started))
            times = times[10:]  # compilation
            median, last = (float(np.percentile(times, q)) for q in (50, 99))
            told(name, "one call in a loop", 1000 / float(np.mean(times)), median, last)
            path = Path(folder) / name
            package.save(path)
            for workers in (1, 2):
                server = serve(path, "--workers", str(workers))
                time.sleep(3.0 * (workers - 1))  # /health may be of the first of them
                behind = f", {workers} processes" if workers > 1 else ""
                for what, bodies in kinds:
                    mixed = [bodies[k] for k in rng.permutation(len(bodies))]
                    told(name, what + behind, *measured(("127.0.0.1", 8771), mixed))
                if workers > 1:
                    print(
                        "MB of the model's file that 2 processes hold, and of one mapping:",
                        shares(server, path),
                    )
                stop(server)
            server = start([sys.executable, "-c", BARE % (str(path), 8772)], 8772)
            told(name, "bare endpoint, known users", *measured(("127.0.0.1", 8772), users))
            stop(server)
    write_csv("serve_speed", ("model", "what", "requests_per_second", "median_ms", "p99_ms"), rows)


if __name__ == "__main__":
    main()
