"""Commands that write one file at the same time: it is that of one of them, whole, and nothing is left beside it."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.attack.common import Result, cases, forked, workspace
from benchmarks.attack.full_disk import called, commands, ratings_file
from benchmarks.attack.tables import save_package

AT_ONCE = 4


def beside(call: object, folder: Path, number: int) -> int:
    """Start a call in a fork, which writes down how it ended; return the process id."""
    own = folder / f"writer{number}"
    own.mkdir(exist_ok=True)
    child = os.fork()
    if child == 0:
        try:
            ended = forked(call, 120, own)  # type: ignore[arg-type]
            (own / "fault").write_text(ended.fault((0,)), encoding="utf-8")
        finally:
            os._exit(0)
    return child


def run(seconds: float, seed: int) -> Result:
    result = Result()
    with workspace() as folder:
        model, ratings, place = folder / "model", folder / "ratings.csv", folder / "place"
        forked(lambda: save_package("ease", model), 300, folder)
        ratings_file(ratings)
        names = sorted(commands(model, ratings, place / "out"))
        for number, random in cases(seconds, seed):
            name = random.choice(names)
            place.mkdir()
            arguments = commands(model, ratings, place / "out")[name]
            target = place / "out" if name.startswith("fit") else Path(arguments[-1])
            forked(called(arguments), 120, folder)
            alone = {path.name: path.read_bytes() for path in sorted(place.iterdir())}
            children = [beside(called(arguments), folder, k) for k in range(AT_ONCE)]
            for child in children:
                os.waitpid(child, 0)
            faults = [(folder / f"writer{k}" / "fault").read_text() for k in range(AT_ONCE)]
            fault = next(filter(None, faults), "")
            found = {path.name: path.read_bytes() for path in sorted(place.iterdir())}
            if not fault and set(found) != set(alone):
                fault = f"the folder holds {sorted(found)} and not {sorted(alone)}"
            # A report tells how long the work took.
            if not fault and name != "evaluate json" and found != alone:
                fault = "not what one of them alone writes"
            result.add(f"case {number}, {name}", "whole" if not fault else "wrong", fault)
            for path in place.iterdir():
                path.unlink()
            place.rmdir()
            assert not target.exists()
    return result
