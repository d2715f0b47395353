"""Fitting from partitioned Parquet by workers of 4 GB each: seconds of every stage, memory of every process.

`python -m benchmarks.partitioned --folder DIR [--likes 100000,1000000,10000000] [--engine local=2]` generates
likes, a partition a unit of work of the engine as well, fits CF-KOMD from them, makes lists for 100,000
users and writes results/partitioned.csv.

The likes have popular items (a power law), few long profiles among short ones (log-normal lengths) and
tastes: half of a user's likes are of one of many groups of items. Partition k is drawn from seed k alone.
"""

from __future__ import annotations

import argparse
import csv
import resource
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.lab.common import RESULTS
from recsys.engines import engine as make_engine
from recsys.errors import InputError
from recsys.partitioned import fit_partitions, recommend_partitions
from recsys.partitioned.arrays import read_arrays
from recsys.partitioned.counts import Counted
from recsys.partitioned.layout import joined
from recsys.partitioned.work import Work
from recsys.utils.progress import listening

PARTITION = 50_000  # users
PROFILE, SPREAD = 10.0, 0.6  # mean and log-deviation of a profile's length
TASTE = 200  # items that a taste has, about
SKEW = 0.9  # exponent of popularity
LIMIT = 4 * 10**9  # bytes of address space of each process while it fits
EVERY = 0.25  # seconds between two looks at the processes
FILE = RESULTS / "partitioned.csv"
FIELDS = (
    "likes", "users", "items", "engine", "load", "stage", "seconds", "cpu_s", "process", "rss_mb",
    "uss_mb", "own_mb", "disk_mb", "entries", "pairs", "buckets", "model_mb", "touched",
)  # fmt: skip


