"""`recsys evaluate` with its defaults on four made-up long-tailed tables: time and memory of the whole command.

    python -m benchmarks.main_job [--seed 11] [--table NAME …]

Wall and CPU seconds and the peak memory are those of the command and its worker processes together (shared pages
counted once).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import psutil

from benchmarks.lab.common import Results

TOPICS = 20


TABLES = {  # users, items, pairs
    "shop": (4_500, 6_500, 12_000),
    "wide": (12_000, 24_000, 290_000),
    "catalogue": (2_500, 70_000, 870_000),
    "crowd": (53_000, 10_000, 980_000),
}


def made_up(size: tuple[int, int, int], seed: int) -> pd.DataFrame:
    """Return pairs of users and items: Pareto activity, Zipf popularity, each user with a favorite topic."""
    n_users, n_items, n_pairs = size
    rng = np.random.default_rng(seed)
    activity = rng.pareto(1.1, n_users) + 1
    scale = n_pairs / activity.sum()
    for _ in range(50):  # the cap on an active user's items is made up for by the others
        counts = np.clip(activity * scale, 1, 0.3 * n_items)
        scale *= n_pairs / counts.sum()
    popularity = 1 / (np.arange(n_items) + 10.0) ** 0.9
    topic_of_item = rng.integers(0, TOPICS, n_items)
    topic_of_user = rng.integers(0, TOPICS, n_users)
    users, items = [], []
    for topic in range(TOPICS):
        weights = popularity * np.where(topic_of_item == topic, 10, 1)
        for user in np.flatnonzero(topic_of_user == topic):
            # The largest Gumbel keys are a draw by weight without repeats.
            keys = np.log(weights) + rng.gumbel(size=n_items)
            count = max(1, int(counts[user] + rng.random()))
            items.append(np.argpartition(-keys, count - 1)[:count])
            users.append(np.full(count, user))
    return pd.DataFrame({"user": np.concatenate(users), "item": np.concatenate(items)})


def measured(command: list[str]) -> tuple[float, float, float]:
    """Run a command; return its wall seconds, and processor seconds and peak gigabytes of its process tree."""
    start, peak = time.perf_counter(), 0
    seconds: dict[int, float] = {}
    child = subprocess.Popen(command)
    root = psutil.Process(child.pid)
    while child.poll() is None:
        memory = 0
        with suppress(psutil.Error):
            for process in [root, *root.children(recursive=True)]:
                with suppress(psutil.Error):
                    times, full = process.cpu_times(), process.memory_full_info()
                    seconds[process.pid] = times.user + times.system
                    memory += getattr(full, "pss", full.rss)
        peak = max(peak, memory)
        time.sleep(0.1)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} ended with code {child.returncode}")
    return time.perf_counter() - start, sum(seconds.values()), peak / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--table", nargs="*", default=list(TABLES), choices=TABLES)
    args = parser.parse_args()
    columns = "table seed users items pairs wall_seconds processor_seconds peak_gb".split()
    results = Results("main_job", columns, 2)
    for name, seed in results.missing([(name, args.seed) for name in args.table]):
        pairs = made_up(TABLES[name], seed)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"{name}.parquet")
            pairs.to_parquet(path)
            found = measured([sys.executable, "-m", "recsys", "evaluate", "--interactions", str(path)])
        results.add((name, seed, *TABLES[name][:2], len(pairs), *found))


if __name__ == "__main__":
    main()
