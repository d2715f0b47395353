"""What a path, its refits and stability selection choose: in worlds of noise, planted ones, MovieLens.

`interaction_selection.csv`: 12 features, numbers or yes and no, a linear effect of each, and either no
interaction at all or the three of three features. What is chosen by the least EBIC of the path, by the
least held-out loss after the refit and before it (rows as many again), and by stability selection at a
bound of one. `false`: chosen interactions that are none, a mean over worlds; `any_false`: worlds with one;
`found`: share of the true ones; `exact`: worlds where just the true ones are chosen.

`interaction_path_movielens.csv` and `…_splits.csv`: Table 3a's rows and features of MovieLens 100K
(`sparse_fm_table_3`), TI, α and β as there. One fit with 1,000 interactions by bisection (`sparsify`), and
points of one path: that with about as many, the best by EBIC and by validation rows before and after the
refit. Test RMSE of the penalised model and of the refitted one; the linear model and the FM beside.

    python -m benchmarks.lab.interaction_path [worlds] [movielens] [--worlds N] [--splits N]
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.lab.common import each, finished, write_csv
from benchmarks.lab.sparse_fm_table_3 import divided, figure, linear
from recsys import FitError
from recsys.fm import (
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    regularization_path,
    stability_selection,
)
from recsys.fm.path import PathRows, quiet
from recsys.fm.refit import fit_products

FEATURES, ROWS, PAIRS = 12, 300, 6
TRUE = ((0, 1), (0, 2), (1, 2))
CHOICES = ("ebic", "refit", "held_out", "stability")


# ---- worlds


def world(kind: str, planted: bool, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return rows and targets to fit, and as many to choose by."""
    rng = np.random.default_rng((seed, planted, kind == "classes"))
    n = 2 * ROWS
    X = rng.normal(size=(n, FEATURES))
    if kind == "classes":
        X = (X > 0.5).astype(float)
    score = X @ rng.normal(scale=0.5, size=FEATURES)
    if planted:
        size = 2.5 if kind == "classes" else 0.7
        score = score + size * sum(X[:, a] * X[:, b] for a, b in TRUE)
    if kind == "classes":
        y = (score - np.median(score) + rng.logistic(size=n) > 0).astype(int)
    else:
        y = score + rng.normal(size=n)
    return X[:ROWS], y[:ROWS], X[ROWS:], y[ROWS:]


def chosen(kind: str, planted: bool, seed: int) -> list[tuple[Any, ...]]:
    """Return for each way of choosing how many false and true interactions it takes of one world."""
    X, y, X_held, y_held = world(kind, planted, seed)
    make = FactorizationMachineClassifier if kind == "classes" else FactorizationMachineRegressor
    model = make(penalty="ti", beta=1e-5, n_components=8, max_iter=50, num_threads=1, solver="cd")
    path = regularization_path(
        model, X, y, held_out=(X_held, y_held), n_gammas=12, ratio=0.02, restarts=0
    )
    stable = stability_selection(model, X, y, n_pairs=PAIRS, seed=seed)
    rows = []
    for by in CHOICES:
        support = stable.selected if by == "stability" else path.points[path.best(by)].support
        hits = len(set(support) & set(TRUE)) if planted else 0
        rows.append((kind, planted, by, seed, len(support) - hits, hits, stable.bound))
    return rows


