"""Appendix C of the sparse FM paper: solvers and penalties by how fast they lower an objective (Figures 7–9).

`solvers` (Figures 8 and 9): TI and CS by coordinate or block descent (PCD, PBCD), FISTA with restart (APGD),
nmAPGD, PSGD and Katyusha, a row at a time and in mini-batches; each penalty's own objective. `methods` (Figure
7): the objective with the ℓ1 norm of the interactions, as TI, CS, L1, L21 and two solvers of that norm itself
lower it. Seconds are CPU seconds of one thread, without compiling and without measuring.

The data: planted interactions, 8 groups of 10 features with 20 of noise, and 1 of 20 with 80, of 500 and of
20,000 rows (for the stochastic solvers X/√d and y/d with β/d² and γ/d², as the source has it: the same
objective over d²); all of MovieLens 100K with side features (2,703 columns), and the training file of a9a. A
batch has as many rows as have one non-zero a feature between them. PSGD has RATES, and the best is shown; one
that diverges at a rate is not. The strengths are those of about 1,000 interactions in Table 3a. A run ends
after `--seconds`, at the end of the epoch, or EPOCHS. Of the ten first P's of the paper there is one, and on
planted data of 500 rows SEEDS, the others at the rate that is best from the first. The table has their means,
the picture the first.

    python -m benchmarks.lab.sparse_fm_solvers [solvers] [methods] [--data a9a]… [--seconds 30]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import benchmarks.lab.katyusha  # noqa: F401  registers the solver
from benchmarks.lab.common import Results, plot
from benchmarks.lab.planted import planted_interactions
from benchmarks.lab.sparse_fm_synthetic import SETTINGS, common_objective
from benchmarks.lab.sparse_fm_table_3 import divided, movielens
from recsys import FitError
from recsys.fm import FactorizationMachineRegressor

EPOCHS = 1000
SEEDS = 3  # first P's on planted data of few rows
RATES = (1.0, 0.1, 0.01)  # of PSGD
SMALL, LARGE = 500, 20_000
WEAKER = (1.0, 0.1)  # Figure 7's two strengths, as shares; the text at hand does not have them
STRENGTHS = {"planted": (1e-3, 0.03), "movielens": (5e-4, 1.5e-4), "a9a": (5e-4, 3e-4)}  # β, γ
DESCENT = {"ti": {"PCD": ("cd", False)}, "cs": {"PBCD": ("block", False)}}
OTHERS = {  # solver, and whether it takes rows in batches
    "APGD": ("fista", False),
    "nmAPGD": ("nmapgd", False),
    "PSGD": ("psgd", False),
    "MB-PSGD": ("psgd", True),
    "Katyusha": ("katyusha", False),
    "MB-Katyusha": ("katyusha", True),
}
METHODS = {
    "TI": ("ti", "cd"),
    "CS": ("cs", "block"),
    "L1": ("l1", "cd"),
    "L21": ("l21", "block"),
    "nmAPGD": ("omega", "nmapgd"),
    "SubGD": ("omega", "subgradient"),
}
COLUMNS = (
    "data penalty method batch rate epochs seconds objective above_best seconds_to_1_percent".split()
)
NAMES = [f"{setting} {rows}" for rows in (SMALL, LARGE) for setting in SETTINGS] + ["a9a", "movielens"]

Course = list[tuple[int, float, float]]  # epoch, seconds, objective


def data_of(name: str) -> tuple[Any, np.ndarray, str]:
    """Return rows, targets, and whose strengths they have."""
    if name == "movielens":
        return *movielens(), name
    if name == "a9a":
        train, valid, _ = divided("a9a")
        return sp.vstack([train[0], valid[0]], format="csr"), np.concatenate([train[1], valid[1]]), name
    setting, rows = name.rsplit(" ", 1)
    planted = planted_interactions(int(rows), *SETTINGS[setting], seed=7)
    return sp.csr_matrix(planted.X), planted.y, "planted"


def course(X: Any, y: np.ndarray, seconds: float, measure: Any = None, **params: Any) -> Course:
    """Return a fit's points: of the first ten epochs, then of one in every seventh; of `measure`, if any."""
    points: Course = []
    spent = 0.0  # on measuring
    started = 0.0

    def callback(epoch: int, objective: float) -> bool:
        nonlocal spent
        now = time.process_time()
        over = now - started - spent > seconds
        if over or epoch < 10 or epoch % max(1, epoch // 7) == 0:
            value = objective if measure is None else measure(model)
            points.append((epoch, now - started - spent, value))
            spent += time.process_time() - now
        return over

    model = FactorizationMachineRegressor(
        n_components=30,
        init_scale=0.1,
        max_iter=EPOCHS,
        tol=0.0,
        num_threads=1,
        alpha=1e-4,
        callback=callback,
        **params,
    )
    if seconds >= 0:
        course(X[:50], y[:50], -1.0, measure, **params)  # compiles
    started = time.process_time()
    try:
        model.fit(X, y)
    except FitError:  # it diverged
        return [(0, 0.0, float("nan"))]
    return points


def summarize(
    results: Results, data: str, courses: dict[str, tuple[str, int, Any, list[Course]]]
) -> None:
    """Add where each method ended and when it was near the best of all, and draw the first P's courses."""
    best = min(points[-1][2] for *_, runs in courses.values() for points in runs)
    rows, frames = [], []
    for method, (penalty, batch, rate, runs) in courses.items():
        epochs, seconds, objective = np.mean([points[-1] for points in runs], axis=0)
        near = [
            next((spent for _, spent, value in points if value <= 1.01 * best), np.inf)
            for points in runs
        ]
        when = float(np.mean(near)) if np.isfinite(near).all() else ""
        above = max(0.0, objective / best - 1.0)
        rows.append((data, penalty, method, batch, rate, epochs, seconds, objective, above, when))
        frame = pd.DataFrame(runs[0], columns=["epoch", "CPU seconds", "objective"])
        frames.append(frame.assign(method=method))
    results.add(*rows)
    frame = pd.concat(frames).melt(["method", "objective"], var_name="by")
    name = f"{results.name} {data} {penalty}".replace(" ", "_").replace(",", "")
    plot(name, frame, "value", "objective", "method", "by", xscale="symlog", yscale="log")


def solvers(names: Sequence[str], seconds: float) -> None:
    """Figures 8 and 9."""
    results = Results("sparse_fm_solvers", COLUMNS, 2)
    for data, penalty in results.missing([(data, penalty) for data in names for penalty in DESCENT]):
        X, y, kind = data_of(data)
        planted = kind == "planted"
        beta, gamma = STRENGTHS[kind]
        few = round(X.shape[0] * X.shape[1] / X.nnz)
        courses = {}
        for method, (solver, batched) in (DESCENT[penalty] | OTHERS).items():
            batch = 1 if not batched else few if few > 1 else 10  # of dense rows ten
            scale = X.shape[1] if planted and solver in ("psgd", "katyusha") else 1
            fit = partial(
                course,
                X / np.sqrt(scale),
                y / scale,
                seconds,
                solver=solver,
                penalty=penalty,
                batch_size=batch,
                beta=beta / scale**2,
                gamma=gamma / scale**2,
                fit_linear=not planted,
                fit_intercept=not planted,
            )
            rates = RATES if solver == "psgd" else (1.0,)
            first = {rate: fit(learning_rate=rate, random_state=0) for rate in rates}
            ends = {rate: points[-1][2] for rate, points in first.items() if np.isfinite(points[-1][2])}
            if ends:
                rate = min(ends, key=lambda rate: ends[rate])
                more = range(1, SEEDS if data.endswith(f" {SMALL}") else 1)
                runs = [first[rate], *(fit(learning_rate=rate, random_state=seed) for seed in more)]
                runs = [[(e, t, value * scale**2) for e, t, value in points] for points in runs]
                courses[method] = (penalty, batch, rate if solver == "psgd" else "", runs)
        summarize(results, data, courses)


def methods(names: Sequence[str], seconds: float) -> None:
    """Figure 7."""
    results = Results("sparse_fm_methods", COLUMNS)
    for name in names:
        X, y, kind = data_of(name)
        beta, strongest = STRENGTHS[kind]
        for gamma in (strongest * share for share in WEAKER):
            data = f"{name}, gamma {gamma:g}"
            if not results.missing([(data,)]):
                continue
            measure = partial(common_objective, X, y, gamma=gamma)
            fit = partial(course, X, y, seconds, measure, beta=beta, gamma=gamma, random_state=0)
            courses = {
                method: (penalty, 1, "", [fit(penalty=penalty, solver=solver)])
                for method, (penalty, solver) in METHODS.items()
            }
            summarize(results, data, courses)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("what", nargs="*", help="solvers, methods; both where none is named")
    parser.add_argument("--data", action="append", choices=NAMES)
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # the last epoch ends a fit
    for what in options.what or ["solvers", "methods"]:
        function, usual = {"solvers": (solvers, NAMES), "methods": (methods, ["a9a", "movielens"])}[what]
        function(options.data or usual, options.seconds)
