"""Items' attributes as 0/1 features: genres, decade, and what else the table says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from recsys.data import Interactions

SKIPPED = ("title", "name", "url", "description", "overview", "imdb", "image")
MANY = "|"  # separates several values in a cell
MOST_VALUES = 40  # of a column with one value a cell; more is an id, not a category


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
        years = pd.to_numeric(column, errors="coerce").to_numpy(np.float64)
        decades = np.floor(years / 10) * 10
        return {f"{d:.0f}s": decades == d for d in np.unique(decades[np.isfinite(decades)])}
    text = column.where(column.notna(), "").astype(str)
    cells = text.str.split(MANY, regex=False)
    several = bool(text.str.contains(MANY, regex=False).any())
    values = sorted({part.strip() for cell in cells for part in cell} - {"", "nan"})
    if len(values) > (400 if several else MOST_VALUES):
        return {}
    plain = several or lower in ("genre", "genres", "category", "categories", "tags")
    sets = [{part.strip() for part in cell} for cell in cells]
    return {
        value if plain else f"{name}={value}": np.array([value in s for s in sets]) for value in values
    }
