"""The literature's splits of Gowalla and Yelp2018: a blend of sparse linear rankers beside printed figures.

The weights of the blend are found on a fifth of the training pairs, hidden from 3,000 users who have some
there, by recall@20 and nDCG@20 together; the parts' own parameters are the same on both sets, and are
defaults or came from such fifths, too. The test half is then read once, by `evaluate` under its protocol `published`, in
a process of its own, whose seconds and largest memory are told.

python -m benchmarks.public_splits [gowalla yelp2018] [--alone]

With --alone the parts, and graph filters of the literature, are measured by themselves as well; nothing
is chosen by that.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks.folds import load
from benchmarks.lab.common import append_csv, finished, read_csv, write_csv
from recsys import evaluate, make_ranker
from recsys.data import split
from recsys.rankers.blend import Blend
from recsys.utils.spec import parse_spec

SETS = ("gowalla", "yelp2018")
PARTS = (
    "bm25",
    "graph-filter:filter=gf-cf,factors=448",
    "msdw:alpha=0.2,votes=0.5,locality=1.1,sharpening=1.2",
    "msdw:alpha=0.4,votes=0.5,locality=1.1",
    "ease:votes=0.5,regularization=25,top_k=100,ridge_power=0.3,dropout=0.5",
    "graph-filter:filter=ideal,factors=1024",
    "als:factors=128,alpha=20,regularization=60,iterations=8",
)
LITERATURE = ("graph-filter:filter=gf-cf",)
SHARE, USERS, SEED = 0.2, 3000, 0
BLOCK = 250  # users whose scores are held at once
NEAR = 150  # items of each part that the weights are found on
GRID = (0.0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0)
FINE = (0.5, 0.7, 0.85, 1.2, 1.4, 2.0)
LEAST = 2e-4  # of the criterion that a change of one weight must gain
TOP = 20
METRICS = (f"recall@{TOP}", f"ndcg@{TOP}")
TABLE = ("set", "model", *METRICS, "seconds", "peak GB", "source")
CHOSEN = ("set", "model", *(f"{metric} of the hidden fifth" for metric in METRICS), "seconds", "search")
FIGURES = (
    "set",
    "model",
    *METRICS,
    *(f"{metric}, standard error" for metric in METRICS),
    "fit seconds",
    "seconds",
    "peak GB",
    "hardware",
)
BARS = "github.com/openbenchmark/BARS, docs/Matching/leaderboard"
ULTRA = "github.com/xue-pai/UltraGCN, README"
NESCL = "README of NESCL's code"
SELFREC = "github.com/Coder-Yu/SELFRec, README"
COPY = "the paper's table, in a copy (hyper.ai, wizwand)"
# As printed at their sources: recall@20 and nDCG@20; None where it is not.
PRINTED: dict[str, tuple[tuple[str, float | None, float | None, str], ...]] = {
    "gowalla": (
        ("ItemCF", 0.1570, 0.1214, BARS),
        ("SLIM", 0.1699, 0.1382, BARS),
        ("EASE^R", 0.1765, 0.1467, BARS),
        ("LightGCN", 0.1830, 0.1554, ULTRA),
        ("Turbo-CF", 0.1835, None, COPY),
        ("GF-CF", 0.1849, 0.1518, BARS),
        ("UltraGCN", 0.1862, 0.1580, ULTRA),
        ("SimpleX", 0.1872, 0.1557, BARS),
        ("BSPM-LM", 0.1901, 0.1570, COPY),
        ("BSPM-EM", 0.1920, 0.1597, COPY),
        ("NESCL", 0.1917, 0.1617, NESCL),
    ),
    "yelp2018": (
        ("ItemCF", 0.0639, 0.0531, BARS),
        ("SLIM", 0.0646, 0.0541, BARS),
        ("LightGCN", 0.0653, 0.0532, BARS),
        ("EASE^R", 0.0657, 0.0552, BARS),
        ("UltraGCN", 0.0683, 0.0561, ULTRA),
        ("Turbo-CF", 0.0693, 0.0574, COPY),
        ("GF-CF", 0.0697, 0.0571, BARS),
        ("SimpleX", 0.0701, 0.0575, BARS),
        ("BSPM-LM", 0.0713, 0.0584, COPY),
        ("BSPM-EM", 0.0720, None, COPY),
        ("SimGCL", 0.0721, 0.0601, SELFREC),
        ("XSimGCL", 0.0723, 0.0604, SELFREC),
    ),
}


class Hidden:
    """Scores of the parts on the items that any of them ranks high, and which of these were hidden."""

    def __init__(self, train: sp.csr_matrix) -> None:
        rng = np.random.default_rng(SEED)
        rows = np.repeat(np.arange(train.shape[0]), np.diff(train.indptr))
        held = rng.random(train.nnz) < SHARE
        self.fit, out = (
            sp.csr_matrix((np.ones(k.sum(), np.float32), (rows[k], train.indices[k])), train.shape)
            for k in (~held, held)
        )
        able = np.random.default_rng(1).permutation(np.flatnonzero(np.diff(out.indptr)))
        self.users = np.sort(able[:USERS])
        models = []
        for spec in PARTS:
            name, params = parse_spec(spec)
            models.append(make_ranker(name, **params).fit(self.fit, show_progress=False))
        blocks = [
            self._block(models, self.users[k : k + BLOCK], out) for k in range(0, len(self.users), BLOCK)
        ]
        width = max(scores.shape[2] for scores, _ in blocks)
        self.scores, self.hits = (
            np.concatenate(
                [
                    np.pad(
                        block[k],
                        [(0, 0)] * (block[k].ndim - 1) + [(0, width - block[k].shape[-1])],
                        constant_values=fill,
                    )
                    for block in blocks
                ],
                axis=1 - k,
            )
            for k, fill in ((0, -1e6), (1, False))
        )
        self.relevant = np.diff(out[self.users].indptr)
        self.discounts = 1.0 / np.log2(np.arange(TOP) + 2.0)
        self.ideal = np.cumsum(self.discounts)[np.minimum(self.relevant, TOP) - 1]

    def _block(
        self, models: list, users: np.ndarray, out: sp.csr_matrix
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the parts' standardised scores of some users' near items, and whether those were hidden."""
        rows, parts, near = self.fit[users], [], np.zeros((len(users), out.shape[1]), dtype=bool)
        for model in models:
            scores = model.scores(users, rows).astype(np.float64)
            scores -= scores.mean(axis=1, keepdims=True)
            scores /= np.maximum(scores.std(axis=1, keepdims=True), 1e-12)
            parts.append(scores.astype(np.float32))
            scores[rows.nonzero()] = -np.inf
            np.put_along_axis(near, np.argpartition(-scores, NEAR, axis=1)[:, :NEAR], True, axis=1)
        width = near.sum(axis=1).max()
        picked = np.argsort(~near, axis=1, kind="stable")[:, :width]
        real = np.take_along_axis(near, picked, axis=1)
        values = [np.where(real, np.take_along_axis(part, picked, axis=1), -1e6) for part in parts]
        hidden = out[users].toarray() > 0
        return np.array(values, np.float32), real & np.take_along_axis(hidden, picked, axis=1)

    def figures(self, weights: np.ndarray) -> tuple[float, float]:
        """Return recall@20 and nDCG@20 of a weighing of the parts."""
        total = np.tensordot(weights.astype(np.float32), self.scores, 1)
        top = np.argpartition(-total, TOP, axis=1)[:, :TOP]
        order = np.argsort(-np.take_along_axis(total, top, axis=1), axis=1, kind="stable")
        hits = np.take_along_axis(self.hits, np.take_along_axis(top, order, axis=1), axis=1)
        recall = (hits.sum(axis=1) / self.relevant).mean()
        return float(recall), float(((hits * self.discounts).sum(axis=1) / self.ideal).mean())

    def weights(self) -> np.ndarray:
        """Return what coordinate ascent of log recall + log nDCG ends at, from the best part alone."""

        def worth(weights: np.ndarray) -> float:
            return float(np.log(self.figures(weights)).sum()) if weights.any() else -np.inf

        alone = np.eye(len(PARTS))
        found = alone[int(np.argmax([worth(one) for one in alone]))]
        best = worth(found)
        for turn in range(5):
            before = best
            for k in range(len(PARTS)):
                steps = np.array(GRID if turn < 2 else FINE) * (1.0 if turn < 2 else found[k])
                tried = [np.where(np.arange(len(PARTS)) == k, step, found) for step in steps]
                values = [worth(one) for one in tried]
                if max(values) > best + LEAST:
                    best, found = max(values), tried[int(np.argmax(values))]
            if best < before + 1e-3 and turn:
                break
        return np.round(found, 3)


