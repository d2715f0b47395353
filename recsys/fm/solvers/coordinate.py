"""Coordinate descent: one pass over the features, component by component, is an epoch.

Every parameter enters a prediction linearly, and the loss' quadratic bound is one in the parameter.

Source: Blondel et al. 2016, 4.1; Atarashi et al. 2021, Algorithm 1 for the TI penalty.
"""

from __future__ import annotations

import numpy as np

from recsys._jit import jit
from recsys.fm.penalties import (
    factor_without,
    has_totals,
    prox_scalar,
    replace_size,
    totals_of,
)
from recsys.fm.solvers.base import SOLVERS
from recsys.fm.solvers.descent import Descent
from recsys.multilinear.forms import (
    ALL_SUBSETS,
    ANOVA,
    MIXED,
    NEAR_ZERO,
    PRODUCT,
    careful_slope,
    excluded,
    fill_component,
    guard_of,
    move,
    product_without,
    slope,
)
from recsys.multilinear.losses import loss_slope

__all__ = ["CoordinateDescent"]


@SOLVERS.add("cd")
class CoordinateDescent(Descent):
    """One parameter at a time: the minimum of the quadratic bound, then the penalty's threshold."""

    required = ("prox_scalar",)
    kinds = (ANOVA, ALL_SUBSETS, PRODUCT, MIXED)
    place = 1

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

    Features are visited in the order given.

    The table is of one component at a time, so that it stays in the cache.
    """
    y, pred, loss, curvature, row_weights = target
    beta, penalty, gamma = shrinkage
    col_ptr, ids, data = columns
    n, moved, width, weighted = len(y), 0.0, table.shape[1], len(row_weights) > 1
    longest = 1
    largest = np.zeros(len(col_ptr) - 1)
    for j in range(len(col_ptr) - 1):
        longest = max(longest, col_ptr[j + 1] - col_ptr[j])
        for p in range(col_ptr[j], col_ptr[j + 1]):
            largest[j] = max(largest[j], abs(data[p]))
    kept, rests = np.empty(longest), np.empty((longest, width))
    sizes = np.empty(P.shape[1])
    totals, others = np.zeros(1), np.empty(max(degree, 2))
    coupled = has_totals(penalty)
    multilinear = (kind == ANOVA or kind == MIXED) and width > 1
    guard = guard_of(degree)
    for s in range(P.shape[2]):
        weight = weights[s]
        fill_component(kind, rows, P, s, table)
        for part in range(P.shape[0]):
            if coupled:
                sizes[:] = np.abs(P[part, :, s])
                totals = totals_of(penalty, kind, sizes, degree)
            for j in order:
                begin, end = col_ptr[j], col_ptr[j + 1]
                old = P[part, j, s]
                g = h = 0.0
                careful = multilinear and abs(old) * largest[j] > guard
                if kind == ANOVA and width == 1:
                    for p in range(begin, end):
                        i, x = ids[p], data[p]
                        d = weight * x * (table[i, 0] - old * x)
                        kept[p - begin] = d
                        e = d
                        if weighted:
                            e *= row_weights[i]
                        g += loss_slope(loss, pred[i], y[i]) * e
                        h += e * d
                elif careful:
                    for p in range(begin, end):
                        i, x = ids[p], data[p]
                        if abs(old * x) > guard:  # as long as the row: only where it must be
                            rest = rests[p - begin]
                            excluded(rows, P[0], s, i, j, rest)
                            d = weight * careful_slope(kind, rest, x, theta)
                        else:
                            d = weight * slope(kind, table, i, x, old, part, theta)
                        kept[p - begin] = d
                        e = d
                        if weighted:
                            e *= row_weights[i]
                        g += loss_slope(loss, pred[i], y[i]) * e
                        h += e * d
                elif kind == ANOVA:
                    for p in range(begin, end):
                        i, x = ids[p], data[p]
                        b = 1.0
                        for t in range(width):
                            b = table[i, t] - old * x * b
                        d = weight * x * b
                        kept[p - begin] = d
                        e = d
                        if weighted:
                            e *= row_weights[i]
                        g += loss_slope(loss, pred[i], y[i]) * e
                        h += e * d
                else:
                    for p in range(begin, end):
                        i, x = ids[p], data[p]
                        if kind == ALL_SUBSETS and abs(1.0 + old * x) < NEAR_ZERO:
                            d = x * product_without(rows, P[part], s, i, j)
                        else:
                            d = slope(kind, table, i, x, old, part, theta)
                        d *= weight
                        kept[p - begin] = d
                        e = d
                        if weighted:
                            e *= row_weights[i]
                        g += loss_slope(loss, pred[i], y[i]) * e
                        h += e * d
                bound = curvature * h / n + beta
                if bound <= 1e-300:
                    continue
                strength = gamma / bound
                if coupled:
                    strength *= factor_without(penalty, kind, totals, sizes, j, others)
                new = prox_scalar(penalty, old - (g / n + beta * old) / bound, strength)
                change = new - old
                if change == 0.0:
                    continue
                if kind == ANOVA and width == 1:
                    for p in range(begin, end):
                        i = ids[p]
                        pred[i] += change * kept[p - begin]
                        table[i, 0] += change * data[p]
                else:
                    for p in range(begin, end):
                        i, x = ids[p], data[p]
                        pred[i] += change * kept[p - begin]
                        if careful and abs(old * x) > guard:
                            rest = rests[p - begin]
                            for t in range(width):
                                table[i, t] = rest[t] + new * x * (1.0 if t == 0 else rest[t - 1])
                        elif kind == ANOVA:
                            b = 1.0
                            for t in range(width):
                                held_t = table[i, t]
                                table[i, t] = held_t + change * x * b
                                b = held_t - old * x * b
                        elif kind == ALL_SUBSETS and abs(1.0 + old * x) < NEAR_ZERO:
                            rest_of = product_without(rows, P[part], s, i, j)
                            table[i, 0] = rest_of * (1.0 + new * x)
                        else:
                            move(kind, table, i, x, old, part, change)
                if coupled:
                    replace_size(penalty, kind, totals, sizes, j, others, abs(new))
                P[part, j, s] = new
                moved += abs(change)
    return moved
