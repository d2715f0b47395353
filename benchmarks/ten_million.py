"""Ten million rows: seconds, processor seconds and peak memory of each step, in processes of their own.

    python -m benchmarks.ten_million [steps …]

The table is made up, of the size and shape of MovieLens 25M thinned by half: 162,000 users by a Pareto law, 59,000
items by 1/(rank + 30)^1.3, 12.4 million ratings of which some 5.0 million are likes. `list_seconds` are those of the
first lists of 1,000 users, `users_per_second` those of the lists of 20,000 users that follow.
"""

from __future__ import annotations

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

USERS, ITEMS, ROWS = 162_000, 59_000, 12_400_000
LIKED = 0.4035  # of the ratings
LISTS, MANY = 1_000, 20_000
FEW = 8_000  # most popular items: a catalogue that a dense item matrix fits
COLUMNS = (
    "step seconds processor_seconds list_seconds list_processor_seconds users_per_second start_mb peak_mb"
).split()


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


def timed(action: Callable[[], Any]) -> tuple[float, float]:
    """Return the seconds and the CPU seconds of an action."""
    wall, processor = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - wall, time.process_time() - processor


def measured(fit: Callable[[], Any], recommend: Callable[[np.ndarray], Any]) -> dict[str, float]:
    """Return what a fit, the first lists and the lists of many users take."""
    start = peak_mb()
    seconds, processor = timed(fit)
    few, many = np.split(np.random.default_rng(0).permutation(USERS)[: LISTS + MANY], [LISTS])
    list_seconds, list_processor = timed(lambda: recommend(np.sort(few)))
    rest, _ = timed(lambda: recommend(np.sort(many)))
    return {
        "seconds": seconds,
        "processor_seconds": processor,
        "list_seconds": list_seconds,
        "list_processor_seconds": list_processor,
        "users_per_second": MANY / rest,
        "start_mb": start,
    }


def ranker(specification: str, items: int = ITEMS) -> Callable[[Path], dict[str, float]]:
    """Return the step that fits a ranker on the likes, and makes lists."""

    def step(folder: Path) -> dict[str, float]:
        from benchmarks.lab.long_tail import long_tail
        from recsys import make_ranker
        from recsys.registry import parse_spec

        name, params = parse_spec(specification)
        small = long_tail(3_000, 1_000, 30_000)
        warm = make_ranker(name, **params).fit(small, show_progress=False)
        warm.recommend(np.arange(100), small[:100])
        likes = sp.load_npz(folder / "likes.npz")[:, :items]
        model = make_ranker(name, **params)
        return measured(
            lambda: model.fit(likes, show_progress=False),
            lambda users: model.recommend(users, likes[users]),
        )

    return step


def implicit_als(folder: Path) -> dict[str, float]:
    from implicit.als import AlternatingLeastSquares

    rows = sp.load_npz(folder / "all.npz")
    model = AlternatingLeastSquares(factors=64, iterations=15, random_state=0)
    return measured(
        lambda: model.fit(rows, show_progress=False),
        lambda users: model.recommend(users, rows[users], N=10),
    )


STEPS: dict[str, Callable[[Path], dict[str, float]]] = {
    "popularity": ranker("popularity"),
    "cf-komd": ranker("cf-komd"),
    "cf-komd:kernel=md,degree=2": ranker("cf-komd:kernel=md,degree=2"),
    f"ease:top_k=200 on {FEW:,} items": ranker("ease:top_k=200", FEW),
    "implicit ALS": implicit_als,
}


def main() -> None:
    from benchmarks.lab.common import Results, arguments

    results = Results("ten_million", COLUMNS)
    missing = results.missing([(name,) for name in arguments(STEPS)])
    program = [sys.executable, "-m", "benchmarks.ten_million"]
    with tempfile.TemporaryDirectory() as folder:
        if missing:
            subprocess.run([*program, "--make", folder], check=True)
        for (name,) in missing:
            command = [*program, "--step", name, folder]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            values = json.loads(done.stdout.strip().split("\n")[-1])
            results.add((name, *(values[column] for column in COLUMNS[1:])))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--make"]:
        make(Path(sys.argv[2]))
    elif sys.argv[1:2] == ["--step"]:
        print(json.dumps(STEPS[sys.argv[2]](Path(sys.argv[3])) | {"peak_mb": peak_mb()}))
    else:
        main()
