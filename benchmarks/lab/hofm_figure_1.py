"""Figures 1 and 4 of the HOFM paper: AdaGrad, L-BFGS and coordinate descent, rank 30, m = 2, 3, 4.

Rows are the concatenated features of half of the links and as many pairs without one; the objective is (13),
that of one order, on m − 1 columns of ones besides: lower orders share its P. Figure 1 (a) to (c) are NIPS,
β = 0.1, words as counts: of rows of unit length this β leaves nothing. Figure 4 is MovieLens 100K. AdaGrad has
the rates of the paper, in batches of 32 rows. The first P is the same for all, from N(0, 0.01). On counts its
objective is far above 0.5, that of no P at all: "small" has Figure 1 from a P of standard deviation 0.001.

Fits end after EPOCHS epochs (L-BFGS: iterations, of about the same cost), not after seconds, so that the
objectives can be made again; `seconds` are CPU seconds.

(d), the cost of an epoch against m: CPU seconds of one thread, the least of EPOCHS_OF_COST epochs, on every
tenth row, scaled to unit length, with β = 0, without columns of ones, and a first P from N(0, 1): products of
many features are so small there that otherwise nothing would be left to do.

    python -m benchmarks.lab.hofm_figure_1 [a] [small] [4] [d]
"""

from __future__ import annotations

import os
import time
import warnings
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

from benchmarks.lab.common import Results, plot, run
from benchmarks.lab.graphs import load_graph
from recsys import FitError
from recsys.fm import FactorizationMachineRegressor
from recsys.links import split_pairs

EPOCHS = {"cd": 20, "lbfgs": 30, "adagrad": 10}
RATES = (1.0, 0.1, 0.01, 0.001)  # of AdaGrad
FIGURES: dict[str, tuple[str, dict[int, float], float]] = {  # file: (graph, β by m, deviation of P)
    "hofm_figure_1": ("nips", {2: 0.1, 3: 0.1, 4: 0.1}, 0.1),
    "hofm_figure_1_small": ("nips", {2: 0.1, 3: 0.1, 4: 0.1}, 0.001),
    "hofm_figure_4": ("movielens", {2: 1e-3, 3: 1e-4, 4: 1e-6}, 0.1),
}
DEGREES, EPOCHS_OF_COST, SHARE = (2, 3, 4, 5, 6, 8, 10), 3, 10  # of (d): every SHARE-th row


def task(name: str, unit: bool = False) -> tuple[sp.csr_matrix, np.ndarray]:
    """Return the rows of half of a graph's links and of as many pairs without one, and which is which."""
    graph = load_graph(name, os.environ["RECSYS_DATA"])
    A = sp.csr_matrix(normalize(graph.A)) if unit else graph.A
    B = A if graph.B is None else graph.B
    split = split_pairs(graph.links, A.shape[0], None if graph.B is None else B.shape[0])
    X = sp.hstack([A[split.train[:, 0]], B[split.train[:, 1]]], format="csr")
    return X, split.train_labels.astype(float)


def course(X: Any, y: np.ndarray, **params: Any) -> list[tuple[int, float, float]]:
    """Return (epoch, CPU seconds, objective) from the start on; NaN is the end of what diverged."""
    points: list[tuple[int, float, float]] = []

    def note(epoch: int, value: float) -> None:
        points.append((epoch, time.process_time() - started, value))

    params = {"fit_lower": "augment", "fit_linear": False, "n_components": 30, "tol": 0.0} | params
    model = FactorizationMachineRegressor(num_threads=1, batch_size=32, callback=note, **params)
    started = time.process_time()
    try:
        model.fit(X, y)
    except FitError:
        return [*points, (len(points) + 1, time.process_time() - started, float("nan"))]
    return [(0, 0.0, model.history_[0]["objective"]), *points]


def cost() -> None:
    """Measure and draw (d)."""
    X, y = task("nips", unit=True)
    X, y = X[::SHARE], y[::SHARE]
    results = Results("hofm_figure_1_d", ("degree", "solver", "epochs", "seconds"), 2)
    for degree, solver in results.missing([(m, solver) for solver in EPOCHS for m in DEGREES]):
        params: dict[str, Any] = {"beta": 0.0, "init_scale": 1.0, "fit_lower": None}
        params |= {"solver": solver, "degree": degree}
        course(X[:20], y[:20], max_iter=1, **params)  # compiles
        seconds = np.diff(
            [point[1] for point in course(X, y, max_iter=1 + EPOCHS_OF_COST, **params)][1:]
        )
        results.add((degree, solver, len(seconds), float(seconds.min())))
    frame = results.frame().assign(rows="NIPS")
    plot("hofm_figure_1_d", frame, "degree", "seconds", "solver", "rows", ylim=(0, None))


def compare(file: str) -> None:
    """Make the curves of a figure that are missing, and draw all."""
    name, betas, scale = FIGURES[file]
    X, y = task(name)
    columns = ("degree", "solver", "rate", "epoch", "seconds", "objective")
    results = Results(file, columns, 3)
    curves = [
        (solver, rate) for solver in EPOCHS for rate in (RATES if solver == "adagrad" else (None,))
    ]
    for degree, solver, rate in results.missing(
        [(degree, *curve) for degree in betas for curve in curves]
    ):
        params = {"solver": solver, "degree": degree, "beta": betas[degree], "init_scale": scale}
        params["learning_rate"] = rate or 1.0
        course(X[:20], y[:20], max_iter=1, **params)  # compiles
        points = course(X, y, max_iter=EPOCHS[solver], **params)
        results.add(*((degree, solver, rate, *point) for point in points))
    frame = results.frame()
    frame["curve"] = frame["solver"] + frame["rate"].map(" {:g}".format).replace(" nan", "")
    start = frame.groupby("degree")["objective"].transform("first")
    frame = frame[frame["objective"] <= 1.5 * start]  # those above leave the picture
    plot(file, frame, "seconds", "objective", "curve", "degree", yscale="log")


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)  # the last epoch ends a fit
    files = {"a": "hofm_figure_1", "small": "hofm_figure_1_small", "4": "hofm_figure_4"}
    run({name: partial(compare, file) for name, file in files.items()} | {"d": cost}, list(files))
