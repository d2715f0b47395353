"""The forms of a row's features, and the tables of one component they are computed by.

A form is a sum over components s of one function of p_s and the row x that is linear in each entry of
p_s: A^m (`ANOVA`), Π_j (1 + p_j x_j) (`ALL_SUBSETS`), Π_t ⟨u_t, x⟩ (`PRODUCT`), Σ_t θ_t A^t (`MIXED`).
For each row a short table (A^1…A^m, the product, or the linear forms) gives the derivative in any entry
in O(order), and is brought up to date in as much when the entry has changed: `fill_component`, `slope`
and `move` here; `rows` has all components of a row at once. One form is not linear in each entry: ⟨p,
x⟩^m (`POWER`), whose steps `recsys.fm.solvers.coordinate` has.

Source: Blondel et al. 2016, Algorithm 1 and 6.1; Atarashi's thesis (3.20).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys._jit import jit

__all__ = [
    "ALL_SUBSETS",
    "ANOVA",
    "FORM_NAMES",
    "MIXED",
    "POWER",
    "PRODUCT",
    "Compressed",
    "Form",
    "Layout",
]

ANOVA, ALL_SUBSETS, PRODUCT, MIXED, POWER = range(5)

FORM_NAMES = {
    ANOVA: "factorization machines",
    MIXED: "shared orders",
    ALL_SUBSETS: "the all-subsets model",
    PRODUCT: "polynomial networks",
    POWER: "polynomial networks of powers",
}

Vector = NDArray[np.float64]
NEAR_ZERO = 1e-6  # |1 + p x| below which Π(1 + p x) is not divided by it


class Form(NamedTuple):
    """A term of the model: its kind, its order and the number of its tables.

    Attributes
    ----------
    kind : int
        ANOVA, ALL_SUBSETS, PRODUCT, MIXED or POWER.
    order : int ≥ 1
        Largest number of features in one product.
    factors : int ≥ 1
        Tables P: one, but as many as the order for PRODUCT.

    Examples
    --------
    >>> Form(ANOVA, 3, 1).width, Form(PRODUCT, 3, 3).width
    (4, 3)
    """

    kind: int
    order: int
    factors: int

    @property
    def width(self) -> int:
        """Length of a row's table, over which `rows.row_forward` goes."""
        if self.kind in (ANOVA, MIXED):
            return self.order + 1
        return 1 if self.kind == ALL_SUBSETS else self.factors

    @property
    def penalty_order(self) -> int:
        """The order of the penalties on interactions: the term's own, and 2 where it has none."""
        return self.order if self.kind in (ANOVA, MIXED) else 2

    @property
    def deep(self) -> bool:
        """Whether one product of the form may have more than two features of one table."""
        return self.kind == ALL_SUBSETS or (self.kind in (ANOVA, MIXED, POWER) and self.order > 2)


class Compressed(NamedTuple):
    """The arrays of a sparse matrix: of its rows (CSR) or of its columns (CSC)."""

    indptr: NDArray[np.int32]
    indices: NDArray[np.int32]
    data: Vector

    @classmethod
    def of(cls, X: object) -> Compressed:
        """Return the arrays of a CSR or CSC matrix, not copied."""
        return cls(X.indptr, X.indices, X.data)  # type: ignore[attr-defined]


class Layout(NamedTuple):
    """Layout of a vector of parameters.

    `spec` is (kind, order, factors, offset) of each term; `theta` the weights of the orders, (terms,
    orders); `weights` those of the components, (terms, k); `width` the longest table of a row.
    """

    spec: NDArray[np.int64]
    theta: Vector
    weights: Vector
    features: int
    components: int
    width: int
    linear: bool


# ---- kernels


@jit
def others_product(rows, P, s, i, j, one, product):
    """Return Π(1 + p x) of row i and component s without feature j, whose 1 + p x is `one`."""
    if abs(one) >= NEAR_ZERO:
        return product / one
    rest = 1.0
    for q in range(rows.indptr[i], rows.indptr[i + 1]):
        if rows.indices[q] != j:
            rest *= 1.0 + P[rows.indices[q], s] * rows.data[q]
    return rest


@jit
def fill_component(kind, rows, P, s, table):
    """Fill the table of one component: A^1…A^width, Π(1 + p x), or the linear form of each factor."""
    n, width = table.shape
    for i in range(n):
        for t in range(width):
            table[i, t] = 1.0 if kind == ALL_SUBSETS else 0.0
        for q in range(rows.indptr[i], rows.indptr[i + 1]):
            j, x = rows.indices[q], rows.data[q]
            if kind == ANOVA or kind == MIXED:
                z = P[0, j, s] * x
                for t in range(width - 1, 0, -1):
                    table[i, t] += z * table[i, t - 1]
                table[i, 0] += z
            elif kind == ALL_SUBSETS:
                table[i, 0] *= 1.0 + P[0, j, s] * x
            else:
                for t in range(width):
                    table[i, t] += P[t, j, s] * x


@jit
def fill_components(kind, rows, P, out):
    """Fill out[i, s, t − 1] with A^t of row i and component s, t = 1…width; or with Π(1 + p x)."""
    n, k, width = out.shape
    for i in range(n):
        for s in range(k):
            for t in range(width):
                out[i, s, t] = 1.0 if kind == ALL_SUBSETS else 0.0
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            row, x = P[rows.indices[p]], rows.data[p]
            for s in range(k):
                z = row[s] * x
                if kind == ALL_SUBSETS:
                    out[i, s, 0] *= 1.0 + z
                    continue
                for t in range(width - 1, 0, -1):
                    out[i, s, t] += z * out[i, s, t - 1]
                out[i, s, 0] += z


@jit
def slope(kind, rows, P, s, table, i, j, x, part, theta):
    """Return ∂prediction/∂p_j of row i for one component, of any form but ANOVA."""
    p = P[part, j, s]
    if kind == ALL_SUBSETS:
        return x * others_product(rows, P[0], s, i, j, 1.0 + p * x, table[i, 0])
    if kind == MIXED:  # Σ_t θ_t A^t without j, by the O(degree) recursion (3.20)
        b, total = 1.0, theta[0]
        for t in range(table.shape[1] - 1):
            b = table[i, t] - p * x * b
            total += theta[t + 1] * b
        return x * total
    product = x
    for t in range(table.shape[1]):
        if t != part:
            product *= table[i, t]
    return product


@jit
def move(kind, rows, P, s, table, i, j, x, part, change):
    """Bring the table of row i up to date with a change of p_j, which is still the old one."""
    p = P[part, j, s]
    if kind == MIXED:
        b = 1.0
        for t in range(table.shape[1]):
            old = table[i, t]
            table[i, t] = old + change * x * b
            b = old - p * x * b
    elif kind == ALL_SUBSETS:
        rest = others_product(rows, P[0], s, i, j, 1.0 + p * x, table[i, 0])
        table[i, 0] = rest * (1.0 + (p + change) * x)
    else:
        table[i, part] += change * x
