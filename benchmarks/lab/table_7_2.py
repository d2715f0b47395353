"""Table 7.2 and Figures 7.1–7.2: rules by the genetic search and by branch and bound.

Five 70/30 splits; a hard-margin machine on κ* with up to 10 clauses of up to 5 literals. "without"
gives every row the weight 1/rows, so that the fitness is the training accuracy.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.lab.common import each, figure, write_csv, write_png
from recsys.datasets.categorical import OneHot, artificial_dnf, load_table
from recsys.explain import agreement, genetic_search, search_rule, signed_weights
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
METHODS = ("ga", "ga without the machine", "branch and bound")


def task(name: str) -> OneHot:
    if name.startswith("art-"):
        d, c = int(name[5]), int(name[8])
        return artificial_dnf(d, c, seed=10 * d + c)[0]
    return load_table(name)


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
        rows.append((
            name, split, method, float(np.mean(says == (truth == 1))), agreement(rule, X, y == 1),
            agreement(rule, held, truth == 1), agreement(rule, held, says), len(rule.clauses),
            rule.literals, found.n_iter, int((signed != 0).sum()), seconds,
        ))  # fmt: skip
    return rows


def main() -> None:
    search_rule(np.eye(4), [1.0, 1, -1, -1])
    genetic_search(np.eye(4), [1.0, 1, -1, -1], generations=2)
    jobs = [(name, split) for name in TASKS for split in range(5)]
    rows = [row for found in each(one, jobs) for row in found]
    columns = (
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
    )
    write_csv("table_7_2", columns, rows)
    summary = []
    for name in TASKS:
        for method in METHODS:
            mine = [row for row in rows if row[0] == name and row[2] == method]
            summary.append(
                (
                    name,
                    method,
                    *(float(np.mean([row[k] for row in mine])) for k in (3, 4, 5, 6, 7, 8, 9, 11)),
                )
            )
    write_csv("table_7_2_means", (*columns[:1], *columns[2:10], "seconds"), summary)
    fig, axes = figure(2, size=(6, 4))
    for k, method in enumerate(METHODS):
        at = np.arange(len(TASKS)) + 0.27 * (k - 1)
        mine = {row[0]: row for row in summary if row[1] == method}
        axes[0].bar(at, [mine[n][4] for n in TASKS], 0.25, label=method)
        if k < 2:
            axes[1].bar(at, [mine[n][8] for n in TASKS], 0.25, label=method)
    for axis, label in zip(
        axes, ("test accuracy (7.1)", "generation of the best rule (7.2)"), strict=True
    ):
        axis.set_xticks(range(len(TASKS)), TASKS, rotation=60)
        axis.set_ylabel(label)
        axis.legend(fontsize=7)
    axes[0].set_ylim(0.7, 1.01)
    write_png("figure_7_1_7_2", fig)


if __name__ == "__main__":
    main()
