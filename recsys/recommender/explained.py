"""Why an item is in a list, and what a profile has in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from recsys.errors import InputError, counted
from recsys.explain import (
    Attributes,
    WhatIf,
    because,
    blend_parts,
    item_rule,
    products,
    reasons,
    taste_rule,
    top_formulas,
    what_if,
)
from recsys.explain import text as wording
from recsys.explain.counterfactuals import TRIED, open_items, rank_among
from recsys.rankers import ModelPackage
from recsys.rankers.catalogue import Profile
from recsys.recommender.answers import Rules, Why
from recsys.recommender.fitted import Fitted
from recsys.recommender.ids import one_id
from recsys.recommender.model_rules import NO_ATTRIBUTES, attributes_rule, list_rule
from recsys.utils.validation import check_integer

BUDGET = 50_000_000  # entries of rows that a search for formulas looks at: a fraction of a second
SOMEBODY = "somebody"  # a new user, in sentences
SAID = ("user", "item", "ranker", "min_support")  # keys that are repeated elsewhere
COUNTS = ("support", "hits", "others", "others_hits", "low", "tested", "tested_hits", "tested_low")
CLOSE = 1e-3  # relative difference from the list's score that is not mentioned
LEAST_PROFILE = 5  # liked items below which no rule of a profile is looked for


def explained(
    package: ModelPackage, profile: Profile, item: str | int, n: int = 10, *, kind: str = "pandas",
    formulas: int = 0, changes: int = 0, model_rule: int = 0, attributes: Attributes | None = None,
) -> Why:  # fmt: skip
    """Return why an item has its score for a profile, and the rule of other users about it."""
    index = int(package.items([one_id("item", item)])[0])
    return explained_row(
        package, profile.userid, profile.row, index, n, fold_in=profile.fold_in, times=profile.times,
        as_of=profile.as_of, exclude=profile.user, kind=kind, formulas=formulas, changes=changes,
        model_rule=model_rule, attributes=attributes,
    )  # fmt: skip


def explained_row(
    package: ModelPackage, userid: int, row: Any, item: int, n: int = 10, *, fold_in: bool = False,
    times: Any = None, as_of: float | None = None, exclude: int | None = None, word: str | None = None,
    ratings: Any = None, kind: str = "pandas", formulas: int = 0, changes: int = 0, model_rule: int = 0,
    attributes: Attributes | None = None,
) -> Why:  # fmt: skip
    """Return `explained` of an item by its number, for a row of liked items as a ranker takes it.

    Command line, service, app and `Recommender.explain` all show what this returns. `userid`, `row`,
    `item`, `times`, `as_of` and `n` are those of `recsys.explain.reasons`, `word` and `ratings` those of
    `recsys.explain.because`; the word is that of the model package's columns when not given.

    `fold_in` says that the row is not that of the user's fit, where the ranker folds rows in. `exclude`
    is the row of the user who asks, who is left out of the rule's counts. There are so many formulas,
    those with the largest weights; so many changes, liked items without which the item's rank is worst;
    and, above 0, a `model_rule`: for which other users the model puts the item among so many first, and
    which items with attributes of this one it puts there for this user. `attributes` are those of the
    items, where they are at hand; else they are made for a model rule.
    """
    check_integer("formulas", formulas, 0)
    check_integer("changes", changes, 0)
    check_integer("model_rule", model_rule, 0)
    ranker, ids, titles = package.ranker, package.item_ids, package.titles
    word = word_of(package) if word is None else word
    folds = fold_in and "fold-in" in ranker.capabilities
    found = reasons(ranker, userid, row, item, n, recalculate_user=folds, times=times, as_of=as_of)
    users = None if folds else np.array([userid])
    known = not ranker.falls_back(users, row)[0]  # of the items, or of the user
    rule = None
    if row.nnz:
        liked, whose = row.indices, package.item_users
        rule = item_rule(package.user_items, liked, item, exclude=exclude, item_users=whose)
    named = [] if rule is None else rule.items
    weighted: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()
    if formulas:
        weighted, notes = formulas_of(package, userid, row, item, formulas, exclude, times)
    ruled: dict[str, Any] | None = None
    if model_rule:
        ruled, why_none = model_rule_of(
            package, userid, row, item, model_rule, fold_in=fold_in, times=times, exclude=exclude,
            word=word, attributes=attributes,
        )  # fmt: skip
        notes += why_none
    changed: WhatIf | None = None
    # a row that is folded in is scored by itself; only of a user of the fit something else is kept
    scored = ranker.scores([userid], row, times=times)[0] if not folds else None
    if scored is not None and abs(scored[item] - found.score) > CLOSE * max(1.0, abs(found.score)):
        notes += (
            f"its score in the list is {scored[item]:.4g}, by what was fitted for the user; the score "
            "here is by the liked items alone",
        )
    if changes:
        changed = what_if(
            ranker, userid, row, item, TRIED * changes, recalculate_user=folds, times=times
        )
        listed = changed.rank
        if scored is not None:
            listed = rank_among(scored, open_items(row, (), item), item)
        if listed != changed.rank:
            notes += (
                f"the list has it at rank {listed:,}, by what was fitted for the user; the ranks here "
                "are by the liked items alone",
            )
    names: dict[str, Any] = package.feature_names if hasattr(ranker, "products") else {}
    return Why(
        item=ids[item],
        title=str(titles[item]),
        sentence=because(titles, found, word=word, ratings=ratings),
        rule_text="" if rule is None else wording.rule_sentence(titles, rule, word=word),
        score=found.score,
        base=found.base,
        reasons=found,
        rows=tuple(
            (
                ids[k], str(titles[k]), float(value),
                wording.ago(found.ages[k], word=word) if k in found.ages else "",
            )
            for k, value in found.items
        ),
        kind=kind,
        ranker=ranker.name,
        products=products(ranker, userid, row, item, titles, **names, recalculate_user=folds)
        if known
        else None,
        parts=tuple(
            (part.name, part.weight, part.adds)
            for part in blend_parts(ranker, userid, row, item, times=times)
        ) if row.nnz else (),
        rule=rule,
        rule_items=tuple((ids[k], str(titles[k])) for k in named),
        formulas=weighted,
        changes=None if changed is None else changes_of(package, changed, changes),
        model_rule=ruled,
        notes=notes,
    )  # fmt: skip


def formulas_of(
    package: ModelPackage, userid: int, row: Any, item: int, most: int, exclude: int | None, times: Any
) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """Return the formulas with the largest weights that hold for an item, as JSON, or why none."""
    try:
        found = top_formulas(
            package.ranker, package.user_items, userid, row, item=item, N=most, exclude=exclude,
            times=times, budget=BUDGET,
        )  # fmt: skip
    except InputError as error:  # the ranker or the profile has none
        return None, (f"no formulas: {error}",)
    user = SOMEBODY if exclude is None else str(package.user_ids[exclude])
    told = found.as_dict(user, package.user_ids, title=str(package.titles[item]))
    listed = told.pop("formulas")
    return {k: v for k, v in told.items() if k not in SAID} | {"listed": listed}, ()


def changes_of(package: ModelPackage, found: WhatIf, most: int) -> dict[str, Any]:
    """Return an item's rank, and without which liked items it is worst, as JSON takes it."""
    return {
        "rank": found.rank, "of": found.of, "liked": found.liked, "tried": len(found.tried),
        "listed": [
            {
                "item": str(package.item_ids[one.without]), "title": str(package.titles[one.without]),
                "score": one.score, "rank": one.rank,
            }
            for one in found.tried[:most]
        ],
        "text": wording.changed(package.titles, found),
    }  # fmt: skip


