"""Weights of all formulas over people, one by one: what the search for the largest is measured against."""

from itertools import combinations
from math import sqrt


def formulas(people, least, most):
    """Return every set of least…most people."""
    return [some for size in range(least, most + 1) for some in combinations(people, size)]


def holds(some, X, item, either=False):
    """Return whether all of them like an item, or one of them; X is (people, items)."""
    return (any if either else all)(X[person, item] for person in some)


def norm(X, item, every, either=False):
    """Return the length of an item as a vector of all formulas; an item nobody has has none."""
    return sqrt(sum(holds(some, X, item, either) for some in every))


def weights(X, signed, least, most, either=False):
    """Return (7.1) of every formula, each item over its norm."""
    every = formulas(range(X.shape[0]), least, most)
    norms = [norm(X, item, every, either) for item in range(X.shape[1])]
    return {
        some: sum(
            signed[item] / norms[item] for item in range(X.shape[1]) if holds(some, X, item, either)
        )
        for some in every
    }  # fmt: skip


def scores(X, signed, least, most, either=False):
    """Return the sum of weight × feature over all formulas, item by item.

    An item without a feature has one of its own.
    """
    every, out = formulas(range(X.shape[0]), least, most), []
    of = weights(X, signed, least, most, either)
    for item in range(X.shape[1]):
        length = norm(X, item, every, either)
        total = sum(of[some] / length for some in every if holds(some, X, item, either))
        out.append(total if length else signed[item])
    return out


def top(rows, values, marked, least, most, number, support, touching=None):
    """Return the first sets of columns that weigh more than 0, as (set, weight, support), and how many do.

    A row holds a set that it has all of or, where `touching` is given, one of; a set then has a column of
    `touching`. Of equal weights that set comes first whose columns do: by their own positive weight (or
    their own weight), then by number.
    """
    items, columns = rows.shape
    either = touching is not None
    own = [
        sum(values[i] if either else max(values[i], 0) for i in range(items) if rows[i, v])
        for v in range(columns)
    ]
    place = {v: k for k, v in enumerate(sorted(range(columns), key=lambda v: (-own[v], v)))}
    found = []
    for some in formulas(range(columns), least, most):
        inside = [i for i in range(items) if holds(some, rows.T, i, either)]
        weight, held = sum(values[i] for i in inside), sum(bool(marked[i]) for i in inside)
        allowed = not either or any(touching[v] for v in some)
        if weight > 0 and held >= support and allowed:
            found.append((-weight, sorted(place[v] for v in some), some, held))
    found.sort()
    return [(some, -weight, held) for weight, _, some, held in found[:number]], len(found)
