"""Propositional kernels: how many instances of a formula's form hold in both vectors.

Every occurrence of a variable in the formula is a slot of its own that runs over all n input
variables, so that the features of `(a & b) | ~c` are the n³ formulas (xᵢ ∧ xⱼ) ∨ ¬x_k. The
names only mark slots. Source: Polato's thesis, chapter 8.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.kernels.base import Kernel
from recsys.utils.validation import check_real

# Truth tables as y(0,0), y(0,1), y(1,0), y(1,1), by text form.
OPERATORS = {
    "&": (0, 0, 0, 1),
    "|": (0, 1, 1, 1),
    "^": (0, 1, 1, 0),
    "->": (1, 1, 0, 1),
    "<-": (1, 0, 1, 1),
    "<->": (1, 0, 0, 1),
    "nand": (1, 1, 1, 0),
    "nor": (1, 0, 0, 0),
    "-/>": (0, 0, 1, 0),
    "</-": (0, 1, 0, 0),
}
SYMBOLS = {
    "∧": "&",
    "∨": "|",
    "⊕": "^",
    "→": "->",
    "←": "<-",
    "↔": "<->",
    "↑": "nand",
    "↓": "nor",
    "↛": "-/>",
    "↚": "</-",
    "¬": "~",
    "and": "&",
    "or": "|",
    "xor": "^",
    "not": "~",
    "!": "~",
}
# From loose to tight; those of one level associate to the left.
LEVELS = (("<->",), ("->", "<-", "-/>", "</-"), ("|", "nor"), ("^",), ("&", "nand"))
TOKEN = re.compile(r"\s*(<->|<-|->|-/>|</-|[()&|^~!∧∨⊕→←↔↑↓↛↚¬]|[A-Za-z_][A-Za-z_0-9]*)")


class JointStates(NamedTuple):
    """Shares of features in each joint state in pairs of vectors, and in each state alone.

    joint[x][z], (pairs,), is of those that are x in the left vector and z in the right one; `left` and
    `right` of those that are 0, and 1.
    """

    joint: Sequence[Sequence[NDArray]]
    left: Sequence[NDArray]
    right: Sequence[NDArray]


@dataclass(frozen=True)
class Expression(Kernel):
    """The form of a propositional formula. A call returns a Gram matrix, as for any kernel.

    Attributes
    ----------
    operator : str
        "" for a slot, "~", or a key of `OPERATORS`.
    operands : tuple of Expression
    name : str
        Of a slot.

    Examples
    --------
    >>> from recsys.kernels import propositional
    >>> formula = propositional.parse("a & (b | c)")
    >>> str(formula), formula([[1, 1, 0], [1, 0, 0]]).shape
    ('a & (b | c)', (2, 2))
    """

    operator: str = ""
    operands: tuple[Expression, ...] = ()
    name: str = "x"

    whole: ClassVar[bool] = True

    def __str__(self) -> str:
        """Return text that `parse` reads back."""
        if not self.operator:
            return self.name
        if self.operator == "~":
            inner = self.operands[0]
            return f"~{inner}" if inner.operator in ("", "~") else f"~({inner})"
        first, second = (f"({x})" if x.operator not in ("", "~") else str(x) for x in self.operands)
        return f"{first} {self.operator} {second}"

    @property
    def slots(self) -> int:
        """Number of slots k; the feature space has n^k features."""
        return sum(x.slots for x in self.operands) if self.operator else 1

    @property
    def operators(self) -> int:
        """Number of binary operators."""
        return (len(self.operands) == 2) + sum(x.operators for x in self.operands)

    def _dimension(self, n: int) -> int:
        return n**self.slots

    def of_counts(self, s: Any, a: Any, b: Any, n: int) -> NDArray[np.float64]:
        """Return the share of the features that hold in both vectors."""
        joint = [[n - a - b + s, b - s], [a - s, s]]
        states = JointStates(
            [[state / n for state in row] for row in joint], ((n - a) / n, a / n), ((n - b) / n, b / n)
        )
        return self._gram(states).joint[1][1]

    def log_unit(self, n: int) -> float:
        """Return the logarithm of the number of features."""
        return self.slots * log(n)

    def _gram(self, base: JointStates) -> JointStates:
        """Return the states of this formula's features, by (8.3).

        All four joint states are kept, so that everything is a sum of products of numbers ≥ 0:
        a negation exchanges states, and nothing is lost by 1 − (1 − p).
        """
        if not self.operator:
            return base
        A = self.operands[0]._gram(base)
        if self.operator == "~":
            (none, only_right), (only_left, both) = A.joint
            turned = ((both, only_left), (only_right, none))
            return JointStates(turned, A.left[::-1], A.right[::-1])
        B = self.operands[1]._gram(base)
        table = OPERATORS[self.operator]
        joint = [[np.zeros_like(A.joint[0][0]) for _ in (0, 1)] for _ in (0, 1)]
        left, right = ([np.zeros_like(side[0]) for _ in (0, 1)] for side in (A.left, A.right))
        for y, (a, b) in zip(table, STATES, strict=True):
            left[y] += A.left[a] * B.left[b]
            right[y] += A.right[a] * B.right[b]
            for v, (c, d) in zip(table, STATES, strict=True):
                joint[y][v] += A.joint[a][c] * B.joint[b][d]
        return JointStates(joint, left, right)


STATES = ((0, 0), (0, 1), (1, 0), (1, 1))


def parse(text: str) -> Expression:
    """Return the expression of a text such as `(a & b) | ~c`.

    Operators, from tight to loose: `~`; `&`, `nand`; `^`; `|`, `nor`; `->`, `<-`, `-/>`, `</-`;
    `<->`; also ¬ ∧ ↑ ⊕ ∨ ↓ → ← ↛ ↚ ↔, and the words not, and, xor, or.
    """
    if not isinstance(text, str) or len(text) > 10_000:
        raise InputError("a formula must be text of at most 10,000 characters")
    tokens, places, at = [], [], 0
    while text[at:].strip():
        found = TOKEN.match(text, at)
        if found is None:
            raise InputError(
                f"formula {text[:60]!r}: {text[at:].strip()[:1]!r} at {at} is not an operator or name"
            )
        tokens.append(SYMBOLS.get(found.group(1), found.group(1)))
        places.append(found.start(1))
        at = found.end()
    parser = _Parser(text[:60], tokens, places)
    out = parser.level(0)
    parser.end()
    return out


class _Parser:
    def __init__(self, text: str, tokens: list[str], places: list[int]) -> None:
        self.text, self.tokens, self.places, self.at, self.depth = text, tokens, places, 0, 0

    def peek(self) -> str | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def level(self, k: int) -> Expression:
        if k == len(LEVELS):
            return self.unary()
        out = self.level(k + 1)
        while (operator := self.peek()) in LEVELS[k]:
            self.at += 1
            out = Expression(str(operator), (out, self.level(k + 1)))
        return out

    def unary(self) -> Expression:
        token = self.peek()
        self.depth += 1
        if self.depth > 60:
            raise InputError(f"formula {self.text!r} is nested more than 60 deep")
        if token == "~":
            self.at += 1
            out = Expression("~", (self.unary(),))
        elif token == "(":
            self.at += 1
            out = self.level(0)
            if self.peek() != ")":
                self.fail("a closing parenthesis is missing")
            self.at += 1
        elif token is None or token in OPERATORS or token == ")":
            self.fail("a name or a parenthesis is missing")
        else:
            self.at += 1
            out = Expression(name=token)
        self.depth -= 1
        return out

    def end(self) -> None:
        if self.at < len(self.tokens):
            self.fail(f"{self.tokens[self.at]!r} does not belong there")

    def fail(self, what: str) -> None:
        place = self.places[self.at] if self.at < len(self.places) else "the end"
        raise InputError(f"formula {self.text!r}: {what} at {place}")


def random_expression(decay: float, rng: np.random.Generator, depth: int = 0) -> Expression:
    """Draw an expression by Algorithm 8.1.

    At depth t a slot is drawn with probability e^{decay·t} / (1 + e^{decay·t}), so a larger decay gives
    shorter expressions. The printed algorithm gives 0.9 binary operators on average at decay 0.7, while
    the text states five. At depth 40 a slot is always drawn, because the printed algorithm may not end
    at small decays.
    """
    check_real("decay", decay, 0.0)
    if depth >= 40 or rng.random() < 1.0 / (1.0 + exp(-min(decay * depth, 700.0))):
        return Expression()
    operator = ("~", *OPERATORS)[int(rng.integers(len(OPERATORS) + 1))]
    operands = [random_expression(decay, rng, depth + 1) for _ in range(1 if operator == "~" else 2)]
    return Expression(operator, tuple(operands))
