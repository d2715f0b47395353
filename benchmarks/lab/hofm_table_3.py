"""Table 3 of the HOFM paper: link AUC on NIPS and MovieLens 100K, mean of three splits.

NIPS: authors linked by a common paper, words as counts scaled to unit length. MovieLens 100K: users and movies
by their features, linked by a rating of 5. Half of the links train, with as many pairs without a link; the rest
of all pairs is tested (two million on NIPS). Squared loss, coordinate descent (networks: L-BFGS), rank 30, first
P from N(0, 0.01), a bias in every model.

β is one of the paper's, from 10 down to 1e-6, by the AUC on a fifth of the first split's training pairs (above
10 nothing is left of P). The search ends where WORSE values in a row are below the best, but not above LEAVE,
nor while the best is the first: where next to nothing is left of P, the AUC depends on the first P. A fit ends
when an epoch lowers the objective by less than a share of it (ENDS). The columns `epochs` (mean of the three
fits) and `converged` (how many of them ended by that) say how. `seconds` are CPU seconds.

    python -m benchmarks.lab.hofm_table_3 [nips] [movielens] ["HOFM 3"] …
"""

from __future__ import annotations

import os
import time
import warnings
from functools import cache, partial
from math import comb
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

from benchmarks.lab.common import Results, arguments
from benchmarks.lab.graphs import load_graph
from recsys.fm import AllSubsetsRegressor, PolynomialNetworkRegressor
from recsys.links import (
    LinkSplit,
    LowRankBilinear,
    PairFactorizationMachine,
    link_metrics,
    split_pairs,
)
from recsys.multilinear.forms import ALL_SUBSETS, Compressed, fill_components

ORDERS = (2, 3, 4, 5)
PRINTED = {  # by order
    "nips": {
        "bilinear": (0.855,),
        "HOFM": (0.856, 0.875, 0.874, 0.874),
        "augmented": (0.858, 0.874, 0.836, 0.824),
        "simplex": (0.716, 0.777, 0.758, 0.722),
        "network": (0.725, 0.789, 0.782, 0.543),
        "all-subsets": (0.730,),
    },
    "movielens": {
        "bilinear": (0.718,),
        "HOFM": (0.778, 0.786, 0.786, 0.786),
        "augmented": (0.778, 0.787, 0.779, 0.621),
        "simplex": (0.701, 0.709, 0.709, 0.709),
        "network": (0.761, 0.696, 0.708, 0.501),
        "all-subsets": (0.714,),
    },
}
BETAS = tuple(10.0**k for k in range(1, -7, -1))
SPLITS = 3
ENDS = {"nips": (60, 5e-3), "movielens": (100, 1e-3)}  # most epochs, least progress
WORSE = 2  # values of β in a row below the best after which no smaller one is tried
LEAVE = 1e-4  # the largest β after which the search may end
CLEAR = 0.52  # AUC from which a model has learned anything: above it the search may end
COLUMNS = "data model printed auc std difference beta validation tried epochs converged seconds".split()


class Rows:
    """A regressor of rows, each both ends' features side by side, as a link predictor.

    Scores of all pairs are products of the ends' own tables: no row of the two million is formed.
    """

    def __init__(self, make: Any, **params: Any) -> None:
        self.model = make(**params)

    def fit(self, A: Any, B: Any, pairs: np.ndarray, y: np.ndarray) -> Any:
        rows = sp.hstack([A[pairs[:, 0]], (A if B is None else B)[pairs[:, 1]]], format="csr")
        self.model.fit(rows, y)
        return self

    def decision_function(self, A: Any, B: Any, pairs: np.ndarray) -> np.ndarray:
        B, model = A if B is None else B, self.model
        P = model.P_[0][0]
        ends = (A, P[: A.shape[1]]), (B, P[A.shape[1] : A.shape[1] + B.shape[1]])
        if isinstance(model, AllSubsetsRegressor):
            left, right = (products(X, table) for X, table in ends)
            scores = left @ right.T
        else:  # (l + r)^m by the binomial theorem
            m = model.degree
            left, right = (X @ table for X, table in ends)
            right += P[A.shape[1] + B.shape[1] :].sum(axis=0)
            scores = sum(comb(m, t) * left**t @ (right ** (m - t)).T for t in range(m + 1))
        return np.asarray(scores[pairs[:, 0], pairs[:, 1]]) + model.intercept_


