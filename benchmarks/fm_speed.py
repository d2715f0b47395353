"""Factorization machines on MovieLens 100K with side features, rank 30, beside fastFM and myFM where they are installed.

Users, items, age, gender, occupation, zip (first digit), year and genres, one-hot; 80,000 ratings train. Descents
have ten epochs, samplers 100 draws, of which the first ten do not count. fit_seconds is the whole call after
compilation, epoch_cpu_seconds its processor seconds by epoch or draw: the best of three. Objective and RMSE say that
the descents, fastFM's included, solve one problem; the first row is ridge regression on the same features: an error
above its own is no model of interactions. "gibbs" and myFM sample under priors of the same form.

The peers run in this Python: `pip install --no-deps --target PEERS myfm tqdm`, and fastFM 0.2.10 from its source, with
fastFM/ffm.c deleted, by Cython 0.29. Put PEERS on PYTHONPATH and set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from benchmarks.lab.common import Results, arguments
from recsys.datasets import load_dataset
from recsys.fm import BayesianFactorizationMachineRegressor, FactorizationMachineRegressor, PairEncoder

COLUMNS = (
    "degree solver threads features nonzeros epoch_cpu_seconds ns_per_nonzero_component fit_seconds "
    "times_faster_than_cd objective rmse"
).split()


def encoded() -> tuple[Any, np.ndarray, Any, np.ndarray, int]:
    """Return train rows, ratings, test rows, ratings and the number of user columns of a random 80/20 split."""
    data = load_dataset("movielens")
    people = data.user_features.assign(zip=data.user_features["zip"].astype(str).str[0])
    encoder = PairEncoder(people, data.item_features).fit(data.n_users, data.n_items)
    X = encoder.transform(data.users, data.items)
    order = np.random.default_rng(0).permutation(len(data.users))
    train, test = order[:80_000], order[80_000:]
    return X[train], data.rating[train], X[test], data.rating[test], encoder.split_


def timed(fit: Callable[..., Any], *data: Any, **options: Any) -> tuple[Any, float, float]:
    """Return a fitted model, and the least processor seconds and seconds of three fits."""
    taken = []
    for _ in range(3):
        used, started = time.process_time(), time.perf_counter()
        model = fit(*data, **options)
        taken.append((time.process_time() - used, time.perf_counter() - started))
    return model, *np.min(taken, axis=0).tolist()


def peer(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        print(f"no row of {name}, which is not installed")


def main() -> None:
    X, y, held, truth, split = encoded()
    results = Results("fm_speed", COLUMNS)
    results.replace([])

    def add(degree: int, solver: str, threads: int, fitted: Any, epochs: int, *rest: Any) -> None:
        model, cpu, seconds = fitted
        error = float(np.sqrt(np.mean((model.predict(held) - truth) ** 2)))
        each = 1e9 * cpu / epochs / X.nnz / 30
        shape = (degree, solver, threads, X.shape[1], X.nnz)
        results.add((*shape, cpu / epochs, each, seconds, *rest, error))

    add(1, "ridge", 1, timed(Ridge(alpha=1.0).fit, X, y), 1, "", "")
    slow = {}
    for degree in (2, 3):
        for solver, threads in (("cd", 1), ("block", 1), ("pairs", 1), ("pairs", 2)):
            options = {"degree": degree, "fit_lower": None, "n_components": 30, "solver": solver}
            options |= {"tol": 0.0, "init_scale": 0.1, "num_threads": threads, "split": split}
            FactorizationMachineRegressor(max_iter=1, **options).fit(X, y)
            fitted = timed(FactorizationMachineRegressor(max_iter=10, **options).fit, X, y)
            slow.setdefault(degree, fitted[2])
            faster, objective = slow[degree] / fitted[2], fitted[0].history_[-1]["objective"]
            add(degree, solver, threads, fitted, 10, faster, objective)
    rank = {"n_components": 30, "split": split, "num_threads": 1}
    BayesianFactorizationMachineRegressor(n_draws=2, burn_in=0, **rank).fit(X, y)
    add(2, "gibbs", 1, timed(BayesianFactorizationMachineRegressor(**rank).fit, X, y), 100, "", "")

    if myfm := peer("myfm"):
        options = {"n_iter": 100, "n_kept_samples": 90, "group_shapes": [split, X.shape[1] - split]}
        add(2, "myFM", 1, timed(myfm.MyFMRegressor(rank=30).fit, X, y, **options), 100, "", "")
    if als := peer("fastFM.als"):
        columns, held, alpha, beta = sp.csc_matrix(X), sp.csc_matrix(held), 1e-4, 1e-3
        sums = {"l2_reg_w": alpha * len(y), "l2_reg_V": beta * len(y)}  # of a loss that is no mean
        fitted = timed(lambda: als.FMRegression(n_iter=10, rank=30, **sums).fit(columns, y))
        model = fitted[0]
        loss = np.mean((model.predict(columns) - y) ** 2)
        loss += alpha * np.sum(model.w_**2) + beta * np.sum(model.V_**2)
        add(2, "fastFM", 1, fitted, 10, slow[2] / fitted[2], float(loss) / 2)


if __name__ == "__main__":
    arguments()
    main()
