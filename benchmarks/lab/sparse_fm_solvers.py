"""Appendix C of the sparse FM paper: solvers and penalties by how fast they lower an objective (Figures 7–9).

    python -m benchmarks.lab.sparse_fm_solvers [solvers] [methods] [--data a9a]… [--seconds 30] [--draw]

`solvers` (Figures 8 and 9): TI and CS by coordinate or block descent (PCD, PBCD), FISTA with restart (APGD),
nmAPGD, PSGD and Katyusha, a row at a time and in mini-batches, beside our AdaGrad with delayed operators and
block descent with a line search; each penalty's own objective. `methods` (Figure 7): the objective with the ℓ1 norm
of the interactions, as TI, CS, L1, L21 and two solvers of that norm itself lower it. Both by epochs and by
seconds of the processor, one thread; what is measured for the figure is not in them, nor is compiling.

The data: planted interactions, 8 groups of 10 features with 20 of noise, and 1 of 20 with 80, of 500 and of
20,000 rows (for the stochastic solvers X/√d and y/d with β/d² and γ/d², as the source has it: the same objective
over d²); all of MovieLens 100K with side features (2,703 columns), and the training file of a9a. A batch
has as many rows as have one non-zero a feature between them. The stochastic solvers with a rate have RATES,
and the best is shown; one that diverges at a rate is not. The strengths are those of about 1,000 interactions
in Table 3a. A run ends after `--seconds` (of the processor, at the end of the epoch) or EPOCHS. A row at a
time on MovieLens, an epoch writes all of P 100,000 times and takes longer than that: those runs are of one epoch.

Of the ten first P's of the paper there is one, and on planted data of 500 rows SEEDS, the others at the rate that
is best from the first. The table has their means, the picture the first.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

import benchmarks.lab.katyusha  # noqa: F401  registers the solver
from benchmarks.lab.common import RESULTS, append_csv, finished, read_csv, write_csv
from benchmarks.lab.planted import planted_interactions
from benchmarks.lab.sparse_fm_synthetic import SETTINGS, common_objective, so_many_epochs
from benchmarks.lab.sparse_fm_table_3 import a9a, movielens
from recsys import FitError
from recsys.fm import FactorizationMachineRegressor

EPOCHS = 1000
SEEDS = 3  # first P's on planted data of few rows
RATES = (1.0, 0.1, 0.01)
SMALL, LARGE = 500, 20_000
WEAKER = (1.0, 0.1)  # Figure 7's two strengths, as shares; the text at hand does not have them
STRENGTHS = {"planted": (1e-3, 0.03), "movielens": (5e-4, 1.5e-4), "a9a": (5e-4, 3e-4)}  # β, γ
SOLVERS = {  # name: (solver, rows of a batch: one, or the data's), by penalty
    "ti": {
        "PCD": ("cd", 1),
        "APGD": ("fista", 1),
        "nmAPGD": ("nmapgd", 1),
        "PSGD": ("psgd", 1),
        "MB-PSGD": ("psgd", 0),
        "Katyusha": ("katyusha", 1),
        "MB-Katyusha": ("katyusha", 0),
    },
    "cs": {
        "PBCD": ("block", 1),
        "APGD": ("fista", 1),
        "nmAPGD": ("nmapgd", 1),
        "PSGD": ("psgd", 1),
        "MB-PSGD": ("psgd", 0),
        "Katyusha": ("katyusha", 1),
        "MB-Katyusha": ("katyusha", 0),
    },
}
RATED = ("psgd",)
STOCHASTIC = (*RATED, "katyusha")
METHODS = {
    "TI": ("ti", "cd"),
    "CS": ("cs", "block"),
    "L1": ("l1", "cd"),
    "L21": ("l21", "block"),
    "nmAPGD": ("omega", "nmapgd"),
    "SubGD": ("omega", "subgradient"),
}
COURSES = ("data", "penalty", "method", "batch", "rate", "seed", "epoch", "seconds", "objective")
SUMMARY = (
    "data",
    "penalty",
    "method",
    "batch",
    "rate",
    "epochs",
    "seconds",
    "objective",
    "above_best",
    "seconds_to_1_percent",
)


def data_of(name: str) -> tuple[Any, np.ndarray, str]:
    """Return rows, target and whose strengths they have."""
    if name == "movielens":
        X, y, _ = movielens()
        return X, y, name
    if name == "a9a":
        train, valid, _ = a9a()
        return sp.vstack([train[0], valid[0]], format="csr"), np.concatenate([train[1], valid[1]]), name
    setting, rows = name.rsplit(" ", 1)
    planted = planted_interactions(int(rows), *SETTINGS[setting], seed=7)
    return sp.csr_matrix(planted.X), planted.y, "planted"


NAMES = [f"{setting} {rows}" for rows in (SMALL, LARGE) for setting in SETTINGS] + ["a9a", "movielens"]


def noted(epoch: int) -> bool:
    """Return whether a figure has a point there: all of the first ten, then one in every seventh."""
    return epoch < 10 or epoch % max(1, epoch // 7) == 0


def course(
    X: Any, y: np.ndarray, seconds: float, measure: Any = None, **settings: Any
) -> list[tuple[int, float, float]]:
    """Return (epoch, seconds of the processor, objective) of a fit; of `measure`, out of the seconds."""
    points: list[tuple[int, float, float]] = []
    spent = 0.0  # on measuring
    started = 0.0

    def callback(epoch: int, objective: float) -> bool:
        nonlocal spent
        now = time.process_time()
        if noted(epoch) or now - started - spent > seconds:
            value = objective if measure is None else measure(model)
            points.append((epoch, now - started - spent, value))
            spent += time.process_time() - now
        return now - started - spent > seconds

    model = FactorizationMachineRegressor(
        n_components=30,
        init_scale=0.1,
        max_iter=EPOCHS,
        tol=0.0,
        num_threads=1,
        callback=callback,
        **settings,
    )
    started = time.process_time()
    with so_many_epochs():
        model.fit(X, y)
    return points


def compile_all(X: Any, y: np.ndarray) -> None:
    """Fit a little of everything, so that no run compiles."""
    for penalty, known in SOLVERS.items():
        for name, (solver, _) in known.items():
            course(X[:50], y[:50], -1.0, **settings_of(name, solver, penalty, 1e-6, 10, 0))
    for penalty, solver in METHODS.values():
        course(X[:50], y[:50], -1.0, penalty=penalty, solver=solver)


def settings_of(
    name: str, solver: str, penalty: str, rate: float, batch: int, seed: int
) -> dict[str, Any]:
    return {
        "solver": solver,
        "penalty": penalty,
        "learning_rate": rate,
        "batch_size": batch,
        "random_state": seed,
    }


def best_rate(data: str, penalty: str, method: str) -> str:
    """Return the rate at which the first P's course ended lowest."""
    ends = {}
    for row in read_csv("sparse_fm_solvers_courses"):
        if (row["data"], row["penalty"], row["method"], row["seed"]) == (data, penalty, method, "0"):
            ends[row["rate"]] = float(row["objective"])
    return min((end, rate) for rate, end in ends.items() if np.isfinite(end))[1]


