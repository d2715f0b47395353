"""The next item at the protocol of papers on sequences: the item before the last is not fitted, and is in the input.

All items outside a user's history are ranked. `auto` chooses on items that it hides from what it fits; the single
models have the parameters that are written here. Nothing is chosen on a tested item. Toys, Sports and LastFM are the
files of the S3-Rec repository (RUCAIBox/CIKM2020-S3Rec) in $RECSYS_DATA/next-item.

python -m benchmarks.next_item [set …]
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import time
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from benchmarks.lab.common import Results, arguments
from recsys import evaluate
from recsys.data import Interactions
from recsys.data.features import time_matrix
from recsys.datasets import load_dataset
from recsys.rankers.registry import ranker_of

METRICS = tuple(f"{name}@{k}" for name, k in product(("hit", "ndcg"), (5, 10, 20)))
MODELS = (
    "auto:hide=last",
    "popularity",
    "slist",
    "content",
    "ease",
    "msdw:recency=1",
    "cf-komd:recency=1",
    "cf-komd:kernel=hp,regularization=0.3,recency=1",
)
SETS = ("lastfm", "toys", "sports", "movielens-1m")
COLUMNS = ("set", "model", *METRICS, "seconds", "processor seconds", "GB")


def sequences(name: str) -> Interactions:
    """Return a set of sequences; the attributes of an item are one cell of several values."""
    folder = Path(os.environ["RECSYS_DATA"]) / "next-item" / name
    with gzip.open(folder / "sequences.txt.gz", "rt") as file:
        lines = [line.split() for line in file]
    rows = [(line[0], item, at) for line in lines for at, item in enumerate(line[1:], 1)]
    users, items, times = zip(*rows, strict=True)
    with gzip.open(folder / "item2attributes.json.gz", "rt") as file:
        attributes = {item: "|".join(map(str, found)) for item, found in json.load(file).items()}
    table = pd.DataFrame({"attributes": pd.Series(attributes)})
    return Interactions.from_ids(users, items, None, times, name).with_features(items=table)


class ValidationKept:
    """A ranker that is not fitted on the last training item of each user, and is given it to score."""

    def __init__(self, spec: str, data: Interactions) -> None:
        self.ranker, self.times = ranker_of(spec), time_matrix(data)
        self.uses = self.ranker.wanted()

    def fit(self, user_items: sp.csr_matrix, show_progress: bool = False, **side: Any) -> None:
        """Fit on all but the newest item of each user who has two."""
        times = self.times.multiply(user_items != 0).tocsr()
        times.sort_indices()
        keep = np.ones(times.nnz, dtype=np.float32)
        for begin, end in pairwise(times.indptr):
            if end - begin > 1:
                keep[begin + np.argmax(times.data[begin:end])] = 0
        fitted = sp.csr_matrix((keep, times.indices, times.indptr), times.shape, copy=True)
        fitted.eliminate_zeros()
        if "times" in side:
            side["times"] = times.multiply(fitted).tocsr()
        self.known = times if "times" in side else None
        self.ranker.fit(fitted, show_progress=show_progress, **side)

    def scores(self, users: Any, user_items: sp.csr_matrix) -> Any:
        """Return the scores of all items after the training rows."""
        given = {} if self.known is None else {"times": self.known[users]}
        return self.ranker.scores(users, user_items, **given)


def main() -> None:
    """Measure what is not in the CSV."""
    results = Results("next_item", COLUMNS, 2)
    for name, model in results.missing(product(arguments(SETS), MODELS)):
        data = load_dataset(name) if name == "movielens-1m" else sequences(name)
        start, before = time.perf_counter(), time.process_time()
        kept = {model: ValidationKept(model, data)}
        report = evaluate(data, kept, protocol="leave-one-out", metrics=METRICS, n_jobs=1)
        values = [report.results[0].metrics[metric].mean for metric in METRICS]
        used = (time.perf_counter() - start, time.process_time() - before)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        results.add((name, model, *values, *used, memory))


if __name__ == "__main__":
    main()
