"""The items most similar to one, varied if asked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError
from recsys.rankers.answers import Recommendations
from recsys.rankers.base import Ranker
from recsys.reranking.diversity import POOL, check_diversity, diversify
from recsys.utils.validation import check_integer


def similar(
    ranker: Ranker, item: int, N: int = 10, *, diversity: float = 0.0, item_users: Any = None,
    filter_items: ArrayLike | None = None, items: ArrayLike | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:  # fmt: skip
    """Return the items most similar to one, itself left out, varied as by `rerank`.

    Parameters
    ----------
    ranker : fitted Ranker
    item : int
    N : int ≥ 1
    diversity, item_users
        As in `rerank`.
    filter_items, items : int array, optional
        Items to leave out, or the only ones to consider; not both.

    Returns
    -------
    (ids, scores)
        At most N, in the order taken.

    Raises
    ------
    InputError, NotFittedError
        As `similar_items`; for a diversity out of range or without `item_users`.

    Examples
    --------
    >>> from recsys import load_dataset, make_ranker
    >>> R = load_dataset("sample").matrix
    >>> model = make_ranker("ease").fit(R, show_progress=False)
    >>> ids, scores = similar(model, 3, 5)
    >>> ids.shape, 3 in ids
    ((5,), False)
    """
    N = check_integer("N", N, 1)
    check_diversity(diversity, item_users)
    if items is not None and filter_items is not None:
        raise InputError("pass filter_items or items, not both")
    allowed: dict[str, Any] = {
        "filter_items": [item, *np.atleast_1d(() if filter_items is None else filter_items)]
    }
    if items is not None:
        allowed = {"items": [k for k in np.atleast_1d(items) if k != item]}
    found = ranker.similar_items(item, N=max(N, POOL) if diversity else N, **allowed)
    return tuple(diversify(Recommendations(*found), N, diversity, item_users))  # type: ignore[return-value]
