"""Why Table 3 of HOFM is higher here than printed: how long a fit goes on, and how it starts.

MovieLens 100K, the first split of `hofm_table_3`, β = 1e-4, order 2: the test AUC after so many epochs of
coordinate descent, from a first P of standard deviation 0.1 (N(0, 0.01) with 0.01 for the variance, as the
table has it) and of 0.01 (with 0.01 for the deviation).
"""

from __future__ import annotations

from functools import partial
from typing import Any

from sklearn.metrics import roc_auc_score

from benchmarks.lab.common import write_csv
from benchmarks.lab.hofm_table_3 import PRINTED, Rows, task
from recsys.fm import AllSubsetsRegressor, FactorizationMachineRegressor, PolynomialNetworkRegressor

EPOCHS = (1, 2, 3, 5, 10, 20, 50, 100)
MODELS = {
    "HOFM 2": partial(FactorizationMachineRegressor, degree=2),
    "simplex 2": partial(FactorizationMachineRegressor, degree=2, fit_lower="simplex", fit_linear=False),
    "network 2": partial(
        PolynomialNetworkRegressor, degree=2, lifted=False, fit_lower="augment", fit_linear=False
    ),
    "all-subsets": partial(AllSubsetsRegressor, fit_linear=False),
}


class Watched(Rows):
    """Rows that are scored while they are fitted."""

    def decision_function(self, A: Any, B: Any, pairs: Any) -> Any:
        """Return scores, linear weights included."""
        scores = super().decision_function(A, B, pairs)
        w = self.model.w_
        return (
            scores
            + (A @ w[: A.shape[1]])[pairs[:, 0]]
            + (B @ w[A.shape[1] : A.shape[1] + B.shape[1]])[pairs[:, 1]]
        )


def course(make: Any, scale: float) -> list[tuple[int, float]]:
    """Return the test AUC after each of EPOCHS."""
    graph, splits, _ = task("movielens")
    split, out = splits[0], []

    def note(epoch: int, value: float) -> None:
        if epoch in EPOCHS:
            scores = model.decision_function(graph.A, graph.B, split.test)
            out.append((epoch, float(roc_auc_score(split.test_labels, scores))))

    model = Watched(
        make, n_components=30, beta=1e-4, init_scale=scale, max_iter=max(EPOCHS), tol=0.0, callback=note
    )
    model.fit(graph.A, graph.B, split.train, split.train_labels.astype(float))
    return out


def main() -> None:
    rows: list[Any] = []
    for label, make in MODELS.items():
        for scale in (0.1, 0.01):
            for epoch, found in course(make, scale):
                rows.append((label, PRINTED["movielens"][label], scale, epoch, found))
            print(rows[-1], flush=True)
            write_csv("hofm_gaps", ("model", "printed", "init_scale", "epochs", "auc"), rows)


if __name__ == "__main__":
    main()
