"""Lists of the best items of rows, and of the most similar items or users: blocks, padding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.rankers._ties import break_ties, tie_order_of
from recsys.utils.topn import LOWEST, Candidates, top_n

__all__ = ["Request", "best_lists", "nearest", "score_rows"]

BLOCK_BYTES = 64_000_000
LIST_BLOCK = 8_192  # users at a time where not all items are scored

Lists = tuple[NDArray[np.int32], NDArray[np.float32]]


@dataclass(frozen=True)
class Request:
    """Rows to rank items for."""

    users: NDArray[np.int64] | None  # of the fit; None for rows of others
    rows: sp.csr_matrix
    times: NDArray[np.float64] | None  # of the rows' entries

    def part(self, start: int, stop: int) -> Request:
        """Return the request of some of the rows."""
        rows = self.rows[start:stop]
        return Request(
            None if self.users is None else self.users[start:stop],
            rows,
            None if self.times is None else self.times[self.rows.indptr[start] :][: rows.nnz],
        )


def best_lists(ranker: Any, asked: Request, N: int, skip_liked: bool, allowed: Candidates) -> Lists:
    """Return ids and scores of the N best of the candidates for each row, padded with −1 and `LOWEST`.

    Best first, equal scores by item index, or as the ranker's `ties` have it.
    """
    count, items = asked.rows.shape
    width = min(N, items if allowed.size == 0 else allowed.size)
    ids, best = _unfilled(count, width)
    # With `items` all are ranked, liked ones last: no fewer are scored for that.
    prunes = ranker._prunes() and not allowed.listed
    block = LIST_BLOCK if prunes else max(1, BLOCK_BYTES // (4 * items))
    for start in range(0, count, block):
        stop = start + block
        part = asked if count <= block else asked.part(start, stop)  # slicing costs a call 0.05 ms
        if prunes:
            ranker._fill_best(
                part.rows, part.times if ranker._scores_in_time else None, skip_liked, allowed.mask,
                ids[start:stop], best[start:stop],
            )  # fmt: skip
            empty = start + np.flatnonzero(ranker.falls_back(part.users, part.rows))
            if len(empty):
                ids[empty], best[empty] = _most_popular(ranker, allowed, width)
        else:
            top_n(
                score_rows(ranker, part), part.rows, skip_liked, allowed.mask, ids[start:stop],
                best[start:stop], liked_last=allowed.listed,
            )  # fmt: skip
    return ids, best


def score_rows(ranker: Any, asked: Request) -> NDArray[np.floating]:
    """Return the scores of all items, (rows, items); rows without interactions have popularity."""
    timed = ranker._timed(asked.times)
    if asked.users is None:
        out = ranker._fold_in_scores(asked.rows, **timed)
    else:
        out = ranker._scores(asked.users, asked.rows, **timed)
    if ranker.ties is not None:
        out = break_ties(out, tie_order_of(ranker))
    empty = ranker.falls_back(asked.users, asked.rows)
    if empty.any():
        out[empty] = ranker.popularity_
    scores: NDArray[np.floating] = out
    return scores


def nearest(
    similarity: Callable[[NDArray[np.int64]], NDArray[np.floating]],
    asked: NDArray[np.int64],
    N: int,
    allowed: Candidates,
) -> Lists:
    """Return the N most similar of the candidates to each of the items or users asked for."""
    ids, best = _unfilled(len(asked), min(N, max(1, allowed.size)))
    block = max(1, BLOCK_BYTES // (4 * max(1, len(allowed.mask))))
    for start in range(0, len(asked), block):
        stop = min(start + block, len(asked))
        scores = similarity(asked[start:stop])
        nothing = _nothing(*scores.shape)
        top_n(scores, nothing, False, allowed.mask, ids[start:stop], best[start:stop])
    return ids, best


def _most_popular(ranker: Any, allowed: Candidates, N: int) -> Lists:
    """Return the list of a row without interactions."""
    ids, best = _unfilled(1, N)
    top_n(ranker.popularity_[None], _nothing(1, ranker.n_items_), False, allowed.mask, ids, best)
    return ids[0], best[0]


def _unfilled(rows: int, N: int) -> Lists:
    return np.full((rows, N), -1, dtype=np.int32), np.full((rows, N), LOWEST, dtype=np.float32)


def _nothing(rows: int, items: int) -> sp.csr_matrix:
    return sp.csr_matrix((rows, items), dtype=np.float32)
