"""Why a link is predicted: the pairs of features that a score is the sum of, or what changes it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from recsys.links.base import LinkPredictor, as_features
from recsys.utils.validation import check_integer


class LinkReasons(NamedTuple):
    """The explanation of a predicted link.

    Attributes
    ----------
    kind : "exact" or "changes"
        Whether the score is base + left + right + pairs + others, or `changes` tell what changes it.
    score : float
        Above 0 for a link.
    base, left, right : float
        Constant, and contributions of the features of each end alone.
    pairs : tuple of (int, int, float)
        Features of the left and right end, and the contribution of the pair; largest magnitude first.
    others : float
        Sum of the contributions of unlisted pairs.
    unlisted : int
        Number of unlisted pairs.
    changes : tuple of (int, int, float)
        End (0 left, 1 right), feature, and decrease of the score without it.
    """

    kind: str
    score: float
    base: float = 0.0
    left: float = 0.0
    right: float = 0.0
    pairs: tuple[tuple[int, int, float], ...] = ()
    others: float = 0.0
    unlisted: int = 0
    changes: tuple[tuple[int, int, float], ...] = ()


def link_reasons(
    model: LinkPredictor, A: Any, B: Any, left: int, right: int, N: int = 10
) -> LinkReasons:
    """Return the contributions of the features of two objects to their score.

    The score of a bilinear model, a PairNet, a factorization machine or a PairSVM is a sum over pairs of
    features; a product of more features is divided equally among its pairs across the ends. For
    networks, each feature is removed in turn.

    Parameters
    ----------
    model : fitted LinkPredictor
    A, B
        Features as in `LinkPredictor.decision_function`.
    left, right : int
        Rows of A and of B.
    N : int ≥ 1
        Largest number of pairs or features to list.
    """
    check_integer("N", N, 1)
    score = float(model.decision_function(A, B, [[left, right]])[0])
    a = as_features("A", A)[[left]]
    b = as_features("B", A if B is None else B)[[right]]
    parts = model.parts(a, b)
    if parts is None:
        return LinkReasons("changes", score, changes=tuple(_changes(model, a, b)[:N]))
    flat = parts.pairs.ravel()
    best = np.argsort(-np.abs(flat), kind="stable")[:N]
    best = best[flat[best] != 0.0]
    rows, columns = np.unravel_index(best, parts.pairs.shape)
    features = a.indices[rows].tolist(), b.indices[columns].tolist()
    return LinkReasons(
        "exact",
        score,
        parts.base,
        parts.left,
        parts.right,
        tuple(zip(*features, flat[best].tolist(), strict=True)),
        float(flat.sum() - flat[best].sum()),
        int(np.count_nonzero(flat)) - len(best),
    )


def _changes(model: LinkPredictor, a: sp.csr_matrix, b: sp.csr_matrix) -> list[tuple[int, int, float]]:
    """Return by how much the score falls without each feature, the largest change first."""
    out = []
    for side, row in enumerate((a, b)):
        n = row.nnz
        copies = row[np.zeros(n + 1, dtype=int)]
        copies.data[np.arange(n) * (n + 1) + n] = 0.0  # the k-th feature of copy k + 1
        pairs = np.zeros((n + 1, 2), dtype=int)
        pairs[:, side] = np.arange(n + 1)
        scores = model.decision_function(*((a, copies) if side else (copies, b)), pairs)
        falls = (scores[0] - scores[1:]).tolist()
        out += [(side, f, fall) for f, fall in zip(row.indices.tolist(), falls, strict=True)]
    return sorted(out, key=lambda change: -abs(change[2]))
