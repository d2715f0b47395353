"""Figures 6.7 (spectral ratio of the normal forms) and 10.4 (mD by recursion and directly)."""

from __future__ import annotations

import time
from functools import partial

import numpy as np

from benchmarks.lab.common import figure, names, table, write_csv, write_png
from recsys.data import load_dataset
from recsys.kernels import make_kernel, spectral_ratio
from recsys.kernels.recursions import degree_path

FORMS = ("mdnf", "mcnf", "dnf", "cnf")


def figure_6_7() -> None:
    rows = []
    fig, axes = figure(2, 2)
    for name in names(without=("kr-vs-kp", "splice")):
        X = table(name).X
        for axis, form in zip(axes, FORMS, strict=True):
            values = [
                spectral_ratio(make_kernel(form, d=k, c=k)(X, normalize=True), standardized=True)
                for k in range(1, 11)
            ]
            rows += [(name, form, k + 1, value) for k, value in enumerate(values)]
            axis.plot(range(1, 11), values, label=name)
            axis.set_title(form)
            axis.set_xlabel("d = c")
            axis.set_ylabel("standardised spectral ratio", fontsize=8)
    axes[0].legend(fontsize=6)
    write_csv("figure_6_7", ("table", "kernel", "degree", "ratio"), rows)
    write_png("figure_6_7", fig)


def figure_10_4() -> None:
    """Time a kernel of one degree both ways, on items as columns; best of three, raw kernels."""
    rows = []
    degrees = (1, 2, 3, 5, 10, 20, 40)
    fig, axes = figure(1)
    for name in ("movielens", "filmtrust"):
        X = load_dataset(name).matrix.T.tocsr()
        kernel = make_kernel("md", degree=3)
        kernel(X)
        for degree in degrees:
            direct = make_kernel("md", degree=degree)
            times = {
                "direct": _best(partial(direct, X)),
                "recursion": _best(partial(_last, X, degree)),
            }
            rows += [(name, degree, way, seconds) for way, seconds in times.items()]
        for way in ("direct", "recursion"):
            axes[0].plot(
                degrees,
                [r[3] for r in rows if r[0] == name and r[2] == way],
                marker=".",
                label=f"{name}, {way}",
            )
    axes[0].set_xlabel("degree of mD")
    axes[0].set_ylabel("seconds")
    axes[0].legend(fontsize=7)
    write_csv("figure_10_4", ("dataset", "degree", "way", "seconds"), rows)
    write_png("figure_10_4", fig)


def _last(X: object, degree: int) -> np.ndarray:
    return list(degree_path("md", X, degree))[-1][1]


def _best(call: object) -> float:
    times = []
    for _ in range(3):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)


if __name__ == "__main__":
    figure_6_7()
    figure_10_4()
