"""Coordinate descent on rows that join objects, without ever walking the rows.

A row that is the concatenation of a left and a right object has A^m(a⊕b) = Σ_t A^t(a)·A^(m−t)(b), and so
on for more. With all kinds of objects but one held fixed, the loss' quadratic bound is a small quadratic
for each object of that kind, in its own A^1…A^m: `gather` brings the predictions up to date and sums it
over the object's rows, `sweep` descends on it feature by feature. An epoch of pairs costs
O(m²k(nz(A) + nz(B)) + m²kN) for N rows, which have far more non-zeros; for the squared loss the steps
are those of plain coordinate descent.

Source: Atarashi's thesis 3.3.4 and (3.20), (3.21), with the sums over an object's pairs taken out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recsys._jit import jit
from recsys.errors import InputError
from recsys.fm.block_tables import NOTHING, BlockTables
from recsys.fm.blocks import Block, joined_blocks
from recsys.fm.penalties.chain import (
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
from recsys.multilinear.pairs import careful_slopes
from recsys.utils.threads import threads_for

__all__ = ["RelationalDescent"]


@SOLVERS.add("relational")
class RelationalDescent(Descent):
    """Coordinate descent on rows composed of objects that repeat, such as (user, item, month)."""

    required = ("prox_scalar",)
    kinds = (ANOVA,)
    place = 3

    def _prepare(self) -> None:
        """Find the objects, and put the rows in the order of the first ones."""
        objective = self.objective
        X = objective.X
        blocks = joined_blocks(X)
        if not blocks:
            raise InputError(
                "solver 'relational' needs rows made of parts that repeat, such as users and items: "
                "no columns part these rows so; use solver='cd'"
            )
        self.order = np.argsort(blocks[0].of, kind="stable")
        counts = objective.counts()
        visited = visiting_order(counts, X.shape[0])
        # Those that no row has go first, together: each change of block is a pass over all rows.
        used = counts[visited] > 0
        self.passes = BlockPasses(
            [block.reordered(self.order) for block in blocks],
            np.concatenate([visited[~used], visited[used]]),
            self.options.threads,
        )
        self.target = objective.target_of(
            objective.y[self.order], objective.model.z[0] + self.passes.predict(self._terms()),
            self.order,
        )  # fmt: skip
        self._tell()

    def epoch(self) -> float:
        """Visit the bias and every term once, the linear one first."""
        objective = self.objective
        linear = Shrinkage(objective.regularization.alpha, L2, self.shrinkage.gamma)
        moved = self._bias(self.target)
        for order, P, weights in self._terms():
            shrinkage = linear if order == 1 else self.shrinkage
            moved += self.passes.epoch(order, P, weights, self.target, shrinkage)
        moved = self._finished(moved)
        self._tell()
        return moved

    def _terms(self) -> list[tuple[int, NDArray[np.float64], NDArray[np.float64]]]:
        model = self.objective.model
        terms = [
            (form.order, P[0], weights)
            for form, P, weights in zip(model.forms, model.tables(), model.weights, strict=True)
        ]
        if model.linear:
            terms.insert(0, (1, model.w[:, None], np.ones(1)))
        return terms

    def _tell(self) -> None:
        """Bring the predictions to the objective, in its own order of the rows."""
        pred = np.empty(len(self.order))
        pred[self.order] = self.target.pred
        self.objective.pred = pred

    def _refresh(self) -> None:
        self.target.pred[:] = self.objective.model.z[0] + self.passes.predict(self._terms())


class BlockPasses:
    """Passes over rows of any number of parts, whose columns are visited in the order of `visited`."""

    def __init__(
        self, blocks: Sequence[Block], visited: NDArray[np.int64], threads: int | None,
    ) -> None:  # fmt: skip
        self.objects, self.threads = BlockTables(blocks), threads
        self.features = np.concatenate([block.features for block in blocks])
        self.starts = np.cumsum([0] + [len(block.features) for block in blocks])
        place = np.empty(len(self.features), dtype=np.int64)
        place[self.features] = np.arange(len(self.features))
        at = place[visited]
        of = np.searchsorted(self.starts, at, side="right") - 1
        parts = np.split(np.arange(len(at)), np.flatnonzero(np.diff(of)) + 1)
        self.runs = [(int(of[part[0]]), at[part] - self.starts[of[part[0]]]) for part in parts]

    def epoch(
        self, order: int, P: NDArray[np.float64], weights: NDArray[np.float64], target: Target,
        shrinkage: Shrinkage,
    ) -> float:  # fmt: skip
        """Update a term's parameters once, in place; returns the sum of absolute changes."""
        moved, m, n = 0.0, order, len(target.y)
        objects = self.objects
        threads = threads_for(2.0 * n * (m + m * m), self.threads)
        state, pending, of_pending = objects.state(m, target.y, target.pred), NOTHING, 1.0
        for s in range(P.shape[1]):
            weight = float(weights[s])
            p = P[self.features, s]
            component = objects.component(m, P[:, s])
            sizes = np.abs(p)
            totals = totals_of(shrinkage.penalty, ANOVA, sizes, m)
            for b, features in self.runs:
                block = objects.blocks[b]
                sums = objects.gather(
                    b, component, pending, of_pending, state, target.loss, threads, target.row_weights,
                )  # fmt: skip
                if weight != 1.0:
                    sums[:, :m] *= weight
                    sums[:, m:] *= weight * weight
                mine = component.table[objects.slices[b]]
                before = mine.copy()
                moved += sweep(
                    features, Compressed.of(block.columns), Compressed.of(block.rows),
                    p[self.starts[b] : self.starts[b + 1]], mine, sums, n, target.curvature,
                    shrinkage, totals, sizes, int(self.starts[b]), (0,) * m,
                )  # fmt: skip
                pending, of_pending = objects.changed(b, component, before), weight
            P[self.features, s] = p
        objects.apply(pending, of_pending, state, threads)
        target.pred[:] = state[:, 0]
        return moved

    def predict(
        self, terms: list[tuple[int, NDArray[np.float64], NDArray[np.float64]]]
    ) -> NDArray[np.float64]:
        """Return the sum of the terms, (rows,)."""
        out = np.zeros(len(self.objects.of))
        for order, P, weights in terms:
            for s, weight in enumerate(weights.tolist()):
                part = out if weight == 1.0 else np.zeros_like(out)
                self.objects.add(self.objects.component(order, P[:, s]), part)
                if weight != 1.0:
                    out += weight * part
        return out


