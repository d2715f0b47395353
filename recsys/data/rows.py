"""The interface of all kinds of tables: names, the first cells of each column, and whole columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.errors import InputError


class Rows:
    """A table that is not read yet; messages call it `name`."""

    header = True  # whether the names are the table's own
    ragged = 0  # rows of another number of fields, once columns were read
    comments = 0  # lines that are comments, once columns were read

    def __init__(self, name: str, names: Sequence[str]) -> None:
        self.name, self.names = name, list(names)
        self.notes: list[str] = []

    def sample(self, k: int) -> NDArray[np.object_]:
        """Return some of the cells of a column, as they are."""
        raise NotImplementedError

    def read(self, used: Sequence[int], kinds: Sequence[str], max_rows: int | None = None) -> list[Any]:
        """Return the columns `used`, of arrow or pandas, all of one length.

        Each is read for its kind: "ids", "numbers" or "text". A table of more than `max_rows` is
        refused.
        """
        raise NotImplementedError

    def where(self, rows: Sequence[int]) -> dict[int, str]:
        """Return where rows are, as "line 7" or "row 7", for messages."""
        return {row: f"row {row + 1}" for row in rows}

    def ragged_at(self) -> str:
        """Return where the first row of another number of fields is, and how many it has."""
        return ""


def check_once(where: str, name: object, names: Sequence[object]) -> None:
    """Refuse a column of a table if others are called the same."""
    if (number := names.count(name)) > 1:
        raise InputError(f"{where}: {number} columns are called {str(name)[:60]!r}; rename all but one")
