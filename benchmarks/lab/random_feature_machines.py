"""Linear machines on random feature maps beside kernel machines and FMs: figures of Atarashi's chapter 4.

`dense`, Figures 4.2 to 4.7: errors and seconds by D of linear SVMs on maps of the ANOVA kernels of orders 2
and 3, of the all-subsets kernel and of the polynomial kernels (RM, TS), with kernel SVMs, FMs and the
all-subsets model beside. MovieLens 100K (ratings of 5 against as many others) and phishing have the thesis'
numbers of rows; IJCNN is not at hand, a9a stands for it. `sparse`, Figure 4.9: one-hot MovieLens 1M, users' and
movies' ids, occupation, gender, age, zip code and genres, on maps with sparse features.

C of the linear machines is the kernel SVM's as in the thesis, by the error on validation rows; both are trained
on at most `CHOOSING` rows to find it. Cs are tried from the least up to `PATIENCE` in a row that are no better
than the best (of phishing, all): each takes many times as long as the one before where classes overlap. The
linear machines are solved in their primal form, whose optimum is that of the thesis' dual one. FMs have β from validation and `EPOCHS` epochs. Rows are of unit ℓ1 length. Seconds are of the processor, of
fitting (the map among it) and predicting.

Goes on where it was stopped: rows are appended, and those there are not run again.

python -m benchmarks.lab.random_feature_machines [dense] [sparse] [figures]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks.lab.common import append_csv, chosen, figure, read_csv, run, write_png
from benchmarks.lab.random_features import a9a_rows, phishing_rows, rows_of
from recsys.data.features import encode_table
from recsys.datasets import load_dataset
from recsys.fm import AllSubsetsClassifier, FactorizationMachineClassifier
from recsys.random_features import (
    RandomKernelMap,
    RandomMaclaurin,
    SignedCirculantMap,
    SparseRandomKernelMap,
    SubsampledRandomKernelMap,
    TensorSketch,
)

TRIALS = 5  # of each map, and of each FM, in `dense`
SPARSE_TRIALS = 1  # of each map of MovieLens 1M
TIMES = (2, 4, 8, 16)  # D over d
POWERS = range(-1, 5)  # C is 10 to one of them over the mean of K(x, x)
BETAS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4)
RANK, EPOCHS = 30, 50
CHOOSING = 5_000  # training rows where C is chosen
PATIENCE = 2
AT_ONCE = 2_000  # rows of a kernel's matrix
KERNEL_ROWS = 20_000  # of MovieLens 1M, in its kernel SVMs; the thesis has 160,000
HEADS = ("data", "kernel", "method", "D", "C or beta", "error", "std", "trials", "seconds")


@dataclass(frozen=True)
class Task:
    """Rows in three parts: what is fitted, what chooses and what judges."""

    name: str
    X: sp.csr_matrix
    y: np.ndarray
    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray


def divided(name: str, X: Any, y: np.ndarray, train: int, valid: int, test: int) -> Task:
    order = np.random.default_rng(0).permutation(X.shape[0])[: train + valid + test]
    parts = np.split(order, [train, train + valid])
    return Task(name, sp.csr_matrix(X), y, *parts)


def movielens() -> Task:
    """Ratings of 5, and as many others: the thesis' 42,402 rows."""
    X, _ = rows_of("l1")
    fives = np.asarray(load_dataset("movielens").rating) >= 5
    others = np.random.default_rng(0).permutation(np.flatnonzero(~fives))[: fives.sum()]
    rows = np.concatenate([np.flatnonzero(fives), others])
    return divided("movielens 100K", X[rows], np.where(fives[rows], 1, -1), 21_200, 1_000, 20_202)


def phishing() -> Task:
    return divided("phishing", *phishing_rows(), 9_000, 555, 1_500)


def a9a() -> Task:
    return divided("a9a", *a9a_rows(), 10_000, 2_000, 16_000)


