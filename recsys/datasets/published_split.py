"""Folders with all pairs and those of a published test half, or with two files as LightGCN has them."""

from __future__ import annotations

from pathlib import Path

from recsys.data import reading
from recsys.data.interactions import Interactions

PAIRS, TEST = "interactions.csv.gz", "test.csv.gz"
OR_FILES = (("train.txt", "test.txt"),)


def read_published(folder: Path) -> Interactions:
    """Read the pairs of a folder, those of its test half marked where there is one."""
    if not (folder / PAIRS).is_file():
        return reading.read(folder, interface="dataset")
    data = reading.read(folder / PAIRS, interface="dataset")
    return data.with_test(folder / TEST) if (folder / TEST).is_file() else data
