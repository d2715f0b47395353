"""scikit-learn's cross-validation of rankers: groups of users, and half of each profile predicted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.data.splits import user_groups
from recsys.errors import InputError
from recsys.evaluation.metrics import parse_metric, ranking_values
from recsys.evaluation.metrics.base import RankingMetric
from recsys.utils.sparse import masked, random_halves
from recsys.utils.validation import check_integer, clean_matrix

BLOCK_BYTES = 64_000_000


@dataclass(frozen=True)
class UserSplit:
    """Split the rows of a (users, items) matrix into training users and test users.

    The groups are those of the protocol half-profile with the same number and seed, but the visible
    halves of test users are not used in training.

    Examples
    --------
    >>> import numpy as np
    >>> [test.tolist() for _, test in UserSplit(2).split(np.ones((5, 3)))]
    [[1, 2, 3], [0, 4]]
    """

    n_splits: int = 5
    seed: int = 0

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield training and test rows; `y` and `groups` are ignored."""
        users = int(np.shape(X)[0])
        folds = check_integer("n_splits", self.n_splits, 2, users)
        rng = np.random.default_rng(check_integer("seed", self.seed, 0))
        group = user_groups(users, folds, rng)
        for fold in range(folds):
            yield np.flatnonzero(group != fold), np.flatnonzero(group == fold)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of groups."""
        return self.n_splits


@dataclass(frozen=True)
class RankingScorer:
    """A scorer of rankers for `cross_val_score` and `GridSearchCV`.

    It hides and predicts a random half of each row: the smaller one of an odd number of items.

    The metric is one of rankings: auc, ndcg@k, map@k, precision@k, recall@k, hit@k, mrr@k.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from recsys import EASE, load_dataset
    >>> likes = load_dataset("sample").matrix
    >>> grid = {"regularization": [1.0, 100.0, 1000.0]}
    >>> search = GridSearchCV(EASE(), grid, scoring=RankingScorer("ndcg@10"), cv=UserSplit(3))
    >>> search.fit(likes, show_progress=False).best_params_
    {'regularization': 100.0}
    """

    metric: str = "ndcg@10"
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(parse_metric(self.metric)[0], RankingMetric):
            text = f"metric {self.metric!r} needs the training data, which a scorer does not have"
            raise InputError(f"{text}: use recsys.evaluate")

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        """Return the mean of the metric over users with at least two items; NaN without any."""
        liked = clean_matrix(X)
        keep = random_halves(liked, np.random.default_rng(self.seed))
        seen, hidden = masked(liked, keep), masked(liked, ~keep)
        parsed, values = [parse_metric(self.metric)], []
        block = max(1, BLOCK_BYTES // (4 * liked.shape[1]))
        for start in range(0, liked.shape[0], block):
            rows = seen[start : start + block]
            scores = estimator.scores(np.arange(rows.shape[0]), rows, recalculate_user=True)
            values += ranking_values(parsed, scores, rows, hidden[start : start + block])[:, 0].tolist()
        return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")
