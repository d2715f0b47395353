"""BookCrossing: readers and books, as the thesis reduced it."""

from __future__ import annotations

from pathlib import Path

from recsys.data import reading
from recsys.data.interactions import Interactions
from recsys.datasets.base import dataset


@dataset(
    "bookcrossing", "BookCrossing, the reduction of Polato's thesis", files=("interactions.csv.gz",)
)
def read_bookcrossing(folder: Path) -> Interactions:
    """Read pairs of user and item."""
    return reading.read(folder / "interactions.csv.gz", plain=True)
