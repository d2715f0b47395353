"""CF-KOMD on MovieLens 1M against implicit's ALS and EASE, in one run, as ratios.

    python benchmarks/speed.py [--runs 5] [--threads 2]

Every figure is a median over the runs, after one run of each that compiles and warms up.
Counted for CF-KOMD: item Gram, the programs of all users, scores, top 10. For ALS and EASE:
fit and top 10 of all users. BLAS runs on one thread, as implicit advises.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import median

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from recsys import make_ranker
from recsys._jit import max_threads, processors
from recsys.datasets import load_dataset

RESULTS = Path(__file__).parent / "results"
OURS = 3  # contestants that are CF-KOMD, listed first


def cf_komd(R, **params):
    ranker = make_ranker("cf-komd", **params).fit(R)
    return ranker.recommend(np.arange(R.shape[0]), R, N=10)


def our_ease(R):
    return make_ranker("ease").fit(R).recommend(np.arange(R.shape[0]), R, N=10)


def numpy_ease(R):
    """EASE as its paper prints it: numpy's inverse, a product, the largest ten."""
    G = (R.T @ R).toarray().astype(np.float64)
    G[np.diag_indices(len(G))] += 500.0
    P = np.linalg.inv(G)
    B = P / -np.diag(P)
    B[np.diag_indices(len(B))] = 0
    scores = R @ B.astype(np.float32)
    scores[R.nonzero()] = -np.inf
    top = np.argpartition(-scores, 10, axis=1)[:, :10]
    order = np.argsort(-np.take_along_axis(scores, top, 1), axis=1)
    return np.take_along_axis(top, order, 1)


def implicit_als(R, threads):
    from implicit.als import AlternatingLeastSquares

    model = AlternatingLeastSquares(
        factors=64, regularization=10.0, alpha=1.0, iterations=15, random_state=0, num_threads=threads
    )
    model.fit(R, show_progress=False)
    return model.recommend(np.arange(R.shape[0]), R, N=10)


def timed(function, *args, **kwargs):
    start = time.perf_counter()
    function(*args, **kwargs)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=processors())
    parser.add_argument("--data-dir", default=None)
    options = parser.parse_args()
    R = sp.csr_matrix(load_dataset("movielens-1m", options.data_dir).matrix)
    max_threads.set(options.threads)
    contestants = {
        "cf-komd linear": lambda: cf_komd(R, kernel="linear"),
        "cf-komd mc-2": lambda: cf_komd(R, kernel="mc", degree=2),
        "cf-komd md-2": lambda: cf_komd(R, kernel="md", degree=2),
        "implicit ALS, 64 factors, 15 iterations": lambda: implicit_als(R, options.threads),
        "EASE, numpy's inverse": lambda: numpy_ease(R),
        "EASE, ours (Cholesky inverse)": lambda: our_ease(R),
    }
    seconds = {name: [] for name in contestants}
    with threadpool_limits(limits=1, user_api="blas"):
        for run in range(options.runs + 1):
            for name, function in contestants.items():
                taken = timed(function)
                if run:
                    seconds[name].append(taken)
    middle = {name: median(values) for name, values in seconds.items()}
    print(
        f"MovieLens 1M: {R.shape[0]:,} users, top 10 of all; {options.threads} threads, BLAS 1, ", end=""
    )
    print(f"median of {options.runs}")
    for name, value in middle.items():
        spread = f"{min(seconds[name]):.2f}-{max(seconds[name]):.2f}"
        print(f"  {name:42s} {value:6.2f} s  ({spread})")
    rows = {}
    for ours in list(contestants)[:OURS]:
        for peer in list(contestants)[OURS:]:
            rows[f"{peer} / {ours}"] = middle[peer] / middle[ours]
    for name, ratio in rows.items():
        print(f"  {name:78s} {ratio:8.2f}")
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps({"threads": options.threads, "seconds": middle, "ratios": rows}, indent=1)
    (RESULTS / "speed.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
