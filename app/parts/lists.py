"""Lists and reasons of a fitted model, for a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from app.catalog import Catalog
from app.parts.person import Person
from app.parts.text import count
from recsys import Recommender

REASONS = 3  # liked items that a card names
ROUNDING = 1e-6  # by which shares of the whole score may exceed it


def recommend(
    model: Recommender,
    catalog: Catalog,
    person: Person,
    n: int,
    diversity: float = 0.0,
    filters: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Return a person's list: columns item (text), score and, where it matters, source."""
    options: dict[str, Any] = {
        "dislikes": [catalog.items[item] for item in person.dislikes],
        "exclude": [catalog.items[item] for item in person.lower] or None,
        "diversity": diversity,
        "filters": filters or None,
        "why": False,
    }
    if person.is_known:
        table = model.recommend(catalog.users[str(person.user)], n, **options)
    else:
        table = model.recommend_history([catalog.items[item] for item in person.likes], n, **options)
    return table.assign(item=table["item"].astype(str))


def explain(
    model: Recommender, catalog: Catalog, person: Person, item: str, n: int, changes: int = 0
) -> Any:
    """Return why an item has its score, a `Why`. A liked item is explained by the others."""
    target = catalog.items[item]
    if person.is_known and item not in person.likes:
        return model.explain(catalog.users[str(person.user)], target, n, changes=changes)
    history = [catalog.items[one] for one in person.likes if one != item]
    return model.explain(item=target, n=n, history=history, changes=changes)


def named_rows(why: Any) -> list[tuple[Any, str, float]]:
    """Return the liked items that a card names, with what they add to the score."""
    return [row for row in why.rows if row[2] > 0][:REASONS]


def has_shares(why: Any) -> bool:
    """Return whether what the named items add is a part of the score: others may take from it."""
    named = sum(row[2] for row in named_rows(why))
    return why.reasons.kind == "exact" and 0 < named <= why.score * (1 + ROUNDING)


def reason(catalog: Catalog, why: Any, item: str) -> str:
    """Return the reason on a card: the liked items with their shares of the score, or "Popular"."""
    rows = named_rows(why)
    titles = [catalog.titles[str(row[0])] for row in rows]
    if has_shares(why):
        shares = [f"{100 * row[2] / why.score:.0f}%" for row in rows]
        titles = [f"{title} ({share})" for title, share in zip(titles, shares, strict=True)]
    if titles:
        listed = " and ".join(filter(None, [", ".join(titles[:-1]), titles[-1]]))
        if why.reasons.kind == "nearest":
            return f"Similar to {listed}, which you {catalog.verb}."
        return f"Because you {catalog.verb} {listed}."
    users = count(int(catalog.popularity[catalog.item_columns[item]]), "user")
    return f"Popular: {catalog.verb} by {users}."
