"""What people have uploaded: files, and the tables of interactions that were read from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from recsys.data.interactions import Interactions
from recsys.data.usable_rows import RowCounts


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
    """

    data: Interactions
    file: str = ""
    items: str = ""
    counts: RowCounts | None = None

    @property
    def left_out(self) -> int:
        """Rows that could not be read."""
        return 0 if self.counts is None else sum(self.counts.left_out.values())
