"""Several metrics of one fold, measured block by block of its users."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.evaluation.metrics.base import ListContext, ListMetric, Metric, RankingMetric, SetMetric
from recsys.evaluation.metrics.first_items import FirstItems
from recsys.evaluation.metrics.ranking import ranking_values
from recsys.utils.topn import LOWEST, candidates, top_n


class Measurement:
    """Metrics that are asked for, and what has been measured of them.

    Parameters
    ----------
    asked : sequence of (Metric, k, name)
        As `parse_metric` returns them.
    context : ListContext
    depth : int ≥ 0
        How long lists are at least, whatever the metrics need; `lists` returns them.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from recsys.evaluation.metrics import ListContext, Measurement, parse_metric
    >>> train, test = sp.csr_matrix([[1, 0, 0]]), sp.csr_matrix([[0, 1, 0]])
    >>> measured = Measurement([parse_metric("auc"), parse_metric("coverage@1")], ListContext(train))
    >>> measured.add(np.array([[0.0, 2.0, 1.0]], dtype=np.float32), train, test)
    >>> measured.values()
    {'auc': array([1.]), 'coverage@1': array([0.33333333])}
    """

    def __init__(
        self, asked: Sequence[tuple[Metric, int, str]], context: ListContext, depth: int = 0
    ) -> None:
        self._asked, self._context = list(asked), context
        self._of_rankings = [one for one in asked if isinstance(one[0], RankingMetric)]
        self._depth = min(
            context.n_items,
            max([depth, *(k for metric, k, _ in asked if isinstance(metric, ListMetric))]),
        )
        self._of_sets = [one for one in asked if isinstance(one[0], SetMetric)]
        self._sets: list[NDArray[np.float64]] = []
        self._added = 0
        self._every_item = candidates(context.n_items, None, None).mask
        self._values: list[NDArray[np.float64]] = []
        self._ids: list[NDArray[np.int32]] = []
        self._best: list[NDArray[np.float32]] = []

    def add(self, scores: NDArray[np.float32], train: sp.csr_matrix, test: sp.csr_matrix) -> None:
        """Measure a block of users: (users, items) scores, and the rows of train and test.

        Raises
        ------
        InputError
            If scores are not finite.
        """
        if not np.isfinite(scores).all():
            raise InputError("scores hold NaN or infinity: there is no order to evaluate")
        if self._of_rankings:
            self._values.append(ranking_values(self._of_rankings, scores, train, test))
        if self._depth:
            top = np.full((len(scores), self._depth), -1, dtype=np.int32)
            best = np.full(top.shape, LOWEST, dtype=np.float32)
            top_n(scores, train, True, self._every_item, top, best)
            self._ids.append(top)
            self._best.append(best)
        if self._of_sets:
            part = self._context.part(slice(self._added, self._added + len(scores)))
            self._sets.append(self._of_first(scores, train, part))
        self._added += len(scores)

    def _of_first(
        self, scores: NDArray[np.float32], train: sp.csr_matrix, part: ListContext
    ) -> NDArray[np.float64]:
        """Return the metrics of sets, (users, metrics); the first items are found once for each k."""
        first = {k: FirstItems.of_scores(scores, train, k) for _, k, _ in self._of_sets}
        columns = [
            metric.measure(first[k], part)
            for metric, k, _ in self._of_sets
            if isinstance(metric, SetMetric)
        ]
        return np.column_stack(columns)

    def values(self) -> dict[str, NDArray[np.float64]]:
        """Return the values of all users added, (users,) float64 a metric.

        A metric with one value a fold has it at every user, so that means stay what they are.
        """
        table = np.concatenate(self._values) if self._values else np.empty((0, len(self._of_rankings)))
        ids, _ = self.lists()
        sets = np.concatenate(self._sets) if self._sets else np.empty((0, len(self._of_sets)))
        out = {name: table[:, column] for column, (_, _, name) in enumerate(self._of_rankings)}
        out |= {name: sets[:, column] for column, (_, _, name) in enumerate(self._of_sets)}
        for metric, k, name in self._asked:
            if isinstance(metric, ListMetric):
                extra = {"feature": metric.feature} if metric.takes_feature else {}
                value = metric.measure(ids[:, :k], self._context, **extra)
                out[name] = np.broadcast_to(np.asarray(value, dtype=np.float64), len(ids)).copy()
        return out

    def lists(self, depth: int | None = None) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the first items of all users added, and their scores: (users, depth) each."""
        if not self._ids:
            empty = (0, self._depth)
            return np.full(empty, -1, dtype=np.int32), np.full(empty, LOWEST, dtype=np.float32)
        return np.concatenate(self._ids)[:, :depth], np.concatenate(self._best)[:, :depth]
