"""Why a link is predicted: the pairs of features that a score is the sum of, or what changes it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from recsys.links.base import LinkPredictor
from recsys.utils.memory import check_fits
from recsys.utils.validation import check_integer

__all__ = ["LinkReasons", "link_reasons"]

LEFT, RIGHT = range(2)


class LinkReasons(NamedTuple):
    """The explanation of a predicted link.

    Attributes
    ----------
    kind : "exact" or "changes"
        The score is base + left + right + the listed pairs + others; or the model is no such sum, and
        the changes say how much the score falls without a feature.
    score : float
        Above 0 for a link.
    base, left, right : float
        A constant, and what each end's features add by themselves.
    pairs : tuple of (int, int, float)
        Features of the left and of the right end, and what both together add: the largest first,
        whatever the sign.
    others : float
        What the pairs add that are not listed.
    unlisted : int
        Number of these.
    changes : tuple of (int, int, float)
        End (0 left, 1 right), feature, and by how much the score falls without it.

    Examples
    --------
    >>> LinkReasons("exact", 0.7, 0.1, 0.0, 0.0, ((3, 5, 0.4),), 0.2, 4).pairs[0]
    (3, 5, 0.4)
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
    """Return the features of two objects that make their score.

    The score of a bilinear model, a PairNet, a factorization machine or a PairSVM is a sum over pairs of
    features; a product of more than two of them is shared equally by its pairs across the ends. Networks
    are no such sum: each feature is left out in turn.

    Parameters
    ----------
    model : fitted LinkPredictor
    A, B
        Features as in `LinkPredictor.decision_function`.
    left, right : int
        Rows of A and of B.
    N : int ≥ 1
        How many are listed.

    Raises
    ------
    InputError
        As `LinkPredictor.decision_function`, or for an N below 1.

    Examples
    --------
    >>> import numpy as np
    >>> from recsys.links import FactorizedBilinear
    >>> A, pairs = np.eye(4), np.array([[0, 1], [1, 2], [0, 2], [0, 3], [1, 3], [2, 3]])
    >>> model = FactorizedBilinear(n_components=2).fit(A, None, pairs, [1, 1, 1, 0, 0, 0])
    >>> found = link_reasons(model, A, None, 0, 1)
    >>> round(found.base + sum(value for *_, value in found.pairs) - found.score, 9)
    0.0
    """
    check_integer("N", N, 1)
    score = float(model.decision_function(A, B, [[left, right]])[0])
    features = [sp.csr_matrix(X)[[at]].nnz for X, at in ((A, left), (A if B is None else B, right))]
    check_fits(
        4.0 * features[0] * features[1],
        f"the pairs of {features[0]} and {features[1]} features",
        "describe the objects by fewer features",
    )
    parts = model.parts(A, B, left, right)
    if parts is None:
        return LinkReasons("changes", score, changes=_changes(model, A, B, left, right, score)[:N])
    flat = parts.pairs.ravel()
    used = int(np.count_nonzero(flat))
    size = np.abs(flat)  # two authors' words make millions of pairs: they are not sorted
    some = min(N, used)
    least = np.partition(size, len(size) - some)[len(size) - some] if some else np.inf
    near = np.flatnonzero(size >= least)
    best = near[np.lexsort([near, -size[near]])][:some]
    width = max(parts.pairs.shape[1], 1)
    listed = tuple(
        (int(parts.rows[k // width]), int(parts.columns[k % width]), float(flat[k])) for k in best
    )
    return LinkReasons(
        "exact",
        score,
        parts.base,
        parts.left,
        parts.right,
        listed,
        float(flat.sum() - flat[best].sum()),
        used - len(best),
    )


def _changes(
    model: LinkPredictor, A: Any, B: Any, left: int, right: int, score: float
) -> tuple[tuple[int, int, float], ...]:
    """Return by how much the score falls without each feature, the largest change first."""
    A = sp.csr_matrix(A, dtype=np.float64)
    rows = (A[[left]], A[[right]] if B is None else sp.csr_matrix(B, dtype=np.float64)[[right]])
    found = []
    for side in (LEFT, RIGHT):
        row = rows[side]
        n = row.nnz
        if n == 0:
            continue
        without = sp.csr_matrix(sp.vstack([row] * n))
        without.data[np.arange(n) * (n + 1)] = 0.0  # the k-th feature of the k-th copy
        # of one kind both ends are rows of one table, the other one the last
        pairs = np.column_stack([np.arange(n), np.full(n, n if B is None else 0)])
        pairs = pairs if side == LEFT else np.ascontiguousarray(pairs[:, ::-1])
        other = rows[1 - side]
        if B is None:
            scores = model.decision_function(sp.csr_matrix(sp.vstack([without, other])), None, pairs)
        else:
            ends = (without, other) if side == LEFT else (other, without)
            scores = model.decision_function(*ends, pairs)
        found += [(side, int(f), float(score - s)) for f, s in zip(row.indices, scores, strict=True)]
    return tuple(sorted(found, key=lambda one: -abs(one[2])))
