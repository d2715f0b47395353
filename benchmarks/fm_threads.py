"""Every solver of the factorization machines with one thread and with two, on MovieLens 100K.

The rows are those of fm_speed: 80,000 ratings with side features, rank 30. A solver's runs with one
thread, with two, and with two where every pass is threaded, however small, alternate, so that what else
the machine does falls on all; three of each after compilation, of which the medians are compared.
`ratio` is two threads over one; `forced` the same where every pass is threaded.

`limit` is what no second thread can better here: two processes fit at once, each on one thread, and a
pair of fits takes that share of two fits one after the other.

    python -m benchmarks.fm_threads [solver ...]
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

import recsys.utils.threads
from benchmarks.fm_speed import encoded
from benchmarks.lab.common import write_csv
from recsys.fm import FactorizationMachineRegressor

RUNS = 3
# Epochs of a run, enough that it takes some tenths of a second.
SOLVERS = {
    "cd": 3, "relational": 20, "block": 2, "sgd": 2, "adagrad": 2, "fista": 3, "nmapgd": 3,
    "katyusha": 1, "lbfgs": 5, "subgradient": 3,
}  # fmt: skip
ONE, TWO, FORCED = range(3)
_process: dict[str, Any] = {}


def seconds_of_fit(X: Any, y: np.ndarray, options: dict[str, Any], way: int) -> float:
    """Return the seconds of one fit."""
    worth = recsys.utils.threads.WORTH
    recsys.utils.threads.WORTH = 0 if way == FORCED else worth
    started = time.perf_counter()
    FactorizationMachineRegressor(num_threads=1 if way == ONE else 2, **options).fit(X, y)
    recsys.utils.threads.WORTH = worth
    return time.perf_counter() - started


def begin(barrier: Any) -> None:
    """Load the rows in a process of its own."""
    X, y, _, _ = encoded()
    _process.update(X=X, y=y, barrier=barrier)


def at_once(options: dict[str, Any]) -> list[float]:
    """Return the seconds of fits that begin when the other process' do."""
    seconds = []
    for _ in range(RUNS + 1):
        _process["barrier"].wait()
        seconds.append(seconds_of_fit(_process["X"], _process["y"], options, ONE))
    return seconds[1:]


def main(chosen: list[str]) -> None:
    X, y, _, _ = encoded()
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    rows = []
    with ProcessPoolExecutor(2, context, begin, (barrier,)) as pool:
        for degree in (2, 3):
            for solver, epochs in SOLVERS.items():
                if chosen and solver not in chosen:
                    continue
                options = {"degree": degree, "fit_lower": None, "n_components": 30, "solver": solver}
                options |= {"tol": 0.0, "init_scale": 0.1, "learning_rate": 0.02, "max_iter": epochs}
                options["batch_size"] = 4_000 if solver == "katyusha" else 8
                seconds: dict[int, list[float]] = {way: [] for way in (ONE, TWO, FORCED)}
                for run in range(RUNS + 1):
                    for way in (ONE, TWO, FORCED):
                        taken = seconds_of_fit(X, y, options, way)
                        if run > 0:  # the first compiles
                            seconds[way].append(taken)
                one, two, forced = (float(np.median(seconds[way])) for way in (ONE, TWO, FORCED))
                pair = [pool.submit(at_once, options) for _ in range(2)]
                both = float(np.median(np.max([each.result() for each in pair], axis=0)))
                spread = [f"{min(seconds[way]):.3f}-{max(seconds[way]):.3f}" for way in (ONE, TWO)]
                ratios = (two / one, forced / one, both / (2.0 * one))
                rows.append((degree, solver, epochs, one, two, *ratios, *spread))
                print(rows[-1], flush=True)
    write_csv(
        "fm_threads",
        (
            "degree", "solver", "epochs", "one_thread_seconds", "two_threads_seconds", "ratio",
            "forced", "limit", "one_range", "two_range",
        ),
        rows,
    )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
