"""Gibbs sampling of factorization machines: every parameter is drawn given all others.

A prediction is linear in each parameter, so with normal priors and normal noise each has a normal
distribution given the rest. Over the rows of one object that distribution's numbers are small sums,
gathered once for all features of the object. What the features share, their means and precisions, is
drawn as well: nothing is tuned.

Source: Freudenthaler, Schmidt-Thieme, Rendle, Bayesian Factorization Machines (2011), over the blocks of
Rendle (2013), for any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp

from recsys._jit import jit
from recsys.fm.block_tables import NOTHING, BlockTables
from recsys.fm.blocks import Block
from recsys.multilinear.arrays import ALIKE, Compressed
from recsys.multilinear.forms import guard_of
from recsys.multilinear.losses import LOSSES
from recsys.multilinear.pairs import careful_slopes
from recsys.utils.threads import threads_for

__all__ = ["Draw", "Sampler"]

# Of the normal-gamma prior over each group's mean and precision, and of the noise's: libFM's.
SHAPE, RATE, PRIOR_ROWS = 1.0, 1.0, 1.0
REFRESHED = 10  # draws between predictions from the parameters


@dataclass(frozen=True)
class Draw:
    """One draw from the posterior: the bias, w, then P of each order, and the precision of the noise."""

    z: NDArray[np.float64]
    precision: float


@dataclass
class Sampler:
    """A chain over the parameters of a factorization machine.

    Parameters
    ----------
    blocks : sequence of Block
    y : (rows,) float64
        For classes, which have probit regression, ±1.
    orders : sequence of int
        Of the terms that have a P each, ascending.
    init_scale : float
        Standard deviation of the first P.
    row_weights : (rows,) float64, optional
        Of numbers: the noise of a row has the precision times its weight, and a row counts as so many.
    """

    blocks: Sequence[Block]
    y: NDArray[np.float64]
    orders: Sequence[int]
    components: int
    features: int
    classes: bool
    linear: bool
    intercept: bool
    init_scale: float
    rng: np.random.Generator
    threads: int | None = None
    row_weights: NDArray[np.float64] | None = None
    bias: float = field(init=False, default=0.0)
    precision: float = field(init=False, default=1.0)

    def __post_init__(self) -> None:
        """Draw the first P; the first w is 0."""
        self.w = np.zeros((self.features, 1))
        shape = (self.features, self.components)
        self.tables = [self.init_scale * self.rng.standard_normal(shape) for _ in self.orders]
        self._objects = BlockTables(self.blocks)
        self._draws = 0
        self.error = self.y - self.predictions()

    def terms(self) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Yield each order with its parameters, (features, components)."""
        if self.linear:
            yield 1, self.w
        yield from zip(self.orders, self.tables, strict=True)

    def predictions(self) -> NDArray[np.float64]:
        """Return the prediction of each row, (rows,)."""
        out = np.full(len(self.y), self.bias)
        for m, P in self.terms():
            for s in range(P.shape[1]):
                self._objects.add(self._objects.component(m, P[:, s]), out)
        return out

    def draw(self) -> Draw:
        """Draw everything once, and return it."""
        if self.classes:
            self._draw_latent()
        else:
            n, squares = self._rows, self._sum_of(self.error, self.error)
            self.precision = self._gamma(0.5 * (SHAPE + n), 0.5 * (RATE + squares))
        if self.intercept:
            spread = 1.0 / np.sqrt(self.precision * self._rows)
            new = self.bias + self._mean_of(self.error) + spread * self.rng.standard_normal()
            self.error -= new - self.bias
            self.bias = new
        for m, P in self.terms():
            self._draw_term(m, P)
        self._draws += 1
        if self._draws % REFRESHED == 0:  # rounding does not pile up
            self.error = self._target - self.predictions()
        return Draw(self.vector(), self.precision)

    def loss(self) -> float:
        """Return the error on the rows: root mean squared; of classes the mean −log-likelihood."""
        if self.classes:
            return -float(log_ndtr(self.y * self.fitted).mean())
        return float(np.sqrt(self._mean_of(self.error**2)))

    @property
    def _rows(self) -> float:
        """How many rows there are, by their weights."""
        return float(len(self.y) if self.row_weights is None else self.row_weights.sum())

    def _sum_of(self, one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
        """Return the inner product of numbers of each row."""
        return float(one @ (other if self.row_weights is None else self.row_weights * other))

    def _mean_of(self, values: NDArray[np.float64]) -> float:
        """Return the mean of a number of each row."""
        return float(
            np.mean(values) if self.row_weights is None else self.row_weights @ values / self._rows
        )

    def vector(self) -> NDArray[np.float64]:
        """Return all parameters, as `recsys.fm.objective.Model` has them."""
        return np.concatenate([[self.bias], self.w[:, 0], *(P.ravel() for P in self.tables)])

    @property
    def fitted(self) -> NDArray[np.float64]:
        """The present prediction of each row."""
        return self._target - self.error

    @property
    def _target(self) -> NDArray[np.float64]:
        """The target of the regression: y, or the latent variable of the classes."""
        return getattr(self, "_latent", self.y)

    def _draw_latent(self) -> None:
        """Draw what lies behind the classes: normal around the prediction, on the class' side of 0."""
        predicted = self.fitted
        u = np.log(1.0 - self.rng.random(len(self.y)))
        # y·latent is above 0: y·prediction − Φ⁻¹(u·Φ(y·prediction)), in logarithms for the tails
        self.error = -self.y * ndtri_exp(u + log_ndtr(self.y * predicted))
        self._latent = predicted + self.error

    def _draw_term(self, m: int, P: NDArray[np.float64]) -> None:
        rows, objects = len(self.y), self._objects
        threads = threads_for(2.0 * rows * (m + m * m), self.threads)
        # the derivative of the squared loss of an error against 0 is the error
        loss = LOSSES.get("squared").code
        state, pending = objects.state(m, np.zeros(rows), self.error), NOTHING
        weights = ALIKE if self.row_weights is None else self.row_weights
        for s in range(P.shape[1]):
            component = objects.component(m, P[:, s])
            for b, block in enumerate(self.blocks):
                p = P[block.features, s]
                mine = component.table[objects.slices[b]]
                sums = objects.gather(
                    b, component, pending, -1.0, state, loss, threads, row_weights=weights
                )
                before = mine.copy()
                # From w = 0 the precision would follow w, and w it, over dozens of draws.
                settled = m > 1 or self._draws > 0
                mean, precision = self._draw_prior(p) if settled else (0.0, 1.0)
                _sweep(
                    Compressed.of(block.columns), Compressed.of(block.rows), p, mine, sums,
                    self.precision, mean, precision, self.rng.standard_normal(len(p)),
                )  # fmt: skip
                P[block.features, s] = p
                pending = objects.changed(b, component, before)
        objects.apply(pending, -1.0, state, threads)
        self.error = state[:, 0].copy()

    def _draw_prior(self, p: NDArray[np.float64]) -> tuple[float, float]:
        """Return a mean and a precision of what these parameters come from, drawn given them."""
        n, total = len(p), float(p.sum())
        weight = n + PRIOR_ROWS
        spread = float(p @ p) - total * total / weight
        precision = self._gamma(0.5 * (SHAPE + n), 0.5 * (RATE + spread))
        mean = total / weight + self.rng.standard_normal() / np.sqrt(weight * precision)
        return mean, precision

    def _gamma(self, shape: float, rate: float) -> float:
        return float(self.rng.gamma(shape, 1.0 / rate))


# ---- kernels


@jit
def _sweep(columns, rows, p, table, sums, precision, mean, prior, noise):
    """Draw each feature's parameter given the others; p, table and sums change in place."""
    m = table.shape[1] - 1
    b, guard = np.empty(m), guard_of(m)
    for j in range(len(p)):
        old = p[j]
        g = h = 0.0
        if m == 2:
            for q in range(columns.indptr[j], columns.indptr[j + 1]):
                u, x = columns.indices[q], columns.data[q]
                b1 = x * (table[u, 1] - old * x)
                g += x * sums[u, 0] + b1 * sums[u, 1]
                h += x * (x * sums[u, 2] + 2.0 * b1 * sums[u, 3]) + b1 * b1 * sums[u, 5]
            total = precision * h + prior
            new = (precision * (g + h * old) + prior * mean) / total + noise[j] / np.sqrt(total)
            change = new - old
            for q in range(columns.indptr[j], columns.indptr[j + 1]):
                u, x = columns.indices[q], columns.data[q]
                b1 = x * (table[u, 1] - old * x)
                sums[u, 0] -= change * (sums[u, 2] * x + sums[u, 3] * b1)
                sums[u, 1] -= change * (sums[u, 3] * x + sums[u, 5] * b1)
                table[u, 1] += change * x
                table[u, 2] += change * b1
            p[j] = new
            continue
        for q in range(columns.indptr[j], columns.indptr[j + 1]):
            u, x = columns.indices[q], columns.data[q]
            _slopes(rows, p, table, u, j, old, x, guard, b)
            for t in range(m):
                g += b[t] * sums[u, t]
                for r in range(m):
                    h += b[t] * b[r] * sums[u, m + t * m + r]
        total = precision * h + prior
        new = (precision * (g + h * old) + prior * mean) / total + noise[j] / np.sqrt(total)
        change = new - old
        for q in range(columns.indptr[j], columns.indptr[j + 1]):
            u, x = columns.indices[q], columns.data[q]
            _slopes(rows, p, table, u, j, old, x, guard, b)
            for t in range(m):
                total = 0.0
                for r in range(m):
                    total += b[r] * sums[u, m + t * m + r]
                sums[u, t] -= change * total
            for t in range(m):
                table[u, t + 1] += change * b[t]
        p[j] = new


@jit
def _slopes(rows, p, table, u, j, old, x, guard, b):
    """Fill b with ∂A^t/∂p_j, t = 1…m, of object u.

    By the short recursion, (3.20) of Atarashi's thesis; by the plain one where that cancels.
    """
    b[0] = x
    if abs(old * x) < guard or len(b) < 3:
        for t in range(1, len(b)):
            b[t] = x * (table[u, t] - old * b[t - 1])
        return
    careful_slopes(x, u, rows, p, j, b)
