"""Figures 6.7 (spectral ratio of the normal forms) and 10.4 (mD by recursion and directly)."""

from __future__ import annotations

import sys
import time
from functools import partial

import numpy as np

from benchmarks.lab.common import (
    append_csv,
    each,
    figure,
    names,
    read_csv,
    table,
    without,
    write_csv,
    write_png,
)
from recsys.datasets import load_dataset
from recsys.kernels import make_kernel, spectral_ratio
from recsys.kernels.paths import degree_path

FORMS = ("mdnf", "mcnf", "dnf", "cnf")


def spectral(name: str, form: str) -> list[tuple]:
    X = table(name).X
    return [
        (
            name,
            form,
            k,
            spectral_ratio(make_kernel(form, d=k, c=k)(X, normalize=True), standardized=True),
        )
        for k in range(1, 11)
    ]


def figure_6_7() -> None:
    """Compute the curves that the file lacks, and draw all; without the two tables above 3,000 rows."""
    columns = ("table", "kernel", "degree", "ratio")
    have = {(row["table"], row["kernel"]) for row in without("figure_6_7", lambda row: False)}
    order = names(without=("kr-vs-kp", "splice"))
    jobs = [(name, form) for name in order for form in FORMS if (name, form) not in have]
    each(spectral, jobs, done=lambda rows: append_csv("figure_6_7", columns, rows))
    rows = read_csv("figure_6_7")
    rows.sort(key=lambda row: (row["table"], FORMS.index(row["kernel"]), int(row["degree"])))
    write_csv("figure_6_7", columns, [list(row.values()) for row in rows])
    fig, axes = figure(2, 2)
    for axis, form in zip(axes, FORMS, strict=True):
        for name in sorted({row["table"] for row in rows}):
            mine = [row for row in rows if row["table"] == name and row["kernel"] == form]
            axis.plot([int(r["degree"]) for r in mine], [float(r["ratio"]) for r in mine], label=name)
        axis.set_title(form)
        axis.set_xlabel("d = c")
        axis.set_ylabel("standardised spectral ratio", fontsize=8)
    axes[0].legend(fontsize=6)
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
    for part in sys.argv[1:] or ("6.7", "10.4"):
        {"6.7": figure_6_7, "10.4": figure_10_4}[part]()
