"""Every solver of the factorization machines with one thread and with two, on MovieLens 100K.

The rows are those of fm_speed: 80,000 ratings with side features, rank 30. A solver's runs with one and
with two threads alternate, so that what else the machine does falls on both; five of each after
compilation, of which the medians are compared. `ratio` is two threads over one.

    python -m benchmarks.fm_threads [solver ...]
"""

from __future__ import annotations

import sys
import time

import numpy as np

from benchmarks.fm_speed import encoded
from benchmarks.lab.common import write_csv
from recsys.fm import FactorizationMachineRegressor

RUNS = 5
# Epochs of a run, enough that it takes some tenths of a second.
SOLVERS = {
    "cd": 3, "relational": 20, "block": 2, "sgd": 2, "adagrad": 2, "fista": 3, "nmapgd": 3,
    "katyusha": 1, "lbfgs": 5, "subgradient": 3,
}  # fmt: skip


def main(chosen: list[str]) -> None:
    X, y, _, _ = encoded()
    rows = []
    for degree in (2, 3):
        for solver, epochs in SOLVERS.items():
            if chosen and solver not in chosen:
                continue
            options = {"degree": degree, "fit_lower": None, "n_components": 30, "solver": solver}
            options |= {"tol": 0.0, "init_scale": 0.1, "learning_rate": 0.02, "max_iter": epochs}
            options["batch_size"] = 4_000 if solver == "katyusha" else 8
            seconds: dict[int, list[float]] = {1: [], 2: []}
            for run in range(RUNS + 1):
                for threads in (1, 2):
                    started = time.perf_counter()
                    FactorizationMachineRegressor(num_threads=threads, **options).fit(X, y)
                    if run > 0:  # the first compiles
                        seconds[threads].append(time.perf_counter() - started)
            one, two = (float(np.median(seconds[threads])) for threads in (1, 2))
            spread = [f"{min(s):.3f}-{max(s):.3f}" for s in seconds.values()]
            rows.append((degree, solver, epochs, one, two, two / one, *spread))
            print(rows[-1], flush=True)
    write_csv(
        "fm_threads",
        (
            "degree", "solver", "epochs", "one_thread_seconds", "two_threads_seconds", "ratio",
            "one_range", "two_range",
        ),
        rows,
    )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
