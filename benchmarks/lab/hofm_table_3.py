"""Table 3 of the HOFM paper: link AUC on NIPS and MovieLens 100K, mean of three splits.

NIPS: 2,037 authors, 3,134 pairs i < j of authors with a common paper, words as counts scaled to unit
length. MovieLens 100K: 943 users of 49 features, 1,682 movies of 29, linked by a rating of 5. Half of the
links train, with as many pairs without a link; the rest of all pairs is tested (two million on NIPS).
Squared loss, coordinate descent, rank 30, first P from N(0, 0.01), a bias in every model.

β is one of the paper's 1e-6, 1e-5, … up to 10, by the AUC on a fifth of the first split's training pairs;
from 100 to 1e6, which the paper tries too, nothing is left of P. The grid is gone down from its top, and
left where WORSE values in a row were below the best, but not above LEAVE, nor while the best is the top
itself: where next to nothing is left of P, the AUC is what the first P happens to say. A fit ends when an epoch lowers the objective by less
than a share of it (ENDS, with the most epochs): the columns `epochs` (mean of the three fits) and
`converged` (how many of them ended by that) say how. `seconds` are of the processor.

Each row is made by itself, and kept as soon as it is there: a run that was stopped goes on with the rows
that are missing, and says at its end which they are. To make a row again, take it out of the file.

    python -m benchmarks.lab.hofm_table_3                       # all that is missing
    python -m benchmarks.lab.hofm_table_3 nips "HOFM 3"         # this row

Not the paper's: Enzyme and GD, which are not at hand; NIPS has 3,134 links for the paper's 4,140. Networks, the simplex
and all subsets lie above the printed figures.
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
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import normalize

from benchmarks.lab.common import append_csv, arguments, finished
from benchmarks.lab.graphs import load_graph
from recsys.fm import AllSubsetsRegressor, PolynomialNetworkRegressor
from recsys.links import LinkSplit, LowRankBilinear, PairFactorizationMachine, split_pairs
from recsys.multilinear.arrays import Compressed
from recsys.multilinear.forms import ALL_SUBSETS, ANOVA, fill_components

PRINTED = {
    "nips": {
        "HOFM 2": 0.856,
        "HOFM 3": 0.875,
        "HOFM 4": 0.874,
        "HOFM 5": 0.874,
        "augmented 2": 0.858,
        "augmented 3": 0.874,
        "augmented 4": 0.836,
        "augmented 5": 0.824,
        "simplex 2": 0.716,
        "simplex 3": 0.777,
        "simplex 4": 0.758,
        "simplex 5": 0.722,
        "all-subsets": 0.730,
        "network 2": 0.725,
        "network 3": 0.789,
        "network 4": 0.782,
        "network 5": 0.543,
        "bilinear": 0.855,
    },
    "movielens": {
        "HOFM 2": 0.778,
        "HOFM 3": 0.786,
        "HOFM 4": 0.786,
        "HOFM 5": 0.786,
        "augmented 2": 0.778,
        "augmented 3": 0.787,
        "augmented 4": 0.779,
        "augmented 5": 0.621,
        "simplex 2": 0.701,
        "simplex 3": 0.709,
        "simplex 4": 0.709,
        "simplex 5": 0.709,
        "all-subsets": 0.714,
        "network 2": 0.761,
        "network 3": 0.696,
        "network 4": 0.708,
        "network 5": 0.501,
        "bilinear": 0.718,
    },
}
BETAS = tuple(10.0**k for k in range(1, -7, -1))
SPLITS = 3
ENDS = {"nips": (60, 5e-3), "movielens": (100, 1e-3)}  # most epochs, least progress
WORSE = 2  # values of β in a row below the best after which no smaller one is tried
LEAVE = 1e-4  # the largest β after which the search may end
CLEAR = 0.52  # AUC from which a model has learned anything: above it the search may end
COLUMNS = (
    "data",
    "model",
    "printed",
    "auc",
    "std",
    "difference",
    "beta",
    "validation",
    "tried",
    "epochs",
    "converged",
    "seconds",
)


class Rows:
    """A regressor of rows, each both ends' features side by side, behind the link predictors' interface.

    Scores of all pairs are products of the ends' own tables: no row of the two million is formed.
    """

    def __init__(self, make: Any, **params: Any) -> None:
        self.model = make(**params)

    def fit(self, A: Any, B: Any, pairs: np.ndarray, y: np.ndarray) -> Any:
        """Fit."""
        rows = sp.hstack([A[pairs[:, 0]], (A if B is None else B)[pairs[:, 1]]], format="csr")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the table has a column of it
            self.model.fit(rows, y)
        self.epochs, self.converged = self.model.n_iter_, self.model.stopped_ == "tolerance"
        return self

    def decision_function(self, A: Any, B: Any, pairs: np.ndarray) -> np.ndarray:
        """Return scores."""
        left, right = self._tables(A, B)
        scores = np.full((A.shape[0], right.shape[1]), self.model.intercept_)
        for a, b in zip(left, right, strict=True):
            scores += a @ b.T
        return np.asarray(scores[pairs[:, 0], pairs[:, 1]])

    def _tables(self, A: Any, B: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the factors of the scores, (terms, objects, components) of each end."""
        model, B = self.model, A if B is None else B
        P = model.P_[0][0]
        first, second = P[: A.shape[1]], P[A.shape[1] : A.shape[1] + B.shape[1]]
        if isinstance(model, AllSubsetsRegressor):
            tables = [_orders(ALL_SUBSETS, X, table, 1) for X, table in ((A, first), (B, second))]
            return tables[0], tables[1]
        m = model.degree
        if isinstance(model, PolynomialNetworkRegressor):  # (l + r)^m by the binomial theorem
            left, right = A @ first, B @ second + P[A.shape[1] + B.shape[1] :].sum(axis=0)
            return (
                np.array([comb(m, t) * left**t for t in range(m + 1)]),
                np.array([right ** (m - t) for t in range(m + 1)]),
            )
        left, right = (
            np.concatenate([np.ones((1, X.shape[0], P.shape[1])), _orders(ANOVA, X, table, m)])
            for X, table in ((A, first), (B, second))
        )
        theta = np.zeros(m + 1)
        if model.fit_lower == "simplex":
            theta[1:] = model.theta_[0]
        else:  # the one order that has a table
            theta[m] = 1.0
        shares = [
            sum((theta[t + r] * right[r] for r in range(m + 1 - t)), np.zeros_like(right[0]))
            for t in range(m + 1)
        ]
        return left, np.array(shares)


