"""Coordinate descent on pairs of objects, without ever walking the rows of the pairs.

A row that is the concatenation of a left and a right object has A^m(a⊕b) = Σ_t A^t(a)·A^(m−t)(b). With
one side held fixed, the loss' quadratic bound is a small quadratic for each object of the other side,
in its own A^1…A^m: `gather` brings the predictions up to date and sums it over the object's pairs,
`sweep` descends on it feature by feature. An epoch costs O(m²k(nz(A) + nz(B)) + mkN) for N pairs, where
the rows of the pairs have far more non-zeros; for the squared loss the steps are those of plain
coordinate descent.

Source: Atarashi's thesis 3.3.4 and (3.20), (3.21), with the sums over an object's pairs taken out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import parallel
from recsys.fm._losses import symmetric_polynomials
from recsys.fm._objects import (
    CHUNKS,
    add_products,
    add_products_alone,
    fill_table,
    gather,
    gather_alone,
    slopes_of,
    sweep,
)
from recsys.fm._threads import threads_for

Runs = Sequence[tuple[int, NDArray[np.int64]]]  # of a side, 0 or 1, and its columns, in order


class Side(NamedTuple):
    """The objects of one side, and where their pairs are, chunk by chunk of pairs."""

    rows: sp.csr_matrix
    columns: sp.csc_matrix
    ptr: NDArray[np.int64]  # (chunks, objects + 1), into the next two
    entries: NDArray[np.int32]
    partners: NDArray[np.int32]


class Pairs(NamedTuple):
    """N pairs of (left, right) objects; symmetric ones predict the mean of both directions."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    sides: tuple[Side, Side]
    symmetric: bool


def make_pairs(
    A: sp.csr_matrix, B: sp.csr_matrix, left: NDArray[np.int64], right: NDArray[np.int64],
    symmetric: bool = False,
) -> Pairs:  # fmt: skip
    """Index pairs by their objects; under `symmetric` A and B are the same, and a pair has two ends.

    Pairs in the order of `left` are walked fastest.
    """
    if symmetric:
        one = _side(A, [(left, right), (right, left)])
        return Pairs(left, right, (one, one), True)
    return Pairs(left, right, (_side(A, [(left, right)]), _side(B, [(right, left)])), False)


