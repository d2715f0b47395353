"""Random feature maps: Table 4.2 on MovieLens 100K, linear against kernel SVM, circulant against plain.

Rows are users' and movies' features of the pairs (49 + 27), scaled to unit ℓ1 length as in the thesis;
2,000 pairs, all of their kernel values. Labels for the SVMs: rating 4 or more; a9a as given.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import normalize
from sklearn.svm import SVC, LinearSVC

from benchmarks.lab.common import RESULTS, write_csv
from benchmarks.lab.sparse_fm_table_3 import movielens
from recsys.data.graphs import load_graph
from recsys.features import RandomKernelMap, SignedCirculantMap, SparseRandomKernelMap


def rows_of(norm: str) -> tuple[Any, np.ndarray]:
    from recsys.data import load_dataset

    data = load_dataset("movielens")
    graph = load_graph("movielens", os.environ["RECSYS_DATA"])
    u, i = np.asarray(data.users), np.asarray(data.items)
    X = sp.hstack([graph.A[u], graph.B[i]], format="csr")
    return sp.csr_matrix(normalize(X, norm=norm)), (np.asarray(data.rating) >= 4) * 2 - 1


def anova_gram(X: np.ndarray, m: int) -> np.ndarray:
    powers = [(X**t) @ (X**t).T for t in range(1, m + 1)]
    if m == 2:
        return 0.5 * (powers[0] ** 2 - powers[1])
    return (powers[0] ** 3 - 3 * powers[0] * powers[1] + 2 * powers[2]) / 6


def errors() -> None:
    """Table 4.2: mean absolute errors, and their slope in D."""
    X, _ = rows_of("l1")
    X = X[np.random.default_rng(0).permutation(X.shape[0])[:1000]].toarray()
    d = X.shape[1]
    exact = {"anova 2": anova_gram(X, 2), "anova 3": anova_gram(X, 3), "all-subsets": np.array([[np.prod(1 + a * b) for b in X[:300]] for a in X[:300]])}  # fmt: skip
    rows = []
    for target, K in exact.items():
        kernel = "all-subsets" if target == "all-subsets" else "anova"
        degree = {} if kernel == "all-subsets" else {"degree": int(target[-1])}
        Z = X[: len(K)]
        names = ["rademacher", "gaussian", "uniform", "laplace"] + (["circulant"] if degree else [])
        for name in names:
            found = []
            for times in (2, 4, 8, 16):
                gaps = []
                for seed in range(10):
                    if name == "circulant":
                        maker: Any = SignedCirculantMap(
                            n_components=times * d, random_state=seed, **degree
                        )
                    else:
                        maker = RandomKernelMap(kernel=kernel, n_components=times * d, distribution=name, random_state=seed, **degree)  # fmt: skip
                    F = maker.fit_transform(Z)
                    gaps.append(np.abs(F @ F.T - K).mean())
                found.append(float(np.mean(gaps)))
                rows.append((target, name, times, found[-1], float(np.std(gaps))))
            slope = float(np.polyfit(np.log([2, 4, 8, 16]), np.log(found), 1)[0])
            print(target, name, found, "slope", slope, flush=True)
            rows.append((target, name, "slope", slope, ""))
    write_csv(
        "random_features_errors", ("kernel", "map", "D over d", "mean absolute error", "std"), rows
    )


def machines() -> None:
    """Time a linear SVM on random features against the kernel SVM."""
    a9a, labels = load_svmlight_file(
        str(Path(os.environ["RECSYS_DATA"]) / "libsvm" / "a9a.gz"), n_features=123
    )
    pick = np.random.default_rng(0).permutation(a9a.shape[0])[:10_000]
    wide, rating = rows_of("l2")
    tasks = {"a9a 10,000": (sp.csr_matrix(normalize(a9a[pick])), labels[pick], 8_000), "movielens 20,000": (wide[:20_000], rating[:20_000], 16_000)}  # fmt: skip
    rows = []
    for name, (X, y, cut) in tasks.items():
        D = 16 * X.shape[1]
        dense = X.toarray()
        started = time.perf_counter()
        K = anova_gram(dense[:cut], 2)
        svm = SVC(kernel="precomputed", C=10.0).fit(K, y[:cut])
        powers = [(dense[cut:] ** t) @ (dense[:cut] ** t).T for t in (1, 2)]
        slow = float((svm.predict(0.5 * (powers[0] ** 2 - powers[1])) != y[cut:]).mean())
        exact = time.perf_counter() - started
        started = time.perf_counter()
        mapper = RandomKernelMap(kernel="anova", degree=2, n_components=D, random_state=0).fit(X)
        Z = mapper.transform(X).astype(np.float32)
        linear = LinearSVC(C=10.0, dual=False, tol=1e-3).fit(Z[:cut], y[:cut])
        quick = float((linear.predict(Z[cut:]) != y[cut:]).mean())
        fast = time.perf_counter() - started
        rows.append((name, D, slow, quick, exact, fast, exact / fast))
        print(rows[-1], flush=True)
    write_csv("random_features_svm", ("task", "D", "kernel SVM error", "random features error", "kernel seconds", "random seconds", "ratio"), rows)  # fmt: skip


def circulant() -> None:
    rows = []
    for d in (256, 512, 1024, 2048, 4096):
        X = np.random.default_rng(0).normal(size=(200, d))
        seconds = {}
        for name, maker in (("RK", RandomKernelMap(kernel="anova", degree=3, n_components=d, random_state=0)), ("SCRK", SignedCirculantMap(degree=3, n_components=d, random_state=0))):  # fmt: skip
            maker.fit(X)
            maker.transform(X[:10])
            best = np.inf
            for _ in range(3):
                started = time.perf_counter()
                maker.transform(X)
                best = min(best, time.perf_counter() - started)
            seconds[name] = best
        rows.append((d, seconds["RK"], seconds["SCRK"], seconds["RK"] / seconds["SCRK"]))
        print(rows[-1], flush=True)
    write_csv("random_features_circulant", ("d", "RK seconds", "SCRK seconds", "ratio"), rows)


def sparse() -> None:
    """One-hot MovieLens 100K: density and accuracy against the sparsity p."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    (train, y), _, (held, truth) = movielens()
    labels, wanted = np.where(y >= 4, 1, -1), np.where(truth >= 4, 1, -1)
    rows = []
    for p in (0.9, 0.95, 0.98, 0.99, 0.995):
        maker = SparseRandomKernelMap(
            degree=2, n_components=2 * train.shape[1], sparsity=p, random_state=0
        )
        started = time.perf_counter()
        Z = sp.csr_matrix(maker.fit_transform(train[:20_000]))
        linear = LinearSVC(C=1.0, dual=True, tol=1e-2, max_iter=200).fit(Z, labels[:20_000])
        error = float(
            (linear.predict(sp.csr_matrix(maker.transform(held[:10_000]))) != wanted[:10_000]).mean()
        )
        rows.append((p, Z.shape[1], Z.nnz / np.prod(Z.shape), error, time.perf_counter() - started))
        print(rows[-1], flush=True)
    write_csv("random_features_sparse", ("sparsity p", "D", "density", "error", "seconds"), rows)
    figure, axis = plt.subplots(figsize=(5, 4))
    axis.plot([row[0] for row in rows], [row[3] for row in rows], marker="o")
    axis.set(xlabel="sparsity p", ylabel="error", title="one-hot MovieLens 100K, D = 2d")
    figure.tight_layout()
    figure.savefig(RESULTS / "random_features_sparsity.png", dpi=120)


if __name__ == "__main__":
    for what in sys.argv[1:] or ["errors", "circulant", "machines", "sparse"]:
        {"errors": errors, "circulant": circulant, "machines": machines, "sparse": sparse}[what]()
