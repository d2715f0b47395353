"""Explanations of a recommender: sentences, the counts behind them, and tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any

from recsys.errors import counted
from recsys.explain import Decomposition, ItemRule, Reasons, TasteRule
from recsys.utils import frames

ROUNDING = 1e-9  # of the score: what sums of shares differ by


@dataclass(frozen=True)
class Why:
    """Why an item is recommended.

    Attributes
    ----------
    item : str or int
    title : str
    sentence : str
        Names the liked items that speak most for it.
    rule_text : str
        A sentence on other users' interactions with it, counted in the data and not by the model; empty
        where no rule passed its test.
    score : float
    base : float
        What no liked item adds to the score.
    reasons : Reasons
        The shares by number of item, "exact" ones sum with `reasons.bias` to the score.
    rows : tuple of (id, title, share, age)
        Liked items, the largest share first; the age is text, empty where the model does not read it.
    kind : str
        Of the tables that are made.
    ranker : str
        Name of the model.
    products : Decomposition or None
        Which features of the profile, and which two together, a factorization machine or a link
        predictor multiplies with the item's; None for other models.
    parts : tuple of (name, weight, adds)
        Of a blend: what each of its models adds to the score.
    rule : ItemRule or None
        What `rule_text` says, as counts.
    rule_items : tuple of (id, title)
        The items of the rule.
    formulas : dict or None
        Where `explain` was asked for some: the model's conjunctions or disjunctions of users that hold
        for the item, with the largest weights, as `as_dict` has them. None where the model has none.
    changes : dict or None
        Where `explain` was asked for some: the item's rank, and its rank and score without single liked
        items, as `as_dict` has them.
    model_rule : dict or None
        Where `explain` was asked for it: the one or two liked items for which the model most often puts
        the item first, counted in its lists for other users, and the one or two attributes of the item
        with which items most often come first in the user's list, as `as_dict` has them. None where
        neither passed its test.
    notes : tuple of str
        What was asked for and cannot be told, and why.

    Examples
    --------
    >>> import recsys
    >>> model = recsys.Recommender("ease").fit(recsys.load_dataset("sample"))
    >>> why = model.explain("u0001", model.recommend("u0001", n=1)["item"][0])
    >>> print(why.sentence)
    Because you liked Crimson Compass (1954), Quiet Kingdom (1962) and Electric Garden (1987).
    >>> print(round(why.score - why.base - why.frame()["adds"].sum() - why.reasons.others, 6))
    0.0
    """

    item: str | int
    title: str
    sentence: str
    rule_text: str
    score: float
    base: float
    reasons: Reasons
    rows: tuple[tuple[Any, str, float, str], ...]
    kind: str = "pandas"
    ranker: str = ""
    products: Decomposition | None = None
    parts: tuple[tuple[str, float, float], ...] = ()
    rule: ItemRule | None = None
    rule_items: tuple[tuple[Any, str], ...] = ()
    formulas: dict[str, Any] | None = None
    changes: dict[str, Any] | None = None
    model_rule: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON takes it: what `recsys explain --json` writes and `POST /explain` answers.

        Ids are text. The OpenAPI document of the service describes every field.

        Examples
        --------
        >>> import recsys
        >>> model = recsys.Recommender("fm:iterations=2").fit(recsys.load_dataset("sample"))
        >>> told = model.explain("u0001", "m0149").as_dict()
        >>> made = told["products"]
        >>> listed = sum(one["adds"] for one in made["listed"])
        >>> round(told["score"] - made["base"] - listed - made["others"] - made["higher"], 5)
        0.0
        >>> model = recsys.Recommender("cf-komd:kernel=mc,degree=2").fit(recsys.load_dataset("sample"))
        >>> told = model.explain("u0001", "m0256", formulas=2, changes=1).as_dict()
        >>> [len(one["users"]) for one in told["formulas"]["listed"]], told["formulas"]["exact"]
        ([2, 2], True)
        >>> told["changes"]["listed"][0]["rank"] >= told["changes"]["rank"]
        True
        """
        found, made, rule = self.reasons, self.products, self.rule
        return {
            "item": str(self.item), "title": self.title, "ranker": self.ranker, "kind": found.kind,
            "score": found.score, "bias": found.bias, "base": found.base, "unit": found.unit,
            "sentence": self.sentence,
            "items": [
                {"item": str(name), "title": title, "score": share, **_aged(found, k)}
                for (name, title, share, _), (k, _) in zip(self.rows, found.items, strict=True)
            ],
            "others": found.others, "unlisted": found.unlisted,
            "products": None if made is None else {
                "base": made.base,
                "listed": [{"features": list(one.names), "adds": one.adds} for one in made.listed],
                "others": made.others, "unlisted": made.unlisted, "higher": made.higher,
            },
            "parts": [
                {"model": name, "weight": weight, "adds": adds} for name, weight, adds in self.parts
            ],
            "rule": None if rule is None else {
                "items": [{"item": str(name), "title": title} for name, title in self.rule_items],
                "hits": rule.hits, "support": rule.support, "others_hits": rule.others_hits,
                "others": rule.others, "text": self.rule_text,
            },
            "formulas": self.formulas, "changes": self.changes, "model_rule": self.model_rule,
            "notes": list(self.notes),
        }  # fmt: skip

    @property
    def measure(self) -> str:
        """The meaning of the rows' numbers: "adds" to the score, or "similarity" to the item."""
        return "similarity" if self.reasons.kind == "nearest" else "adds"

    def frame(self) -> Any:
        """Return a table of the liked items: item, title, adds (or similarity), and age where told."""
        columns: dict[str, list[Any]] = {
            "item": [row[0] for row in self.rows],
            "title": [row[1] for row in self.rows],
            self.measure: [row[2] for row in self.rows],
        }
        if any(row[3] for row in self.rows):
            columns["age"] = [row[3] for row in self.rows]
        return frames.make(columns, self.kind)

    def __str__(self) -> str:
        lines = [f"{self.title}: {self.sentence}", *([self.rule_text] if self.rule_text else [])]
        lines += [f"{row[2]:+.4g}  {row[1]}{f' ({row[3]})' if row[3] else ''}" for row in self.rows]
        if self.measure == "adds":
            rest = self.reasons.unlisted
            lines += [f"{self.reasons.others:+.4g}  {rest:,} other liked items"] if rest else []
            if abs(self.base) > ROUNDING * abs(self.score):
                lines.append(f"{self.base:+.4g}  base value")
            lines.append(f"{self.score:.4g}  score")
        lines += [f"{value:+.4g}  {name}" for name, value in self.multiplied]
        return "\n".join([*lines, *self.sentences])

    @property
    def sentences(self) -> list[str]:
        """The model's rule, formulas, counterfactuals and notes; empty where none were asked for."""
        said = rule_sentences(self.model_rule)
        if self.formulas is not None:
            said += [*self.formulas["text"], *(one["text"] for one in self.formulas["listed"])]
        if self.changes is not None:
            said += self.changes["text"]
            said += [
                f"Without {one['title']}: rank {one['rank']:,}, score {one['score']:.4g}."
                for one in self.changes["listed"]
            ]
        return [*said, *self.notes]

    @property
    def multiplied(self) -> list[tuple[str, float]]:
        """The products of features with what they add, signs kept, down to what is not listed."""
        made = self.products
        if made is None:
            return []
        rows = [("the item's own", made.base)]
        rows += [(" × ".join(one.names), one.adds) for one in made.listed]
        if made.unlisted:
            rows.append((counted(made.unlisted, "other product"), made.others))
        if made.higher:
            rows.append(("more than two together", made.higher))
        return rows

    def _repr_html_(self) -> str:
        """Return it as a notebook shows it."""
        cells = "".join(
            f"<tr><td>{escape(str(row[1]))}</td><td style='text-align:right'>{row[2]:+.4g}</td>"
            f"<td>{escape(row[3])}</td></tr>"
            for row in self.rows
        )
        rule_text = f"<p>{escape(self.rule_text)}</p>" if self.rule_text else ""
        head = f"<p><b>{escape(self.title)}</b>: {escape(self.sentence)}</p>{rule_text}"
        table = f"<table><tr><th>you like</th><th>{self.measure}</th><th></th></tr>{cells}</table>"
        products = "".join(
            f"<tr><td>{escape(name)}</td><td style='text-align:right'>{value:+.4g}</td></tr>"
            for name, value in self.multiplied
        )
        if products:
            table += f"<table><tr><th>features</th><th>adds</th></tr>{products}</table>"
        return head + table + "".join(f"<p>{escape(line)}</p>" for line in self.sentences)


