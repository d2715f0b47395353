"""Everything that writes, on a disk without room: exit 2 and one line, the old file untouched, nothing left."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.attack.common import Result, forked, workspace
from benchmarks.attack.tables import save_package

ROOM = 1 << 20
PAGE = 4096


@contextlib.contextmanager
def mounted(folder: Path, *options: str) -> Iterator[Path]:
    """Give a small file system of its own; raises OSError where that is not allowed."""
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise OSError(done.stderr.strip())
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], capture_output=True)


def commands(model: Path, ratings: Path, out: Path) -> dict[str, list[str]]:
    """Return what writes to a path, by name."""
    fit = ["fit", "--interactions", str(ratings), "--quiet", "--out", str(out), "--model"]
    lists = ["recommend", "--ranker", str(model), "--all", "-n", "30", "--out"]
    evaluate = ["evaluate", "--interactions", str(ratings), "--quiet", "--model", "popularity", "--json"]
    return {
        "fit ease": [*fit, "ease"],
        "fit als": [*fit, "als:factors=4,iterations=1"],
        "recommend csv": [*lists, f"{out}.csv"],
        "recommend json": [*lists, f"{out}.json"],
        "recommend parquet": [*lists, f"{out}.parquet"],
        "evaluate json": [*evaluate, f"{out}.json"],
        "export": ["export", "--ranker", str(model), "--factors", "8", "--items-out", f"{out}.parquet"],
    }


def called(arguments: list[str]) -> Callable[[], int]:
    from recsys import cli

    return lambda: cli.call(arguments)


def filled(folder: Path, leave: int) -> None:
    """Leave so many bytes of room."""
    info = os.statvfs(folder)
    with (folder / "full").open("wb") as file:
        file.write(b"\0" * max(0, info.f_bavail * info.f_frsize - leave))


def ratings_file(path: Path) -> None:
    rows = (f"u{k % 60},i{(k * 7 + k // 60) % 41}\n" for k in range(1200))
    path.write_text("user_id,item_id\n" + "".join(rows), encoding="utf-8")


def run(seconds: float, seed: int) -> Result:
    result = Result()
    if os.name != "posix" or os.geteuid() != 0:
        result.skipped = "only root can make a file system"
        return result
    with workspace() as folder:
        model, ratings = folder / "model", folder / "ratings.csv"
        save_package("ease", model)
        ratings_file(ratings)
        kinds = {
            "no room": (f"size={ROOM}", 0),
            "a page left": (f"size={ROOM}", PAGE),
            "no inodes": (f"size={ROOM},nr_inodes=8", None),
            "read-only": (f"size={ROOM}", "ro"),
        }
        for kind, (options, leave) in kinds.items():  # the same few cases whatever the time and the seed
            try:
                with mounted(folder / kind, options) as place:
                    attempt(result, kind, place, leave, model, ratings, folder)
            except OSError as error:
                result.skipped = f"no file system can be mounted here ({error})"
                return result
    return result


def attempt(
    result: Result,
    kind: str,
    place: Path,
    leave: int | str | None,
    model: Path,
    ratings: Path,
    folder: Path,
) -> None:
    for name, arguments in commands(model, ratings, place / "out").items():
        target = place / "out" if name.startswith("fit") else Path(arguments[-1])
        if leave == "ro":
            subprocess.run(["mount", "-o", "remount,rw", str(place)], check=True)
        (place / "full").unlink(missing_ok=True)
        for extra in place.glob("inode*"):
            extra.unlink()
        target.write_bytes(b"the old file")
        if leave is None:
            with contextlib.suppress(OSError):
                for k in range(100):
                    (place / f"inode{k}").touch()
        elif leave == "ro":
            subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        else:
            filled(place, int(leave))
        ended = forked(called(arguments), 120, folder)
        small = (
            ended.code == 0 and leave == PAGE and len(b"the old file") < target.stat().st_size <= PAGE
        )
        if small:  # what fits in the page is written, whole
            result.add(f"{kind}, {name}", "exit 0, written", "", ended.seconds)
            target.unlink()
            continue
        fault = ended.fault((2,))
        if not fault and len(ended.err.strip().splitlines()) != 1:
            fault = f"{len(ended.err.splitlines())} lines: {ended.err[:200]}"
        if not fault and target.read_bytes() != b"the old file":
            fault = "the old file is gone"
        if not fault and any(".recsys-tmp" in entry.name for entry in place.iterdir()):
            fault = "a temporary file is left"
        result.add(f"{kind}, {name}", f"exit {ended.code}", fault, ended.seconds)
        if leave != "ro":
            target.unlink(missing_ok=True)