# ---- kernels


@jit
def sweep(
    order, columns, rows, p, table, sums, n, curvature, shrinkage, totals, sizes, offset, orders
):  # fmt: skip
    """Descend feature by feature on the objects' quadratics; p, table and sums change in place.

    `sizes` are the |p| of both sides, this one's from `offset`; `totals` their symmetric polynomials.
    `orders` is a tuple of m entries: its length is known when this is compiled, once for each m, which
    makes the loops over orders straight code.
    """
    beta, penalty, gamma = shrinkage
    col_ptr, ids, data = columns
    m = len(orders)
    guard = guard_of(m)
    moved = 0.0
    coupled = has_totals(penalty)
    b, rest = np.empty(m), np.empty(len(totals) + 1)
    for j in order:
        old = p[j]
        g = h = 0.0
        careful = False
        if m > 2:
            for q in range(col_ptr[j], col_ptr[j + 1]):
                careful = careful or abs(old * data[q]) > guard
        for q in range(col_ptr[j], col_ptr[j + 1]):
            u, x = ids[q], data[q]
            if m == 2:
                b1 = x * (table[u, 1] - old * x)
                g += x * sums[u, 0] + b1 * sums[u, 1]
                h += x * (x * sums[u, 2] + 2.0 * b1 * sums[u, 4]) + b1 * b1 * sums[u, 5]
            else:
                if careful and abs(old * x) > guard:
                    careful_slopes(x, u, rows, p, j, b)
                else:
                    b[0] = x
                    for t in range(1, m):
                        b[t] = x * (table[u, t] - old * b[t - 1])
                for t in range(m):
                    g += b[t] * sums[u, t]
                    inner = 0.0
                    for w in range(t):
                        inner += sums[u, m + t * m + w] * b[w]
                    h += b[t] * (2.0 * inner + sums[u, m + t * m + t] * b[t])
        bound = curvature * h / n + beta
        if bound <= 1e-300:
            continue
        strength = gamma / bound
        if coupled:
            strength *= factor_without(penalty, ANOVA, totals, sizes, offset + j, rest)
        new = prox_scalar(penalty, old - (g / n + beta * old) / bound, strength)
        change = new - old
        if change == 0.0:
            continue
        moved += abs(change)
        if coupled:
            replace_size(penalty, ANOVA, totals, sizes, offset + j, rest, abs(new))
        for q in range(col_ptr[j], col_ptr[j + 1]):
            u, x = ids[q], data[q]
            if m == 2:
                b1 = x * (table[u, 1] - old * x)
                sums[u, 0] += curvature * change * (sums[u, 2] * x + sums[u, 4] * b1)
                sums[u, 1] += curvature * change * (sums[u, 4] * x + sums[u, 5] * b1)
                table[u, 1] += change * x
                table[u, 2] += change * b1
            else:
                if careful and abs(old * x) > guard:
                    careful_slopes(x, u, rows, p, j, b)
                else:
                    b[0] = x
                    for t in range(1, m):
                        b[t] = x * (table[u, t] - old * b[t - 1])
                for t in range(m):
                    total = 0.0
                    for w in range(t + 1):
                        total += sums[u, m + t * m + w] * b[w]
                    for w in range(t + 1, m):
                        total += sums[u, m + w * m + t] * b[w]
                    sums[u, t] += curvature * change * total
                    table[u, t + 1] += change * b[t]
        p[j] = new
    return moved
