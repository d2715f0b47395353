"""Coordinate descent on rows of four kinds of objects: `relational` against `cd`, one thread.

MovieLens 100K: users and items with what is known of them, the month and the weekday of the rating, and,
as in SVD++, all movies that the user has rated, 1/√n each, which are a function of the user. 80,000 ratings
train. Ten epochs after compilation, both from the same point; the best of two whole fits each, which
alternate, in seconds of the processor: what else the machine does takes no part.

python -m benchmarks.fm_blocks
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import scipy.sparse as sp

from benchmarks.lab.common import write_csv
from recsys.datasets import load_dataset
from recsys.fm import FactorizationMachineRegressor, PairEncoder
from recsys.fm.blocks import joined_blocks


def encoded() -> tuple[sp.csr_matrix, np.ndarray, sp.csr_matrix, np.ndarray]:
    """Return train rows, ratings, test rows, ratings of a random 80/20 split."""
    data = load_dataset("movielens")
    people = data.user_features.assign(zip=data.user_features["zip"].astype(str).str[0])
    encoder = PairEncoder(people, data.item_features).fit(data.n_users, data.n_items)
    order = np.random.default_rng(0).permutation(len(data.users))
    train, test = order[:80_000], order[80_000:]
    history = sp.csr_matrix(
        (np.ones(80_000), (data.users[train], data.items[train])), (data.n_users, data.n_items)
    )
    history = sp.diags(1.0 / np.sqrt(np.maximum(np.diff(history.indptr), 1))) @ history
    when = pd.to_datetime(data.time, unit="s")
    months = when.year * 12 + when.month
    fields = [
        encoder.transform(data.users, data.items),
        sp.csr_matrix(np.eye(months.max() - months.min() + 1)[months - months.min()]),
        sp.csr_matrix(np.eye(7)[when.day_of_week]),
        sp.csr_matrix(history)[data.users],
    ]
    X = sp.csr_matrix(sp.hstack(fields))
    return X[train], data.rating[train], X[test], data.rating[test]


def main() -> None:
    X, y, held, truth = encoded()
    objects = " + ".join(str(block.rows.shape[0]) for block in joined_blocks(X))
    rows = []
    for degree in (2, 3):
        seconds, found = {"relational": np.inf, "cd": np.inf}, {}
        for run in range(3):
            for solver in seconds:
                started = time.process_time()
                model = FactorizationMachineRegressor(
                    degree=degree, n_components=8, solver=solver, tol=0.0, num_threads=1,
                    max_iter=10 if run else 1,
                ).fit(X, y)  # fmt: skip
                if run:  # the first compiles
                    seconds[solver] = min(seconds[solver], time.process_time() - started)
                    found[solver] = model
        objectives = {solver: model.history_[-1]["objective"] for solver, model in found.items()}
        for solver, model in found.items():
            rmse = float(np.sqrt(np.mean((model.predict(held) - truth) ** 2)))
            row = (degree, solver, objects, X.shape[1], X.nnz, seconds[solver], objectives[solver], rmse)
            compared = (
                seconds["cd"] / seconds["relational"], abs(objectives["cd"] - objectives["relational"])
            )  # fmt: skip
            rows.append((*row, *(compared if solver == "cd" else ("", ""))))
            print(rows[-1], flush=True)
    write_csv(
        "fm_blocks",
        ("degree", "solver", "objects", "features", "nonzeros", "cpu seconds of a fit", "objective", "rmse",
         "times as long as relational", "difference of objectives"),
        rows,
    )  # fmt: skip


if __name__ == "__main__":
    main()
