"""Bayesian factorization machines on MovieLens 100K: error, intervals, seconds a sweep beside a peer.

The rows and features are those of `fm_speed.py`, one split of 80/20. 50 sweeps, the first 10 of them
forgotten, ranks 10 and 30. Seconds a sweep are of processor time on one thread (the difference of the best of
three fits of 15 sweeps and the best of three of 5, so that set-up does not count). The error is of means
clipped to 1…5, as libFM prints it.

The peers, of order 2 over the same non-zeros, all columns of one prior: myFM, where it is installed, and libFM,
where its program is given; the source package of `wpyfm` has libFM's own files, of which
`g++ -O3 -std=c++17 -I eigen libfm.cpp` makes it (its `Data.h` wants pybind11's headers). libFM forgets no
sweep, and scores its test file in each; while it is timed, that is one row.

    python -m benchmarks.bayesian_fm [--libfm PROGRAM]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.datasets import dump_svmlight_file

from benchmarks.fm_speed import encoded
from benchmarks.lab.common import write_csv
from recsys.fm import BayesianFactorizationMachineRegressor

SWEEPS, FORGOTTEN, LEVEL = 50, 10, 0.9
MODELS = ((2, 10), (2, 30), (3, 10))


def processor() -> float:
    """Return the processor seconds of this process and of those that it has waited for."""
    of_others = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + of_others.ru_utime + of_others.ru_stime


def seconds_a_sweep(fit: Callable[[int], Any]) -> float:
    """Return the processor seconds of one of ten more sweeps."""
    least = []
    for sweeps in (5, 15):
        spent = []
        for _ in range(3):
            started = processor()
            fit(sweeps)
            spent.append(processor() - started)
        least.append(min(spent))
    return (least[1] - least[0]) / 10


class LibFM:
    """libFM's program on files of these rows."""

    def __init__(self, program: str, folder: Path, X: Any, y: np.ndarray, held: Any) -> None:
        self.program, self.folder = program, folder
        for name, rows, target in (
            ("train", X, y), ("test", held, np.zeros(held.shape[0])), ("one", held[:1], np.zeros(1)),
        ):  # fmt: skip
            dump_svmlight_file(rows, target, str(folder / name), zero_based=True)

    def predict(self, rank: int, sweeps: int, test: str = "test") -> np.ndarray:
        """Return the means of the predictions over all sweeps."""
        out = self.folder / "predictions"
        subprocess.run(
            [
                self.program, "-task", "r", "-train", "train", "-test", test, "-dim", f"1,1,{rank}", "-iter",
                str(sweeps), "-method", "mcmc", "-init_stdev", "0.1", "-seed", "0", "-out", str(out),
            ],
            check=True, stdout=subprocess.DEVNULL, cwd=self.folder,
        )  # fmt: skip
        return np.loadtxt(out)


def main(libfm: str | None) -> None:
    X, y, held, truth = encoded()
    rows: list[tuple[object, ...]] = []

    def rmse(found: np.ndarray) -> float:
        return float(np.sqrt(np.mean((np.clip(found, 1.0, 5.0) - truth) ** 2)))

    for degree, rank in MODELS:
        settings = {"degree": degree, "n_components": rank, "num_threads": 1}
        model = BayesianFactorizationMachineRegressor(n_draws=SWEEPS, burn_in=FORGOTTEN, **settings)
        started = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - started
        low, high = model.predict_interval(held, LEVEL).T
        inside = float(np.mean((low <= truth) & (truth <= high)))

        def fit(sweeps: int, settings: dict = settings) -> None:
            BayesianFactorizationMachineRegressor(n_draws=sweeps, burn_in=sweeps - 1, **settings).fit(
                X, y
            )

        rows.append(
            ("recsys", degree, rank, rmse(model.predict(held)), inside, seconds_a_sweep(fit), seconds)
        )
        print(rows[-1], flush=True)
    try:
        import myfm
    except ImportError:
        print("myFM is not installed: no peer")
    else:
        for rank in (10, 30):
            peer = myfm.MyFMRegressor(rank=rank, random_seed=0)
            started = time.perf_counter()
            peer.fit(X, y, n_iter=SWEEPS, n_kept_samples=SWEEPS - FORGOTTEN)
            seconds = time.perf_counter() - started

            def fit(sweeps: int, rank: int = rank) -> None:
                myfm.MyFMRegressor(rank=rank, random_seed=0).fit(X, y, n_iter=sweeps, n_kept_samples=1)

            rows.append(("myFM", 2, rank, rmse(peer.predict(held)), "", seconds_a_sweep(fit), seconds))
            print(rows[-1], flush=True)
    if libfm is None:
        print("libFM is not given: no such peer")
    else:
        with tempfile.TemporaryDirectory() as folder:
            other = LibFM(str(Path(libfm).resolve()), Path(folder), X, y, held)
            for rank in (10, 30):
                started = time.perf_counter()
                found = other.predict(rank, SWEEPS)
                seconds = time.perf_counter() - started

                def fit(sweeps: int, rank: int = rank) -> None:
                    other.predict(rank, sweeps, "one")

                rows.append(("libFM", 2, rank, rmse(found), "", seconds_a_sweep(fit), seconds))
                print(rows[-1], flush=True)
    write_csv(
        "bayesian_fm",
        (
            "library",
            "degree",
            "rank",
            "rmse",
            "share in 90% intervals",
            "seconds a sweep",
            "fit seconds",
        ),
        rows,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--libfm", help="libFM's program")
    main(parser.parse_args().libfm)
