"""`auto(budget=60)` beside `auto` without a budget: seconds, figures, and what was dropped and why.

On the first fold of each setting of `benchmarks.auto`, each model fitted once in a process of its own, after fits of all
candidates on a corner of the data, which compile what is compiled. Run alone: the budget is of this machine's seconds. Where a row of
`auto` without a budget is there from the same sources it is kept; `--budget-only` keeps it from any.

python -m benchmarks.auto_budget [--budget 60] [--budget-only] [dataset/protocol …]
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from multiprocessing import get_context
from typing import Any

import numpy as np

from benchmarks.auto import SETTINGS, rows_of, sources
from benchmarks.lab.common import write_csv
from recsys import make_ranker
from recsys.data import split
from recsys.data.side_information import SideInformation
from recsys.datasets import load_dataset
from recsys.evaluation import metrics as M
from recsys.rankers._standardised import fitted
from recsys.rankers.auto import tried

METRICS = ("auc", "ndcg@10")
COLUMNS = ("setting", "budget", "seconds", *METRICS, "users", "parts", "dropped", "sources")
BLOCK = 200  # users scored at once
WARM = 20.0  # seconds of the fit before, half of which may go to compiling


def _work(wire: Any, setting: str, budget: float | None) -> None:
    """Fit on the first fold and measure, and tell what came out."""
    name, protocol = setting.split("/")
    data = load_dataset(name)
    fold = next(split(data, protocol))
    model = make_ranker("auto", budget=budget)
    known = SideInformation(data, protocol).of(model, fold.train)
    corner = fold.train[:400]
    for spec in tried(corner.shape[1], fold.train.nnz, bool(known)):
        fitted(spec, corner).scores(np.arange(1), corner[:1], recalculate_user=True)
    make_ranker("auto", budget=WARM).fit(fold.train, show_progress=False, **known)
    start = time.perf_counter()
    model.fit(fold.train, show_progress=False, **known)
    seconds = time.perf_counter() - start
    parsed, found = [M.parse_metric(metric) for metric in METRICS], []
    for first in range(0, len(fold.users), BLOCK):
        users = fold.users[first : first + BLOCK]
        rows = fold.train[users]
        found.append(M.ranking_values(parsed, model.scores(users, rows), rows, fold.test[users]))
    values = np.vstack(found)
    means = np.nanmean(values, axis=0).tolist()
    parts = dict(zip(model.part_names_, np.round(model.part_weights_, 3).tolist(), strict=True))
    wire.send((seconds, means, len(values), parts, model.dropped_))
    wire.close()


def measure(setting: str, budget: float | None) -> dict[str, Any]:
    """Return a row of the table."""
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(theirs, setting, budget))
    process.start()
    theirs.close()
    seconds, means, users, parts, dropped = ours.recv()
    process.join()
    return {
        "setting": setting, "budget": "" if budget is None else f"{budget:g}", "seconds": seconds,
        **dict(zip(METRICS, means, strict=True)), "users": users, "parts": parts_told(parts),
        "dropped": reasons_told(dropped), "sources": sources(),
    }  # fmt: skip


def parts_told(parts: dict[str, float]) -> str:
    """Return the parts of a blend with their weights, the heaviest first."""
    return " + ".join(
        f"{weight} {name}" for name, weight in sorted(parts.items(), key=lambda one: -one[1])
    )


def reasons_told(dropped: dict[str, str]) -> str:
    """Return why candidates were dropped, and how many for each reason."""
    reasons = (re.sub(r"\d[\d.e+-]*( of \d+)?%?", "…", why) for why in dropped.values())
    return "; ".join(f"{count} × {why}" for why, count in Counter(reasons).most_common())


def print_rows(rows: list[dict[str, Any]]) -> None:
    """Print the figures of a budget beside those without, and why candidates were dropped."""
    without = {row["setting"]: row for row in rows if not row["budget"]}
    for row in rows:
        if not row["budget"]:
            continue
        told = f"{row['setting']:28} {float(row['seconds']):6.1f} s of {row['budget']}"
        if row["setting"] in without:
            whole = without[row["setting"]]
            for metric in METRICS:
                less = float(row[metric]) - float(whole[metric])
                told += f"  {metric} {float(row[metric]):.4f} ({less:+.4f})"
            told += f"  without: {float(whole['seconds']):.0f} s"
        print(told, row["dropped"], sep=f"\n{'':30}")


def main() -> None:
    """Measure the settings asked for, writing each row as it is there."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.auto_budget")
    parser.add_argument("settings", nargs="*", metavar="dataset/protocol")
    parser.add_argument("--budget", type=float, default=60.0)
    parser.add_argument("--budget-only", action="store_true")
    asked = parser.parse_args()
    for setting in asked.settings or SETTINGS:
        for budget in (asked.budget, None):
            rows = rows_of("auto_budget")
            given = "" if budget is None else f"{budget:g}"
            key = (setting, given)
            old = [row for row in rows if (row["setting"], row["budget"]) == key]
            known = bool(old) and old[0]["sources"] == sources()
            if budget is None and (asked.budget_only or known):
                continue
            row = measure(setting, budget)
            print(setting, given or "no budget", f"{row['seconds']:.1f} s", row["parts"], flush=True)
            rows = [row for row in rows if (row["setting"], row["budget"]) != key] + [row]
            write_csv("auto_budget", COLUMNS, [[each[column] for column in COLUMNS] for each in rows])
    print_rows(rows_of("auto_budget"))


if __name__ == "__main__":
    main()