def rule_sentences(rule: dict[str, Any] | None) -> list[str]:
    """Return the sentences of `Why.model_rule`: over liked items, and over attributes."""
    if rule is None:
        return []
    owned = rule["attributes"]
    return [text for text in (rule["text"], "" if owned is None else owned["text"]) if text]


def _aged(found: Reasons, item: int) -> dict[str, Any]:
    """Return how long ago a liked item was, null where the model does not rank by it."""
    age = found.ages.get(item)
    return {"newer": None if age is None else age.newer, "days": None if age is None else age.days}


@dataclass(frozen=True)
class Rules:
    """Rules behind a user's list.

    Attributes
    ----------
    taste : TasteRule or None
        The user profile rule: it describes the liked items by their attributes. None where none does.
    sentences : tuple of str
        The user profile rule in words, with its counts; empty without one.
    items : tuple of (id, title, sentence, ItemRule)
        For items of the list, the best first: a rule of other users that speaks for it, where one held
        its test.
    kind : str
        Of the tables that are made.

    Examples
    --------
    >>> import recsys
    >>> model = recsys.Recommender("ease").fit(recsys.load_dataset("sample"))
    >>> found = model.rules("u0001", n=3)
    >>> list(found.frame().columns)
    ['item', 'title', 'rule', 'hits', 'support', 'others_hits', 'others']
    """

    taste: TasteRule | None
    sentences: tuple[str, ...]
    items: tuple[tuple[Any, str, str, ItemRule], ...] = field(default=())
    kind: str = "pandas"

    def frame(self) -> Any:
        """Return a table of the rules of other users, one per item, with the counts they state."""
        rules = [row[3] for row in self.items]
        return frames.make({
            "item": [row[0] for row in self.items],
            "title": [row[1] for row in self.items],
            "rule": [row[2] for row in self.items],
            "hits": [rule.hits for rule in rules],
            "support": [rule.support for rule in rules],
            "others_hits": [rule.others_hits for rule in rules],
            "others": [rule.others for rule in rules],
        }, self.kind)  # fmt: skip

    def __str__(self) -> str:
        lines = [*self.sentences] or ["No rule describes this profile."]
        lines += [f"{title}: {sentence}" for _, title, sentence, _ in self.items]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return it as a notebook shows it."""
        said = "".join(f"<p>{escape(text)}</p>" for text in self.sentences)
        rows = "".join(
            f"<li><b>{escape(title)}</b>: {escape(sentence)}</li>"
            for _, title, sentence, _ in self.items
        )
        return f"{said or '<p>No rule describes this profile.</p>'}<ol>{rows}</ol>"
