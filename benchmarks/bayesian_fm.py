"""Bayesian factorization machines on MovieLens 100K: error, intervals, seconds a sweep beside a peer.

The rows and features are those of `fm_speed.py`, one split of 80/20. 50 sweeps, the first 10 of them
forgotten, ranks 10 and 30. Seconds a sweep are of processor time on one thread (the difference of the best of
three fits of 15 sweeps and the best of three of 5, so that set-up does not count); the peer is myFM, where it is installed: it samples order
2 over the same non-zeros, all columns of a prior. The error is of means clipped to 1…5, as libFM prints it.

python -m benchmarks.bayesian_fm
"""

from __future__ import annotations

import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benchmarks.fm_speed import encoded
from benchmarks.lab.common import write_csv
from recsys.fm import BayesianFactorizationMachineRegressor

SWEEPS, FORGOTTEN, LEVEL = 50, 10, 0.9
MODELS = ((2, 10), (2, 30), (3, 10))


def seconds_a_sweep(fit: object) -> float:
    """Return the processor seconds of one of ten more sweeps."""
    least = []
    for sweeps in (5, 15):
        spent = []
        for _ in range(3):
            started = time.process_time()
            fit(sweeps)  # type: ignore[operator]
            spent.append(time.process_time() - started)
        least.append(min(spent))
    return (least[1] - least[0]) / 10


def main() -> None:
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
    main()
