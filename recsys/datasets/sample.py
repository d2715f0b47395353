"""The embedded sample: generated preferences over a long-tailed catalogue."""

from __future__ import annotations

from pathlib import Path

from recsys.data import reading
from recsys.data.interactions import Interactions
from recsys.datasets.base import dataset


def sample_folder() -> Path:
    """Return where the embedded dataset lies: in the package, or in a source checkout."""
    inside = Path(__file__).parent / "sample"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "data" / "sample"


@dataset(
    "sample",
    "generated, embedded: planted preferences over a long-tailed catalogue",
    files=("interactions.csv", "items.csv", "users.csv"),
    embedded=sample_folder,
    licence="MIT",
)
def read_sample(folder: Path) -> Interactions:
    """Read interactions and both tables of features."""
    data = reading.read(folder / "interactions.csv", plain=True)
    items = reading.read_features(folder / "items.csv", "item_id", "item")
    users = reading.read_features(folder / "users.csv", "user_id", "user")
    return data.with_features(items=items, users=users)
