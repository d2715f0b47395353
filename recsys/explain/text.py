"""Sentences for users, each with the counts it states: k of n, never a share of a few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from recsys.errors import InputError, counted, listing
from recsys.explain.association import ItemRule
from recsys.explain.contributions import Reasons
from recsys.explain.counterfactual_path import Steps
from recsys.explain.counterfactuals import WhatIf
from recsys.explain.recency import Age
from recsys.explain.rules.rule import Rule
from recsys.explain.rules.user_rules import Following, TasteRule
from recsys.utils.validation import check_choice

SINGULAR = {"users": "user", "people": "person", "items": "item"}
FEW = 20  # witnesses below it are said to be few
# How having an item is told: (past, "like" after a number, "likes" after one, "do", "does", the
# noun)
WORDS = {
    "liked": ("liked", "like", "likes", "do", "does", "like"),
    "rated": ("rated", "rated", "rated", "did", "did", "rating"),
}
# Up to how many days an age is told in a unit of how many days; units are rounded down.
UNITS = ((14, 1, "day"), (70, 7, "week"), (730, 30, "month"), (float("inf"), 365, "year"))


def because(
    titles: ArrayLike,
    found: Reasons,
    most: int = 3,
    *,
    word: str = "liked",
    ratings: Mapping[int, str] | None = None,
) -> str:
    """Return a sentence that names up to `most` liked items that speak for an item.

    `word` is what having an item means, "liked", or "rated" where any rating counts; `ratings` is what
    the user gave items, as it is shown beside their titles: "4 of 5".

    >>> found = Reasons("exact", score=0.6, bias=0.1, items=[(0, 0.3), (2, 0.2)])
    >>> because(["Alien", "Brazil", "Casablanca"], found)
    'Because you liked Alien and Casablanca.'
    """
    if most < 1:
        raise InputError(f"most must be at least 1, not {most}")
    past = _words(word)[0]
    names = np.asarray(titles, dtype=object)
    given = ratings or {}
    listed = [k for k, value in found.items if value > 0][:most]
    top = [f"{names[k]} [{given[k]}]" if k in given else str(names[k]) for k in listed]
    named = ""  # what the days are counted to, once it has been named
    for position, k in enumerate(listed):
        if k in found.ages:
            days, before, event = ago(found.ages[k], word=word).partition(" before ")
            top[position] += f" ({days}{before}{'it' if event and event == named else event})"
            named = event or named
    if found.kind == "popularity":
        if found.unit != "users":
            return "This model does not say why."
        number = round(found.score)
        return f"{counted(number, 'person', 'people')} {_words(word)[2 if number == 1 else 1]} it."
    if not top:
        return f"Nothing you {past} speaks for it."
    verb = f"Because you {past}" if found.kind == "exact" else f"Similar to what you {past}:"
    return f"{verb} {listing(top)}."


def ago(age: Age, *, word: str = "liked") -> str:
    """Return how long ago an interaction was, in days where they are known, else in newer interactions.

    >>> ago(Age(newer=2)), ago(Age(newer=0)), ago(Age(newer=9, days=16))
    ('2 likes ago', 'your latest like', '2 weeks before your latest like')
    >>> ago(Age(newer=0, days=1, since="2024-02-01"))
    '1 day before 2024-02-01'
    """
    noun = _words(word)[5]
    if age.days:
        until = age.since or f"your latest {noun}"
        return f"{_span(age.days)} before {until}"
    if age.newer:
        return f"{counted(age.newer, noun)} ago"
    return f"among your latest {noun}s" if age.alike else f"your latest {noun}"


def _span(days: int) -> str:
    """Return a number of days in completed units."""
    size, unit = next((size, unit) for most, size, unit in UNITS if days < most)
    return counted(days // size, unit)


def one_in(hits: int, of: int) -> str:
    """Return a share in words of small numbers: '1 in 5', '7 in 10', 'none', 'all'."""
    if of <= 0 or hits <= 0:
        return "none"
    if hits >= of:
        return "all"
    if 3 * hits <= of:
        return f"about 1 in {round(of / hits):,}"
    tenths = min(max(round(10 * hits / of), 1), 9)
    return f"about {tenths} in 10"


def rule_sentence(titles: ArrayLike, rule: ItemRule, *, word: str = "liked") -> str:
    """Return in a sentence what other users' interactions say about an item.

    Such as 'Of the 13 other people who liked A and B, 11 like this too; of the 386 others, 80 do (about
    1 in 5).' A support below 20 is called small.
    """
    past, many, one, do, does, _ = _words(word)
    names = np.asarray(titles, dtype=object)
    who = counted(rule.support, "other person", "other people")
    liked = listing([str(names[k]) for k in rule.items])
    text = (
        f"Of the {who} who {past} {liked}, {rule.hits:,} {one if rule.hits == 1 else many} this too; "
        f"of the {counted(rule.others, 'other')}, {rule.others_hits:,} "
        f"{does if rule.others_hits == 1 else do} ({one_in(rule.others_hits, rule.others)})."
    )
    return f"{text} {rule.support} is a small number." if rule.support < FEW else text


def listed(
    titles: ArrayLike, rule: ItemRule, ranker: str, first: int, users: int, *, word: str = "liked"
) -> str:
    """Return in a sentence for which users a model puts an item first.

    The rule is of the model's lists for so many users: its hits are users in whose list of `first` items
    the item is.
    """
    past, names = _words(word)[0], np.asarray(titles, dtype=object)
    liked = listing([str(names[k]) for k in rule.items])
    text = (
        f"{ranker} puts this among the first {first:,} for {rule.hits:,} of the "
        f"{counted(rule.support, 'other user')} who {past} {liked}, and for {rule.others_hits:,} of "
        f"the {counted(rule.others, 'other')} ({one_in(rule.others_hits, rule.others)}). Counted in the "
        f"model's lists for {counted(users, 'user')} without this item. {tested(rule, 'users')}"
    )
    return f"{text} {rule.support} is a small number." if rule.support < FEW else text


def tested(rule: ItemRule, what: str = "users") -> str:
    """Return in sentences how far a rule of `what`, a key of `SINGULAR`, holds where it was not chosen.

    >>> tested(ItemRule((0,), 40, 30, 0.75, 60, 6, 0.1, 0.61, 20, 14))
    'The rule was chosen on one half of them. Of 20 such users in the other half, 14 follow it: with \
95% confidence it holds for at least 49% of such users.'
    """
    such = counted(rule.tested, f"such {SINGULAR[what]}", f"such {what}")
    return (
        f"The rule was chosen on one half of them. Of {such} in the other half, {rule.tested_hits:,} "
        f"{follow(rule.tested_hits)} it: with 95% confidence it holds for at least "
        f"{int(100 * rule.tested_low)}% of such {what}."
    )


def owned(names: Sequence[str], rule: ItemRule, ranker: str, first: int, itself: bool | None) -> str:
    """Return in a sentence how many items with some attributes a model puts first in a list.

    The rule is of all items that could be recommended: its hits are those among the first of the list.
    `itself` says whether the explained item is one of them; None where it could not be recommended.

    >>> rule = ItemRule((0,), 40, 12, 0.3, 160, 8, 0.05, 0.18, 21, 7)
    >>> print(owned(["War"], rule, "ease", 20, True))
    ease puts 12 of the 40 items with War among the first 20 of this list, this one too, and 20 of \
