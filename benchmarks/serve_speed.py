"""`recsys serve` under 16 keep-alive clients on MovieLens 1M, N = 10, beside a bare endpoint.

The bare endpoint is FastAPI and the model's arithmetic, nothing else: the user's row lies ready, the
scores are computed, the liked are masked, ten are named. Client and server share the two cores.
"""

from __future__ import annotations

import asyncio
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
from recsys import make_ranker
from recsys.datasets import load_dataset
from recsys.rankers import fit_bundle

CLIENTS = 16
SECONDS = 6.0
BARE = """
import numpy as np, uvicorn
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from recsys.rankers import load_bundle
from recsys.service.schemas import RecommendRequest
app = FastAPI()
bundle = load_bundle(%r)
ranker, names = bundle.ranker, list(bundle.item_ids)
users = {str(u): k for k, u in enumerate(bundle.user_ids)}
rows = [bundle.user_items[k] for k in range(len(users))]
@app.get("/health")
async def health():
    return {}
@app.post("/recommend")
async def recommend(ask: RecommendRequest):
    user = users[ask.user]
    scores = ranker.scores(user, rows[user])[0]
    scores[rows[user].indices] = -np.inf
    best = np.argpartition(-scores, 10)[:10]
    best = best[np.argsort(-scores[best])]
    return JSONResponse({"items": [{"item": names[k], "title": names[k], "score": float(scores[k])} for k in best]})
uvicorn.run(app, port=%d, log_level="warning")
"""


async def client(port: int, bodies: list[bytes], until: float, times: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    k = 0
    while time.perf_counter() < until:
        body = bodies[k % len(bodies)]
        k += 1
        started = time.perf_counter()
        head = f"POST /recommend HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200"), answer
        size = int(answer.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(size)
        times.append(time.perf_counter() - started)
    writer.close()


def load(port: int, bodies: list[bytes]) -> tuple[float, float, float]:
    async def all_of_them() -> list[float]:
        times: list[float] = []
        until = time.perf_counter() + SECONDS
        await asyncio.gather(*(client(port, bodies[k::CLIENTS], until, times) for k in range(CLIENTS)))
        return times

    times = asyncio.run(all_of_them())
    return (
        len(times) / SECONDS,
        1000 * float(np.percentile(times, 50)),
        1000 * float(np.percentile(times, 99)),
    )


def start(command: list[str], port: int) -> subprocess.Popen:
    process = subprocess.Popen(command, env=os.environ | {"NUMBA_NUM_THREADS": "1"})
    for _ in range(120):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
            return process
        except OSError:
            time.sleep(0.5)
    raise SystemExit("the server did not start")


def main() -> None:
    data = load_dataset("movielens-1m")
    rng = np.random.default_rng(0)
    users = [json.dumps({"user": str(u)}).encode() for u in rng.choice(data.user_ids, 2000)]
    posted = []
    for u in rng.integers(0, data.n_users, 2000):
        posted.append(
            json.dumps(
                {"history": [str(i) for i in data.item_ids[data.matrix[u].indices][:1000]]}
            ).encode()
        )
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in ("cf-komd", "auto"):
            ranker = make_ranker(name)  # auto is the default of the app and of evaluate
            bundle = fit_bundle(ranker, data, show_progress=False)
            times = []
            for u in rng.integers(0, data.n_users, 2000):
                row = bundle.user_items[u]
                started = time.perf_counter()
                ranker.recommend(int(u), row, N=10)
                times.append(1000 * (time.perf_counter() - started))
            times = times[10:]  # compilation
            rows.append(
                (
                    name,
                    "one call in a loop",
                    1000 / float(np.mean(times)),
                    float(np.percentile(times, 50)),
                    float(np.percentile(times, 99)),
                )
            )
            print(rows[-1], flush=True)
            path = Path(folder) / name
            bundle.save(path)
            server = start(
                [
                    str(Path(sys.executable).parent / "recsys"),
                    "serve",
                    "--ranker",
                    str(path),
                    "--port",
                    "8771",
                ],
                8771,
            )
            for what, bodies in (
                ("known users", users),
                ("posted histories", posted),
                ("80% known, 20% posted", [*users[:1600], *posted[:400]]),
            ):
                mixed = [bodies[k] for k in rng.permutation(len(bodies))]
                load(8771, mixed[:200])
                rows.append((name, what, *load(8771, mixed)))
                print(rows[-1], flush=True)
            server.terminate()
            server.wait(15)
            server = start([sys.executable, "-c", BARE % (str(path), 8772)], 8772)
            load(8772, users[:200])
            rows.append((name, "bare endpoint, known users", *load(8772, users)))
            print(rows[-1], flush=True)
            server.terminate()
            server.wait(15)
    write_csv("serve_speed", ("model", "what", "requests_per_second", "median_ms", "p99_ms"), rows)


if __name__ == "__main__":
    main()
