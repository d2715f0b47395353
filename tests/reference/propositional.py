"""Propositional kernels by listing every instance of a formula."""

from itertools import product

TABLES = {
    "&": lambda a, b: a and b, "|": lambda a, b: a or b, "^": lambda a, b: a != b,
    "->": lambda a, b: (not a) or b, "<-": lambda a, b: a or not b, "<->": lambda a, b: a == b,
    "nand": lambda a, b: not (a and b), "nor": lambda a, b: not (a or b),
    "-/>": lambda a, b: a and not b, "</-": lambda a, b: (not a) and b,
}  # fmt: skip


def features(expression, x):
    if not expression.operator:
        return [bool(v) for v in x]
    parts = [features(operand, x) for operand in expression.operands]
    if expression.operator == "~":
        return [not v for v in parts[0]]
    return [TABLES[expression.operator](a, b) for a, b in product(*parts)]
