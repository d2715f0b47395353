"""Sentences for users, each with the counts that it states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from recsys.errors import counted, listing
from recsys.explain.counterfactuals import WhatIf
from recsys.explain.item_rules import ItemRule
from recsys.explain.profile_rules import TasteRule
from recsys.explain.reasons import Reasons
from recsys.explain.rule import Rule

SMALL = 20  # support below which a sentence says that the sample is small


def because(
    titles: ArrayLike,
    reasons: Reasons,
    most: int = 3,
    *,
    word: str = "liked",
    ratings: Mapping[int, str] | None = None,
) -> str:
    """Return a sentence with up to `most` liked items that contribute to an item.

    `word` is "liked", or "rated" if every rating counts; `ratings` are shown beside the titles.

    >>> reasons = Reasons("exact", score=0.6, bias=0.1, items=[(0, 0.3), (2, 0.2)])
    >>> because(["Alien", "Brazil", "Casablanca"], reasons)
    'Because you liked Alien and Casablanca.'
    """
    if reasons.kind == "popularity":
        if reasons.unit != "users":
            return "This model gives no reasons."
        number = round(reasons.score)
        verb = word if word == "rated" else "likes" if number == 1 else "like"
        return f"{counted(number, 'person', 'people')} {verb} it."
    listed = [k for k, value in reasons.items if value > 0][:most]
    if not listed:
        return f"Nothing you {word} speaks for it."
    names, shown = np.asarray(titles, dtype=object), ratings or {}
    named = listing([f"{names[k]} [{shown[k]}]" if k in shown else str(names[k]) for k in listed])
    if reasons.kind == "nearest":
        return f"Similar to what you {word}: {named}."
    return f"Because you {word} {named}."


def rule_sentence(titles: ArrayLike, rule: ItemRule, *, word: str = "liked") -> str:
    """Return the rule of other users for an item as a sentence.

    >>> rule = ItemRule((0, 1), 13, 12, 12 / 13, 386, 205, 205 / 386, 0.68)
    >>> rule_sentence(["Alien", "Brazil"], rule)
    '12 of the 13 other users who liked Alien and Brazil also liked this; 53% of the remaining 386 did. \
Small sample.'
    """
    names = np.asarray(titles, dtype=object)
    liked = listing([str(names[k]) for k in rule.items])
    of = f"{rule.support:,} other users who {word} {liked} also {word} this"
    who = f"All {of}" if rule.hits == rule.support else f"{rule.hits:,} of the {of}"
    text = f"{who}; {percent(rule.base)} of the remaining {rule.others:,} did."
    return f"{text} Small sample." if rule.support < SMALL else text


def percent(share: float) -> str:
    """Return a share as a percentage; 0% and 100% only if exact.

    >>> percent(0.531), percent(0.0001), percent(0.9999), percent(1.0)
    ('53%', 'under 1%', 'over 99%', '100%')
    """
    if 0 < share < 0.005:
        return "under 1%"
    return "over 99%" if 0.995 <= share < 1 else f"{100 * share:.0f}%"


def taste(rule: TasteRule, *, word: str = "liked") -> list[str]:
    """Return the counts of a profile's rule, and its test, in sentences."""
    lines = [
        f"It covers {rule.support:,} of the {rule.profile:,} items you {word} and {rule.catalogue:,} of "
        f"all {rule.items:,}; {rule.unseen:,} of these are new to you."
    ]
    if rule.tested:
        lines.append(f"Of {rule.tested:,} items set aside as a test it covers {rule.tested_hits:,}.")
    return lines


def readable(rule: Rule) -> str:
    """Return a rule in words: 'Drama and 1990s, or Comedy'."""
    if not rule.clauses or not all(rule.clauses):
        return str(rule)
    return ", or ".join(
        " and ".join(rule.names[k] if rule.names else f"x{k}" for k in clause) for clause in rule.clauses
    )


def changed(titles: ArrayLike, result: WhatIf, first: int = 10) -> list[str]:
    """Return how an item's rank changes without single liked items."""
    lines = [f"Rank now: {result.rank:,} of {result.of:,}."]
    if result.changes:
        names, worst = np.asarray(titles, dtype=object), result.changes[0]
        out = sum(change.rank > first for change in result.changes)
        tried = counted(len(result.changes), "liked item")
        lines.append(
            f"Without {names[worst.without]} it has rank {worst.rank:,}. Without one of the {tried} it "
            f"is outside the first {first} in {counted(out, 'case')}."
        )
    return lines


def parts(ranker: Any) -> str:
    """Return the models of a fitted blend with their weights; '' of other rankers."""
    names = getattr(ranker, "part_names_", None)
    if names is None:
        return ""
    listed = [f"{name} ({weight:.2f})" for name, weight in zip(names, ranker.part_weights_, strict=True)]
    return f"{ranker.name} adds up {counted(len(names), 'model')}: {'; '.join(listed)}."


def left_out(ranker: Any) -> str:
    """Return the candidates that `auto` left out and why, a line each; '' of other rankers."""
    dropped = getattr(ranker, "dropped_", None) or {}
    return "\n".join(f"{ranker.name} left out {name}: {why}." for name, why in dropped.items())
