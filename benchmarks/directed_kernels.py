"""Directed Boolean kernels in time order, against what else knows the order, on validation.

A source's vector holds (user, window) pairs, a target's those in which it follows: n_ij is in how many
of them j comes after i, within the window's gap, and the conjunctions of degree d that both satisfy are
C(n_ij, d); disjunctions (mD) likewise. Divided by powers of the self-kernels they weigh items as MSDw's
weights do, (newer likes + 1)^−recency of a profile. In CF-KOMD the symmetric form: items are vectors over
(user, window of so many likes), `windows`. All is chosen on likes hidden from the training part, blends of
the best of each kind too; only what is chosen is tested.

python -m benchmarks.directed_kernels [setting …]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.special import gammaln

from benchmarks.lab.common import append_csv
from benchmarks.time_kernels import later_halves, means, recent
from recsys._jit import jit
from recsys.data import Interactions, split
from recsys.data.side_information import time_matrix
from recsys.datasets import load_dataset
from recsys.rankers import make_ranker

GAPS = (1, 3, 10, 30, 10**6)
WINDOWS = {"1": (0,), "3": (1,), "10": (2,), "30": (3,), "any": (4,), "all five": (0, 1, 2, 3, 4)}
KERNELS = (("mc", 1), ("mc", 2), ("mc", 3), ("mc", 5), ("md", 2), ("md", 5))
POWERS = ((0.5, 0.5), (0.7, 0.3), (0.3, 0.7))
RECENCY = (0.25, 0.5, 1.0, 2.0)
LENGTHS = ("30", "10-30-100", "5-10-30-100", "3-10-30")
BLENDS = {
    "blend of peers": ("peers",),
    "blend with directed": ("peers", "directed"),
    "blend with windows": ("peers", "windows"),
    "blend with both": ("peers", "directed", "windows"),
}
COLUMNS = ("setting", "part", "model", "auc", "ndcg@10")


Only = set[str] | None  # the names asked for, where they are known


class Task(NamedTuple):
    """Likes to fit on, the rows to predict from, when they happened, and what is to be found."""

    train: sp.csr_matrix
    users: np.ndarray
    wanted: sp.csr_matrix
    times: sp.csr_matrix

    @property
    def rows(self) -> sp.csr_matrix:
        """Return what is predicted from."""
        return self.train[self.users]

    @property
    def known(self) -> sp.csr_matrix:
        """Return when the likes to fit on happened."""
        return self.train.multiply(self.times).tocsr()


def in_order(task: Task) -> list[np.ndarray]:
    """Return each user's items, oldest first."""
    train, out = task.train, []
    for u in range(train.shape[0]):
        items = train.indices[train.indptr[u] : train.indptr[u + 1]]
        out.append(items[np.argsort(task.times[u].toarray().ravel()[items], kind="stable")])
    return out


@jit
def _follow(items, starts, gaps, counts):
    for u in range(len(starts) - 1):
        for p in range(starts[u], starts[u + 1]):
            for q in range(p + 1, starts[u + 1]):
                for w in range(len(gaps)):
                    if q - p <= gaps[w]:
                        counts[w, items[p], items[q]] += 1


def followers(orders: list[np.ndarray], m: int) -> np.ndarray:
    """Return in how many profiles j comes at most so many places after i, (gaps, items, items)."""
    counts = np.zeros((len(GAPS), m, m), dtype=np.int32)
    starts = np.concatenate(([0], np.cumsum([len(o) for o in orders])))
    _follow(np.concatenate(orders).astype(np.int64), starts, np.array(GAPS), counts)
    return counts


def chosen(n: np.ndarray, degree: int) -> np.ndarray:
    """Return log C(n, degree); −∞ below."""
    n = np.asarray(n, dtype=np.float64)
    with np.errstate(divide="ignore"):
        value = gammaln(n + 1) - gammaln(np.maximum(n - degree, 0) + 1) - gammaln(degree + 1)
    return np.where(n >= degree, value, -np.inf)


def logs(kind: str, degree: int, common: np.ndarray, own: np.ndarray, total: int) -> tuple[Any, Any]:
    """Return the logarithms of the directed kernel and of the self-kernels."""
    if kind == "mc":
        return chosen(np.arange(common.max() + 1), degree)[common], chosen(own, degree)
    whole = chosen(np.array(total), degree)

    def absent(n: Any) -> Any:  # the share of disjunctions that n features do not satisfy
        return np.exp(chosen(total - n, degree) - whole)

    single = absent(own)
    both = absent(np.add.outer(own, own) - common)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(1 - single[:, None] - single + both, 0)), np.log(1 - single)


def weights(value: np.ndarray, own: np.ndarray, source: float, target: float) -> np.ndarray:
    """Return the kernel over powers of the self-kernels."""
    scale = np.where(np.isfinite(own), own, 0.0)
    return np.exp(value - source * scale[:, None] - target * scale).astype(np.float32)


