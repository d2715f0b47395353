"""Work folders of runs that were killed, or damaged since: the same result as of a whole run, or one line."""

from __future__ import annotations

import hashlib
import shutil
import signal
import sys
from pathlib import Path
from random import Random

from benchmarks.attack.common import Ended, Result, cases, started, workspace

RUN = [sys.executable, "-c", "from recsys.cli import run; print(flush=True); run()"]


def partitions(folder: Path) -> None:
    """Write the interactions of some users in three Parquet files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    for part in range(3):
        users = [f"u{part}-{k % 40}" for k in range(800)]
        items = [f"i{(k * 7 + k // 40) % 41}" for k in range(800)]
        pq.write_table(pa.table({"user_id": users, "item_id": items}), folder / f"{part}.parquet")


def command(table: Path, work: Path, out: Path, workers: int = 1) -> list[str]:
    """Return the fit of a model to partitions."""
    words = [
        "fit",
        "--partitions",
        str(table),
        "--work",
        str(work),
        "--model",
        "ease",
        "--quiet",
        "--out",
        str(out),
    ]
    return [*RUN, *words, "--engine", "local", "--workers", str(workers)]


def damaged(work: Path, random: Random) -> str:
    """Change one file of a work folder; return what was done."""
    files = sorted(path for path in work.rglob("*") if path.is_file())
    if not files:
        return "nothing there"
    path = random.choice(files)
    how, content = random.choice(("cut", "empty", "absent", "noise at the start")), path.read_bytes()
    if how == "absent":
        path.unlink()
    elif how == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        path.write_bytes(b"" if how == "empty" else random.randbytes(16) + content[16:])
    return f"{path.relative_to(work)} {how}"


def all_cut(work: Path) -> str:
    """Cut every file of arrays short, as a full disk does; return what was done."""
    for path in work.rglob("*"):
        if path.is_file() and not path.name.startswith(("_", ".")):
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return "every file cut"


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "no file"


def judged(ended: Ended, out: Path, whole: str) -> str:
    """Return what is wrong with a run after a kill or damage."""
    fault = ended.fault()
    if not fault and "internal error" in ended.err:
        fault = ended.err.strip()[-200:]
    if not fault and ended.code == 2 and len(ended.err.strip().splitlines()) != 1:
        fault = f"{len(ended.err.strip().splitlines())} lines of error"
    if not fault and ended.code == 0 and digest(out) != whole:
        fault = "another model than of a whole run"
    return fault


def run(seconds: float, seed: int) -> Result:
    result = Result()
    with workspace() as folder:
        table, first, work, out = (folder / name for name in ("table", "first", "work", "out"))
        partitions(table)
        ended = started(command(table, first, folder / "whole"), 120, folder)
        whole = digest(folder / "whole")
        result.add("a whole run", f"exit {ended.code}", ended.fault((0,)), ended.seconds)
        for number, random in cases(seconds, seed):
            shutil.rmtree(work, ignore_errors=True)
            out.unlink(missing_ok=True)
            if number % 2 == 0:
                shutil.copytree(first, work)
                told = damaged(work, random) if number else all_cut(work)
            else:
                moment = random.uniform(0.0, ended.seconds)
                words = command(table, work, out, random.choice((1, 2)))
                started(words, 120, folder, ((moment, signal.SIGKILL),), ready=True)
                told = f"killed after {moment:.2f} s"
                out.unlink(missing_ok=True)
            again = started(command(table, work, out), 120, folder)
            fault = judged(again, out, whole)
            killed = number % 2 and again.code != 0
            fault = fault or (f"not continued: {again.err.strip()[-200:]}" if killed else "")
            result.add(f"case {number}, {told}", f"exit {again.code}", fault, again.seconds)
    return result
