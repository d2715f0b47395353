"""SIGINT and SIGTERM at random moments of commands: 130 or 143 in time, no traceback, nothing half written."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from random import Random

from benchmarks.attack.common import Ended, Result, cases, started, workspace

LONGEST = 2.0  # seconds from the signal to the end, promised
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
# The clock starts just before the command: Python's own start is not ours to guard.
RUN = [sys.executable, "-c", "from recsys.cli import run; print(flush=True); run()"]


def large_table(path: Path) -> None:
    """Write likes of so many items that LAPACK inverts for seconds, and SLIM takes half a minute."""
    random = Random(0)
    with path.open("w", encoding="utf-8") as file:
        file.write("user_id,item_id\n")
        for user in range(2000):
            file.writelines(f"{user},{item}\n" for item in random.sample(range(6000), 60))


def commands(folder: str, table: str) -> dict[str, list[str]]:
    """Return commands that take a while, by name."""
    out = f"{folder}/model"
    slim = "slim:l1=0,l2=0.0001,iterations=40,tol=1e-12"
    return {
        "evaluate": ["evaluate", "--model", "ease", "--model", "als", "--json", f"{folder}/report"],
        "fit slim": ["fit", "--interactions", table, "--model", slim, "--out", out],
        "fit ease": ["fit", "--model", "ease:memory=8GB", "--out", out],
        "fit large ease": ["fit", "--interactions", table, "--model", "ease:memory=8GB", "--out", out],
        "fit als": ["fit", "--model", "als:iterations=1000", "--out", out],
        "tune": ["tune", "--model", "slim", "--trials", "500"],
        "datasets": ["datasets"],
    }


def fault_of(ended: Ended, number: int, sent: float) -> tuple[str, str]:
    """Return how it ended, and what is wrong with that."""
    since = ended.seconds - sent
    if "Traceback" in ended.err or "Exception ignored" in ended.err:
        return "traceback", ended.err.strip().splitlines()[-1][:200]
    if ended.late:
        return "did not end", "had to be killed"
    if since < 0 and ended.code == 0:
        return "over before", ""
    # after the result, while Python ends: its handlers are gone, and a shell says 130 or 143 all the same
    if ended.code == -number and ended.out.strip():
        return f"exit {CODES[signal.Signals(number)]}", ""
    if ended.code not in (CODES[signal.Signals(number)], 0):
        return f"exit {ended.code}", f"{CODES[signal.Signals(number)]} expected; {ended.err[-200:]}"
    if ended.code == 0 and since > 0.5:
        return "ignored", f"exit 0, {since:.1f} s after the signal"
    if since > LONGEST:
        return f"exit {ended.code}", f"{since:.1f} s after the signal"
    return f"exit {ended.code}", ""


def run(seconds: float, seed: int) -> Result:
    result = Result()
    with workspace() as folder:
        table = folder / "large.csv"
        large_table(table)
        names = sorted(commands("", ""))
        for number, random in cases(seconds, seed):
            name = names[number % len(names)]
            place = folder / f"case{number}"
            place.mkdir()
            stop = random.choice(list(CODES))
            # Most of them while modules are imported.
            sent = random.uniform(0, random.choice((0.1, 1.0, 6.0)))
            arguments = [*RUN, *commands(str(place), str(table))[name]]
            ended = started(arguments, sent + 30, folder, ((sent, stop),), ready=True)
            ending, fault = fault_of(ended, stop, sent)
            halves = [entry.name for entry in place.iterdir() if ".recsys-tmp" in entry.name]
            if halves and not fault:
                fault = f"left {halves}"
            since = max(0.0, ended.seconds - sent)
            result.add(f"case {number}, {name}, {stop.name} after {sent:.3f} s", ending, fault, since)
    return result
