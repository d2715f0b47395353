"""Similarity of recommended items to each other and to the user's items, by their common users."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError
from recsys.evaluation.metrics.base import ListContext, set_metric
from recsys.evaluation.metrics.first_items import FirstItems

ROWS = 512  # users at a time: a list's summed item vectors have an entry for each user


@set_metric(
    "diversity",
    "intra-list diversity: 1 less the mean cosine of all pairs among the first k, an item being the "
    "users who have it in training; without a value for a list of fewer than two",
)
def diversity(first: ArrayLike | FirstItems, context: ListContext) -> NDArray[np.float64]:
    """Return 1 − the mean cosine of the pairs of the first items; arguments as in `novelty`.

    NaN for fewer than two.

    Notes
    -----
    Source: Ziegler et al. 2005, with the cosine of the items' columns in training. The expectation over
    tied items needs the sums of three kinds of pairs only: of sure items, of tied ones, and between.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from recsys.evaluation.metrics import ListContext, diversity
    >>> context = ListContext(sp.csr_matrix([[1, 1, 0], [1, 1, 0], [0, 0, 1]]))
    >>> diversity([[0, 1], [0, 2]], context).round(6)
    array([0., 1.])
    """
    chosen, unit = context.first(first), context.unit_items
    norms = np.asarray(unit.multiply(unit).sum(axis=1)).ravel()  # 1, or 0 for a cold item
    out = np.full(len(chosen.drawn), np.nan)
    for start in range(0, len(out), ROWS):
        rows = slice(start, start + ROWS)
        sure, tied = chosen.sure[rows], chosen.tied[rows]
        drawn, size = chosen.drawn[rows], np.diff(sure.indptr) + chosen.drawn[rows]
        of_sure, of_tied = sure @ unit, tied @ unit
        within = (_dot(of_sure, of_sure) - sure @ norms) / 2
        between = _dot(of_sure, of_tied)
        among = (_dot(of_tied, of_tied) - tied @ norms) / 2
        ties = np.diff(tied.indptr)
        one = drawn / np.maximum(ties, 1)  # odds that one of the tied is chosen, and that two are
        two = one * (drawn - 1) / np.maximum(ties - 1, 1)
        pairs = size * (size - 1) / 2
        total = within + one * between + two * among
        alike = np.divide(total, pairs, out=np.full(len(size), np.nan), where=pairs > 0)
        out[rows] = 1.0 - alike
    return out


@set_metric(
    "serendipity",
    "mean over the first k of relevance × unexpectedness: 1 for a test item, times 1 less its mean "
    "cosine with the user's own items, an item being the users who have it in training",
)
def serendipity(first: ArrayLike | FirstItems, context: ListContext) -> NDArray[np.float64]:
    """Return how much of the first items is both wanted and unlike what the user has.

    Parameters
    ----------
    first, context
        As in `novelty`; the context with `test`.

    Returns
    -------
    (users,) float64
        NaN for a user without test items.

    Raises
    ------
    InputError
        If the context has no test items.

    Notes
    -----
    Source: unexpectedness as in Zhang et al. 2012, times relevance. A user without a profile expects
    nothing.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from recsys.evaluation.metrics import ListContext, serendipity
    >>> train, test = sp.csr_matrix([[1, 0, 0], [1, 1, 0]]), sp.csr_matrix([[0, 1, 1], [0, 0, 1]])
    >>> serendipity([[1, 2], [2, -1]], ListContext(train, test))
    array([0.64644661, 1.        ])
    """
    if context.test is None:
        raise InputError("serendipity needs test items: give ListContext a test matrix")
    chosen, unit = context.first(first), context.unit_items
    profiles, tested, expected = context.profiles, context.tested, chosen.expected
    size = chosen.size
    out = np.full(len(size), np.nan)
    for start in range(0, len(out), ROWS):
        rows = slice(start, start + ROWS)
        own = profiles[rows]
        mean = sp.diags(1.0 / np.maximum(np.diff(own.indptr), 1)) @ own @ unit
        hits = expected[rows].multiply(tested[rows] != 0).tocoo()
        cosine = np.asarray(mean.tocsr()[hits.row].multiply(unit[hits.col]).sum(axis=1)).ravel()
        gained = np.bincount(hits.row, hits.data * (1.0 - cosine), minlength=own.shape[0])
        wanted = np.diff(tested[rows].indptr) > 0
        divided = np.divide(gained, size[rows], out=np.zeros(len(gained)), where=size[rows] > 0)
        out[rows] = np.where(wanted, divided, np.nan)
    return out


def _dot(A: sp.csr_matrix, B: sp.csr_matrix) -> NDArray[np.float64]:
    """Return the inner products of the rows of two matrices."""
    return np.asarray(A.multiply(B).sum(axis=1), dtype=np.float64).ravel()