def drawn(unit: tuple[str, int, int, int, int]) -> int:
    """Write one partition, unless it is there; return its likes."""
    folder, number, first, users, items = unit
    path = Path(folder) / f"part-{number:05d}.parquet"
    rng = np.random.default_rng([24, number])
    lengths = rng.lognormal(np.log(PROFILE) - SPREAD**2 / 2, SPREAD, users)
    lengths = np.maximum(1, np.rint(lengths)).astype(np.int64)
    n = int(lengths.sum())
    if path.exists():
        return n
    groups = max(1, items // TASTE)
    taste = np.repeat(rng.integers(0, groups, users), lengths)
    own = ranks(rng.random(n), items // groups) * groups + taste  # popular ones first in each, too
    what = np.where(rng.random(n) < 0.5, own, ranks(rng.random(n), items))
    who = np.repeat(np.arange(first, first + users), lengths)
    order = rng.permutation(n)
    table = pa.table({"user": who[order], "item": what[order] * 7 + 3})
    pq.write_table(table, path.with_suffix(".tmp"), row_group_size=1 << 18, compression="zstd")
    path.with_suffix(".tmp").rename(path)
    return n


def ranks(uniform: np.ndarray, count: int) -> np.ndarray:
    """Return ranks 0…count − 1 of which rank r has a probability ~ (r + 1)^−SKEW."""
    power = 1.0 - SKEW
    found = (uniform * (count**power - 1.0) + 1.0) ** (1.0 / power)
    return np.minimum(found.astype(np.int64) - 1, count - 1)


def awake(unit: int) -> None:
    """Import what the stages need, as a worker's first unit would."""
    import recsys.partitioned  # noqa: F401

    time.sleep(0.5)  # so that each worker has one


class Watch:
    """Peaks of this process and of those that it started, in MB, since `begin`, and processor time.

    What a process has in memory (rss), what no other process shares with it (uss; pages of a mapped
    file that it alone looks at are among them), and what is no page of a file (own): the last is what
    the system cannot take back.
    """

    def __init__(self) -> None:
        self.peaks: dict[str, list[float]] = {}
        self._used: dict[int, float] = {}  # seconds of processor time of each process so far
        self._before, self._own = 0.0, 0.0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def begin(self) -> None:
        """Forget the peaks so far, and the processor time."""
        self.peaks = {}
        self._before = self._total()

    def cpu(self) -> float:
        """Return the processor time of all processes since `begin`, without what looking took."""
        return self._total() - self._before

    def _total(self) -> float:
        me = psutil.Process()
        for one in [me, *me.children(recursive=True)]:
            with suppress(psutil.Error, OSError):
                told = one.cpu_times()
                self._used[one.pid] = told.user + told.system
        return sum(self._used.values()) - self._own

    def close(self) -> None:
        """Look no longer."""
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        me = psutil.Process()
        while not self._end.wait(EVERY):
            self._total()  # of processes that end before the next look
            for one in [me, *me.children(recursive=True)]:
                try:
                    told, line = one.memory_full_info(), one.cmdline()
                except (psutil.Error, OSError):  # it has ended
                    continue
                if any("resource_tracker" in word for word in line):
                    continue
                name = "parent" if one.pid == me.pid else f"worker {one.pid}"
                found = [told.rss / 1e6, told.uss / 1e6, (told.rss - told.shared) / 1e6]
                old = self.peaks.setdefault(name, found)
                self.peaks[name] = [max(a, b) for a, b in zip(old, found, strict=True)]
            self._own = time.thread_time()


@contextmanager
def limited(more: int = 0) -> Iterator[None]:
    """Bound the address space of this process, and of those started inside, to `LIMIT` and some more."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def size_of(folder: Path) -> float:
    return sum(one.stat().st_size for one in folder.rglob("*") if one.is_file()) / 1e6


def run(
    likes: int, engine: str, folder: Path, lists: int, load: str, keep: bool
) -> list[dict[str, Any]]:
    users = max(100, round(likes / PROFILE))
    items = max(100, users // 10)
    shape = {"likes": likes, "users": users, "items": items, "engine": engine, "load": load}
    lines: list[dict[str, Any]] = []
    watch = Watch()
    data, work, out = folder / "data", folder / "work", folder / "model.recsys"
    data.mkdir(parents=True, exist_ok=True)
    mark = [time.perf_counter(), "generate"]

    def told(stage: str) -> None:
        seconds, used = time.perf_counter() - mark[0], watch.cpu()
        own = {
            **shape, "stage": stage, "seconds": round(seconds, 2), "cpu_s": round(used, 2),
            "disk_mb": round(size_of(folder), 1),
        }  # fmt: skip
        print(
            f"{likes:,} likes, {stage}: {seconds:.1f} s, {used:.1f} s of processors, "
            f"{own['disk_mb']:,.0f} MB on disk",
            flush=True,
        )
        for name, (rss, uss, mine) in sorted(watch.peaks.items()):
            place = {"process": name, "rss_mb": round(rss), "uss_mb": round(uss), "own_mb": round(mine)}
            lines.append(own | place)
        if not watch.peaks:  # shorter than a look
            lines.append(own | {"process": "all"})
        begin("")

    def begin(stage: str) -> None:
        watch.begin()
        mark[:] = [time.perf_counter(), stage]

    def heard(stage: str, done: float, total: int) -> None:
        if stage != mark[1]:
            if mark[1]:
                told(mark[1])
            mark[1] = stage

    units = [
        (str(data), k, first, min(PARTITION, users - first), items)
        for k, first in enumerate(range(0, users, PARTITION))
    ]
    with make_engine(engine) as one:
        drawn_likes = sum(one.map(drawn, units, threads=1))
    told("generate")
    shape["likes"] = drawn_likes
    with limited():
        with listening(heard), make_engine(engine) as one:
            list(one.map(awake, list(range(one.workers)), threads=1))
            told("start")
            found = fit_partitions("cf-komd", data, out=out, work=work, engine=one, memory="1.5GB")
            told("assemble")
        told("end")
    print(f"    {found.users:,} users, {found.items:,} items, {found.likes:,} different likes")
    with limited(out.stat().st_size), make_engine(engine) as one:
        list(one.map(awake, list(range(one.workers)), threads=1))
        begin("lists")
        recommend_partitions(out, work, folder / "top", users=lists, engine=one)
        told(f"lists of {min(lists, found.users):,}")
    watch.close()
    more = features_of(work, out, min(lists, found.users))
    for line in lines:
        line |= more
    if not keep:
        shutil.rmtree(folder)
    return lines


def features_of(folder: Path, model: Path, lists: int) -> dict[str, Any]:
    """Return what a run's work can be proportional to.

    Pairs of likes of one user (Σ length²), counts that are not 0, buckets of users, the model's size, and
    how many counts the rows of the listed users' likes have.
    """
    work = Work.opened(folder)
    rows = joined(work, "popular")
    lengths = Counted(work, "counts-popular-0-pairs", "popular", read_arrays(
        work.part("counts-popular-0-pairs", "edges")
    )["edges"]).lengths()  # fmt: skip
    return {
        "entries": int(lengths.sum()), "pairs": int(rows["cost"].sum()), "buckets": work.buckets,
        "model_mb": round(model.stat().st_size / 1e6, 1),
        "touched": int(lengths[rows["indices"][: rows["indptr"][lists]]].sum()),
    }  # fmt: skip


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--likes", default="100000,1000000,10000000")
    given.add_argument("--engine", default="local=2")
    given.add_argument("--folder", type=Path, required=True, help="where there is room")
    given.add_argument("--lists", type=int, default=100_000, help="users whose lists are made")
    given.add_argument("--load", default="quiet", help="what else the machine did: quiet, light, loaded")
    given.add_argument("--keep", action="store_true", help="leave the files there")
    options = given.parse_args()
    for likes in map(int, options.likes.split(",")):
        own = options.folder / f"{likes}"
        if own.exists() and not options.keep:
            raise InputError(f"{own} is there already: remove it")
        lines = run(likes, options.engine, own, options.lists, options.load, options.keep)
        before = []
        if FILE.exists():
            with FILE.open(newline="") as file:
                before = list(csv.DictReader(file))
        key = ("likes", "engine", "load")
        same = {tuple(str(line[name]) for name in key) for line in lines}
        before = [line for line in before if tuple(line[name] for name in key) not in same]
        with FILE.open("w", newline="") as file:
            out = csv.DictWriter(file, FIELDS, lineterminator="\n")
            out.writeheader()
            out.writerows(before + lines)


if __name__ == "__main__":
    main()
