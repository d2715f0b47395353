"""Figure 5 (a) of the HOFM paper: models of MovieLens 1M's ratings from one-hot users and items.

FM, the FM with a column of ones in the place of its linear term, the all-subsets model and the lifted
polynomial network of degree 2; squared loss, coordinate descent, rank 30, a bias in each. The paper takes its
setting from another one (its reference 4), which is not at hand. Ours: 60% of the ratings train, 15% say which
β is best and 25% are tested; β, of the linear term too, is one of BETAS; a fit ends when an epoch lowers the
objective by less than TOLERANCE of it, or after EPOCHS. Seconds are of the processor.

Each fit is kept as soon as it is there: a run that was stopped goes on.

    python -m benchmarks.lab.hofm_figure_5
    LAB_SECONDS=900 python -m benchmarks.lab.hofm_figure_5     # begin no fit after a quarter of an hour
    python -m benchmarks.lab.hofm_figure_5 subsets             # all subsets by epochs, components weighed or not

Not here: (b), Last.fm, whose data are not at hand.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from benchmarks.lab.common import RESULTS, append_csv, figure, read_csv, write_csv, write_png
from recsys.datasets import load_dataset
from recsys.fm import AllSubsetsRegressor, FactorizationMachineRegressor, PolynomialNetworkRegressor

BETAS = (1e-4, 3e-5, 1e-5, 3e-6, 1e-6)
EPOCHS, TOLERANCE = 30, 1e-3
FITS = "hofm_figure_5_fits"
FOLLOWED, STEPS = "hofm_figure_5_subsets", (10, 20, 30, 50, 75, 100)
COLUMNS = ("model", "beta", "validation RMSE", "test RMSE", "epochs", "seconds")


def parts(name: str = "movielens-1m") -> list[tuple[sp.csr_matrix, np.ndarray]]:
    """Return rows and ratings to train on, to choose by and to test."""
    data = load_dataset(name)
    users, items = np.asarray(data.users), np.asarray(data.items)
    blocks = [
        sp.identity(data.n_users, format="csr")[users], sp.identity(data.n_items, format="csr")[items],
    ]  # fmt: skip
    X, y = sp.hstack(blocks, format="csr"), np.asarray(data.rating, dtype=float)
    order = np.random.default_rng(0).permutation(len(y))
    cuts = [round(0.6 * len(y)), round(0.75 * len(y))]
    return [(X[part], y[part]) for part in np.split(order, cuts)]


def models(beta: float) -> dict[str, Any]:
    """Return the unfitted models by the paper's names."""
    given: dict[str, Any] = {
        "n_components": 30, "alpha": beta, "beta": beta, "init_scale": 0.1, "max_iter": EPOCHS,
        "tol": TOLERANCE, "num_threads": 1,
    }  # fmt: skip
    alone = {**given, "fit_linear": False}
    return {
        "FM": FactorizationMachineRegressor(**given),
        "FM-augmented": FactorizationMachineRegressor(fit_lower="augment", **alone),
        "all-subsets": AllSubsetsRegressor(**alone),
        "polynomial network": PolynomialNetworkRegressor(fit_lower="augment", **alone),
    }


def rmse(model: Any, part: tuple[sp.csr_matrix, np.ndarray]) -> float:
    return float(np.sqrt(np.mean((model.predict(part[0]) - part[1]) ** 2)))


def summary(rows: list[dict[str, str]]) -> list[tuple[Any, ...]]:
    """Return of each model the fit of the best β by the rows that choose, and how many were tried."""
    out = []
    for name in dict.fromkeys(row["model"] for row in rows):
        own = [row for row in rows if row["model"] == name]
        best = min(own, key=lambda row: float(row["validation RMSE"]))
        out.append((*(best[column] for column in COLUMNS), len(own)))
    return out


def main() -> None:
    until = time.perf_counter() + float(os.environ.get("LAB_SECONDS", "inf"))
    train, valid, test = parts()
    there = read_csv(FITS) if (RESULTS / f"{FITS}.csv").exists() else []
    done = {(row["model"], row["beta"]) for row in there}
    for beta in BETAS:
        for name, model in models(beta).items():
            if (name, f"{beta:g}") in done or time.perf_counter() > until:
                continue
            started = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(*train)
            seconds = time.process_time() - started
            row = (name, f"{beta:g}", rmse(model, valid), rmse(model, test), model.n_iter_, seconds)
            append_csv(FITS, COLUMNS, [row])
            print(*row, flush=True)
    rows = read_csv(FITS)
    write_csv("hofm_figure_5", (*COLUMNS, "values of beta"), summary(rows))
    drawn, (axis,) = figure(1)
    for name in dict.fromkeys(row["model"] for row in rows):
        own = sorted((float(r["beta"]), float(r["test RMSE"])) for r in rows if r["model"] == name)
        axis.plot(*zip(*own, strict=True), marker="o", label=name)
    axis.set(xscale="log", xlabel="β", ylabel="RMSE of test ratings", title="MovieLens 1M")
    axis.legend(fontsize=7)
    write_png("hofm_figure_5", drawn)


def subsets() -> None:
    """Follow the all-subsets model, which ends last, past EPOCHS, and with weights of its components."""
    train, valid, test = parts()
    columns = ("beta", "weights", "epochs", "objective", "validation RMSE", "test RMSE")
    there = read_csv(FOLLOWED) if (RESULTS / f"{FOLLOWED}.csv").exists() else []
    done = {(row["beta"], row["weights"]) for row in there}
    for beta in (1e-4, 3e-5, 1e-5):
        for weights in ("1", "learned"):
            if (f"{beta:g}", weights) in done:
                continue
            model = models(beta)["all-subsets"]
            rows: list[tuple[Any, ...]] = []

            def follow(
                epoch: int, objective: float, model: Any = model, rows: list[tuple[Any, ...]] = rows,
                at: tuple[str, str] = (f"{beta:g}", weights),
            ) -> None:  # fmt: skip
                if epoch in STEPS:
                    rows.append((*at, epoch, objective, rmse(model, valid), rmse(model, test)))
                    print(*rows[-1], flush=True)

            model.set_params(
                max_iter=max(STEPS), tol=0.0, callback=follow, fit_component_weights=weights == "learned"
            )
            model.fit(*train)
            append_csv(FOLLOWED, columns, rows)


if __name__ == "__main__":
    subsets() if sys.argv[1:] == ["subsets"] else main()
