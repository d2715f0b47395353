"""What a fit from partitions takes elsewhere: a model of time, memory and traffic, fitted on measured runs.

`python -m benchmarks.scale_model [--likes 1000000000] [--workers 64] [--price 0.05]` reads results/partitioned.csv,
fits each stage's seconds as a start and a rate on all runs of 500,000 likes and more but the largest, says how far off the largest one is,
and writes scale_model.csv: the held-out run, and the sizes asked for. The price, of a core for an hour, is an
assumption, no measurement. So is that workers share the work evenly, which holds for all stages but the last one:
the parent alone puts the file together.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections import defaultdict
from typing import Any

import numpy as np

from benchmarks.lab.common import RESULTS, write_csv

# What a stage's work is proportional to. Blocks of items read each user's row once for each of its items.
DRIVERS = {
    "items": "likes", "pairs": "likes", "rows": "likes", "places-popular": "likes",
    "counts-popular-0-pairs": "entries", "assemble": "entries", "lists": "scored",
}  # fmt: skip
ALONE = ("assemble",)  # stages of the parent
# Bytes written and read over the shared folder, a like or an entry.
TRAFFIC = {
    "items": ("likes", 2), "pairs": ("likes", 5 + 12), "rows": ("likes", 12 + 5), "places-popular": ("likes", 5 + 13 + 4),
    "counts-popular-0-pairs": ("entries", 5), "assemble": ("entries", 5 + 8), "lists": ("entries", 8),
}  # fmt: skip
USERS_AN_ITEM, LISTS = 10, 100_000
LEAST = 500_000  # likes of a run: smaller ones are compiling and the start of processes


def measured() -> list[dict[str, Any]]:
    """Return a run of two local workers for each size: its drivers, seconds by stage, and peak memory."""
    runs: dict[int, dict[str, Any]] = defaultdict(lambda: {"seconds": {}, "own": 0.0})
    with (RESULTS / "partitioned.csv").open(newline="") as file:
        for line in csv.DictReader(file):
            if line["engine"] != "local=2" or line["stage"] == "generate":
                continue
            run = runs[int(line["likes"])]
            run |= {key: float(line[key]) for key in ("likes", "users", "items", "entries")}
            run["load"] = line["load"]
            run["seconds"][line["stage"].split()[0]] = float(line["seconds"])
            run["own"] = max(run["own"], float(line["own_mb"]))
    return [runs[likes] for likes in sorted(runs) if likes >= LEAST]


def driver(run: dict[str, Any], stage: str) -> float:
    """Return how much a stage has to do."""
    if DRIVERS[stage] == "scored":
        return min(run["users"], LISTS) * math.sqrt(run["items"])
    return run[DRIVERS[stage]]


def fitted(runs: list[dict[str, Any]], stage: str) -> tuple[float, float]:
    """Return start and rate ≥ 0 of a stage, by least squares of relative errors."""
    known = [run for run in runs if stage in run["seconds"]]
    x = np.array([driver(run, stage) for run in known])
    y = np.array([max(run["seconds"][stage], 0.01) for run in known])
    from scipy.optimize import nnls

    start, rate = nnls(np.column_stack([1 / y, x / y]), np.ones(len(y)))[0]
    return float(start), float(rate)


def predicted(runs: list[dict[str, Any]], run: dict[str, Any], workers: int) -> dict[str, float]:
    """Return the seconds of each stage of a run by so many workers."""
    out = {}
    for stage in DRIVERS:
        start, rate = fitted(runs, stage)
        shared = 1.0 if stage in ALONE else 2.0 / workers
        out[stage] = start + rate * driver(run, stage) * shared
    return out


def larger(runs: list[dict[str, Any]], likes: float) -> dict[str, Any]:
    """Return the drivers of a run of so many likes: entries grow by a power of likes, as between the last two."""
    a, b = runs[-2], runs[-1]
    power = math.log(b["entries"] / a["entries"]) / math.log(b["likes"] / a["likes"])
    users = likes / 10
    entries = b["entries"] * (likes / b["likes"]) ** power
    return {"likes": likes, "users": users, "items": users / USERS_AN_ITEM, "entries": entries}


def lines(
    runs: list[dict[str, Any]], run: dict[str, Any], workers: int, price: float, kind: str
) -> list[Any]:
    """Return the table's rows of a run."""
    seconds = predicted(runs, run, workers)
    found = []
    for stage, took in seconds.items():
        what, size = TRAFFIC[stage]
        real = run.get("seconds", {}).get(stage)
        found.append([
            kind, f"{run['likes']:.0f}", workers, stage, round(took, 1), "" if real is None else real,
            "" if real is None else round(took / real - 1, 2), round(run[what] * size / 1e9, 2), "", "",
        ])  # fmt: skip
    total, real = sum(seconds.values()), sum(run.get("seconds", {}).values()) or None
    # Of a worker: Python and its libraries, three numbers an item, and its share of a block.
    memory = max(one["own"] for one in runs) * 1e6 + 24 * run["items"]
    found.append([
        kind, f"{run['likes']:.0f}", workers, "all", round(total, 1), "" if real is None else round(real, 1),
        "" if real is None else round(total / real - 1, 2),
        round(sum(run[what] * size for what, size in TRAFFIC.values()) / 1e9, 2), round(memory / 1e9, 2),
        round(total / 3600 * workers * price, 2),
    ])  # fmt: skip
    return found


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--likes", type=float, default=1e9)
    given.add_argument("--workers", default="2,16,64")
    given.add_argument("--price", type=float, default=0.05, help="of a core for an hour, assumed")
    options = given.parse_args()
    runs = measured()
    table = lines(runs[:-1], runs[-1], 2, options.price, "held out")
    for workers in map(int, options.workers.split(",")):
        table += lines(runs, larger(runs, options.likes), workers, options.price, "extrapolated")
    header = [
        "kind", "likes", "workers", "stage", "seconds", "measured", "error", "traffic_gb", "worker_gb", "cost",
    ]  # fmt: skip
    write_csv("scale_model", header, table)
    for row in table:
        print(*row, sep="\t")


if __name__ == "__main__":
    main()
