"""Coordinate and block descent on MovieLens 100K with side features, one thread, rank 30.

Users, items, age, gender, occupation, zip (first digit), year and genres, one-hot; 80,000 ratings
train. Ten epochs after compilation; fit_seconds is the whole call, the best of three. Objective and RMSE
say that all solve one problem; the first row is ridge regression on the same features: an error above its
own is no model of interactions.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge

from benchmarks.lab.common import Results, arguments
from recsys.datasets import load_dataset
from recsys.fm import FactorizationMachineRegressor, PairEncoder

COLUMNS = (
    "degree solver threads features nonzeros epoch_seconds ns_per_nonzero_component fit_seconds "
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


def main() -> None:
    X, y, held, truth, split = encoded()

    def rmse(model: Any) -> float:
        return float(np.sqrt(np.mean((model.predict(held) - truth) ** 2)))

    results = Results("fm_speed", COLUMNS)
    results.replace([])
    started = time.perf_counter()
    linear = Ridge(alpha=1.0).fit(X, y)
    seconds = time.perf_counter() - started
    results.add((1, "ridge", 1, X.shape[1], X.nnz, "", "", seconds, "", "", rmse(linear)))
    for degree in (2, 3):
        for solver, threads in (("cd", 1), ("block", 1), ("pairs", 1), ("pairs", 2)):
            options = {"degree": degree, "fit_lower": None, "n_components": 30, "solver": solver}
            options |= {"tol": 0.0, "init_scale": 0.1, "num_threads": threads, "split": split}
            FactorizationMachineRegressor(max_iter=1, **options).fit(X, y)
            best = np.inf
            for _ in range(3):
                started = time.perf_counter()
                model = FactorizationMachineRegressor(max_iter=10, **options).fit(X, y)
                best = min(best, time.perf_counter() - started)
            if solver == "cd":
                slow = best
            last = model.history_[-1]
            epoch = last["seconds"] / 10
            each = 1e9 * epoch / X.nnz / 30
            shape = (degree, solver, threads, X.shape[1], X.nnz)
            results.add((*shape, epoch, each, best, slow / best, last["objective"], rmse(model)))


if __name__ == "__main__":
    arguments()
    main()
