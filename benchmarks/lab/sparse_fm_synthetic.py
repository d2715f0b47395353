"""The synthetic study of the sparse FM paper (8.1, 8.2): recovery, strength, convergence, time against d.

Two settings: 8 groups of 10 features with 20 of noise (interaction selection), and 1 group of 20 with
80 (feature selection), correlation 0.2 in a group, noise of deviation 0.1, rank 30, first P of deviation
0.01. The numbers are stripped from the text of the paper at hand; these are its arXiv version's as
remembered, and its findings on TI and CS come out of them. The first P matters: L1's threshold is
absolute, so that a P ten times as large helps it, while TI's scales with P.

Strengths γ and β are chosen at N = 500 by F1, averaged over two validation datasets with a first P each;
of equally good γ the middle one, of its β that of the least error. Where a method never selects (all
F1 equal) the least error decides. Then test datasets and first P's as RUNS says. The paper stops every fit
after one second of CPU; here EPOCHS count, so that the figures can be made again anywhere. Every fit is a
row of sparse_fm_synthetic_runs.csv; an interrupted study goes on after the last one, and deleting the
file starts it again.

Left out: the paper's numbers of datasets and of first P's (more than here). `scaling` keeps 8 groups of 5.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.lab.common import (
    RESULTS,
    append_csv,
    figure,
    finished,
    read_csv,
    run,
    write_csv,
    write_png,
)
from benchmarks.lab.planted import planted_interactions, recovery
from benchmarks.lab.quadratic import SparseLowRankQuadratic
from recsys.fm import (
    FactorizationMachineRegressor,
)

SETTINGS = {"interaction selection": (8, 10, 20), "feature selection": (1, 20, 80)}
METHODS = {
    "TI": ("ti", "cd"),
    "CS": ("cs", "block"),
    "L1": ("l1", "cd"),
    "L21": ("l21", "block"),
    "FM": ("l2", "cd"),
    "SLQR": ("", ""),
    "omega nmAPGD": ("omega", "nmapgd"),
    "omega SubGD": ("omega", "subgradient"),
}
SELECTING = ("TI", "CS", "L1", "L21")
EPOCHS = 250  # or iterations, of the whole-vector methods and SLQR
BETAS = (1e-4, 1e-3, 1e-2)
GAMMAS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
# (γ, β) of each method; SLQR's β is the weight of its trace norm.
GRID = {name: [(g, b) for g in GAMMAS for b in BETAS] for name in SELECTING} | {
    "FM": [(0.0, b) for b in (1e-3, 1e-2, 1e-1, 1.0)],
    "SLQR": [(g, b) for g in (0.03, 0.1, 0.3, 1.0) for b in (0.03, 0.1, 0.3, 1.0, 3.0)],
    "omega nmAPGD": [(g, 1e-3) for g in (0.03, 0.1, 0.3)],
    "omega SubGD": [(g, 1e-3) for g in (0.03, 0.1, 0.3)],
}
TUNED_AT = 500
RUNS = {
    200: (3, 1),
    350: (5, 2),
    500: (5, 2),
    1000: (5, 2),
}  # N: test datasets, first P's (others than SELECTING: 3, 1)
# Figure 5: seeds of its datasets, and its two strengths (stripped from the text at hand as well).
FOLLOWED, FOLLOWED_STRENGTHS = (3, 4), (0.1, 0.01)
WIDTHS, EXTRA, REPEATS = (80, 160, 320, 640, 1280, 2560), 3, 5  # of Figure 6
COLUMNS = ("stage", "setting", "method", "gamma", "beta", "N", "data", "seed", "error", "f1", "success")
RUNS_FILE, FITS = "sparse_fm_synthetic_runs", {}  # its rows by their first eight cells


def make(method: str, gamma: float, beta: float, seed: int, epochs: int = EPOCHS) -> Any:
    if method == "SLQR":
        return SparseLowRankQuadratic(
            trace=beta, gamma=gamma, max_iter=epochs, tol=1e-7, fit_intercept=False
        )
    penalty, solver = METHODS[method]
    return FactorizationMachineRegressor(
        n_components=30,
        penalty=penalty,
        solver=solver,
        gamma=gamma,
        beta=beta,
        fit_linear=False,
        fit_intercept=False,
        init_scale=0.01,
        max_iter=epochs,
        tol=1e-7,
        random_state=seed,
        num_threads=1,
    )


@contextmanager
def so_many_epochs() -> Iterator[None]:
    """Say nothing where the last epoch ends a fit: here it is meant to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def parameters(model: Any) -> np.ndarray:
    return model.W_ if hasattr(model, "W_") else model.P_[0][0]


