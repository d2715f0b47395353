"""Normalised kernels from whole numbers, in 200 digits: what no floating point can be asked."""

from decimal import Decimal, localcontext
from functools import cache
from math import comb

DIGITS = 200


@cache
def count(name, params, n, s, a, b):
    """How many formulas hold in two vectors of n with a and b ones, s of them in common."""
    p = dict(params)
    if name == "negation":
        return n - a - b + s
    agree = n - a - b + 2 * s
    if name == "literal":
        return agree
    if name == "mc":
        return comb(s, p["degree"])
    if name == "c":
        return comb(agree, p["degree"])

    def either(size, x, y, both, k):  # k-subsets of `size` features that meet both sets
        return comb(size, k) - comb(size - x, k) - comb(size - y, k) + comb(size - x - y + both, k)

    if name == "md":
        return either(n, a, b, s, p["degree"])
    if name == "d":
        return (2 ** p["degree"] - 2) * comb(n, p["degree"]) + comb(agree, p["degree"])
    if name == "mdnf":
        of = [comb(k, p["c"]) for k in (n, a, b, s)]
        return either(*of, p["d"])
    if name == "mdnf-sum":
        of = [sum(comb(k, c) for c in range(1, p["c"] + 1)) for k in (n, a, b, s)]
        return sum(either(*of, d) for d in range(1, p["d"] + 1))
    if name == "dnf":
        one, both = comb(n, p["c"]), comb(agree, p["c"])
        return either(2 ** p["c"] * one, one, one, both, p["d"])
    if name == "mcnf":
        return comb(either(n, a, b, s, p["d"]), p["c"])
    if name == "cnf":
        return comb((2 ** p["d"] - 2) * comb(n, p["d"]) + comb(agree, p["d"]), p["c"])
    raise KeyError(name)


@cache
def value(name, params, n, s, a, b):
    """κ(x,z)/√(κ(x,x)κ(z,z)) as a Decimal; 0 for null vectors and for those without ones."""
    with localcontext() as context:
        context.prec = DIGITS
        if name == "rbf":
            return (-Decimal(dict(params)["gamma"]) * (a + b - 2 * s)).exp() if a and b else Decimal(0)
        own = count(name, params, n, a, a, a) * count(name, params, n, b, b, b)
        if not own or not a or not b:
            return Decimal(0)
        return Decimal(count(name, params, n, s, a, b)) / Decimal(own).sqrt()


def matrix(name, params, n, common):
    """The normalised Gram matrix of items from their co-occurrences (a nested list)."""
    m = len(common)
    key = tuple(sorted(params.items()))
    return [
        [
            Decimal(1)
            if i == j
            else value(name, key, n, int(common[i][j]), int(common[i][i]), int(common[j][j]))
            for j in range(m)
        ]
        for i in range(m)
    ]


def margin_scores(K, totals, liked, alpha):
    """Σ αᵢ K(i, ·) less the mean of K over the items not liked, (10.4), for given weights."""
    with localcontext() as context:
        context.prec = DIGITS
        weights = [Decimal(float(x)) for x in alpha]
        whole = sum(weights)
        out = []
        for j in range(len(K)):
            column = [K[i][j] for i in liked]
            q = (totals[j] - sum(column)) / (len(K) - len(liked))
            out.append(sum(w * k for w, k in zip(weights, column, strict=True)) / whole - q)
        return out


def totals(K):
    """Column sums."""
    with localcontext() as context:
        context.prec = DIGITS
        return [sum(row, Decimal(0)) for row in K]


def ranked(scores, candidates):
    """Candidates from best to worst, equal ones in the order given."""
    return sorted(candidates, key=scores.__getitem__, reverse=True)


def short(name, params, n, a, full):
    """1 − K(x, r) of an item of a users, r everybody's item (full) or nobody's; 1 for a null item."""
    key, b = tuple(sorted(params.items())), n if full else 0
    with localcontext() as context:
        context.prec = DIGITS
        if name == "rbf":
            return 1 - (-Decimal(params["gamma"]) * a).exp() if a else Decimal(1)
        own = count(name, key, n, a, a, a) * count(name, key, n, b, b, b)
        like = (
            Decimal(count(name, key, n, a if full else 0, a, b)) / Decimal(own).sqrt()
            if own and a
            else 0
        )
        return Decimal(1) - like


def centred(K, i, j, short):
    """K(i, j) − (1 − short_i) − (1 − short_j) + 1."""
    with localcontext() as context:
        context.prec = DIGITS
        return K[i][j] - 1 + short[i] + short[j]


def gap(found, expected):
    """|found − expected| as a float."""
    with localcontext() as context:
        context.prec = DIGITS
        return abs(float(Decimal(float(found)) - expected))
