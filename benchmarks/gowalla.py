"""The literature's split of Gowalla with sparse rankers of ours, tuned on the training half only.

A fifth of the training pairs validates, as large a share as the test half is of all: the exponents with the largest mean of recall@20 and
nDCG@20 there are fitted on the whole training half and measured on the test half once.
"""

from __future__ import annotations

import os
import resource
import time
from itertools import product
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks.lab.common import write_csv
from recsys import make_ranker
from recsys.data import read_interactions
from recsys.evaluation import metrics as M


def halves() -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Return the train and the test matrix of the published split."""
    folder = Path(os.environ["RECSYS_DATA"]) / "gowalla"
    everything = read_interactions(folder / "interactions.csv.gz")
    held = read_interactions(folder / "test.csv.gz")
    users = everything.lookup("user", everything.user_ids, list(held.user_ids))[held.users]
    items = everything.lookup("item", everything.item_ids, list(held.item_ids))[held.items]
    test = sp.csr_matrix((np.ones(len(users), np.float32), (users, items)), everything.matrix.shape)
    train = (everything.matrix - test).tocsr()
    train.eliminate_zeros()
    assert train.nnz + test.nnz == everything.matrix.nnz and (train.data == 1).all()
    return train, test


def measure(
    model: object, train: sp.csr_matrix, test: sp.csr_matrix, users: np.ndarray
) -> tuple[float, float]:
    """Return mean recall@20 and nDCG@20 over users with test items."""
    recall, ndcg = [], []
    for begin in range(0, len(users), 2000):
        part = users[begin : begin + 2000]
        ids, _ = model.recommend(part, train[part], N=20)
        recall.append(M.recall(ids, train[part], test[part], k=20))
        ndcg.append(M.ndcg(ids, train[part], test[part], k=20))
    return float(np.nanmean(np.concatenate(recall))), float(np.nanmean(np.concatenate(ndcg)))


def split(train: sp.csr_matrix, share: float, seed: int) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(train.shape[0]), np.diff(train.indptr))
    held = rng.random(train.nnz) < share
    parts = (
        sp.csr_matrix((train.data[k], (owner[k], train.indices[k])), train.shape) for k in (~held, held)
    )
    return tuple(parts)


def main() -> None:
    train, test = halves()
    fit, valid = split(train, 0.2, 0)
    rng = np.random.default_rng(1)
    some = rng.permutation(np.flatnonzero(np.diff(valid.indptr) > 0))[:8000]
    trials = []

    def attempt(**params: float) -> None:
        recall, ndcg = measure(make_ranker("msdw", **params).fit(fit), fit, valid, some)
        trials.append((recall + ndcg, params, recall, ndcg))
        print(params, round(recall, 4), round(ndcg, 4), flush=True)

    for alpha, votes, sharpening in product((0.2, 0.25), (0.5, 0.6, 0.75), (0.0, 0.8, 1.0, 1.2)):
        attempt(alpha=alpha, votes=votes, locality=1.1, sharpening=sharpening)
    for locality in (1.0, 1.2):
        attempt(**max(trials, key=lambda t: t[0])[1] | {"locality": locality})
    params = max(trials, key=lambda t: t[0])[1]
    started = time.perf_counter()
    model = make_ranker("msdw", **params).fit(train)
    recall, ndcg = measure(model, train, test, np.flatnonzero(np.diff(test.indptr) > 0))
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(params, recall, ndcg, seconds, peak)
    write_csv(
        "gowalla_split",
        ("alpha", "votes", "locality", "sharpening", "recall@20", "ndcg@20", "seconds", "peak_mb"),
        [(*params.values(), recall, ndcg, seconds, peak)],
    )
    write_csv(
        "gowalla_validation",
        ("alpha", "votes", "locality", "sharpening", "recall@20", "ndcg@20"),
        [(*t[1].values(), t[2], t[3]) for t in trials],
    )


if __name__ == "__main__":
    main()
