"""The literature's splits of Gowalla and Yelp2018: a blend of sparse linear rankers beside printed figures.

The weights of the blend are found on a fifth of the training pairs, hidden from 3,000 users who have some there, by
recall@20 and nDCG@20 together. The parts have the same parameters on both sets. The test half is then read once, by
`evaluate` under its protocol `published`, in a process of its own.

    python -m benchmarks.public_splits [gowalla] [yelp2018]
"""

from __future__ import annotations

import os
import platform
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.folds import load
from benchmarks.lab.common import Results, arguments
from recsys import evaluate, make_ranker
from recsys.data import split
from recsys.rankers.blend import Blend
from recsys.registry import parse_spec

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
SHARE, USERS = 0.2, 3000
BLOCK = 250  # users whose scores are held at once
NEAR = 150  # items of each part that the weights are found on
GRID = (0.0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0)
FINE = (0.5, 0.7, 0.85, 1.2, 1.4, 2.0)  # times the weight
LEAST = 2e-4  # of the criterion that a change of one weight must gain
TOP = 20
METRICS = (f"recall@{TOP}", f"ndcg@{TOP}")
TABLE = ("set", "model", *METRICS, "seconds", "peak GB", "source")
CHOSEN = ("set", "model", *(f"{metric} of the hidden fifth" for metric in METRICS), "seconds")
ERRORS = tuple(f"{metric}, standard error" for metric in METRICS)
FIGURES = ("set", "model", *METRICS, *ERRORS, "fit seconds", "seconds", "peak GB", "hardware")
BARS = "github.com/openbenchmark/BARS, docs/Matching/leaderboard"
ULTRA = "github.com/xue-pai/UltraGCN, README"
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
        ("NESCL", 0.1917, 0.1617, "README of NESCL's code"),
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
        ("SimGCL", 0.0721, 0.0601, "github.com/Coder-Yu/SELFRec, README"),
        ("XSimGCL", 0.0723, 0.0604, "github.com/Coder-Yu/SELFRec, README"),
    ),
}


class Hidden:
    """Scores of the parts on the items that any of them ranks high, for users with hidden pairs."""

    def __init__(self, train: sp.csr_matrix) -> None:
        hidden = np.random.default_rng(0).random(train.nnz) < SHARE
        rows = np.repeat(np.arange(train.shape[0]), np.diff(train.indptr))
        fit, out = (
            sp.csr_matrix((np.ones(k.sum(), np.float32), (rows[k], train.indices[k])), train.shape)
            for k in (~hidden, hidden)
        )
        having = np.random.default_rng(1).permutation(np.flatnonzero(np.diff(out.indptr)))
        users = np.sort(having[:USERS])
        models = []
        for spec in PARTS:
            name, params = parse_spec(spec)
            models.append(make_ranker(name, **params).fit(fit, show_progress=False))
        self.blocks = []  # scores and hits of some users' near items
        for start in range(0, len(users), BLOCK):
            some = users[start : start + BLOCK]
            self.blocks.append(near(models, some, fit[some], out[some].toarray() > 0))
        relevant = np.diff(out[users].indptr)
        self.relevant, self.discounts = relevant, 1.0 / np.log2(np.arange(TOP) + 2.0)
        self.ideal = np.cumsum(self.discounts)[np.minimum(relevant, TOP) - 1]

    def metrics(self, weights: np.ndarray) -> tuple[float, float]:
        """Return recall@20 and nDCG@20 of a weighing of the parts."""
        hits = []
        for scores, hidden in self.blocks:
            total = np.tensordot(weights.astype(np.float32), scores, 1)
            top = np.argsort(-total, axis=1, kind="stable")[:, :TOP]
            hits.append(np.take_along_axis(hidden, top, axis=1))
        found = np.concatenate(hits)
        recall = (found.sum(axis=1) / self.relevant).mean()
        return float(recall), float(((found * self.discounts).sum(axis=1) / self.ideal).mean())

    def weights(self) -> np.ndarray:
        """Return what coordinate ascent of log recall + log nDCG ends at, from the best part alone."""

        def worth(weights: np.ndarray) -> float:
            return float(np.log(self.metrics(weights)).sum()) if weights.any() else -np.inf

        weights = max(np.eye(len(PARTS)), key=worth)
        best = worth(weights)
        for turn in range(5):
            before = best
            for k in range(len(PARTS)):
                steps = np.array(GRID) if turn < 2 else weights[k] * np.array(FINE)
                tried = [np.where(np.arange(len(PARTS)) == k, step, weights) for step in steps]
                values = [worth(one) for one in tried]
                if max(values) > best + LEAST:
                    best, weights = max(values), tried[int(np.argmax(values))]
            if best < before + 1e-3 and turn:
                break
        return np.round(weights, 3)


