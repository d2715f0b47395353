"""Why a link is predicted: the pairs of features that a score is the sum of, or what changes it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from recsys.links.base import LinkPredictor
from recsys.utils.memory import check_fits
from recsys.utils.validation import check_integer

__all__ = ["LinkReasons", "link_reasons"]


class LinkReasons(NamedTuple):
    """The explanation of a predicted link.

    Attributes
    ----------
    kind : "exact" or "changes"
        "exact": the score is base + left + right + listed pairs + others. "changes": the decrease of the
        score without each feature.
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

    Examples
    --------
    >>> import numpy as np
    >>> from recsys.links import FactorizedBilinear
    >>> A, pairs = np.eye(4), np.array([[0, 1], [1, 2], [0, 2], [0, 3], [1, 3], [2, 3]])
    >>> model = FactorizedBilinear(n_components=2).fit(A, None, pairs, [1, 1, 1, 0, 0, 0])
    >>> why = link_reasons(model, A, None, 0, 1)
    >>> round(why.base + sum(value for *_, value in why.pairs) - why.score, 9)
    0.0
    """
    check_integer("N", N, 1)
    score = float(model.decision_function(A, B, [[left, right]])[0])
    ends = [
        sp.csr_matrix(X, dtype=np.float64)[[at]] for X, at in ((A, left), (A if B is None else B, right))
    ]
    check_fits(
        4.0 * ends[0].nnz * ends[1].nnz,
        f"the pairs of {ends[0].nnz} and {ends[1].nnz} features",
        "describe the objects by fewer features",
    )
    parts = model.parts(A, B, left, right)
    if parts is None:
        return LinkReasons("changes", score, changes=tuple(_changes(model, ends, B is None, score)[:N]))
    flat = parts.pairs.ravel()
    used = np.flatnonzero(flat)
    if len(used) > N:  # two authors' words make millions of pairs: they are not sorted
        sizes = np.abs(flat[used])
        used = used[sizes >= np.partition(sizes, len(sizes) - N)[len(sizes) - N]]
    best = used[np.argsort(-np.abs(flat[used]), kind="stable")][:N]
    rows, columns = np.unravel_index(best, parts.pairs.shape)
    listed = zip(
        parts.rows[rows].tolist(), parts.columns[columns].tolist(), flat[best].tolist(), strict=True
    )
    return LinkReasons(
        "exact",
        score,
        parts.base,
        parts.left,
        parts.right,
        tuple(listed),
        float(flat.sum() - flat[best].sum()),
        int(np.count_nonzero(flat)) - len(best),
    )


def _changes(
    model: LinkPredictor, ends: list[sp.csr_matrix], one_kind: bool, score: float
) -> list[tuple[int, int, float]]:
    """Return by how much the score falls without each feature, the largest change first."""
    out = []
    for side, row in enumerate(ends):
        n = row.nnz
        if n == 0:
            continue
        copies = sp.csr_matrix(sp.vstack([row] * n + [ends[1 - side]] * one_kind))
        copies.data[np.arange(n) * (n + 1)] = 0.0  # the k-th feature of the k-th copy
        pairs = np.column_stack([np.arange(n), np.full(n, n if one_kind else 0)])
        pairs = pairs if side == 0 else pairs[:, ::-1]
        other = None if one_kind else ends[1 - side]
        A, B = (copies, other) if side == 0 or one_kind else (other, copies)
        scores = model.decision_function(A, B, pairs)
        out += [(side, int(f), float(score - s)) for f, s in zip(row.indices, scores, strict=True)]
    return sorted(out, key=lambda change: -abs(change[2]))
