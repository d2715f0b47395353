"""Coordinate and block descent: one pass over the features is an epoch.

Coordinate descent goes component by component: every parameter enters a prediction linearly, and the
loss' quadratic bound is one in the parameter. Block descent takes all components of a feature at once,
for factorization machines and all subsets. Its step is the exact minimum of the quadratic bound on the
feature's row of P, or, under a penalty on rows (ℓ2,1, CS), a proximal one. Where rounding leaves the
bound's matrix without a Cholesky factor, the step is that of a diagonal above it, by Gershgorin: never
none at all. Its tables hold A^1…A^t of each row and component.

Source: Blondel et al. 2016, Algorithm 1 and 4.1; Atarashi et al. 2021, Algorithm 1 for the TI penalty,
5.2 and Algorithm 6.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from recsys._jit import jit
from recsys.fm.penalties import (
    CS,
    TI,
    Table,
    acts_on_rows,
    factor_of_sums,
    prox_scalar,
    replace_in_sums,
    sums_of,
)
from recsys.fm.solvers.base import SOLVERS, Descent
from recsys.multilinear.forms import (
    ALL_SUBSETS,
    ANOVA,
    MIXED,
    PRODUCT,
    fill_component,
    fill_components,
    move,
    others_product,
    slope,
)
from recsys.multilinear.losses import loss_slope


class FeatureDescent(Descent):
    """Base of both: a pass over the features for each term."""

    def _pass(
        self, kernel: Callable[..., float], n: int, P: Table, table: Table, *theta: Table
    ) -> float:
        form, weights = self.objective.model.forms[n], self.objective.model.weights[n]
        arguments = (form.kind, self.rows, self.order, self.columns, self.objective.target, P, table)
        return float(kernel(*arguments, *theta, weights, self.shrinkage, form.penalty_order))


@SOLVERS.add("cd")
class CoordinateDescent(FeatureDescent):
    """One parameter at a time: the minimum of the quadratic bound, then the penalty's threshold."""

    penalties = ("l2", "l1", "ti")
    kinds = (ANOVA, ALL_SUBSETS, PRODUCT, MIXED)

    def _term(self, n: int) -> float:
        objective, model = self.objective, self.objective.model
        form, P = model.forms[n], model.tables()[n]
        width = form.order - 1 if form.kind == ANOVA else form.order
        table = np.empty((objective.X.shape[0], width))
        return self._pass(coordinate_epoch, n, P, table, model.theta[n])


@SOLVERS.add("block")
class BlockDescent(FeatureDescent):
    """A feature's whole row at a time: the bound's exact minimum, or a proximal step on the row."""

    penalties = ("l2", "l21", "cs")
    kinds = (ANOVA, ALL_SUBSETS)

    def _term(self, n: int) -> float:
        objective, model = self.objective, self.objective.model
        form, P = model.forms[n], model.tables()[n][0]
        width = form.order - 1 if form.kind == ANOVA else 1
        table = np.empty((objective.X.shape[0], model.components, width))
        fill_components(form.kind, self.rows, P, table)
        return self._pass(block_epoch, n, P, np.ascontiguousarray(table.transpose(0, 2, 1)))


# ---- kernels


@jit
def coordinate_epoch(kind, rows, order, columns, target, P, table, theta, weights, shrinkage, degree):
    """Update every parameter of P, (factors, features, components), component by component.

    The table is of one component at a time, so that it stays in the cache.
    """
    y, pred, loss, curvature, row_weights = target
    beta, penalty, gamma = shrinkage
    col_ptr, ids, data = columns
    n, moved, width = len(y), 0.0, table.shape[1]
    longest = 1
    for j in order:
        longest = max(longest, col_ptr[j + 1] - col_ptr[j])
    slopes, sizes = np.empty(longest), np.empty(P.shape[1])
    totals, rest = np.zeros(1), np.empty(max(degree, 2))
    for s in range(P.shape[2]):
        weight = weights[s]
        fill_component(kind, rows, P, s, table)
        for part in range(P.shape[0]):
            if penalty == TI:
                sizes[:] = np.abs(P[part, :, s])
                totals = sums_of(kind, sizes, degree)
            for j in order:
                begin, end = col_ptr[j], col_ptr[j + 1]
                old = P[part, j, s]
                g = h = 0.0
                if kind == ANOVA and width == 1:  # two loops take a quarter longer
                    for p in range(begin, end):
                        i, x = ids[p], data[p]
                        slopes[p - begin] = d = weight * x * (table[i, 0] - old * x)
                        e = row_weights[i] * d
                        g += loss_slope(loss, pred[i], y[i]) * e
                        h += e * d
                else:
                    for p in range(begin, end):
                        i, x = ids[p], data[p]
                        if kind == ANOVA:
                            d = 1.0
                            for t in range(width):
                                d = table[i, t] - old * x * d
                            d *= x
                        else:
                            d = slope(kind, rows, P, s, table, i, j, x, part, theta)
                        slopes[p - begin] = weight * d
                    for p in range(begin, end):
                        i, d = ids[p], slopes[p - begin]
                        e = row_weights[i] * d
                        g += loss_slope(loss, pred[i], y[i]) * e
                        h += e * d
                bound = curvature * h / n + beta
                if bound <= 1e-300:
                    continue
                strength = gamma / bound
                if penalty == TI:
                    strength *= factor_of_sums(kind, totals, sizes, j, rest)
                new = prox_scalar(penalty, old - (g / n + beta * old) / bound, strength)
                change = new - old
                if change == 0.0:
                    continue
                for p in range(begin, end):
                    i, x, b = ids[p], data[p], 1.0
                    pred[i] += change * slopes[p - begin]
                    if kind == ANOVA and width == 1:
                        table[i, 0] += change * x
                    elif kind == ANOVA:
                        for t in range(width):
                            before = table[i, t]
                            table[i, t] = before + change * x * b
                            b = before - old * x * b
                    else:
                        move(kind, rows, P, s, table, i, j, x, part, change)
                if penalty == TI:
                    replace_in_sums(kind, totals, sizes, j, rest, abs(new))
                P[part, j, s] = new
                moved += abs(change)
    return moved


