"""The best rule by trying every one: what the searches for rules are measured against."""

from itertools import combinations

import numpy as np


def clauses(features, literals):
    """Return every conjunction of 1…literals features."""
    return [c for size in range(1, literals + 1) for c in combinations(range(features), size)]


def covered(rule, X):
    """Return for each row whether one of the clauses holds, feature by feature."""
    return np.array([any(all(row[f] for f in clause) for clause in rule) for row in X], dtype=bool)


def worth(rule, X, weights, cost=0.0):
    """Return the weights of the covered rows, less the cost of each clause."""
    return float(
        sum(w for w, inside in zip(weights, covered(rule, X), strict=True) if inside)
    ) - cost * len(rule)


def best(X, weights, most_clauses, most_literals, cost=0.0):
    """Return the largest worth of any rule within the limits; 0 for the rule that is never true."""
    pool = clauses(X.shape[1], most_literals)
    holds = np.array([covered([clause], X) for clause in pool])
    top = 0.0
    for size in range(1, most_clauses + 1):
        for some in combinations(range(len(pool)), size):
            inside = holds[list(some)].any(axis=0)
            top = max(top, float(weights[inside].sum()) - cost * size)
    return top
