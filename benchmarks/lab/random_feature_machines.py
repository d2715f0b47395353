"""Linear machines on random feature maps beside kernel machines and FMs: figures of Atarashi's chapter 4.

`dense`, Figures 4.2 to 4.7: errors and seconds by D of linear SVMs on maps of the ANOVA kernels of orders 2
and 3, of the all-subsets kernel and of the polynomial kernels (RM, TS), with kernel SVMs, FMs and the
all-subsets model beside. MovieLens 100K (ratings of 5 against as many others) and phishing have the thesis'
numbers of rows; IJCNN is not at hand, a9a stands for it. `sparse` and `narrow`, Figure 4.9: one-hot
MovieLens 1M, users' and movies' ids, occupation, gender, age, zip code and genres, on maps with sparse and
with dense features. `text`, Figure 4.8: RCV1 is not at hand; papers of NIPS stand for it (see
`sparse_fm_table_3`), 1,113 to train for 558,112. `density`, Figure 4.10: error by the density of the bases;
protein is not at hand, dna stands for it.

C of the linear machines is the kernel SVM's as in the thesis, by the error on validation rows; both are trained
on at most `CHOOSING` rows to find it. Cs are tried from the least up to `PATIENCE` in a row that are no better
than the best (of phishing, all): each takes many times as long as the one before where classes overlap. The
linear machines are solved in their primal form, whose optimum is that of the thesis' dual one; the dense
features of MovieLens 1M, of 7 GB, by Newton's method here, since the usual solver's copy takes twice as much.
FMs have β from validation and `EPOCHS` epochs. Rows are of unit ℓ1 length. Seconds are of the processor, of
fitting (the map among it) and predicting.

Goes on where it was stopped: rows are appended, and those there are not run again.

python -m benchmarks.lab.random_feature_machines [dense] [sparse] [narrow] [text] [density] [figures]
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import normalize
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks.lab.common import RESULTS, append_csv, chosen, figure, read_csv, run, write_png
from benchmarks.lab.random_features import a9a_rows, phishing_rows, rows_of
from benchmarks.lab.sparse_fm_table_3 import nips
from recsys.data.encoding import encode_table
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

TRIALS = 5  # of each map, and of each FM, in `dense` and `density`
SPARSE_TRIALS = 1  # of each map of MovieLens 1M
NARROW = 1_048  # D of its dense maps
TEXT = 2_048  # D of those of texts
TIMES = (2, 4, 8, 16)  # D over d
POWERS = range(-1, 5)  # C is 10 to one of them over the mean of K(x, x)
BETAS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4)
RANK, EPOCHS = 30, 50
CHOOSING = 5_000  # training rows where C is chosen
PATIENCE = 2
AT_ONCE = 2_000  # rows of a kernel's matrix
MANY = 20_000  # rows of dense features
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


def papers() -> Task:
    """Papers of NIPS as tf-idf of unit ℓ1 length, and whether they are of the later half of the volumes."""
    parts = nips()
    X = normalize(sp.vstack([part[0] for part in parts]), norm="l1")
    places = np.split(np.arange(X.shape[0]), np.cumsum([len(part[1]) for part in parts])[:2])
    return Task(
        "papers of NIPS",
        sp.csr_matrix(X),
        np.concatenate([part[1] for part in parts]).astype(int),
        *places,
    )


def one_hot_movielens() -> Task:
    """Each rating of MovieLens 1M as ids and all that is known of user and movie, 4 or more against less."""
    data = load_dataset("movielens-1m")
    blocks = []
    for table, ids, n in (
        (data.user_features, data.users, data.n_users),
        (data.item_features, data.items, data.n_items),
    ):
        assert table is not None
        known = encode_table(table, buckets=8, skip=("title",)).X
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


def features(maker: Any, X: sp.csr_matrix) -> np.ndarray:
    """Return the features of a fitted map and a column of ones, (rows, D + 1); some rows at a time."""
    out = np.ones((X.shape[0], maker.transform(X[:1]).shape[1] + 1))
    for first in range(0, len(out), MANY):
        out[first : first + MANY, :-1] = maker.transform(X[first : first + MANY])
    return out


def newton(F: np.ndarray, y: np.ndarray, cost: float) -> np.ndarray:
    """Return the w least in ½‖w‖² + C Σ max(0, 1 - y ⟨w, f⟩)², the machine of `map_error`, by Newton's method.

    That solver copies dense features into 16 bytes a value; here F is all there is, and a Hessian of D².
    """
    blocks = [slice(first, first + MANY) for first in range(0, len(y), MANY)]

    def value(w: np.ndarray) -> float:
        return float(0.5 * w @ w + cost * (np.maximum(0.0, 1.0 - y * (F @ w)) ** 2).sum())

    w = np.zeros(F.shape[1])
    now, first = value(w), None
    for _ in range(100):
        g, H = w.copy(), np.eye(len(w))
        for block in blocks:
            short = 1.0 - y[block] * (F[block] @ w)
            A = F[block][short > 0.0]
            g -= 2.0 * cost * (A.T @ (y[block] * short)[short > 0.0])
            H += 2.0 * cost * (A.T @ A)
        size = float(np.linalg.norm(g))
        first = size if first is None else first
        if size <= 1e-6 * first:
            break
        step, length = -np.linalg.solve(H, g), 1.0
        while (then := value(w + length * step)) > now + 1e-4 * length * float(
            g @ step
        ) and length > 1e-6:
            length /= 2.0
        w, now = w + length * step, then
    return w


def dense_error(task: Task, maker: Any, cost: float, train: np.ndarray, test: np.ndarray) -> float:
    """Return what `map_error` does, of many rows and a map of dense features."""
    maker.fit(task.X[:1])
    w = newton(features(maker, task.X[train]), task.y[train], cost)
    said = np.where(features(maker, task.X[test]) @ w > 0.0, 1, -1)
    return float((said != task.y[test]).mean())


def machine_error(task: Task, model: Any, train: np.ndarray, test: np.ndarray) -> float:
    model.fit(task.X[train], task.y[train])
    return float((model.predict(task.X[test]) != task.y[test]).mean())


class Table:
    """Rows of a file, appended as they come."""

    def __init__(self, file: str) -> None:
        self.file = file
        there = read_csv(file) if (RESULTS / f"{file}.csv").exists() else []
        self.rows = {(r["data"], r["kernel"], r["method"], r["D"]): r for r in there}

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


def text() -> None:
    """Figure 4.8: papers of NIPS in the place of RCV1, with the thesis' p and multiples of d."""
    table, task = Table("random_features_machines_text"), papers()
    d, p = task.X.shape[1], 0.999
    for kernel, wide in sparse_maps(p, round(d * (1 - p))).items():
        cost = compare_exact(table, task, kernel)
        if kernel == "anova 2":
            compare_machine(table, task, kernel, TRIALS)
        dense = {name: maker for name, maker in maps_of(kernel).items() if name != "SCRK"}
        made = [(name, maker, times * d) for name, maker in wide.items() for times in (2, 3, 4)]
        for name, maker, D in [*made, *((name, maker, TEXT) for name, maker in dense.items())]:
            table.add(
                (task.name, kernel, name, D),
                cost,
                TRIALS,
                lambda s: map_error(task, maker(D, s), cost, task.train, task.test),  # noqa: B023
            )


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


