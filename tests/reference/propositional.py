"""Propositional kernels by listing every instance of a formula."""

from itertools import product

TABLES = {
    "&": lambda a, b: a and b,
    "|": lambda a, b: a or b,
    "^": lambda a, b: a != b,
    "->": lambda a, b: (not a) or b,
    "<-": lambda a, b: a or not b,
    "<->": lambda a, b: a == b,
    "nand": lambda a, b: not (a and b),
    "nor": lambda a, b: not (a or b),
    "-/>": lambda a, b: a and not b,
    "</-": lambda a, b: (not a) and b,
}


def features(expression, x):
    if not expression.operator:
        return [bool(v) for v in x]
    parts = [features(operand, x) for operand in expression.operands]
    if expression.operator == "~":
        return [not v for v in parts[0]]
    return [TABLES[expression.operator](a, b) for a, b in product(*parts)]


def states(expression, slot):
    """How many features are in each joint state in two vectors, in whole numbers.

    `slot` has it for one variable: {(x, z): count}.
    """
    if not expression.operator:
        return slot
    parts = [states(operand, slot) for operand in expression.operands]
    out = dict.fromkeys(product((0, 1), repeat=2), 0)
    if expression.operator == "~":
        for (x, z), count in parts[0].items():
            out[1 - x, 1 - z] += count
        return out
    y = TABLES[expression.operator]
    for (a, c), left in parts[0].items():
        for (b, d), right in parts[1].items():
            out[int(y(a, b)), int(y(c, d))] += left * right
    return out
