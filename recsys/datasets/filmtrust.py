"""FilmTrust: ratings of films, without times."""

from __future__ import annotations

from pathlib import Path

from recsys.data import reading
from recsys.data.interactions import Interactions
from recsys.datasets.base import dataset


@dataset("filmtrust", "FilmTrust", files=("ratings.txt",))
def read_filmtrust(folder: Path) -> Interactions:
    """Read user, item and rating."""
    return reading.read(
        folder / "ratings.txt",
        names=("user_id", "item_id", "rating"),
        delimiter=" ",
        plain=True,
    )