def products(X: Any, P: np.ndarray) -> np.ndarray:
    """Return Π(1 + p x) of each object and component."""
    tables = np.empty((X.shape[0], P.shape[1], 1))
    fill_components(ALL_SUBSETS, Compressed.of(X), np.ascontiguousarray(P), tables)
    return tables[:, :, 0]


def models(name: str) -> dict[str, Any]:
    epochs, tolerance = ENDS[name]
    common = {"n_components": 30, "max_iter": epochs, "tol": tolerance, "init_scale": 0.1}
    fm = partial(PairFactorizationMachine, loss="squared", symmetric=False, **common)
    row = {**common, "fit_linear": False}
    powers = {
        "lifted": False,
        "fit_lower": "augment",
        "solver": "lbfgs",
    }  # which have no coordinate descent
    network = partial(Rows, PolynomialNetworkRegressor, **powers, **row)
    out: dict[str, Any] = {"bilinear": partial(LowRankBilinear, loss="squared", **common)}
    for m in ORDERS:
        out[f"HOFM {m}"] = partial(fm, degree=m)
        out[f"augmented {m}"] = partial(fm, degree=m, fit_lower="augment")
        out[f"simplex {m}"] = partial(fm, degree=m, fit_lower="simplex", fit_linear=False)
        out[f"network {m}"] = partial(network, degree=m)
    out["all-subsets"] = partial(Rows, AllSubsetsRegressor, **row)
    return out


@cache
def task(name: str) -> tuple[Any, list[LinkSplit], LinkSplit]:
    """Return the graph, its splits, and the split of the first one's training pairs for β."""
    graph = load_graph(name, os.environ["RECSYS_DATA"])
    if name == "nips":
        graph = graph._replace(A=sp.csr_matrix(normalize(graph.A)))
    sizes = (graph.A.shape[0], None if graph.B is None else graph.B.shape[0])
    splits = [split_pairs(graph.links, *sizes, test_all=True, seed=10 * s) for s in range(SPLITS)]
    pairs, labels = splits[0].train, splits[0].train_labels
    few, rest = np.split(np.random.default_rng(0).permutation(len(pairs)), [len(pairs) // 5])
    return graph, splits, LinkSplit(pairs[rest], labels[rest], pairs[few], labels[few])


def auc(model: Any, graph: Any, split: LinkSplit) -> float:
    fitted = model.fit(graph.A, graph.B, split.train, split.train_labels.astype(float))
    return link_metrics(split.test_labels, fitted.decision_function(graph.A, graph.B, split.test)).auc


def choose(make: Any, graph: Any, inner: LinkSplit) -> dict[float, float]:
    """Return the validation AUC of each β tried."""
    tried: dict[float, float] = {}
    behind = 0
    for beta in BETAS:
        tried[beta] = auc(make(beta=beta, random_state=0), graph, inner)
        best = max(tried.values())
        behind = behind + 1 if CLEAR < best and tried[beta] < best != tried[BETAS[0]] else 0
        if behind >= WORSE and beta <= LEAVE:
            break
    return tried


def row(name: str, label: str) -> tuple[Any, ...]:
    started = time.process_time()
    graph, splits, inner = task(name)
    make = models(name)[label]
    tried = choose(make, graph, inner)
    beta = max(tried, key=lambda b: tried[b])
    fits = [make(beta=beta, random_state=s) for s in range(SPLITS)]
    aucs = [auc(fit, graph, split) for fit, split in zip(fits, splits, strict=True)]
    kind, _, order = label.partition(" ")
    printed = PRINTED[name][kind][ORDERS.index(int(order)) if order else 0]
    mean = float(np.mean(aucs))
    ours = (mean, float(np.std(aucs)), mean - printed, beta, tried[beta], len(tried))
    histories = [[entry["objective"] for entry in getattr(fit, "model", fit).history_] for fit in fits]
    epochs = float(np.mean([len(values) - 1 for values in histories]))
    converged = sum(v[-2] - v[-1] <= ENDS[name][1] * abs(v[-2]) for v in histories)
    return name, label, printed, *ours, epochs, converged, time.process_time() - started


def main() -> None:
    labels = list(models("nips"))
    names = arguments([*PRINTED, *labels])
    for name in [name for name in names if name in PRINTED] or PRINTED:
        asked = [label for label in names if label in labels] or labels
        results = Results(f"hofm_table_3_{name}", COLUMNS, 2)
        for _, label in results.missing([(name, label) for label in asked]):
            results.add(row(name, label))


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)  # the table has a column of it
    main()
