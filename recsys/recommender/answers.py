"""What a recommender says of an item or a person: sentences, the counts behind them, and tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any

from recsys.explain import ItemRule, Reasons, TasteRule
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
    people : str
        What other people's likes say of it, counted in the data and not by the model; empty where no
        rule held its test.
    score : float
    base : float
        What no liked item adds to the score.
    reasons : Reasons
        The shares by number of item, "exact" ones sum with `reasons.bias` to the score.
    rows : tuple of (id, title, share, age)
        Liked items, the largest share first; the age is text, empty where the model does not read it.
    kind : str
        Of the tables that are made.

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
    people: str
    score: float
    base: float
    reasons: Reasons
    rows: tuple[tuple[Any, str, float, str], ...]
    kind: str = "pandas"

    @property
    def measure(self) -> str:
        """What the rows' numbers are: "adds" to the score, or "similarity" to the item."""
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
        lines = [f"{self.title}: {self.sentence}", *([self.people] if self.people else [])]
        lines += [f"{row[2]:+.4g}  {row[1]}{f' ({row[3]})' if row[3] else ''}" for row in self.rows]
        if self.measure == "adds":
            rest = self.reasons.unlisted
            lines += [f"{self.reasons.others:+.4g}  {rest:,} other liked items"] if rest else []
            if abs(self.base) > ROUNDING * abs(self.score):
                lines.append(f"{self.base:+.4g}  what no liked item adds")
            lines.append(f"{self.score:.4g}  score")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return it as a notebook shows it."""
        cells = "".join(
            f"<tr><td>{escape(str(row[1]))}</td><td style='text-align:right'>{row[2]:+.4g}</td>"
            f"<td>{escape(row[3])}</td></tr>"
            for row in self.rows
        )
        people = f"<p>{escape(self.people)}</p>" if self.people else ""
        head = f"<p><b>{escape(self.title)}</b>: {escape(self.sentence)}</p>{people}"
        return f"{head}<table><tr><th>you like</th><th>{self.measure}</th><th></th></tr>{cells}</table>"


@dataclass(frozen=True)
class Rules:
    """Rules behind a person's list.

    Attributes
    ----------
    taste : TasteRule or None
        What describes the liked items by their attributes; None where nothing does.
    sentences : tuple of str
        The taste rule in words, with its counts; empty without one.
    items : tuple of (id, title, sentence, ItemRule)
        For items of the list, the best first: a rule of other people that speaks for it, where one held
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
        """Return a table of the rules of other people, one an item, with the counts they state."""
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
        lines = [*self.sentences] or ["No rule describes this taste."]
        lines += [f"{title}: {sentence}" for _, title, sentence, _ in self.items]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return it as a notebook shows it."""
        said = "".join(f"<p>{escape(text)}</p>" for text in self.sentences)
        rows = "".join(
            f"<li><b>{escape(title)}</b>: {escape(sentence)}</li>"
            for _, title, sentence, _ in self.items
        )
        return f"{said or '<p>No rule describes this taste.</p>'}<ol>{rows}</ol>"