def _orders(kind: int, X: Any, P: np.ndarray, m: int) -> np.ndarray:
    """Return A^1…A^m, or Π(1 + p x), of each object and component, (orders, objects, components)."""
    tables = np.empty((X.shape[0], P.shape[1], m))
    fill_components(kind, Compressed.of(X), np.ascontiguousarray(P), tables)
    return np.ascontiguousarray(tables.transpose(2, 0, 1))


class Pairs:
    """A link predictor that also says how its fit ended."""

    def __init__(self, make: Any, **params: Any) -> None:
        self.model = make(**params)

    def fit(self, A: Any, B: Any, pairs: np.ndarray, y: np.ndarray) -> Any:
        """Fit."""
        self.model.fit(A, B, pairs, y)
        found = [entry["objective"] for entry in self.model.history_]
        self.epochs = len(found) - 1
        self.converged = bool(found[-2] - found[-1] <= self.model.tol * abs(found[-2]))
        return self

    def decision_function(self, A: Any, B: Any, pairs: np.ndarray) -> np.ndarray:
        """Return scores."""
        return np.asarray(self.model.decision_function(A, B, pairs))


def models(name: str) -> dict[str, Any]:
    epochs, tolerance = ENDS[name]
    common = {"n_components": 30, "max_iter": epochs, "tol": tolerance, "init_scale": 0.1}
    pair = {**common, "loss": "squared"}
    row = {**common, "fit_linear": False}
    network = {**row, "lifted": False, "fit_lower": "augment"}
    fm = partial(PairFactorizationMachine, symmetric=False)  # as in the paper
    out: dict[str, Any] = {"bilinear": partial(Pairs, LowRankBilinear, **pair)}
    for m in (2, 3, 4, 5):
        out[f"HOFM {m}"] = partial(Pairs, fm, degree=m, **pair)
        out[f"augmented {m}"] = partial(Pairs, fm, degree=m, fit_lower="augment", **pair)
        out[f"simplex {m}"] = partial(Pairs, fm, degree=m, fit_lower="simplex", fit_linear=False, **pair)
        out[f"network {m}"] = partial(Rows, PolynomialNetworkRegressor, degree=m, **network)
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
    order = np.random.default_rng(0).permutation(len(pairs))
    cut = len(order) // 5
    inner = LinkSplit(pairs[order[cut:]], labels[order[cut:]], pairs[order[:cut]], labels[order[:cut]])
    return graph, splits, inner


def auc(model: Any, graph: Any, split: LinkSplit) -> float:
    fitted = model.fit(graph.A, graph.B, split.train, split.train_labels.astype(float))
    return float(
        roc_auc_score(split.test_labels, fitted.decision_function(graph.A, graph.B, split.test))
    )


def choose(make: Any, graph: Any, inner: LinkSplit) -> dict[float, float]:
    """Return the validation AUC of each β tried."""
    tried: dict[float, float] = {}
    behind = 0
    for beta in BETAS:
        tried[beta] = auc(make(beta=beta, random_state=0), graph, inner)
        print(f"    beta {beta:g}: {tried[beta]:.4f}", flush=True)
        best = max(tried.values())
        top = tried[BETAS[0]] == best
        behind = behind + 1 if CLEAR < best and tried[beta] < best and not top else 0
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
    found = [auc(fit, graph, split) for fit, split in zip(fits, splits, strict=True)]
    printed, mean = PRINTED[name][label], float(np.mean(found))
    return (
        name,
        label,
        printed,
        mean,
        float(np.std(found)),
        mean - printed,
        beta,
        tried[beta],
        len(tried),
        float(np.mean([fit.epochs for fit in fits])),
        sum(fit.converged for fit in fits),
        time.process_time() - started,
    )


def missing(name: str) -> list[str]:
    there = finished(f"hofm_table_3_{name}", "model")
    return [label for label in models(name) if (label,) not in there]


def main(names: list[str]) -> None:
    data = [name for name in names if name in PRINTED] or list(PRINTED)
    labels = [name for name in names if name not in PRINTED]
    if unknown := [label for label in labels if label not in PRINTED["nips"]]:
        raise SystemExit(f"no row {unknown[0]!r}: there are {', '.join(PRINTED['nips'])}")
    for name in data:
        for label in missing(name):
            if labels and label not in labels:
                continue
            print(name, label, flush=True)
            append_csv(f"hofm_table_3_{name}", COLUMNS, [found := row(name, label)])
            print(found, flush=True)
    for name in data:
        print(f"{name} lacks: {', '.join(missing(name)) or 'nothing'}")


if __name__ == "__main__":
    main(arguments())
