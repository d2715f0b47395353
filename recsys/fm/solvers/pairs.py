"""Descent on pairs of objects: one pass over the pairs for a block of components.

With one side held fixed, a pair's prediction is linear in numbers of the other side's object:
A^1…A^(m−1) of each component, and one sum of all A^m. The loss' quadratic bound is so a small quadratic
for each object, summed once for all components of a block. The sweep over the features then descends on
these quadratics, and no row of a pair is ever formed.

Source: Atarashi's thesis 3.3.4, (3.20) and (3.21), with the sums over an object's pairs taken out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import in_threads, jit
from recsys.errors import InputError
from recsys.fm.penalties import (
    L2,
    factor_without,
    has_totals,
    prox_scalar,
    replace_size,
    totals_of,
)
from recsys.fm.solvers.base import SOLVERS
from recsys.fm.solvers.descent import Descent, Shrinkage, visiting_order
from recsys.multilinear.arrays import Compressed, Target
from recsys.multilinear.forms import ANOVA, guard_of
from recsys.multilinear.losses import slopes_of
from recsys.multilinear.pairs import (
    Pairs,
    PairTerm,
    add_products,
    careful_slopes,
    make_pairs,
    object_tables,
)
from recsys.utils.threads import threads_for

__all__ = ["PairDescent", "pair_epoch", "pairs_of_rows"]

Vector = NDArray[np.float64]
Prior = Callable[[int, Vector], tuple[Vector, Vector, Vector]]
BLOCK = 16  # components of a pass
ROWS = 64  # of pairs whose products are one call of BLAS
MOST_ENTRIES = 32_000_000  # of all objects' quadratics; a block has fewer components beyond


@SOLVERS.add("pairs")
class PairDescent(Descent):
    """Coordinate descent on rows of two parts that repeat, such as users and items."""

    required = ("prox_scalar",)
    kinds = (ANOVA,)
    place = 3

    def _prepare(self) -> None:
        objective, split = self.objective, self.options.split
        if split is None or split >= objective.X.shape[1]:
            raise InputError("solver 'pairs' needs split, the number of columns of a row's left part")
        order = visiting_order(objective.counts(), objective.X.shape[0])
        self.ends = order[order < split], order[order >= split]
        self.pairs = pairs_of_rows(objective.X, self.ends)

    def epoch(self) -> float:
        """Visit the bias and every term once, the linear one first."""
        objective, model = self.objective, self.objective.model
        moved = self._bias(objective.target)
        if model.linear:
            linear = Shrinkage(objective.regularization.alpha, L2, 0.0)
            moved += self._pair_term(1, model.w[:, None], np.ones(1), linear)
        for form, P, weights in zip(model.forms, model.tables(), model.weights, strict=True):
            moved += self._pair_term(form.order, P[0], weights, self.shrinkage)
        return self._finished(moved)

    def _pair_term(self, order: int, P: Vector, weights: Vector, shrinkage: Shrinkage) -> float:
        left, right = self.ends
        term = PairTerm(np.ones(order + 1), P[left], P[right], weights)
        threads = self.options.threads
        moved = pair_epoch(self.pairs, term, self.objective.target, shrinkage, threads=threads)
        P[left], P[right] = term.left, term.right
        return moved


def pairs_of_rows(X: sp.csr_matrix, ends: tuple[NDArray[np.int64], NDArray[np.int64]]) -> Pairs:
    """Return rows as pairs of what they have in the left columns and in the right ones."""
    (A, left), (B, right) = (_distinct_rows(X[:, columns]) for columns in ends)
    return make_pairs(A, B, left, right)


def _distinct_rows(X: sp.csr_matrix) -> tuple[sp.csr_matrix, NDArray[np.int64]]:
    """Return the rows that differ, by hashes of 64 bits, and which of them each row is."""
    X.sort_indices()
    keys = np.random.default_rng(0).integers(1, 2**63, size=X.shape[1], dtype=np.uint64)
    hashes = (X.data.view(np.uint64) ^ keys[X.indices]) * np.uint64(0x9E3779B97F4A7C15)
    hashes = (hashes ^ (hashes >> np.uint64(32))) * (keys[X.indices] | np.uint64(1))
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    of_rows = sums[X.indptr[1:]] - sums[X.indptr[:-1]]
    _, first, which = np.unique(of_rows, return_index=True, return_inverse=True)
    return sp.csr_matrix(X[first]), which.astype(np.int64)


def pair_epoch(
    pairs: Pairs,
    term: PairTerm,
    target: Target,
    shrinkage: Shrinkage,
    fit_weights: bool = False,
    threads: int | None = None,
    prior: Prior | None = None,
) -> float:
    """Update a term's parameters once, in place; returns the sum of absolute changes.

    Of every block of components all features of the left side are visited, then all of the right one.
    With `fit_weights` the components' weights are learned, too, and shrink what they weigh.
    `prior(side, parameters)` gives the β and mean of each component, and noise to add to each step, in
    units of the root of its curvature: the steps are then draws given all other parameters.
    """
    k, m = term.left.shape[1], term.degree
    size = block_size(k, m, max(side.rows.shape[0] for side in pairs.sides))
    moved = 0.0
    for first in range(0, k, size):
        some = slice(first, min(first + size, k))
        moved += _block_epoch(pairs, term, some, target, shrinkage, fit_weights, threads, prior)
    return moved


def block_size(components: int, degree: int, objects: int) -> int:
    """Return how many components a pass has, so that the objects' quadratics stay small."""
    size = min(BLOCK, components)
    while size > 1 and objects * (size * (degree - 1) + 1) ** 2 > MOST_ENTRIES:
        size //= 2
    return size


