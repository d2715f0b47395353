"""Our rankers beside implicit, LensKit, RecTools and Surprise, everything with its defaults: the README's table.

    python -m benchmarks.libraries --others OTHERS/bin/python

LensKit, RecTools and Surprise are installed into an environment of their own, since they ask for another numpy:

    python -m venv OTHERS
    OTHERS/bin/pip install lenskit==2025.8.1 rectools==0.19.0 scikit-surprise==1.1.5 pyarrow==20.0.0

A model is fitted in a process of its own, on the training part of the first of five folds. That process measures the
seconds of the fit, after everything is imported and without what numba compiles (a fit of a fifth of the users comes
before); the median milliseconds of a list of ten new items for one user, by the call that the library's pages show; and the
memory that the process has used at most, its imports included. It hands over the scores of all pairs, and AUC and
nDCG@10 are computed here, for all libraries by the same code.

Two models need a word: LensKit's item kNN is told that the feedback is implicit, and RecTools' wraps implicit's
`ItemItemRecommender`. Surprise predicts ratings: it gets those of the training part where there are any, else ones. Its scores are computed from its
factors as its documentation defines them, without clipping to the scale of ratings, which would tie the best.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

SETTINGS = (
    ("movielens-1m", "half-profile"),
    ("bookcrossing", "half-profile"),
    ("movielens", "half-profile-time"),
)
OURS = ("ease", "cf-komd", "msdw", "auto")
MODELS = (
    *(("recsys", name) for name in OURS),
    ("implicit", "AlternatingLeastSquares"),
    ("LensKit", "ImplicitMFScorer"),
    ("LensKit", "ItemKNNScorer"),
    ("RecTools", "EASEModel"),
    ("RecTools", "ImplicitItemKNNWrapperModel"),
    ("Surprise", "SVD"),
)
COLUMNS = (
    "setting",
    "library",
    "model",
    "auc",
    "ndcg@10",
    "fit seconds",
    "list ms",
    "memory MB",
    "version",
)
LISTS = 200  # users whose lists are timed
N = 10
BLOCK = 256

Scores = Callable[[np.ndarray], np.ndarray]
Fitted = tuple[Callable[[int], Any], Scores]  # a list of one user; scores of users


def ours(
    name: str, R: sp.csr_matrix, ratings: sp.csr_matrix, times: sp.csr_matrix | None
) -> Callable[[], Fitted]:
    """Return a fit of one of our rankers."""
    from recsys import make_ranker
    from recsys._jit import compile_at_once

    compile_at_once()

    def fit() -> Fitted:
        model = make_ranker(name).fit(R, show_progress=False, times=times)
        return lambda u: model.recommend(u, R[u], N=N), lambda users: model.scores(users, R[users])

    return fit


def of_implicit(name: str, R: sp.csr_matrix, ratings: sp.csr_matrix, times: Any) -> Callable[[], Fitted]:
    """Return a fit of implicit, with the one thread of BLAS that it asks for."""
    from implicit.als import AlternatingLeastSquares
    from threadpoolctl import threadpool_limits

    threadpool_limits(1, "blas")

    def fit() -> Fitted:
        model = AlternatingLeastSquares(random_state=0)
        model.fit(R, show_progress=False)
        scores = lambda users: model.user_factors[users] @ model.item_factors.T  # noqa: E731
        return lambda u: model.recommend(u, R[u], N=N), scores

    return fit


def of_lenskit(name: str, R: sp.csr_matrix, ratings: sp.csr_matrix, times: Any) -> Callable[[], Fitted]:
    """Return a fit of one of LensKit's scorers in its pipeline for lists."""
    import pandas as pd
    from lenskit import recommend
    from lenskit.als import ImplicitMFScorer
    from lenskit.data import ItemList, RecQuery, from_interactions_df
    from lenskit.knn import ItemKNNScorer
    from lenskit.pipeline import topn_pipeline

    kinds = {
        "ImplicitMFScorer": ImplicitMFScorer,
        "ItemKNNScorer": lambda: ItemKNNScorer(feedback="implicit"),
    }
    pairs = R.tocoo()
    data = from_interactions_df(pd.DataFrame({"user_id": pairs.row, "item_id": pairs.col}))
    every = ItemList(item_ids=np.arange(R.shape[1]))

    def fit() -> Fitted:
        pipeline = topn_pipeline(kinds[name](), n=N)
        pipeline.train(data)
        scorer = pipeline.component("scorer")

        def of(user: int) -> np.ndarray:
            query = RecQuery(user_id=user, user_items=data.user_row(user))
            found = scorer(query, every).scores()
            return np.nan_to_num(np.asarray(found, dtype=np.float32), nan=np.finfo(np.float32).min)

        return lambda u: recommend(pipeline, int(u), n=N), lambda users: np.stack(
            [of(int(u)) for u in users]
        )

    return fit


