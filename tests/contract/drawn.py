"""A small drawn dataset with titles and attributes, and models of every family on it."""

import numpy as np
import pandas as pd

from recsys import Interactions
from tests.synthetic import planted_catalogue

GENRES = ("Drama", "War", "Comedy")


def drawn(users=70, items=36, seed=11):
    """Return interactions of drawn users with items that have a title, genres and a year."""
    found = planted_catalogue(users, items, mean_length=12, seed=seed).interactions
    rng = np.random.default_rng(seed)
    ids = [f"m{k}" for k in range(found.n_items)]
    films = pd.DataFrame(
        {
            "item_id": ids,
            "title": [f"Film {chr(65 + k // 26)}{chr(65 + k % 26)}" for k in range(found.n_items)],
            "genres": ["|".join(rng.choice(GENRES, rng.integers(1, 3), replace=False)) for _ in ids],
            "year": rng.integers(1950, 2010, len(ids)).astype(str),  # as a file has it
        }
    )
    table = pd.DataFrame(
        {
            "user_id": [f"u{k}" for k in found.users],
            "item_id": [ids[k] for k in found.items],
        }
    )
    return Interactions.from_frame(table, user="user_id", item="item_id", items=films)
