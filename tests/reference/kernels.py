"""Kernels by enumerating their feature space: every formula over the variables."""

from itertools import combinations, product

import numpy as np

from tests.reference.registry import KERNELS


def literals(x):
    return [*x, *(1 - v for v in x)]


def conjunctions(x, degree):
    return [all(clause) for clause in combinations(x, degree)]


def disjunctions(x, degree):
    return [any(clause) for clause in combinations(x, degree)]


def signed(x, degree, connective):
    """One formula for each choice of variables and of their signs."""
    return [
        connective(x[i] == s for i, s in zip(chosen, signs, strict=True))
        for chosen in combinations(range(len(x)), degree)
        for signs in product((0, 1), repeat=degree)
    ]


def up_to(x, degree):
    return [value for c in range(1, degree + 1) for value in conjunctions(x, c)]


def signed_up_to(x, degree):
    return [value for c in range(1, degree + 1) for value in signed(x, c, all)]


FEATURES = {
    "linear": lambda x: list(x),
    "negation": lambda x: [1 - v for v in x],
    "literal": literals,
    "mc": lambda x, degree: conjunctions(x, degree),
    "anova": lambda x, degree: conjunctions(x, degree),
    "md": lambda x, degree: disjunctions(x, degree),
    "c": lambda x, degree: signed(x, degree, all),
    "d": lambda x, degree: signed(x, degree, any),
    "mdnf": lambda x, d, c: disjunctions(conjunctions(x, c), d),
    "dnf": lambda x, d, c: disjunctions(signed(x, c, all), d),
    "mcnf": lambda x, d, c: conjunctions(disjunctions(x, d), c),
    "cnf": lambda x, d, c: conjunctions(signed(x, d, any), c),
    "mc-sum": lambda x, degree: up_to(x, degree),
    "itemset": lambda x, degree: up_to(x, degree),
    "mdnf-sum": lambda x, d, c: [v for k in range(1, d + 1) for v in disjunctions(up_to(x, c), k)],
    "all-subsets": lambda x: [True, *up_to(x, len(x))],
    "sadohara-mdnf": lambda x, arity: up_to(x, arity),
    "sadohara-dnf": lambda x, arity: signed_up_to(x, arity),
}


def gram(name, X, **params):
    F = np.array([FEATURES[name](x, **params) for x in X], dtype=float).reshape(len(X), -1)
    return F @ F.T


def normalised(K):
    own = np.diag(K)
    with np.errstate(divide="ignore", invalid="ignore"):
        out = np.where(np.outer(own, own) > 0, K / np.sqrt(np.outer(own, own)), 0.0)
    np.fill_diagonal(out, 1.0)
    return out


# Twins by name: from vectors and the kernel's parameters to its Gram matrix.

for _name in FEATURES:
    KERNELS.add(_name)(lambda X, name=_name, **params: gram(name, X, **params))
KERNELS.add("ml")(lambda X: gram("linear", X))


@KERNELS.add("polynomial")
def polynomial(X, degree, coef, alpha=1.0):
    return (alpha * (X @ X.T) + coef) ** degree


@KERNELS.add("hp")
def homogeneous_polynomial(X, degree):
    return np.power(X @ X.T, degree)


@KERNELS.add("rbf")
def rbf(X, gamma):
    gamma = 1 / X.shape[1] if gamma is None else gamma
    return np.array([[np.exp(-gamma * ((x - z) ** 2).sum()) for z in X] for x in X])


@KERNELS.add("tanimoto")
def tanimoto(X):
    either = [[np.maximum(x, z).sum() for z in X] for x in X]
    return np.array(
        [
            [np.minimum(x, z).sum() / e if e else 1.0 for z, e in zip(X, row, strict=True)]
            for x, row in zip(X, either, strict=True)
        ]
    )
