"""A dataset with what pages derive from it once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from app.parts.text import natural, searchable
from recsys import Interactions
from recsys.datasets.fetch import DATASETS
from recsys.explain import Attributes, item_attributes

MOST_VALUES = 60  # of a column that is offered as a filter
TITLES = ("title", "name")


@dataclass(frozen=True)
class Catalog:
    """A dataset with what pages derive from it. Ids are texts here.

    Attributes
    ----------
    key : hashable
        Identifies the data and the threshold.
    name : str
        Of the dataset, as it is chosen.
    data : Interactions
        What counts as liked.
    every : Interactions
        All interactions, also those rated below the threshold.
    least : float or None
        The rating from which on an item counts as liked.
    """

    key: Hashable
    name: str
    data: Interactions
    every: Interactions
    least: float | None = None

    @cached_property
    def matrix(self) -> Any:
        """Return the users × items matrix of likes."""
        return self.data.matrix

    @cached_property
    def users(self) -> dict[str, Any]:
        """Return the users' ids by their texts."""
        return {str(user): user for user in self.data.user_ids}

    @cached_property
    def items(self) -> dict[str, Any]:
        """Return the items' ids by their texts, the most popular first."""
        return {str(self.data.item_ids[k]): self.data.item_ids[k] for k in self.by_popularity}

    @cached_property
    def user_rows(self) -> dict[str, int]:
        """Return each user's row of the matrix."""
        return {str(user): k for k, user in enumerate(self.data.user_ids)}

    @cached_property
    def item_columns(self) -> dict[str, int]:
        """Return each item's column of the matrix."""
        return {str(item): k for k, item in enumerate(self.data.item_ids)}

    @cached_property
    def popularity(self) -> NDArray[np.int64]:
        """Return how many users like each item."""
        return np.bincount(self.matrix.indices, minlength=self.data.n_items)

    @cached_property
    def by_popularity(self) -> NDArray[np.int64]:
        """Return the items' columns, the most popular first."""
        return np.argsort(-self.popularity, kind="stable")

    @cached_property
    def titles(self) -> dict[str, str]:
        """Return each item's title; the id where there is none."""
        names = [natural(str(title)) for title in self.data.titles]
        return dict(zip(map(str, self.data.item_ids), names, strict=True))

    @cached_property
    def names(self) -> dict[str, str]:
        """Return each item's title, one that occurs twice with the id behind it."""
        seen: set[str] = set()
        names = {}
        for item, title in self.titles.items():
            names[item] = f"{title} [{item}]" if title in seen else title
            seen.add(title)
        return names

    @cached_property
    def labels(self) -> dict[str, str]:
        """Return each item as it is offered."""
        return {item: searchable(name) for item, name in self.names.items()}

    @cached_property
    def attributes(self) -> Attributes:
        """Return the items' attributes as 0/1 features."""
        return item_attributes(self.data)

    @cached_property
    def years(self) -> pd.Series | None:
        """Return the items' years, where there is such a column with more than one."""
        table = self.data.item_features
        if table is None or "year" not in table:
            return None
        years = pd.to_numeric(table["year"], errors="coerce")
        return years if years.nunique() > 1 else None

    @cached_property
    def categories(self) -> dict[str, list[str]]:
        """Return the values of each column of the item table that has few."""
        table = self.data.item_features
        columns: dict[str, list[str]] = {}
        for name in () if table is None else table.columns:
            if name in (*TITLES, "year") or pd.api.types.is_numeric_dtype(table[name]):
                continue
            if (table[name].astype(str).to_numpy() == self.data.titles.astype(str)).all():
                continue  # the column of the titles
            values = table[name].dropna().astype(str).str.split("|").explode().str.strip()
            values = sorted(set(values) - {""})
            if 1 < len(values) <= MOST_VALUES:
                columns[str(name)] = values
        return columns

    @property
    def verb(self) -> str:
        """What having an item is called: "liked", or "rated" where every rating counts."""
        return "rated" if self.least is not None and self.least <= self.every.rating.min() else "liked"

    def about(self, item: str) -> list[str]:
        """Return the year and the categories of an item, at most four."""
        table, k = self.data.item_features, self.item_columns[item]
        chips = []
        if self.years is not None and np.isfinite(self.years.iloc[k]):
            year = f"{self.years.iloc[k]:.0f}"
            chips += [] if year in self.titles[item] else [year]
        for name in self.categories:
            value = table[name].iloc[k]
            chips += [] if pd.isna(value) else [part.strip() for part in str(value).split("|")]
        return [chip for chip in chips if chip][:4]

    def history(self, user: str) -> list[str]:
        """Return what a user likes, the oldest first where there are times."""
        rows = np.flatnonzero(self.data.users == self.user_rows[user])
        if self.data.time is not None:
            rows = rows[np.argsort(self.data.time[rows], kind="stable")]
        items = [str(self.data.item_ids[k]) for k in self.data.items[rows]]
        return list(dict.fromkeys(items))

    def draw(self, users: int, items: int, seed: int = 0) -> Interactions:
        """Return the interactions of some users, drawn at random, with the most popular items."""
        data = self.data
        kept = np.random.default_rng(seed).permutation(data.n_users)[:users]
        rows = np.isin(data.users, kept) & np.isin(data.items, self.by_popularity[:items])
        drawn = Interactions.from_ids(data.user_ids[data.users[rows]], data.item_ids[data.items[rows]])
        tables = {"users": data.user_features, "items": data.item_features}
        return drawn.with_features(**{name: t for name, t in tables.items() if t is not None})

    def ratings(self, user: str) -> dict[str, float]:
        """Return what a user gave each item, also below the threshold."""
        if self.every.rating is None:
            return {}
        row = np.flatnonzero(self.every.user_ids.astype(str) == user)
        rows = np.flatnonzero(np.isin(self.every.users, row))
        names = self.every.item_ids[self.every.items[rows]]
        return {str(item): float(r) for item, r in zip(names, self.every.rating[rows], strict=True)}


def datasets() -> list[str]:
    """Return the datasets that are there without a download, the embedded one first."""
    absent = ("on first", "needs")
    names = [name for name in DATASETS.names() if not DATASETS.get(name).where().startswith(absent)]
    return ["sample", *(name for name in names if name != "sample")]


def catalog_of(name: str, every: Interactions, least: float | None) -> Catalog:
    """Return a dataset of which ratings of `least` or more count as liked."""
    data = every
    if least is not None and least > every.rating.min():
        data = every.rated(least)
    return Catalog((name, least), name, data, every, least)
