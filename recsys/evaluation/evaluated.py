"""The evaluated users, their data, and the lists that they got."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data import Fold, Interactions


@dataclass(frozen=True)
class Lists:
    """The first items that a model recommends to each evaluated user.

    Attributes
    ----------
    ids : (rows, k) int32
        Best first, equal scores by item index; −1 is padding.
    scores : (rows, k) float32

    Examples
    --------
    >>> import numpy as np
    >>> Lists(np.array([[4, 2]]), np.array([[0.5, 0.25]])).ids
    array([[4, 2]])
    """

    ids: NDArray[np.int32]
    scores: NDArray[np.float32]


@dataclass(frozen=True)
class Evaluated:
    """The evaluated users, one row a user and fold, in the order of `Result.per_user`.

    Attributes
    ----------
    users, folds : (rows,) int64
        Numbers from 0.
    profile : (rows,) int64
        Items that the user has in training.
    popularity : (rows,) float64
        How many users have a tested item in training, on average over the tested items.
    user_ids, item_ids : (users,), (items,) object
    user_features : DataFrame, optional
        One row a user of the data.
    tested : (rows, items) float32 CSR, optional
        What was to be predicted; where lists were asked to be kept.

    Examples
    --------
    >>> from recsys import EASE, evaluate, load_dataset
    >>> report = evaluate(load_dataset("sample"), EASE(), metrics=["auc"], folds=2)
    >>> len(report.evaluated.users), report.evaluated.user_ids[report.evaluated.users[0]]
    (400, 'u0001')
    """

    users: NDArray[np.int64]
    folds: NDArray[np.int64]
    profile: NDArray[np.int64]
    popularity: NDArray[np.float64]
    user_ids: NDArray[np.object_]
    item_ids: NDArray[np.object_]
    user_features: pd.DataFrame | None = None
    tested: sp.csr_matrix | None = None


def evaluated(data: Interactions, folds: Sequence[Fold], keep_tested: bool = False) -> Evaluated:
    """Return who is evaluated in the folds, with what was hidden if that is asked for."""
    profile, popularity, tests = [], [], []
    for fold in folds:
        counts = np.bincount(fold.train.indices, minlength=data.n_items).astype(np.float64)
        test = fold.test[fold.users]
        profile.append(np.diff(fold.train.indptr)[fold.users].astype(np.int64))
        popularity.append(test @ counts / np.maximum(np.diff(test.indptr), 1))
        tests.append(test)
    return Evaluated(
        users=np.concatenate([fold.users for fold in folds]),
        folds=np.repeat(np.arange(len(folds)), [len(fold.users) for fold in folds]),
        profile=np.concatenate(profile),
        popularity=np.concatenate(popularity),
        user_ids=data.user_ids,
        item_ids=data.item_ids,
        user_features=data.user_features,
        tested=sp.vstack(tests, format="csr") if keep_tested else None,
    )
