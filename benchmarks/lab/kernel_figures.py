"""Figures 6.7 (spectral ratio of the normal forms) and 10.4 (mD by recursion and directly).

Figure 10.4 has CPU seconds of a raw kernel of the items, the best of three. CiaoDVD's recursion holds matrices
of more than 8 GB.

    python -m benchmarks.lab.kernel_figures [6.7] [10.4]
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.lab.common import Results, chosen, each, names, plot, run, table
from recsys.datasets import load_dataset
from recsys.kernels import degree_path, make_kernel, spectral_ratio

FORMS = ("mdnf", "mcnf", "dnf", "cnf")
RECOMMENDERS = ("filmtrust", "jester", "movielens-1m", "bookcrossing", "ciaodvd")
DEGREES = (1, 2, 3, 5, 10, 20, 50, 100)


def spectral(name: str, form: str) -> list[tuple]:
    X = table(name).X
    kernels = {k: make_kernel(form, d=k, c=k)(X, normalize=True) for k in range(1, 11)}
    return [(name, form, k, spectral_ratio(K, standardized=True)) for k, K in kernels.items()]


def figure_6_7() -> None:
    results = Results("figure_6_7", ("table", "kernel", "degree", "ratio"), 2)
    for rows in each(spectral, results.missing([(t, form) for t in chosen(names()) for form in FORMS])):
        results.add(*rows)
    frame = results.frame().sort_values(["table", "degree"])
    plot("figure_6_7", frame, "degree", "ratio", "table", "kernel", 2)


def best(call: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        started = time.process_time()
        call()
        times.append(time.process_time() - started)
    return min(times)


def seconds_by_degree(name: str) -> list[tuple]:
    """Return rows of Figure 10.4: one pass of the recursion gives all degrees on its way."""
    X = load_dataset(name).matrix.T.tocsr()
    make_kernel("md", degree=3)(X[:9])  # compiled before anything is timed
    direct = [best(partial(make_kernel("md", degree=degree), X)) for degree in DEGREES]
    passes = []
    for _ in range(3):
        started, taken = time.process_time(), {}
        for degree, _gram in degree_path("md", X, DEGREES[-1]):
            taken[degree] = time.process_time() - started
        passes.append([taken[degree] for degree in DEGREES])
    both = (("direct", direct), ("recursion", np.min(passes, axis=0).tolist()))
    return [(name, d, way, s) for way, times in both for d, s in zip(DEGREES, times, strict=True)]


def figure_10_4() -> None:
    results = Results("figure_10_4", ("dataset", "degree", "way", "seconds"))
    for (name,) in results.missing([(name,) for name in RECOMMENDERS]):
        results.add(*seconds_by_degree(name))
    plot("figure_10_4", results.frame(), "degree", "seconds", "dataset", "way", yscale="log")


if __name__ == "__main__":
    run({"6.7": figure_6_7, "10.4": figure_10_4})
