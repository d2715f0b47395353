"""Pairs of users and items, with their side features, as sparse one-hot rows with names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.data.encoding import encode_column
from recsys.errors import InputError
from recsys.utils.validation import check_choice, check_ids, check_integer

SKIPPED = ("title", "name", "url")


@dataclass(frozen=True)
class Field:
    """One block of columns: a sparse row for each user, or each item."""

    of_user: bool
    rows: sp.csr_matrix
    names: tuple[str, ...]


class PairEncoder:
    """Encode (user, item) pairs as rows of ones: the user, the item, and the features of both.

    Parameters
    ----------
    users, items : DataFrame, optional
        Features, one row per user (item) in index order. Numeric columns with more than `buckets` values
        are binned at quantiles; other columns give one feature per value, with `|` between values of a
        cell. Missing cells give no feature.
    buckets : int
    unknown : "ignore" or "error"
        Treatment of new users and items in `transform`: no features, or an error.

    Attributes
    ----------
    names_ : tuple of str
        Of the columns.
    fields_ : tuple of (str, int, int)
        Name and column range of each field.

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
        self,
        users: pd.DataFrame | None = None,
        items: pd.DataFrame | None = None,
        buckets: int = 10,
        unknown: str = "ignore",
    ) -> None:
        self.users, self.items, self.buckets, self.unknown = users, items, buckets, unknown

    def fit(self, n_users: int, n_items: int) -> PairEncoder:
        """Determine the columns."""
        check_integer("n_users", n_users, 0)
        check_integer("n_items", n_items, 0)
        check_choice("unknown", self.unknown, ("ignore", "error"))
        self.sizes_ = (n_users, n_items)
        fields, parts, names, at = [], [], [], 0
        for user, size, table in ((True, n_users, self.users), (False, n_items, self.items)):
            what = "user" if user else "item"
            blocks = [(what, sp.identity(size, format="csr"), [f"{what}={k}" for k in range(size)])]
            if table is not None:
                if len(table) != size:
                    raise InputError(f"the {what} table has {len(table)} rows for {size} {what}s")
                for name in table.columns:
                    if str(name).lower() not in SKIPPED:
                        found = encode_column(str(name), table[name], buckets=self.buckets)
                        blocks.append((str(name), found.X, list(found.names)))
            for name, rows, columns in blocks:
                fields.append((name, at, at + len(columns)))
                parts.append(Field(user, rows, tuple(columns)))
                names += columns
                at += len(columns)
            if user:
                self.split_ = at
        self.fields_, self._parts, self.names_ = tuple(fields), parts, tuple(names)
        return self

    def transform(self, users: ArrayLike, items: ArrayLike) -> sp.csr_matrix:
        """Return one row per pair, float64 CSR."""
        both: list[NDArray[np.int64]] = []
        for what, given, size in (("users", users, self.sizes_[0]), ("items", items, self.sizes_[1])):
            ids = check_ids(what, given, size if self.unknown == "error" else None)
            if len(ids) and ids.min() < 0:
                raise InputError(f"{what} contain negative indices")
            both.append(ids)
        if len(both[0]) != len(both[1]):
            raise InputError(
                f"users and items must have equal lengths, not {len(both[0])} and {len(both[1])}"
            )
        blocks = []
        for field in self._parts:
            ids = both[0] if field.of_user else both[1]
            known = ids < field.rows.shape[0]
            if known.any():
                block = field.rows[np.where(known, ids, 0)]
            else:  # there may be no row to stand in for them
                block = sp.csr_matrix((len(ids), field.rows.shape[1]))
            if not known.all():
                block = sp.diags(known.astype(np.float64)) @ block
            blocks.append(block)
        out = sp.csr_matrix(sp.hstack(blocks, format="csr"), dtype=np.float64)
        out.eliminate_zeros()
        out.sort_indices()
        return out
