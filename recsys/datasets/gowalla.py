"""Gowalla: check-ins at places, the 10-core that LightGCN made common."""

from __future__ import annotations

from pathlib import Path

from recsys.data import readers
from recsys.data.interactions import Interactions
from recsys.datasets.base import dataset


@dataset("gowalla", "Gowalla check-ins, the 10-core", files=("interactions.csv.gz",))
def read_gowalla(folder: Path) -> Interactions:
    """Read pairs of user and item."""
    return readers.read_interactions(folder / "interactions.csv.gz")
