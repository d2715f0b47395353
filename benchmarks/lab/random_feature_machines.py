"""Linear machines on random feature maps beside kernel machines and FMs: figures of Atarashi's chapter 4.

`dense`, Figures 4.2 to 4.7: errors and seconds by D of linear SVMs on maps of the ANOVA kernels of orders 2
and 3, of the all-subsets kernel and of the polynomial kernels (RM, TS), with kernel SVMs, FMs and the
all-subsets model beside. MovieLens 100K (ratings of 5 against as many others) and phishing have the thesis'
numbers of rows; a9a stands for IJCNN. `sparse`, Figure 4.9: one-hot MovieLens 1M, users' and movies' ids,
occupation, gender, age, zip code and genres, on maps with sparse features.

C of the linear machines is the kernel SVM's as in the thesis, by the error on validation rows; both are trained
on at most `CHOOSING` rows to find it. Cs are tried from the least up to `PATIENCE` in a row that are no better
than the best: each takes many times as long as the one before where classes overlap. The linear machines are
solved in their primal form, whose optimum is that of the thesis' dual one. FMs have β from validation and
`EPOCHS` epochs. Rows are of unit ℓ1 length. CPU seconds are of fitting (the map among it) and predicting.

    python -m benchmarks.lab.random_feature_machines [dense] [sparse]
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks.lab.common import Results, plot, run
from benchmarks.lab.random_features import TIMES, a9a_rows, anova_gram, movielens_rows, phishing_rows
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

TRIALS = 5  # of each map, and of each FM, in `dense`; one of each in `sparse`
POWERS = range(-1, 5)  # C is 10 to one of them over the mean of K(x, x)
BETAS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4)
RANK, EPOCHS = 30, 50
CHOOSING = 5_000  # training rows where C is chosen
PATIENCE = 2
AT_ONCE = 2_000  # rows of a kernel's matrix
KERNEL_ROWS = 20_000  # of MovieLens 1M, in its kernel SVMs; the thesis has 160,000
SPARSITY = 0.996  # of the bases of the maps of MovieLens 1M
COLUMNS = ("data", "kernel", "method", "D", "C or beta", "error", "std", "trials", "seconds")


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
    return Task(name, sp.csr_matrix(X), y, *np.split(order, [train, train + valid]))


def movielens() -> Task:
    """Return ratings of 5, and as many others: the thesis' 42,402 rows."""
    fives = np.asarray(load_dataset("movielens").rating) >= 5
    others = np.random.default_rng(0).permutation(np.flatnonzero(~fives))[: fives.sum()]
    rows = np.concatenate([np.flatnonzero(fives), others])
    y = np.where(fives[rows], 1, -1)
    return divided("movielens 100K", movielens_rows()[rows], y, 21_200, 1_000, 20_202)


def one_hot_movielens() -> Task:
    """Return each rating of MovieLens 1M as ids and all that is known of user and movie, 4 or more against less."""
    data = load_dataset("movielens-1m")
    blocks = []
    for features, ids, n in (
        (data.user_features, data.users, data.n_users),
        (data.item_features, data.items, data.n_items),
    ):
        known = encode_table(features.drop(columns="title", errors="ignore"), buckets=8).X
        blocks.append(sp.hstack([sp.identity(n, format="csr"), known], format="csr")[np.asarray(ids)])
    X = normalize(sp.csr_matrix(sp.hstack(blocks, format="csr")), norm="l1")
    y = np.where(np.asarray(data.rating) >= 4, 1, -1)
    return divided("movielens 1M", X, y, 800_167, 100_021, 100_021)


