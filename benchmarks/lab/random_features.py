"""Random feature maps: Tables 4.2 to 4.4, and Figure 4.1.

Rows are users' and movies' features of MovieLens 100K's pairs (49 + 29), scaled to unit ℓ1 length as in the
thesis, those of phishing pages, and a9a, which stands for IJCNN in Table 4.4; all kernel values of 1,000 rows,
where the thesis has 10,000. Figures 4.2 to 4.9 are in `random_feature_machines.py`.

    python -m benchmarks.lab.random_features [errors] [circulant]
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import normalize

from benchmarks.lab.common import Results, run
from benchmarks.lab.graphs import load_graph
from recsys.datasets import load_dataset
from recsys.random_features import RandomKernelMap, SignedCirculantMap

DRAWS = 100  # of each map in Tables 4.2 to 4.4
MAPPED = 8192  # features in Figure 4.1; 8,092 in print
TIMES = (2, 4, 8, 16)  # D over d


def movielens_rows() -> sp.csr_matrix:
    data = load_dataset("movielens")
    graph = load_graph("movielens", os.environ["RECSYS_DATA"])
    X = sp.hstack([graph.A[np.asarray(data.users)], graph.B[np.asarray(data.items)]], format="csr")
    return sp.csr_matrix(normalize(X, norm="l1"))


def phishing_rows() -> tuple[sp.csr_matrix, np.ndarray]:
    """Return the 30 features of phishing pages, -1, 0 or 1, of unit ℓ1 length, and their labels."""
    path = Path(os.environ["RECSYS_DATA"]) / "categorical" / "phishing.arff"
    lines = path.read_text(encoding="utf-8").split("@data", 1)[1].split()
    values = np.array([[int(cell) for cell in line.split(",")] for line in lines], dtype=np.float64)
    return sp.csr_matrix(normalize(values[:, :-1], norm="l1")), values[:, -1].astype(np.int64)


def a9a_rows() -> tuple[sp.csr_matrix, np.ndarray]:
    """Return the rows of a9a, of unit ℓ1 length, and their labels."""
    path = Path(os.environ["RECSYS_DATA"]) / "libsvm" / "a9a.gz"
    X, y = load_svmlight_file(str(path), n_features=123)
    return sp.csr_matrix(normalize(X, norm="l1")), y.astype(np.int64)


def anova_gram(A: Any, B: Any, m: int) -> np.ndarray:
    """Return the ANOVA kernel of order 2 or 3 of all pairs of rows of two CSR matrices."""
    one, two, three = ((A.power(t) @ B.power(t).T).toarray() for t in (1, 2, 3))
    return 0.5 * (one**2 - two) if m == 2 else (one**3 - 3.0 * one * two + 2.0 * three) / 6.0


def errors() -> None:
    """Tables 4.2 to 4.4: mean absolute errors over `DRAWS` maps, and their slope in log D."""
    columns = ("kernel", "map", "D over d", "mean absolute error", "std")
    errors_of(Results("random_features_errors", columns, 2), movielens_rows())
    errors_of(Results("random_features_errors_phishing", columns, 2), phishing_rows()[0])
    errors_of(Results("random_features_errors_a9a", columns, 2), a9a_rows()[0])


def errors_of(results: Results, rows: sp.csr_matrix) -> None:
    few = rows[np.random.default_rng(0).permutation(rows.shape[0])[:1000]]
    X = few.toarray()
    exact = {"all-subsets": np.array([np.prod(1 + a * X, axis=1) for a in X])}
    exact |= {f"anova {m}": anova_gram(few, few, m) for m in (2, 3)}
    maps = ("rademacher", "gaussian", "uniform", "laplace", "circulant")
    pairs = [(f"anova {m}", name) for m in (2, 3) for name in maps]
    for target, name in results.missing([*pairs, *(("all-subsets", name) for name in maps[:4])]):
        kernel, _, degree = target.partition(" ")
        params = {"degree": int(degree)} if degree else {}
        if name == "circulant":
            maker: Any = SignedCirculantMap(**params)
        else:
            maker = RandomKernelMap(kernel=kernel, distribution=name, **params)
        found = []
        for times in TIMES:
            gaps = []
            for seed in range(DRAWS):
                drawn = clone(maker).set_params(n_components=times * X.shape[1], random_state=seed)
                F = drawn.fit_transform(X)
                gaps.append(np.abs(F @ F.T - exact[target]).mean())
            found.append((target, name, times, float(np.mean(gaps)), float(np.std(gaps))))
        slope = float(np.polyfit(np.log(TIMES), np.log([row[3] for row in found]), 1)[0])
        results.add(*found, (target, name, "slope", slope, ""))


def circulant() -> None:
    """Figure 4.1: seconds of mapping 200 dense rows to MAPPED features, by the rows' dimension.

    CPU seconds of one thread (OPENBLAS_NUM_THREADS=1), the least of ten: others may use the machine.
    """
    results = Results(
        "random_features_circulant", ("degree", "d", "RK seconds", "SCRK seconds", "ratio"), 2
    )
    for degree, d in results.missing([(m, d) for m in (2, 3) for d in (512, 1024, 2048, 4096)]):
        X = np.random.default_rng(0).normal(size=(200, d))
        least = []
        for maker in (
            RandomKernelMap(kernel="anova", degree=degree, n_components=MAPPED),
            SignedCirculantMap(degree=degree, n_components=MAPPED),
        ):
            maker.fit(X)
            maker.transform(X[:10])
            seconds = []
            for _ in range(10):
                started = time.process_time()
                maker.transform(X)
                seconds.append(time.process_time() - started)
            least.append(min(seconds))
        results.add((degree, d, *least, least[0] / least[1]))


if __name__ == "__main__":
    run({"errors": errors, "circulant": circulant})
