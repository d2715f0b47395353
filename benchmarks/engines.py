"""Lists of all users by every engine: the same bits, what overhead, and what kills leave behind.

`python -m benchmarks.engines [movielens-1m] [gowalla] [large]` writes engines.csv: a digest of all parts, the
seconds of the job, the workers' own and the overhead beyond them, and what starting the engine took. A
first run of each compiles and is not told. `long` is the job of `large` for fifty times its users, by Dask alone and
once: some ten minutes. `--kill [N] [ENGINE]` writes engines_kills.csv: a job of 40 parts whose
parent or one worker is killed N times (50) at random moments, and then run again until it ends.
"""

from __future__ import annotations

import hashlib
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import scipy.sparse as sp

from benchmarks.lab.common import append_csv, without
from benchmarks.lab.long_tail import long_tail
from recsys import make_ranker
from recsys.data import Interactions
from recsys.datasets import load_dataset
from recsys.engines import engine
from recsys.rankers import ModelPackage, fit_package, load_package
from recsys.recommender.all_users import plain_options, write_all_users
from recsys.utils.atomic import TEMPORARY

ENGINES = (("local", None), ("local=2", None), ("dask", 2), ("ray", 2))
TIMES = 50  # that the users of `large` are repeated in `long`
COLUMNS = (
    "data", "users", "items", "model", "model_mb", "engine", "workers", "threads", "parts", "start_seconds",
    "seconds", "worker_seconds", "overhead", "digest", "equal",
)  # fmt: skip
JOBS = {  # the model, and the users a part
    "movielens-1m": ("cf-komd:kernel=mc,degree=2", 512),
    "gowalla": ("cf-komd:votes=1.0", 512),
    "large": ("cf-komd:kernel=md,degree=2", 1024),
    "long": ("cf-komd:kernel=md,degree=2", 16384),
}
KILLS = (
    "engine",
    "kills",
    "of_parent",
    "of_worker",
    "runs",
    "equal",
    "written_twice",
    "left_over",
    "orphans",
)
CHILD = """
import sys
from recsys.cli import run
if __name__ == "__main__":
    run()
"""


def digest_of(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.glob("part-*")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def model_of(name: str) -> ModelPackage:
    from recsys.utils.spec import parse_spec

    kind, params = parse_spec(JOBS[name][0])
    if name in ("large", "long"):
        likes = long_tail(40_000, 140_000, 700_000, seed=2).tocoo()
        data = Interactions.from_frame(pd.DataFrame({"user": likes.row, "item": likes.col}))
    else:
        data = load_dataset(name)
    package = fit_package(make_ranker(kind, **params), data, show_progress=False)
    if name == "long":
        ids = np.arange(TIMES * len(package.user_ids)).astype(object)
        rows = sp.vstack([package.user_items] * TIMES, format="csr")
        ranker = make_ranker(kind, **params).fit(rows, show_progress=False)
        package = replace(package, ranker=ranker, user_ids=ids, user_items=rows)
    return package


def job(name: str) -> None:
    """Write a row for each engine."""
    without("engines", lambda row: row["data"] == name)
    spec, block = JOBS[name]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "model.recsys")
        model_of(name).save(path)
        package = load_package(path, mapped=True)
        first = ""
        for on, workers in ENGINES if name != "long" else (("dask", 2),):
            if on == "local":
                import numba

                numba.set_num_threads(1)
            started = time.perf_counter()
            with engine(on, workers) as given:
                list(given.map(abs, range(4 * given.workers)))
                start = time.perf_counter() - started
                for _ in range(2 if name != "long" else 1):  # the first compiles
                    out = Path(place, "top")
                    done = write_all_users(
                        out, package, plain_options(10), model=path, on=given, threads=1, block=block
                    )
                    digest = digest_of(out)
                    shutil.rmtree(out)
            first = first or digest
            row = (
                name, len(package.user_ids), len(package.item_ids), spec, path.stat().st_size / 1e6, on,
                done.workers, 1, done.written, start, done.seconds, done.work, done.overhead, digest,
                digest == first if name != "long" else "",  # there is none to compare with
            )  # fmt: skip
            append_csv("engines", COLUMNS, [row])
            print(dict(zip(COLUMNS, row, strict=True)), flush=True)


# ---- kills