all 200 (about 1 in 10). All items that could be recommended are counted, so these shares are exact. \
The rule was chosen on one half of them. Of 21 such items in the other half, 7 follow it: with 95% \
confidence it holds for at least 16% of such items.
    """
    own = {True: ", this one too", False: ", not this one", None: ""}[itself]
    items, listed = rule.support + rule.others, rule.hits + rule.others_hits
    text = (
        f"{ranker} puts {rule.hits:,} of the {counted(rule.support, 'item')} with "
        f"{listing(list(names))} among the first {first:,} of this list{own}, and {listed:,} of all "
        f"{items:,} ({one_in(listed, items)}). All items that could be recommended are counted, so "
        f"these shares are exact. {tested(rule, 'items')}"
    )
    return f"{text} {rule.support} is a small number." if rule.support < FEW else text


def taste(found: TasteRule, *, word: str = "liked") -> list[str]:
    """Return a user profile rule and its test, in sentences."""
    lines = [
        f"{found.support:,} of the {counted(found.profile, 'item')} you {_words(word)[0]} "
        f"{follow(found.support)} it, and {found.catalogue:,} of all {found.items:,} "
        f"({one_in(found.catalogue, found.items)}). It leaves {found.unseen:,} of the "
        f"{counted(found.candidates, 'item')} that could be recommended."
    ]
    if found.tested:
        lines.append(
            f"Learned without {found.tested:,} of these {found.profile:,}, of which "
            f"{found.tested_hits:,} {follow(found.tested_hits)} it."
        )
    return lines


def readable(rule: Rule) -> str:
    """Return a rule in words: 'Drama and 1990s, or Comedy'."""
    if not rule.clauses or not all(rule.clauses):
        return str(rule)
    parts = [" and ".join(rule.names[k] if rule.names else f"x{k}" for k in c) for c in rule.clauses]
    return ", or ".join(parts)


def follows(found: Following, mark: str) -> list[str]:
    """Return in sentences how far a list, and the ranker behind it, follow a user profile rule.

    `mark` is what stands beside the items of the list that follow it; '' for nothing.
    """
    listed, here = len(found.follows), sum(found.follows)
    marked = f" (marked {mark})" if here and mark else ""
    lines = [
        f"{here:,} of the {listed:,} in this list {follow(here)} it{marked}; of the "
        f"{found.rest:,} other items that could be recommended, {found.rest_follow:,}."
    ]
    if found.covered:
        lines.append(
            f"Of the {counted(found.covered, 'item')} that could be recommended and "
            f"{follow(found.covered)} it, this model has {found.agreed:,} among its first "
            f"{found.covered:,}; by chance it would be {found.chance:.1f}."
        )
    return lines


def changed(titles: ArrayLike, found: WhatIf, first: int = 10) -> list[str]:
    """Return in sentences how an item's rank in a list of `first` changes without single liked items."""
    lines = [f"Rank now: {found.rank:,} of {found.of:,}."]
    names = np.asarray(titles, dtype=object)
    if found.tried:
        which = (
            f"the {counted(len(found.tried), 'liked item')}"
            if len(found.tried) >= found.liked
            else f"the {len(found.tried):,} liked items that matter most, of {found.liked:,},"
        )
        worst, best = found.tried[0].rank, min(change.rank for change in found.tried)
        if worst <= first:
            lines.append(f"Without any one of {which} it stays among the first {first}.")
        elif best > first:
            lines.append(f"Without any one of {which} it stays outside the first {first}.")
        else:
            out = sum(change.rank > first for change in found.tried)
            lines.append(
                f"Without {out:,} of {which} taken alone, it is outside the first {first}; without "
                f"{len(found.tried) - out:,}, among them."
            )
    if found.misfit is not None:
        k, share, fall = found.misfit
        way = "falls" if fall >= 0 else "rises"
        lines.append(
            f"This model is not additive: without {names[k]} the score {way} by {abs(fall):.4f}, while "
            f"it adds {share:+.4f} now, because what the others add changes with it."
        )
    return lines


