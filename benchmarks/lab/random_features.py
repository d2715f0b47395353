"""Random feature maps: Tables 4.2 to 4.4, Figure 4.1, other maps of chapter 4, and what maps are for.

Rows are users' and movies' features of MovieLens 100K's pairs (49 + 29), scaled to unit ℓ1 length as in the
thesis, and those of phishing pages; all kernel values of 1,000 rows. Labels for the SVMs: rating 4 or more;
a9a as given. Figures 4.2 to 4.10 are in `random_feature_machines.py`.

Table 4.4's data, IJCNN, are not at hand: a9a stands for them. The thesis has 10,000 rows in these tables. On MovieLens 1M the map beside the raw features is no better than the raw features alone.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import normalize
from sklearn.svm import SVC, LinearSVC

from benchmarks.lab import kernel_svm
from benchmarks.lab.common import RESULTS, write_csv
from recsys.data.encoding import encode_table
from recsys.datasets import load_dataset
from recsys.datasets.graphs import load_graph
from recsys.random_features import (
    DotProductMap,
    RandomKernelMap,
    RandomMaclaurin,
    SignedCirculantMap,
    SparseRandomKernelMap,
    SparseRandomMaclaurin,
    SubsampledRandomKernelMap,
    SubsampledRandomMaclaurin,
    TensorSketch,
)

DRAWS = 100  # of each map in Tables 4.2 to 4.4
MAPPED = 8192  # features in Figure 4.1; 8,092 in print


def rows_of(norm: str) -> tuple[Any, np.ndarray]:
    data = load_dataset("movielens")
    graph = load_graph("movielens", os.environ["RECSYS_DATA"])
    u, i = np.asarray(data.users), np.asarray(data.items)
    X = sp.hstack([graph.A[u], graph.B[i]], format="csr")
    return sp.csr_matrix(normalize(X, norm=norm)), (np.asarray(data.rating) >= 4) * 2 - 1


def phishing_rows() -> tuple[sp.csr_matrix, np.ndarray]:
    """Return the 30 features of phishing pages, -1, 0 or 1, of unit ℓ1 length, and their labels."""
    path = Path(os.environ["RECSYS_DATA"]) / "categorical" / "phishing.arff"
    lines = path.read_text(encoding="utf-8").split("@data", 1)[1].split()
    values = np.array([[int(cell) for cell in line.split(",")] for line in lines], dtype=np.float64)
    return sp.csr_matrix(normalize(values[:, :-1], norm="l1")), values[:, -1].astype(np.int64)


def anova_gram(X: np.ndarray, m: int) -> np.ndarray:
    powers = [(X**t) @ (X**t).T for t in range(1, m + 1)]
    if m == 2:
        return 0.5 * (powers[0] ** 2 - powers[1])
    return (powers[0] ** 3 - 3 * powers[0] * powers[1] + 2 * powers[2]) / 6


def errors() -> None:
    """Tables 4.2 to 4.4: mean absolute errors over `DRAWS` maps, and their slope in D; those files that lack."""
    for file, rows in (
        ("random_features_errors", lambda: rows_of("l1")),
        ("random_features_errors_phishing", phishing_rows),
        ("random_features_errors_a9a", a9a_rows),
    ):
        if not (RESULTS / f"{file}.csv").exists():
            errors_of(file, rows()[0])


def a9a_rows() -> tuple[sp.csr_matrix, np.ndarray]:
    """Return the rows of a9a, of unit ℓ1 length, and their labels."""
    path = Path(os.environ["RECSYS_DATA"]) / "libsvm" / "a9a.gz"
    X, y = load_svmlight_file(str(path), n_features=123)
    return sp.csr_matrix(normalize(X, norm="l1")), y.astype(np.int64)


def errors_of(file: str, sparse: sp.csr_matrix) -> None:
    X = sparse[np.random.default_rng(0).permutation(sparse.shape[0])[:1000]].toarray()
    d = X.shape[1]
    exact = {
        "anova 2": anova_gram(X, 2), "anova 3": anova_gram(X, 3),
        "all-subsets": np.array([np.prod(1 + a * X, axis=1) for a in X]),
    }  # fmt: skip
    rows: list[tuple[Any, ...]] = []
    for target, K in exact.items():
        kernel = "all-subsets" if target == "all-subsets" else "anova"
        degree = {} if kernel == "all-subsets" else {"degree": int(target[-1])}
        names = ["rademacher", "gaussian", "uniform", "laplace"] + (["circulant"] if degree else [])
        for name in names:
            found = []
            for times in (2, 4, 8, 16):
                given = {"n_components": times * d, **degree}
                if name == "circulant":
                    maker: Any = SignedCirculantMap(**given)
                else:
                    maker = RandomKernelMap(kernel=kernel, distribution=name, **given)
                gaps = []
                for seed in range(DRAWS):
                    F = clone(maker).set_params(random_state=seed).fit_transform(X)
                    gaps.append(np.abs(F @ F.T - K).mean())
                found.append(float(np.mean(gaps)))
                rows.append((target, name, times, found[-1], float(np.std(gaps))))
            slope = float(np.polyfit(np.log([2, 4, 8, 16]), np.log(found), 1)[0])
            print(target, name, found, "slope", slope, flush=True)
            rows.append((target, name, "slope", slope, ""))
    write_csv(file, ("kernel", "map", "D over d", "mean absolute error", "std"), rows)


def polynomial() -> None:
    """Errors and densities of the maps of ⟨x, y⟩² and of exp⟨x, y⟩ on the same rows, ten draws."""
    X, _ = rows_of("l2")
    X = sp.csr_matrix(X[np.random.default_rng(0).permutation(X.shape[0])[:1000]])
    d = X.shape[1]
    G = (X @ X.T).toarray()
    maps: list[tuple[str, np.ndarray, Any]] = [
        ("RM", G**2, RandomMaclaurin()),
        ("SparseRM, p = 0.8", G**2, SparseRandomMaclaurin(sparsity=0.8)),
        ("SubRM, k = d/5", G**2, SubsampledRandomMaclaurin(subset=d // 5)),
        ("tensor sketch", G**2, TensorSketch()),
        ("any dot product", np.exp(G), DotProductMap("exponential")),
    ]
    rows = []
    for name, K, maker in maps:
        found = []
        for times in (2, 4, 8, 16):
            gaps, shares = [], []
            for seed in range(10):
                Z = clone(maker).set_params(n_components=times * d, random_state=seed).fit_transform(X)
                shares.append((Z.nnz if sp.issparse(Z) else np.count_nonzero(Z)) / np.prod(Z.shape))
                product = Z @ Z.T
                gaps.append(float(np.abs((product.toarray() if sp.issparse(Z) else product) - K).mean()))
            found.append(float(np.mean(gaps)))
            kernel = "exponential" if name == "any dot product" else "polynomial of degree 2"
            rows.append((kernel, name, times, found[-1], float(np.std(gaps)), float(np.mean(shares))))
            print(rows[-1], flush=True)
        print("slope", float(np.polyfit(np.log([2, 4, 8, 16]), np.log(found), 1)[0]), flush=True)
    heads = ("kernel", "map", "D over d", "mean absolute error", "std", "density")
    write_csv("random_features_polynomial", heads, rows)


def anova_2(X: Any, Y: Any) -> np.ndarray:
    """Return the ANOVA kernel of order 2 of dense rows, with two products and no more temporaries."""
    out = X @ Y.T
    out *= out
    out -= (X**2) @ (Y**2).T
    out *= 0.5
    return out


def by_kernel(X: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray, C: float) -> np.ndarray:
    dense = X.toarray()
    svm = SVC(kernel="precomputed", C=C).fit(anova_2(dense[train], dense[train]), y[train])
    return svm.predict(anova_2(dense[test], dense[train]))


def by_pairs(data: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray, C: float) -> np.ndarray:
    A, B, users, movies = data
    t = kernel_svm.tables(A, B, users[train], movies[train])
    signed, b, steps = kernel_svm.fit(t, y[train], C)
    print("steps", steps, "support vectors", int((signed != 0).sum()), flush=True)
    scale = kernel_svm.tables(A, B, users[test], movies[test]).scale
    return np.sign(kernel_svm.decide(t, signed, b, users[test], movies[test], scale))


def by_features(X: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray, C: float) -> np.ndarray:
    mapper = RandomKernelMap(kernel="anova", degree=2, n_components=16 * X.shape[1], random_state=0)
    mapper.fit(X[:1])
    linear = LinearSVC(C=C, dual=True, tol=1e-2, max_iter=200).fit(mapper.transform(X[train]), y[train])
    return linear.predict(mapper.transform(X[test]))


def machines() -> None:
    """Time a linear SVM on random features against the kernel SVM, each with the C that validates best.

    C comes from a fifth of at most 10,000 training rows and is not timed; fitting and predicting are.
    """
    a9a, labels = load_svmlight_file(
        str(Path(os.environ["RECSYS_DATA"]) / "libsvm" / "a9a.gz"), n_features=123
    )
    pick = np.random.default_rng(0).permutation(a9a.shape[0])[:10_000]
    adult = sp.csr_matrix(normalize(a9a[pick]))
    wide, rating = rows_of("l2")
    graph = load_graph("movielens", os.environ["RECSYS_DATA"])
    data = load_dataset("movielens")
    pairs = (graph.A.toarray(), graph.B.toarray(), np.asarray(data.users), np.asarray(data.items))
    tasks = [
        ("a9a, 10,000 rows", adult, labels[pick], 8_000, by_kernel, adult),
        ("movielens 100K, whole", wide, rating, 80_000, by_pairs, pairs),
    ]
    rows = []
    for name, X, y, cut, exact, given in tasks:
        order = np.random.default_rng(1).permutation(X.shape[0])
        train, test = order[:cut], order[cut:]
        inner, held = train[: min(8_000, 4 * cut // 5)], train[4 * cut // 5 :][:2_000]
        cells: list[Any] = [name, 16 * X.shape[1]]
        for way, what in ((exact, given), (by_features, X)):
            C = min(
                (0.1, 1.0, 10.0), key=lambda c: float((way(what, y, inner, held, c) != y[held]).mean())
            )  # noqa: B023
            started = time.perf_counter()
            error = float((way(what, y, train, test, C) != y[test]).mean())
            cells += [C, error, time.perf_counter() - started]
            print(name, way.__name__, cells[-3:], flush=True)
        rows.append((*cells, cells[-1] / cells[4]))
        write_csv("random_features_svm", ("task", "D", "kernel C", "kernel error", "kernel seconds", "linear C", "linear error", "linear seconds", "linear over kernel"), rows)  # fmt: skip


def circulant() -> None:
    """Figure 4.1: seconds of mapping 200 dense rows to MAPPED features, by the rows' dimension.

    Processor seconds of one thread (OPENBLAS_NUM_THREADS=1), the least of ten: others may use the machine.
    """
    rows = []
    for degree in (2, 3):
        for d in (512, 1024, 2048, 4096):
            X = np.random.default_rng(0).normal(size=(200, d))
            seconds = {}
            for name, maker in (
                ("RK", RandomKernelMap(kernel="anova", degree=degree, n_components=MAPPED)),
                ("SCRK", SignedCirculantMap(degree=degree, n_components=MAPPED)),
            ):
                maker.fit(X)
                maker.transform(X[:10])
                best = np.inf
                for _ in range(10):
                    started = time.process_time()
                    maker.transform(X)
                    best = min(best, time.process_time() - started)
                seconds[name] = best
            rows.append((degree, d, seconds["RK"], seconds["SCRK"], seconds["RK"] / seconds["SCRK"]))
            print(rows[-1], flush=True)
    write_csv("random_features_circulant", ("degree", "d", "RK seconds", "SCRK seconds", "ratio"), rows)


def one_hot(name: str) -> tuple[Any, np.ndarray]:
    """Return each rating as one-hot user, movie and what is known of both, and whether it is 4 or more."""
    data = load_dataset(name)
    users, items = np.asarray(data.users), np.asarray(data.items)
    blocks = []
    for table, ids, n in (
        (data.user_features, users, data.n_users), (data.item_features, items, data.n_items),
    ):  # fmt: skip
        known = encode_table(table, buckets=8, skip=("title", "zip")).X
        blocks.append(sp.hstack([sp.identity(n, format="csr"), known], format="csr")[ids])
    X = sp.csr_matrix(sp.hstack(blocks, format="csr"))
    return sp.csr_matrix(normalize(X)), np.where(np.asarray(data.rating) >= 4, 1, -1)


def sparse() -> None:
    """One-hot MovieLens 1M: density, memory and accuracy of sparse and subsampled maps; the effect of p."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X, y = one_hot("movielens-1m")
    order = np.random.default_rng(0).permutation(X.shape[0])
    train, test = order[: 9 * len(order) // 10], order[9 * len(order) // 10 :]
    d = X.shape[1]
    linear = SGDClassifier(random_state=0, alpha=1e-6, max_iter=10, tol=None)
    plain = float((linear.fit(X[train], y[train]).predict(X[test]) != y[test]).mean())
    print(
        "rows", X.shape, "non-zeros a row", X.nnz / X.shape[0], "linear model alone", plain, flush=True
    )
    rows: list[tuple[Any, ...]] = [
        ("none", "", d, X.nnz / np.prod(X.shape), X.data.nbytes * 1.5 / 1e9, plain, 0.0, 0.0)
    ]
    maps = [("sparse RK", p, SparseRandomKernelMap(n_components=2 * d, sparsity=p)) for p in (0.98, 0.985, 0.99, 0.995, 0.998)]  # fmt: skip
    maps += [("subsampled RK", k, SubsampledRandomKernelMap(n_components=2 * d, subset=k)) for k in (20, 100)]  # fmt: skip
    for name, setting, maker in maps:
        started = time.perf_counter()
        Z = maker.fit(X[:1]).transform(X)
        mapped = time.perf_counter() - started
        both = sp.hstack([X, Z], format="csr")
        model = clone(linear).fit(both[train], y[train])
        error = float((model.predict(both[test]) != y[test]).mean())
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        rows.append((name, setting, Z.shape[1], Z.nnz / np.prod(Z.shape), Z.data.nbytes * 1.5 / 1e9, error, mapped, peak))  # fmt: skip
        print(rows[-1], flush=True)
        del Z, both
        write_csv("random_features_sparse", ("map", "p or subset", "D", "density", "GB", "error", "map seconds", "peak GB"), rows)  # fmt: skip
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.5))
    shown = [row for row in rows if row[0] == "sparse RK"]
    for axis, column, label in ((axes[0], 5, "error"), (axes[1], 3, "density")):
        axis.plot([row[1] for row in shown], [row[column] for row in shown], marker="o")
        axis.set(xlabel="sparsity p", ylabel=label, title="one-hot MovieLens 1M, D = 2d")
    axes[0].axhline(plain, linestyle=":", color="grey", label="no map")
    axes[0].legend()
    axes[1].set_yscale("log")
    figure.tight_layout()
    figure.savefig(RESULTS / "random_features_sparsity.png", dpi=120)


if __name__ == "__main__":
    for what in sys.argv[1:] or ["errors", "polynomial", "circulant", "machines", "sparse"]:
        {
            "errors": errors, "polynomial": polynomial, "circulant": circulant, "machines": machines,
            "sparse": sparse,
        }[what]()  # fmt: skip