def of_rectools(name: str, R: sp.csr_matrix, ratings: sp.csr_matrix, times: Any) -> Callable[[], Fitted]:
    """Return a fit of one of RecTools' models; scores are those of the list of all items."""
    import pandas as pd
    from implicit.nearest_neighbours import ItemItemRecommender
    from rectools.dataset import Dataset
    from rectools.models import EASEModel, ImplicitItemKNNWrapperModel

    kinds = {
        "EASEModel": EASEModel,
        "ImplicitItemKNNWrapperModel": lambda: ImplicitItemKNNWrapperModel(ItemItemRecommender()),
    }
    pairs = R.tocoo()
    table = {"user_id": pairs.row, "item_id": pairs.col, "weight": 1.0, "datetime": "2026-01-01"}
    data = Dataset.construct(pd.DataFrame(table))

    def fit() -> Fitted:
        model = kinds[name]()
        model.fit(data)

        def scores(users: np.ndarray) -> np.ndarray:
            found = model.recommend(users=users, dataset=data, k=R.shape[1], filter_viewed=False)
            out = np.full((len(users), R.shape[1]), np.finfo(np.float32).min, np.float32)
            row = {user: k for k, user in enumerate(users)}
            out[found["user_id"].map(row), found["item_id"]] = found["score"]
            return out

        return lambda u: model.recommend(users=[u], dataset=data, k=N, filter_viewed=True), scores

    return fit


def of_surprise(name: str, R: sp.csr_matrix, ratings: sp.csr_matrix, times: Any) -> Callable[[], Fitted]:
    """Return a fit of Surprise; a list predicts every item that the user has not, as its documentation does."""
    import pandas as pd
    from surprise import SVD, Dataset, Reader

    pairs = ratings.tocoo()
    table = pd.DataFrame({"user": pairs.row, "item": pairs.col, "rating": pairs.data.astype(float)})
    scale = Reader(rating_scale=(float(pairs.data.min()), float(pairs.data.max())))
    data = Dataset.load_from_df(table, scale).build_full_trainset()

    def fit() -> Fitted:
        model = SVD(random_state=0).fit(data)
        users, items = np.full(R.shape[0], -1), np.full(R.shape[1], -1)
        for u in range(data.n_users):
            users[data.to_raw_uid(u)] = u
        for i in range(data.n_items):
            items[data.to_raw_iid(i)] = i

        def scores(asked: np.ndarray) -> np.ndarray:
            known = users[asked]
            bias = np.where(known >= 0, model.bu[known], 0.0)[:, None] + np.where(
                items >= 0, model.bi[items], 0.0
            )
            product = (
                np.where(known[:, None] >= 0, model.pu[known], 0.0)
                @ np.where(items[:, None] >= 0, model.qi[items], 0.0).T
            )
            return (data.global_mean + bias + product).astype(np.float32)

        def listed(u: int) -> list[tuple[float, int]]:
            has = set(R[u].indices)
            found = [(model.predict(u, i).est, i) for i in range(R.shape[1]) if i not in has]
            return sorted(found, reverse=True)[:N]

        return listed, scores

    return fit


LIBRARIES = {
    "recsys": (ours, "recsys-cpu"),
    "implicit": (of_implicit, "implicit"),
    "LensKit": (of_lenskit, "lenskit"),
    "RecTools": (of_rectools, "rectools"),
    "Surprise": (of_surprise, "scikit-surprise"),
}


