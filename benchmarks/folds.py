"""The folds of the committed values: draws, and ties in time, in the order of the data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from recsys.data import Interactions


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