def near(
    models: list, users: np.ndarray, rows: sp.csr_matrix, hidden: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the parts' standardized scores of some users' near items, and whether those are hidden."""
    parts, close = [], np.zeros(rows.shape, dtype=bool)
    for model in models:
        scores = model.scores(users, rows).astype(np.float64)
        scores -= scores.mean(axis=1, keepdims=True)
        scores /= np.maximum(scores.std(axis=1, keepdims=True), 1e-12)
        parts.append(scores.astype(np.float32))
        scores[rows.nonzero()] = -np.inf
        np.put_along_axis(close, np.argpartition(-scores, NEAR, axis=1)[:, :NEAR], True, axis=1)
    picked = np.argsort(~close, axis=1, kind="stable")[:, : close.sum(axis=1).max()]
    real = np.take_along_axis(close, picked, axis=1)
    values = [np.where(real, np.take_along_axis(part, picked, axis=1), -1e6) for part in parts]
    return np.array(values, np.float32), real & np.take_along_axis(hidden, picked, axis=1)


def choose(name: str) -> str:
    """Return the parts with their weights, found on the training half alone; they are kept in a table."""
    results = Results("public_splits_chosen", CHOSEN)
    if results.missing([(name,)]):
        started = time.perf_counter()
        hidden = Hidden(next(split(load(name), "published")).train)
        weights = hidden.weights()
        parts = np.flatnonzero(weights)
        models = "+".join(PARTS[k].replace(",", ";") for k in parts)
        text = models + " | " + "+".join(f"{weights[k]:g}" for k in parts)
        results.add((name, text, *hidden.metrics(weights), time.perf_counter() - started))
    return str(results.frame().set_index("set").loc[name, "model"])


def tested(name: str, model: str) -> tuple[Any, ...]:
    """Return a blend's row: its metrics on the test half, its seconds and this process's largest memory."""
    data = load(name)
    started = time.perf_counter()
    models, weights = model.split(" | ")
    ranker = {model: Blend(models=models, weights=weights)}
    report = evaluate(data, ranker, protocol="published", metrics=METRICS, n_jobs=1)
    result = report.results[0]
    means = [result.metrics[metric].mean for metric in METRICS]
    errors = [float(report.values[model, metric].sem(ddof=0)) for metric in METRICS]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    processors = [line.split(":")[1].strip() for line in lines if "model name" in line]
    hardware = f"{os.cpu_count()} × {processors[0] if processors else platform.machine()}"
    seconds = time.perf_counter() - started
    return name, model, *means, *errors, result.fit_seconds, seconds, peak, hardware


def main() -> None:
    results = Results("public_splits", FIGURES)
    for (name,) in results.missing([(name,) for name in arguments(SETS)]):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            results.add(pool.submit(tested, name, choose(name)).result())
    rows: list[tuple] = [
        (
            row["set"],
            row["model"],
            *(row[head] for head in (*METRICS, "seconds", "peak GB")),
            f"here, {row['hardware']}",
        )
        for _, row in results.frame().iterrows()
    ]
    for name, printed in PRINTED.items():
        rows += [(name, *row[:3], None, None, row[3]) for row in printed]
    rows.sort(key=lambda row: (row[0], -(row[2] or 0.0)))
    Results("public_splits_table", TABLE).replace(rows)


if __name__ == "__main__":
    main()
