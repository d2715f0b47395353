"""10⁸ interactions by `recsys.distributed` on a local cluster of two workers, beside one process.

Writes drawn interactions to Parquet (items long-tailed), fits `cf-komd` or the rankers that are named from their counts,
and makes the lists of the first users. Columns: wall seconds and the peak of resident memory of each worker in MB.

python -m benchmarks.distributed [--rows 100000000] [--items 10000] [--lists 100000] [--one-process] [RANKER …]
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.lab.common import Results

FILE_ROWS = 4_000_000
MEAN_LENGTH = 80


def write(folder: Path, some: Path, rows: int, items: int, lists: int) -> None:
    """Write the interactions, users in no order; to `some` those of the first users."""
    rng = np.random.default_rng(0)
    users = rows // MEAN_LENGTH
    for k, first in enumerate(range(0, rows, FILE_ROWS)):
        n = min(FILE_ROWS, rows - first)
        frame = pd.DataFrame({"user": rng.integers(0, users, n), "item": items * rng.random(n) ** 2.5})
        frame.astype(np.int32).to_parquet(folder / f"{k:03d}.parquet")
        frame[frame["user"] < lists].astype(np.int32).to_parquet(some / f"{k:03d}.parquet")


def peak_mb() -> float:
    """Return the largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_memory(folder: Path, name: str, answers: multiprocessing.Queue) -> None:
    """Fit in one process and answer its seconds and memory."""
    from recsys import Interactions, make_ranker

    started = time.perf_counter()
    data = Interactions.from_frame(folder, user="user", item="item")
    make_ranker(name).fit(data.matrix, show_progress=False)
    answers.put((time.perf_counter() - started, peak_mb()))


def main() -> None:
    """Measure and write."""
    import dask
    from distributed import Client, LocalCluster

    from recsys.distributed import fit_counts, recommend_all

    parser = argparse.ArgumentParser()
    parser.add_argument("rankers", nargs="*", default=["cf-komd"])
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--lists", type=int, default=100_000, help="users whose lists are made")
    parser.add_argument("--one-process", action="store_true")
    options = parser.parse_args()
    columns = ("what", "rows", "items", "seconds", "peak_mb_of_each_process")
    results = Results("distributed", columns)

    def done(what: str, seconds: float, memory: list[float]) -> None:
        megabytes = " ".join(f"{mb:.0f}" for mb in memory)
        results.add((what, options.rows, options.items, seconds, megabytes))

    with tempfile.TemporaryDirectory() as place:
        names = ("likes", "some", "model.recsys", "lists")
        folder, some, model, lists = (Path(place) / name for name in names)
        folder.mkdir()
        some.mkdir()
        write(folder, some, options.rows, options.items, options.lists)
        for name in options.rankers:
            with (
                dask.config.set({"temporary-directory": place}),
                LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
                Client(cluster) as client,
            ):
                started = time.perf_counter()
                fit_counts(folder, name).save(model)
                memory = [peak_mb(), *client.run(peak_mb).values()]
                done(f"{name}, fit, two workers", time.perf_counter() - started, memory)
                started = time.perf_counter()
                recommend_all(model, some, lists)
                memory = [peak_mb(), *client.run(peak_mb).values()]
                done(
                    f"{name}, lists of {options.lists} users, two workers",
                    time.perf_counter() - started,
                    memory,
                )
            if options.one_process:
                context = multiprocessing.get_context("spawn")
                answers = context.Queue()
                process = context.Process(target=in_memory, args=(folder, name, answers))
                process.start()
                seconds, megabytes = answers.get()
                process.join()
                done(f"{name}, fit, one process", seconds, [megabytes])


if __name__ == "__main__":
    main()
