"""Rankers as models of RecTools: fitted on its datasets, recommending in its tables."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.adapters.times import latest_times
from recsys.errors import InputError
from recsys.rankers import Ranker
from recsys.rankers.registry import ranker_of
from recsys.utils.topn import all_but

try:
    from rectools import Columns
    from rectools.models.base import ModelBase, ModelConfig
except ImportError as error:
    raise ImportError(
        "recsys.adapters.rectools needs RecTools: pip install rectools (0.19 wants numpy below 2 on "
        "Python below 3.13: there, install it with --no-deps, with pandas below 3 and typeguard)"
    ) from error

__all__ = ["RankerModel", "RankerModelConfig"]


class RankerModelConfig(ModelConfig):  # type: ignore[misc]
    """The configuration of a `RankerModel`.

    Attributes
    ----------
    model : str
        A ranker's specification.
    """

    model: str = "auto"


class RankerModel(ModelBase[RankerModelConfig]):  # type: ignore[misc]
    """A ranker as a model of RecTools.

    It recommends to users of the dataset it was fitted on, and, where the ranker ranks rows of users
    never seen, to users of another dataset with the same items. Item features and times of the dataset
    reach rankers that use them; weights reach those that read magnitudes.

    Parameters
    ----------
    model : str or Ranker
        A specification such as "ease:regularization=500", or an unfitted ranker, of which a copy is
        fitted.
    verbose : int
        Show progress while fitting, above 0.

    Examples
    --------
    >>> import pandas as pd
    >>> from rectools.dataset import Dataset
    >>> table = pd.DataFrame({"user_id": [1, 1, 2, 2, 3], "item_id": [7, 8, 7, 9, 8], "weight": 1.0})
    >>> data = Dataset.construct(table.assign(datetime="2024-01-01"))
    >>> model = RankerModel("ease:regularization=1").fit(data)
    >>> model.recommend([3], data, k=1, filter_viewed=True)["item_id"].tolist()
    [7]
    """

    recommends_for_warm = False
    recommends_for_cold = False
    config_class = RankerModelConfig

    def __init__(self, model: str | Ranker = "auto", verbose: int = 0) -> None:
        super().__init__(verbose=verbose)
        self.model = model
        self._unfitted()  # refuses a wrong name now

    def _unfitted(self) -> Ranker:
        if isinstance(self.model, str):
            return ranker_of(self.model)
        if not isinstance(self.model, Ranker):
            raise InputError(
                "model must be a ranker or a specification such as 'ease', not "
                f"{type(self.model).__name__}"
            )
        return copy.deepcopy(self.model)

    def _get_config(self) -> RankerModelConfig:
        if not isinstance(self.model, str):
            raise InputError("a config holds text: give the ranker as a specification such as 'ease'")
        return RankerModelConfig(cls=self.__class__, model=self.model, verbose=self.verbose)

    @classmethod
    def _from_config(cls, config: RankerModelConfig) -> RankerModel:
        return cls(model=config.model, verbose=config.verbose)

    def _fit(self, dataset: Any) -> None:
        ranker, rows = self._unfitted(), dataset.get_user_item_matrix(include_weights=True)
        known: dict[str, Any] = {}
        wanted = ranker.wanted()
        if "times" in wanted:
            known["times"] = _times(dataset, rows.shape)
        if "item_features" in wanted and dataset.item_features is not None:
            known["item_features"] = dataset.get_hot_item_features().get_sparse()
        self.ranker = ranker.fit(rows, show_progress=self.verbose > 0, **known)
        self.user_ids = dataset.user_id_map.external_ids[: rows.shape[0]]
        self.item_ids = dataset.item_id_map.external_ids[: rows.shape[1]]

    def _recommend_u2i(
        self,
        user_ids: NDArray[np.int64],
        dataset: Any,
        k: int,
        filter_viewed: bool,
        sorted_item_ids_to_recommend: NDArray[np.int64] | None,
    ) -> tuple[Any, Any, Any]:
        self._check_items(dataset)
        rows = dataset.get_user_item_matrix(include_weights=True)
        same = np.array_equal(dataset.user_id_map.external_ids[: rows.shape[0]], self.user_ids)
        found = self.ranker.recommend(
            user_ids,
            rows[user_ids],
            N=k,
            filter_already_liked_items=filter_viewed,
            filter_items=all_but(rows.shape[1], sorted_item_ids_to_recommend),
            recalculate_user=not same,
        )
        return _flat(user_ids, found.ids, found.scores)

    def _recommend_i2i(
        self,
        target_ids: NDArray[np.int64],
        dataset: Any,
        k: int,
        sorted_item_ids_to_recommend: NDArray[np.int64] | None,
    ) -> tuple[Any, Any, Any]:
        self._check_items(dataset)
        ids, scores = self.ranker.similar_items(target_ids, N=k, items=sorted_item_ids_to_recommend)
        return _flat(target_ids, ids, scores)

    def _check_items(self, dataset: Any) -> None:
        if not np.array_equal(dataset.item_id_map.external_ids[: len(self.item_ids)], self.item_ids):
            raise InputError(
                "the dataset's items are not those that the model was fitted on, in their order"
            )


def _flat(
    targets: NDArray[np.int64], ids: NDArray[np.int32], scores: NDArray[np.float32]
) -> tuple[Any, Any, Any]:
    """Return lists as three columns, without padding."""
    kept = ids >= 0
    return np.repeat(targets, kept.sum(axis=1)), ids[kept], scores[kept]


def _times(dataset: Any, shape: tuple[int, int]) -> sp.csr_matrix:
    """Return when each pair last happened, in seconds."""
    table = dataset.interactions.df
    seconds = table[Columns.Datetime].to_numpy("datetime64[ns]").astype(np.int64) / 1e9
    return latest_times(table[Columns.User], table[Columns.Item], seconds, shape)
