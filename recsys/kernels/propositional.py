"""Propositional kernels: how many instances of a formula's form hold in both vectors.

Every occurrence of a variable in the formula is a slot of its own that runs over all n input
variables, so that the features of `(a & b) | ~c` are the n³ formulas (xᵢ ∧ xⱼ) ∨ ¬x_k. The
names only mark slots. Source: Polato's thesis, chapter 8.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import exp, log
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.kernels.base import Kernel
from recsys.utils.validation import check_real

STATES = ((0, 0), (0, 1), (1, 0), (1, 1))
# Truth tables by text form: y of each of the states.
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
TOKEN = re.compile(r"<->|<-|->|-/>|</-|[A-Za-z_][A-Za-z_0-9]*|\S")


@dataclass(frozen=True)
class Expression(Kernel):
    """The form of a propositional formula. A call returns a Gram matrix, as for any kernel.

    Examples
    --------
    >>> formula = parse("a & (b | c)")
    >>> str(formula), formula([[1, 1, 0], [1, 0, 0]]).shape
    ('a & (b | c)', (2, 2))
    """

    operator: str = ""  # "" for a slot, "~", or a key of `OPERATORS`
    operands: tuple[Expression, ...] = ()
    name: str = "x"  # of a slot

    whole = True

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
        joint = np.array([[n - a - b + s, b - s], [a - s, s]]) / n
        return np.asarray(self._joint(joint)[1, 1])

    def log_unit(self, n: int) -> float:
        """Return the logarithm of the number of features."""
        return self.slots * log(n)

    def _joint(self, slot: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the shares of this formula's features by their states in both vectors, by (8.3).

        Shares are (left, right, pairs), and `slot` has those of the variables. All four joint states are
        kept, so that everything is a sum of products of numbers ≥ 0: a negation exchanges states, and no
        digits are lost by 1 − (1 − p).
        """
        if not self.operator:
            return slot
        A = self.operands[0]._joint(slot)
        if self.operator == "~":
            return A[::-1, ::-1]
        B, out = self.operands[1]._joint(slot), np.zeros_like(A)
        table = OPERATORS[self.operator]
        for y, (a, b) in zip(table, STATES, strict=True):
            for v, (c, d) in zip(table, STATES, strict=True):
                out[y, v] += A[a, c] * B[b, d]
        return out


def parse(text: str) -> Expression:
    """Return the expression of a text such as `(a & b) | ~c`.

    Operators, from tight to loose: `~`; `&`, `nand`; `^`; `|`, `nor`; `->`, `<-`, `-/>`, `</-`;
    `<->`; also ¬ ∧ ↑ ⊕ ∨ ↓ → ← ↛ ↚ ↔, and the words not, and, xor, or.
    """
    if not isinstance(text, str) or len(text) > 10_000:
        raise InputError("a formula must be text of at most 10,000 characters")
    tokens = [(SYMBOLS.get(m.group(), m.group()), m.start()) for m in TOKEN.finditer(text)]
    tokens = [("", len(text)), *reversed(tokens)]  # a stack

    def refuse() -> NoReturn:
        token, place = tokens[-1]
        problem = f"{token!r} at {place} does not belong there" if token else "its end is missing"
        raise InputError(f"formula {text[:60]!r}: {problem}")

    def level(k: int, depth: int) -> Expression:
        """Read operators of level k and tighter."""
        if k == len(LEVELS):
            return operand(depth + 1)
        out = level(k + 1, depth)
        while tokens[-1][0] in LEVELS[k]:
            operator, _ = tokens.pop()
            out = Expression(operator, (out, level(k + 1, depth)))
        return out

    def operand(depth: int) -> Expression:
        if depth > 60:
            raise InputError(f"formula {text[:60]!r} is nested more than 60 deep")
        token, _ = tokens[-1]
        if token == "~":
            tokens.pop()
            return Expression("~", (operand(depth + 1),))
        if token == "(":
            tokens.pop()
            out = level(0, depth)
            if tokens[-1][0] != ")":
                refuse()
        elif token in OPERATORS or not (token[:1].isalpha() or token[:1] == "_"):
            refuse()
        else:
            out = Expression(name=token)
        tokens.pop()
        return out

    out = level(0, 0)
    if len(tokens) > 1:
        refuse()
    return out


def random_expression(decay: float, rng: np.random.Generator, depth: int = 0) -> Expression:
    """Draw an expression by Algorithm 8.1.

    At depth t a slot is drawn with probability e^{decay·t} / (1 + e^{decay·t}), and always at depth 40:
    the printed algorithm may not end at small decays. It gives 0.9 binary operators on average at decay
    0.7, while the text states five.
    """
    check_real("decay", decay, 0.0)
    if depth >= 40 or rng.random() < 1.0 / (1.0 + exp(-min(decay * depth, 700.0))):
        return Expression()
    operator = ("~", *OPERATORS)[int(rng.integers(len(OPERATORS) + 1))]
    operands = [random_expression(decay, rng, depth + 1) for _ in range(1 if operator == "~" else 2)]
    return Expression(operator, tuple(operands))
