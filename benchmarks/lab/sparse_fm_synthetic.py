"""The synthetic study of the sparse FM paper (8.1, 8.2): recovery, strength, convergence, time against d.

Two settings: 8 groups of 10 features with 20 of noise (interaction selection), and 1 group of 20 with 80 (feature
selection), correlation 0.2 in a group, noise of deviation 0.1, rank 30, first P of deviation 0.01. The numbers
are stripped from the text of the paper at hand; these are its arXiv version's as remembered. The first P
matters: L1's threshold is absolute, so that a P ten times as large helps it, while TI's scales with P.

Strengths γ and β are chosen at N = 500 by F1, averaged over two validation datasets with a first P each; of
equally good γ the middle one, of its β that of the least error. Where a method never selects (all F1 equal) the
least error decides. Then test datasets and first P's as RUNS says. The paper stops every fit after one second;
here EPOCHS count, so that the figures can be made again anywhere.

    python -m benchmarks.lab.sparse_fm_synthetic [study] [convergence] [scaling]
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from benchmarks.lab.common import Results, plot, run
from benchmarks.lab.planted import planted_interactions, recovery
from benchmarks.lab.quadratic import SparseLowRankQuadratic
from recsys.fm import FactorizationMachineRegressor

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
# (γ, β) of each method; SLQR's β is the weight of its trace norm.
GRID = {
    name: [(g, b) for g in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0) for b in (1e-4, 1e-3, 1e-2)]
    for name in SELECTING
} | {
    "FM": [(0.0, b) for b in (1e-3, 1e-2, 1e-1, 1.0)],
    "SLQR": [(g, b) for g in (0.03, 0.1, 0.3, 1.0) for b in (0.03, 0.1, 0.3, 1.0, 3.0)],
    "omega nmAPGD": [(g, 1e-3) for g in (0.03, 0.1, 0.3)],
    "omega SubGD": [(g, 1e-3) for g in (0.03, 0.1, 0.3)],
}
TUNED_AT = 500
RUNS = {200: (3, 1), 350: (5, 2), 500: (5, 2), 1000: (5, 2)}  # N: test datasets, first P's of SELECTING
OTHERS = (3, 1)  # of the other methods
# Figure 5: seeds of its datasets, and its two strengths (stripped from the text at hand as well).
FOLLOWED, FOLLOWED_STRENGTHS = (3, 4), (0.1, 0.01)
WIDTHS, EXTRA, REPEATS = (80, 160, 320, 640, 1280, 2560), 3, 5  # of Figure 6
MEASURES = ["error", "f1", "pssr"]


def make(method: str, gamma: float, beta: float, seed: int, epochs: int, tol: float) -> Any:
    if method == "SLQR":
        return SparseLowRankQuadratic(beta, gamma, max_iter=epochs, tol=tol, fit_intercept=False)
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
        tol=tol,
        random_state=seed,
        num_threads=1,
    )


def parameters(model: Any) -> np.ndarray:
    return model.W_ if hasattr(model, "W_") else model.P_[0][0]


def common_objective(X: Any, y: np.ndarray, model: Any, gamma: float) -> float:
    """Return ½ mean (y − ŷ)² + γ Σ_{i<j} |W_ij|, W = PPᵀ or SLQR's own: what TI and CS bound."""
    P = parameters(model)
    W = P if hasattr(model, "W_") else P @ P.T
    loss = 0.5 * float(np.mean((y - model.predict(X)) ** 2))
    return loss + gamma * float(np.abs(np.triu(W, 1)).sum())


def measures(
    setting: str, method: str, gamma: float, beta: float, n: int, runs: list[tuple[int, int]]
) -> np.ndarray:
    """Return the mean error, F1 and share of successes over runs, each a dataset and a first P."""
    out = []
    for data, seed in runs:
        planted = planted_interactions(n, *SETTINGS[setting], seed=data)
        model = make(method, gamma, beta, seed, EPOCHS, 1e-7).fit(planted.X, planted.y)
        found = recovery(planted.W, parameters(model))
        out.append((found.error, found.f1, 100 * found.success))
    return np.mean(out, axis=0)


