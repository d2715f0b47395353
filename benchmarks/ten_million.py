"""Ten million rows: seconds, processor seconds and peak memory of each step, in processes of their own.

    python -m benchmarks.ten_million [steps …]

The table is made up, of the size and shape of MovieLens 25M thinned by half: 162,000 users by a Pareto
law, 59,000 items by 1/(rank + 30)^1.3, 12.4 million ratings of which some 5.0 million are likes. It is
written to a temporary folder. `results/ten_million.csv` has a row for each step. `list_seconds` are those of
the first lists of 1,000 users, `users_per_second` those of the lists of 20,000 users that follow. Steps that are named are run again, and the rows of the
others stay.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

RESULTS = Path(__file__).parent / "results" / "ten_million.csv"
USERS, ITEMS, ROWS = 162_000, 59_000, 12_400_000
LIKED = 0.4035  # of the ratings
LISTS, MANY = 1_000, 20_000
FEW = 8_000  # most popular items: a catalogue that a dense item matrix fits
COLUMNS = (
    "step",
    "seconds",
    "processor_seconds",
    "list_seconds",
    "list_processor_seconds",
    "users_per_second",
    "start_mb",
    "peak_mb",
)


def table(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the user, the item and the rating from 1 to 5 of each row."""
    rng = np.random.default_rng(seed)
    share = np.cumsum((np.arange(ITEMS) + 30.0) ** -1.3)
    activity = rng.pareto(1.5, USERS) + 1
    activity = np.minimum(activity * (1.7 * ROWS / activity.sum()), ITEMS / 10)
    users = np.repeat(np.arange(USERS), np.maximum(1, np.rint(activity)).astype(np.int64))
    keys = np.unique(users * ITEMS + np.searchsorted(share / share[-1], rng.random(len(users))))
    keys = np.sort(rng.permutation(keys)[:ROWS])
    liked = rng.random(len(keys)) < LIKED
    ratings = np.where(liked, rng.integers(4, 6, len(keys)), rng.integers(1, 4, len(keys)))
    return keys // ITEMS, keys % ITEMS, ratings


def make(folder: Path) -> None:
    """Write the ratings and the likes as matrices."""
    users, items, ratings = table()
    ones = np.ones(len(users), np.float32)
    rows = sp.csr_matrix((ones, (users, items)), (USERS, ITEMS))
    sp.save_npz(folder / "all.npz", rows, compressed=False)
    liked = ratings >= 4
    rows = sp.csr_matrix((ones[liked], (users[liked], items[liked])), (USERS, ITEMS))
    sp.save_npz(folder / "likes.npz", rows, compressed=False)


def peak_mb() -> float:
    """Return the peak of this process alone; that of `getrusage` begins with the parent's."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def timed(action: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return what an action gave, its seconds and its processor seconds."""
    wall, processor = time.perf_counter(), time.process_time()
    out = action()
    return out, time.perf_counter() - wall, time.process_time() - processor


def asked_users() -> tuple[np.ndarray, np.ndarray]:
    """Return the users of the first lists, and of the lists that follow."""
    drawn = np.random.default_rng(0).permutation(USERS)
    return np.sort(drawn[:LISTS]), np.sort(drawn[LISTS : LISTS + MANY])


def listing(recommend: Callable[[np.ndarray], Any]) -> dict[str, float]:
    """Return what the first lists and the lists of many users take."""
    few, many = asked_users()
    _, seconds, processor = timed(lambda: recommend(few))
    _, of_many, _ = timed(lambda: recommend(many))
    return {
        "list_seconds": seconds,
        "list_processor_seconds": processor,
        "users_per_second": len(many) / of_many,
    }


def ranker(specification: str, items: int = ITEMS) -> Callable[[Path], dict[str, float]]:
    """Return the step that fits a ranker on the likes, and makes lists."""

    def step(folder: Path) -> dict[str, float]:
        from benchmarks.lab.long_tail import long_tail
        from recsys import make_ranker
        from recsys.utils.spec import parse_spec

        name, params = parse_spec(specification)
        small = long_tail(3_000, 1_000, 30_000)
        warm = make_ranker(name, **params).fit(small, show_progress=False)
        warm.recommend(np.arange(100), small[:100])
        likes = sp.load_npz(folder / "likes.npz")[:, :items]
        start = peak_mb()
        model = make_ranker(name, **params)
        _, seconds, processor = timed(lambda: model.fit(likes, show_progress=False))
        found = listing(lambda asked: model.recommend(asked, likes[asked]))
        return {"seconds": seconds, "processor_seconds": processor, "start_mb": start} | found

    return step


def implicit_als(folder: Path) -> dict[str, float]:
    from implicit.als import AlternatingLeastSquares

    rows = sp.load_npz(folder / "all.npz")
    start = peak_mb()
    model = AlternatingLeastSquares(factors=64, iterations=15, random_state=0)
    _, seconds, processor = timed(lambda: model.fit(rows, show_progress=False))
    found = listing(lambda asked: model.recommend(asked, rows[asked], N=10))
    return {"seconds": seconds, "processor_seconds": processor, "start_mb": start} | found


STEPS: dict[str, Callable[[Path], dict[str, float]]] = {
    "popularity": ranker("popularity"),
    "cf-komd": ranker("cf-komd"),
    "cf-komd:kernel=md,degree=2": ranker("cf-komd:kernel=md,degree=2"),
    f"ease:top_k=200 on {FEW:,} items": ranker("ease:top_k=200", FEW),
    "implicit ALS": implicit_als,
}


def main(names: list[str]) -> None:
    rows: dict[str, dict[str, Any]] = {}
    if RESULTS.exists():
        with RESULTS.open(encoding="utf-8", newline="") as file:
            rows = {row["step"]: row for row in csv.DictReader(file)}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "benchmarks.ten_million", "--make", folder], check=True)
        for name in names or list(STEPS):
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.ten_million", "--step", name, folder],
                capture_output=True,
                text=True,
            )
            if done.returncode:
                raise SystemExit(done.stderr[-2000:])
            found = json.loads(done.stdout.strip().split("\n")[-1])
            rows[name] = {"step": name} | {key: f"{value:.4g}" for key, value in found.items()}
            print(rows[name], flush=True)
            with RESULTS.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows[key] for key in STEPS if key in rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--make"]:
        make(Path(sys.argv[2]))
    elif sys.argv[1:2] == ["--step"]:
        print(json.dumps(STEPS[sys.argv[2]](Path(sys.argv[3])) | {"peak_mb": peak_mb()}))
    else:
        from benchmarks.lab.common import arguments

        main(arguments(STEPS))
