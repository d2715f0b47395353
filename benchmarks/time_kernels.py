"""CF-KOMD with recency: kernels × regularization × recency, chosen on hidden later halves.

MovieLens 100K in time order (half-profile-time). In each fold the later half of the profiles of half of
the training part's users is hidden once more; AUC + nDCG@10 on it chooses λ_p and recency of every
kernel, and only what is chosen is tested. Beside the program with a ridge λ_p/ω for each like stands the
factor afterwards, α ∝ α·ω of the thesis' program.

python -m benchmarks.time_kernels
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.lab.common import write_csv
from recsys.data import split
from recsys.data.side_information import SideInformation
from recsys.datasets import load_dataset
from recsys.evaluation.metrics import parse_metric, ranking_values
from recsys.rankers import make_ranker

PROTOCOL = "half-profile-time"
KERNELS = ("linear", "mc,degree=2", "md,degree=2", "hp", "tanimoto")
RECENCY = (0.0, 0.25, 0.5, 1.0, 2.0)
REGULARIZATION = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
METRICS = [parse_metric(name) for name in ("auc", "ndcg@10")]
COLUMNS = ("part", "form", "kernel", "regularization", "recency", "auc", "ndcg@10")


def later_halves(
    train: sp.csr_matrix, times: sp.csr_matrix, seed: int = 0
) -> tuple[sp.csr_matrix, sp.csr_matrix, np.ndarray]:
    """Hide the later half of half of the profiles; return what is left, the hidden rows, their users."""
    rng = np.random.default_rng(seed)
    able = np.flatnonzero(np.diff(train.indptr) >= 2)
    held = np.sort(rng.choice(able, size=len(able) // 2, replace=False))
    left, hidden = train.tolil(), sp.lil_matrix(train.shape, dtype=np.float32)
    for user in held:
        items = rng.permutation(train[user].indices)
        when = times[user].toarray().ravel()[items]
        later = items[np.argsort(-when, kind="stable")][: len(items) // 2]
        left[user, later] = 0
        hidden[user, later] = 1
    kept = sp.csr_matrix(left)
    kept.eliminate_zeros()
    return kept, sp.csr_matrix(hidden)[held], held


def means(scores: np.ndarray, rows: sp.csr_matrix, wanted: sp.csr_matrix) -> list[float]:
    return [float(value) for value in np.nanmean(ranking_values(METRICS, scores, rows, wanted), axis=0)]


def recent(rows: sp.csr_matrix, when: sp.csr_matrix, recency: float) -> sp.csr_matrix:
    """Return ω of each like, on the pattern of the rows."""
    out = rows.astype(np.float64)
    for u in range(rows.shape[0]):
        own = slice(rows.indptr[u], rows.indptr[u + 1])
        times = when[u].toarray().ravel()[rows.indices[own]]
        newer = len(times) - np.searchsorted(np.sort(times), times, side="right")
        out.data[own] = (newer + 1.0) ** -recency
    return out


def both_forms(
    ranker: Any, users: np.ndarray, rows: sp.csr_matrix, when: sp.csr_matrix, recency: float
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the scores with recency in the program, and as a factor on its weights without it."""
    yield "ridge", ranker.set_params(recency=recency).scores(users, rows, times=when)
    if recency:
        ranker.set_params(recency=0.0)
        alpha = ranker.weights(rows)[0]
        scaled = alpha.multiply(recent(rows, when, recency)).tocsr()
        total = np.asarray(scaled.sum(axis=1)).ravel()
        scaled = sp.diags(1.0 / np.where(total > 0, total, 1.0)) @ scaled
        yield "factor", ranker.scores(users, rows) + (scaled - alpha) @ ranker.gram_


def main() -> None:
    data = load_dataset("movielens")
    times = SideInformation(data, PROTOCOL).times
    validated: dict[tuple[str, str, float, float], list[list[float]]] = {}
    tested: dict[tuple[str, str], list[list[float]]] = {}
    for number, fold in enumerate(split(data, PROTOCOL), 1):
        left, hidden, held = later_halves(fold.train, times)
        for kernel in KERNELS:
            spec = dict(
                zip(("kernel", "degree"), kernel.replace("degree=", "").split(","), strict=False)
            )
            params: dict[str, Any] = spec | ({"degree": int(spec["degree"])} if "degree" in spec else {})
            ranker = make_ranker("cf-komd", **params).fit(left, show_progress=False)
            found: dict[tuple[str, float, float], list[float]] = {}
            for ridge in REGULARIZATION:
                ranker.set_params(regularization=ridge)
                for recency in RECENCY:
                    for form, scores in both_forms(ranker, held, left[held], times[held], recency):
                        found[form, ridge, recency] = means(scores, left[held], hidden)
            for (form, ridge, recency), figures in found.items():
                validated.setdefault((form, kernel, ridge, recency), []).append(figures)
            ranker.fit(fold.train, show_progress=False)
            rows, wanted = fold.train[fold.users], fold.test[fold.users]
            for form in ("none", "ridge", "factor"):
                able = {
                    key: sum(value)
                    for key, value in found.items()
                    if (key[2] == 0 if form == "none" else key[0] == form or key[2] == 0)
                }
                _, ridge, recency = max(able, key=lambda key: able[key])
                ranker.set_params(regularization=ridge)
                made = dict(both_forms(ranker, fold.users, rows, times[fold.users], recency))
                figures = means(made.get(form, made["ridge"]), rows, wanted)
                tested.setdefault((form, kernel), []).append([ridge, recency, *figures])
                print(number, kernel, form, ridge, recency, figures, flush=True)
    rows_out: list[tuple[Any, ...]] = [
        ("validation", *key[:2], *key[2:], *np.mean(values, axis=0)) for key, values in validated.items()
    ]
    for (form, kernel), values in tested.items():
        chosen = [" ".join(f"{v[column]:g}" for v in values) for column in (0, 1)]
        rows_out.append(("test", form, kernel, *chosen, *np.mean(values, axis=0)[2:]))
    write_csv("time_kernels", COLUMNS, rows_out)


if __name__ == "__main__":
    main()
