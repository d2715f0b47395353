"""Rankers as scorers of LensKit: trained on its datasets, part of its pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from recsys.adapters.times import latest_times
from recsys.rankers import Ranker
from recsys.rankers.registry import ranker_of
from recsys.utils.sparse import row_of

try:
    from lenskit.data import Dataset, ItemList, QueryInput, RecQuery
    from lenskit.pipeline import Component
    from lenskit.training import Trainable, TrainingOptions
    from pydantic import BaseModel
except ImportError as error:
    raise ImportError(
        "recsys.adapters.lenskit needs LensKit of 2025 or later: pip install lenskit (with PyTorch)"
    ) from error

__all__ = ["RankerScorer", "RankerScorerConfig"]


class RankerScorerConfig(BaseModel):  # type: ignore[misc]
    """The configuration of a `RankerScorer`.

    Attributes
    ----------
    model : str
        A ranker's specification, such as "ease:regularization=500".
    """

    model: str = "auto"


class RankerScorer(Component[ItemList], Trainable):  # type: ignore[misc]
    """A ranker as a scoring component of LensKit: `topn_pipeline(RankerScorer(model="ease"))`.

    A query with a history is ranked by it, where the ranker ranks rows of users never seen; a query
    with a user id alone, or a ranker that knows only the users it was fitted on, by the user's row in
    training. Where neither is known, and for items that are not in training, scores are NaN.

    Parameters
    ----------
    config : RankerScorerConfig, optional
        Or its entries by name: `model`.

    Examples
    --------
    >>> import pandas as pd
    >>> from lenskit import recommend, topn_pipeline
    >>> from lenskit.data import from_interactions_df
    >>> table = pd.DataFrame({"user_id": [1, 1, 2, 2, 3], "item_id": [7, 8, 7, 9, 8]})
    >>> pipeline = topn_pipeline(RankerScorer(model="ease:regularization=1"))
    >>> pipeline.train(from_interactions_df(table))
    >>> recommend(pipeline, 3, 1).ids().tolist()
    [7]
    """

    config: RankerScorerConfig
    ranker: Ranker

    def train(self, data: Dataset, options: TrainingOptions | None = None) -> None:
        """Fit the ranker on who has what, unless it is fitted and no new training is asked for."""
        if hasattr(self, "ranker") and options is not None and not options.retrain:
            return
        ranker = ranker_of(self.config.model)
        self.users, self.items = data.users, data.items
        self.rows = _matrix(data)
        known: dict[str, Any] = {}
        if "times" in ranker.wanted():
            known["times"] = _times(data, self.rows.shape)
        self.ranker = ranker.fit(self.rows, show_progress=False, **known)

    def __call__(self, query: QueryInput, items: ItemList) -> ItemList:
        """Return the items with their scores, NaN where there is nothing to score by."""
        asked = RecQuery.create(query)
        number = -1
        if asked.user_id is not None:
            found = self.users.number(asked.user_id, missing=None)
            number = -1 if found is None else int(found)
        history = asked.query_items if "fold-in" in self.ranker.capabilities else None
        scores = np.full(len(items), np.nan, dtype=np.float32)
        if (history is None and number < 0) or not len(items):
            return ItemList(items, scores=scores)
        if history is None:
            every = self.ranker.scores(number, self.rows[[number]])[0]
        else:
            known = history.numbers(vocabulary=self.items, missing="negative")
            row = row_of(known[known >= 0], self.rows.shape[1])
            every = self.ranker.scores(0, row, recalculate_user=True)[0]
        numbers = items.numbers(vocabulary=self.items, missing="negative")
        inside = numbers >= 0
        scores[inside] = every[numbers[inside]]
        return ItemList(items, scores=scores)


def _matrix(data: Dataset) -> sp.csr_matrix:
    """Return ones for all pairs, (users, items) CSR."""
    table = data.interaction_table(format="pandas", original_ids=False)
    shape = (data.user_count, data.item_count)
    pairs = (table["user_num"].to_numpy(), table["item_num"].to_numpy())
    out = sp.csr_matrix((np.ones(len(table), dtype=np.float32), pairs), shape)
    out.data[:] = 1.0
    return out


def _times(data: Dataset, shape: tuple[int, int]) -> sp.csr_matrix | None:
    """Return when each pair last happened, in the dataset's unit; None where it has no times."""
    if "timestamp" not in data.interactions().attribute_names:
        return None
    table = data.interaction_table(format="pandas", fields=["timestamp"])
    moments = table["timestamp"].astype("int64").to_numpy(np.float64)
    return latest_times(table["user_num"], table["item_num"], moments, shape)