def gram(kernel: str, A: sp.csr_matrix, B: sp.csr_matrix) -> np.ndarray:
    """Return a kernel of all pairs of rows. Some rows at a time: 21,200² take 3.6 GB."""
    name, _, order = kernel.partition(" ")
    out = np.empty((A.shape[0], B.shape[0]))
    for first in range(0, len(out), AT_ONCE):
        few = A[first : first + AT_ONCE]
        if name == "anova":
            K = anova_gram(few, B, int(order))
        elif name == "polynomial":
            K = (few @ B.T).toarray() ** int(order)
        else:
            # log(1 + t) of each common feature; a row's values have one size, so that t has two values.
            a, b = (np.abs(M).max(axis=1).toarray().ravel() for M in (few, B))
            same = (sp.csr_matrix(abs(few.sign())) @ abs(B.sign()).T).toarray()
            signed = (few.sign() @ B.sign().T).toarray()
            t = np.outer(a, b)
            K = np.exp(0.5 * ((same + signed) * np.log1p(t) + (same - signed) * np.log1p(-t)))
        out[first : first + AT_ONCE] = K
    return out


def dense_maps(kernel: str) -> dict[str, Any]:
    """Return the maps of a kernel by the thesis' names."""
    name, _, order = kernel.partition(" ")
    if name == "all-subsets":
        return {"RK": partial(RandomKernelMap, name)}
    degree = {"degree": int(order)}
    if name == "anova":
        return {"RK": partial(RandomKernelMap, **degree), "SCRK": partial(SignedCirculantMap, **degree)}
    return {"RM": partial(RandomMaclaurin, **degree), "TS": partial(TensorSketch, **degree)}


def sparse_maps(kernel: str, d: int) -> dict[str, Any]:
    """Return the maps of sparse features: bases of density 1 − SPARSITY, or of as many features."""
    subset = round(d * (1 - SPARSITY))
    if kernel == "anova 2":
        return {
            "SparseRK": partial(SparseRandomKernelMap, sparsity=SPARSITY),
            "SubRK": partial(SubsampledRandomKernelMap, subset=subset),
        }
    return {
        "SparseRM": partial(RandomKernelMap, "polynomial", sampling="sparse", sparsity=SPARSITY),
        "SubRM": partial(RandomKernelMap, "polynomial", sampling="subsampled", subset=subset),
    }


def factorization_machine(kernel: str, seed: int, cost: float) -> Any:
    """Return the model that learns a kernel's functions without it."""
    name, _, order = kernel.partition(" ")
    params: dict[str, Any] = {"n_components": RANK, "loss": "squared_hinge", "alpha": cost, "beta": cost}
    params |= {"fit_linear": False, "max_iter": EPOCHS, "tol": 0.0, "num_threads": 1}
    if name == "all-subsets":
        return AllSubsetsClassifier(random_state=seed, **params)
    return FactorizationMachineClassifier(degree=int(order), fit_lower=None, random_state=seed, **params)


# ---- errors