def directed(task: Task, only: Only = None) -> Iterator[tuple[str, Any]]:
    """Yield names and scores of the item weights from directed kernels."""
    rows, m = task.rows, task.train.shape[1]
    counts = followers(in_order(task), m)
    popularity = np.bincount(task.train.indices, minlength=m)
    faded = {c: recent(rows, task.times[task.users], c) for c in RECENCY}
    for (label, which), (kind, degree) in product(WINDOWS.items(), KERNELS):
        made = {
            f"directed {kind}:{degree} window {label} powers {powers[0]}/{powers[1]} r {c}": (powers, c)
            for powers, c in product(POWERS, RECENCY)
        }
        made = {name: what for name, what in made.items() if only is None or name in only}
        if made:
            common, total = counts[list(which)].sum(axis=0), len(which) * task.train.shape[0]
            value, own = logs(kind, degree, common, len(which) * popularity, total)
            W = {powers: weights(value, own, *powers) for powers, _ in made.values()}
            for name, (powers, c) in made.items():
                yield name, faded[c] @ W[powers]


def windows(task: Task, only: Only = None) -> Iterator[tuple[str, Any]]:
    """Yield names and scores of CF-KOMD over windows of profiles."""
    for lengths in LENGTHS:
        yield from margins(task, lengths, only)


def margins(task: Task, lengths: str | None, only: Only) -> Iterator[tuple[str, Any]]:
    """Yield names and scores of CF-KOMD with recency."""
    kernels: tuple[dict[str, Any], ...] = (
        {}, {"kernel": "mc", "degree": 2}, {"kernel": "md", "degree": 2}, {"kernel": "hp"},
    )  # fmt: skip
    for kernel in kernels:
        ranker = make_ranker("cf-komd", **kernel, windows=lengths, recency=1.0).fit(
            task.train, show_progress=False, times=task.known
        )
        for ridge in (0.1, 0.3, 1.0, 3.0):
            for c in RECENCY[1:]:
                ranker.set_params(regularization=ridge, recency=c)
                params = kernel | {"regularization": ridge, "recency": c}
                params |= {"windows": lengths} if lengths else {}
                label = "cf-komd:" + ",".join(f"{key}={value}" for key, value in params.items())
                if only is None or label in only:
                    yield label, ranker.scores(task.users, task.rows)


@jit
def _ridge(items, starts, a, b, xx, xy):
    longest = 0
    for u in range(len(starts) - 1):
        longest = max(longest, starts[u + 1] - starts[u])
    table = np.zeros((longest + 1, longest + 1))  # Σ_{k ≤ r} (k(k + g))^−a, by g and r
    across = np.zeros(longest + 1)  # Σ_{k ≤ g} k^−a (g − k + 1)^−b
    for g in range(longest + 1):
        for r in range(1, longest + 1):
            table[g, r] = table[g, r - 1] + (r * (r + g) * 1.0) ** -a
        for k in range(1, g + 1):
            across[g] += k**-a * (g - k + 1.0) ** -b
    for u in range(len(starts) - 1):
        begin, n = starts[u], starts[u + 1] - starts[u]
        for p in range(n):
            for q in range(n):
                i, j = items[begin + p], items[begin + q]
                xx[i, j] += table[abs(p - q), n - 1 - max(p, q)] / n
                if q > p:
                    xy[i, j] += across[q - p] / n


def peers(task: Task, only: Only = None) -> Iterator[tuple[str, Any]]:
    """Yield names and scores of what knows the order already, and of a directed ridge."""
    rows, when, m = task.rows, task.times[task.users], task.train.shape[1]
    specs: list[tuple[str, dict[str, Any]]] = []
    specs += [("ease", {"regularization": r}) for r in (500.0, 1500.0, 3000.0)]
    specs += [("msdw", {"alpha": 0.5, "votes": 0.5, "sharpening": amount}) for amount in (0.0, 0.5)]
    for name, params in specs:
        ranker = make_ranker(name, **params, recency=1.0)
        ranker.fit(task.train, show_progress=False, times=task.known)
        for c in RECENCY[1:]:
            label = name + ":" + ",".join(f"{key}={value}" for key, value in params.items())
            yield f"{label},recency={c}", ranker.set_params(recency=c).scores(task.users, rows)
    yield from margins(task, None, only)
    orders = in_order(task)
    starts = np.concatenate(([0], np.cumsum([len(o) for o in orders])))
    for b in (0.25, 1.0):
        xx, xy = np.zeros((m, m)), np.zeros((m, m))
        _ridge(np.concatenate(orders).astype(np.int64), starts, 1.0, b, xx, xy)
        for ridge in (1.0, 3.0):
            B = np.linalg.solve(xx + ridge * np.eye(m), xy)
            for c in RECENCY[1:]:
                name = f"before → after b={b} ridge={ridge} r={c}"
                yield name, (recent(rows, when, c) @ B).astype(np.float32)


def standardised(scores: np.ndarray) -> np.ndarray:
    scores = scores - scores.mean(axis=1, keepdims=True)
    return (scores / np.maximum(scores.std(axis=1, keepdims=True), 1e-12)).astype(np.float32)