def narrow() -> None:
    """Add the dense maps to Figure 4.9."""
    table, task = Table("random_features_machines_1m"), one_hot_movielens()
    for kernel in chosen(["anova 2", "polynomial 2"]):
        cost = compare_exact(table, task, kernel, KERNEL_ROWS)
        for name, maker in maps_of(kernel).items():
            if name != "SCRK":
                table.add(
                    (task.name, kernel, name, NARROW),
                    cost,
                    SPARSE_TRIALS,
                    lambda s: dense_error(task, maker(NARROW, s), cost, task.train, task.test),  # noqa: B023
                )


def density() -> None:
    """Figure 4.10: dna in place of protein."""
    table = Table("random_features_density")
    parts = [
        load_svmlight_file(str(Path(os.environ["RECSYS_DATA"]) / "libsvm" / name), n_features=180)
        for name in ("dna.scale.gz", "dna.scale.t.gz")
    ]
    X = normalize(sp.vstack([part[0] for part in parts]), norm="l1")
    task = divided("dna", X, np.concatenate([part[1] for part in parts]).astype(int), 1_800, 386, 1_000)
    D = 16 * task.X.shape[1]
    cost = compare_exact(table, task, "anova 2")
    table.add(
        ("dna", "anova 2", "RK", D),
        cost,
        TRIALS,
        lambda s: map_error(
            task, RandomKernelMap("anova", 2, D, random_state=s), cost, task.train, task.test
        ),
    )
    for p in (0.99, 0.98, 0.96):
        k = max(2, round(task.X.shape[1] * (1 - p)))
        for name, maker in (
            (f"SparseRK, p = {p}", lambda s: SparseRandomKernelMap(2, D, sparsity=p, random_state=s)),  # noqa: B023
            (f"SubRK, k = {k}", lambda s: SubsampledRandomKernelMap(2, D, subset=k, random_state=s)),  # noqa: B023
        ):
            table.add(
                ("dna", "anova 2", name, D),
                cost,
                TRIALS,
                lambda s: map_error(task, maker(s), cost, task.train, task.test),  # noqa: B023
            )


def figures() -> None:
    """Draw the errors of `dense`, `sparse` and `text` by D, and the seconds under them, of what was run."""
    for file in (
        "random_features_machines",
        "random_features_machines_1m",
        "random_features_machines_text",
    ):
        if not (RESULTS / f"{file}.csv").exists():
            print(f"{file}.csv is not there: nothing of it is drawn", flush=True)
            continue
        rows = read_csv(file)
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
        run({one.__name__: one for one in (dense, sparse, narrow, text, density, figures)})