def kernel_error(task: Task, kernel: str, train: np.ndarray, test: np.ndarray, cost: float) -> float:
    X, y = task.X, task.y
    model = SVC(C=cost, kernel="precomputed", cache_size=1_000)
    model.fit(gram(kernel, X[train], X[train]), y[train])
    wrong = 0
    for part in np.array_split(test, max(1, len(test) // 4_000)):
        wrong += int((model.predict(gram(kernel, X[part], X[train])) != y[part]).sum())
    return wrong / len(test)


def map_error(task: Task, maker: Any, cost: float) -> float:
    X, y = task.X, task.y
    maker.fit(X[:1])
    model = LinearSVC(C=cost, dual=False, random_state=0)
    model.fit(maker.transform(X[task.train]), y[task.train])
    return float((model.predict(maker.transform(X[task.test])) != y[task.test]).mean())


def machine_error(task: Task, kernel: str, test: np.ndarray, beta: float, seed: int) -> float:
    model = factorization_machine(kernel, seed, beta).fit(task.X[task.train], task.y[task.train])
    return float((model.predict(task.X[test]) != task.y[test]).mean())


def add(results: Results, key: tuple, cost: float, trials: int, error: Callable[[int], float]) -> None:
    """Run a row's trials and append it."""
    errors, started = [], time.process_time()
    for seed in range(trials):
        errors.append(error(seed))
    seconds = (time.process_time() - started) / trials
    mean, std = float(np.mean(errors)), float(np.std(errors))
    results.add((*key, f"{cost:g}", mean, std, trials, seconds))


def add_kernel_machine(results: Results, task: Task, kernel: str, train: np.ndarray) -> float:
    """Add a kernel's SVM; return its C, that of the least error on the validation rows."""
    key = (task.name, kernel, "kernel SVM", None)
    if results.missing([key]):
        few, valid = train[:CHOOSING], task.valid[:CHOOSING]
        scale = float(np.diag(gram(kernel, task.X[few[:500]], task.X[few[:500]])).mean())
        best, since, cost = float("inf"), 0, 0.0
        for c in (float(f"{10.0**k / scale:.2g}") for k in POWERS):
            error = kernel_error(task, kernel, few, valid, c)
            best, since, cost = (error, 0, c) if error < best else (best, since + 1, cost)
            if since == PATIENCE:
                break
        add(results, key, cost, 1, lambda seed: kernel_error(task, kernel, train, task.test, cost))
    frame = results.frame()
    row = frame[(frame[["data", "kernel", "method"]] == list(key[:3])).all(axis=1)]
    return float(row["C or beta"].iloc[0])


def add_factorization_machine(results: Results, task: Task, kernel: str, trials: int) -> None:
    """Add the FM, or the all-subsets model, of the β of the least error on the validation rows."""
    key = (task.name, kernel, "all-subsets model" if kernel == "all-subsets" else "FM", None)
    if results.missing([key]):
        beta = min(BETAS, key=lambda beta: machine_error(task, kernel, task.valid, beta, 0))
        add(results, key, beta, trials, lambda s: machine_error(task, kernel, task.test, beta, s))


def add_maps(
    results: Results, task: Task, kernel: str, maps: dict, times: tuple, cost: float, trials: int
) -> None:
    keys = [(task.name, kernel, name, k * task.X.shape[1]) for name in maps for k in times]
    for key in results.missing(keys):
        make = partial(maps[key[2]], n_components=key[3])
        add(results, key, cost, trials, lambda s: map_error(task, make(random_state=s), cost))  # noqa: B023


# ---- the figures


def dense() -> None:
    """Figures 4.2 to 4.7."""
    results = Results("random_features_machines", COLUMNS, 4)
    for task in (
        divided("phishing", *phishing_rows(), 9_000, 555, 1_500),
        movielens(),
        divided("a9a", *a9a_rows(), 10_000, 2_000, 16_000),
    ):
        for kernel in ("anova 2", "anova 3", "all-subsets", "polynomial 2", "polynomial 3"):
            cost = add_kernel_machine(results, task, kernel, task.train)
            if not kernel.startswith("polynomial"):
                add_factorization_machine(results, task, kernel, TRIALS)
            add_maps(results, task, kernel, dense_maps(kernel), TIMES, cost, TRIALS)
    draw(results)


def sparse() -> None:
    """Figure 4.9: MovieLens 1M."""
    results, task = Results("random_features_machines_1m", COLUMNS, 4), one_hot_movielens()
    for kernel in ("anova 2", "polynomial 2"):
        cost = add_kernel_machine(results, task, kernel, task.train[:KERNEL_ROWS])
        if kernel == "anova 2":
            add_factorization_machine(results, task, kernel, 1)
        maps = sparse_maps(kernel, task.X.shape[1])
        add_maps(results, task, kernel, maps, (2, 4, 6, 8), cost, 1)
    draw(results)


def draw(results: Results) -> None:
    """Draw errors and seconds by D; a model without a map is a point at D = 0."""
    frame = results.frame().melt(["data", "kernel", "method", "D"], ["error", "seconds"], "what")
    frame["panel"] = frame["data"] + ", " + frame["kernel"] + ", " + frame["what"]
    frame = frame.fillna({"D": 0}).sort_values(["what", "D"], kind="stable")
    plot(results.name, frame, "D", "value", "method", "panel", 5, yscale="log")


if __name__ == "__main__":
    with threadpool_limits(1):
        run({"dense": dense, "sparse": sparse})