def _block_epoch(
    pairs: Pairs,
    term: PairTerm,
    some: slice,
    target: Target,
    shrinkage: Shrinkage,
    fit_weights: bool,
    threads: int | None,
    prior: Prior | None,
) -> float:
    m, n = term.degree, len(target.y)
    directions = 2.0 if pairs.symmetric else 1.0
    weights = term.weights[some]
    factors = [np.ascontiguousarray(P[:, some]) for P in (term.left, term.right)]
    sizes = np.ascontiguousarray(np.abs(np.concatenate(factors)).T)
    totals = np.array([totals_of(shrinkage.penalty, ANOVA, column, m) for column in sizes])
    betas = shrinkage.beta * (np.abs(weights) if fit_weights else np.ones(len(weights)))
    tables = [_tables(side.rows, P, m) for side, P in zip(pairs.sides, factors, strict=True)]
    moved = 0.0
    means = np.zeros(len(weights))
    for at, side in enumerate(pairs.sides):
        if len(factors[at]) == 0:
            continue
        noise = np.zeros((len(weights), len(factors[at])))
        if prior is not None:
            betas, means, noise = prior(at, factors[at])
        psi = _numbers_of_partners(term, tables[1 - at], weights / directions, at)
        # a symmetric pair moves at both ends: (x + y)² ≤ 2x² + 2y² keeps the bound
        curvature = directions * target.curvature
        last = weights / directions * (term.scale[-1] if at == 0 else term.scale[0])
        if term.theta is not None:
            last = weights / directions * term.theta[-1]
        slopes = slopes_of(target.loss, target.pred, target.y)
        roots = np.ones(1)
        if target.weighted:
            slopes *= target.row_weights
            roots = np.sqrt(target.row_weights)
        numbers = psi.shape[1]
        objects = side.rows.shape[0]
        gradients = np.empty((objects, numbers))
        curvatures = np.empty((objects, numbers, numbers))
        enough = threads_for(float(n * numbers * numbers), threads)
        in_threads(
            enough,
            gather,
            side.ptr,
            side.entries,
            side.partners,
            slopes,
            roots,
            psi,
            gradients,
            curvatures,
        )
        before = _numbers(tables[at], last)
        moved += sweep_block(
            Compressed.of(side.columns),
            Compressed.of(side.rows),
            factors[at],
            tables[at],
            last,
            gradients,
            curvatures,
            n,
            curvature,
            betas,
            means,
            noise,
            shrinkage.penalty,
            shrinkage.gamma,
            totals,
            sizes,
            at * factors[0].shape[0],
        )
        change = _numbers(tables[at], last) - before
        if pairs.symmetric:  # both ends of a pair write to its prediction
            enough = 1
        in_threads(enough, apply, side.ptr, side.entries, side.partners, change, psi, target.pred)
    term.left[:, some], term.right[:, some] = factors
    if fit_weights:
        for s in range(some.start, some.stop):
            moved += _fit_weight(pairs, term, s, target, shrinkage.beta, threads)
    return moved


def _tables(X: object, P: Vector, degree: int) -> Vector:
    """Return A^0…A^m of each object and component, (objects, components, m + 1)."""
    columns = (np.ascontiguousarray(P[:, s]) for s in range(P.shape[1]))
    return np.ascontiguousarray(np.stack([object_tables(X, p, degree) for p in columns], axis=1))  # type: ignore[arg-type]


def _numbers(table: Vector, last: Vector) -> Vector:
    """Return the numbers that a pair's prediction is linear in, (objects, k(m − 1) + 1)."""
    inner = table[:, :, 1:-1].reshape(len(table), -1)
    return np.column_stack([inner, table[:, :, -1] @ last])