def solvers(names: Sequence[str], seconds: float) -> None:
    """Figures 8 and 9."""
    file = "sparse_fm_solvers_courses"
    for data in names:
        X, y, whose = data_of(data)
        compile_all(X, y)
        beta, gamma = STRENGTHS[whose]
        few = max(1, round(X.shape[0] * X.shape[1] / X.nnz))
        planted = whose == "planted"
        shared = {"alpha": 1e-4, "fit_linear": not planted, "fit_intercept": not planted}
        for penalty, known in SOLVERS.items():
            for name, (solver, rows) in known.items():
                batch = rows or few
                if rows == 0 and few == 1:  # dense rows: batches that are worth the name
                    batch = 10
                rates = RATES if solver in RATED else (0.0,)
                for seed in range(SEEDS if data.endswith(f" {SMALL}") else 1):
                    for rate in rates if seed == 0 else (float(best_rate(data, penalty, name)),):
                        key = (data, penalty, name, str(batch), f"{rate:g}", str(seed))
                        if key in finished(file, *COURSES[:6]):
                            continue
                        settings = shared | settings_of(name, solver, penalty, rate or 1.0, batch, seed)
                        over = X.shape[1] if planted and solver in STOCHASTIC else 1
                        settings["beta"], settings["gamma"] = beta / over**2, gamma / over**2
                        try:
                            points = [
                                (epoch, spent, value * over**2)
                                for epoch, spent, value in course(
                                    X / np.sqrt(over), y / over, seconds, **settings
                                )
                            ]
                        except FitError:
                            points = [(0, 0.0, float("nan"))]  # it diverged
                        print(*key, points[-1], flush=True)
                        append_csv(file, COURSES, [(*key, *point) for point in points])


