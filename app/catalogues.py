"""A dataset with what pages derive from it once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from app.parts.titles import natural, typed
from recsys.data import Interactions
from recsys.datasets.base import DATASETS
from recsys.explain import Attributes, item_attributes
from recsys.rankers.catalogue import Profile, times_of
from recsys.reranking import tail_items
from recsys.utils.dates import dated

GRADES = 20  # different ratings at most that are taken for a scale; more are counts or a dial


@dataclass(frozen=True)
class Catalogue:
    """A dataset with what pages derive from it once. It stays as it is.

    Attributes
    ----------
    key : tuple
        Identifies the data: ("dataset", name) or ("upload", digest), and the threshold where the
        data have ratings.
    data : Interactions
        What counts as liked.
    times : (users, items) float64 CSR or None
        When each like of `matrix` happened, of its pattern; 0 is unknown.
    dated : bool
        Whether times are dates, and not positions in an order.
    ratings : (users, items) sparse matrix or None
        Every rating of these users and items, also those below the threshold.
    least, lowest, top : float or None
        The threshold, and the ends of the scale; None without ratings.
    """

    key: tuple[Any, ...]
    data: Interactions
    matrix: sp.csr_matrix
    titles: NDArray[np.object_]
    labels: tuple[str, ...]
    attributes: Attributes
    popularity: NDArray[np.float64]
    years: NDArray[np.float64]
    times: sp.csr_matrix | None = None
    dated: bool = False
    ratings: sp.csr_matrix | None = None
    least: float | None = None
    lowest: float | None = None
    top: float | None = None

    @cached_property
    def users(self) -> dict[str, int]:
        """Return the row of each user's id."""
        return {str(name): k for k, name in enumerate(self.data.user_ids)}

    @cached_property
    def items(self) -> dict[str, int]:
        """Return the column of each item's id."""
        return {str(name): k for k, name in enumerate(self.data.item_ids)}

    @cached_property
    def item_ids(self) -> list[str]:
        """Return the items' ids, the most popular first."""
        order = np.argsort(-self.popularity, kind="stable")
        return [str(self.data.item_ids[k]) for k in order]

    @cached_property
    def tail(self) -> NDArray[np.bool_]:
        """Return which items are outside the most popular ones that hold 80% of all likes."""
        return tail_items(self.popularity)

    def label(self, item_id: str) -> str:
        """Return an item as it is offered: found with and without its accents."""
        return typed(self.labels[self.items[item_id]])

    @property
    def word(self) -> str:
        """What having an item means: "liked", or "rated" where every rating counts."""
        every = self.least is not None and self.lowest is not None and self.least <= self.lowest
        return "rated" if every else "liked"

    def rated(self, user: int) -> dict[int, str]:
        """Return what a user gave items, as it is shown: '4 of 5'."""
        if self.ratings is None or self.top is None:
            return {}
        row = self.ratings[user]
        return {int(k): f"{v:g} of {self.top:g}" for k, v in zip(row.indices, row.data, strict=True)}

    def user(self, user: int) -> Profile:
        """Return the profile of a user of the data."""
        row = self.matrix[user]
        own = slice(*self.matrix.indptr[user : user + 2])
        return Profile(user, row, when=None if self.times is None else self.times.data[own])

    def profile(self, items: list[int]) -> Profile:
        """Return the profile of a user who liked these items, the oldest like first."""
        return Profile.in_order(items, self.matrix.shape[1])


def datasets() -> list[str]:
    """Return the datasets that can be used without a download, the embedded one first."""
    ready = [
        n for n in DATASETS.names() if not DATASETS.get(n).where().startswith(("on first", "needs"))
    ]
    return ["sample", *(name for name in ready if name != "sample")]


def usual_threshold(ratings: NDArray[np.float64]) -> float:
    """Return the lowest rating that counts as liked until the visitor chooses: the lowest of all.

    Ratings at or below 0 are none of the data where they are read.
    """
    return float(ratings.min())


def catalogue_of(key: tuple[Any, ...], data: Interactions, least: float | None = None) -> Catalogue:
    """Derive what pages need; of rated data, pairs rated `least` or more count as liked."""
    every, ratings = data, None
    if every.rating is not None:
        least = usual_threshold(every.rating) if least is None else least
        data = every if least <= every.rating.min() else every.rated(least)
        user = pd.Index(data.user_ids).get_indexer(pd.Index(every.user_ids))[every.users]
        item = pd.Index(data.item_ids).get_indexer(pd.Index(every.item_ids))[every.items]
        known = (user >= 0) & (item >= 0)
        ratings = sp.csr_matrix(
            (every.rating[known], (user[known], item[known])), (data.n_users, data.n_items)
        )
    matrix = data.matrix
    years = np.full(data.n_items, np.nan)
    if data.item_features is not None and "year" in data.item_features:
        years = pd.to_numeric(data.item_features["year"], errors="coerce").to_numpy(np.float64)
    titles = np.array([natural(str(title)) for title in data.titles], dtype=object)
    seen: dict[str, int] = {}
    labels = []
    for k, title in enumerate(titles):
        seen[str(title)] = seen.get(str(title), 0) + 1
        labels.append(str(title) if seen[str(title)] == 1 else f"{title} [{data.item_ids[k]}]")
    times = times_of(data)
    popularity = np.bincount(matrix.indices, minlength=data.n_items).astype(np.float64)
    about: dict[str, Any] = {}
    if every.rating is not None:
        about = {"least": least, "lowest": float(every.rating.min()), "top": float(every.rating.max())}
    return Catalogue(
        key, data, matrix, titles, tuple(labels), item_attributes(data), popularity, years, times,
        times is not None and dated(times.data), ratings, **about,
    )  # fmt: skip
