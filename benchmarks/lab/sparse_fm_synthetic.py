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

`convergence` goes on in its own file.

`short` has TI and L1 once more after SHORT epochs, about the paper's second: L1 recovers supports at
N = 1,000 here, where it does not in print, and the number of epochs decides it.

Left out: the paper's numbers of datasets and of first P's (more than here). `scaling` keeps 8 groups of 5.
"""

from __future__ import annotations

import csv
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.lab.common import RESULTS, append_csv, figure, read_csv, run, write_csv, write_png
from benchmarks.lab.quadratic import SparseLowRankQuadratic
from recsys.fm import (
    FactorizationMachineRegressor,
    planted_interactions,
    recovery,
)
from recsys.optim.prox import prox_l1, prox_l21, prox_squared_l1, prox_squared_l21

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
SHORT = 50
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


class Study:
    """The fits, each made once and kept in a file."""

    def __init__(self, name: str = "sparse_fm_synthetic_runs", epochs: int = EPOCHS) -> None:
        self.path, self.epochs = RESULTS / f"{name}.csv", epochs
        self.done: dict[tuple[str, ...], tuple[float, float, float]] = {}
        if self.path.exists():
            with open(self.path, newline="") as file:
                for row in csv.DictReader(file):
                    found = tuple(float(row[c]) for c in COLUMNS[-3:])
                    self.done[tuple(row[c] for c in COLUMNS[:-3])] = found  # type: ignore[assignment]
        else:
            self._write(COLUMNS)

    def _write(self, row: Sequence[Any]) -> None:
        self.path.parent.mkdir(exist_ok=True)
        with open(self.path, "a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(row)

    def fit(
        self,
        stage: str,
        setting: str,
        method: str,
        gamma: float,
        beta: float,
        n: int,
        data: int,
        seed: int,
    ) -> tuple[float, float, float]:
        """Return error, F1 and success of one fit."""
        shown = (stage, setting, method, f"{gamma:g}", f"{beta:g}", str(n), str(data), str(seed))
        if shown not in self.done:
            planted = planted_interactions(
                n, *SETTINGS[setting], seed=data + (1000 if stage == "validation" else 0)
            )
            with so_many_epochs():
                model = make(method, gamma, beta, seed, self.epochs).fit(planted.X, planted.y)
            found = recovery(planted.W, parameters(model))
            kept = (f"{found.error:.6g}", f"{found.f1:.6g}", str(int(found.success)))
            self._write((*shown, *kept))
            self.done[shown] = (float(kept[0]), float(kept[1]), float(kept[2]))  # as read again
        return self.done[shown]

    def tune(self, setting: str, method: str, grid: Any = None, n: int = TUNED_AT) -> dict[Any, Any]:
        """Return (γ, β) → mean F1, error and share of successes on validation."""
        return {
            (g, b): tuple(
                np.mean(
                    [self.fit("validation", setting, method, g, b, n, k, k) for k in range(2)], axis=0
                )[[1, 0, 2]]
            )
            for g, b in (grid or GRID[method])
        }


def study() -> None:
    fits = Study()
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
        tried = fits.tune(setting, method)
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
                    fits.fit("test", setting, method, gamma, beta, n, k, seed)
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


def short() -> None:
    """TI and L1 at N = 1,000 with the strengths of the study, after SHORT epochs and after EPOCHS."""
    chosen = {
        row["method"]: row
        for row in read_csv("sparse_fm_synthetic")
        if row["setting"] == next(iter(SETTINGS))
    }
    sets, seeds = RUNS[1000]
    rows = []
    for epochs, name in (
        (SHORT, "sparse_fm_synthetic_short_runs"),
        (EPOCHS, "sparse_fm_synthetic_runs"),
    ):
        fits = Study(name, epochs)
        for method in ("TI", "L1"):
            gamma, beta = float(chosen[method]["gamma"]), float(chosen[method]["beta"])
            found = [
                fits.fit("test", next(iter(SETTINGS)), method, gamma, beta, 1000, k, seed)
                for k in range(sets)
                for seed in range(seeds)
            ]
            error, f1, success = np.mean(found, axis=0)
            rows.append(
                (epochs, method, gamma, beta, len(found), float(error), float(f1), 100 * float(success))
            )
    write_csv(
        "sparse_fm_synthetic_short",
        ("epochs", "method", "gamma", "beta", "runs", "error", "f1", "pssr"),
        rows,
    )


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
    there = read_csv(name) if (RESULTS / f"{name}.csv").exists() else []
    done = {tuple(row[head] for head in heads[:4]) for row in there}
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


def operators() -> None:
    """Sparsity of the operators' outputs (8.1), and sorting against random selection."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    P = np.random.default_rng(0).normal(size=(200, 5))
    lines: dict[str, list[tuple[float, float]]] = {"L1": [], "L21": [], "TI": [], "CS": []}
    used: dict[str, list[tuple[float, float]]] = {name: [] for name in lines}
    for strength in np.logspace(-3, 0.5, 25):
        columns = np.column_stack([prox_squared_l1(P[:, s], 0.5 * strength / 10) for s in range(5)])
        for name, Q in (
            ("L1", prox_l1(P, strength)),
            ("L21", prox_l21(P, strength)),
            ("TI", columns),
            ("CS", prox_squared_l21(P, 0.5 * strength / 10)),
        ):
            W = np.triu(Q @ Q.T, 1)
            lines[name].append((strength, float((W != 0).sum() / (200 * 199 / 2))))
            used[name].append((strength, float((Q != 0).any(axis=1).mean())))
    drawn, axes = plt.subplots(1, 2, figsize=(10, 4))
    for axis, what, title in ((axes[0], lines, "interactions used"), (axes[1], used, "features used")):
        for name, points in what.items():
            axis.semilogx(*zip(*points, strict=True), label=name)
        axis.set(xlabel="strength (TI and CS: times 10)", title=f"share of {title}")
        axis.legend()
    drawn.tight_layout()
    drawn.savefig(RESULTS / "sparse_fm_operators.png", dpi=120)
    selection()


def selection() -> None:
    """Seconds of the processor of sorting against random selection, at three strengths (C.3, Figure 10)."""
    for method in ("sort", "random"):
        prox_squared_l1(np.ones(9), 0.1, method)  # compiles
    rows = []
    for strength in (0.001, 0.1, 10.0):
        for d in (10**2, 10**3, 10**4, 10**5, 10**6):
            draws = [np.random.default_rng(seed).normal(size=d) for seed in range(3)]
            seconds = {}
            for method in ("sort", "random"):
                best = []
                for q in draws:
                    calls, least = max(1, 20_000 // d), np.inf
                    for _ in range(7):
                        started = time.process_time()
                        for _ in range(calls):
                            prox_squared_l1(q, strength, method)
                        least = min(least, (time.process_time() - started) / calls)
                    best.append(least)
                seconds[method] = float(np.mean(best))
            rows.append(
                (strength, d, seconds["sort"], seconds["random"], seconds["sort"] / seconds["random"])
            )
            print(rows[-1], flush=True)
    write_csv("sparse_fm_operators", ("strength", "d", "sort seconds", "random seconds", "ratio"), rows)


if __name__ == "__main__":
    run(
        {
            "operators": operators,
            "study": study,
            "short": short,
            "convergence": convergence,
            "scaling": scaling,
            "selection": selection,
        },
        ("operators", "study", "short", "convergence", "scaling"),
    )
