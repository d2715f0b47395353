"""What a fit from partitions takes elsewhere: processor time, memory and traffic, fitted on measured runs.

`python -m benchmarks.scale_model [--likes 1000000000] [--workers 64] [--price 0.05]` reads results/partitioned.csv,
fits each stage's processor seconds as rates of what drives it on the runs of up to 10⁷ likes by one worker and by
two, says how far off a larger one is that it has not seen, and writes scale_model.csv: that run, and the sizes asked for.

Seconds are the workers' share of processor time: what would pass on idle processors that share the work evenly,
where nothing waits for a disk. The price, of a core for an hour, is an assumption, no measurement. The parent alone
joins rows and puts the file together.
"""

from __future__ import annotations

import argparse
import csv
import math
from typing import Any

import numpy as np
from scipy.optimize import nnls

from benchmarks.lab.common import RESULTS, write_csv

# What a stage's work grows with; a rate for each. Items are looked up by bisection. Counting visits each pair of
# likes of a user, and writes what is not 0. A list adds up the counts of all its user's likes.
DRIVERS: dict[str, tuple[str, ...]] = {
    "start": ("workers",), "items": ("likes",), "pairs": ("searched",), "rows": ("likes",),
    "places-popular": ("likes",), "counts-popular-0-pairs": ("pairs", "entries"),
    "assemble": ("model_mb",), "end": ("workers",), "lists": ("touched",),
}  # fmt: skip
ALONE = ("assemble",)  # stages of the parent
EACH = ("start", "end")  # stages that take each worker as long, side by side
# Bytes written and read over the shared folder, a like or an entry.
TRAFFIC = {
    "items": ("likes", 2), "pairs": ("likes", 5 + 12), "rows": ("likes", 12 + 5), "places-popular": ("likes", 5 + 13 + 4),
    "counts-popular-0-pairs": ("entries", 5), "assemble": ("entries", 5 + 8), "lists": ("entries", 8),
}  # fmt: skip
USERS_AN_ITEM, LISTS, BUCKET = 10, 100_000, 2_000_000
MOST = 20_000_000  # likes of a run that the model is fitted on
LEAST = 50_000
NUMBERS = ("likes", "users", "items", "entries", "pairs", "buckets", "model_mb", "touched")


def measured() -> list[dict[str, Any]]:
    """Return each run whose processor time was taken: drivers, seconds of processors by stage, peak memory."""
    runs: dict[tuple[int, str], dict[str, Any]] = {}
    with (RESULTS / "partitioned.csv").open(newline="") as file:
        for line in csv.DictReader(file):
            if not line["cpu_s"] or line["stage"] == "generate":
                continue
            key = round(math.log10(float(line["likes"])), 1), line["engine"]
            run = runs.setdefault(
                key, {"cpu": {}, "own": 0.0, "workers": int(line["engine"].partition("=")[2])}
            )
            run |= {name: float(line[name]) for name in NUMBERS}
            stage, _, of = line["stage"].partition(" of ")
            run["cpu"][stage] = float(line["cpu_s"])
            if of:
                run["lists"] = float(of.replace(",", ""))
            run["own"] = max(run["own"], float(line["own_mb"] or 0))
    return [runs[key] for key in sorted(runs) if runs[key]["likes"] >= LEAST]


def drivers(run: dict[str, Any], stage: str) -> list[float]:
    """Return how much a stage has to do, by driver."""
    made = {"searched": run["likes"] * math.log2(run["items"])}
    return [made.get(name) or run[name] for name in DRIVERS[stage]]


def fitted(runs: list[dict[str, Any]], stage: str) -> np.ndarray:
    """Return a stage's start and rates ≥ 0, by least squares of seconds.

    Not of relative errors: what small runs add up stays in a processor's caches, and is added up faster.
    """
    known = [run for run in runs if run["cpu"].get(stage, 0.0) > 0]
    own = () if stage in EACH else (1.0,)
    x = np.array([[*own, *drivers(run, stage)] for run in known])
    scale = x.max(axis=0)  # of like size, or the smaller one is lost
    rates = nnls(x / scale, np.array([run["cpu"][stage] for run in known]))[0] / scale
    return rates if own else np.append(0.0, rates)


