"""Tables 3a and 3b of the sparse FM paper: MovieLens 100K (RMSE) and a9a (AUC), squared loss, rank 30.

    python -m benchmarks.lab.sparse_fm_table_3 [a9a] [movielens] [--method TI] …

MovieLens 100K: users and items one-hot, then the source's 49 + 29 side features; 64,000 / 16,000 / 20,000
ratings train, validate, test, five such divisions with a first P each, and the linear model beside: at
1,000 interactions the sparse models are nearly linear. a9a: 26,048 / 6,513 rows of the training file, and the
test file, three first P's. α and β are the FM's best on validation; the sparse models take the same α and half
its β, and γ from a grid on validation (3b), or by bisection for 1,000 interactions (3a).

RCV1 and FD are not available. The authors' own test rows are not published: their RMSE lie about .01 below those
of any division here, for the full FM as for the sparse ones.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score

from benchmarks.lab.common import Results
from recsys import FitError
from recsys.datasets import load_dataset
from recsys.datasets.public import ML100K_GENRES
from recsys.fm import FactorizationMachineRegressor

PRINTED: dict[str, dict[str, tuple]] = {  # 3a, its interactions, 3b, its interactions
    "movielens": {
        "TI": (0.93018, 991.4, 0.91848, 186_600.4),
        "CS": (0.93127, 1026.0, 0.91610, 7264.0),
        "L1": (None, None, 0.92612, 1_616_087.2),
        "L21": (0.93302, 1030.2, 0.91975, 1_775_679.2),
        "FM": (None, None, 0.91734, 3_483_480.0),
    },
    "a9a": {
        "TI": (0.90301, 1001.6, 0.90288, 1408.2),
        "CS": (0.90259, 1035.0, 0.90250, 903.0),
        "L1": (0.90197, 1026.0, 0.90193, 946.0),
        "L21": (0.90259, 990.0, 0.90269, 1081.0),
        "FM": (None, None, 0.90280, 7503.0),
    },
}
METHODS = ("TI", "CS", "L1", "L21")
SPLITS = 5  # of MovieLens
ALPHAS = (1e-5, 1e-4, 1e-3)
BETAS = {"movielens": (3e-4, 5e-4, 1e-3, 1.5e-3), "a9a": (1e-5, 1e-4, 3e-4, 1e-3)}
GAMMAS = {
    "movielens": 10.0 ** np.arange(-6.0, -2.9, 0.5),  # smaller ones while they are better
    "a9a": 10.0 ** np.arange(-7.0, -2.4, 0.5),
}
LEAST = 1e-9
LINEAR = {
    "movielens": (1e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3),
    "a9a": (1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2),
}
SPLIT_COLUMNS = ("table", "method", "split", "rmse", "interactions", "gamma", "alpha", "beta")
MEANS = "table method printed printed_interactions rmse std interactions below_linear splits".split()
A9A_COLUMNS = (
    "data table method printed ours printed_interactions interactions gamma seeds seconds".split()
)


def movielens() -> tuple[sp.csr_matrix, np.ndarray]:
    """Return rows and ratings; the columns are users, items, then the side features of each.

    The source's 49 + 29 (nimfm, benchmarks/ml100k): ages rounded to decades, gender, occupation, the zip
    code's first character; the year of release rounded to decades (0 where there is none), 19 genres.
    """
    data = load_dataset("movielens")
    people, films = data.user_features, data.item_features
    ages = (people["age"].astype(int) + 5) // 10 * 10
    user_side = [ages, people["gender"], people["occupation"], people["zip"].str[0]]
    # The year is that of the date in u.item, not of the title.
    lines = (Path(os.environ["RECSYS_DATA"]) / "ml-100k" / "u.item").read_text("latin-1").splitlines()
    cells = [line.split("|") for line in lines if line]
    years = {cell[0]: int(cell[2][-4:]) if cell[2] else 0 for cell in cells}
    released = (films.index.to_series().map(years).astype(int) + 5) // 10 * 10
    genres = [
        films["genres"].fillna("").str.split("|").map(lambda own, g=g: g in own) for g in ML100K_GENRES
    ]
    A = np.hstack([pd.get_dummies(column).to_numpy(float) for column in user_side])
    B = np.hstack([pd.get_dummies(released).to_numpy(float), np.array(genres, dtype=float).T])
    u, i = np.asarray(data.users), np.asarray(data.items)
    one_hot = sp.identity(data.n_users, format="csr")[u], sp.identity(data.n_items, format="csr")[i]
    X = sp.hstack([*one_hot, sp.csr_matrix(A)[u], sp.csr_matrix(B)[i]], format="csr")
    return X, np.asarray(data.rating, dtype=float)


def divided(name: str, split: int = 0) -> list[Any]:
    """Return rows and targets that train, validate and test."""
    if name == "movielens":
        X, y = movielens()
        order = np.random.default_rng(split).permutation(len(y))
        return [(X[part], y[part]) for part in np.split(order, [64_000, 80_000])]
    folder = Path(os.environ["RECSYS_DATA"]) / "libsvm"
    X, y = load_svmlight_file(str(folder / "a9a.gz"), n_features=123)
    held, truth = load_svmlight_file(str(folder / "a9a.t.gz"), n_features=123)
    train, valid = np.split(np.random.default_rng(0).permutation(len(y)), [26_048])
    return [(X[train], y[train]), (X[valid], y[valid]), (held, truth)]


def make(method: str, seed: int, **params: Any) -> FactorizationMachineRegressor:
    return FactorizationMachineRegressor(
        n_components=30,
        penalty={"FM": "l2"}.get(method, method.lower()),
        solver="block" if method in ("CS", "L21") else "cd",
        init_scale=0.1,
        max_iter=60,
        random_state=seed,
        **params,
    )


class Study:
    """Both tables on one division of one dataset."""

    def __init__(self, name: str, split: int) -> None:
        self.name, self.split = name, split
        self.seeds = [split] if name == "movielens" else range(3)
        if name == "movielens":
            self.results = Results("sparse_fm_table_3_movielens_splits", SPLIT_COLUMNS, 3)
        else:
            self.results = Results("sparse_fm_table_3_a9a", A9A_COLUMNS, 3)

    def missing(self, table: str, method: str) -> bool:
        key = (table, method, self.split) if self.name == "movielens" else (self.name, table, method)
        return bool(self.results.missing([key]))

    def measure(self, model: Any, part: Any) -> float:
        """Return the RMSE on MovieLens, the AUC on a9a."""
        X, y = part
        if self.name == "a9a":
            return float(roc_auc_score(y, model.predict(X)))
        return float(np.sqrt(np.mean((np.clip(model.predict(X), 1, 5) - y) ** 2)))

    def best(self, models: dict[Any, Any]) -> Any:
        """Return the key of the model that is best on the validation rows."""
        pick = min if self.name == "movielens" else max
        return pick(models, key=lambda key: self.measure(models[key], self.valid))

    def fit(self, method: str, seed: int | None = None, **params: Any) -> Any:
        return make(method, self.seeds[0] if seed is None else seed, **params).fit(*self.train)

    def add(
        self, table: str, method: str, models: list, gamma: float, shared: dict, why: str = ""
    ) -> None:
        """Add a row: the mean over the models of all first P's, or why there are none."""
        value: Any = float(np.mean([self.measure(m, self.test) for m in models])) if models else "N/A"
        sizes = [getattr(model, "n_used_interactions_", 0) for model in models]
        used = float(np.mean(sizes)) if models else why
        if self.name == "movielens":
            self.results.add((table, method, self.split, value, used, gamma, *shared.values()))
        else:
            printed = PRINTED["a9a"].get(method, ("",) * 4)[0 if table == "3a" else 2 :]
            end = (gamma, len(models), time.perf_counter() - self.started)
            self.results.add(("a9a", table, method, printed[0], value, printed[1], used, *end))
        self.started = time.perf_counter()

    def run(self, methods: Sequence[str]) -> None:
        """Add the rows that are missing."""
        tables = [(table, method) for method in methods for table in ("3b", "3a")]
        full = "both" if self.name == "movielens" else "3b"  # where the FM stands
        if not any(self.missing(*key) for key in [("both", "linear"), (full, "FM"), *tables]):
            return
        self.train, self.valid, self.test = divided(self.name, self.split)
        self.started = time.perf_counter()
        if self.missing("both", "linear"):
            n = len(self.train[1])
            models = {
                a: Ridge(a * n, solver="sparse_cg", tol=1e-6).fit(*self.train) for a in LINEAR[self.name]
            }
            alpha = self.best(models)
            self.add("both", "linear", [models[alpha]], 0.0, {"alpha": alpha, "beta": 0.0})
        grid = [{"alpha": a, "beta": b} for a in ALPHAS for b in BETAS[self.name]]
        chosen = grid[self.best({k: self.fit("FM", **shared) for k, shared in enumerate(grid)})]
        if self.missing(full, "FM"):
            self.add(full, "FM", [self.fit("FM", seed, **chosen) for seed in self.seeds], 0.0, chosen)
        for method in methods:
            if self.missing("3a", method) or self.missing("3b", method):
                self.run_method(method, {"alpha": chosen["alpha"], "beta": chosen["beta"] / 2})

    def run_method(self, method: str, shared: dict[str, float]) -> None:
        models = {float(g): self.fit(method, gamma=g, **shared) for g in GAMMAS[self.name]}
        gamma = self.best(models)
        while self.name == "movielens" and gamma == min(models) > LEAST:
            less = gamma / np.sqrt(10.0)
            models[less] = self.fit(method, gamma=less, **shared)
            gamma = self.best(models)
        if self.missing("3b", method):
            fits = [self.fit(method, seed, gamma=gamma, **shared) for seed in self.seeds]
            self.add("3b", method, fits, gamma, shared)
        if self.missing("3a", method):
            start = min(
                models, key=lambda g: abs(np.log1p(models[g].n_used_interactions_) - np.log(1000))
            )
            fits, why = [], ""
            for seed in self.seeds:
                model = make(method, seed, gamma=start, **shared)
                try:
                    fits.append(model.sparsify(*self.train, 1000, 990, 1035))
                except FitError as error:
                    why = str(error)
            end = float(np.mean([model.gamma for model in fits])) if fits else start
            self.add("3a", method, fits, end, shared, why)


