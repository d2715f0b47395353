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

from recsys._jit import in_threads, jit
from recsys.errors import InputError, counted
from recsys.utils.features import native, real_array
from recsys.utils.threads import threads_for
from recsys.utils.validation import check_ids

__all__ = [
    "PairTerm",
    "Pairs",
    "Side",
    "add_products",
    "careful_slopes",
    "make_pairs",
    "object_tables",
    "order_products",
    "predict_pairs",
]


class Side(NamedTuple):
    """The objects of one side, and where their pairs are.

    Rows of objects without a pair are empty: nothing that is fitted depends on them.
    """

    rows: sp.csr_matrix
    columns: sp.csc_matrix
    ptr: NDArray[np.int64]  # (objects + 1,), into the next two
    entries: NDArray[np.int32]
    partners: NDArray[np.int32]


class Pairs(NamedTuple):
    """N pairs of (left, right) objects; symmetric ones predict the mean of both directions."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    sides: tuple[Side, Side]
    symmetric: bool


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
    if symmetric:
        one = _side(A, [(left, right), (right, left)])
        return Pairs(left, right, (one, one), True)
    return Pairs(left, right, (_side(A, [(left, right)]), _side(B, [(right, left)])), False)


def _side(X: sp.csr_matrix, ends: list[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> Side:
    n, objects = len(ends[0][0]), X.shape[0]
    paired = np.bincount(np.concatenate([here for here, _ in ends]), minlength=objects) > 0
    if not paired.all():
        X = sp.csr_matrix(sp.diags(paired.astype(np.float64)) @ X)
        X.eliminate_zeros()
    columns = X.tocsc()
    columns.sort_indices()
    here = np.concatenate([a for a, _ in ends])
    there = np.concatenate([b for _, b in ends])
    order = np.argsort(here, kind="stable")
    ptr = np.concatenate([[0], np.cumsum(np.bincount(here, minlength=objects))])
    entries = np.tile(np.arange(n), len(ends))[order]
    return Side(X, columns, ptr, entries.astype(np.int32), there[order].astype(np.int32))


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

    coefficients: NDArray[np.float64]
    left: NDArray[np.float64]
    right: NDArray[np.float64]
    weights: NDArray[np.float64]
    theta: NDArray[np.float64] | None = None

    @property
    def degree(self) -> int:
        """The order m."""
        return len(self.coefficients) - 1

    @property
    def scale(self) -> NDArray[np.float64]:
        """The factor of each product of A^t(p, a) with what `facing` makes of b's table, (m + 1,)."""
        if self.theta is None:
            return self.coefficients
        out = np.ones(self.degree + 1)
        out[-1] = self.theta[-1]
        return out

    def facing(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return, of one end's A^0…A^m, what the other end's A^m…A^0 are multiplied by.

        Without a θ that is the table. With one A^t(a) meets Σ_r θ_(t+r) A^r(b), at the index of
        A^(m−t)(b); θ_m, alone at the first index, is left to `scale`, so that a 1 stands there as in
        every table.
        """
        if self.theta is None:
            return table
        m = self.degree
        mixed = np.zeros((m + 1, m + 1))
        for t in range(m):
            for r in range(m + 1 - t):
                mixed[r, m - t] = self.theta[t + r - 1] if t + r else 0.0
        mixed[0, 0] = 1.0
        return table @ mixed

    def by_order(self) -> list[NDArray[np.float64]]:
        """Return the coefficients of the products of each order that the term has."""
        if self.theta is None:
            return [self.coefficients]
        return [np.full(r + 1, weight) for r, weight in enumerate(self.theta, 1)]


def object_tables(X: sp.csr_matrix, p: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    """Return A^0…A^degree of each object for one component, (objects, degree + 1).

    Parameters
    ----------
    X : (objects, features) float64 CSR
    p : (features,) float64
    degree : int ≥ 0

    Raises
    ------
    InputError
        If X is no matrix of real numbers, or p no vector of one for each feature.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> object_tables(sp.csr_matrix([[1.0, 2.0, 0.0]]), np.array([1.0, 3.0, 5.0]), 2)
    array([[1., 7., 6.]])
    """
    X, p = _rows("X", X), _vector("p", p, X.shape[1])
    out = np.empty((X.shape[0], degree + 1))
    fill_table(X.indptr, X.indices, X.data, p, out)
    return out


def predict_pairs(
    terms: Sequence[PairTerm],
    A: sp.csr_matrix,
    B: sp.csr_matrix,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    symmetric: bool = False,
    threads: int | None = None,
) -> NDArray[np.float64]:
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

    Raises
    ------
    InputError
        If A or B is no matrix of real numbers, or the pairs are not of its rows.
    """
    A, B = _rows("A", A), _rows("B", B)
    left, right = check_ids("left", left, A.shape[0]), check_ids("right", right, B.shape[0])
    if len(left) != len(right):
        raise InputError(f"left has {len(left)} entries and right {len(right)}; they must agree")
    out = np.zeros(len(left))
    for term in terms:
        m, c = term.degree, term.scale * (0.5 if symmetric else 1.0)
        for s in range(term.left.shape[1]):
            TA = object_tables(A, term.left[:, s], m)
            TB = term.facing(object_tables(B, term.right[:, s], m))
            add_products(left, right, TA, TB, c * term.weights[s], symmetric, out, threads)
    return out


def _rows(name: str, X: Any) -> sp.csr_matrix:
    """Return float64 CSR: X itself where it is that, as it is wherever speed matters."""
    if sp.issparse(X) and X.format == "csr" and X.dtype == np.float64 and X.indices.dtype == np.int32:
        return X
    if sp.issparse(X) and X.dtype.kind in "biuf":
        return sp.csr_matrix(native(X), dtype=np.float64)
    return sp.csr_matrix(real_array(name, X, 2))


def _vector(name: str, p: Any, size: int) -> NDArray[np.float64]:
    if not isinstance(p, np.ndarray) or p.dtype != np.float64 or p.ndim != 1:
        p = real_array(name, p, 1)
    if len(p) != size:
        raise InputError(f"{name} has {len(p)} entries for {counted(size, 'feature')}")
    return p


def order_products(term: PairTerm, pairs: Pairs, threads: int | None) -> NDArray[np.float64]:
    """Return Σ_s λ_s Σ_t A^t(p_s, a)·A^(r−t)(q_s, b) of each pair and order r = 1…m, (pairs, m)."""
    m = term.degree
    out = np.zeros((m, len(pairs.left)))
    A, B = (side.rows for side in pairs.sides)
    for s in range(term.left.shape[1]):
        TA, TB = object_tables(A, term.left[:, s], m), object_tables(B, term.right[:, s], m)
        weight = term.weights[s] * (0.5 if pairs.symmetric else 1.0)
        for r in range(1, m + 1):
            add_products(
                pairs.left,
                pairs.right,
                TA[:, : r + 1].copy(),
                TB[:, : r + 1].copy(),
                np.full(r + 1, weight),
                pairs.symmetric,
                out[r - 1],
                threads,
            )
    return np.ascontiguousarray(out.T)


def add_products(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    TA: NDArray[np.float64],
    TB: NDArray[np.float64],
    c: NDArray[np.float64],
    symmetric: bool,
    out: NDArray[np.float64],
    threads: int | None,
) -> None:
    """Add the products of two sides' tables to the pairs' predictions."""
    threads = threads_for(2.0 * len(left) * len(c), threads)
    in_threads(threads, _add_products, left, right, TA, TB, c, symmetric, out)


# ---- kernels


@jit
def fill_table(indptr, indices, data, p, out):
    """out[u, t] = A^t(p, x_u), t = 0…width − 1."""
    width = out.shape[1]
    for u in range(out.shape[0]):
        out[u, 0] = 1.0
        for t in range(1, width):
            out[u, t] = 0.0
        for q in range(indptr[u], indptr[u + 1]):
            z = p[indices[q]] * data[q]
            for t in range(width - 1, 0, -1):
                out[u, t] += z * out[u, t - 1]


@jit
def _add_products(part, stride, left, right, TA, TB, c, symmetric, out):
    """Out += Σ_t c_t·TA[left, t]·TB[right, m − t], plus, symmetric, the same with the ends exchanged."""
    m, n = len(c) - 1, len(left)
    for i in range(part * n // stride, (part + 1) * n // stride):
        u, v = left[i], right[i]
        total = 0.0
        for t in range(m + 1):
            total += c[t] * TA[u, t] * TB[v, m - t]
        if symmetric:
            for t in range(m + 1):
                total += c[t] * TA[v, t] * TB[u, m - t]
        out[i] += total


@jit
def careful_slopes(x, u, rows, p, j, b):
    """Fill b with ∂A^t/∂p_j, t = 1…m, of object u by the plain recursion, where (3.20) cancels."""
    b[:] = 0.0
    b[0] = 1.0
    for q in range(rows.indptr[u], rows.indptr[u + 1]):
        if rows.indices[q] != j:
            z = p[rows.indices[q]] * rows.data[q]
            for t in range(len(b) - 1, 0, -1):
                b[t] += z * b[t - 1]
    for t in range(len(b)):
        b[t] *= x