@jit
def _solve(H, g, k):
    """Solve H d = g in place by Cholesky; returns whether H was positive definite to rounding."""
    for a in range(k):
        least = 1e-13 * k * H[a, a]
        for b in range(a):
            total = H[a, b]
            for c in range(b):
                total -= H[a, c] * H[b, c]
            H[a, b] = total / H[b, b]
        total = H[a, a]
        for c in range(a):
            total -= H[a, c] * H[a, c]
        if not total > least:
            return False
        H[a, a] = np.sqrt(total)
    for a in range(k):
        for c in range(a):
            g[a] -= H[a, c] * g[c]
        g[a] /= H[a, a]
    for a in range(k - 1, -1, -1):
        for c in range(a + 1, k):
            g[a] -= H[c, a] * g[c]
        g[a] /= H[a, a]
    return True


@jit
def _gather_squares(rows, H):
    """H += rowsᵀ rows for four rows."""
    k = len(H)
    for a in range(k):
        v0, v1, v2, v3 = rows[0, a], rows[1, a], rows[2, a], rows[3, a]
        for b in range(k):
            H[a, b] += (v0 * rows[0, b] + v1 * rows[1, b]) + (v2 * rows[2, b] + v3 * rows[3, b])


@jit
def block_epoch(kind, rows, order, columns, target, P, table, weights, shrinkage, degree):
    """Update a feature's whole row at once, in the order given; `table` is (rows, width, components)."""
    y, pred, loss, curvature, row_weights = target
    beta, penalty, gamma = shrinkage
    col_ptr, ids, data = columns
    n, width, k = table.shape
    roots = np.sqrt(row_weights)
    H, g, slopes, others = np.empty((k, k)), np.empty(k), np.empty(k), np.empty(k)
    four = np.empty((4, k))
    above = np.empty(k)  # Σ_b |H_ab|: diag(above) − H is positive semi-definite
    norms = np.sqrt((P * P).sum(axis=1))
    totals, rest = sums_of(kind, norms, degree), np.empty(max(degree, 2))
    moved = 0.0
    rowwise = acts_on_rows(penalty)
    for j in order:
        row = P[j]
        g[:] = 0.0
        H[:] = 0.0
        largest, count = 0.0, 0
        for p in range(col_ptr[j], col_ptr[j + 1]):
            i, x = ids[p], data[p]
            r = row_weights[i] * loss_slope(loss, pred[i], y[i])
            if kind == ALL_SUBSETS:
                for s in range(k):
                    others[s] = others_product(rows, P, s, i, j, 1.0 + row[s] * x, table[i, 0, s])
            else:
                others[:] = 1.0
                for t in range(width):
                    for s in range(k):
                        others[s] = table[i, t, s] - row[s] * x * others[s]
            square = 0.0
            for s in range(k):
                slopes[s] = weights[s] * x * others[s]
                g[s] += r * slopes[s]
                square += slopes[s] * slopes[s]
            largest += row_weights[i] * square
            if not rowwise:
                for s in range(k):
                    four[count, s] = roots[i] * slopes[s]
                count += 1
                if count == 4:  # four rows at once: a quarter of the passes over H
                    _gather_squares(four, H)
                    count = 0
        if count:
            four[count:] = 0.0
            _gather_squares(four, H)
        if rowwise:
            bound = curvature * largest / n + beta
            if bound <= 1e-300:
                continue
            strength = gamma / bound
            if penalty == CS:
                strength *= factor_of_sums(kind, totals, norms, j, rest)
            for s in range(k):
                g[s] = row[s] - (g[s] / n + beta * row[s]) / bound
            norm = np.sqrt((g * g).sum())
            shrink = max(0.0, 1.0 - strength / norm) if norm > 0.0 else 0.0
            for s in range(k):
                g[s] = shrink * g[s] - row[s]
        else:
            above[:] = 0.0
            for a in range(k):
                for b in range(a + 1):
                    H[a, b] *= curvature / n
                    above[a] += abs(H[a, b])
                    if b < a:
                        above[b] += abs(H[a, b])
                H[a, a] = H[a, a] * (1.0 + 1e-10) + beta  # of its own size: no scale is lost
                slopes[a] = g[a] = -(g[a] / n + beta * row[a])
            if not _solve(H, g, k):
                for a in range(k):
                    bound = above[a] + beta
                    g[a] = slopes[a] / bound if bound > 1e-300 else 0.0
        for p in range(col_ptr[j], col_ptr[j + 1]):  # g is the change of the row
            i, x = ids[p], data[p]
            if kind == ALL_SUBSETS:
                for s in range(k):
                    others[s] = others_product(rows, P, s, i, j, 1.0 + row[s] * x, table[i, 0, s])
                    table[i, 0, s] = others[s] * (1.0 + (row[s] + g[s]) * x)
            else:
                others[:] = 1.0
                for t in range(width):
                    for s in range(k):
                        old = table[i, t, s]
                        table[i, t, s] = old + g[s] * x * others[s]
                        others[s] = old - row[s] * x * others[s]
            step = 0.0
            for s in range(k):
                step += weights[s] * g[s] * others[s]
            pred[i] += step * x
        for s in range(k):
            moved += abs(g[s])
            row[s] += g[s]
        if penalty == CS:
            replace_in_sums(kind, totals, norms, j, rest, np.sqrt((row * row).sum()))
    return moved
