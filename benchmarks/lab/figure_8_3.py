"""Figures 8.2 and 8.3: random propositional kernels, and their radius-margin ratio against AUC.

Each table has thirty formulas of its own, drawn by Algorithm 8.1 until so many differ on its rows: half of all
draws are a single variable, the linear kernel, which is shown beside them. The ratio is the mean over the
training parts of the outer folds, with 1% of the identity added to the kernel, so that it stays finite where
the classes are not separated. The AUC is that of an SVM on the held-out parts, its C one of the thesis' ten powers of
ten, chosen by five inner folds. Of tables above 1,000 rows a random 1,000 are used.

    python -m benchmarks.lab.figure_8_3 [8.2] [8.3]
"""

from __future__ import annotations

from functools import cache
from zlib import crc32

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split

from benchmarks.lab.common import LARGE, Results, chosen, each, names, nested_auc, plot, run, table
from recsys.kernel_machines import radius_margin_ratio
from recsys.kernels import make_kernel
from recsys.kernels.propositional import Expression, random_expression

KERNELS = 30
DRAWS = 1000
DECAYS = (0.7, 0.0125)  # the thesis', and one at which five operators are about the mean
COSTS = [10.0**k for k in range(-5, 5)]
IDENTITY = 0.01
PROBES = 200  # rows on which formulas are compared


@cache
def formulas(name: str) -> list[Expression]:
    """Return thirty formulas whose normalized kernels differ on the table, none the linear one."""
    rng = np.random.default_rng(crc32(name.encode()))
    X = table(name).X
    X = X[rng.permutation(len(X))[:PROBES]]
    seen = [make_kernel("linear")(X, normalize=True)]
    out: list[Expression] = []
    while len(out) < KERNELS:
        drawn = random_expression(0.7, rng)
        if not drawn.operator:
            continue
        K = drawn(X, normalize=True)
        if all(np.abs(K - other).max() > 1e-9 for other in seen):
            seen.append(K)
            out.append(drawn)
    return out


def one(name: str, index: int) -> tuple:
    """Return a row of the file; index −1 is the linear kernel."""
    X, y = table(name).X, table(name).y
    if len(y) > LARGE:
        X, _, y, _ = train_test_split(X, y, train_size=LARGE, random_state=0, stratify=y)
    expression = make_kernel("linear") if index < 0 else formulas(name)[index]
    K = expression(X, normalize=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(K, y)
    ratios = [radius_margin_ratio(K[np.ix_(a, a)], y[a], IDENTITY) for a, _ in folds]
    auc = 100 * nested_auc([K], y, 0, 5, costs=COSTS)
    return name, index, "linear" if index < 0 else str(expression), float(np.mean(ratios)), auc


def figure_8_3() -> None:
    results = Results("figure_8_3", ("table", "kernel", "expression", "ratio", "auc"), 2)
    tables = chosen(names(without=("monks-1", "monks-3")))
    for row in each(one, results.missing([(n, k) for n in tables for k in range(-1, KERNELS)])):
        results.add(row)
    frame = results.frame()
    frame["kernels"] = np.where(frame["kernel"] < 0, "linear", "propositional")
    plot("figure_8_3", frame, "ratio", "auc", "kernels", "table", 4, "o")


def figure_8_2() -> None:
    """Write how many binary operators a thousand drawn formulas have, and draw it."""
    rows = []
    for decay in DECAYS:
        rng = np.random.default_rng(0)
        counts = np.array([random_expression(decay, rng).operators for _ in range(DRAWS)])
        values, times = np.unique(counts, return_counts=True)
        rows += [(decay, *pair, counts.mean()) for pair in zip(values, times, strict=True)]
    results = Results("figure_8_2", ("decay", "operators", "formulas", "mean"))
    results.replace(rows)
    plot("figure_8_2", results.frame(), "operators", "formulas", "mean", "decay", xscale="symlog")


if __name__ == "__main__":
    run({"8.2": figure_8_2, "8.3": figure_8_3})
