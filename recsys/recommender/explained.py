"""Why an item is recommended, and the rules behind a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from recsys.data import tables
from recsys.explain import (
    Attributes,
    ItemRule,
    PartShare,
    Reasons,
    TasteRule,
    because,
    blend_parts,
    item_rule,
    reasons,
    taste_rule,
    text,
    what_if,
)
from recsys.explain.counterfactuals import candidates, rank_among
from recsys.rankers import ModelPackage
from recsys.rankers.package import Profile
from recsys.recommender.lists import word_of
from recsys.utils.validation import check_integer

ROUNDING = 1e-9  # of the score: what sums of shares differ by
TRIED = 4  # liked items that are left out, for each change that is listed
CLOSE = 1e-3  # relative difference from the score in the list that is not mentioned
MIN_PROFILE = 5  # liked items of a profile with a rule
COUNTS = ("hits", "support", "others_hits", "others")  # of a rule of other users


@dataclass(frozen=True)
class Why:
    """Explanation of a recommended item."""

    item: str | int
    title: str
    sentence: str  #: names the liked items with the largest contributions
    rule_text: str  #: rule of other users, counted in the data; empty if no rule passes the test
    score: float
    base: float  #: part of the score that does not come from liked items
    reasons: Reasons  #: the shares by index of item
    rows: tuple[tuple[Any, str, float], ...]  #: liked items (id, title, share), largest share first
    kind: str = "pandas"  #: of tables: "pandas", "polars" or "pyarrow"
    ranker: str = ""
    parts: tuple[PartShare, ...] = ()  #: contribution of each model of a blend
    rule: ItemRule | None = None  #: the counts of `rule_text`
    rule_items: tuple[tuple[Any, str], ...] = ()  #: (id, title) of the items of the rule
    changes: dict[str, Any] | None = None  #: rank, and rank and score without single liked items
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return values for JSON, as in `recsys explain --json` and `POST /explain`; ids are text."""
        result, rule = self.reasons, None
        if self.rule is not None:
            rule = {
                "items": [{"item": str(name), "title": title} for name, title in self.rule_items],
                **{name: getattr(self.rule, name) for name in COUNTS},
                "text": self.rule_text,
            }
        return {
            "item": str(self.item),
            "title": self.title,
            "ranker": self.ranker,
            "kind": result.kind,
            "score": result.score,
            "bias": result.bias,
            "base": result.base,
            "unit": result.unit,
            "sentence": self.sentence,
            "items": [
                {"item": str(name), "title": title, "score": share} for name, title, share in self.rows
            ],
            "others": result.others,
            "unlisted": result.unlisted,
            "parts": [{"model": one.name, "weight": one.weight, "adds": one.adds} for one in self.parts],
            "rule": rule,
            "changes": self.changes,
            "notes": list(self.notes),
        }

    @property
    def measure(self) -> str:
        """Meaning of the shares: "adds" to the score, or "similarity" to the item."""
        return "similarity" if self.reasons.kind == "nearest" else "adds"

    def frame(self) -> Any:
        """Return a table of the liked items: item, title, adds (or similarity)."""
        names = ("item", "title", self.measure)
        return tables.make(
            {name: [row[k] for row in self.rows] for k, name in enumerate(names)}, self.kind
        )

    @property
    def sentences(self) -> list[str]:
        """The rule of other users, the changes and the notes."""
        lines = [self.rule_text] if self.rule_text else []
        return [*lines, *(self.changes or {"text": []})["text"], *self.notes]

    def __str__(self) -> str:
        lines = [f"{self.title}: {self.sentence}"]
        lines += [f"{share:+.4g}  {title}" for _, title, share in self.rows]
        if self.measure == "adds":
            if self.reasons.unlisted:
                lines.append(f"{self.reasons.others:+.4g}  {self.reasons.unlisted:,} other liked items")
            if abs(self.base) > ROUNDING * abs(self.score):
                lines.append(f"{self.base:+.4g}  base value")
            lines.append(f"{self.score:.4g}  score")
        return "\n".join([*lines, *self.sentences])

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><td>{escape(title)}</td><td style='text-align:right'>{share:+.4g}</td></tr>"
            for _, title, share in self.rows
        )
        head = f"<p><b>{escape(self.title)}</b>: {escape(self.sentence)}</p>"
        table = f"<table><tr><th>liked</th><th>{self.measure}</th></tr>{cells}</table>"
        return head + table + "".join(f"<p>{escape(line)}</p>" for line in self.sentences)