def middle(tried: dict[tuple[float, float], tuple[float, float]]) -> tuple[float, float]:
    """Return the (γ, β) of the best F1, of (F1, error) each; ties as the module says."""
    f1 = {key: round(value[0], 6) for key, value in tried.items()}
    best = [key for key in tried if f1[key] == max(f1.values())]
    if len(set(f1.values())) == 1:
        return min(best, key=lambda key: tried[key][1])
    gammas = sorted({gamma for gamma, _ in best})
    gamma = gammas[(len(gammas) - 1) // 2]
    return min((key for key in best if key[0] == gamma), key=lambda key: tried[key][1])


def fit(
    stage: str, setting: str, method: str, gamma: float, beta: float, n: int, data: int, seed: int
) -> tuple[float, float, float]:
    """Return error, F1 and success of one fit, from the file where it is there."""
    key = (stage, setting, method, f"{gamma:g}", f"{beta:g}", str(n), str(data), str(seed))
    if not FITS:
        FITS.update({tuple(row[c] for c in COLUMNS[:-3]): row for row in read_csv(RUNS_FILE)})
    if key not in FITS:
        planted = planted_interactions(
            n, *SETTINGS[setting], seed=data + (1000 if stage == "validation" else 0)
        )
        with so_many_epochs():
            model = make(method, gamma, beta, seed, EPOCHS).fit(planted.X, planted.y)
        found = recovery(planted.W, parameters(model))
        row = (*key, f"{found.error:.6g}", f"{found.f1:.6g}", str(int(found.success)))
        append_csv(RUNS_FILE, COLUMNS, [row])
        FITS[key] = dict(zip(COLUMNS, row, strict=True))
    return tuple(float(FITS[key][c]) for c in COLUMNS[-3:])  # type: ignore[return-value]


def tune(setting: str, method: str) -> dict[Any, Any]:
    """Return (γ, β) → mean F1, error and share of successes on validation."""
    return {
        (g, b): tuple(
            np.mean(
                [fit("validation", setting, method, g, b, TUNED_AT, k, k) for k in range(2)], axis=0
            )[[1, 0, 2]]
        )
        for g, b in GRID[method]
    }


def study() -> None:
    rows: list[Any] = []
    strengths: list[Any] = []
    order = [
        (s, m)
        for part in (SELECTING, set(METHODS) - set(SELECTING))
        for s in SETTINGS
        for m in METHODS
        if m in part
    ]
    for setting, method in order:
        tried = tune(setting, method)
        strengths += [
            (setting, method, g, b, f1, error, 100 * s) for (g, b), (f1, error, s) in tried.items()
        ]
        write_csv(
            "sparse_fm_strength",
            ("setting", "method", "gamma", "beta", "f1", "error", "pssr"),
            strengths,
        )
        gamma, beta = middle({key: value[:2] for key, value in tried.items()})
        for n, (sets, seeds) in RUNS.items():
            if method not in SELECTING:
                sets, seeds = 3, 1
            found = np.array(
                [
                    fit("test", setting, method, gamma, beta, n, k, seed)
                    for k in range(sets)
                    for seed in range(seeds if method != "SLQR" else 1)
                ]
            )
            error, f1, success = found.mean(axis=0)
            rows.append((setting, method, n, gamma, beta, len(found), error, f1, 100 * success))
            print(rows[-1], flush=True)
            write_csv(
                "sparse_fm_synthetic",
                ("setting", "method", "N", "gamma", "beta", "runs", "error", "f1", "pssr"),
                rows,
            )
    draw()


def draw() -> None:
    """Draw Figures 3 (by N) and 4 (by γ, the best β of each) from the CSVs."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    for name, source, by, label in (
        ("sparse_fm_synthetic", read_csv("sparse_fm_synthetic"), "N", "instances N"),
        ("sparse_fm_strength", read_csv("sparse_fm_strength"), "gamma", "strength of the penalty"),
    ):
        drawn, axes = plt.subplots(2, 3, figsize=(13, 7), squeeze=False)
        for line, setting in enumerate(SETTINGS):
            for method in METHODS:
                mine = [r for r in source if (r["setting"], r["method"]) == (setting, method)]
                if by == "gamma":
                    mine = [r for r in mine if float(r["gamma"]) > 0]
                places = sorted({float(r[by]) for r in mine})
                for axis, what in zip(axes[line], ("error", "f1", "pssr"), strict=True):
                    pick = min if what == "error" else max
                    values = [pick(float(r[what]) for r in mine if float(r[by]) == x) for x in places]
                    if places:
                        axis.plot(places, values, marker="o", label=method)
            for axis, what in zip(axes[line], ("error", "f1", "pssr"), strict=True):
                axis.set(title=f"{setting}: {what}", xlabel=label)
                if by == "gamma":
                    axis.set_xscale("log")
                if what == "error":
                    axis.set_yscale("log")
        axes[0][0].legend(fontsize=7)
        drawn.tight_layout()
        drawn.savefig(RESULTS / f"{name}.png", dpi=110)
        plt.close(drawn)


def common_objective(data: Any, model: Any, gamma: float) -> float:
    """Return ½ mean (y − ŷ)² + γ Σ_{i<j} |W_ij|, W = PPᵀ or SLQR's own: what TI and CS bound."""
    P = parameters(model)
    W = P if hasattr(model, "W_") else P @ P.T
    loss = 0.5 * float(np.mean((data.y - model.predict(data.X)) ** 2))
    return loss + gamma * float(np.abs(np.triu(W, 1)).sum())


def convergence() -> None:
    """Follow the Ω_*-regularised objective: one measure, each fit from the start, kept as it is there."""
    name, heads = "sparse_fm_convergence", ("setting", "method", "gamma", "data", "epochs", "objective")
    steps = tuple(2**k for k in range(9))
    done = finished(name, *heads[:4])
    for seed in FOLLOWED:
        for gamma in FOLLOWED_STRENGTHS:
            for setting, shape in SETTINGS.items():
                data = planted_interactions(500, *shape, seed=seed)
                for method in METHODS:
                    key = (setting, method, f"{gamma:g}", str(seed))
                    if method == "FM" or key in done:
                        continue
                    beta = gamma if method == "SLQR" else 1e-3
                    rows = []
                    for epochs in steps:
                        model = make(method, gamma, beta, 0, epochs).set_params(max_iter=epochs, tol=0.0)
                        with so_many_epochs():
                            model.fit(data.X, data.y)
                        rows.append((*key, epochs, common_objective(data, model, gamma)))
                    append_csv(name, heads, rows)
                    print(*rows[-1], flush=True)
    draw_convergence(name)


def draw_convergence(name: str) -> None:
    """Draw the mean objective over the datasets that are there, of each setting and strength."""
    rows = read_csv(name)
    panels = list(dict.fromkeys((row["setting"], row["gamma"]) for row in rows))
    drawn, axes = figure(2, -(-len(panels) // 2))
    for axis, panel in zip(axes, panels, strict=False):
        shown = [row for row in rows if (row["setting"], row["gamma"]) == panel]
        for method in dict.fromkeys(row["method"] for row in shown):
            course: dict[int, list[float]] = {}
            for row in shown:
                if row["method"] == method:
                    course.setdefault(int(row["epochs"]), []).append(float(row["objective"]))
            axis.loglog(
                list(course), [np.mean(found) for found in course.values()], marker=".", label=method
            )
        axis.set(
            xlabel="epochs", ylabel="objective, l1 norm of W", title=f"{panel[0]}, gamma {panel[1]}"
        )
    axes[0].legend(fontsize=7)
    write_png(name, drawn)


def scaling() -> None:
    """Seconds of the processor an epoch against d: what EXTRA epochs add to a fit of one, the least of REPEATS fits."""
    rows: list[Any] = []
    for method in METHODS:
        for d in WIDTHS:
            wide = planted_interactions(200, 8, 5, d - 40, seed=1)
            extra = 1 if method == "SLQR" else EXTRA
            took = {}
            for epochs in (1, 1 + extra):
                model, seconds = make(method, 0.03, 1e-3, 0).set_params(max_iter=epochs, tol=0.0), []
                for _ in range(REPEATS):
                    started = time.process_time()
                    with so_many_epochs():
                        model.fit(wide.X, wide.y)
                    seconds.append(time.process_time() - started)
                took[epochs] = min(seconds)
            rows.append((method, d, (took[1 + extra] - took[1]) / extra))
            print(rows[-1], flush=True)
    write_csv("sparse_fm_time_against_d", ("method", "d", "seconds"), rows)


if __name__ == "__main__":
    run({"study": study, "convergence": convergence, "scaling": scaling})
