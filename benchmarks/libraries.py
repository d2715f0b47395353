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
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

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
COLUMNS = "setting,library,model,auc,ndcg@10,fit seconds,list ms,memory MB,version".split(",")
LISTS = 200  # users whose lists are timed
N = 10
BLOCK = 256

Fitted = tuple[
    Callable[[int], Any], Callable[[np.ndarray], np.ndarray]
]  # a user's list; scores of users


class Train(NamedTuple):
    """The training part: ones, ratings and times of its pairs."""

    R: sp.csr_matrix
    ratings: sp.csr_matrix
    times: sp.csr_matrix | None


def frame(matrix: sp.csr_matrix) -> Any:
    import pandas as pd

    pairs = matrix.tocoo()
    return pd.DataFrame({"user_id": pairs.row, "item_id": pairs.col, "rating": pairs.data})


def ours(name: str, train: Train) -> Callable[[], Fitted]:
    from recsys import make_ranker
    from recsys._jit import AT_ONCE

    AT_ONCE["on"] = True
    R = train.R

    def fit() -> Fitted:
        model = make_ranker(name).fit(R, show_progress=False, times=train.times)
        return lambda u: model.recommend(u, R[u], N=N), lambda users: model.scores(users, R[users])

    return fit


def of_implicit(name: str, train: Train) -> Callable[[], Fitted]:
    """Return a fit of implicit, with the one thread of BLAS that it asks for."""
    from implicit.als import AlternatingLeastSquares
    from threadpoolctl import threadpool_limits

    threadpool_limits(1, "blas")
    R = train.R

    def fit() -> Fitted:
        model = AlternatingLeastSquares(random_state=0)
        model.fit(R, show_progress=False)
        scores = lambda users: model.user_factors[users] @ model.item_factors.T  # noqa: E731
        return lambda u: model.recommend(u, R[u], N=N), scores

    return fit


def of_lenskit(name: str, train: Train) -> Callable[[], Fitted]:
    """Return a fit of one of LensKit's scorers in its pipeline for lists."""
    from lenskit import recommend
    from lenskit.als import ImplicitMFScorer
    from lenskit.data import ItemList, RecQuery, from_interactions_df
    from lenskit.knn import ItemKNNScorer
    from lenskit.pipeline import topn_pipeline

    data = from_interactions_df(frame(train.R)[["user_id", "item_id"]])
    every = ItemList(item_ids=np.arange(train.R.shape[1]))

    def fit() -> Fitted:
        knn = name == "ItemKNNScorer"
        pipeline = topn_pipeline(ItemKNNScorer(feedback="implicit") if knn else ImplicitMFScorer(), n=N)
        pipeline.train(data)
        scorer = pipeline.component("scorer")

        def of(user: int) -> np.ndarray:
            query = RecQuery(user_id=user, user_items=data.user_row(user))
            scores = np.asarray(scorer(query, every).scores(), dtype=np.float32)
            return np.nan_to_num(scores, nan=np.finfo(np.float32).min)

        scores = lambda users: np.stack([of(int(u)) for u in users])  # noqa: E731
        return lambda u: recommend(pipeline, int(u), n=N), scores

    return fit


def of_rectools(name: str, train: Train) -> Callable[[], Fitted]:
    """Return a fit of one of RecTools' models; scores are those of the list of all items."""
    from implicit.nearest_neighbours import ItemItemRecommender
    from rectools.dataset import Dataset
    from rectools.models import EASEModel, ImplicitItemKNNWrapperModel

    table = frame(train.R)[["user_id", "item_id"]].assign(weight=1.0, datetime="2026-01-01")
    data, items = Dataset.construct(table), train.R.shape[1]

    def fit() -> Fitted:
        ease = name == "EASEModel"
        model = EASEModel() if ease else ImplicitItemKNNWrapperModel(ItemItemRecommender())
        model.fit(data)

        def scores(users: np.ndarray) -> np.ndarray:
            found = model.recommend(users=users, dataset=data, k=items, filter_viewed=False)
            out = np.full((len(users), items), np.finfo(np.float32).min, np.float32)
            row = {user: k for k, user in enumerate(users)}
            out[found["user_id"].map(row), found["item_id"]] = found["score"]
            return out

        return lambda u: model.recommend(users=[u], dataset=data, k=N, filter_viewed=True), scores

    return fit