def choose(name: str) -> str:
    """Return the parts with their weights, found on the training half alone; they are kept in a table."""
    for row in read_csv("public_splits_chosen"):
        if (row["set"], row["search"]) == (name, searched()):
            return row["model"]
    started = time.perf_counter()
    fold = next(split(load(name), "published"))
    hidden = Hidden(fold.train)
    weights = hidden.weights()
    parts = [k for k in range(len(PARTS)) if weights[k] > 0]
    text = (
        "+".join(PARTS[k].replace(",", ";") for k in parts)
        + " | "
        + "+".join(f"{weights[k]:g}" for k in parts)
    )
    row = (name, text, *hidden.figures(weights), time.perf_counter() - started, searched())
    append_csv("public_splits_chosen", CHOSEN, [row])
    return text


def searched() -> str:
    """Return a digest of what weights are found by: a row of another search is not taken."""
    what = (PARTS, SHARE, USERS, SEED, NEAR, GRID, FINE, LEAST)
    return hashlib.sha256(repr(what).encode()).hexdigest()[:8]


def hardware() -> str:
    """Return the processor and how many there are."""
    lines = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = next((one.split(":")[1].strip() for one in lines.splitlines() if "model name" in one), "")
    return f"{os.cpu_count()} × {model or platform.machine()}"


