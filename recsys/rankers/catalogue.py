"""A fitted ranker together with what it was fitted on: ids, titles and histories, in one file.

`Ranker.save` keeps numbers only, as implicit does. The command line, the app and the
service speak in ids, so their files hold both.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data import Interactions
from recsys.data.side_information import side_information
from recsys.errors import ModelFileError
from recsys.rankers.base import Ranker
from recsys.rankers.serialization import read_ranker
from recsys.utils import model_file

TEXTS = ("user_ids", "item_ids", "titles")


@dataclass(frozen=True)
class Bundle:
    """A ranker and its catalogue.

    Attributes
    ----------
    ranker : Ranker
    user_ids, item_ids, titles : (users,), (items,), (items,) object
    user_items : (users, items) float32 CSR
        What was fitted on.
    """

    ranker: Ranker
    user_ids: NDArray[np.object_]
    item_ids: NDArray[np.object_]
    titles: NDArray[np.object_]
    user_items: sp.csr_matrix

    def save(self, path: model_file.Target) -> None:
        """Write everything to exactly `path`, atomically, or to a file open for writing bytes."""
        arrays: dict[str, Any] = {f"catalogue.{key}": _pack(getattr(self, key)) for key in TEXTS}
        for part in ("data", "indices", "indptr"):
            arrays[f"history.{part}"] = getattr(self.user_items, part)
        self.ranker.save(path, arrays)

    def rows(self, users: list[str]) -> tuple[NDArray[np.int64], sp.csr_matrix]:
        """Return indices and histories of users by id; an unknown id is named."""
        found = Interactions.lookup("user", self.user_ids, users)
        return found, self.user_items[found]

    def history(self, items: list[str]) -> sp.csr_matrix:
        """Return one row that likes the items of these ids; an unknown id is named."""
        found = np.unique(Interactions.lookup("item", self.item_ids, items))
        shape = (1, len(self.item_ids))
        return sp.csr_matrix((np.ones(len(found), np.float32), found, [0, len(found)]), shape)


def fit_bundle(ranker: Ranker, data: Interactions, **options: Any) -> Bundle:
    """Fit a ranker on interactions, with what it can use of their features and times, and keep both."""
    matrix = data.matrix
    ranker.fit(matrix, **side_information(data).of(ranker), **options)
    return Bundle(ranker, data.user_ids, data.item_ids, data.titles, matrix)


def load_bundle(path: model_file.Target) -> Bundle:
    """Read what `Bundle.save` wrote, from a path or a file open for reading bytes.

    Raises
    ------
    ModelFileError
        If the file is damaged or forged, or holds a ranker without its catalogue.
    """
    ranker, arrays = read_ranker(path)
    path = model_file.name_of(path)
    if not all(f"catalogue.{key}" in arrays for key in TEXTS):
        raise ModelFileError(f"{path} holds a ranker without ids: write it with `recsys fit --out`")
    users, items = ranker.n_users_, ranker.n_items_
    texts = {
        key: _unpack(path, key, arrays[f"catalogue.{key}"], users if key == "user_ids" else items)
        for key in TEXTS
    }
    for key in ("user_ids", "item_ids"):
        if pd.Index(texts[key]).has_duplicates:
            raise ModelFileError(f"{path}: {key} holds an id twice")
    history = model_file.sparse(path, "history", arrays, (users, items))
    if history.data.dtype != np.float32 or not (np.isfinite(history.data) & (history.data > 0)).all():
        raise ModelFileError(f"{path}: the histories hold values that are not above 0")
    return Bundle(ranker, user_items=history, **texts)


def _pack(texts: NDArray[np.object_]) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps([str(text) for text in texts]).encode(), dtype=np.uint8)


def _unpack(path: str, key: str, packed: NDArray[np.uint8], size: int) -> NDArray[np.object_]:
    try:
        texts = json.loads(packed.tobytes())
        fine = isinstance(texts, list) and all(isinstance(text, str) for text in texts)
    except (ValueError, RecursionError):
        fine = False
    if not fine or len(texts) != size:
        raise ModelFileError(f"{path}: {key} does not name each of {size:,} rows")
    out = np.empty(size, dtype=object)
    out[:] = texts
    return out
