"""The disjunctive kernel at high degree: today's figures beside exact arithmetic, and beside floats.

    python -m benchmarks.kernel_digits [--data-dir FOLDER]

On the first fold of FilmTrust and MovieLens 100K, CF-KOMD with mD of degree 20 to 200 in both forms, dense
and structured, against the same programs' weights scored in 100-digit arithmetic on the kernel's whole
numbers; and what plain floating point makes of it: K in float32 (as this project had it until now) and
K − 1, right to its last digit, in float64. `lists` is the share of users whose ten items, in order, are
those of exact arithmetic. Writes results/kernel_digits.csv; about four minutes.

Differences between the best items' scores are 1e-10 of the scores at degree 50 and below 1e-60 at degree
200: float64 cannot hold them beside the scores, and its nDCG there is that of rounding. Centring
(`recsys.kernels.gram.dense.centred_item_gram`) can.
"""

from __future__ import annotations

import argparse
import csv
from decimal import Decimal, localcontext
from math import comb
from pathlib import Path
from unittest import mock

import numpy as np
import scipy.sparse as sp

from recsys import make_ranker
from recsys.data import split
from recsys.datasets import load_dataset
from recsys.evaluation import metrics as M

RESULTS = Path(__file__).parent / "results" / "kernel_digits.csv"
DEGREES = (20, 50, 100, 200)
DIGITS = 100


def measured(scores, train, test):
    found = M.ranking_values([M.parse_metric(name) for name in ("auc", "ndcg@10")], scores, train, test)
    return np.nanmean(found, axis=0)


def tops(scores, train):
    scores = np.where(train.toarray() > 0, -np.inf, scores)
    return np.argsort(-scores, axis=1, kind="stable")[:, :10]


def exact_ranks(common, n, degree, rows):
    """Dense ranks of the exact scores (best highest, ties equal) of the rows' weights, (users, items)."""
    m = len(common)
    own = common.diagonal()
    with localcontext() as context:
        context.prec = DIGITS
        whole = comb(n, degree)
        miss = [Decimal(comb(n - k, degree)) / whole for k in range(n + 1)]
        root = [(1 - g).sqrt() for g in miss]
        cells: dict[tuple[int, int, int], Decimal] = {}

        def kernel(i, j):
            a, b, s = int(own[i]), int(own[j]), int(common[i, j])
            if i == j:
                return Decimal(1)
            if not a or not b:
                return Decimal(0)
            key = (a, b, s) if a <= b else (b, a, s)
            if key not in cells:
                cells[key] = (1 - miss[a] - miss[b] + miss[a + b - s]) / (root[a] * root[b])
            return cells[key]

        K = [[kernel(i, j) for j in range(m)] for i in range(m)]
        totals = [sum(row, Decimal(0)) for row in K]
        out = np.zeros(rows.shape)
        for u in range(rows.shape[0]):
            liked = rows.indices[rows.indptr[u] : rows.indptr[u + 1]].tolist()
            alpha = [Decimal(float(x)) for x in rows.data[rows.indptr[u] : rows.indptr[u + 1]]]
            given, rest = sum(alpha), m - len(liked)
            weights = [x / given + Decimal(1) / rest for x in alpha]
            mine = [K[i] for i in liked]
            scores = [
                sum((w * row[j] for w, row in zip(weights, mine, strict=True)), -totals[j] / rest)
                for j in range(m)
            ]
            place = {score: rank for rank, score in enumerate(sorted(set(scores)))}
            out[u] = [place[score] for score in scores]
    return out


def plain(common, n, degree):
    """K − 1 in float64, from logarithms, and K in float32."""
    own = common.diagonal()
    k = np.arange(n, dtype=np.longdouble)
    miss = np.concatenate(([1], np.cumprod(np.maximum(n - k - degree, 0) / (n - k))))
    a, b = miss[own][:, None], miss[own][None, :]
    either = miss[own[:, None] + own[None, :] - common]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (either - a * b) / ((1 - a) * (1 - b))  # of the kernel to √ of its own values, less 1
        log = np.log1p(ratio) + 0.5 * (np.log1p(-a) + np.log1p(-b))
        less = np.expm1(log).astype(np.float64)
    none = own == 0
    less[none] = less[:, none] = -1.0
    np.fill_diagonal(less, 0.0)
    return less, (less + 1.0).astype(np.float32)


def float_scores(K, alpha, train):
    rest = (K.shape[0] - np.diff(train.indptr))[:, None]
    ones = sp.csr_matrix((np.ones(train.nnz), train.indices, train.indptr), train.shape)
    return alpha @ K - (K.sum(axis=1, dtype=K.dtype)[None, :] - ones @ K) / rest


def main(data_dir: str | None) -> None:
    rows = []
    for name in ("filmtrust", "movielens"):
        fold = next(iter(split(load_dataset(name, data_dir), "half-profile", seed=0)))
        train, test = fold.train[fold.users], fold.test[fold.users]
        common = (fold.train.T @ fold.train).toarray().astype(np.int64)
        n = fold.train.shape[0]
        for degree in DEGREES:
            with mock.patch("recsys.rankers._margin.prefers_dense", lambda *_: False):
                structured = make_ranker("cf-komd", kernel="md", degree=degree).fit(fold.train)
            dense = make_ranker("cf-komd", kernel="md", degree=degree).fit(fold.train)
            alpha, _ = dense.weights(train)
            exact = exact_ranks(common, n, degree, alpha)
            less, narrow = plain(common, n, degree)
            best = tops(exact, train)
            for form, scores in (
                ("exact", exact),
                ("dense", dense.scores(fold.users, train)),
                ("structured", structured.scores(fold.users, train)),
                ("K - 1 in float64", float_scores(less, alpha, train)),
                (
                    "K in float32",
                    float_scores(narrow, alpha.astype(np.float32), train).astype(np.float32),
                ),
            ):
                auc, ndcg = measured(np.ascontiguousarray(scores), train, test)
                same = (tops(scores, train) == best).all(axis=1).mean()
                row = {"dataset": name, "degree": degree, "form": form}
                rows.append(
                    row | {"auc": f"{auc:.4f}", "ndcg@10": f"{ndcg:.4f}", "lists": f"{same:.4f}"}
                )
                print(*rows[-1].values(), sep="\t", flush=True)
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data-dir")
    main(parser.parse_args().data_dir)
