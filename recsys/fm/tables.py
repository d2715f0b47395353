"""Rows of named features: of a table, or of pairs of users and items."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.data import Interactions
from recsys.data.features import encode_table
from recsys.errors import InputError
from recsys.utils.validation import check_ids, check_integer

SKIPPED = ("title", "name", "url")
ROUNDS = 20  # of drawing again what is liked
MANY_VALUES = 20  # of a text column that is left out if most of its values are different


class PairEncoder:
    """Encode (user, item) pairs as rows of ones: the user, the item, and the features of both.

    Parameters
    ----------
    users, items : DataFrame, optional
        Features, one row per user (item) in index order. Numeric columns with more than `buckets` values
        are binned at quantiles; other columns give one feature per value, with `|` between values of a
        cell. Missing cells give no feature.
    buckets : int

    Attributes
    ----------
    names_ : tuple of str
        Of the columns: the ids and features of users, then those of items.
    split_ : int
        Number of columns of users.

    Examples
    --------
    >>> encoder = PairEncoder().fit(n_users=2, n_items=2)
    >>> encoder.names_
    ('user=0', 'user=1', 'item=0', 'item=1')
    >>> encoder.transform([0, 1], [1, 1]).toarray()
    array([[1., 0., 0., 1.],
           [0., 1., 0., 1.]])
    """

    def __init__(
        self, users: pd.DataFrame | None = None, items: pd.DataFrame | None = None, buckets: int = 10
    ) -> None:
        self.users, self.items, self.buckets = users, items, buckets

    def fit(self, n_users: int, n_items: int) -> PairEncoder:
        """Determine the columns."""
        self.names_: tuple[str, ...] = ()
        self._sides = []
        for what, size, table in (("user", n_users, self.users), ("item", n_items, self.items)):
            check_integer(f"n_{what}s", size, 0)
            table = pd.DataFrame(index=range(size)) if table is None else table
            if len(table) != size:
                raise InputError(f"the {what} table has {len(table)} rows for {size} {what}s")
            known = encode_table(table, buckets=self.buckets, skip=SKIPPED)
            width = size + known.X.shape[1]
            rows = sp.hstack([sp.identity(size, format="csr"), known.X], format="csr")
            # The last row, without features, is that of unknown ids.
            self._sides.append(sp.vstack([rows, sp.csr_matrix((1, width))], format="csr"))
            self.names_ += (*(f"{what}={k}" for k in range(size)), *known.names)
        self.split_ = self._sides[0].shape[1]
        return self

    def transform(self, users: ArrayLike, items: ArrayLike) -> sp.csr_matrix:
        """Return one row per pair, float64 CSR; ids beyond those of the fit have no features."""
        blocks = []
        for what, given, rows in zip(("users", "items"), (users, items), self._sides, strict=True):
            ids = check_ids(what, given, None)
            if len(ids) and ids.min() < 0:
                raise InputError(f"{what} contain negative indices")
            blocks.append(rows[np.minimum(ids, rows.shape[0] - 1)])
        if blocks[0].shape[0] != blocks[1].shape[0]:
            lengths = f"{blocks[0].shape[0]} and {blocks[1].shape[0]}"
            raise InputError(f"users and items must have equal lengths, not {lengths}")
        return sp.csr_matrix(sp.hstack(blocks, format="csr"))


class Rows(NamedTuple):
    """Rows for a factorization machine, their target, and the names of the features: column=value."""

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
    encoded = encode_table(_without_names(table.drop(columns=target)), buckets=buckets)
    if not encoded.X.shape[1]:
        raise InputError(f"no column besides {target!r} is a feature")
    return Rows(encoded.X, y, encoded.names)


def _without_names(table: pd.DataFrame) -> pd.DataFrame:
    """Leave out text columns of one value a cell that are mostly distinct."""

    def is_name(cells: pd.Series) -> bool:
        several = cells.astype(str).str.contains("|", regex=False).any()
        numbers = pd.to_numeric(cells, errors="coerce").notna().sum() == cells.notna().sum()
        return not several and not numbers and cells.nunique() > max(MANY_VALUES, len(cells) / 2)

    return table[[name for name in table if not is_name(table[name])]]


def liked_pairs(data: Interactions, *, buckets: int = 5, rows: int = 50_000, seed: int = 0) -> Rows:
    """Return features of users and items; y is 1 for liked pairs, and 0 for as many that are not liked.

    Parameters are as in `table_rows`.
    """
    sides = []
    for size, table in ((data.n_users, data.user_features), (data.n_items, data.item_features)):
        known = pd.DataFrame(index=range(size)) if table is None else _without_names(table)
        sides.append(encode_table(known, buckets=buckets, skip=SKIPPED))
    names = (*sides[0].names, *sides[1].names)
    if not names:
        raise InputError("the data have no features of users or items")
    rng = np.random.default_rng(seed)
    many = min(len(data.users), max(rows // 2, 1))
    chosen = np.sort(rng.choice(len(data.users), many, replace=False))
    users, items = data.users[chosen].astype(np.int64), data.items[chosen].astype(np.int64)
    liked = data.users.astype(np.int64) * data.n_items + data.items
    drawn = rng.integers(0, data.n_items, many)
    for _ in range(ROUNDS):
        clash = np.isin(users * data.n_items + drawn, liked)
        drawn[clash] = rng.integers(0, data.n_items, int(clash.sum()))
    free = ~np.isin(users * data.n_items + drawn, liked)
    users, items = np.append(users, users[free]), np.append(items, drawn[free])
    X = sp.csr_matrix(sp.hstack([sides[0].X[users], sides[1].X[items]]))
    return Rows(X, np.repeat([1, 0], [many, int(free.sum())]), names)