def _numbers_of_partners(term: PairTerm, table: Vector, weights: Vector, at: int) -> Vector:
    """Return what these numbers are multiplied by, by partner; of the last one that is 1."""
    facing = term.facing(table)
    c = term.scale if at == 0 or term.theta is not None else term.scale[::-1]
    inner = facing[:, :, 1:-1][:, :, ::-1] * c[1:-1] * weights[:, None]
    return np.column_stack([inner.reshape(len(table), -1), np.ones(len(table))])


def _fit_weight(
    pairs: Pairs, term: PairTerm, s: int, target: Target, beta: float, threads: int | None
) -> float:
    """Take the proximal step of λ_s under β/2·|λ_s|·(‖u_s‖² + ‖v_s‖²), (3.19)."""
    columns = [np.ascontiguousarray(P[:, s]) for P in (term.left, term.right)]
    left, right = (
        object_tables(side.rows, p, term.degree) for side, p in zip(pairs.sides, columns, strict=True)
    )
    products = np.zeros(len(target.y))
    c = term.scale / (2.0 if pairs.symmetric else 1.0)
    facing = term.facing(right)
    add_products(pairs.left, pairs.right, left, facing, c, pairs.symmetric, products, threads)
    slopes = slopes_of(target.loss, target.pred, target.y)
    weighted = products * target.row_weights if target.weighted else products
    bound = target.curvature * float(weighted @ products) / len(target.y)
    if bound <= 1e-300:
        return 0.0
    size = sum(float(p @ p) for p in columns)
    value = term.weights[s] - float(slopes @ weighted) / len(target.y) / bound
    new = float(np.sign(value) * max(abs(value) - 0.5 * beta * size / bound, 0.0))
    change = new - term.weights[s]
    np.add(target.pred, change * products, out=target.pred)
    term.weights[s] = new
    return abs(change)


# ---- kernels


