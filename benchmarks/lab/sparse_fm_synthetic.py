"""The synthetic study of the sparse FM paper (8.1, 8.2): recovery, strength, convergence, time against d.

Two settings: 8 groups of 5 features with 40 noise features (interaction selection), and 1 group of 10
with 70 (feature selection); d = 80 (the paper's dimensions are lost; these are ours). Features are
normal, correlation 0.2 in a group; noise of deviation 0.1. Strengths are chosen by F1 on two validation
datasets; then 10 test datasets and 3 seeds of P at the largest N (1 seed and 3 datasets at the smaller
ones). Each fit has CAP seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.lab.common import RESULTS, write_csv
from recsys.fm import (
    FactorizationMachineRegressor,
    SparseLowRankQuadratic,
    planted_interactions,
    recovery,
)
from recsys.fm.prox import prox_l1, prox_l21, prox_squared_l1, prox_squared_l21

CAP = 1.5
SETTINGS = {"interaction selection": (8, 5, 40), "feature selection": (1, 10, 70)}
METHODS = {
    "TI": ("ti", "cd"), "CS": ("cs", "block"), "L1": ("l1", "cd"), "L21": ("l21", "block"), "FM": ("l2", "cd"),
    "omega nmAPGD": ("omega", "nmapgd"), "omega SubGD": ("omega", "subgradient"), "SLQR": ("", ""),
}  # fmt: skip
GAMMAS = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0)
SIZES = (200, 500, 1000)


def until(cap: float) -> Callable[[int, float], bool]:
    started = time.perf_counter()
    return lambda step, value: time.perf_counter() - started > cap


def make(method: str, gamma: float, seed: int, cap: float = CAP, **more: Any) -> Any:
    if method == "SLQR":
        return SparseLowRankQuadratic(trace=gamma, gamma=gamma, max_iter=100_000, tol=1e-6, callback=until(cap), fit_intercept=False)  # fmt: skip
    penalty, solver = METHODS[method]
    beta = gamma if penalty == "l2" else 1e-3
    return FactorizationMachineRegressor(
        n_components=30, penalty=penalty, solver=solver, gamma=gamma, beta=beta, fit_linear=False,
        fit_intercept=False, init_scale=0.1, max_iter=100_000, tol=1e-7, random_state=seed,
        callback=until(cap), num_threads=1, **more,
    )  # fmt: skip


def parameters(model: Any) -> np.ndarray:
    return model.W_ if hasattr(model, "W_") else model.P_[0][0]


def measure(method: str, gamma: float, data: Any, seed: int) -> Any:
    return recovery(data.W, parameters(make(method, gamma, seed).fit(data.X, data.y)))


def study() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows: list[Any] = []
    curves: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for setting, (groups, size, noise) in SETTINGS.items():
        curves[setting] = {}
        for method in METHODS:
            valid = [
                planted_interactions(SIZES[-1], groups, size, noise, seed=1000 + k) for k in range(2)
            ]
            tried = {}
            for gamma in GAMMAS:
                found = [measure(method, gamma, data, 0) for data in valid]
                tried[gamma] = (np.mean([f.f1 for f in found]), -np.mean([f.error for f in found]))
            curves[setting][method] = [(gamma, float(tried[gamma][0])) for gamma in GAMMAS]
            gamma = max(tried, key=lambda g: tried[g])
            for n in SIZES:
                last = n == SIZES[-1]
                found = [
                    measure(method, gamma, planted_interactions(n, groups, size, noise, seed=k), seed)
                    for k in range(10 if last else 3)
                    for seed in range(3 if last and method != "SLQR" else 1)
                ]
                rows.append(
                    (
                        setting, method, n, gamma, len(found), float(np.mean([f.error for f in found])),
                        float(np.mean([f.f1 for f in found])), 100.0 * float(np.mean([f.success for f in found])),
                    )
                )  # fmt: skip
                print(rows[-1], flush=True)
                write_csv("sparse_fm_synthetic", ("setting", "method", "N", "gamma", "runs", "error", "f1", "pssr"), rows)  # fmt: skip
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
    for axis, (setting, lines) in zip(axes, curves.items(), strict=True):
        for method, points in lines.items():
            axis.semilogx(*zip(*points, strict=True), marker="o", label=method)
        axis.set(title=setting, xlabel="strength of the penalty", ylabel="F1 of the interactions")
    axes[1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(RESULTS / "sparse_fm_strength.png", dpi=120)


def convergence() -> None:
    """Ω_*-regularised objective against time, and seconds an epoch against d."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4))
    data = planted_interactions(500, 8, 5, 40, seed=3)
    for method in ("TI", "CS", "L1", "L21", "omega nmAPGD", "omega SubGD"):
        found: list[tuple[float, float]] = []
        started = time.perf_counter()

        def note(step: int, value: float, found: list[Any] = found, started: float = started) -> bool:
            found.append((time.perf_counter() - started, value))
            return found[-1][0] > CAP

        model = make(method, 0.03, 0)
        model.set_params(callback=note, tol=0.0).fit(data.X, data.y)
        axes[0].plot(*zip(*found, strict=True), label=method)
    axes[0].set(xlabel="seconds", ylabel="own objective", yscale="log", title="convergence, gamma 0.03")
    axes[0].legend(fontsize=7)
    rows = []
    for method in METHODS:
        times = []
        for d in (80, 160, 320, 640):
            wide = planted_interactions(200, 8, 5, d - 40, seed=1)
            model = make(method, 0.03, 0, cap=60.0)
            steps = 2 if method == "SLQR" else 3
            model.set_params(max_iter=steps, tol=0.0).fit(wide.X, wide.y)
            times.append(model.history_[-1]["seconds"] / steps)
            rows.append((method, d, times[-1]))
        axes[1].loglog((80, 160, 320, 640), times, marker="o", label=method)
    axes[1].set(xlabel="features d", ylabel="seconds an epoch", title="time against d, N = 200")
    figure.tight_layout()
    figure.savefig(RESULTS / "sparse_fm_convergence.png", dpi=120)
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
        for name, Q in (("L1", prox_l1(P, strength)), ("L21", prox_l21(P, strength)), ("TI", columns), ("CS", prox_squared_l21(P, 0.5 * strength / 10))):  # fmt: skip
            W = np.triu(Q @ Q.T, 1)
            lines[name].append((strength, float((W != 0).sum() / (200 * 199 / 2))))
            used[name].append((strength, float((Q != 0).any(axis=1).mean())))
    figure, axes = plt.subplots(1, 2, figsize=(10, 4))
    for axis, what, title in ((axes[0], lines, "interactions used"), (axes[1], used, "features used")):
        for name, points in what.items():
            axis.semilogx(*zip(*points, strict=True), label=name)
        axis.set(xlabel="strength (TI and CS: times 10)", title=f"share of {title}")
        axis.legend()
    figure.tight_layout()
    figure.savefig(RESULTS / "sparse_fm_operators.png", dpi=120)
    rows = []
    prox_squared_l1(P[:, 0], 0.1, "sort")
    for d in (10**3, 10**4, 10**5, 10**6):
        q = np.random.default_rng(1).normal(size=d)
        seconds = {}
        for method in ("sort", "random"):
            best = np.inf
            for _ in range(7):
                started = time.perf_counter()
                prox_squared_l1(q, 0.1, method)
                best = min(best, time.perf_counter() - started)
            seconds[method] = best
        rows.append((d, seconds["sort"], seconds["random"], seconds["sort"] / seconds["random"]))
        print(rows[-1], flush=True)
    write_csv("sparse_fm_operators", ("d", "sort seconds", "random seconds", "ratio"), rows)


if __name__ == "__main__":
    for what in sys.argv[1:] or ["operators", "convergence", "study"]:
        {"operators": operators, "convergence": convergence, "study": study}[what]()
