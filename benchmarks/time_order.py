"""What comes next: models in time against those that know no order, and accuracy against the age of a like.

Nothing is chosen here: `auto` chooses on hidden later parts of the training profiles, parameters of the
others were chosen so before (`benchmarks/results/time_kernels.csv`, CHANGELOG). ml-latest-small was not
looked at before. Goes on where it was stopped: delete the CSVs to start again.

python -m benchmarks.time_order [setting …]
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from benchmarks.lab.common import RESULTS, finished, write_csv
from recsys import evaluate
from recsys.data import Interactions, split
from recsys.data.side_information import SideInformation
from recsys.datasets import load_dataset
from recsys.evaluation import metrics as M
from recsys.rankers import make_ranker
from recsys.utils.spec import parse_spec

METRICS = ("auc", "ndcg@10", "map@10", "hit@10", "mrr@10")
NEXT = "cf-komd:kernel=md;degree=2;regularization=0.3;recency=2;windows=5-10-30-100"
LATER = ("auto", "popularity", "ease:regularization=3000", "ease:regularization=3000,recency=1", "slist")
LAST = (
    "popularity", "ease:regularization=500", "ease:regularization=500,recency=1", "slist",
    f"blend:models=slist+{NEXT},weights=1+2", "auto:hide=last",
)  # fmt: skip
SETTINGS: dict[str, tuple[str, str, int, tuple[str, ...]]] = {
    "movielens, later halves": ("movielens", "half-profile-time", 5, LATER),
    "movielens-1m, later halves": ("movielens-1m", "half-profile-time", 5, LATER),
    "ml-latest-small, later halves": ("ml-latest-small", "half-profile-time", 2, LATER),
    "movielens, last": ("movielens", "leave-one-out", 1, LAST),
    "movielens-1m, last": ("movielens-1m", "leave-one-out", 1, LAST),
}
COLUMNS = ("setting", "protocol", "folds", "users", "model", *METRICS, "fit seconds", "score seconds")
AGES = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256)
AGE_COLUMNS = ("model", "newer likes", "users", "hit@10", "ndcg@10")


def data_of(name: str) -> Interactions:
    """Return a dataset; of ml-latest-small the items of five ratings or more."""
    if name != "ml-latest-small":
        return load_dataset(name)
    table = pd.read_csv(Path(os.environ["RECSYS_DATA"]) / name / "ratings.csv")
    table = table[table.groupby("movieId")["movieId"].transform("size") >= 5]
    return Interactions.from_ids(
        table["userId"], table["movieId"], table["rating"], table["timestamp"], name
    )


def measure(setting: str) -> None:
    """Evaluate the models of a setting that have no row yet."""
    name, protocol, folds, specs = SETTINGS[setting]
    data = data_of(name)
    for spec in specs:
        if (setting, spec) in {(row[0], row[4]) for row in finished("time_order")}:
            continue
        report = evaluate(data, spec, protocol=protocol, folds=folds, metrics=METRICS)
        (result,) = report.results
        means = [round(result.metrics[metric].mean, 5) for metric in METRICS]
        users = result.metrics["auc"].users
        seconds = [round(result.fit_seconds / folds, 2), round(result.score_seconds / folds, 2)]
        rows = finished("time_order")  # again: another setting may have been measured beside
        rows.append((setting, protocol, folds, users, spec, *means, *seconds))
        write_csv("time_order", COLUMNS, rows)
        print(rows[-1], flush=True)


def ages() -> None:
    """Predict each user's last item from a single like, by how many newer ones there are."""
    if (RESULTS / "time_order_ages.csv").exists():
        return
    data = data_of("movielens-1m")
    (fold,) = split(data, "leave-one-out")
    side, rows = SideInformation(data, "leave-one-out"), []
    for spec in ("slist", "ease:regularization=500", "msdw"):
        kind, params = parse_spec(spec)
        model = make_ranker(kind, **params)
        model.fit(fold.train, show_progress=False, **side.of(model, fold.train))
        times = SideInformation(data).times
        for age in AGES:
            able = fold.users[np.diff(fold.train.indptr)[fold.users] > age]
            single = sp.lil_matrix((len(able), data.n_items), dtype=np.float32)
            for k, user in enumerate(able):
                mine = fold.train[user].indices
                order = np.argsort(-times[user, mine].toarray().ravel(), kind="stable")
                single[k, mine[order[age]]] = 1.0
            scores = model.scores(able, single.tocsr(), recalculate_user=True)
            parsed = [M.parse_metric(text) for text in ("hit@10", "ndcg@10")]
            found = M.ranking_values(parsed, scores, fold.train[able], fold.test[able])
            hit, top = np.nanmean(found, axis=0)
            rows.append((spec, age, len(able), round(float(hit), 5), round(float(top), 5)))
            print(rows[-1], flush=True)
    write_csv("time_order_ages", AGE_COLUMNS, rows)


def plot() -> None:
    """Draw accuracy against the age of the like that predicts."""
    import matplotlib.pyplot as plt

    table = pd.read_csv(RESULTS / "time_order_ages.csv")
    figure, axes = plt.subplots(figsize=(6.4, 4.0))
    for model, part in table.groupby("model", sort=False):
        axes.plot(part["newer likes"] + 1, part["hit@10"], marker="o", label=model)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("the one like that predicts: 1 is the last before the hidden item")
    axes.set_ylabel("hit@10 over the whole catalogue")
    axes.set_title("MovieLens 1M, each user's last item: what a like says as it ages")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(RESULTS / "time_order_ages.png", dpi=120)


def main(asked: list[str]) -> None:
    """Run the settings named, or all and the picture."""
    started: Any = time.perf_counter()
    for setting in asked or SETTINGS:
        measure(setting)
    if not asked:
        ages()
        plot()
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
