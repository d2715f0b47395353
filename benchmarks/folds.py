"""The data and folds of the committed values."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from recsys.data import Interactions
from recsys.datasets import load_dataset


def load(name: str) -> Interactions:
    """Return a dataset; Gowalla and Yelp 2018 with LightGCN's test half, as files in $RECSYS_DATA."""
    if name not in ("gowalla", "yelp2018"):
        return load_dataset(name)
    folder = Path(os.environ["RECSYS_DATA"]) / name
    data = Interactions.from_frame(folder / "interactions.csv.gz", name=name)
    return data.with_test(folder / "test.csv.gz")


def as_committed(data: Interactions, protocol: str) -> Interactions:
    """Return the interactions so that draws go by the first appearance of ids, and ties by item."""
    users, items = (
        np.array([f"{k:010d}" for k in range(size)], dtype=object)
        for size in (data.n_users, data.n_items)
    )
    features = {
        "user_features": None if data.user_features is None else data.user_features.set_axis(users),
        "item_features": None if data.item_features is None else data.item_features.set_axis(items),
    }
    time = data.time
    if protocol == "half-profile-time" and time is not None:  # of whole seconds
        time = time + 0.5 * data.items / data.n_items
    return replace(data, user_ids=users, item_ids=items, time=time, **features)
