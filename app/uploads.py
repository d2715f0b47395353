"""What visitors have uploaded: files, and the tables of interactions that were read from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import pandas as pd

from recsys.data.interactions import Interactions
from recsys.data.row_counts import RowCounts


class UploadedFile(NamedTuple):
    """A file, and the token by which a reload finds it."""

    token: str
    name: str
    content: bytes


@dataclass(frozen=True)
class UploadedTable:
    """A table of interactions, and what is known of it besides.

    Attributes
    ----------
    data : Interactions
    file : str
        Token of the file that it was read from.
    items : str
        Name of the table of items that came with it; "" where none did.
    counts : RowCounts or None
        What became of its rows.
    form : tuple of (str, str or bool)
        What the visitor said of how the file is read.
    """

    data: Interactions
    file: str = ""
    items: str = ""
    counts: RowCounts | None = None
    form: tuple[tuple[str, str | bool], ...] = ()

    @property
    def left_out(self) -> int:
        """Rows that could not be read."""
        return 0 if self.counts is None else sum(self.counts.left_out.values())


def as_written(data: Interactions) -> Interactions:
    """Return the table with ids numbered by their first appearance among the pairs that are used.

    A command that reads these pairs from a file numbers them so, and draws the same halves.
    """
    users, user_order = pd.factorize(data.users)
    items, item_order = pd.factorize(data.items)
    return replace(
        data, users=users.astype(data.users.dtype), items=items.astype(data.items.dtype),
        user_ids=data.user_ids[user_order], item_ids=data.item_ids[item_order],
    )  # fmt: skip
