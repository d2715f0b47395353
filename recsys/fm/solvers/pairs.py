"""Descent on pairs of objects: one pass over the pairs for a block of components.

With one side held fixed, a pair's prediction is linear in numbers of the other side's object:
A^1…A^(m−1) of each component, and one sum of all A^m. The loss' quadratic bound is so a small quadratic
for each object, summed once for all components of a block. The sweep over the features then descends on
these quadratics, and no row of a pair is ever formed.

Source: Atarashi's thesis 3.3.4, (3.20) and (3.21), with the sums over an object's pairs taken out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import jit
from recsys.errors import InputError
from recsys.fm.penalties import L2, TI, prox_scalar
from recsys.fm.solvers.base import SOLVERS, Descent, Shrinkage, visiting_order
from recsys.multilinear.forms import ANOVA, Compressed
from recsys.multilinear.losses import Target, weighted_slopes
from recsys.multilinear.pairs import (
    Pairs,
    PairTerm,
    add_dots,
    component_tables,
    make_pairs,
    term_products,
)
from recsys.multilinear.symmetric import elementary_polynomials, with_size, without

Vector = NDArray[np.float64]
Prior = Callable[[int, Vector], tuple[Vector, Vector, Vector]]
BLOCK = 4  # components of a pass: more take less time, and end at worse optima
ALONE = 2  # epochs at first in which a component is fitted to what those before it leave
MOST_ENTRIES = 32_000_000  # of all objects' quadratics; a block has fewer components beyond


@SOLVERS.add("pairs")
class PairDescent(Descent):
    """Coordinate descent on rows of two parts that repeat, such as users and items."""

    penalties = ("l2", "l1", "ti")
    kinds = (ANOVA,)

    def _prepare(self) -> None:
        objective, split = self.objective, self.options.split
        if split is None or split >= objective.X.shape[1]:
            raise InputError("solver 'pairs' needs split, the number of columns of a row's left part")
        order = visiting_order(objective.counts(), objective.X.shape[0])
        self.ends = order[order < split], order[order >= split]
        self.pairs = pairs_of_rows(objective.X, self.ends)
        self.epochs = 0

    def epoch(self) -> float:
        """Visit the bias and all terms once."""
        objective, model = self.objective, self.objective.model
        moved = self._bias(objective.target)
        tables = [(form.order, P[0]) for form, P in zip(model.forms, model.tables(), strict=True)]
        weights, shrinkages = list(model.weights), [self.shrinkage] * len(tables)
        if model.linear:
            tables, weights = [(1, model.w[:, None]), *tables], [np.ones(1), *weights]
            shrinkages = [Shrinkage(objective.regularization.alpha, L2, 0.0), *shrinkages]
        left, right = self.ends
        terms = [
            PairTerm(np.ones(order + 1), P[left], P[right], own)
            for (order, P), own in zip(tables, weights, strict=True)
        ]
        self.epochs += 1
        block = block_of(self.epochs)
        moved += pair_epoch(
            self.pairs, terms, objective.target, shrinkages, threads=self.options.threads, block=block
        )
        for (_, P), term in zip(tables, terms, strict=True):
            P[left], P[right] = term.left, term.right
        return self._finished(moved)


def pairs_of_rows(X: sp.csr_matrix, ends: tuple[NDArray[np.int64], NDArray[np.int64]]) -> Pairs:
    """Return rows as pairs of their left and right parts."""
    (A, left), (B, right) = (_distinct_rows(X[:, columns]) for columns in ends)
    return make_pairs(A, B, left, right)


def _distinct_rows(X: sp.csr_matrix) -> tuple[sp.csr_matrix, NDArray[np.int64]]:
    """Return the rows that differ, by hashes of 64 bits and in order, and which of them each row is."""
    X.sort_indices()
    keys = np.random.default_rng(0).integers(1, 2**63, size=X.shape[1], dtype=np.uint64)
    hashes = (X.data.view(np.uint64) ^ keys[X.indices]) * np.uint64(0x9E3779B97F4A7C15)
    hashes = (hashes ^ (hashes >> np.uint64(32))) * (keys[X.indices] | np.uint64(1))
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    of_rows = sums[X.indptr[1:]] - sums[X.indptr[:-1]]
    _, first, which = np.unique(of_rows, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return sp.csr_matrix(X[first[order]]), place[which].astype(np.int64)


def pair_epoch(
    pairs: Pairs,
    terms: Sequence[PairTerm],
    target: Target,
    shrinkages: Sequence[Shrinkage],
    fit_weights: Sequence[bool] | None = None,
    threads: int | None = None,
    prior: Prior | None = None,
    block: int = BLOCK,
) -> float:
    """Update the terms' parameters once, in place; returns the sum of absolute changes.

    Of every `block` of components all features of the left side are visited, then all of the right one.
    Where `fit_weights` is True the weights of a term's components are learned as well.
    `prior(side, parameters)` gives the β and mean of each component, and noise to add to each step, in
    units of the root of its curvature: the steps are then draws given all other parameters.
    """
    fit_weights = [False] * len(terms) if fit_weights is None else fit_weights
    objects = max(side.rows.shape[0] for side in pairs.sides)
    moved = 0.0
    for term, shrinkage, weighted in zip(terms, shrinkages, fit_weights, strict=True):
        k = term.left.shape[1]
        size = block_size(min(k, block), term.degree, objects)
        for first in range(0, k, size):
            some = slice(first, min(first + size, k))
            with np.errstate(over="ignore", invalid="ignore"):  # the objective tells of divergence
                moved += _block_epoch(pairs, term, some, target, shrinkage, weighted, threads, prior)
            for s in range(some.start, some.stop) if weighted else ():
                moved += _fit_weight(pairs, term, s, target, shrinkage.beta, threads)
    return moved


def block_of(epoch: int) -> int:
    """Return how many components the passes of an epoch have, counted from 1."""
    return 1 if epoch <= ALONE else BLOCK


def block_size(components: int, degree: int, objects: int) -> int:
    """Return how many components a pass has, so that the objects' quadratics stay small."""
    size = components
    while size > 1 and objects * (size * (degree - 1) + 1) ** 2 > MOST_ENTRIES:
        size //= 2
    return size


