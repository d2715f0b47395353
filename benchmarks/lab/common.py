"""What the scripts share: tables, nested validation, files and charts."""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from benchmarks.lab.boolean_tables import list_tables, load_table
from recsys.datasets.categorical import OneHot
from recsys.kernels import make_kernel

RESULTS = Path(__file__).parent.parent / "results"
COSTS = [2.0**k for k in range(-5, 5)]
LARGE = 1000  # rows beyond which one inner fold decides instead of five


@cache
def table(name: str) -> OneHot:
    return load_table(name, Path(os.environ["RECSYS_DATA"]) / "categorical")


def names(without: Sequence[str] = ()) -> list[str]:
    return [name for name in list_tables() if name not in without]


def chosen(tables: Sequence[str]) -> list[str]:
    """Return those that are run now: the ones that $LAB_TABLES names (a,b,…), or all."""
    only = [name for name in os.environ.get("LAB_TABLES", "").split(",") if name]
    return [name for name in tables if not only or name in only]


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


def artificial_dnf(
    disjuncts: int,
    conjuncts: int,
    *,
    rows: int = 1000,
    features: int = 30,
    seed: int = 0,
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


def rbf(gamma: float) -> Callable[..., np.ndarray]:
    return make_kernel("rbf", gamma=gamma)


def family(name: str) -> list[tuple[str, Any]]:
    """Return the labelled kernels of Table 6.2 that one row of Tables 6.3 and 6.4 chooses from."""
    if name == "linear":
        return [("", make_kernel("linear"))]
    if name == "rbf":
        return [(f"gamma={10.0**k:g}", rbf(10.0**k)) for k in range(-4, 4)]
    if name in ("mc", "md", "c", "d"):
        return [(f"degree={k}", make_kernel(name, degree=k)) for k in range(1, 6)]
    return [(f"d={d} c={c}", make_kernel(name, d=d, c=c)) for d in range(1, 5) for c in range(1, 5)]


def svm_aucs(
    K: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, costs: list[float]
) -> np.ndarray:
    """Return the AUC of an SVM on `test` at each cost."""
    out = []
    for cost in costs:
        machine = SVC(kernel="precomputed", C=cost).fit(K[np.ix_(train, train)], y[train])
        out.append(roc_auc_score(y[test], machine.decision_function(K[np.ix_(test, train)])))
    return np.array(out)


def nested_auc(
    grams: Sequence[np.ndarray],
    y: np.ndarray,
    seed: int,
    inner: int,
    joint: bool = False,
    costs: Sequence[float] = COSTS,
) -> list[float]:
    """Return one AUC an outer fold.

    In its training part kernel and C, one of the ascending `costs`, are chosen by the mean AUC of the
    first `inner` of five inner folds: together if `joint`, else the kernel at C = 1 and then C for that
    kernel.
    """
    out = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(y, y):
        folds = list(StratifiedKFold(5, shuffle=True, random_state=seed).split(train, y[train]))[:inner]

        def scores(
            K: np.ndarray, costs: list[float], train: np.ndarray = train, folds: list = folds
        ) -> Any:
            return np.mean([svm_aucs(K, y, train[a], train[b], costs) for a, b in folds], axis=0)

        some = list(range(len(grams)))
        if not joint and len(grams) > 1:
            some = [int(np.argmax([scores(K, [1.0])[0] for K in grams]))]
        found = np.array([scores(grams[k], list(costs)) for k in some])
        which, cost = np.unravel_index(found.argmax(), found.shape)  # of equal ones the first
        out.append(float(svm_aucs(grams[some[which]], y, train, test, [costs[cost]])[0]))
    return out


def write_csv(name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], mode: str = "w") -> None:
    """Write rows to a file of the results, floats with six digits."""
    with open(RESULTS / f"{name}.csv", mode, newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not file.tell():
            writer.writerow(columns)
        for row in rows:
            writer.writerow([f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row])


def append_csv(name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Add rows to a file, which is begun where there is none: a run that ends early leaves them."""
    write_csv(name, columns, rows, "a")


def read_csv(name: str) -> list[dict[str, str]]:
    """Return the rows of a file of the results; none where there is no file."""
    if not (RESULTS / f"{name}.csv").exists():
        return []
    with open(RESULTS / f"{name}.csv", newline="") as file:
        return list(csv.DictReader(file))


def finished(name: str, *columns: str) -> set[tuple[str, ...]]:
    """Return the runs that a file has, by the columns that tell them apart.

    What is there is not run again: take rows out of the file to make them anew.
    """
    return {tuple(row[column] for column in columns) for row in read_csv(name)}


def figure(
    columns: int, rows: int = 1, size: tuple[float, float] = (4.2, 3.2)
) -> tuple[Any, np.ndarray]:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(rows, columns, figsize=(size[0] * columns, size[1] * rows), squeeze=False)
    return fig, axes.ravel()


def write_png(name: str, fig: Any) -> None:
    fig.tight_layout()
    fig.savefig(RESULTS / f"{name}.png", dpi=110)


def each(
    function: Callable[..., Any], jobs: Sequence[tuple], done: Callable[[Any], None] | None = None
) -> list[Any]:
    """Run jobs on $LAB_PROCESSES cores (2), one numba thread each, saying when each is done.

    `done` is given each result, in the order of the jobs, as soon as it is there.
    """
    processes = int(os.environ.get("LAB_PROCESSES", "2"))
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    started = time.perf_counter()
    out = []
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(function, *job) for job in jobs]
        for job, result in zip(jobs, waiting, strict=True):
            out.append(result.result())
            if done is not None:
                done(out[-1])
            print(f"{time.perf_counter() - started:6.0f} s  {' '.join(map(str, job))[:80]}", flush=True)
    return out
