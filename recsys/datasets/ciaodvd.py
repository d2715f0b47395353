"""CiaoDVD: ratings of films, with days."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from recsys.data.interactions import Interactions
from recsys.data.tables import read_table
from recsys.datasets.base import dataset
from recsys.errors import DatasetError


@dataset("ciaodvd", "CiaoDVD", files=("movie-ratings.txt.gz",), or_files=(("movie-ratings.txt",),))
def read_ciaodvd(folder: Path) -> Interactions:
    """Read ratings with the day of each as seconds since 1970."""
    path = folder / "movie-ratings.txt.gz"
    path = path if path.is_file() else folder / "movie-ratings.txt"
    names = ("user_id", "item_id", "genre", "review", "rating", "date")
    table = read_table(path, names=names, delimiter=",")
    try:
        time = np.array([cell.strip() for cell in table.texts("date")], dtype="datetime64[s]")
    except ValueError as error:
        raise DatasetError(f"{path}: {error}") from None
    return Interactions.from_ids(
        table.texts("user_id"),
        table.texts("item_id"),
        table.texts("rating").astype(np.float64),
        time.astype(np.int64).astype(np.float64),
    )