def greedy(found: dict[str, np.ndarray], task: Task) -> tuple[list[str], list[float]]:
    """Add models while AUC + nDCG@10 gains .002; return them and the figures."""
    order: list[str] = []
    total, best = np.float32(0.0), [0.0, 0.0]
    for _ in range(12):
        tried = {name: means(total + scores, task.rows, task.wanted) for name, scores in found.items()}
        name = max(tried, key=lambda name: sum(tried[name]))
        if sum(tried[name]) < sum(best) + 0.002:
            break
        order, total, best = [*order, name], total + found[name], tried[name]
    return order, best


def tasks(setting: str) -> Iterator[tuple[Task, Task]]:
    """Yield the validation and the test of each fold."""
    name, protocol = setting.split("/")
    data = small() if name == "ml-latest-small" else load_dataset(name)
    times = time_matrix(data)
    for fold in split(data, protocol, folds=2 if name == "ml-latest-small" else None):
        if protocol == "leave-one-out":
            keep = fold.train.tocoo()
            inner = Interactions.from_ids(keep.row, keep.col, time=time_of(times, keep))
            part = next(split(inner, protocol))
            left, hidden = (same_ids(part.train, inner, data), same_ids(part.test, inner, data))
            held = np.flatnonzero(np.diff(hidden.indptr))
            hidden = hidden[held]
        else:
            left, hidden, held = later_halves(fold.train, times)
        yield (
            Task(left, held, hidden, times),
            Task(fold.train, fold.users, fold.test[fold.users], times),
        )


def family(name: str) -> str:
    return name.split(":")[0].split(" b=")[0]


def time_of(times: sp.csr_matrix, likes: sp.coo_matrix) -> np.ndarray:
    return np.asarray(times[likes.row, likes.col]).ravel()


def same_ids(part: sp.csr_matrix, inner: Interactions, data: Interactions) -> sp.csr_matrix:
    """Return a matrix of renumbered users and items in the numbers of the data."""
    part = part.tocoo()
    users, items = np.asarray(inner.user_ids).astype(int), np.asarray(inner.item_ids).astype(int)
    shape = (data.n_users, data.n_items)
    return sp.csr_matrix((part.data, (users[part.row], items[part.col])), shape, dtype=np.float32)


def small() -> Interactions:
    """Return ml-latest-small's items of five ratings or more."""
    path = Path(os.environ["RECSYS_DATA"]) / "ml-latest-small" / "ratings.csv"
    rows = pd.read_csv(path)
    rows = rows[rows.groupby("movieId")["userId"].transform("size") >= 5]
    return Interactions.from_ids(rows["userId"], rows["movieId"], time=rows["timestamp"])


def main() -> None:
    settings = sys.argv[1:] or [
        "movielens/half-profile-time", "movielens/leave-one-out", "ml-latest-small/half-profile-time",
    ]  # fmt: skip
    for setting in settings:
        validated: dict[str, list[list[float]]] = {}
        tested: dict[str, list[list[float]]] = {}
        for inside, outside in tasks(setting):
            families: dict[str, dict[str, np.ndarray]] = {}
            for make in (peers, directed, windows):
                for name, scores in make(inside):
                    figures = means(scores, inside.rows, inside.wanted)
                    validated.setdefault(name, []).append(figures)
                    kept = families.setdefault(f"{make.__name__}: {family(name)}", {})
                    before = next((sum(validated[old][-1]) for old in kept), 0.0)
                    if sum(figures) > before:  # the best of each family
                        kept.clear()
                        kept[name] = standardised(scores)
            blends = {}
            for label, among in BLENDS.items():
                chosen_from = {
                    name: scores for group, kept in families.items() if group.split(":")[0] in among
                    for name, scores in kept.items()
                }  # fmt: skip
                blends[label] = greedy(chosen_from, inside)
            best = [name for kept in families.values() for name in kept]
            wanted = {*best, *(name for order, _ in blends.values() for name in order)}
            again: dict[str, np.ndarray] = {}
            for make in (peers, directed, windows):
                for name, scores in make(outside, wanted):
                    if name in wanted:
                        again[name] = standardised(scores)
            for label, kept in families.items():
                name = next(iter(kept))
                tested.setdefault("best of " + label, []).append(
                    means(again[name], outside.rows, outside.wanted)
                )
                print(
                    setting, label, name, validated[name][-1], tested["best of " + label][-1], flush=True
                )
            for label, (order, figures) in blends.items():
                validated.setdefault(label, []).append(figures)
                total = sum(again[name] for name in order)
                tested.setdefault(label, []).append(means(total, outside.rows, outside.wanted))
                print(setting, label, order, figures, tested[label][-1], flush=True)
        append_csv(
            "directed_kernels", COLUMNS,
            [
                (setting, part, name, *np.mean(values, axis=0))
                for part, found in (("validation", validated), ("test", tested))
                for name, values in found.items()
            ],
        )  # fmt: skip


if __name__ == "__main__":
    main()
