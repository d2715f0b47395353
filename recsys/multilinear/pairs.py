"""Pairs of objects, and multilinear terms over them, from a table for each object.

A row that is the concatenation of a left and a right object has A^m(a⊕b) = Σ_t A^t(a)·A^(m−t)(b): a
pair's prediction comes from the two objects' tables, and its row is never formed.

Source: Atarashi's thesis 3.3.4 and (3.21).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import SUMS, in_threads, jit
from recsys.errors import InputError, counted
from recsys.multilinear.forms import ANOVA, Compressed, fill_components
from recsys.utils.resources import threads_for
from recsys.utils.validation import check_ids, real_array

__all__ = [
    "PairTerm",
    "Pairs",
    "Side",
    "add_dots",
    "component_tables",
    "make_pairs",
    "object_tables",
    "order_products",
    "predict_pairs",
    "term_products",
]

Array = NDArray[np.float64]


class Side(NamedTuple):
    """The objects of one side, by rows and by columns.

    Rows of objects without a pair are empty: nothing that is fitted depends on them.
    """

    rows: sp.csr_matrix
    columns: sp.csc_matrix


class Pairs(NamedTuple):
    """N pairs of (left, right) objects; symmetric ones predict the mean of both directions.

    `cells` is a (left objects, right objects) matrix with an entry for each pair; `order` has the pairs
    in the order of the entries.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    sides: tuple[Side, Side]
    symmetric: bool
    cells: sp.csr_matrix
    order: NDArray[np.int64] | slice

    def sums(self, at: int, values: Array, columns: Array) -> Array:
        """Return Σ value·columns[other object] over the pairs of each object of a side.

        Where pairs are symmetric, an object's pairs are those that it begins and those that it ends.
        """
        cells = sp.csr_matrix(
            (values[self.order], self.cells.indices, self.cells.indptr), self.cells.shape
        )
        if self.symmetric:
            return cells @ columns + cells.T @ columns
        return (cells if at == 0 else cells.T) @ columns


def make_pairs(
    A: sp.csr_matrix,
    B: sp.csr_matrix,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    symmetric: bool = False,
) -> Pairs:
    """Index pairs by their objects; under `symmetric` A and B are the same, and a pair has two ends.

    Pairs in the order of `left` are walked fastest.
    """
    is_sorted = bool((left[1:] >= left[:-1]).all())
    order = slice(None) if is_sorted else np.argsort(left, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(left, minlength=A.shape[0]))])
    cells = sp.csr_matrix((np.ones(len(left)), right[order], ends), (A.shape[0], B.shape[0]))
    if symmetric:
        one = _side(A, np.concatenate([left, right]))
        return Pairs(left, right, (one, one), True, cells, order)
    return Pairs(left, right, (_side(A, left), _side(B, right)), False, cells, order)


def _side(X: sp.csr_matrix, ids: NDArray[np.int64]) -> Side:
    paired = np.bincount(ids, minlength=X.shape[0]) > 0
    if not paired.all():
        X = sp.csr_matrix(sp.diags(paired.astype(np.float64)) @ X)
        X.eliminate_zeros()
    columns = X.tocsc()
    columns.sort_indices()
    return Side(X, columns)


class PairTerm(NamedTuple):
    """One multilinear term over pairs: Σ_s λ_s Σ_t coefficients[t]·A^t(p_s, a)·A^(m−t)(q_s, b).

    With a θ it has every order up to m: Σ_s λ_s Σ_r θ_r Σ_t A^t(p_s, a)·A^(r−t)(q_s, b).

    Parameters
    ----------
    coefficients : (m + 1,) float64
        1 each where there is a θ.
    left, right : (features, components) float64
        p and q.
    weights : (components,) float64
        λ.
    theta : (m,) float64, optional
        The weights of the orders 1…m.

    Examples
    --------
    >>> import numpy as np
    >>> term = PairTerm(np.array([0.0, 1.0, 0.0]), np.ones((2, 1)), np.ones((3, 1)), np.ones(1))
    >>> term.degree
    2
    """

    coefficients: Array
    left: Array
    right: Array
    weights: Array
    theta: Array | None = None

    @property
    def degree(self) -> int:
        """The order m."""
        return len(self.coefficients) - 1

    @property
    def mixing(self) -> Array:
        """The coefficient of each A^t(a)·A^r(b), (m + 1, m + 1)."""
        m = self.degree
        if self.theta is None:
            return np.fliplr(np.diag(self.coefficients))
        out = np.zeros((m + 1, m + 1))
        for order, weight in enumerate(self.theta, 1):
            out[np.arange(order + 1), np.arange(order, -1, -1)] = weight
        return out

    def by_order(self) -> list[Array]:
        """Return the coefficients of the products of each order that the term has."""
        if self.theta is None:
            return [self.coefficients]
        return [np.full(r + 1, weight) for r, weight in enumerate(self.theta, 1)]