def falls(titles: ArrayLike, steps: Steps, *, word: str = "liked") -> str:
    """Return where an item falls without some of the liked items; '' where nothing can be taken out.

    >>> falls(["Alien", "Brazil", "Casablanca"], Steps(2, (0, 2), (7, 14), 10, True))
    'Without Alien and Casablanca it falls from rank 2 to 14, out of the first 10.'
    """
    if not steps.items:
        return ""
    names = np.asarray(titles, dtype=object)
    which = listing([str(names[k]) for k in steps.items])
    last = steps.ranks[-1]
    if steps.reached:
        out = f"out of the first {steps.goal:,}"
        return f"Without {which} it falls from rank {steps.rank:,} to {last:,}, {out}."
    past = _words(word)[0]
    many = counted(len(steps.items), f"{past} item")
    stays = f"it stays among the first {steps.goal:,}, at rank {last:,}"
    return f"Even without {many} ({which}) {stays}."


def rises(titles: ArrayLike, steps: Steps, *, word: str = "liked") -> str:
    """Return which items would have to be liked besides for an item to rise; '' if none raise it.

    >>> rises(["Alien", "Brazil", "Casablanca"], Steps(9, (1,), (1,), 1, True))
    'With Brazil liked too it rises from rank 9 to 1.'
    """
    if not steps.items:
        return ""
    names = np.asarray(titles, dtype=object)
    which = listing([str(names[k]) for k in steps.items])
    last = steps.ranks[-1]
    past = _words(word)[0]
    if last >= steps.rank:
        return f"With {which} {past} too its score rises, but it stays at rank {last:,}."
    goal = "" if steps.reached else f", still short of {steps.goal:,}"
    return f"With {which} {past} too it rises from rank {steps.rank:,} to {last:,}{goal}."


def parts(ranker: Any) -> str:
    """Return in a sentence the models of a fitted blend, with their weights; '' for other rankers."""
    names = getattr(ranker, "part_names_", None)
    if names is None:
        return ""
    weights = np.asarray(ranker.part_weights_, dtype=np.float64)
    listed = "; ".join(f"{name} ({weight:.2f})" for name, weight in zip(names, weights, strict=True))
    how = ", chosen on held-out halves of profiles" if ranker.name == "auto" else ""
    return f"{ranker.name} adds up {counted(len(names), 'model')}{how}, with these weights: {listed}."


def left_out(ranker: Any) -> str:
    """Return the candidates that `auto` left out and why, a line each; '' for other rankers."""
    dropped = getattr(ranker, "dropped_", None)
    if not dropped:
        return ""
    reasons: dict[str, list[str]] = {}
    for name, why in dropped.items():
        reasons.setdefault(str(why), []).append(str(name))
    lines = [f"{'; '.join(names)}: {why}." for why, names in reasons.items()]
    return "\n".join([f"{ranker.name} left out {counted(len(dropped), 'model')}:", *lines])


def follow(number: int) -> str:
    """Return the verb after a number."""
    return "follows" if number == 1 else "follow"


def _words(word: str) -> tuple[str, str, str, str, str, str]:
    return WORDS[check_choice("word", word, tuple(WORDS))]
