"""Figure 8.3: thirty random propositional kernels, radius-margin ratio against AUC.

The ratio is taken on the training part of each outer fold (with 1% of the identity, so that it
stays finite), the AUC of an SVM with a validated C on the held-out part.
"""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import StratifiedKFold

from benchmarks.lab.common import LARGE, each, figure, names, nested_auc, table, write_csv, write_png
from recsys.kernels import make_kernel
from recsys.kernels.propositional import random_expression
from recsys.machines import radius_margin_ratio

KERNELS = 30


def one(name: str, index: int) -> tuple:
    """Return (table, kernel, expression, ratio, AUC); index −1 is the linear kernel."""
    data = table(name)
    rng = np.random.default_rng(index + 1)
    expression = make_kernel("linear") if index < 0 else random_expression(0.7, rng)
    K = expression(data.X, normalize=True)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(data.X, data.y))
    large = len(data.y) > LARGE
    ratio = np.mean(
        [radius_margin_ratio(K[np.ix_(a, a)], data.y[a], 0.01) for a, _ in folds[: 1 if large else 5]]
    )
    auc = np.mean(nested_auc([K], data.y, 0, 1 if large else 5))
    return name, index, "linear" if index < 0 else str(expression), float(ratio), 100 * float(auc)


def main() -> None:
    tables = names(without=("monks-1", "monks-3"))
    jobs = [(name, index) for name in tables for index in range(-1, KERNELS)]
    rows = each(one, jobs)
    write_csv("figure_8_3", ("table", "kernel", "expression", "ratio", "auc"), rows)
    chosen = []
    fig, axes = figure(3, 3)
    for axis, name in zip(axes, tables, strict=False):
        mine = [row for row in rows if row[0] == name and row[1] >= 0]
        linear = next(row for row in rows if row[0] == name and row[1] < 0)
        pick, best = min(mine, key=lambda row: row[3]), max(mine, key=lambda row: row[4])
        chosen.append((name, pick[2], pick[3], pick[4], best[4], best[4] - pick[4], linear[4]))
        axis.plot([row[3] for row in mine], [row[4] for row in mine], "o", color="#0072B2")
        axis.plot(pick[3], pick[4], "s", color="#D55E00")
        axis.axhline(linear[4], color="#D55E00", linestyle=":")
        axis.set_title(name)
        axis.set_xlabel("ratio")
        axis.set_ylabel("AUC %")
    write_csv(
        "figure_8_3_choice",
        ("table", "expression", "ratio", "auc", "best_auc", "behind", "linear_auc"),
        chosen,
    )
    write_png("figure_8_3", fig)


if __name__ == "__main__":
    main()
