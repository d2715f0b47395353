"""Items' attributes as 0/1 features: genres, decade, and what else the table says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from recsys.data import Interactions
from recsys.data.encoding import SEPARATOR, encode_column

SKIPPED = ("title", "name", "url", "description", "overview", "imdb", "image")
MOST_VALUES = 40  # of a column with one value a cell; more is an id, not a category
MOST_TAGS = 400  # of a column with several values a cell


@dataclass(frozen=True)
class Attributes:
    """A catalogue's attributes.

    Attributes
    ----------
    X : (items, features) uint8
    names : tuple of str
        A value alone where it is unmistakable (a genre, a decade), else `column=value`.

    Examples
    --------
    >>> import numpy as np
    >>> len(Attributes(np.eye(3, dtype=np.uint8), ("Drama", "1990s", "colour=red")))
    3
    """

    X: NDArray[np.uint8]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)


def item_attributes(data: Interactions, min_items: int = 3) -> Attributes:
    """Return the attributes of the items of some interactions.

    A column `year` gives decades; a column with `|` in its cells one feature a value; a column of
    few values one feature a value. Titles and other free text are left out.

    Parameters
    ----------
    data : Interactions
    min_items : int
        Features of fewer items, or of all but as few, are left out.

    Examples
    --------
    >>> from recsys.datasets import load_dataset
    >>> found = item_attributes(load_dataset("sample"))
    >>> found.X.shape == (300, len(found.names)), "Comedy" in found.names
    (True, True)
    """
    table = data.item_features
    columns: dict[str, NDArray[np.bool_]] = {}
    if table is not None:
        for name in table.columns:
            if str(name).lower() not in SKIPPED:
                columns |= _features(str(name), table[name])
    size = data.n_items
    kept = {k: v for k, v in columns.items() if min_items <= v.sum() <= size - min_items}
    X = np.array(list(kept.values()), dtype=np.uint8).reshape(len(kept), size).T.copy()
    return Attributes(X, tuple(kept))


def _features(name: str, column: pd.Series) -> dict[str, NDArray[np.bool_]]:
    lower = name.lower()
    if lower in ("year", "release_year"):
        found = encode_column(name, column, numbers="decades")
        X = found.X.toarray() > 0
        return {str(value): X[:, k] for k, value in enumerate(found.values)}
    several = bool(column.astype(str).str.contains(SEPARATOR, regex=False).any())
    found = encode_column(name, column, numbers="values")
    kept = [k for k, value in enumerate(found.values) if value != "nan"]
    if len(kept) > (MOST_TAGS if several else MOST_VALUES):
        return {}
    plain = several or lower in ("genre", "genres", "category", "categories", "tags")
    X = found.X.toarray() > 0
    return {str(found.values[k]) if plain else found.names[k]: X[:, k] for k in kept}
