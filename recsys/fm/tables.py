"""Rows of named features and a target: from a table, or from interactions with features."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data import Interactions
from recsys.data.encoding import encode_table
from recsys.errors import InputError
from recsys.fm.encoder import SKIPPED, PairEncoder
from recsys.utils.validation import check_integer

ROUNDS = 20  # of drawing again what is liked
MANY_VALUES = 20  # of a text column that is left out if most of its values are different


class Rows(NamedTuple):
    """Rows for a factorization machine.

    Attributes
    ----------
    X : (rows, features) float64 CSR
    y : (rows,) array
    names : tuple of str
        Names of the features: column=value.
    """

    X: sp.csr_matrix
    y: NDArray[Any]
    names: tuple[str, ...]


def table_rows(
    table: pd.DataFrame,
    target: str | None = None,
    *,
    buckets: int = 5,
    rows: int = 50_000,
    seed: int = 0,
) -> Rows:
    """Return the rows of a table: one column is the target, the others are features.

    Text gives one feature per value, with `|` between values of a cell; numeric columns are binned at
    quantiles. Text columns with more than 20 mostly distinct values are left out.

    Parameters
    ----------
    target : str, optional
        Target column; the last one by default. Rows without a target are left out.
    buckets : int
        Number of bins of a numeric column.
    rows : int
        Largest number of rows; a random sample of larger tables.

    Examples
    --------
    >>> table = pd.DataFrame({"color": ["red", "blue", "red"], "sold": [1, 0, 1]})
    >>> table_rows(table).names
    ('color=blue', 'color=red')
    """
    if not len(table.columns):
        raise InputError("the table has no columns")
    target = str(table.columns[-1]) if target is None else target
    if target not in table.columns:
        raise InputError(f"no column {target!r}; found: {', '.join(map(str, table.columns))}")
    table = table[table[target].notna()]
    if len(table) > rows:
        table = table.sample(rows, random_state=seed).sort_index()
    y = table[target].to_numpy()
    if len(np.unique(y)) < 2:
        raise InputError(f"the target {target!r} has one value: choose another column")
    features = table.drop(columns=target)
    features = features[[name for name in features if not _is_name(features[name])]]
    encoded = encode_table(features, buckets=buckets)
    if not encoded.X.shape[1]:
        raise InputError(f"no column besides {target!r} is a feature")
    return Rows(encoded.X, y, encoded.names)


def _is_name(cells: pd.Series) -> bool:
    if cells.astype(str).str.contains("|", regex=False).any():  # several values in a cell
        return False
    numbers = pd.to_numeric(cells, errors="coerce").notna().sum() == cells.notna().sum()
    values = cells.nunique()
    return not numbers and values > MANY_VALUES and values > len(cells) / 2


def liked_pairs(
    data: Interactions,
    *,
    ids: bool = False,
    ratio: int = 1,
    buckets: int = 5,
    rows: int = 50_000,
    seed: int = 0,
) -> Rows:
    """Return pairs of users and items with the features of both; y is 1 for liked pairs, else 0.

    Parameters
    ----------
    ids : bool
        Whether user and item ids are features.
    ratio : int
        Number of sampled negative pairs of the same user per liked pair.
    buckets, rows, seed
        As in `table_rows`.

    Examples
    --------
    >>> from recsys import load_dataset
    >>> liked_pairs(load_dataset("sample"), rows=100).X.shape[0]
    100
    """
    check_integer("ratio", ratio, 1)
    encoder = PairEncoder(_features(data.user_features), _features(data.item_features), buckets)
    encoder.fit(data.n_users, data.n_items)
    rng = np.random.default_rng(seed)
    many = min(len(data.users), max(rows // (1 + ratio), 1))
    chosen = np.sort(rng.choice(len(data.users), many, replace=False))
    users, items = data.users[chosen].astype(np.int64), data.items[chosen].astype(np.int64)
    liked = data.users.astype(np.int64) * data.n_items + data.items
    others = np.repeat(users, ratio)
    drawn = rng.integers(0, data.n_items, len(others))
    for _ in range(ROUNDS):
        clash = np.isin(others * data.n_items + drawn, liked)
        drawn[clash] = rng.integers(0, data.n_items, int(clash.sum()))
    free = ~np.isin(others * data.n_items + drawn, liked)
    users, items = np.append(users, others[free]), np.append(items, drawn[free])
    y = np.repeat([1, 0], [many, int(free.sum())])
    X = encoder.transform(users, items)
    keep = np.ones(X.shape[1], dtype=bool)
    if not ids:
        for name, first, last in encoder.fields_:
            if name in ("user", "item"):
                keep[first:last] = False
    if not keep.any():
        raise InputError("the data have no features of users or items: pass ids=True")
    return Rows(sp.csr_matrix(X[:, keep]), y, tuple(np.array(encoder.names_, dtype=object)[keep]))


def _features(table: pd.DataFrame | None) -> pd.DataFrame | None:
    if table is None:
        return None
    return table[[name for name in table if str(name).lower() in SKIPPED or not _is_name(table[name])]]