def summarize() -> None:
    """Write the means over MovieLens' divisions beside the printed ones, and beside the linear model's."""
    frame = Results("sparse_fm_table_3_movielens_splits", ()).frame()
    frame = frame[frame["rmse"] != "N/A"].astype({"rmse": float, "interactions": float})
    plain = frame[frame["method"] == "linear"].set_index("split")["rmse"]
    frame["gain"] = frame["split"].map(plain) - frame["rmse"]
    rows = []
    for (table, method), own in frame.groupby(["table", "method"], sort=False):
        printed = PRINTED["movielens"].get(method, (None,) * 4)[0 if table == "3a" else 2 :]
        std = 0.0 if len(own) == 1 else own["rmse"].std()
        ours = (own["rmse"].mean(), std, own["interactions"].mean(), own["gain"].mean(), len(own))
        rows.append((table, method, *printed[:2], *ours))
    order = ("both", "3a", "3b", "linear", "FM", *METHODS)
    rows.sort(key=lambda row: (order.index(row[0]), order.index(row[1])))
    Results("sparse_fm_table_3_movielens", MEANS).replace(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("data", nargs="*", default=["a9a", "movielens"])
    parser.add_argument("--method", action="append", choices=METHODS)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # the last epoch ends a fit
    for name in options.data:
        for split in range(SPLITS if name == "movielens" else 1):
            Study(name, split).run(options.method or METHODS)
    summarize()