def tested(name: str, model: str) -> tuple[float, ...]:
    """Return a model's figures on the test half, its seconds and this process's largest memory."""
    data = load(name)
    started = time.perf_counter()
    if " | " in model:
        models, weights = model.split(" | ")
        ranker = Blend(models=models, weights=weights)
    else:
        kind, params = parse_spec(model)
        ranker = make_ranker(kind, **params)
    report = evaluate(data, {model: ranker}, protocol="published", metrics=METRICS, n_jobs=1)
    found = report.results[0]
    errors = [float(report.values[model, m].sem(ddof=0)) for m in METRICS]
    means = [found.metrics[metric].mean for metric in METRICS]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    return (*means, *errors, found.fit_seconds, time.perf_counter() - started, peak)


def measure(name: str, model: str) -> None:
    """Add a model's row to the table."""
    if (name, model) in finished("public_splits", "set", "model"):
        return
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        got = pool.submit(tested, name, model).result()
    append_csv("public_splits", FIGURES, [(name, model, *got, hardware())])


def show() -> None:
    """Write and print our rows among the printed ones, by recall."""
    rows = [
        (row[0], row[1], float(row[2]), float(row[3]), float(row[7]), float(row[8]), f"here, {row[9]}")
        for row in (list(row.values()) for row in read_csv("public_splits"))
    ]
    for name, printed in PRINTED.items():
        rows += [
            (name, model, recall, ndcg, None, None, source) for model, recall, ndcg, source in printed
        ]
    rows.sort(key=lambda row: (row[0], -(row[2] or 0.0)))
    write_csv("public_splits_table", TABLE, rows)
    for name, model, recall, ndcg, *_, source in rows:
        print(
            f"{name}  {recall:.4f}  {'  –   ' if ndcg is None else f'{ndcg:.4f}'}  {model}  ({source})"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--alone", action="store_true")
    asked = parser.parse_args()
    for name in asked.sets:
        measure(name, choose(name))
        for model in (*PARTS, *LITERATURE) if asked.alone else ():
            measure(name, model)
    show()
