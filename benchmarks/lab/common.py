"""What the scripts share: the command line, result files, nested validation, jobs and charts."""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from benchmarks.lab.boolean_tables import list_tables, load_table
from recsys.datasets.categorical import OneHot
from recsys.kernels import make_kernel

RESULTS = Path(__file__).parent.parent / "results"
COSTS = [2.0**k for k in range(-5, 5)]
LARGE = 1000  # rows beyond which one inner fold decides instead of five


# ---- the command line


def arguments(known: Iterable[str] = (), usual: Iterable[str] | None = None) -> list[str]:
    """Return the names on the command line, of those that are known; the usual ones, or all, without any."""
    parser = argparse.ArgumentParser(
        description=sys.modules["__main__"].__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    names, known = parser.parse_args().names, list(known)
    for name in names:
        if known and name not in known:
            parser.error(f"no {name!r}; there are {', '.join(known)}")
    return names or list(known if usual is None else usual)


def run(parts: dict[str, Callable[[], Any]], usual: Iterable[str] | None = None) -> None:
    """Run the parts of a script that the command line names; the usual ones, or all, where it names none."""
    for name in arguments(parts, usual):
        parts[name]()


# ---- result files


def cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)


class Results:
    """A CSV file of results. Its first `key` columns identify a row.

    A script adds rows as it makes them and skips those that the file has, so a run that was stopped goes
    on. To make rows again, delete them.
    """

    def __init__(self, name: str, columns: Sequence[str], key: int = 1) -> None:
        self.name, self.columns, self.key = name, list(columns), key

    def frame(self) -> pd.DataFrame:
        path = RESULTS / f"{self.name}.csv"
        return pd.read_csv(path) if path.exists() else pd.DataFrame(columns=self.columns)

    def missing(self, keys: Iterable[tuple]) -> list[tuple]:
        """Return the keys without a row."""
        path = RESULTS / f"{self.name}.csv"
        known = set()
        if path.exists():
            with path.open(newline="") as file:
                known = {tuple(row[: self.key]) for row in list(csv.reader(file))[1:]}
        left = [key for key in keys if tuple(map(cell, key)) not in known]
        if not left:
            print(f"{path.name} has these rows; delete them to make them again")
        return left

    def add(self, *rows: Sequence[Any]) -> None:
        self._write("a", rows)
        for row in rows:
            print(*map(cell, row), flush=True)

    def replace(self, rows: Iterable[Sequence[Any]]) -> None:
        """Write these rows alone."""
        self._write("w", rows)

    def _write(self, mode: str, rows: Iterable[Sequence[Any]]) -> None:
        with open(RESULTS / f"{self.name}.csv", mode, newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if not file.tell():
                writer.writerow(self.columns)
            writer.writerows([cell(value) for value in row] for row in rows)


# ---- tables, kernels and nested validation


@cache
def table(name: str) -> OneHot:
    return load_table(name, Path(os.environ["RECSYS_DATA"]) / "categorical")


def names(without: Sequence[str] = ()) -> list[str]:
    """Return the names of the tables, the small ones first."""
    return sorted(set(list_tables()) - set(without), key=lambda name: (len(table(name).y), name))


def chosen(tables: Sequence[str]) -> list[str]:
    """Return those that $LAB_TABLES names (a,b,…), or all."""
    only = [name for name in os.environ.get("LAB_TABLES", "").split(",") if name]
    return [name for name in tables if not only or name in only]


def artificial_dnf(
    disjuncts: int, conjuncts: int, *, rows: int = 1000, features: int = 30, seed: int = 0
) -> tuple[OneHot, tuple[tuple[int, ...], ...]]:
    """Return a table whose positive class is a random monotone DNF, and that DNF.

    Each row has a third of the features set, so that all rows have as many ones (7.3.1). A clause has at
    most `conjuncts` variables.
    """
    rng = np.random.default_rng(seed)
    ones = max(1, features // 3)
    order = np.argsort(rng.random((rows, features)), axis=1)
    X = np.zeros((rows, features), dtype=np.uint8)
    np.put_along_axis(X, order[:, :ones], 1, axis=1)
    for _ in range(1000):
        sizes = [int(rng.integers(1, conjuncts + 1)) for _ in range(disjuncts)]
        rule = tuple(tuple(sorted(rng.choice(features, size, replace=False).tolist())) for size in sizes)
        y = np.any([X[:, clause].all(axis=1) for clause in rule], axis=0).astype(np.int64)
        distinct = not any(set(a) <= set(b) for a in rule for b in rule if a is not b)
        if distinct and 0.2 <= y.mean() <= 0.8:
            break
    names = tuple(f"x{k}" for k in range(features))
    return OneHot(X, y, names, f"mDNF({disjuncts},{conjuncts})"), rule


def family(name: str) -> list[Any]:
    """Return the kernels of Table 6.2 that one row of Tables 6.3 and 6.4 chooses from."""
    if name == "linear":
        return [make_kernel("linear")]
    if name == "rbf":
        return [make_kernel("rbf", gamma=10.0**k) for k in range(-4, 4)]
    if name in ("mc", "md", "c", "d"):
        return [make_kernel(name, degree=k) for k in range(1, 6)]
    return [make_kernel(name, d=d, c=c) for d in range(1, 5) for c in range(1, 5)]


def nested_auc(
    grams: Sequence[np.ndarray],
    y: np.ndarray,
    seed: int,
    inner: int,
    joint: bool = False,
    costs: Sequence[float] = COSTS,
) -> float:
    """Return the mean AUC of an SVM over five outer folds.

    In the training part of each, kernel and C are chosen by the mean AUC of the first `inner` of five
    inner folds: together if `joint`, else the kernel at C = 1 and then C for that kernel.
    """
    aucs = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(y, y):
        folds = list(StratifiedKFold(5, shuffle=True, random_state=seed).split(train, y[train]))[:inner]

        def search(
            grams: Sequence[np.ndarray],
            costs: Sequence[float],
            train: np.ndarray = train,
            folds: list = folds,
        ) -> tuple[np.ndarray, Any]:
            machine = SVC(kernel="precomputed")
            found = [
                GridSearchCV(machine, {"C": costs}, scoring="roc_auc", cv=folds).fit(
                    K[np.ix_(train, train)], y[train]
                )
                for K in grams
            ]
            best = int(np.argmax([one.best_score_ for one in found]))  # of equal ones the first
            return grams[best], found[best]

        some = grams if joint or len(grams) == 1 else [search(grams, [1.0])[0]]
        K, machine = search(some, costs)
        aucs.append(roc_auc_score(y[test], machine.decision_function(K[np.ix_(test, train)])))
    return float(np.mean(aucs))


# ---- jobs and charts


def each(function: Callable[..., Any], jobs: Sequence[tuple]) -> Iterator[Any]:
    """Run jobs on $LAB_PROCESSES cores (2), one numba thread each; yield the results in their order."""
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    started = time.perf_counter()
    processes = int(os.environ.get("LAB_PROCESSES", "2"))
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(function, *job) for job in jobs]
        for job, future in zip(jobs, futures, strict=True):
            yield future.result()
            print(f"{time.perf_counter() - started:6.0f} s  {' '.join(map(str, job))[:80]}", flush=True)


def plot(
    name: str,
    frame: pd.DataFrame,
    x: str,
    y: str,
    line: str,
    panel: str,
    columns: int = 3,
    style: str = ".-",
    **axis: Any,
) -> None:
    """Draw y by x: an axis for each value of `panel` with a line for each value of `line`; write a PNG."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    palette = plt.get_cmap("tab20" if frame[line].nunique() > 10 else "tab10")
    colors = {label: palette(k) for k, label in enumerate(frame[line].unique())}
    panels = list(frame.groupby(panel, sort=False))
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.4 * columns, 3.3 * rows), squeeze=False)
    for place in axes.ravel()[len(panels) :]:
        place.set_axis_off()
    for place, (title, own) in zip(axes.ravel(), panels, strict=False):
        for label, points in own.groupby(line, sort=False):
            place.plot(points[x], points[y], style, color=colors[label], label=label)
        title = title if panel == "panel" else f"{panel}: {title}"
        place.set(title=title, xlabel=x, ylabel=y, **axis)
        if not pd.api.types.is_numeric_dtype(frame[x]):
            place.tick_params(axis="x", labelrotation=60)
    axes[0, 0].legend(fontsize=6)
    figure.tight_layout()
    figure.savefig(RESULTS / f"{name}.png", dpi=110)
    plt.close(figure)
