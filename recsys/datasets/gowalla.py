"""Gowalla: check-ins at locations, the 10-core that LightGCN made common, with its test half."""

from __future__ import annotations

from pathlib import Path

from recsys.data.interactions import Interactions
from recsys.datasets.base import dataset
from recsys.datasets.published_split import OR_FILES, read_published


@dataset("gowalla", "Gowalla check-ins, the 10-core", files=("interactions.csv.gz",), or_files=OR_FILES)
def read_gowalla(folder: Path) -> Interactions:
    """Read pairs of user and item, those of the test half marked where its file is there."""
    return read_published(folder)
