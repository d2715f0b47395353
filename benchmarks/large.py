"""Structured Gram matrices over the size of the catalogue: time and peak memory.

Each size runs in a process of its own, so that its peak is its own; a first tiny fit compiles.
`python -m benchmarks.large [sizes] [builds] [accuracy]` writes large.csv, large.png, gram_build.csv and
large_accuracy.csv, all three by default.

`accuracy` has the shape of the thesis' Table 10.2 (half of a test user's history predicts the rest) and is
*not* that table: its data, the Million Song Dataset, are not at hand. Users with planted tastes over a
long-tailed catalogue stand for it, so that there is something to learn beside popularity.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import numpy as np
import scipy.sparse as sp

from benchmarks.lab.common import figure, write_csv, write_png
from benchmarks.lab.long_tail import long_tail
from recsys import InputError, make_ranker
from recsys.evaluation import metrics as M
from recsys.kernels import item_gram, make_kernel
from recsys.kernels.item_gram import number_of_pairs, sparse_counts
from tests.synthetic import planted_catalogue

SIZES = (  # users, items, interactions
    (4_000, 10_000, 60_000),
    (8_000, 20_000, 120_000),
    (20_000, 50_000, 300_000),
    (40_000, 100_000, 600_000),
    (40_000, 140_000, 700_000),
    (80_000, 200_000, 1_200_000),
    (1_000_000, 200_000, 10_000_000),
)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one(users: int, items: int, interactions: int) -> dict:
    """Fit md-2, recommend the top 10 for all users (100,000 at most), spot-check, and say what it took."""
    small = long_tail(3000, 400, 30_000, seed=1)  # counts of the type that the large ones have
    import recsys.rankers.margin as omd

    chosen, omd.DENSE_ITEMS = omd.DENSE_ITEMS, 0
    warm = make_ranker("cf-komd", kernel="md", degree=2).fit(small)
    warm.recommend(np.arange(3000), small, N=10)
    warm.recommend(0, small[0], N=10)
    omd.DENSE_ITEMS = chosen
    R = long_tail(users, items, interactions, seed=2)
    before = peak_mb()
    out = {"users": users, "items": items, "interactions": interactions, "start_mb": before}
    started = time.perf_counter()
    try:
        model = make_ranker("cf-komd", kernel="md", degree=2).fit(R)
    except InputError as error:
        return out | {"refused": str(error), "pairs": number_of_pairs(R)}
    out["fit_seconds"] = time.perf_counter() - started
    out["form"] = type(model._gram).__name__
    out["pairs"] = getattr(getattr(model, "gram_", R), "nnz", items * items)
    asked = np.arange(min(users, 100_000))
    started = time.perf_counter()
    _, residuals = model.weights(R[asked])
    out["programs_seconds"] = time.perf_counter() - started
    out["largest_residual"] = float(residuals.max())
    started = time.perf_counter()
    for begin in range(0, len(asked), 20_000):
        part = asked[begin : begin + 20_000]
        model.recommend(part, R[part], N=10)
    out["recommend_seconds"] = time.perf_counter() - started
    out["asked"] = len(asked)
    single = []
    for user in range(300):
        started = time.perf_counter()
        model.recommend(user, R[user], N=10)
        single.append(time.perf_counter() - started)
    out["one_call_ms"] = 1e3 * float(np.median(single))
    out["peak_mb"] = peak_mb()
    rng = np.random.default_rng(0)
    ids = np.unique(rng.integers(0, items, 30))
    direct = make_kernel("md", degree=2)(R[:, ids].T.tocsr(), normalize=True)
    seen = np.flatnonzero(np.asarray(R[:, ids].sum(axis=0)).ravel() > 0)
    if model.offsets_ is None:
        rows = model._gram.block(ids)
        out["largest_error"] = float(np.abs(rows - direct)[np.ix_(seen, seen)].max())
    return out


def sizes() -> None:
    rows = []
    for size in SIZES:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.large", "one", *map(str, size)],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(done.stderr[-2000:])
        rows.append(json.loads(done.stdout.strip().split("\n")[-1]))
        print(rows[-1], flush=True)
    columns = (
        "users",
        "items",
        "interactions",
        "form",
        "pairs",
        "fit_seconds",
        "programs_seconds",
        "recommend_seconds",
        "asked",
        "one_call_ms",
        "start_mb",
        "peak_mb",
        "largest_residual",
        "largest_error",
        "refused",
    )
    write_csv("large", columns, [[row.get(c, "") for c in columns] for row in rows])
    fitted = [row for row in rows if row.get("form") == "structured" and row["asked"] == row["users"]]
    used = np.log([row["peak_mb"] - row["start_mb"] for row in fitted])
    slopes = {
        x: float(np.polyfit(np.log([row[x] for row in fitted]), used, 1)[0]) for x in ("pairs", "items")
    }
    print("exponents of the added peak memory", slopes)
    write_csv("large_exponents", ("over", "exponent"), list(slopes.items()))
    fig, axes = figure(2)
    for axis, fields, label in (
        (axes[0], ("fit_seconds", "programs_seconds", "recommend_seconds"), "seconds"),
        (axes[1], ("peak_mb",), "MB"),
    ):
        for field in fields:
            axis.loglog(
                [r["items"] for r in fitted], [r[field] for r in fitted], marker="o", label=field
            )
        axis.set_xlabel("items")
        axis.set_ylabel(label)
        axis.legend(fontsize=7)
    write_png("large", fig)


def builds() -> None:
    """Time three ways to R.T @ R on one density after another."""
    rows = []
    for users, items, interactions in (
        (2000, 2000, 20_000),
        (2000, 2000, 200_000),
        (2000, 2000, 1_000_000),
        (20_000, 20_000, 200_000),
        (20_000, 20_000, 1_000_000),
    ):
        R = long_tail(users, items, interactions, seed=3)
        X = R.toarray()
        ways = {
            "scipy": lambda R=R: R.T.tocsr() @ R,
            "dense BLAS, float32": lambda X=X: X.T @ X,
            "ours, sparse": lambda R=R: sparse_counts(R),
            "ours, dense": lambda R=R: item_gram(R, make_kernel("linear"), normalize=False),
        }
        for name, way in ways.items():
            if "dense" in name and items > 5000 and name.startswith("dense"):
                continue
            way()
            times = []
            for _ in range(3):
                started = time.perf_counter()
                way()
                times.append(time.perf_counter() - started)
            rows.append((users, items, interactions, name, min(times)))
            print(rows[-1], flush=True)
    write_csv("gram_build", ("users", "items", "interactions", "way", "seconds"), rows)


def taste(users: int, items: int, tested: int, seed: int = 4) -> tuple[sp.csr_matrix, ...]:
    """Return train and test rows of planted users: of `tested` of them the older half trains."""
    data = planted_catalogue(users, items, mean_length=40.0, seed=seed).interactions
    chosen = np.random.default_rng(seed).permutation(users)[:tested]
    order = np.lexsort((data.items, data.time, data.users))
    starts = np.concatenate(([0], np.cumsum(np.bincount(data.users, minlength=users))))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order)) - starts[data.users[order]]
    held = np.isin(data.users, chosen) & (place >= (np.diff(starts)[data.users] + 1) // 2)
    return data.submatrix(np.flatnonzero(~held)), data.submatrix(np.flatnonzero(held)), chosen


def accuracy(users: int = 20_000, items: int = 8_000, tested: int = 2_000) -> None:
    """Measure AUC and mAP@500 of the thesis' three methods, and of popularity."""
    train, test, chosen = taste(users, items, tested)
    rows = []
    for label, model in (
        ("MSDw (alpha .15, locality 3: the challenge's)", make_ranker("msdw", alpha=0.15, locality=3.0)),
        ("ECF-OMD", make_ranker("ecf-omd", regularization=0.01)),
        ("CF-KOMD, HP-2", make_ranker("cf-komd", kernel="hp", degree=2, regularization=0.01)),
        ("popularity", make_ranker("popularity")),
    ):
        model.fit(train)
        auc, ap = [], []
        for begin in range(0, len(chosen), 500):
            part = chosen[begin : begin + 500]
            scores = model.scores(part, train[part])
            auc.append(M.auc(scores, train[part], test[part]))
            ap.append(M.average_precision(scores, train[part], test[part], k=500, normalizer="min"))
        figures = [float(np.nanmean(np.concatenate(values))) for values in (auc, ap)]
        rows.append((label, users, items, train.nnz + test.nnz, len(chosen), *figures))
        print(rows[-1], flush=True)
    columns = ("model", "users", "items", "interactions", "tested", "auc", "map@500")
    write_csv("large_accuracy", columns, rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        print(json.dumps(one(*map(int, sys.argv[2:5]))))
    else:
        for what in sys.argv[1:] or [
            "sizes",
            "builds",
            "accuracy",
        ]:  # sizes first: a child's peak starts
            {"sizes": sizes, "builds": builds, "accuracy": accuracy}[what]()  # at what its parent holds
