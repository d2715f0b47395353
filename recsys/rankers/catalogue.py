"""A fitted ranker together with what it was fitted on: ids, titles and histories, in one file.

`Ranker.save` keeps numbers only, as implicit does. The command line, the app and the
service speak in ids, so their files hold both.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data import Interactions
from recsys.data.side_information import SideInformation
from recsys.errors import InputError, ModelFileError
from recsys.rankers.base import Ranker
from recsys.rankers.serialization import read_ranker
from recsys.utils import model_file
from recsys.utils.sparse import row_of

TEXTS = ("user_ids", "item_ids", "titles")


@dataclass(frozen=True)
class Profile:
    """For whom a list is made: a user that the ranker was fitted on, or anybody's liked items.

    Attributes
    ----------
    user : int or None
        The user's row at fit; None for somebody never seen.
    row : (1, items) CSR
        The liked items.
    unknown : tuple of str
        Ids of items that the catalogue does not have.

    Examples
    --------
    >>> from recsys.utils.sparse import row_of
    >>> somebody = Profile(None, row_of([1, 4], 6))
    >>> somebody.userid, somebody.items.tolist(), somebody.new
    (0, [1, 4], True)
    """

    user: int | None
    row: sp.csr_matrix
    unknown: tuple[str, ...] = ()

    @property
    def userid(self) -> int:
        """What rankers take as the user; for somebody never seen a label only."""
        return 0 if self.user is None else self.user

    @property
    def new(self) -> bool:
        """Whether the ranker has to fold the row in."""
        return self.user is None

    @property
    def items(self) -> NDArray[np.int32]:
        """The liked items, ascending."""
        return self.row.indices


@dataclass(frozen=True)
class Bundle:
    """A ranker and its catalogue.

    Attributes
    ----------
    ranker : Ranker
    user_ids, item_ids, titles : (users,), (items,), (items,) object
    user_items : (users, items) float32 CSR
        What was fitted on.

    Examples
    --------
    >>> from recsys import load_dataset, make_ranker
    >>> bundle = fit_bundle(make_ranker("ease"), load_dataset("sample"), show_progress=False)
    >>> bundle.user_items.shape == (len(bundle.user_ids), len(bundle.item_ids))
    True
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

    @cached_property
    def user_index(self) -> dict[str, int]:
        """Rows of the users by id."""
        return {str(name): k for k, name in enumerate(self.user_ids)}

    @cached_property
    def item_index(self) -> dict[str, int]:
        """Columns of the items by id."""
        return {str(name): k for k, name in enumerate(self.item_ids)}

    def rows(self, users: Sequence[str]) -> tuple[NDArray[np.int64], sp.csr_matrix]:
        """Return indices and histories of users by id; an unknown id is named."""
        found = Interactions.lookup("user", self.user_ids, users)
        return found, self.user_items[found]

    def items(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """Return the indices of items by id; an unknown id is named."""
        return Interactions.lookup("item", self.item_ids, ids)

    def known_items(self, ids: Sequence[str]) -> tuple[list[int], list[str]]:
        """Return the indices of those items that there are, and the ids that are unknown."""
        index = self.item_index
        return [index[i] for i in ids if i in index], [i for i in ids if i not in index]

    def profile(
        self,
        user: str | None = None,
        history: Sequence[str] | None = None,
        *,
        skip_unknown: bool = False,
    ) -> Profile:
        """Return the profile of a user by id, or of somebody who likes the items of these ids.

        Parameters
        ----------
        user : str, optional
        history : sequence of str, optional
            Exactly one of the two; a history may be empty.
        skip_unknown : bool
            Keep unknown ids of a history in the profile's `unknown` instead of refusing them.

        Raises
        ------
        InputError
            If not exactly one is given, or an id is unknown, which is named.
        """
        if (user is None) == (history is None):
            raise InputError("name whom by exactly one of user and history")
        if user is not None:
            index = self.user_index.get(user, -1)
            if index < 0:
                self.rows([user])  # refuses it by name
            matrix = self.user_items
            # Without scipy's indexing, which takes as long as a recommendation.
            liked = matrix.indices[matrix.indptr[index] : matrix.indptr[index + 1]]
            return Profile(index, row_of(liked, matrix.shape[1]))
        known, unknown = self.known_items(history or ())
        if unknown and not skip_unknown:
            self.items(unknown)  # refuses them by name
        return Profile(None, row_of(known, self.user_items.shape[1]), tuple(unknown))


def fit_bundle(ranker: Ranker, data: Interactions, **options: Any) -> Bundle:
    """Fit a ranker on interactions, with what it can use of their features and times, and keep both."""
    matrix = data.matrix
    ranker.fit(matrix, **SideInformation(data).of(ranker), **options)
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
