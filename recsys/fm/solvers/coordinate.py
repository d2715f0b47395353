"""Coordinate descent: one pass over the features, component by component, is an epoch.

Every parameter enters a prediction linearly, and the loss' quadratic bound is one in the parameter.

Source: Blondel et al. 2016, 4.1; Atarashi et al. 2021, Algorithm 1 for the TI penalty.
"""

from __future__ import annotations

import numpy as np

from recsys._jit import jit
from recsys.fm.penalties import TI, factor_of_sums, prox_scalar, replace_in_sums, sums_of
from recsys.fm.solvers.base import SOLVERS
from recsys.fm.solvers.descent import Descent
from recsys.multilinear.forms import ALL_SUBSETS, ANOVA, MIXED, PRODUCT, fill_component, move, slope
from recsys.multilinear.losses import loss_slope


@SOLVERS.add("cd")
class CoordinateDescent(Descent):
    """One parameter at a time: the minimum of the quadratic bound, then the penalty's threshold."""

    penalties = ("l2", "l1", "ti")
    kinds = (ANOVA, ALL_SUBSETS, PRODUCT, MIXED)

    def _term(self, n: int) -> float:
        objective, model = self.objective, self.objective.model
        form, P = model.forms[n], model.tables()[n]
        width = form.order - 1 if form.kind == ANOVA else form.order
        table = np.empty((objective.X.shape[0], width))
        return float(
            coordinate_epoch(
                form.kind,
                self.rows,
                self.order,
                self.columns,
                objective.target,
                P,
                table,
                model.theta[n],
                model.weights[n],
                self.shrinkage,
                form.penalty_order,
            )
        )


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
