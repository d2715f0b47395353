"""The next click of new sessions: yoochoose-100k (RecSys Challenge 2015) as rn5l/session-rec prepares it.

    python -m benchmarks.next_click [MODEL …]

Models are fitted on the training sessions. Of each test session every click after the first is predicted from the
clicks before it, which no model was fitted on. All items of the training sessions are ranked, those of the session
too, because sessions come back to what they had. A click on an item that no training session has is a miss for
every model, and counted. hit@k is the share of clicks within the first k, mrr@20 the mean of 1/rank within the first
20. `auto` chooses on the last items of training sessions. All others have their defaults; user-knn with
sessions as users is session-kNN. Goes on where it was stopped: delete the rows of the CSV to start again.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import scipy.sparse as sp

from benchmarks.lab.common import append_csv, finished
from recsys import make_ranker
from recsys.data import Interactions
from recsys.rankers import fit_package
from recsys.utils.spec import parse_spec

MODELS = (
    "popularity", "bm25", "tfidf", "cosine", "user-knn", "tifu-knn", "ease", "cf-komd", "msdw", "slist",
    "auto:hide=last",
)  # fmt: skip
COLUMNS = (
    "model",
    "hit@10",
    "hit@20",
    "mrr@20",
    "ndcg@10",
    "clicks",
    "fit processor seconds",
    "list ms",
)
DEPTH = 20


def events(name: str) -> pl.DataFrame:
    """Return a file's events: session, item, seconds, ordered within each session."""
    path = Path(os.environ["RECSYS_DATA"]) / "yoochoose-100k" / f"{name}.tsv.gz"
    table = pl.read_csv(path, separator="\t").rename({"SessionId": "s", "ItemId": "i", "Time": "t"})
    return table.sort("s", "t", maintain_order=True)


def histories(train: Interactions) -> tuple[sp.csr_matrix, sp.csr_matrix, np.ndarray]:
    """Return, of every click to predict, the earlier items of its session, their seconds, and its item.

    An item that was clicked twice has the later click's time; an item of no training session is left out of the
    history, and is -1 as the item to predict.
    """
    index = {item: k for k, item in enumerate(train.item_ids)}
    rows, columns, seconds, wanted = [], [], [], []
    for (_,), session in events("test").group_by("s", maintain_order=True):
        clicks = [index.get(str(item), -1) for item in session["i"]]
        for at in range(1, len(clicks)):
            latest = {
                item: t for item, t in zip(clicks[:at], session["t"][:at], strict=True) if item >= 0
            }
            rows += [len(wanted)] * len(latest)
            columns += latest.keys()
            seconds += latest.values()
            wanted.append(clicks[at])
    shape = (len(wanted), train.n_items)
    when = sp.csr_matrix((np.array(seconds, dtype=np.float64), (rows, columns)), shape)
    liked = when.copy()
    liked.data[:] = 1
    return liked.astype(np.float32), when, np.array(wanted)


def measure(
    name: str, train: Interactions, tests: tuple[sp.csr_matrix, sp.csr_matrix, np.ndarray]
) -> None:
    """Fit a model, predict every click, and append its row."""
    liked, when, wanted = tests
    kind, parameters = parse_spec(name)
    before = time.process_time()
    model = fit_package(make_ranker(kind, **parameters), train, show_progress=False).ranker
    fitted, start = time.process_time() - before, time.perf_counter()
    ids, _ = model.recommend(
        np.zeros(len(wanted), dtype=np.int64), liked, N=DEPTH, filter_already_liked_items=False,
        recalculate_user=True, times=when,
    )  # fmt: skip
    listed = 1e3 * (time.perf_counter() - start) / len(wanted)
    found = (ids == wanted[:, None]) & (wanted[:, None] >= 0)
    rank = np.where(found.any(axis=1), found.argmax(axis=1) + 1, np.inf)
    gain = np.where(rank <= 10, 1 / np.log2(1 + rank), 0)
    values = ((rank <= 10).mean(), (rank <= DEPTH).mean(), (1 / rank).mean(), gain.mean())
    append_csv("next_click", COLUMNS, [(name, *values, len(wanted), fitted, listed)])
    print(name, *(f"{value:.4f}" for value in values), f"{fitted:.1f} s")


def main() -> None:
    """Measure what is not in the CSV."""
    done = {row[0] for row in finished("next_click")}
    table = events("train")
    train = Interactions.from_ids(
        table["s"].cast(str).to_list(), table["i"].cast(str).to_list(), time=table["t"].to_list(),
        name="yoochoose-100k",
    )  # fmt: skip
    tests = histories(train)
    for name in sys.argv[1:] or MODELS:
        if name not in done:
            measure(name, train, tests)


if __name__ == "__main__":
    main()
