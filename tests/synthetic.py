"""Seeded catalogues with planted preferences: long-tailed, with attributes, and rules to recover.

Each user has a short monotone DNF over item attributes (genres and decade), such as
`Sci-Fi ∧ 1980s ∨ Film-Noir`. A user draws most items among those the rule accepts and the
rest anywhere, in both cases by popularity, so that an explanation can be checked against
the truth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from recsys.data.interactions import Interactions
from recsys.utils.validation import check_integer, check_real

GENRES = (
    "Action Adventure Animation Comedy Crime Documentary Drama Fantasy Film-Noir Horror Musical "
    "Mystery Romance Sci-Fi Thriller War"
).split()
DECADES = ("1950s", "1960s", "1970s", "1980s", "1990s", "2000s")
REGIONS = ("east", "north", "south", "west")
FIRST = (
    "Silent Crimson Last Hidden Golden Broken Distant Electric Paper Winter Burning Quiet Hollow "
    "Wandering Northern Velvet Iron Second"
).split()
SECOND = (
    "Harbour Garden Signal Orchard Empire Letter Mirror River Station Compass Lantern Voyage Kingdom "
    "Summer Shadow Machine Parade Shore"
).split()


@dataclass(frozen=True)
class Planted:
    """Generated interactions and the truth behind them.

    The interactions have times, item features `title`, `year`, `genres` (separated by |), and user
    features `age` and `region`, which mean nothing.
    """

    interactions: Interactions
    rules: list[str]  # each user's, as in `Sci-Fi & 1980s | Film-Noir`
    off_rule: float  # share of the interactions drawn without regard to the rule


def planted_catalogue(
    n_users: int = 400,
    n_items: int = 300,
    *,
    off_rule: float = 0.25,
    mean_length: float = 30.0,
    tail: float = 0.8,
    seed: int = 0,
) -> Planted:
    """Generate users with planted preferences over a long-tailed catalogue.

    Parameters
    ----------
    n_users, n_items : int ≥ 1
    off_rule : float in 0…1
        Share of each profile drawn without the rule.
    mean_length : float ≥ 1
        Mean number of items of a user; lengths are log-normal.
    tail : float ≥ 0
        Zipf exponent of the items' popularity.
    seed : int

    Returns
    -------
    Planted

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    check_integer("n_users", n_users, 1)
    check_integer("n_items", n_items, 1)
    check_real("off_rule", off_rule, 0.0, 1.0)
    check_real("mean_length", mean_length, 1.0)
    check_real("tail", tail, 0.0)
    rng = np.random.default_rng(seed)
    has, frame = _items(n_items, rng)
    weight = rng.permutation((np.arange(n_items) + 1.0) ** -tail)
    lengths = np.clip(rng.lognormal(np.log(mean_length) - 0.18, 0.6, n_users), 3, n_items).astype(int)
    users, items, times, rules, off = [], [], [], [], 0
    for user in range(n_users):
        rule, accepts = _rule(has, weight, rng)
        rules.append(rule)
        free = int((rng.random(lengths[user]) < off_rule).sum())
        chosen = _draw(weight * accepts, lengths[user] - free, rng)
        rest = weight.copy()
        rest[chosen] = 0.0
        # A rule that accepts fewer items than asked for shortens the profile, so that the
        # share of off-rule items stays what it should be.
        kept = len(chosen) / max(1, lengths[user] - free)
        others = _draw(rest, max(round(free * kept), 3 - len(chosen)), rng)
        off += len(others)
        profile = rng.permutation(np.concatenate([chosen, others]))
        users.append(np.full(len(profile), user))
        items.append(profile)
        start = rng.integers(1_000_000_000, 1_100_000_000)
        times.append(start + np.cumsum(rng.integers(60, 90_000, len(profile))))
    flat_users, flat_items = np.concatenate(users), np.concatenate(items)
    interactions = Interactions.from_ids(
        np.array([f"u{k + 1:04d}" for k in flat_users], dtype=object),
        np.array([f"m{k + 1:04d}" for k in flat_items], dtype=object),
        time=np.concatenate(times).astype(np.float64),
        name="generated",
    )
    people = pd.DataFrame(
        {"age": rng.integers(18, 70, n_users), "region": rng.choice(REGIONS, n_users)},
        index=pd.Index([f"u{k + 1:04d}" for k in range(n_users)], name="user_id"),
    )
    interactions = replace(
        interactions,
        item_features=frame.reindex(interactions.item_ids),
        user_features=people.reindex(interactions.user_ids),
    )
    return Planted(interactions, rules, off / len(flat_items))


def _items(n_items: int, rng: np.random.Generator) -> tuple[dict[str, np.ndarray], pd.DataFrame]:
    """Return the attributes as boolean columns, and the feature table."""
    share = 0.9 * (np.arange(len(GENRES)) + 1.5) ** -0.7
    genre = rng.random((n_items, len(GENRES))) < rng.permutation(share)
    empty = ~genre.any(axis=1)
    genre[empty, rng.integers(0, len(GENRES), empty.sum())] = True
    decade = rng.choice(len(DECADES), n_items, p=np.array([1, 1, 2, 3, 5, 4]) / 16)
    year = 1950 + 10 * decade + rng.integers(0, 10, n_items)
    pairs = rng.permutation(len(FIRST) * len(SECOND))
    titles = [
        f"{FIRST[pairs[k % len(pairs)] // len(SECOND)]} {SECOND[pairs[k % len(pairs)] % len(SECOND)]}"
        + ("" if k < len(pairs) else f" {k // len(pairs) + 1}")
        + f" ({year[k]})"
        for k in range(n_items)
    ]
    has = {name: genre[:, g] for g, name in enumerate(GENRES)}
    has |= {name: decade == d for d, name in enumerate(DECADES)}
    genres = ["|".join(np.array(GENRES)[row]) for row in genre]
    ids = [f"m{k + 1:04d}" for k in range(n_items)]
    return has, pd.DataFrame(
        {"title": titles, "year": year, "genres": genres}, index=pd.Index(ids, name="item_id")
    )


def _rule(
    has: dict[str, np.ndarray], weight: np.ndarray, rng: np.random.Generator
) -> tuple[str, np.ndarray]:
    """Draw one or two clauses of one or two attributes that accept 3–35% of the catalogue's weight."""
    names = list(has)
    total = weight.sum()
    accepts = np.ones(len(weight), dtype=bool)
    rule = names[0]
    for _ in range(200):
        clauses = []
        for _ in range(int(rng.integers(1, 3))):
            size = int(rng.integers(1, 3))
            clause = sorted(rng.choice(names, size, replace=False))
            clauses.append(clause[-1:] if clause[0] in DECADES and clause[-1] in DECADES else clause)
        rule = " | ".join(" & ".join(clause) for clause in clauses)
        accepts = np.any([np.all([has[name] for name in clause], axis=0) for clause in clauses], axis=0)
        if 0.03 <= weight[accepts].sum() / total <= 0.35:
            return rule, accepts
    return rule, accepts


def _draw(weight: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw up to `count` distinct items with probability proportional to weight."""
    keys = np.full(len(weight), np.inf)
    keys[weight > 0] = rng.exponential(size=int((weight > 0).sum())) / weight[weight > 0]
    order = np.argsort(keys, kind="stable")[:count]
    return order[np.isfinite(keys[order])]
