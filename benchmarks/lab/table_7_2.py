"""Table 7.2 and Figures 7.1–7.2: rules by the genetic search and by branch and bound.

Five 70/30 splits; a hard-margin machine on κ* with up to 10 clauses of up to 5 literals. "without" gives every
row the weight 1/rows, so that the fitness is the training accuracy. Four of the artificial tables have the
formulas of Table 7.1; it states only the sizes of the other two, so these are drawn.

    python -m benchmarks.lab.table_7_2

LAB_TABLES=a,b runs these tables alone.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.lab.common import Results, arguments, artificial_dnf, chosen, each, plot
from benchmarks.lab.genetic import genetic_search
from recsys.datasets.categorical import OneHot, load_table
from recsys.explain import agreement, search_rule, signed_weights
from recsys.kernel_machines import KOMD

FORMULAS = {  # Table 7.1
    "art-d2-c4": ((11, 9, 1, 14), (27, 17)),
    "art-d3-c3": ((3, 28), (27,), (14, 7, 26)),
    "art-d4-c2": ((3,), (0, 7), (5, 9), (8,)),
    "art-d4-c3": ((25, 21), (15, 5, 19), (0, 26), (8, 21, 20)),
}
TASKS = ("tic-tac-toe", "monks-1", "monks-3", *FORMULAS, "art-d5-c4", "art-d5-c5")
METHODS = ("ga", "ga without the machine", "branch and bound")
MEANS = ("machine", "train", "test", "fidelity", "clauses", "literals", "generation", "seconds")


def task(name: str) -> OneHot:
    if not name.startswith("art-"):
        return load_table(name)
    d, c = int(name[5]), int(name[8])
    data = artificial_dnf(d, c, seed=10 * d + c)[0]
    if name not in FORMULAS:
        return data
    hit = np.any([data.X[:, clause].all(axis=1) for clause in FORMULAS[name]], axis=0)
    return replace(data, y=hit.astype(np.int64))


def one(name: str) -> list[tuple]:
    """Return the means over the splits of each method."""
    data, values = task(name), np.zeros((5, len(METHODS), len(MEANS)))
    rng = np.random.default_rng(0)
    X, weights = rng.random((60, 20)) < 0.5, rng.normal(size=60)
    search_rule(X, weights, max_clauses=3, max_literals=2)  # both searches compile before they are timed
    genetic_search(X, weights, generations=2)
    for split in range(len(values)):
        X, held, y, truth = train_test_split(
            data.X, data.y, test_size=0.3, random_state=split, stratify=data.y
        )
        machine = KOMD(0.0, kernel="mdnf-sum", kernel_params={"d": 10, "c": 5}).fit(X, y)
        predicted = machine.decision_function(held) > 0
        signed = signed_weights(machine, len(y))
        flat = np.where(y == 1, 1.0, -1.0) / len(y)
        for k, method in enumerate(METHODS):
            started = time.perf_counter()
            if method == "branch and bound":
                found = search_rule(X, signed)
            else:
                found = genetic_search(X, signed if method == "ga" else flat, seed=split)
            seconds = time.perf_counter() - started
            rule = found.rule
            values[split, k] = (
                np.mean(predicted == (truth == 1)),
                agreement(rule, X, y == 1),
                agreement(rule, held, truth == 1),
                agreement(rule, held, predicted),
                len(rule.clauses),
                rule.literals,
                found.n_iter,
                seconds,
            )
    return [(name, method, *row) for method, row in zip(METHODS, values.mean(axis=0), strict=True)]


def main() -> None:
    results = Results("table_7_2_means", ("task", "method", *MEANS))
    for rows in each(one, results.missing([(name,) for name in chosen(TASKS)])):
        results.add(*rows)
    frame = results.frame().melt(["task", "method"], ["test", "generation"], "measure")
    plot("figure_7_1_7_2", frame, "task", "value", "method", "measure", style="o")


if __name__ == "__main__":
    arguments()
    main()