def _block_epoch(
    pairs: Pairs,
    term: PairTerm,
    some: slice,
    target: Target,
    shrinkage: Shrinkage,
    weighted: bool,
    threads: int | None,
    prior: Prior | None,
) -> float:
    """Update some components of a term, those of the left side first."""
    ways, m = 2 if pairs.symmetric else 1, term.degree
    factors = [np.ascontiguousarray(P[:, some].T) for P in (term.left, term.right)]
    tables = [component_tables(side.rows, P.T, m) for side, P in zip(pairs.sides, factors, strict=True)]
    sizes = np.abs(np.concatenate(factors, axis=1))
    weights, moved = term.weights[some] / ways, 0.0
    for at, (side, P, table) in enumerate(zip(pairs.sides, factors, tables, strict=True)):
        if side.rows.shape[1] == 0:
            continue
        mixing = term.mixing if at == 0 else term.mixing.T
        last = weights * mixing[-1, 0]
        if m > 1 and np.diff(side.rows.indptr).max(initial=0) <= 1:
            last = np.zeros(len(P))  # an object of one feature has no products of its own
        face = (tables[1 - at] @ mixing[1:-1].T * weights[:, None]).reshape(len(tables[1 - at]), -1)
        summed = m == 1 or last.any()  # whether predictions have the sum of all A^m
        psi = np.column_stack([face, np.ones(len(face))]) if summed else face
        quadratics = _Quadratics(pairs, at, psi, target)
        before = _numbers(table, last, summed)
        betas = np.full(len(P), shrinkage.beta)
        if weighted:
            betas *= np.abs(term.weights[some])
        means, noise = np.zeros(len(P)), np.zeros(P.shape)
        if prior is not None:
            betas, means, noise = prior(at, P)
        for s in range(len(P)):
            own = np.array([*range(s * (m - 1), (s + 1) * (m - 1)), psi.shape[1] - 1])
            scale = np.array([1.0] * (m - 1) + [last[s]])
            state = quadratics.state(own, scale, table[:, s, 1:])
            totals = np.zeros(max(m - 1, 1))
            if shrinkage.penalty == TI:
                totals = elementary_polynomials(sizes[s], len(totals))
            moved += sweep(
                Compressed.of(side.columns),
                P[s],
                m,
                state,
                betas[s],
                means[s],
                noise[s],
                shrinkage.penalty,
                shrinkage.gamma,
                totals,
                sizes[s],
                at * factors[0].shape[1],
            )
            change = state[:, m + m * m :] - table[:, s, 1:]
            table[:, s, 1:] += change
            quadratics.move(own, scale, change)
        change = _numbers(table, last, summed) - before
        ids = (pairs.left, pairs.right) if at == 0 else (pairs.right, pairs.left)
        add_dots(*ids, change, psi, target.pred, threads)
        if pairs.symmetric:
            add_dots(*ids[::-1], change, psi, target.pred, threads)
    term.left[:, some], term.right[:, some] = factors[0].T, factors[1].T
    return moved


def _numbers(table: Vector, last: Vector, summed: bool) -> Vector:
    """Return the numbers that a pair's prediction is linear in: A^1…A^(m−1), and any sum of all A^m."""
    numbers = table[:, :, 1:-1].reshape(len(table), -1)
    return np.column_stack([numbers, table[:, :, -1] @ last]) if summed else numbers.copy()


