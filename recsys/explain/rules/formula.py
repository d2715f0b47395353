"""Formulas over a table's columns as users type them: "a=x and not b=y or (c=z and d=w)".

A grammar of our own, read without recursion and never run as code:

    formula := clause ("or" clause)*        clause := part ("and" part)*
    part := "not" part | "(" formula ")" | column=value | column!=value

∧, ∨ and ¬ (also &, &&, |, || and ! that stand alone) are the words' signs. Names that hold brackets
or one of these words are put in double quotes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError
from recsys.explain.rules.rule import Rule
from recsys.registry import did_you_mean

MOST_CHARACTERS = 10_000
AND, OR, NOT = "and", "or", "not"
SIGNS = {
    "∧": AND, "&": AND, "&&": AND, AND: AND, "∨": OR, "|": OR, "||": OR, OR: OR, "¬": NOT, "!": NOT,
    NOT: NOT,
}  # fmt: skip
BINDS = {NOT: 3, AND: 2, OR: 1, "(": 0}
TOKEN = re.compile(r'"([^"]*)"|([()∧∨¬])|([^\s()∧∨¬"]+)')


@dataclass(frozen=True)
class Formula:
    """A formula over binary features.

    `clauses` are the parts between which "or" stands outside of brackets, each as it was typed and in
    postfix order: numbers of features, and "and", "or", "not".

    >>> formula = parse_formula("colour=red and not size=big", ("colour=red", "size=big"))
    >>> formula.covers([[1, 0], [1, 1], [0, 0]]).tolist()
    [True, False, False]
    """

    clauses: tuple[tuple[str, tuple[int | str, ...]], ...]

    def covers(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Return for each row of a binary (rows, features) array whether the formula holds."""
        rows = np.asarray(X) > 0
        return np.any([_holds(steps, rows) for _, steps in self.clauses], axis=0)

    def each(self, X: ArrayLike) -> list[tuple[str, NDArray[np.bool_]]]:
        """Return each clause's text, and for each row whether the clause holds."""
        rows = np.asarray(X) > 0
        return [(text, _holds(steps, rows)) for text, steps in self.clauses]


class ClauseFigures(NamedTuple):
    """One clause on some rows: how many it covers, how many of these are of the class, and alone."""

    text: str
    covered: int
    right: int
    alone: int


class FormulaFigures(NamedTuple):
    """A formula on rows of a table: all rows and covered ones, and those of the class among each.

    >>> formula = parse_formula("a=1 or b=1", ("a=1", "b=1"))
    >>> found = measure_formula(formula, [[1, 0], [1, 1], [0, 0]], [1, 0, 1])
    >>> found.covered, found.right, round(found.accuracy, 3), round(found.base, 3)
    (2, 1, 0.333, 0.667)
    >>> found.clauses[1]  # `alone` counts the rows that no other clause covers
    ClauseFigures(text='b=1', covered=1, right=0, alone=0)
    """

    rows: int
    positives: int
    covered: int
    right: int
    clauses: list[ClauseFigures]

    @property
    def accuracy(self) -> float:
        """Share of the rows that are told right: covered and of the class, or neither."""
        return (self.rows - self.positives - self.covered + 2 * self.right) / max(self.rows, 1)

    @property
    def base(self) -> float:
        """Share of the larger class: the accuracy of a constant prediction."""
        return max(self.positives, self.rows - self.positives) / max(self.rows, 1)


def measure_formula(formula: Formula, X: ArrayLike, y: ArrayLike) -> FormulaFigures:
    """Count what a formula and each of its clauses cover; y is 1 for the class."""
    each = formula.each(X)
    truth = np.asarray(y) > 0
    times = np.sum([holds for _, holds in each], axis=0)
    clauses = [
        ClauseFigures(
            text, int(holds.sum()), int((holds & truth).sum()), int((holds & (times == 1)).sum())
        )
        for text, holds in each
    ]
    covers = times > 0
    return FormulaFigures(
        len(truth), int(truth.sum()), int(covers.sum()), int((covers & truth).sum()), clauses
    )


def parse_formula(text: str, names: Sequence[str]) -> Formula:
    """Read a formula over features named `column=value`.

    Where it is empty, too long, not closed, a word is missing, or a name is unknown, it is refused; the
    message suggests the nearest name.
    """
    if len(text) > MOST_CHARACTERS:
        raise InputError(
            f"the formula has {len(text):,} characters; at most {MOST_CHARACTERS:,} are read"
        )
    tokens = _tokens(text)
    if not tokens:
        raise InputError("the formula is empty: type column=value, joined by and, or, not")
    places = {name: k for k, name in enumerate(names)}
    whole = _postfix(tokens, places)  # tells what is wrong before it is cut
    parts: list[list[tuple[str, str]]] = [[]]
    depth = 0
    for kind, token in tokens:
        depth += (kind == "(") - (kind == ")")
        if kind == OR and depth == 0:
            parts.append([])
        else:
            parts[-1].append((kind, token))
    if len(parts) == 1:
        return Formula(((_text_of(parts[0]), tuple(whole)),))
    return Formula(tuple((_text_of(part), tuple(_postfix(part, places))) for part in parts))