def one_hot_movielens() -> Task:
    """Each rating of MovieLens 1M as ids and all that is known of user and movie, 4 or more against less."""
    data = load_dataset("movielens-1m")
    blocks = []
    for table, ids, n in (
        (data.user_features, data.users, data.n_users),
        (data.item_features, data.items, data.n_items),
    ):
        assert table is not None
        known = encode_table(table.drop(columns="title", errors="ignore"), buckets=8).X
        blocks.append(sp.hstack([sp.identity(n, format="csr"), known], format="csr")[np.asarray(ids)])
    X = normalize(sp.csr_matrix(sp.hstack(blocks, format="csr")), norm="l1")
    y = np.where(np.asarray(data.rating) >= 4, 1, -1)
    return divided("movielens 1M", X, y, 800_167, 100_021, 100_021)


# ---- kernels


def gram(kernel: str, A: sp.csr_matrix, B: sp.csr_matrix) -> np.ndarray:
    """Return a kernel of all pairs of rows; float64. Some rows at a time: 21,200² take 3.6 GB."""
    out = np.empty((A.shape[0], B.shape[0]))
    for first in range(0, len(out), AT_ONCE):
        some = slice(first, first + AT_ONCE)
        out[some] = gram_of_few(kernel, A[some], B)
    return out


def gram_of_few(kernel: str, A: sp.csr_matrix, B: sp.csr_matrix) -> np.ndarray:
    one = (A @ B.T).toarray()
    name, _, order = kernel.partition(" ")
    if name == "polynomial":
        return one ** int(order)
    if name == "all-subsets":
        # log(1 + t) of each common feature; a row's values have one size, so that t has two values.
        a, b = (np.abs(M).max(axis=1).toarray().ravel() for M in (A, B))
        same = (sp.csr_matrix(abs(A.sign())) @ abs(B.sign()).T).toarray()
        signed = (A.sign() @ B.sign().T).toarray()
        t = np.outer(a, b)
        return np.exp(0.5 * ((same + signed) * np.log1p(t) + (same - signed) * np.log1p(-t)))
    two = (A.power(2) @ B.power(2).T).toarray()
    if order == "2":
        return 0.5 * (one**2 - two)
    return (one**3 - 3.0 * one * two + 2.0 * (A.power(3) @ B.power(3).T).toarray()) / 6.0


def maps_of(kernel: str) -> dict[str, Callable[..., Any]]:
    """Return the maps of a kernel by the thesis' names: functions of D and a seed."""
    name, _, order = kernel.partition(" ")
    if name == "all-subsets":
        return {"RK": lambda D, s: RandomKernelMap(name, n_components=D, random_state=s)}
    m = int(order)
    if name == "anova":
        return {
            "RK": lambda D, s: RandomKernelMap(name, m, n_components=D, random_state=s),
            "SCRK": lambda D, s: SignedCirculantMap(m, n_components=D, random_state=s),
        }
    return {
        "RM": lambda D, s: RandomMaclaurin(m, n_components=D, random_state=s),
        "TS": lambda D, s: TensorSketch(m, n_components=D, random_state=s),
    }


def machine(kernel: str, D: int, seed: int, cost: float) -> Any:
    """Return the model that a kernel's functions are learnt by without it."""
    name, _, order = kernel.partition(" ")
    given: dict[str, Any] = {
        "n_components": RANK,
        "loss": "squared_hinge",
        "alpha": cost,
        "beta": cost,
        "fit_linear": False,
        "max_iter": EPOCHS,
        "tol": 0.0,
        "random_state": seed,
        "num_threads": 1,
    }
    if name == "all-subsets":
        return AllSubsetsClassifier(**given)
    return FactorizationMachineClassifier(degree=int(order), fit_lower=None, **given)


# ---- one figure of a machine


@contextmanager
def clocked(out: list[float]) -> Iterator[None]:
    started = time.process_time()
    yield
    out.append(time.process_time() - started)


