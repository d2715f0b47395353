"""Figures 6.7 (spectral ratio of the normal forms) and 10.4 (mD by recursion and directly)."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.lab.common import (
    append_csv,
    chosen,
    each,
    figure,
    finished,
    names,
    read_csv,
    run,
    table,
    write_csv,
    write_png,
)
from recsys.datasets import load_dataset
from recsys.kernels import degree_path, make_kernel, spectral_ratio

FORMS = ("mdnf", "mcnf", "dnf", "cnf")
RECOMMENDERS = ("filmtrust", "jester", "movielens-1m", "bookcrossing", "ciaodvd")
DEGREES = (1, 2, 3, 5, 10, 20, 50, 100)


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
    """Compute the curves that the file lacks, and draw all."""
    columns = ("table", "kernel", "degree", "ratio")
    have = finished("figure_6_7", "table", "kernel")
    jobs = [(name, form) for name in chosen(names()) for form in FORMS if (name, form) not in have]
    each(spectral, jobs, done=lambda rows: append_csv("figure_6_7", columns, rows))
    rows = read_csv("figure_6_7")
    rows.sort(key=lambda row: (row["table"], FORMS.index(row["kernel"]), int(row["degree"])))
    write_csv("figure_6_7", columns, [list(row.values()) for row in rows])
    fig, axes = figure(2, 2)
    for axis, form in zip(axes, FORMS, strict=True):
        for k, name in enumerate(sorted({row["table"] for row in rows})):
            mine = [row for row in rows if row["table"] == name and row["kernel"] == form]
            x, y = [int(row["degree"]) for row in mine], [float(row["ratio"]) for row in mine]
            axis.plot(x, y, linestyle="-" if k < 10 else "--", label=name)  # there are ten colours
        axis.set_title(form)
        axis.set_xlabel("d = c")
        axis.set_ylabel("standardised spectral ratio", fontsize=8)
    axes[3].legend(fontsize=6)
    write_png("figure_6_7", fig)


def figure_10_4() -> None:
    """Time a kernel up to each degree both ways, on items as columns, and draw; best of three, raw kernels.

    The seconds are those of the processor, which other work on the machine does not lengthen. Without
    Netflix, which is not distributed any more. CiaoDVD's recursion holds matrices of more than 8 GB.
    """
    columns = ("dataset", "degree", "way", "seconds")
    have = finished("figure_10_4", "dataset")
    for name in RECOMMENDERS:
        if (name,) not in have:
            append_csv("figure_10_4", columns, seconds_by_degree(name))
    rows = read_csv("figure_10_4")
    fig, axes = figure(2)
    for axis, way in zip(axes, ("direct", "recursion"), strict=True):
        for name in dict.fromkeys(row["dataset"] for row in rows):
            mine = [row for row in rows if row["dataset"] == name and row["way"] == way]
            x, y = [int(row["degree"]) for row in mine], [float(row["seconds"]) for row in mine]
            axis.plot(x, y, marker=".", label=name)
        axis.set(title=way, xlabel="degree of mD", ylabel="seconds", yscale="log")
    axes[0].legend(fontsize=7)
    write_png("figure_10_4", fig)


def seconds_by_degree(name: str) -> list[tuple]:
    """Return (dataset, degree, way, seconds): one pass of the recursion gives all degrees on its way."""
    X = load_dataset(name).matrix.T.tocsr()
    make_kernel("md", degree=3)(X[:9])  # compiled before anything is timed
    direct = [_best(partial(make_kernel("md", degree=degree), X)) for degree in DEGREES]
    passes = []
    for _ in range(3):
        started, taken = time.process_time(), {}
        for degree, _gram in degree_path("md", X, DEGREES[-1]):
            taken[degree] = time.process_time() - started
        passes.append([taken[degree] for degree in DEGREES])
    recursion = np.min(passes, axis=0).tolist()
    both = (("direct", direct), ("recursion", recursion))
    return [(name, d, way, s) for way, times in both for d, s in zip(DEGREES, times, strict=True)]


def _best(call: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        started = time.process_time()
        call()
        times.append(time.process_time() - started)
    return min(times)


if __name__ == "__main__":
    run({"6.7": figure_6_7, "10.4": figure_10_4})