@jit
def gather(part, stride, ptr, entries, partners, slopes, roots, psi, gradients, curvatures):
    """Sum Σ slope·ψ and Σ weight·ψψᵀ over the pairs of each object; `roots` are roots of weights."""
    objects, n = gradients.shape
    weighted = len(roots) > 1
    rows, own = np.empty((ROWS, n)), np.empty(ROWS)
    squares, products = np.empty((n, n)), np.empty(n)
    for u in range(part * objects // stride, (part + 1) * objects // stride):
        gradients[u] = 0.0
        curvatures[u] = 0.0
        for start in range(ptr[u], ptr[u + 1], ROWS):
            count = min(ROWS, ptr[u + 1] - start)
            for c in range(count):
                i = entries[start + c]
                v = partners[start + c]
                root = roots[i] if weighted else 1.0
                own[c] = slopes[i] / root
                for a in range(n):
                    rows[c, a] = root * psi[v, a]
            some = rows[:count]
            np.dot(some.T, some, squares)
            np.dot(own[:count], some, products)
            for a in range(n):
                gradients[u, a] += products[a]
                for b in range(n):
                    curvatures[u, a, b] += squares[a, b]


@jit
def apply(part, stride, ptr, entries, partners, change, psi, pred):
    """Add the change of the objects' numbers to the predictions of their pairs."""
    objects, n = change.shape
    for u in range(part * objects // stride, (part + 1) * objects // stride):
        own = change[u]
        for e in range(ptr[u], ptr[u + 1]):
            row = psi[partners[e]]
            total = 0.0
            for a in range(n):
                total += own[a] * row[a]
            pred[entries[e]] += total


@jit
def sweep_block(
    columns,
    rows,
    P,
    table,
    last,
    gradients,
    curvatures,
    n,
    curvature,
    betas,
    means,
    noise,
    penalty,
    gamma,
    totals,
    sizes,
    offset,
):
    """Sweep over the features of one component after the other; P, table and gradients change."""
    objects, k, m = table.shape[0], table.shape[1], table.shape[2] - 1
    state = np.empty((objects, 2 * m + m * m))
    moved = 0.0
    for s in range(k):
        pack(state, table, s, last[s], gradients, curvatures)
        moved += sweep(
            columns,
            rows,
            P,
            s,
            state,
            n,
            curvature,
            betas[s],
            means[s],
            noise[s],
            penalty,
            gamma,
            totals[s],
            sizes[s],
            offset,
        )
        unpack(state, table, s, last[s], curvature, gradients, curvatures)
    return moved


@jit
def pack(state, table, s, last, gradients, curvatures):
    """Fill an object's row with the m gradients, m·m curvatures and A^1…A^m of component s."""
    m, end = table.shape[2] - 1, gradients.shape[1] - 1
    at = s * (m - 1)
    for u in range(len(state)):
        for t in range(m):
            own, scale = (at + t, 1.0) if t < m - 1 else (end, last)
            state[u, t] = scale * gradients[u, own]
            for w in range(m):
                other, more = (at + w, 1.0) if w < m - 1 else (end, last)
                state[u, m + t * m + w] = scale * more * curvatures[u, own, other]
            state[u, m + m * m + t] = table[u, s, t + 1]


@jit
def unpack(state, table, s, last, curvature, gradients, curvatures):
    """Bring the change of a component's A^1…A^m into the table and into all gradients."""
    m, end = table.shape[2] - 1, gradients.shape[1] - 1
    at = s * (m - 1)
    for u in range(len(state)):
        for t in range(m):
            change = state[u, m + m * m + t] - table[u, s, t + 1]
            if change == 0.0:
                continue
            table[u, s, t + 1] += change
            own, factor = at + t, curvature * change
            if t == m - 1:
                own, factor = end, last * factor
            for a in range(end + 1):
                gradients[u, a] += factor * curvatures[u, own, a]


@jit
def sweep(
    columns, rows, P, s, state, n, curvature, beta, mean, noise, penalty, gamma, totals, sizes, offset
):
    """Descend feature by feature on the objects' quadratics of one component.

    `sizes` are the |p| of both sides, this one's from `offset`; `totals` their symmetric polynomials.
    """
    col_ptr, ids, data = columns
    m = int(np.sqrt(state.shape[1] + 1.0) + 0.5) - 1
    first = m + m * m  # of A^1…A^m
    guard = guard_of(m)
    coupled = has_totals(penalty)
    b, rest = np.empty(m), np.empty(len(totals) + 1)
    p = P[:, s].copy()
    moved = 0.0
    for j in range(len(p)):
        old = p[j]
        g = h = 0.0
        if m == 2:
            for q in range(col_ptr[j], col_ptr[j + 1]):
                u, x = ids[q], data[q]
                b1 = x * (state[u, 6] - old * x)
                g += x * state[u, 0] + b1 * state[u, 1]
                h += x * (x * state[u, 2] + 2.0 * b1 * state[u, 4]) + b1 * b1 * state[u, 5]
        else:
            for q in range(col_ptr[j], col_ptr[j + 1]):
                u = ids[q]
                fill_slopes(data[q], u, rows, p, j, old, state, first, guard, b)
                for t in range(m):
                    g += b[t] * state[u, t]
                    inner = b[t] * state[u, m + t * m + t]
                    for w in range(t):
                        inner += 2.0 * b[w] * state[u, m + t * m + w]
                    h += b[t] * inner
        bound = curvature * h / n + beta
        if bound <= 1e-300:
            continue
        strength = gamma / bound
        if coupled:
            strength *= factor_without(penalty, ANOVA, totals, sizes, offset + j, rest)
        step = (g / n + beta * (old - mean)) / bound - noise[j] / np.sqrt(bound)
        new = prox_scalar(penalty, old - step, strength)
        change = new - old
        if change == 0.0:
            continue
        moved += abs(change)
        if coupled:
            replace_size(penalty, ANOVA, totals, sizes, offset + j, rest, abs(new))
        factor = curvature * change
        if m == 2:
            for q in range(col_ptr[j], col_ptr[j + 1]):
                u, x = ids[q], data[q]
                b1 = x * (state[u, 6] - old * x)
                state[u, 0] += factor * (state[u, 2] * x + state[u, 4] * b1)
                state[u, 1] += factor * (state[u, 4] * x + state[u, 5] * b1)
                state[u, 6] += change * x
                state[u, 7] += change * b1
        else:
            for q in range(col_ptr[j], col_ptr[j + 1]):
                u = ids[q]
                fill_slopes(data[q], u, rows, p, j, old, state, first, guard, b)
                for t in range(m):
                    total = 0.0
                    for w in range(m):
                        total += state[u, m + t * m + w] * b[w]
                    state[u, t] += factor * total
                for t in range(m):
                    state[u, first + t] += change * b[t]
        p[j] = new
    P[:, s] = p
    return moved


@jit
def fill_slopes(x, u, rows, p, j, old, state, first, guard, b):
    """Fill b with ∂A^t/∂p_j of object u, t = 1…m: by (3.20), or the plain recursion where it cancels."""
    m = len(b)
    if m > 2 and abs(old * x) > guard:
        careful_slopes(x, u, rows, p, j, b)
        return
    b[0] = x
    for t in range(1, m):
        b[t] = x * (state[u, first + t - 1] - old * b[t - 1])
