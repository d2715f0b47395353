"""Block descent: all components of a feature at once, for factorization machines and all subsets.

The step is the exact minimum of the quadratic bound on the feature's row of P, or, under a penalty on
rows (ℓ2,1, CS), a proximal one. Where rounding leaves the bound's matrix without a Cholesky factor, the
step is that of a diagonal above it, by Gershgorin: never none at all. Tables hold A^1…A^t of each row
and component.

Source: Atarashi et al. 2021, 5.2 and Algorithm 6; Blondel et al. 2016, Algorithm 1.
"""

from __future__ import annotations

import numpy as np

from recsys._jit import jit
from recsys.fm.penalties import (
    acts_on_rows,
    factor_without,
    has_totals,
    prox_row,
    replace_size,
    totals_of,
)
from recsys.fm.solvers.base import SOLVERS
from recsys.fm.solvers.descent import Descent
from recsys.multilinear.forms import ALL_SUBSETS, ANOVA, fill_components, others_product
from recsys.multilinear.losses import loss_slope

__all__ = ["BlockDescent"]


@SOLVERS.add("block")
class BlockDescent(Descent):
    """A feature's whole row at a time: the bound's exact minimum, or a proximal step on the row."""

    penalties = ("l2", "l21", "cs")
    kinds = (ANOVA, ALL_SUBSETS)
    place = 2

    def _term(self, n: int) -> float:
        objective, model = self.objective, self.objective.model
        form, P = model.forms[n], model.tables()[n][0]
        width = form.order - 1 if form.kind == ANOVA else 1
        table = np.empty((objective.X.shape[0], model.components, width))
        fill_components(form.kind, self.rows, P, table)
        return float(
            block_epoch(
                form.kind,
                self.rows,
                self.order,
                self.columns,
                objective.target,
                P,
                table,
                model.weights[n],
                self.shrinkage,
                form.penalty_order,
            )
        )


# ---- kernels


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
def _row_step(penalty, row, slopes, step, weight, change):
    """Fill the change of a row by a proximal step; `slopes` is the gradient of the smooth part."""
    size = 0.0
    for s in range(len(row)):
        change[s] = row[s] - step * slopes[s]
        size += change[s] * change[s]
    shrink = prox_row(penalty, np.sqrt(size), weight * step)
    for s in range(len(row)):
        change[s] = shrink * change[s] - row[s]


@jit
def block_epoch(kind, rows, order, columns, target, P, table, weights, shrinkage, degree):
    """Update a feature's whole row at once, for kinds ANOVA and all-subsets, in the order given.

    Without a penalty on rows the step minimizes the quadratic bound exactly; with one (ℓ2,1 or CS)
    it is the proximal step of the bound's largest curvature.
    """
    y, pred, loss, curvature, row_weights = target
    beta, penalty, gamma = shrinkage
    col_ptr, ids, data = columns
    n, k, width = len(y), P.shape[1], table.shape[2]
    roots = np.sqrt(row_weights)
    H, g, slopes = np.empty((k, k)), np.empty(k), np.empty(k)
    held = np.empty((4, k))
    norms = np.empty(P.shape[0])
    for j in range(P.shape[0]):
        norms[j] = np.sqrt((P[j] * P[j]).sum())
    above = np.empty(k)  # Σ_b |H_ab|: diag(above) − H is positive semi-definite
    totals, rest = totals_of(penalty, kind, norms, degree), np.empty(degree)
    moved = 0.0
    rowwise, coupled = acts_on_rows(penalty), has_totals(penalty)
    for j in order:
        row = P[j]
        g[:] = 0.0
        H[:] = 0.0
        largest, count = 0.0, 0
        for p in range(col_ptr[j], col_ptr[j + 1]):
            i, x = ids[p], data[p]
            row_weight = row_weights[i]
            r = row_weight * loss_slope(loss, pred[i], y[i])
            if kind == ANOVA and width == 1:
                for s in range(k):
                    slopes[s] = weights[s] * x * (table[i, s, 0] - row[s] * x)
            else:
                for s in range(k):
                    if kind == ALL_SUBSETS:
                        one = 1.0 + row[s] * x
                        others = others_product(rows, P, s, i, j, one, table[i, s, 0])
                        slopes[s] = weights[s] * x * others
                        continue
                    b, z = 1.0, row[s] * x
                    for t in range(width):
                        b = table[i, s, t] - z * b
                    slopes[s] = weights[s] * x * b
            square = 0.0
            for s in range(k):
                g[s] += r * slopes[s]
                square += slopes[s] * slopes[s]
            largest += row_weight * square
            if not rowwise:
                root = roots[i]
                for s in range(k):
                    held[count, s] = root * slopes[s]
                count += 1
                if count == 4:  # four rows at once: a quarter of the passes over H
                    _gather_squares(held, H)
                    count = 0
        if count:
            held[count:] = 0.0
            _gather_squares(held, H)
        if rowwise:
            bound = curvature * largest / n + beta
            if bound <= 1e-300:
                continue
            weight = gamma
            if coupled:
                weight *= factor_without(penalty, kind, totals, norms, j, rest)
            for s in range(k):
                slopes[s] = g[s] / n + beta * row[s]
            _row_step(penalty, row, slopes, 1.0 / bound, weight, g)
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
        for p in range(col_ptr[j], col_ptr[j + 1]):
            i, x = ids[p], data[p]
            step = 0.0
            if kind == ANOVA and width == 1:
                for s in range(k):
                    step += weights[s] * g[s] * (table[i, s, 0] - row[s] * x)
                    table[i, s, 0] += g[s] * x
                step *= x
            else:
                for s in range(k):
                    if kind == ALL_SUBSETS:
                        one = 1.0 + row[s] * x
                        others = others_product(rows, P, s, i, j, one, table[i, s, 0])
                        step += weights[s] * g[s] * x * others
                        table[i, s, 0] = others * (one + g[s] * x)
                        continue
                    b, z = 1.0, row[s] * x
                    for t in range(width):
                        held_t = table[i, s, t]
                        table[i, s, t] = held_t + g[s] * x * b
                        b = held_t - z * b
                    step += weights[s] * g[s] * x * b
            pred[i] += step
        size = 0.0
        for s in range(k):
            moved += abs(g[s])
            row[s] += g[s]
            size += row[s] * row[s]
        if coupled:
            replace_size(penalty, kind, totals, norms, j, rest, np.sqrt(size))
    return moved