def explained(
    package: ModelPackage, profile: Profile, item: str | int, n: int = 10, *, changes: int = 0
) -> Why:
    """Return why an item has its score for a profile; parameters as in `Recommender.explain`."""
    check_integer("changes", changes, 0)
    ranker, ids, titles, word = package.ranker, package.item_ids, package.titles, word_of(package)
    index = int(package.items([item], "item")[0])
    userid, row, times = profile.userid, profile.row, profile.times
    folds = profile.fold_in and "fold-in" in ranker.capabilities
    options: dict[str, Any] = {"recalculate_user": folds, "times": times}
    result = reasons(ranker, userid, row, index, n, **options)
    rule = _item_rule(package, profile, index) if row.nnz else None
    listed: dict[str, Any] | None = None
    if changes:
        what = what_if(ranker, userid, row, index, TRIED * changes, **options)
        listed = {"rank": what.rank, "of": what.of, "liked": what.liked, "tried": len(what.changes)}
        listed["text"] = text.changed(titles, what)
        listed["listed"] = [
            {"item": str(ids[k]), "title": str(titles[k]), "score": score, "rank": rank}
            for k, score, rank in what.changes[:changes]
        ]
    return Why(
        item=ids[index],
        title=str(titles[index]),
        sentence=because(titles, result, word=word),
        rule_text="" if rule is None else text.rule_sentence(titles, rule, word=word),
        score=result.score,
        base=result.base,
        reasons=result,
        rows=tuple((ids[k], str(titles[k]), float(value)) for k, value in result.items),
        kind=package.kind,
        ranker=ranker.name,
        parts=tuple(blend_parts(ranker, userid, row, index, times=times)) if row.nnz else (),
        rule=rule,
        rule_items=tuple((ids[k], str(titles[k])) for k in (() if rule is None else rule.items)),
        changes=listed,
        notes=() if folds else _stored_note(ranker, profile, index, result.score, listed),
    )


def _item_rule(package: ModelPackage, profile: Profile, item: int) -> ItemRule | None:
    options = {"exclude": profile.user, "item_users": package.item_users}
    return item_rule(package.user_items, profile.items, item, **options)


def _stored_note(
    ranker: Any, profile: Profile, item: int, score: float, changes: dict[str, Any] | None
) -> tuple[str, ...]:
    """Return a note if the list uses another score, from the fitted user vector."""
    scores = ranker.scores([profile.userid], profile.row, times=profile.times)[0]
    listed = rank_among(scores, candidates(profile.row, item), item)
    same_score = abs(scores[item] - score) <= CLOSE * max(1.0, abs(score))
    if same_score and (changes is None or changes["rank"] == listed):
        return ()
    return (
        f"in the list, by the factors fitted for the user, its score is {scores[item]:.4g} and its rank "
        f"{listed:,}; the numbers here are of the liked items alone",
    )


@dataclass(frozen=True)
class Rules:
    """The rules for a user's list."""

    taste: TasteRule | None  #: description of the liked items by their attributes, if there is one
    sentences: tuple[str, ...]  #: the rule of the profile with its counts
    #: Items of the list with a rule of other users: (id, title, sentence, rule).
    items: tuple[tuple[Any, str, str, ItemRule], ...] = ()
    kind: str = "pandas"

    def frame(self) -> Any:
        """Return a table of the rules of other users, one for an item."""
        names = ("item", "title", "rule")
        columns = {name: [row[k] for row in self.items] for k, name in enumerate(names)}
        for name in COUNTS:
            columns[name] = [getattr(row[3], name) for row in self.items]
        return tables.make(columns, self.kind)

    def __str__(self) -> str:
        lines = [*self.sentences] or ["No rule describes this profile."]
        return "\n".join([*lines, *(f"{title}: {sentence}" for _, title, sentence, _ in self.items)])


def list_rules(
    package: ModelPackage, profile: Profile, items: Sequence[int], attributes: Attributes
) -> Rules:
    """Return the rules behind a list of items."""
    word, listed = word_of(package), []
    for k in items:
        rule = _item_rule(package, profile, k)
        if rule is not None:
            sentence = text.rule_sentence(package.titles, rule, word=word)
            listed.append((package.item_ids[k], str(package.titles[k]), sentence, rule))
    taste = None
    if len(attributes) > 1 and profile.row.nnz >= MIN_PROFILE:
        popularity = package.ranker.popularity_.astype(np.float64)
        if profile.user is not None:
            popularity[profile.items] -= 1
        taste = taste_rule(profile.items, attributes, popularity)
    if taste is not None and taste.shown:
        head = f"This profile as a rule: {text.readable(taste.rule)}."
        return Rules(taste, (head, *text.taste(taste, word=word)), tuple(listed), package.kind)
    return Rules(None, (), tuple(listed), package.kind)
