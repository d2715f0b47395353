"""Run fuzz tests and print a table: what was tried, how it ended, the worst; exit 1 if anything failed.

The minutes are shared among them. Each gets at least `LEAST` seconds, and what it prepares (starting a
service, fitting models) comes on top: three minutes take four to five.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
from pathlib import Path

from benchmarks.attack import campaigns
from benchmarks.attack.common import RESULTS, SHARED, Result, run_apart, run_here, workspace

COLUMNS = ("fuzz test", "tried", "result", "worst")
LEAST = 3.0  # seconds of each fuzz test, however little time all of them have


def share(seconds: float, left: int, least: float) -> float:
    """Return one fuzz test's part of what is left: what others did not need is shared out.

    Those that took too long take from the others no more than down to `least`.
    """
    return max(seconds / left, least)


def table(results: dict[str, Result]) -> str:
    """Return the results as a Markdown table, and under it each failure."""
    rows = [
        (name, f"{result.tried:,}", result.ended(), result.worst()) for name, result in results.items()
    ]
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    for name, result in results.items():
        lines += [f"{name} (seed {result.seed}): {fault}" for fault in result.faults]
    return "\n".join(lines)


def save(results: dict[str, Result], folder: Path) -> None:
    """Write `attack.csv`, the table, and `attack.json`, all there is."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "attack.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*COLUMNS, "failed", "seconds", "seed"])
        for name, found in results.items():
            row = [
                name,
                found.tried,
                found.ended(),
                found.worst(),
                found.failed,
                found.seconds,
                found.seed,
            ]
            writer.writerow(row)
    told = {name: found.as_json() for name, found in results.items()}
    (folder / "attack.json").write_text(
        json.dumps(told, indent=1, sort_keys=True) + "\n", encoding="utf-8"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run what is asked for; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attack", description=__doc__)
    parser.add_argument(
        "campaign", nargs="*", help=f"of {', '.join(campaigns())}; all when none is named"
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="for all of them together")
    parser.add_argument("--seed", type=int, default=0, help="the same seed tries the same cases")
    parser.add_argument("--save", action="store_true", help="write the table to benchmarks/results")
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    unknown = [name for name in given.campaign if name not in campaigns()]
    if unknown:
        parser.error(f"no fuzz test {', '.join(unknown)}; there are {', '.join(campaigns())}")
    if given.answer:  # one fuzz test, for `run_apart`
        found = run_here(given.campaign[0], given.seconds, given.seed)
        given.answer.write_text(json.dumps(found.as_json()), encoding="utf-8")
        return 0
    if SHARED not in os.environ:
        with workspace() as folder:
            os.environ[SHARED] = str(folder)
            try:
                return run_all(given)
            finally:
                del os.environ[SHARED]
    return run_all(given)


def run_all(given: argparse.Namespace) -> int:
    """Run them one after another, print the table, and return the exit code."""
    results: dict[str, Result] = {}
    names = given.campaign or campaigns()
    seconds = 60 * given.minutes
    least = max(LEAST, seconds / len(names) / 2)
    for place, name in enumerate(names):
        print(f"{name} …", file=sys.stderr, flush=True)
        result = run_apart(name, share(seconds, len(names) - place, least), given.seed)
        seconds -= result.seconds
        results[name] = result
    print(table(results))
    if given.save:
        save(results, RESULTS)
    return 0 if all(result.ok for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
