"""Weights of all formulas over people, one by one: what the search for the heaviest is measured against."""

from itertools import combinations
from math import sqrt


def formulas(people, least, most):
    """Return every set of least…most people."""
    return [some for size in range(least, most + 1) for some in combinations(people, size)]


def holds(some, X, item):
    """Return whether all of them like an item; X is (people, items)."""
    return all(X[person, item] for person in some)


def norm(X, item, every):
    """Return the length of an item as a vector of all formulas."""
    return sqrt(sum(holds(some, X, item) for some in every))


def weights(X, signed, least, most):
    """Return (7.1) of every formula, each item over its norm."""
    every = formulas(range(X.shape[0]), least, most)
    norms = [norm(X, item, every) for item in range(X.shape[1])]
    return {
        some: sum(
            signed[item] / norms[item] for item in range(X.shape[1]) if holds(some, X, item)
        )
        for some in every
    }  # fmt: skip


def score(X, signed, item, least, most):
    """Return the sum of weight × feature over all formulas; an item without one is a feature of its own."""
    every = formulas(range(X.shape[0]), least, most)
    length = norm(X, item, every)
    if length == 0:
        return signed[item]
    return sum(
        weight / length
        for some, weight in weights(X, signed, least, most).items()
        if holds(some, X, item)
    )


def heaviest(rows, values, marked, least, most, number, support):
    """Return the first sets of columns that weigh more than 0, as (set, weight, support), and how many do.

    Of equal weights that set comes first whose columns do: by their own positive weight, then by number.
    """
    items, columns = rows.shape
    own = [sum(max(values[i], 0) for i in range(items) if rows[i, v]) for v in range(columns)]
    place = {v: k for k, v in enumerate(sorted(range(columns), key=lambda v: (-own[v], v)))}
    found = []
    for some in formulas(range(columns), least, most):
        inside = [i for i in range(items) if all(rows[i, v] for v in some)]
        weight, held = sum(values[i] for i in inside), sum(bool(marked[i]) for i in inside)
        if weight > 0 and held >= support:
            found.append((-weight, sorted(place[v] for v in some), some, held))
    found.sort()
    return [(some, -weight, held) for weight, _, some, held in found[:number]], len(found)
