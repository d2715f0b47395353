"""The default comparison of `recsys evaluate`, as large as its table allows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recsys.data import Interactions

COMPARED = (
    "popularity",
    "ease",
    "cf-komd:kernel=mc,degree=2",
    "msdw",
    "als",
    "sparse-fm",
    "fm",
    "pairnet",
    "auto",
)
USUAL_PAIRS = 100_000  # interactions up to which everything is measured as it is
USUAL_ITEMS = 2_500  # up to which a dense inverse takes no more than its share
AUTO_ITEMS = 8_000  # up to which all candidates of `auto` do
ITEM_PAIRS = 40_000_000  # co-occurrence counts up to which models made of them do
BY_COUNTS = ("ease", "cf-komd", "msdw", "auto")
ITERATIONS, LEAST_ITERATIONS = {"fm": 20, "sparse-fm": 20, "pairnet": 10}, 3
AUTO_SECONDS = 40.0  # of all folds


class Comparison(NamedTuple):
    """Models, number of folds to measure (None for all), and a note on reduced settings."""

    models: list[str]
    only_folds: int | None
    note: str


def default_comparison(data: Interactions, folds: int) -> Comparison:
    """Return the models to compare on a table, the slow ones set smaller where it is large."""
    pairs, items = len(data.users), data.n_items
    only = max(1, min(folds, folds * USUAL_PAIRS // pairs))
    lengths = np.bincount(data.users).astype(np.float64)
    counts = min(float(items) ** 2, float(lengths @ lengths))
    models, left_out = [], []
    for spec in COMPARED:
        name = spec.partition(":")[0]
        if counts > ITEM_PAIRS and name in BY_COUNTS:
            left_out.append(name)
            continue
        if name == "ease" and items > USUAL_ITEMS:
            spec = "ease:top_k=100"
        elif name in ITERATIONS and pairs > USUAL_PAIRS:
            iterations = max(LEAST_ITERATIONS, ITERATIONS[name] * USUAL_PAIRS // pairs)
            spec = f"{name}:iterations={iterations}"
        elif name == "auto" and (pairs > USUAL_PAIRS or items > AUTO_ITEMS):
            spec = f"auto:budget={AUTO_SECONDS / only:g}"
        models.append(spec)
    changed = [spec for spec in models if spec not in COMPARED]
    said = [f"set smaller for this table: {', '.join(changed)}"] * bool(changed)
    if left_out:
        said.append(f"left out, for {counts / 1e6:.0f} million pairs of items: {', '.join(left_out)}")
    if only < folds:
        said.append(f"folds measured: {only} of {folds}")
    note = f"{'; '.join(said)} (--model and --folds overrule it)" if said else ""
    return Comparison(models, only if only < folds else None, note)
