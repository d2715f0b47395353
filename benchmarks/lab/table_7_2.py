"""Table 7.2 and Figures 7.1–7.2: rules by the genetic search and by branch and bound.

Five 70/30 splits; a hard-margin machine on κ* with up to 10 clauses of up to 5 literals. "without"
gives every row the weight 1/rows, so that the fitness is the training accuracy. Four of the
artificial tables have the formulas of Table 7.1. For the other two it states only sizes, so ours are drawn.

    python -m benchmarks.lab.table_7_2 [table] [draw]

LAB_TABLES=a,b runs these tables of Table 7.2 alone.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.lab.common import (
    append_csv,
    artificial_dnf,
    chosen,
    each,
    figure,
    finished,
    read_csv,
    run,
    write_csv,
    write_png,
)
from benchmarks.lab.genetic import genetic_search
from recsys.datasets.categorical import OneHot, load_table
from recsys.explain import agreement, search_rule, signed_weights
from recsys.kernel_machines import KOMD

TASKS = (
    "tic-tac-toe",
    "monks-1",
    "monks-3",
    "art-d2-c4",
    "art-d3-c3",
    "art-d4-c2",
    "art-d4-c3",
    "art-d5-c4",
    "art-d5-c5",
)
SECONDS = ((0.0, 1.0), (0.05, 1.0), (0.05, 10.0))  # share of labels flipped, and seconds
METHODS = ("ga", "ga without the machine", "branch and bound")


FORMULAS = {  # Table 7.1
    "art-d2-c4": ((11, 9, 1, 14), (27, 17)),
    "art-d3-c3": ((3, 28), (27,), (14, 7, 26)),
    "art-d4-c2": ((3,), (0, 7), (5, 9), (8,)),
    "art-d4-c3": ((25, 21), (15, 5, 19), (0, 26), (8, 21, 20)),
}


def task(name: str) -> OneHot:
    if not name.startswith("art-"):
        return load_table(name)
    d, c = int(name[5]), int(name[8])
    data = artificial_dnf(d, c, seed=10 * d + c)[0]
    if name not in FORMULAS:
        return data
    hit = np.any([data.X[:, clause].all(axis=1) for clause in FORMULAS[name]], axis=0)
    return replace(data, y=hit.astype(np.int64))


def one(name: str, split: int) -> list[tuple]:
    data = task(name)
    X, held, y, truth = train_test_split(
        data.X, data.y, test_size=0.3, random_state=split, stratify=data.y
    )
    machine = KOMD(0.0, kernel="mdnf-sum", kernel_params={"d": 10, "c": 5}).fit(X, y)
    says = machine.decision_function(held) > 0
    signed = signed_weights(machine, len(y))
    flat = np.where(y == 1, 1.0, -1.0) / len(y)
    rows = []
    for method in METHODS:
        started = time.perf_counter()
        if method == "branch and bound":
            found = search_rule(X, signed)
        else:
            found = genetic_search(X, signed if method == "ga" else flat, seed=split)
        seconds = time.perf_counter() - started
        rule = found.rule
        rows.append(
            (
                name,
                split,
                method,
                float(np.mean(says == (truth == 1))),
                agreement(rule, X, y == 1),
                agreement(rule, held, truth == 1),
                agreement(rule, held, says),
                len(rule.clauses),
                rule.literals,
                found.n_iter,
                int((signed != 0).sum()),
                seconds,
                found.weight,
                found.bound,
                found.gap,
                found.exact,
            )
        )
    return rows


def compiled() -> None:
    """Compile the searches, those for a proof and for a bound included."""
    rng = np.random.default_rng(0)
    X, weights = rng.random((60, 20)) < 0.5, rng.normal(size=60)
    found = search_rule(X, weights, max_clauses=3, max_literals=2)
    assert not search_rule(X, weights, max_literals=2, budget=100_000).exact
    assert found.weight < found.bound + 1e-9
    genetic_search(np.eye(4), [1.0, 1, -1, -1], generations=2)


COLUMNS = (
    "task",
    "split",
    "method",
    "machine",
    "train",
    "test",
    "fidelity",
    "clauses",
    "literals",
    "generation",
    "support",
    "seconds",
    "weight",
    "bound",
    "gap",
    "exact",
)
MEANS = ("machine", "train", "test", "fidelity", "clauses", "literals", "generation", "seconds")


def main() -> None:
    compiled()
    tasks = chosen(TASKS)
    have = finished("table_7_2", "task", "split")
    jobs = [(name, split) for name in tasks for split in range(5) if (name, str(split)) not in have]
    each(one, jobs, done=lambda rows: append_csv("table_7_2", COLUMNS, rows))
    rows = read_csv("table_7_2")
    rows.sort(key=lambda r: (TASKS.index(r["task"]), int(r["split"]), METHODS.index(r["method"])))
    write_csv("table_7_2", COLUMNS, [list(row.values()) for row in rows])
    summary = []
    for name in TASKS:
        for method in METHODS:
            mine = [row for row in rows if (row["task"], row["method"]) == (name, method)]
            means = (float(np.mean([float(row[column]) for row in mine])) for column in MEANS)
            summary.append((name, method, *means))
    write_csv("table_7_2_means", ("task", "method", *MEANS), summary)
    draw()


def draw() -> None:
    """Draw both figures from the means."""
    summary = read_csv("table_7_2_means")
    fig, axes = figure(2, size=(6, 4))
    for k, method in enumerate(METHODS):
        at = np.arange(len(TASKS)) + 0.27 * (k - 1)
        mine = {row["task"]: row for row in summary if row["method"] == method}
        axes[0].bar(at, [float(mine[n]["test"]) for n in TASKS], 0.25, label=method)
        if k < 2:
            axes[1].bar(at, [float(mine[n]["generation"]) for n in TASKS], 0.25, label=method)
    for axis, label in zip(
        axes, ("test accuracy (7.1)", "generation of the best rule (7.2)"), strict=True
    ):
        axis.set_xticks(range(len(TASKS)), TASKS, rotation=60)
        axis.set_ylabel(label)
    axes[0].legend(fontsize=7, loc="lower right", framealpha=1.0)
    axes[1].legend(fontsize=7)
    axes[0].set_ylim(0.7, 1.01)
    write_png("figure_7_1_7_2", fig)


if __name__ == "__main__":
    run({"table": main, "draw": draw}, ("table",))
