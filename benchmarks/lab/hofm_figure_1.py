"""Figures 1 and 4 of the HOFM paper: AdaGrad, L-BFGS and coordinate descent, rank 30, m = 2, 3, 4.

Rows are the concatenated features of half of the links and as many pairs without one; the objective is (13),
that of one order, on m − 1 columns of ones besides: lower orders share its P. Figure 1 (a) to (c) are NIPS,
β = 0.1, words as counts: of rows of unit length this β leaves nothing. Figure 4 is MovieLens 100K, β = 1e-3,
1e-4 and 1e-6. AdaGrad has the rates of the paper, each a curve, one that diverges too. The first P is the same
for all, from N(0, 0.01). On counts that is an objective far above 0.5, that of no P at all, and nobody is near
it after these epochs: "small" has Figure 1 from a P of standard deviation 0.001, which starts at 2 to 3.

Fits end after EPOCHS epochs (L-BFGS: iterations, of about the same cost), not after seconds, so that the
objectives can be made again; the column of seconds is of the processor that wrote it. Each curve is kept as
soon as it is there: a run that was stopped goes on, and to make a curve again take it out of the file.

(d), the cost of an epoch against m, is a run of its own: processor seconds of one thread, the least of
EPOCHS_OF_COST epochs, on every tenth row, scaled to unit length, with β = 0, without columns of ones, and a
first P from N(0, 1): products of many features are so small there that otherwise nothing would be left to
do. An epoch of L-BFGS is an iteration with its line search.

    python -m benchmarks.lab.hofm_figure_1 [a small 4 d]     # (a) to (c) of Figure 1, Figure 4, and (d) of 1

Not the paper's: NIPS has 3,134 links for 4,140, and half of them are taken where the printed number of rows
is that of all. A batch of AdaGrad has 32 rows.
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

from benchmarks.lab.common import append_csv, figure, finished, read_csv, run, write_csv, write_png
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
COLUMNS = ("degree", "solver", "rate", "epoch", "seconds", "objective")
DEGREES, EPOCHS_OF_COST, SHARE = (2, 3, 4, 5, 6, 8, 10), 3, 10  # of (d): every SHARE-th row


def task(name: str, unit: bool = False) -> tuple[sp.csr_matrix, np.ndarray]:
    """Return the rows of half of a graph's links and of as many pairs without one, and which is which."""
    graph = load_graph(name, os.environ["RECSYS_DATA"])
    A = sp.csr_matrix(normalize(graph.A)) if unit else graph.A
    B = A if graph.B is None else graph.B
    split = split_pairs(graph.links, A.shape[0], None if graph.B is None else B.shape[0])
    X = sp.hstack([A[split.train[:, 0]], B[split.train[:, 1]]], format="csr")
    return X, split.train_labels.astype(float)


def estimator(solver: str, degree: int, max_iter: int, **params: Any) -> Any:
    given = {"n_components": 30, "tol": 0.0, "fit_lower": "augment"} | params
    return FactorizationMachineRegressor(
        num_threads=1,
        degree=degree,
        fit_linear=False,
        solver=solver,
        batch_size=32,
        max_iter=max_iter,
        **given,
    )


def cost() -> None:
    """Measure and draw (d)."""
    X, y = task("nips", unit=True)
    X, y = X[::SHARE], y[::SHARE]
    rows: list[Any] = []
    for solver in EPOCHS:
        for degree in DEGREES:
            params: dict[str, Any] = {"beta": 0.0, "init_scale": 1.0, "fit_lower": None}
            estimator(solver, degree, 1, **params).fit(X[:20], y[:20])
            at: list[float] = []

            def note(epoch: int, value: float, at: list[float] = at) -> None:
                at.append(time.process_time())

            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                estimator(solver, degree, 1 + EPOCHS_OF_COST, callback=note, **params).fit(X, y)
            rows.append((degree, solver, len(at) - 1, float(np.min(np.diff(at)))))
            print(rows[-1], flush=True)
    write_csv("hofm_figure_1_d", ("degree", "solver", "epochs", "seconds"), rows)
    fig, (axis,) = figure(1)
    for solver in EPOCHS:
        found = [(row[0], row[3]) for row in rows if row[1] == solver]
        axis.plot(*zip(*found, strict=True), marker="o", label=solver)
    axis.set(xlabel="m", ylabel="processor seconds an epoch", ylim=(0, None))
    axis.legend()
    write_png("hofm_figure_1_d", fig)


def course(X: Any, y: np.ndarray, **given: Any) -> list[tuple[int, float, float]]:
    """Return (epoch, processor seconds, objective) from the start on; NaN is the end of what diverged."""
    points: list[tuple[int, float, float]] = []

    def note(epoch: int, value: float) -> None:
        points.append((epoch, time.process_time() - started, value))

    model = estimator(callback=note, **given)
    started = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
    except FitError:
        return [*points, (len(points) + 1, time.process_time() - started, float("nan"))]
    return [(0, 0.0, model.history_[0]["objective"]), *points]


def compare(file: str) -> None:
    """Make the curves of a figure that are missing, and draw all."""
    name, betas, scale = FIGURES[file]
    X, y = task(name)
    done = finished(file, "degree", "solver", "rate")
    for degree, beta in betas.items():
        for solver, epochs in EPOCHS.items():
            for rate in RATES if solver == "adagrad" else (None,):
                key = (str(degree), solver, "" if rate is None else f"{rate:g}")
                if key in done:
                    continue
                given = {"solver": solver, "degree": degree, "beta": beta, "learning_rate": rate or 1.0}
                given["init_scale"] = scale
                course(X[:20], y[:20], max_iter=1, **given)  # compiles
                points = course(X, y, max_iter=epochs, **given)
                append_csv(file, COLUMNS, [(*key, *point) for point in points])
                print(*key, points[0], points[-1], flush=True)
    draw(file)


def draw(file: str) -> None:
    """Draw the curves of a figure, each in its colour; those above the start leave the picture."""
    rows = read_csv(file)
    drawn, axes = figure(len(FIGURES[file][1]))
    for axis, (degree, beta) in zip(axes, FIGURES[file][1].items(), strict=True):
        own = [row for row in rows if int(row["degree"]) == degree]
        for solver, rate in dict.fromkeys((row["solver"], row["rate"]) for row in own):
            curve = [
                row
                for row in own
                if (row["solver"], row["rate"]) == (solver, rate)
                and np.isfinite(float(row["objective"]))
            ]
            axis.plot(
                [float(row["seconds"]) for row in curve],
                [float(row["objective"]) for row in curve],
                marker=".",
                label=f"{solver} {rate}".strip(),
            )
        axis.set(title=f"m = {degree}, β = {beta:g}", xlabel="processor seconds", ylabel="objective")
        if own:
            values = [float(row["objective"]) for row in own]
            starts = [float(row["objective"]) for row in own if row["epoch"] == "0"]
            axis.set(yscale="log", ylim=(0.9 * np.nanmin(values), 1.5 * max(starts, default=1.0)))
            axis.legend(fontsize=7)
    write_png(file, drawn)


if __name__ == "__main__":
    files = {"a": "hofm_figure_1", "small": "hofm_figure_1_small", "4": "hofm_figure_4"}
    run({name: partial(compare, file) for name, file in files.items()} | {"d": cost}, list(files))