def formula_text(rule: Rule) -> str:
    """Return a rule as a formula that `parse_formula` reads."""
    clauses = [[quoted(rule.names[k] if rule.names else f"x{k}") for k in c] for c in rule.clauses]
    return " or ".join(" and ".join(clause) for clause in clauses)


def quoted(name: str) -> str:
    """Return a feature's name as it is written in a formula, in quotes where it would be misread."""
    words = name.split()
    plain = " ".join(words) == name and '"' not in name and not re.search(r"[()∧∨¬]", name)
    return name if plain and not any(word.lower() in SIGNS for word in words) else f'"{name}"'


def _tokens(text: str) -> list[tuple[str, str]]:
    """Return (kind, text): kind is "(", ")", a word's sign, or "name"; words of a name are joined."""
    out: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        found = TOKEN.match(text, at)
        if found is None:
            raise InputError(f"a quotation mark is not closed: {text[at : at + 40]}")
        at = found.end()
        in_quotes, sign, word = found.groups()
        if in_quotes is not None:
            out.append(("quoted", in_quotes))
        elif sign in ("(", ")"):
            out.append((sign, sign))
        elif (sign or word.lower()) in SIGNS:
            out.append((SIGNS[sign or word.lower()], sign or word))
        elif out and out[-1][0] == "name":
            out[-1] = ("name", f"{out[-1][1]} {word}")
        else:
            out.append(("name", word))
    return out


def _text_of(tokens: list[tuple[str, str]]) -> str:
    words = [quoted(text) if kind in ("name", "quoted") else kind for kind, text in tokens]
    return " ".join(words).replace("( ", "(").replace(" )", ")")


def _postfix(tokens: list[tuple[str, str]], places: dict[str, int]) -> list[int | str]:
    """Put a formula into postfix order (Dijkstra's shunting yard)."""
    out: list[int | str] = []
    waiting: list[str] = []
    expects = True  # a name, "not" or an opening bracket
    for kind, text in tokens:
        if kind in ("name", "quoted", "(", NOT):
            if not expects:
                raise InputError(f"'and' or 'or' is missing before {text[:60]!r}")
            if kind in ("name", "quoted"):
                out.extend(_feature(text, places))
                expects = False
            else:
                waiting.append(kind)
        elif kind == ")":
            if expects:
                raise InputError("a name is missing before ')'")
            while waiting and waiting[-1] != "(":
                out.append(waiting.pop())
            if not waiting:
                raise InputError("a closing bracket has no opening one")
            waiting.pop()
        else:
            if expects:
                raise InputError(f"a name is missing before {text!r}")
            while waiting and BINDS[waiting[-1]] >= BINDS[kind]:
                out.append(waiting.pop())
            waiting.append(kind)
            expects = True
    if expects:
        raise InputError(f"a name is missing after {tokens[-1][1]!r}")
    while waiting:
        if waiting[-1] == "(":
            raise InputError("an opening bracket is not closed")
        out.append(waiting.pop())
    return out


def _feature(text: str, places: dict[str, int]) -> list[int | str]:
    """Return the steps of a name: its feature, with "not" behind it for column!=value."""
    tight = re.sub(r"\s*(!?=)\s*", r"\1", text, count=1)
    for name in (text, tight):
        if name in places:
            return [places[name]]
    other = tight.replace("!=", "=", 1)
    if "!=" in tight and other in places:
        return [places[other], NOT]
    known = {name.lower(): name for name in places}
    if tight.lower() in known:
        return [places[known[tight.lower()]]]
    hint = did_you_mean(tight, places)
    if not hint.startswith("did"):
        shown = ", ".join(list(places)[:5])
        hint = f"there are {len(places):,}, such as {shown}"
    raise InputError(f"no column=value {tight[:60]!r}: {hint}")


def _holds(steps: Sequence[int | str], rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
    stack: list[NDArray[np.bool_]] = []
    for step in steps:
        if isinstance(step, int):
            stack.append(rows[:, step])
        elif step == NOT:
            stack.append(~stack.pop())
        else:
            second, first = stack.pop(), stack.pop()
            stack.append(first & second if step == AND else first | second)
    return stack.pop()