def predicted(runs: list[dict[str, Any]], run: dict[str, Any]) -> dict[str, float]:
    """Return the processor seconds of each stage of a run."""
    return {
        stage: float(fitted(runs, stage) @ np.array([1.0, *drivers(run, stage)])) for stage in DRIVERS
    }


def larger(runs: list[dict[str, Any]], likes: float, workers: int) -> dict[str, Any]:
    """Return the drivers of a run of so many likes: each a power of the likes, as between the last two sizes."""
    b = runs[-1]
    a = next(run for run in reversed(runs) if run["likes"] < 0.5 * b["likes"])

    def grown(name: str) -> float:
        each_a, each_b = (run[name] / (run["lists"] if name == "touched" else 1.0) for run in (a, b))
        power = math.log(each_b / each_a) / math.log(b["likes"] / a["likes"])
        return float(each_b * (likes / b["likes"]) ** power)

    users = likes / 10
    lists = min(users, LISTS)
    return {
        "likes": likes, "users": users, "items": users / USERS_AN_ITEM, "entries": grown("entries"),
        "pairs": grown("pairs"), "model_mb": grown("model_mb"), "touched": grown("touched") * lists,
        "buckets": max(1, round(likes / BUCKET)), "lists": lists, "workers": workers,
    }  # fmt: skip


def lines(runs: list[dict[str, Any]], run: dict[str, Any], price: float, kind: str) -> list[Any]:
    """Return the table's rows of a run."""
    cpu, real, found = predicted(runs, run), run.get("cpu", {}), []
    passed = 0.0
    for stage, took in cpu.items():
        what, size = TRAFFIC.get(stage, ("likes", 0))
        seconds = took if stage in ALONE else took / run["workers"]
        passed += seconds
        told = real.get(stage)
        found.append([
            kind, f"{run['likes']:.0f}", run["workers"], stage, " + ".join(DRIVERS[stage]), round(took, 1),
            "" if told is None else told, "" if not told else round(took / told - 1, 2), round(seconds, 1),
            round(run[what] * size / 1e9, 2), "", "",
        ])  # fmt: skip
    total, told = sum(cpu.values()), sum(real.get(stage, 0.0) for stage in DRIVERS)
    # Of a worker: Python and its libraries, three numbers an item, and its share of a block.
    memory = max(one["own"] for one in runs) * 1e6 + 24 * run["items"]
    found.append([
        kind, f"{run['likes']:.0f}", run["workers"], "all", "", round(total, 1), round(told, 1) if told else "",
        round(total / told - 1, 2) if told else "", round(passed, 1),
        round(sum(run[what] * size for what, size in TRAFFIC.values()) / 1e9, 2), round(memory / 1e9, 2),
        round(passed / 3600 * run["workers"] * price, 2),
    ])  # fmt: skip
    return found


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--likes", type=float, default=1e9)
    given.add_argument("--workers", default="2,16,64")
    given.add_argument("--price", type=float, default=0.05, help="of a core for an hour, assumed")
    options = given.parse_args()
    every = measured()
    runs = [run for run in every if run["likes"] <= MOST]
    table = []
    for run in every:
        if run["likes"] > MOST:
            table += lines(runs, run, options.price, "held out")
    for workers in map(int, options.workers.split(",")):
        table += lines(runs, larger(every, options.likes, workers), options.price, "extrapolated")
    header = [
        "kind", "likes", "workers", "stage", "grows_with", "cpu_s", "measured", "error", "seconds",
        "traffic_gb", "worker_gb", "cost",
    ]  # fmt: skip
    write_csv("scale_model", header, table)
    for row in table:
        print(*row, sep="\t")


if __name__ == "__main__":
    main()