class _Quadratics:
    """The objects' quadratics in the mean loss: sums of slope·ψ and of the bound's curvature·ψψᵀ."""

    def __init__(self, pairs: Pairs, at: int, psi: Vector, target: Target) -> None:
        numbers = psi.shape[1]
        a, b = np.tril_indices(numbers)
        self.place = np.empty((numbers, numbers), dtype=np.int64)
        self.place[a, b] = self.place[b, a] = np.arange(len(a))
        products = np.take(psi, a, axis=1) * np.take(psi, b, axis=1)
        n = len(target.y)
        # a symmetric pair moves at both ends: (x + y)² ≤ 2x² + 2y² keeps the bound
        bound = target.curvature * (2.0 if pairs.symmetric else 1.0)
        self.curvatures = pairs.sums(at, target.row_weights * (bound / n), products)
        self.gradients = pairs.sums(at, weighted_slopes(target) / n, psi)

    def state(self, own: NDArray[np.int64], scale: Vector, table: Vector) -> Vector:
        """Return m gradients, m·m curvatures and A^1…A^m of one component, (objects, 2m + m²)."""
        curvatures = self.curvatures[:, self.place[own[:, None], own].ravel()]
        outer = np.outer(scale, scale).ravel()
        return np.hstack([self.gradients[:, own] * scale, curvatures * outer, table])

    def move(self, own: NDArray[np.int64], scale: Vector, change: Vector) -> None:
        """Bring the change of a component's A^1…A^m into all gradients."""
        for number, step in zip(own, (change * scale).T, strict=True):
            if step.any():
                self.gradients += step[:, None] * self.curvatures[:, self.place[number]]


def _fit_weight(
    pairs: Pairs, term: PairTerm, s: int, target: Target, beta: float, threads: int | None
) -> float:
    """Take the proximal step of λ_s under β/2·|λ_s|·(‖u_s‖² + ‖v_s‖²), (3.19)."""
    alone = slice(s, s + 1)
    one = term._replace(left=term.left[:, alone], right=term.right[:, alone], weights=np.ones(1))
    A, B = (side.rows for side in pairs.sides)
    products = term_products(one, A, B, pairs.left, pairs.right, pairs.symmetric, threads)
    n = len(target.y)
    bound = target.curvature * float((products * target.row_weights) @ products) / n
    if bound <= 1e-300:
        return 0.0
    size = float((one.left**2).sum() + (one.right**2).sum())
    value = term.weights[s] - float(weighted_slopes(target) @ products) / n / bound
    new = float(np.sign(value) * max(abs(value) - 0.5 * beta * size / bound, 0.0))
    change = new - term.weights[s]
    np.add(target.pred, change * products, out=target.pred)
    term.weights[s] = new
    return abs(change)


# ---- kernels


@jit
def sweep(columns, p, m, state, beta, mean, noise, penalty, gamma, totals, sizes, offset):
    """Descend feature by feature on the objects' quadratics of one component; returns the change.

    `state` has an object's m gradients, m·m curvatures and A^1…A^m; `sizes` are the |p| of both sides,
    this one's from `offset`, and `totals` their symmetric polynomials.
    """
    col_ptr, ids, data = columns
    first = m + m * m  # of A^1…A^m
    b, rest = np.empty(m), np.empty(len(totals) + 1)
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
                fill_slopes(data[q], u, old, state, first, b)
                for t in range(m):
                    inner = 0.0
                    for w in range(m):
                        inner += b[w] * state[u, m + t * m + w]
                    g += b[t] * state[u, t]
                    h += b[t] * inner
        bound = h + beta
        if bound <= 1e-300:
            continue
        strength = gamma / bound
        if penalty == TI:
            without(totals, sizes, offset + j, rest)
            strength *= rest[len(totals)]
        step = (g + beta * (old - mean)) / bound - noise[j] / np.sqrt(bound)
        new = prox_scalar(penalty, old - step, strength)
        change = new - old
        if change == 0.0:
            continue
        moved += abs(change)
        if penalty == TI:
            with_size(totals, sizes, offset + j, rest, abs(new))
        if m == 2:
            for q in range(col_ptr[j], col_ptr[j + 1]):
                u, x = ids[q], data[q]
                b1 = x * (state[u, 6] - old * x)
                state[u, 0] += change * (state[u, 2] * x + state[u, 4] * b1)
                state[u, 1] += change * (state[u, 4] * x + state[u, 5] * b1)
                state[u, 6] += change * x
                state[u, 7] += change * b1
        else:
            for q in range(col_ptr[j], col_ptr[j + 1]):
                u = ids[q]
                fill_slopes(data[q], u, old, state, first, b)
                for t in range(m):
                    for w in range(m):
                        state[u, t] += change * state[u, m + t * m + w] * b[w]
                    state[u, first + t] += change * b[t]
        p[j] = new
    return moved


@jit
def fill_slopes(x, u, old, state, first, b):
    """Fill b with ∂A^t/∂p_j of object u, t = 1…m (3.20)."""
    b[0] = x
    for t in range(1, len(b)):
        b[t] = x * (state[u, first + t - 1] - old * b[t - 1])