def child(library: str, name: str, folder: Path) -> None:
    """Fit, measure and keep the scores: in a process of its own, under the Python that has the library."""
    from importlib.metadata import version

    R, ratings = sp.load_npz(folder / "train.npz"), sp.load_npz(folder / "ratings.npz")
    times = sp.load_npz(folder / "times.npz") if (folder / "times.npz").exists() else None
    make, distribution = LIBRARIES[library]
    few = slice(0, R.shape[0] // 5)
    make(name, R[few], ratings[few], None if times is None else times[few])()
    fit = make(name, R, ratings, times)
    began = time.perf_counter()
    listed, scores = fit()
    told: dict[str, Any] = {"fit seconds": time.perf_counter() - began, "version": version(distribution)}
    having = np.flatnonzero(np.diff(R.indptr))
    users = np.random.default_rng(0).choice(having, LISTS, replace=False)
    taken = []
    for u in users.tolist():
        began = time.perf_counter()
        listed(u)
        taken.append(time.perf_counter() - began)
    told["list ms"] = 1000 * float(np.median(taken))
    status = Path("/proc/self/status").read_text(encoding="ascii")  # getrusage counts the parent's, too
    told["memory MB"] = int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1000
    out = np.lib.format.open_memmap(folder / "scores.npy", "w+", np.float32, R.shape)
    for first in range(0, R.shape[0], BLOCK):
        rows = np.arange(first, min(first + BLOCK, R.shape[0]))
        out[rows] = scores(rows)
    out.flush()
    (folder / "told.json").write_text(json.dumps(told), encoding="utf-8")


def measured(data: Any, protocol: str, library: str, name: str, python: str) -> dict[str, Any]:
    """Return a row of the table."""
    from dataclasses import dataclass

    import recsys
    from recsys.rankers.base import Ranker

    told: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = Path(name_of_folder)
        values = np.ones(len(data.users)) if data.rating is None else data.rating
        rated = sp.csr_matrix((values, (data.users, data.items)), shape=(data.n_users, data.n_items))

        @dataclass(eq=False)
        class Elsewhere(Ranker):
            """A model that another process fits."""

            name = "elsewhere"

            def _fit(
                self, liked: sp.csr_matrix, show_progress: bool, callback: Any, times: Any = None
            ) -> None:
                R = sp.csr_matrix(liked, dtype=np.float32)
                sp.save_npz(folder / "train.npz", R)
                sp.save_npz(folder / "ratings.npz", sp.csr_matrix(rated.multiply(R != 0)))
                if times is not None:
                    sp.save_npz(folder / "times.npz", times)
                command = [python, __file__, "--child", library, name, str(folder)]
                subprocess.run(
                    command, check=True, cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}
                )
                told.update(json.loads((folder / "told.json").read_text(encoding="utf-8")))
                self.scores_ = np.load(folder / "scores.npy", mmap_mode="r")

            def _scores(self, userids: np.ndarray, rows: sp.csr_matrix) -> np.ndarray:
                return np.array(self.scores_[userids])

        report = recsys.evaluate(
            data, Elsewhere(), protocol=protocol, folds=5, only_folds=1, metrics=("auc", "ndcg@10")
        )
        means = report.frame().set_index("metric")["mean"]
    return {"auc": float(means["auc"]), "ndcg@10": float(means["ndcg@10"])} | told


ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Measure what the committed table does not have yet."""
    from benchmarks.lab.common import Results
    from recsys import load_dataset

    parser = argparse.ArgumentParser(prog="python -m benchmarks.libraries", description=__doc__)
    parser.add_argument(
        "--others", default=sys.executable, help="Python that has LensKit, RecTools and Surprise"
    )
    others = parser.parse_args().others
    results = Results("libraries", COLUMNS, 3)
    for dataset, protocol in SETTINGS:
        data, setting = load_dataset(dataset), f"{dataset}/{protocol}"
        for key in results.missing([(setting, *model) for model in MODELS]):
            python = sys.executable if key[1] in ("recsys", "implicit") else others
            row = measured(data, protocol, *key[1:], python)
            results.add((*key, *(row[column] for column in COLUMNS[3:])))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3], Path(sys.argv[4]))
    else:
        main()