def worlds(number: int) -> None:
    jobs = [(kind, planted, seed) for kind in ("numbers", "classes") for planted in (False, True)
            for seed in range(number if not planted else number // 2)]  # fmt: skip
    made = [row for rows in each(chosen, jobs) for row in rows]
    out = []
    for kind in ("numbers", "classes"):
        for planted in (False, True):
            for by in CHOICES:
                mine = [r for r in made if r[:3] == (kind, planted, by)]
                wrong = np.array([r[4] for r in mine])
                hits = np.array([r[5] for r in mine])
                out.append((
                    kind, "three pairs" if planted else "none", by, len(mine), float(wrong.mean()),
                    float((wrong > 0).mean()), float(hits.mean() / 3) if planted else "",
                    float(((wrong == 0) & (hits == 3)).mean()) if planted else float((wrong == 0).mean()),
                    mine[0][6] if by == "stability" else "",
                ))  # fmt: skip
    write_csv(
        "interaction_selection",
        (
            "features",
            "interactions",
            "chosen_by",
            "worlds",
            "false",
            "any_false",
            "found",
            "exact",
            "bound",
        ),
        out,
    )


# ---- MovieLens

SPLITS = ("split", "method", "interactions", "gamma", "rmse", "rmse_refitted")


def tuned(split: int) -> tuple[float, float]:
    """Return α and half of β as Table 3's FM chose them on validation rows."""
    rows = finished("sparse_fm_table_3_movielens_splits")
    alpha, beta = next(r[-2:] for r in rows if r[1] == "FM" and int(r[2]) == split)
    return float(alpha), 0.5 * float(beta)


def movielens(splits: int) -> None:
    rows: list[Any] = [tuple(row) for row in finished("interaction_path_movielens_splits")]
    known = {int(row[0]) for row in rows}

    def done(found: list[Any]) -> None:
        rows.extend(found)
        write_csv("interaction_path_movielens_splits", SPLITS, rows)

    each(one_split, [(split,) for split in range(splits) if split not in known], done=done)
    summary([tuple(row) for row in finished("interaction_path_movielens_splits")])


def one_split(split: int) -> list[tuple[Any, ...]]:
    parts = divided(split, "relational")
    (X, y), valid, test = parts
    alpha, beta = tuned(split)
    out: list[tuple[Any, ...]] = []

    def note(method: str, count: int, gamma: float, *figures: Any) -> None:
        out.append((split, method, count, gamma, *figures))
        print(out[-1], flush=True)

    note("linear", 0, 0.0, *(2 * [linear(parts)[0]]))
    made: dict[str, Any] = dict(
        n_components=30, init_scale=0.1, tol=1e-4, random_state=split, num_threads=1, max_iter=40,
        alpha=alpha, solver="relational",
    )  # fmt: skip
    with quiet():
        wide = FactorizationMachineRegressor(beta=2 * beta, **made).fit(X, y)
    note("FM", wide.n_used_interactions_, 0.0, figure("movielens", wide, test), "")
    sparse = FactorizationMachineRegressor(penalty="ti", beta=beta, gamma=1.6e-4, **made)
    rows = PathRows(sparse, X, y)
    path = regularization_path(
        sparse, X, y, held_out=valid, gammas=np.geomspace(1e-3, 1.2e-4, 8), most=2500, max_refit=4000,
        restarts=0,
    )  # fmt: skip
    print(path, flush=True)

    def at(method: str, place: int) -> None:
        point = path.points[place]
        after = (
            "" if point.refitted is None else rmse(path.predict(place, test[0], refitted=True), test[1])
        )
        note(method, point.n_interactions, point.gamma, rmse(path.predict(place, test[0]), test[1]), after)  # fmt: skip

    for by in ("ebic", "refit", "held_out"):
        at(f"path, {by}", path.best(by))
    counts = [point.n_interactions for point in path.points]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            single = sparse.sparsify(X, y, 1000, 950, 1050)
    except FitError as error:
        print(error)
        return out
    support = sorted(rows.weights_of(single.P_))
    again = fit_products(rows.X, rows.y, support, rows.loss, alpha)
    note("sparsify", len(support), single.gamma, figure("movielens", single, test), rmse(again.predict(sp.csr_matrix(test[0])), test[1]))  # fmt: skip
    at("path, as many", int(np.argmin(np.abs(np.array(counts) - len(support)))))
    return out


def rmse(scores: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((np.clip(scores, 1, 5) - y) ** 2)))


def summary(rows: list[Any]) -> None:
    """Write means over splits, and differences to the linear model's on the same test rows."""
    plain = {int(r[0]): float(r[4]) for r in rows if r[1] == "linear"}
    single = {int(r[0]): [float(c) for c in r[4:]] for r in rows if r[1] == "sparsify"}
    out = []
    for method in dict.fromkeys(r[1] for r in rows):
        mine = [r for r in rows if r[1] == method]
        before = np.array([float(r[4]) for r in mine])
        line: list[Any] = [
            method,
            len(mine),
            float(np.mean([float(r[2]) for r in mine])),
            float(before.mean()),
        ]
        known = all(r[5] != "" for r in mine)
        after = np.array([float(r[5]) for r in mine]) if known else None
        line.append("" if after is None else float(after.mean()))
        base = np.array([plain[int(r[0])] for r in mine])
        for scores in (before, after):
            line += (
                ["", ""] if scores is None else [float((base - scores).mean()), error_of(base - scores)]
            )
        other = np.array([single[int(r[0])][1] for r in mine if int(r[0]) in single])
        ok = after is not None and len(other) == len(mine)
        line += [float((other - after).mean()), error_of(other - after)] if ok else ["", ""]
        out.append(tuple(line))
    write_csv(
        "interaction_path_movielens",
        ("method", "splits", "interactions", "rmse", "rmse_refitted", "below_linear", "its_error",
         "refitted_below_linear", "its_error_2", "refitted_below_sparsify", "its_error_3"),
        out,
    )  # fmt: skip


def error_of(values: np.ndarray) -> Any:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else ""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("what", nargs="*", default=["worlds", "movielens"])
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument("--splits", type=int, default=3)
    given = parser.parse_args()
    if "worlds" in given.what:
        worlds(given.worlds)
    if "movielens" in given.what:
        movielens(given.splits)
