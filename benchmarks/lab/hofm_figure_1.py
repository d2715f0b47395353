"""Figure 1 of the HOFM paper: AdaGrad, L-BFGS and coordinate descent on NIPS, rank 30, m = 2, 3, 4.

Rows are the concatenated features of half of the links and as many pairs without one; the objective is
that of one order without the lower ones (13). Words are counts scaled to unit length, for which β = 0.1 of
the paper leaves nothing of P: β is 1e-4, the best in Table 3 there. Fits end after EPOCHS epochs (L-BFGS:
iterations, of about the same cost), not after seconds, so that the objectives can be made again; the column
of seconds is of the machine that wrote it.

Left out: (d), scalability in m; the paper's β and its dummy columns; several rates for AdaGrad.
"""

from __future__ import annotations

import os
from typing import Any

import scipy.sparse as sp
from sklearn.preprocessing import normalize

from benchmarks.lab.common import RESULTS, write_csv
from recsys.datasets.graphs import load_graph
from recsys.fm import FactorizationMachineRegressor
from recsys.links import split_pairs

EPOCHS = {"cd": 20, "lbfgs": 60, "adagrad": 20}


def main() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    graph = load_graph("nips", os.environ["RECSYS_DATA"])
    A = sp.csr_matrix(normalize(graph.A))
    split = split_pairs(graph.links, A.shape[0])
    X = sp.hstack([A[split.train[:, 0]], A[split.train[:, 1]]], format="csr")
    y = split.train_labels.astype(float)
    rows: list[Any] = []
    figure, axes = plt.subplots(1, 3, figsize=(13, 4))
    for axis, degree in zip(axes, (2, 3, 4), strict=True):
        common = {"n_components": 30, "beta": 1e-4, "init_scale": 0.1, "tol": 0.0, "num_threads": 1}
        for solver in ("cd", "lbfgs", "adagrad"):
            shape = {"degree": degree, "fit_lower": None, "fit_linear": False, "solver": solver}
            shape |= {"learning_rate": 0.1, "batch_size": 32}
            FactorizationMachineRegressor(max_iter=1, **shape, **common).fit(X[:20], y[:20])
            model = FactorizationMachineRegressor(max_iter=EPOCHS[solver], **shape, **common).fit(X, y)
            points = [(e, h["seconds"], h["objective"]) for e, h in enumerate(model.history_)]
            axis.plot([p[1] for p in points], [p[2] for p in points], label=solver)
            rows += [(degree, solver, *point) for point in points]
            print(degree, solver, points[-1], len(points), flush=True)
        axis.set(title=f"m = {degree}", xlabel="seconds", ylabel="objective")
        axis.legend()
    figure.tight_layout()
    figure.savefig(RESULTS / "hofm_figure_1.png", dpi=120)
    write_csv("hofm_figure_1", ("degree", "solver", "epoch", "seconds", "objective"), rows)


if __name__ == "__main__":
    main()
