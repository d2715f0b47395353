"""Figure 1 of the HOFM paper: AdaGrad, L-BFGS and coordinate descent on NIPS, rank 30, m = 2, 3, 4.

Rows are the concatenated features of half of the links and as many pairs without one; the objective is
that of one order without the lower ones (13). Words are counts scaled to unit length, for which β = 0.1 of
the paper leaves nothing of P: β is 1e-4, the best in Table 3 there. Fits end after EPOCHS epochs (L-BFGS:
iterations, of about the same cost), not after seconds, so that the objectives can be made again; the column
of seconds is of the machine that wrote it.

(d), the cost of an epoch against m, is a run of its own: processor seconds of one thread, the least of
EPOCHS_OF_COST epochs, on every tenth row, with β = 0 and a first P from N(0, 1): products of many features
are so small in rows of unit length that otherwise nothing would be left to do. An epoch of L-BFGS is an
iteration with its line search.

    python -m benchmarks.lab.hofm_figure_1       # (a) to (c)
    python -m benchmarks.lab.hofm_figure_1 d

Left out: the paper's β and its dummy columns; several rates for AdaGrad.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

from benchmarks.lab import common
from benchmarks.lab.common import RESULTS, write_csv, write_png
from recsys.datasets.graphs import load_graph
from recsys.fm import FactorizationMachineRegressor
from recsys.links import split_pairs

EPOCHS = {"cd": 20, "lbfgs": 60, "adagrad": 20}
DEGREES, EPOCHS_OF_COST, SHARE = (2, 3, 4, 5, 6, 8, 10), 3, 10  # of (d): every SHARE-th row


def task() -> tuple[sp.csr_matrix, np.ndarray]:
    graph = load_graph("nips", os.environ["RECSYS_DATA"])
    A = sp.csr_matrix(normalize(graph.A))
    split = split_pairs(graph.links, A.shape[0])
    X = sp.hstack([A[split.train[:, 0]], A[split.train[:, 1]]], format="csr")
    return X, split.train_labels.astype(float)


def estimator(solver: str, degree: int, max_iter: int, **params: Any) -> Any:
    common = {"n_components": 30, "beta": 1e-4, "init_scale": 0.1, "tol": 0.0} | params
    return FactorizationMachineRegressor(
         num_threads=1, degree=degree,
        fit_lower=None, fit_linear=False, solver=solver, learning_rate=0.1, batch_size=32,
        max_iter=max_iter, **common,
    )  # fmt: skip


def cost() -> None:
    """Measure and draw (d)."""
    X, y = task()
    X, y = X[::SHARE], y[::SHARE]
    rows: list[Any] = []
    for solver in EPOCHS:
        for degree in DEGREES:
            estimator(solver, degree, 1).fit(X[:20], y[:20])
            at: list[float] = []

            def note(epoch: int, value: float, at: list[float] = at) -> None:
                at.append(time.process_time())

            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                params = {"beta": 0.0, "init_scale": 1.0, "callback": note}
                estimator(solver, degree, 1 + EPOCHS_OF_COST, **params).fit(X, y)
            rows.append((degree, solver, len(at) - 1, float(np.min(np.diff(at)))))
            print(rows[-1], flush=True)
    write_csv("hofm_figure_1_d", ("degree", "solver", "epochs", "seconds"), rows)
    fig, (axis,) = common.figure(1)
    for solver in EPOCHS:
        found = [(row[0], row[3]) for row in rows if row[1] == solver]
        axis.plot(*zip(*found, strict=True), marker="o", label=solver)
    axis.set(xlabel="m", ylabel="processor seconds an epoch", ylim=(0, None))
    axis.legend()
    write_png("hofm_figure_1_d", fig)


def main() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X, y = task()
    rows: list[Any] = []
    figure, axes = plt.subplots(1, 3, figsize=(13, 4))
    for axis, degree in zip(axes, (2, 3, 4), strict=True):
        for solver in EPOCHS:
            estimator(solver, degree, 1).fit(X[:20], y[:20])
            model = estimator(solver, degree, EPOCHS[solver]).fit(X, y)
            points = [(e, h["seconds"], h["objective"]) for e, h in enumerate(model.history_)]
            axis.plot([p[1] for p in points], [p[2] for p in points], label=solver)
            rows += [(degree, solver, *point) for point in points]
            print(degree, solver, points[-1], len(points), flush=True)
        axis.set(title=f"m = {degree}", xlabel="seconds", ylabel="objective")
        axis.legend()
    figure.tight_layout()
    figure.savefig(RESULTS / "hofm_figure_1.png", dpi=120)
    write_csv("hofm_figure_1", ("degree", "solver", "epoch", "seconds", "objective"), rows)


if __name__ == "__main__":
    cost() if sys.argv[1:] == ["d"] else main()
