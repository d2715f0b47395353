"""Dot-product kernels on vectors of m ones, k of them common, in exact or 60-digit arithmetic."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import comb


def rbf(m, k, gamma):
    with localcontext(prec=60):
        return Fraction((-2 * Decimal(gamma) * (m - k)).exp())


VALUES = {
    "linear": lambda m, k: k,
    "hp": lambda m, k, degree: k**degree,
    "polynomial": lambda m, k, degree, coef: (k + Fraction(coef)) ** degree,
    "rbf": rbf,
    "tanimoto": lambda m, k: Fraction(k, 2 * m - k),
    "all-subsets": lambda m, k: 2**k,
    "mc": lambda m, k, degree: comb(k, degree),
    "mc-sum": lambda m, k, degree: sum(comb(k, i) for i in range(1, degree + 1)),
    "sadohara-mdnf": lambda m, k, sigma: (1 + Fraction(sigma)) ** k - 1,
    # in dimension 2m, the features of which hits() counts by their complements
    "negation": lambda m, k: k,
    "literal": lambda m, k: 2 * k,
    "c": lambda m, k, degree: comb(2 * k, degree),
    "d": lambda m, k, degree: (2**degree - 2) * comb(2 * m, degree) + comb(2 * k, degree),
    "md": lambda m, k, degree: hits(2 * m, m, m, k, degree),
    "mdnf": lambda m, k, d, c: hits(comb(2 * m, c), comb(m, c), comb(m, c), comb(k, c), d),
    "dnf": lambda m, k, d, c: hits(
        2**c * comb(2 * m, c), comb(2 * m, c), comb(2 * m, c), comb(2 * k, c), d
    ),
    "mcnf": lambda m, k, d, c: comb(hits(2 * m, m, m, k, d), c),
    "cnf": lambda m, k, d, c: comb((2**d - 2) * comb(2 * m, d) + comb(2 * k, d), c),
}


def hits(size, x, z, both, d):
    """Exact: d-subsets of `size` features that meet both sets, all minus those that miss one."""
    return comb(size, d) - comb(size - x, d) - comb(size - z, d) + comb(size - x - z + both, d)


def summed(g, m, k):
    """Σ_s g(m, s)·C(k, s)/C(m, s) without rounding; a float is a fraction."""
    return sum(Fraction(float(v)) * Fraction(comb(k, s), comb(m, s)) for s, v in enumerate(g))