def choose(tried: pd.DataFrame) -> tuple[float, float]:
    """Return the (γ, β) of the best F1; ties as the module says."""
    best = tried[tried["f1"] == tried["f1"].max()]
    if tried["f1"].nunique() > 1:
        gammas = sorted(best["gamma"].unique())
        best = best[best["gamma"] == gammas[(len(gammas) - 1) // 2]]
    row = best.loc[best["error"].idxmin()]
    return float(row["gamma"]), float(row["beta"])


def study() -> None:
    """Figures 3 and 4."""
    strengths = Results(
        "sparse_fm_strength", ("setting", "method", "gamma", "beta", "f1", "error", "pssr"), 4
    )
    heads = ("setting", "method", "N", "gamma", "beta", "runs", *MEASURES)
    results = Results("sparse_fm_synthetic", heads, 3)
    for setting, method in [(setting, method) for setting in SETTINGS for method in METHODS]:
        for key in strengths.missing([(setting, method, *pair) for pair in GRID[method]]):
            error, f1, pssr = measures(*key, TUNED_AT, [(1000, 0), (1001, 1)])
            strengths.add((*key, f1, error, pssr))
        for *_, n in results.missing([(setting, method, n) for n in RUNS]):
            tried = strengths.frame()
            gamma, beta = choose(tried[(tried["setting"] == setting) & (tried["method"] == method)])
            sets, seeds = RUNS[n] if method in SELECTING else OTHERS
            runs = [(data, seed) for data in range(sets) for seed in range(seeds)]
            found = measures(setting, method, gamma, beta, n, runs)
            results.add((setting, method, n, gamma, beta, len(runs), *found))
    best = {"error": "min", "f1": "max", "pssr": "max"}  # over the β of each γ
    frame = strengths.frame().query("gamma > 0")
    frame = frame.groupby(["setting", "method", "gamma"], sort=False).agg(best)
    draw(frame, "sparse_fm_strength", "gamma", "log")
    frame = results.frame().set_index(["setting", "method", "N"])[MEASURES]
    draw(frame, "sparse_fm_synthetic", "N", "linear")


def draw(frame: pd.DataFrame, name: str, x: str, xscale: str) -> None:
    frame = frame.assign(error=np.log10(frame["error"])).rename(columns={"error": "log10 error"})
    frame = frame.reset_index().melt(["setting", "method", x], var_name="measure")
    frame["panel"] = frame["setting"] + ": " + frame["measure"]
    plot(name, frame, x, "value", "method", "panel", 2, xscale=xscale)


def convergence() -> None:
    """Figure 5: the objective with the ℓ1 norm of the interactions by epochs, each fit from the start."""
    heads = ("setting", "method", "gamma", "data", "epochs", "objective")
    results = Results("sparse_fm_convergence", heads, 5)
    for *key, epochs in results.missing(
        [
            (setting, method, gamma, seed, 2**k)
            for seed in FOLLOWED
            for gamma in FOLLOWED_STRENGTHS
            for setting in SETTINGS
            for method in METHODS
            for k in range(9)
            if method != "FM"
        ]
    ):
        setting, method, gamma, seed = key
        data = planted_interactions(500, *SETTINGS[setting], seed=seed)
        beta = gamma if method == "SLQR" else 1e-3
        model = make(method, gamma, beta, 0, epochs, 0.0).fit(data.X, data.y)
        results.add((*key, epochs, common_objective(data.X, data.y, model, gamma)))
    keys = ["setting", "gamma", "method", "epochs"]
    frame = results.frame().groupby(keys, as_index=False)["objective"].mean()
    frame["panel"] = frame["setting"] + frame["gamma"].map(", gamma {:g}".format)
    scales = {"xscale": "log", "yscale": "log"}
    plot(results.name, frame, "epochs", "objective", "method", "panel", 2, **scales)


def scaling() -> None:
    """Figure 6: CPU seconds an epoch against d: what EXTRA epochs add to a fit of one, the least of REPEATS fits."""
    results = Results("sparse_fm_time_against_d", ("method", "d", "seconds"), 2)
    for method, d in results.missing([(method, d) for method in METHODS for d in WIDTHS]):
        wide = planted_interactions(200, 8, 5, d - 40, seed=1)
        extra = 1 if method == "SLQR" else EXTRA
        least = []
        for epochs in (1, 1 + extra):
            seconds = []
            for _ in range(REPEATS):
                model = make(method, 0.03, 1e-3, 0, epochs, 0.0)
                started = time.process_time()
                model.fit(wide.X, wide.y)
                seconds.append(time.process_time() - started)
            least.append(min(seconds))
        results.add((method, d, (least[1] - least[0]) / extra))


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)  # the last epoch ends a fit
    run({"study": study, "convergence": convergence, "scaling": scaling})