def kernel_error(task: Task, kernel: str, train: np.ndarray, test: np.ndarray, cost: float) -> float:
    X, y = task.X, task.y
    model = SVC(C=cost, kernel="precomputed", cache_size=1_000)
    model.fit(gram(kernel, X[train], X[train]), y[train])
    wrong = 0
    for part in np.array_split(test, max(1, len(test) // 4_000)):
        wrong += int((model.predict(gram(kernel, X[part], X[train])) != y[part]).sum())
    return wrong / len(test)


def map_error(task: Task, maker: Any, cost: float, train: np.ndarray, test: np.ndarray) -> float:
    X, y = task.X, task.y
    maker.fit(X[:1])
    model = LinearSVC(C=cost, dual=False, random_state=0).fit(maker.transform(X[train]), y[train])
    return float((model.predict(maker.transform(X[test])) != y[test]).mean())


def machine_error(task: Task, model: Any, train: np.ndarray, test: np.ndarray) -> float:
    model.fit(task.X[train], task.y[train])
    return float((model.predict(task.X[test]) != task.y[test]).mean())


class Table:
    """Rows of a file, appended as they come."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.rows = {(r["data"], r["kernel"], r["method"], r["D"]): r for r in read_csv(file)}

    def add(
        self, key: tuple[str, str, str, Any], cost: float, trials: int, error: Callable[[int], float]
    ) -> None:
        """Run a cell's trials and append its row, unless it is there."""
        name = (*key[:3], str(key[3]))
        if name in self.rows:
            return
        seconds: list[float] = []
        errors = []
        for seed in range(trials):
            with clocked(seconds):
                errors.append(error(seed))
        row = (
            *key,
            f"{cost:g}",
            float(np.mean(errors)),
            float(np.std(errors)),
            trials,
            float(np.mean(seconds)),
        )
        self.rows[name] = dict(zip(HEADS, map(str, row), strict=True))
        append_csv(self.file, HEADS, [row])
        print(*row, flush=True)

    def cost(self, data: str, kernel: str, method: str) -> float | None:
        """Return the C or β of a row without D, None where there is none."""
        row = self.rows.get((data, kernel, method, ""))
        return None if row is None else float(row["C or beta"])


def compare_exact(table: Table, task: Task, kernel: str, rows: int | None = None) -> float:
    """Add a kernel's SVM, and return the C of the least error on the validation rows."""
    train = task.train if rows is None else task.train[:rows]
    cost = table.cost(task.name, kernel, "kernel SVM")
    if cost is None:
        few = train[:CHOOSING]
        valid = task.valid[:CHOOSING]
        scale = float(np.diag(gram(kernel, task.X[few[:500]], task.X[few[:500]])).mean())
        best, since, cost = float("inf"), 0, 0.0
        for c in (float(f"{10.0**k / scale:.2g}") for k in POWERS):
            error = kernel_error(task, kernel, few, valid, c)
            best, since, cost = (error, 0, c) if error < best else (best, since + 1, cost)
            if since == PATIENCE:
                break
        method = (task.name, kernel, "kernel SVM", "")
        table.add(method, cost, 1, lambda seed: kernel_error(task, kernel, train, task.test, cost))
    return cost


def compare_machine(table: Table, task: Task, kernel: str, trials: int) -> None:
    """Add the FM, or the all-subsets model, of the β of the least error on the validation rows."""
    method = "all-subsets model" if kernel == "all-subsets" else "FM"
    if table.cost(task.name, kernel, method) is not None:
        return

    def error(beta: float, seed: int, rows: np.ndarray) -> float:
        return machine_error(task, machine(kernel, RANK, seed, beta), task.train, rows)

    best = min(BETAS, key=lambda beta: error(beta, 0, task.valid))
    table.add((task.name, kernel, method, ""), best, trials, lambda seed: error(best, seed, task.test))


# ---- the figures


def dense() -> None:
    """Figures 4.2 to 4.7."""
    table = Table("random_features_machines")
    for make in (phishing, movielens, a9a):
        task = make()
        d = task.X.shape[1]
        for kernel in ("anova 2", "anova 3", "all-subsets", "polynomial 2", "polynomial 3"):
            cost = compare_exact(table, task, kernel)
            if not kernel.startswith("polynomial"):
                compare_machine(table, task, kernel, TRIALS)
            for name, maker in maps_of(kernel).items():
                for times in TIMES:
                    D = times * d
                    table.add(
                        (task.name, kernel, name, D),
                        cost,
                        TRIALS,
                        lambda s: map_error(task, maker(D, s), cost, task.train, task.test),  # noqa: B023
                    )


def sparse_maps(p: float, k: int) -> dict[str, dict[str, Callable[..., Any]]]:
    """Return the maps of sparse features by kernel: bases of density 1 − p, or of k features."""
    return {
        "anova 2": {
            "SparseRK": lambda D, s: SparseRandomKernelMap(2, D, sparsity=p, random_state=s),
            "SubRK": lambda D, s: SubsampledRandomKernelMap(2, D, subset=k, random_state=s),
        },
        "polynomial 2": {
            "SparseRM": lambda D, s: RandomKernelMap(
                "polynomial", 2, D, sampling="sparse", sparsity=p, random_state=s
            ),
            "SubRM": lambda D, s: RandomKernelMap(
                "polynomial", 2, D, sampling="subsampled", subset=k, random_state=s
            ),
        },
    }


def sparse() -> None:
    """Figure 4.9: MovieLens 1M."""
    table, task = Table("random_features_machines_1m"), one_hot_movielens()
    d, p = task.X.shape[1], 0.996
    print(f"{d} features, {task.X.nnz / task.X.shape[0]:.2f} a row", flush=True)
    wide = sparse_maps(p, round(d * (1 - p)))
    for kernel in chosen(list(wide)):
        cost = compare_exact(table, task, kernel, KERNEL_ROWS)
        if kernel == "anova 2":
            compare_machine(table, task, kernel, 1)
        for times in (2, 4, 6, 8):
            for name, maker in wide[kernel].items():
                table.add(
                    (task.name, kernel, name, times * d),
                    cost,
                    SPARSE_TRIALS,
                    lambda s: map_error(task, maker(times * d, s), cost, task.train, task.test),  # noqa: B023
                )


def figures() -> None:
    """Draw the errors of `dense` and `sparse` by D, and the seconds under them, of what was run."""
    for file in ("random_features_machines", "random_features_machines_1m"):
        rows = read_csv(file)
        if not rows:
            continue
        panels = list(dict.fromkeys((row["data"], row["kernel"]) for row in rows))
        columns = min(5, len(panels))
        drawn, axes = figure(columns, 2 * -(-len(panels) // columns))
        for place, panel in enumerate(panels):
            shown = [row for row in rows if (row["data"], row["kernel"]) == panel]
            upper = 2 * columns * (place // columns) + place % columns
            draw(axes[upper], shown, "error")
            draw(axes[upper + columns], shown, "seconds")
            axes[upper].set(ylabel="error")
            axes[upper + columns].set(ylabel="seconds", yscale="log")
            axes[upper].legend(
                title=f"{panel[0]}, {panel[1]}",
                fontsize=7,
                ncols=3,
                frameon=False,
                loc="lower center",
                bbox_to_anchor=(0.5, 1.0),
            )
        write_png(file, drawn)


def draw(axis: Any, rows: list[dict[str, str]], what: str) -> None:
    """Draw a column of rows by D, a line across of methods that have none."""
    marks = iter("os^v")
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        values = [float(row[what]) for row in own]
        if own[0]["D"] == "":
            axis.axhline(
                values[0], linestyle=":" if "SVM" in method else "--", label=method, color="grey"
            )
        else:
            spread = [float(row["std"]) for row in own] if what == "error" else None
            axis.errorbar(
                [float(row["D"]) for row in own],
                values,
                spread,
                marker=next(marks),
                mfc="none",
                label=method,
            )
    ticks = sorted({int(row["D"]) for row in rows if row["D"]})
    axis.set(xlabel="D", xscale="log")
    axis.set_xticks(ticks, [str(D) for D in ticks], rotation=60 if max(ticks) > 9_999 else 0)
    axis.set_xticks([], minor=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        run({one.__name__: one for one in (dense, sparse, figures)})