def methods(names: Sequence[str], seconds: float) -> None:
    """Figure 7."""
    file = "sparse_fm_methods_courses"
    for data in names:
        X, y, whose = data_of(data)
        compile_all(X, y)
        beta, strongest = STRENGTHS[whose]
        whole = type("Data", (), {"X": X, "y": y})
        for gamma in (strongest * share for share in WEAKER):

            def measure(model: Any, whole: Any = whole, gamma: float = gamma) -> float:
                return common_objective(whole, model, gamma)

            for name, (penalty, solver) in METHODS.items():
                key = (f"{data}, gamma {gamma:g}", penalty, name, "1", "0", "0")
                if key not in finished(file, *COURSES[:6]):
                    points = course(
                        X,
                        y,
                        seconds,
                        measure,
                        penalty=penalty,
                        solver=solver,
                        beta=beta,
                        gamma=gamma,
                        alpha=1e-4,
                        random_state=0,
                    )
                    print(*key, points[-1], flush=True)
                    append_csv(file, COURSES, [(*key, *point) for point in points])


def summed(name: str) -> dict[tuple[str, str], dict[str, list[dict[str, Any]]]]:
    """Return by data and penalty, of each method, the courses of its best rate (by the first P's end)."""
    found: dict[Any, dict[Any, list[Any]]] = {}
    for row in read_csv(f"{name}_courses"):
        whole = row["penalty"] if name.endswith("solvers") else ""
        cell = found.setdefault((row["data"], whole), {}).setdefault(row["method"], [])
        cell.append(row)
    out: dict[Any, dict[Any, Any]] = {}
    for key, by_method in found.items():
        out[key] = {}
        for method, rows in by_method.items():
            ends = {row["rate"]: float(row["objective"]) for row in rows if row["seed"] == "0"}
            able = {rate: end for rate, end in ends.items() if np.isfinite(end)}
            if able:
                rate = min(able, key=lambda r: able[r])
                out[key][method] = [row for row in rows if row["rate"] == rate]
    return out


def tables(name: str) -> None:
    """Write what the courses come to: where each method ended, and when it was near the best of all."""
    rows = []
    for (data, _), by_method in summed(name).items():
        ended = {
            m: [[r for r in own if r["seed"] == s] for s in sorted({r["seed"] for r in own})]
            for m, own in by_method.items()
        }
        best = min(float(run[-1]["objective"]) for runs in ended.values() for run in runs)
        for method, runs in ended.items():
            last = [run[-1] for run in runs]
            near = [
                next((float(r["seconds"]) for r in run if float(r["objective"]) <= 1.01 * best), np.inf)
                for run in runs
            ]
            objective = float(np.mean([float(r["objective"]) for r in last]))
            rows.append(
                (
                    data,
                    last[0]["penalty"],
                    method,
                    last[0]["batch"],
                    last[0]["rate"] if float(last[0]["rate"]) else "",
                    float(np.mean([float(r["epoch"]) for r in last])),
                    float(np.mean([float(r["seconds"]) for r in last])),
                    objective,
                    max(0.0, objective / best - 1.0),
                    float(np.mean(near)) if np.isfinite(near).all() else "",
                )
            )
    write_csv(name, SUMMARY, rows)


def draw(name: str) -> None:
    """Draw a panel for each data and penalty, by seconds of the processor and by epochs."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    found = summed(name)
    figure, axes = plt.subplots(len(found), 2, figsize=(11, 3.1 * len(found)), squeeze=False)
    for line, ((data, penalty), by_method) in zip(axes, found.items(), strict=True):
        for axis, by in zip(line, ("seconds", "epoch"), strict=True):
            for method, rows in by_method.items():
                first = [row for row in rows if row["seed"] == rows[0]["seed"]]
                axis.plot(
                    [max(float(r[by]), 1e-4) for r in first],
                    [float(r["objective"]) for r in first],
                    marker=".",
                    markersize=3,
                    label=method,
                )
            axis.set(xscale="log", yscale="log", xlabel="processor seconds" if by == "seconds" else by)
            axis.set(title=f"{data} {penalty}".strip(), ylabel="objective")
        line[0].legend(fontsize=6)
    figure.tight_layout()
    figure.savefig(RESULTS / f"{name}.png", dpi=80)
    plt.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("what", nargs="*", help="solvers, methods; both where none is named")
    parser.add_argument("--data", action="append", choices=NAMES)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--draw", action="store_true", help="only from the files that are there")
    given = parser.parse_args()
    for what in given.what or ["solvers", "methods"]:
        made, usual = {"solvers": (solvers, NAMES), "methods": (methods, ["a9a", "movielens"])}[what]
        if not given.draw:
            made(given.data or usual, given.seconds)
        tables(f"sparse_fm_{what}")
        draw(f"sparse_fm_{what}")