def below(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def workers_of(process: psutil.Process) -> Iterator[psutil.Process]:
    """Yield the processes below one that run a user's tasks."""
    for one in below(process):
        try:
            if any("spawn_main" in part or "multiprocessing-fork" in part for part in one.cmdline()):
                yield one
        except psutil.Error:
            continue


def found_at_work(process: psutil.Process) -> bool:
    """Return whether there are workers to choose from."""
    return next(workers_of(process), None) is not None


def parts_in(folder: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for path in folder.glob("part-*"):
        about = path.stat()
        found[path.name] = (about.st_ino, about.st_mtime_ns)
    return found


def ended(family: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Return those that are still there after so many seconds."""
    return [one for one in psutil.wait_procs(family, timeout=seconds)[1] if one.is_running()]


def kills(
    on: str, times: int, seed: int = 0, parts: int = 40, place: Path | None = None
) -> tuple[Any, ...]:
    """Kill a job's parent or a worker at random moments; return a row of engines_kills.csv.

    Every run is killed once, until so many kills have met one at work. A job that is done, its folder
    compared, is begun again; the last one is left to end. Between two runs all processes of the first are
    waited for: one that is there after half a minute is an orphan.
    """
    rng = random.Random(seed)
    counts = {"parent": 0, "worker": 0}
    runs, twice, left, orphans, equal = 0, 0, 0, 0, True
    with tempfile.TemporaryDirectory(dir=place) as folder:
        path, script, top, whole = (Path(folder, name) for name in ("model", "run.py", "top", "whole"))
        script.write_text(CHILD)
        package = fit_package(make_ranker("ease"), load_dataset("sample"), show_progress=False)
        package.save(path)
        block = -(-len(package.user_ids) // parts)
        write_all_users(
            whole, package, plain_options(10, diversity=0.5, text=True), model=path, block=block
        )
        call = [
            sys.executable, str(script), "recommend", "--ranker", str(path), "--all", "--out", f"{top}/",
            "--block", str(block), "--diversity", "0.5", "--engine", on, *(["--workers", "2"] if "=" not in on else []),
        ]  # fmt: skip

        def run() -> subprocess.Popen:
            return subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def kept(folder: Path) -> list[str]:
            """Return the files of a folder but for what killed writers left, which goes after a day."""
            return sorted(name for name in os.listdir(folder) if not name.endswith(TEMPORARY))

        def done(before: dict[str, tuple[int, int]]) -> int:
            """Return how many of the parts that were there are others now."""
            after = parts_in(top)
            return sum(after.get(name) != known for name, known in before.items())

        started = time.perf_counter()
        assert run().wait() == 0
        usual = time.perf_counter() - started
        shutil.rmtree(top)
        while sum(counts.values()) < times:
            before = parts_in(top)
            process = run()
            runs += 1
            me = psutil.Process(process.pid)
            # within a while of the start, or when some more parts are there: both are looked for
            until, enough = time.perf_counter() + rng.uniform(0.2, 1.0) * usual, parts + 1
            if rng.random() < 0.8:
                until, enough = math.inf, rng.randint(min(len(before), parts - 1), parts - 1)
            while time.perf_counter() < until and process.poll() is None:
                if len(list(top.glob("part-*"))) >= enough and found_at_work(me):
                    break
                time.sleep(0.002)
            family = below(me)
            found = list(workers_of(me))
            victim = rng.choice(["parent", "worker"]) if found else "parent"
            hit = process.poll() is None
            if hit and victim == "parent":
                process.send_signal(signal.SIGKILL)
            elif hit:
                try:
                    rng.choice(found).kill()
                except psutil.NoSuchProcess:
                    hit = False
            code = process.wait()
            counts[victim] += hit
            still = ended(family, 30)
            orphans += len(still)
            for one in still:
                one.kill()
            twice += done(before)
            if code == 0:
                left += len(kept(top)) != len(kept(whole))
                equal &= digest_of(top) == digest_of(whole)
                shutil.rmtree(top)
        before = parts_in(top)
        runs += 1
        assert run().wait() == 0, "the last run ends"
        twice += done(before)
        left += kept(top) != kept(whole)
        equal &= all(
            (top / name).read_bytes() == (whole / name).read_bytes() for name in os.listdir(whole)
        )
    return (
        on,
        sum(counts.values()),
        counts["parent"],
        counts["worker"],
        runs,
        equal,
        twice,
        left,
        orphans,
    )


def main() -> None:
    asked = sys.argv[1:]
    if "--kill" in asked:
        times = next((int(one) for one in asked if one.isdecimal()), 50)
        for on in [one for one in asked if one in ("local=2", "dask")] or ["local=2", "dask"]:
            row = kills(on, times)
            print(dict(zip(KILLS, row, strict=True)), flush=True)
            without("engines_kills", lambda old, on=on: old["engine"] == on)
            append_csv("engines_kills", KILLS, [row])
        return
    for name in asked or ("movielens-1m", "gowalla", "large"):
        job(name)


if __name__ == "__main__":
    main()