def model_rule_of(
    package: ModelPackage, userid: int, row: Any, item: int, first: int, *, fold_in: bool, times: Any,
    exclude: int | None, word: str, leave_out: Any = (), attributes: Attributes | None = None,
) -> tuple[dict[str, Any] | None, tuple[str, ...]]:  # fmt: skip
    """Return for which users, and which items, the model's rule puts an item first, as JSON takes it.

    The first part is over liked items, the second over the item's own attributes; the notes say why a
    part is missing. None where both are.
    """
    rule, users = list_rule(package, row, item, first, exclude)
    owned, why_none = attributes_rule(
        package, userid, row, item, first, fold_in=fold_in, times=times, leave_out=leave_out,
        attributes=attributes,
    )  # fmt: skip
    notes: tuple[str, ...] = ()
    if rule is None:
        notes += (
            f"no rule of the model: no one or two liked items predict for which of "
            f"{counted(users, 'other user')} without it {package.ranker.name} has it among the first "
            f"{first:,}",
        )
    if owned is None and why_none != NO_ATTRIBUTES:
        notes += (f"no rule over attributes: {why_none}",)
    if rule is None and owned is None:
        return None, notes
    ids, titles = package.item_ids, package.titles
    ranker, text = package.ranker.name, ""
    if rule is not None:
        text = wording.listed(titles, rule, ranker, first, users, word=word)
    listed = () if rule is None else rule.items
    return {
        "items": [{"item": str(ids[k]), "title": str(titles[k])} for k in listed], "first": first,
        "users": users, **{name: getattr(rule, name, None) for name in COUNTS}, "text": text,
        "attributes": None if owned is None else owned.as_dict(ranker, first),
    }, notes  # fmt: skip


def word_of(package: ModelPackage) -> str:
    """Return what having an item means: "rated" where every rating counted, else "liked"."""
    columns = package.columns
    every = columns is not None and columns.rating is not None and columns.min_rating is None
    return "rated" if every else "liked"


def list_rules(fitted: Fitted, profile: Profile, items: Sequence[int], kind: str) -> Rules:
    """Return the rules behind a list: the profile's own, and those of other users about its items."""
    package, word, told = fitted.package, word_of(fitted.package), []
    for k in items:
        rule = item_rule(
            package.user_items, profile.items, k, exclude=profile.user, item_users=package.item_users
        )
        if rule is not None:
            sentence = wording.rule_sentence(package.titles, rule, word=word)
            told.append((package.item_ids[k], str(package.titles[k]), sentence, rule))
    taste = profile_rule(fitted, profile)
    said: tuple[str, ...] = ()
    if taste is not None:
        rule_said = f"This profile as a rule: {wording.readable(taste.rule)}."
        said = (rule_said, *wording.taste(taste, word=word))
    return Rules(taste, said, tuple(told), kind)


def profile_rule(fitted: Fitted, profile: Profile) -> Any:
    """Return the rule that describes a profile, where there is one that holds its test."""
    if len(fitted.attributes) < 2 or profile.row.nnz < LEAST_PROFILE:
        return None
    popularity = fitted.package.ranker.popularity_.astype(np.float64)
    if profile.user is not None:
        popularity[profile.items] -= 1
    others = np.setdiff1d(np.arange(len(fitted.package.item_ids)), profile.items)
    found = taste_rule(profile.items.astype(np.int64), fitted.attributes, popularity, candidates=others)
    return found if found is not None and found.shown else None