def of_surprise(name: str, train: Train) -> Callable[[], Fitted]:
    """Return a fit of Surprise; a list predicts every item that the user has not, as its documentation does."""
    from surprise import SVD, Dataset, Reader

    table = frame(train.ratings).astype({"rating": float})
    scale = Reader(rating_scale=(table["rating"].min(), table["rating"].max()))
    data = Dataset.load_from_df(table, scale).build_full_trainset()
    n_users, n_items = train.R.shape

    def fit() -> Fitted:
        model = SVD(random_state=0).fit(data)
        # Factors by our ids; 0 for users and items that are not in the training part.
        pu, bu = np.zeros((n_users, model.n_factors)), np.zeros(n_users)
        qi, bi = np.zeros((n_items, model.n_factors)), np.zeros(n_items)
        users = [data.to_raw_uid(u) for u in range(data.n_users)]
        items = [data.to_raw_iid(i) for i in range(data.n_items)]
        pu[users], bu[users], qi[items], bi[items] = model.pu, model.bu, model.qi, model.bi

        def scores(users: np.ndarray) -> np.ndarray:
            total = data.global_mean + bu[users, None] + bi + pu[users] @ qi.T
            return total.astype(np.float32)

        def listed(u: int) -> list[tuple[float, int]]:
            liked = set(train.R[u].indices)
            found = [(model.predict(u, i).est, i) for i in range(n_items) if i not in liked]
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
    make(name, Train(R[few], ratings[few], None if times is None else times[few]))()
    fit = make(name, Train(R, ratings, times))
    began = time.perf_counter()
    listed, scores = fit()
    row: dict[str, Any] = {"fit seconds": time.perf_counter() - began, "version": version(distribution)}
    having = np.flatnonzero(np.diff(R.indptr))
    seconds = []
    for user in np.random.default_rng(0).choice(having, LISTS, replace=False).tolist():
        began = time.perf_counter()
        listed(user)
        seconds.append(time.perf_counter() - began)
    row["list ms"] = 1000 * float(np.median(seconds))
    status = Path("/proc/self/status").read_text(encoding="ascii")  # getrusage counts the parent's, too
    row["memory MB"] = int(status.split("VmHWM:")[1].split()[0]) / 1000
    out = np.lib.format.open_memmap(folder / "scores.npy", "w+", np.float32, R.shape)
    for first in range(0, R.shape[0], BLOCK):
        rows = np.arange(first, min(first + BLOCK, R.shape[0]))
        out[rows] = scores(rows)
    out.flush()
    (folder / "row.json").write_text(json.dumps(row), encoding="utf-8")


def measured(data: Any, protocol: str, library: str, name: str, python: str) -> dict[str, Any]:
    """Return a row of the table."""
    from recsys.data import split
    from recsys.data.features import time_matrix
    from recsys.evaluation import metrics

    fold = next(iter(split(data, protocol, seed=0)))
    train = sp.csr_matrix(fold.train, dtype=np.float32)
    values = np.ones(len(data.users)) if data.rating is None else data.rating
    rated = sp.csr_matrix((values, (data.users, data.items)), shape=train.shape)
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = Path(name_of_folder)
        sp.save_npz(folder / "train.npz", train)
        sp.save_npz(folder / "ratings.npz", sp.csr_matrix(rated.multiply(train != 0)))
        if data.time is not None:
            sp.save_npz(folder / "times.npz", time_matrix(data).multiply(train != 0).tocsr())
        command = [python, __file__, "--child", library, name, str(folder)]
        subprocess.run(command, check=True, cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)})
        row = json.loads((folder / "row.json").read_text(encoding="utf-8"))
        scores = np.load(folder / "scores.npy", mmap_mode="r")
        for key, metric in (("auc", metrics.auc), ("ndcg@10", metrics.ndcg)):
            values = []
            for first in range(0, len(fold.users), BLOCK):
                users = fold.users[first : first + BLOCK]
                values.append(metric(np.array(scores[users]), fold.train[users], fold.test[users]))
            row[key] = float(np.nanmean(np.concatenate(values)))
    return row


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
