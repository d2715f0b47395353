"""Table 3 of the HOFM paper: link AUC on NIPS and MovieLens 100K, mean of three splits.

NIPS: 2,037 authors, 3,134 pairs i < j of authors with a common paper, words as counts scaled to unit
length. MovieLens 100K: 943 users of 49 features, 1,682 movies of 27, linked by a rating of 5. Half of the
links train, with as many pairs without a link; the rest of all pairs is tested (two million on NIPS).
Squared loss, rank 30, first P from N(0, 0.01); β from a grid on a fifth of the first split's training
pairs.

Left out: Enzyme and GD (not at hand); on NIPS simplex, networks, all-subsets and m = 4, 5 of every family,
and "augmented 3", which the script makes but whose run was not finished. NIPS has 12 epochs only. The rows
"network" are another model than the paper's: the lifted Π_t ⟨u_ts, x⟩ with tables of their own, where the
paper has (γ_s + ⟨p_s, x⟩)^m. MovieLens has 27 features of movies for the paper's 29. Ours lie above the
printed figures, by up to .27 (networks); why, was not found out.
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import normalize

from benchmarks.lab.common import write_csv
from recsys.datasets.graphs import load_graph
from recsys.fm import AllSubsetsRegressor, FactorizationMachineRegressor, PolynomialNetworkRegressor
from recsys.links import LinkSplit, LowRankBilinear, PairFactorizationMachine, split_pairs

PRINTED = {
    "nips": {
        "HOFM 2": 0.856, "HOFM 3": 0.875, "augmented 2": 0.858, "augmented 3": 0.874, "bilinear": 0.855,
    },
    "movielens": {
        "HOFM 2": 0.778, "HOFM 3": 0.786, "HOFM 4": 0.786, "HOFM 5": 0.786, "augmented 2": 0.778,
        "augmented 3": 0.787, "augmented 4": 0.779, "augmented 5": 0.621, "simplex 2": 0.701,
        "simplex 3": 0.709, "simplex 4": 0.709, "simplex 5": 0.709, "all-subsets": 0.714,
        "network 2": 0.761, "network 3": 0.696, "network 4": 0.708, "network 5": 0.501, "bilinear": 0.718,
    },
}  # fmt: skip
BETAS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)


class Rows:
    """A regressor of rows behind the interface of the link predictors: a row is both ends' features."""

    def __init__(self, make: Any, **params: Any) -> None:
        self.model = make(**params)

    def fit(self, A: Any, B: Any, pairs: np.ndarray, y: np.ndarray) -> Any:
        """Fit."""
        self.model.fit(self._rows(A, B, pairs), y)
        return self

    def decision_function(self, A: Any, B: Any, pairs: np.ndarray) -> np.ndarray:
        """Return scores."""
        parts = np.array_split(pairs, max(1, len(pairs) // 100_000))
        return np.concatenate([self.model.predict(self._rows(A, B, part)) for part in parts])

    @staticmethod
    def _rows(A: Any, B: Any, pairs: np.ndarray) -> Any:
        return sp.hstack([A[pairs[:, 0]], (A if B is None else B)[pairs[:, 1]]], format="csr")


def models(name: str) -> dict[str, Any]:
    epochs = 12 if name == "nips" else 60
    pair = {"loss": "squared", "max_iter": epochs, "tol": 1e-4}
    row = {"n_components": 30, "max_iter": epochs, "tol": 1e-4, "init_scale": 0.1, "fit_linear": False}
    out: dict[str, Any] = {"bilinear": partial(LowRankBilinear, **pair)}
    for m in (2, 3) if name == "nips" else (2, 3, 4, 5):
        out[f"HOFM {m}"] = partial(PairFactorizationMachine, degree=m, **pair)
        out[f"augmented {m}"] = partial(PairFactorizationMachine, degree=m, fit_lower="augment", **pair)
        if name == "movielens":
            simplex = {"degree": m, "fit_lower": "simplex"}
            out[f"simplex {m}"] = partial(Rows, FactorizationMachineRegressor, **row, **simplex)
            out[f"network {m}"] = partial(Rows, PolynomialNetworkRegressor, **row, degree=m)
    if name == "movielens":
        out["all-subsets"] = partial(Rows, AllSubsetsRegressor, **row)
    return out


def auc(model: Any, graph: Any, split: LinkSplit) -> float:
    fitted = model.fit(graph.A, graph.B, split.train, split.train_labels.astype(float))
    return float(
        roc_auc_score(split.test_labels, fitted.decision_function(graph.A, graph.B, split.test))
    )


def main(names: list[str]) -> None:
    for name in names:
        graph = load_graph(name, os.environ["RECSYS_DATA"])
        if name == "nips":
            graph = graph._replace(A=sp.csr_matrix(normalize(graph.A)))
        sizes = (graph.A.shape[0], None if graph.B is None else graph.B.shape[0])
        splits = [split_pairs(graph.links, *sizes, test_ratio=None, seed=10 * s) for s in range(3)]
        pairs, labels = splits[0].train, splits[0].train_labels
        order = np.random.default_rng(0).permutation(len(pairs))
        cut = len(order) // 5
        inner = LinkSplit(
            pairs[order[cut:]], labels[order[cut:]], pairs[order[:cut]], labels[order[:cut]]
        )
        rows = []
        for label, make in models(name).items():
            started = time.perf_counter()
            tried = {beta: auc(make(beta=beta, random_state=0), graph, inner) for beta in BETAS}
            beta = max(tried, key=lambda b: tried[b])
            found = [
                auc(make(beta=beta, random_state=s), graph, split) for s, split in enumerate(splits)
            ]
            printed = PRINTED[name][label]
            rows.append(
                (
                    name, label, printed, float(np.mean(found)), float(np.std(found)),
                    float(np.mean(found)) - printed, beta, time.perf_counter() - started,
                )
            )  # fmt: skip
            print(rows[-1], flush=True)
            write_csv(
                f"hofm_table_3_{name}",
                ("data", "model", "printed", "auc", "std", "difference", "beta", "seconds"), rows,
            )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:] or ["movielens", "nips"])