def component_tables(X: sp.csr_matrix, P: Array, degree: int) -> Array:
    """Return A^0…A^degree of each object and component, (objects, components, degree + 1)."""
    out = np.empty((X.shape[0], P.shape[1], max(degree, 1)))
    fill_components(ANOVA, Compressed.of(X), np.ascontiguousarray(P), out)
    return np.concatenate([np.ones((*out.shape[:2], 1)), out], axis=2)[:, :, : degree + 1]


def object_tables(X: sp.csr_matrix, p: Array, degree: int) -> Array:
    """Return A^0…A^degree of each object for one component, (objects, degree + 1).

    Parameters
    ----------
    X : (objects, features) float64 CSR
    p : (features,) float64
    degree : int ≥ 0

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> object_tables(sp.csr_matrix([[1.0, 2.0, 0.0]]), np.array([1.0, 3.0, 5.0]), 2)
    array([[1., 7., 6.]])
    """
    X, p = _rows("X", X), np.asarray(real_array("p", p, 1), dtype=np.float64)
    if len(p) != X.shape[1]:
        raise InputError(f"p has {len(p)} entries for {counted(X.shape[1], 'feature')}")
    return component_tables(X, p[:, None], degree)[:, 0]


def predict_pairs(
    terms: Sequence[PairTerm],
    A: sp.csr_matrix,
    B: sp.csr_matrix,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    symmetric: bool = False,
    threads: int | None = None,
) -> Array:
    """Return the terms' predictions of index pairs, from per-object tables: no pair row is formed.

    Parameters
    ----------
    terms : sequence of PairTerm
    A, B : (objects, features) float64 CSR
    left, right : (pairs,) int64
        Rows of A and of B.
    symmetric : bool
        Whether the mean of both directions is predicted; A and B are then the same.
    threads : int, optional

    Returns
    -------
    (pairs,) float64
    """
    A, B = _rows("A", A), _rows("B", B)
    left, right = check_ids("left", left, A.shape[0]), check_ids("right", right, B.shape[0])
    if len(left) != len(right):
        raise InputError(f"left has {len(left)} entries and right {len(right)}; they must agree")
    out = np.zeros(len(left))
    for term in terms:
        out += term_products(term, A, B, left, right, symmetric, threads)
    return out


def term_products(
    term: PairTerm,
    A: sp.csr_matrix,
    B: sp.csr_matrix,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    symmetric: bool,
    threads: int | None,
) -> Array:
    """Return a term's predictions of index pairs."""
    mixing, ways = term.mixing, [(left, right), (right, left)] if symmetric else [(left, right)]
    weights = term.weights / len(ways)
    one, other = (component_tables(X, P, term.degree) for X, P in ((A, term.left), (B, term.right)))
    phi = one[:, :, 1:].reshape(len(one), -1)
    psi = ((other @ mixing[1:].T) * weights[:, None]).reshape(len(other), -1)
    own = (other @ mixing[0]) @ weights
    out = np.zeros(len(left))
    for here, there in ways:
        out += own[there]
        add_dots(here, there, phi, psi, out, threads)
    return out


def order_products(term: PairTerm, pairs: Pairs, threads: int | None) -> Array:
    """Return Σ_s λ_s Σ_t A^t(p_s, a)·A^(r−t)(q_s, b) of each pair and order r = 1…m, (pairs, m)."""
    A, B = (side.rows for side in pairs.sides)
    orders = [term._replace(theta=one) for one in np.eye(term.degree)]
    found = [
        term_products(one, A, B, pairs.left, pairs.right, pairs.symmetric, threads) for one in orders
    ]
    return np.column_stack(found)


def add_dots(
    here: NDArray[np.int64],
    there: NDArray[np.int64],
    phi: Array,
    psi: Array,
    out: Array,
    threads: int | None,
) -> None:
    """Add ⟨phi[here], psi[there]⟩ of each pair to out."""
    threads = threads_for(float(len(here)) * phi.shape[1], threads)
    in_threads(threads, _add_dots, here, there, phi, psi, out)


def _rows(name: str, X: Any) -> sp.csr_matrix:
    """Return X as float64 CSR, without a copy if possible."""
    if sp.issparse(X) and X.format == "csr" and X.dtype == np.float64 and X.indices.dtype == np.int32:
        return X
    if sp.issparse(X) and X.dtype.kind in "biuf":
        return sp.csr_matrix(X, dtype=np.float64)
    return sp.csr_matrix(real_array(name, X, 2))


# ---- kernels


@jit(fastmath=SUMS)
def _add_dots(part, stride, here, there, phi, psi, out):
    n = len(here)
    for i in range(part * n // stride, (part + 1) * n // stride):
        one, other, total = phi[here[i]], psi[there[i]], 0.0
        for a in range(len(one)):
            total += one[a] * other[a]
        out[i] += total