def _side(X: sp.csr_matrix, ends: list[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> Side:
    columns = X.tocsc()
    columns.sort_indices()
    n, objects = len(ends[0][0]), X.shape[0]
    ptr = np.empty((CHUNKS, objects + 1), dtype=np.int64)
    entries, partners, at = [], [], 0
    for chunk in range(CHUNKS):
        mine = np.arange(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS)
        here = np.concatenate([a[mine] for a, _ in ends])
        there = np.concatenate([b[mine] for _, b in ends])
        order = np.argsort(here, kind="stable")
        entries.append(np.tile(mine, len(ends))[order])
        partners.append(there[order])
        ptr[chunk] = at + np.concatenate([[0], np.cumsum(np.bincount(here, minlength=objects))])
        at += len(here)
    return Side(
        X, columns, ptr, np.concatenate(entries).astype(np.int32),
        np.concatenate(partners).astype(np.int32),
    )  # fmt: skip


class PairTerm(NamedTuple):
    """One multi-linear term over pairs: Σ_s λ_s Σ_t coefficients[t]·A^t(p_s, a)·A^(m−t)(q_s, b)."""

    coefficients: NDArray[np.float64]
    left: NDArray[np.float64]
    right: NDArray[np.float64]
    weights: NDArray[np.float64]

    @property
    def degree(self) -> int:
        """The order m."""
        return len(self.coefficients) - 1


def object_tables(X: sp.csr_matrix, p: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    """Return A^0…A^degree of each object for one component, (objects, degree + 1)."""
    out = np.empty((X.shape[0], degree + 1))
    fill_table(X.indptr, X.indices, X.data, p, out)
    return out


def predict_pairs(
    terms: Sequence[PairTerm], A: sp.csr_matrix, B: sp.csr_matrix, left: NDArray[np.int64],
    right: NDArray[np.int64], symmetric: bool = False, threads: int | None = None,
) -> NDArray[np.float64]:  # fmt: skip
    """Return the terms' predictions of index pairs, from per-object tables: no pair row is formed."""
    out = np.zeros(len(left))
    for term in terms:
        m, c = term.degree, term.coefficients * (0.5 if symmetric else 1.0)
        for s in range(term.left.shape[1]):
            TA = object_tables(A, term.left[:, s], m)
            TB = object_tables(B, term.right[:, s], m)
            _add(left, right, TA, TB, c * term.weights[s], symmetric, out, threads)
    return out


def both_sides(left: int, right: int) -> Runs:
    """Return the runs that visit all the left columns, then all the right ones."""
    return [(0, np.arange(left)), (1, np.arange(right))]


def runs_of(order: NDArray[np.int64], cut: int) -> Runs:
    """Return an order of all columns, the first `cut` of them the left side's, as runs of a side."""
    right = order >= cut
    starts = np.flatnonzero(np.diff(right)) + 1
    return [
        (int(part[0] >= cut), part - cut * int(part[0] >= cut))
        for part in np.split(order, starts)
        if len(part)
    ]


def epoch(
    pairs: Pairs, term: PairTerm, y: NDArray[np.float64], pred: NDArray[np.float64], loss: int,
    curvature: float, beta: float, penalty: int, gamma: float, fit_weights: bool = False,
    threads: int | None = None, runs: Runs | None = None,
) -> float:  # fmt: skip
    """Update a term's parameters once, in place; returns the sum of absolute changes.

    Every component's features are visited run by run: by default all of the left side, then all of the
    right one.
    """
    moved, m, n = 0.0, term.degree, len(y)
    widths = (term.left.shape[0], term.right.shape[0])
    runs = both_sides(*widths) if runs is None else runs
    directions = 2.0 if pairs.symmetric else 1.0
    sums = [np.zeros((CHUNKS, side.rows.shape[0], m + m * m)) for side in pairs.sides]
    pending: _Change | None = None
    threads = threads_for(4.0 * directions * n * (m + m * m), threads)
    collect = gather_alone if threads == 1 else gather
    for s in range(term.left.shape[1]):
        columns = (term.left[:, s].copy(), term.right[:, s].copy())
        tables = [object_tables(side.rows, p, m) for side, p in zip(pairs.sides, columns, strict=True)]
        sizes = np.abs(np.concatenate(columns))
        totals = symmetric_polynomials(sizes, max(m - 1, 1))
        scaled = term.weights[s] / directions * term.coefficients
        shrink = beta * abs(term.weights[s]) if fit_weights else beta
        for at, features in runs:
            if pairs.symmetric:  # a change at both ends has no place in the tables of one
                _apply(pairs, pred, pending, threads)
                pending = None
            c = scaled if at == 0 else scaled[::-1].copy()
            side, table, other = pairs.sides[at], tables[at], tables[1 - at]
            packed = np.zeros((len(other), 2 * m))
            packed[:, m:] = other[:, :m]
            held, old = np.zeros((len(table), m + 1)), np.zeros(m + 1)
            if pending is not None and pending.side != at:  # its change is applied on the way
                packed[:, :m], held, old = pending.change[:, 1:], pending.held, pending.coefficients
            elif pending is not None:  # of this side: own and partner's factors change places
                packed[:, :m], held[:, :m] = pending.held[:, :m], pending.change[:, 1:]
                old[1:] = pending.coefficients[:0:-1]
            arguments = (
                side.ptr, side.entries, side.partners, y, pred, loss, pending is not None, packed, held,
                old, c, sums[at],
            )  # fmt: skip
            if threads == 1:
                collect(*arguments)
            else:
                with parallel(threads):
                    collect(*arguments)
            before = table.copy()
            # a symmetric pair moves at both ends: (x + y)² ≤ 2x² + 2y² keeps the bound
            moved += sweep(
                features, side.columns.indptr, side.columns.indices, side.columns.data, columns[at],
                table, sums[at].sum(axis=0), n, directions * curvature, shrink, penalty, gamma, totals,
                sizes, at * widths[0], m, side.rows.indptr, side.rows.indices, side.rows.data,
            )  # fmt: skip
            before[:, 0] = 1.0
            pending = _Change(at, table - before, other, c)
        term.left[:, s], term.right[:, s] = columns
        if fit_weights:
            _apply(pairs, pred, pending, threads)
            pending = None
            moved += _fit_weight(pairs, term, s, tables, y, pred, loss, curvature, beta, threads)
    _apply(pairs, pred, pending, threads)
    return moved


class _Change(NamedTuple):
    """What a sweep did to its side's tables, not yet in the predictions; `held` are the other side's."""

    side: int
    change: NDArray[np.float64]
    held: NDArray[np.float64]
    coefficients: NDArray[np.float64]


def _apply(
    pairs: Pairs, pred: NDArray[np.float64], pending: _Change | None, threads: int | None
) -> None:
    """Bring the predictions up to date."""
    if pending is not None:
        left, right = (pairs.left, pairs.right) if pending.side == 0 else (pairs.right, pairs.left)
        _add(
            left,
            right,
            pending.change,
            pending.held,
            pending.coefficients,
            pairs.symmetric,
            pred,
            threads,
        )


def _add(
    left: NDArray[np.int64], right: NDArray[np.int64], TA: NDArray[np.float64],
    TB: NDArray[np.float64], c: NDArray[np.float64], symmetric: bool, out: NDArray[np.float64],
    threads: int | None,
) -> None:  # fmt: skip
    """Add the products of two sides' tables to the pairs' predictions."""
    threads = threads_for(2.0 * len(left) * len(c), threads)
    if threads == 1:
        add_products_alone(left, right, TA, TB, c, symmetric, out)
        return
    with parallel(threads):
        add_products(left, right, TA, TB, c, symmetric, out)


def _fit_weight(
    pairs: Pairs, term: PairTerm, s: int, tables: list[NDArray[np.float64]],
    y: NDArray[np.float64], pred: NDArray[np.float64], loss: int, curvature: float, beta: float,
    threads: int | None,
) -> float:  # fmt: skip
    """Take the proximal step of λ_s under β/2·|λ_s|·(‖u_s‖² + ‖v_s‖²), (3.19)."""
    products = np.zeros(len(y))
    c = term.coefficients / (2.0 if pairs.symmetric else 1.0)
    _add(pairs.left, pairs.right, tables[0], tables[1], c, pairs.symmetric, products, threads)
    slopes = slopes_of(loss, pred, y)
    bound = curvature * float(products @ products) / len(y)
    if bound <= 1e-300:
        return 0.0
    size = float(term.left[:, s] @ term.left[:, s] + term.right[:, s] @ term.right[:, s])
    value = term.weights[s] - float(slopes @ products) / len(y) / bound
    new = float(np.sign(value) * max(abs(value) - 0.5 * beta * size / bound, 0.0))
    change = new - term.weights[s]
    pred += change * products
    term.weights[s] = new
    return abs(change)
