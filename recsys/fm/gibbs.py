"""Gibbs sampling of factorization machines: every parameter is drawn given all others.

A prediction is linear in each parameter, so with normal priors and normal noise each has a normal
distribution given the rest: the step of a descent, with noise. What the features share, their means and
precisions, is drawn as well: nothing is tuned.

Source: Freudenthaler, Schmidt-Thieme, Rendle, Bayesian Factorization Machines (2011), on pairs of
objects, for any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp

from recsys.fm.penalties import L2
from recsys.fm.solvers.descent import Shrinkage
from recsys.fm.solvers.pairs import pair_epoch
from recsys.multilinear.arrays import Target
from recsys.multilinear.losses import LOSSES
from recsys.multilinear.pairs import Pairs, PairTerm, predict_pairs

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
    pairs : Pairs
    ends : pair of (columns,) int64
        The columns of either side; their parameters share a prior, of each order and component.
    y : (rows,) float64
        For classes, which have probit regression, ±1.
    orders : sequence of int
        Of the terms that have a P each, ascending.
    init_scale : float
        Standard deviation of the first P.
    row_weights : (rows,) float64, optional
        Of numbers: the noise of a row has the precision times its weight, and a row counts as so many.
    """

    pairs: Pairs
    ends: tuple[NDArray[np.int64], NDArray[np.int64]]
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
        self._draws = 0
        self.target = self.y
        self.fitted = self.predictions()

    def terms(self) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Yield each order with its parameters, (features, components)."""
        if self.linear:
            yield 1, self.w
        yield from zip(self.orders, self.tables, strict=True)

    def predictions(self) -> NDArray[np.float64]:
        """Return the prediction of each row, (rows,)."""
        left, right = self.pairs.sides
        terms = [self._term(m, P) for m, P in self.terms()]
        ids = self.pairs.left, self.pairs.right
        return self.bias + predict_pairs(terms, left.rows, right.rows, *ids, threads=self.threads)

    def _term(self, m: int, P: NDArray[np.float64]) -> PairTerm:
        left, right = self.ends
        return PairTerm(np.ones(m + 1), P[left], P[right], np.ones(P.shape[1]))

    def draw(self) -> Draw:
        """Draw everything once, and return it."""
        if self.classes:
            self._draw_latent()
        else:
            squares = self._rows * self._mean_of((self.target - self.fitted) ** 2)
            self.precision = self._gamma(0.5 * (SHAPE + self._rows), 0.5 * (RATE + squares))
        if self.intercept:
            spread = 1.0 / np.sqrt(self.precision * self._rows)
            change = self._mean_of(self.target - self.fitted) + spread * self.rng.standard_normal()
            self.fitted += change
            self.bias += change
        for m, P in self.terms():
            self._draw_term(m, P)
        self._draws += 1
        if self._draws % REFRESHED == 0:  # rounding does not pile up
            self.fitted = self.predictions()
        return Draw(self.vector(), self.precision)

    def loss(self) -> float:
        """Return the error on the rows: root mean squared; of classes the mean −log-likelihood."""
        if self.classes:
            return -float(log_ndtr(self.y * self.fitted).mean())
        return float(np.sqrt(self._mean_of((self.target - self.fitted) ** 2)))

    @property
    def _rows(self) -> float:
        """How many rows there are, by their weights."""
        return float(len(self.y) if self.row_weights is None else self.row_weights.sum())

    def _mean_of(self, values: NDArray[np.float64]) -> float:
        """Return the mean of a number of each row."""
        return float(
            np.mean(values) if self.row_weights is None else self.row_weights @ values / self._rows
        )

    def vector(self) -> NDArray[np.float64]:
        """Return all parameters, as `recsys.fm.objective.Model` has them."""
        return np.concatenate([[self.bias], self.w[:, 0], *(P.ravel() for P in self.tables)])

    def _draw_latent(self) -> None:
        """Draw what lies behind the classes: normal around the prediction, on the class' side of 0."""
        u = np.log(1.0 - self.rng.random(len(self.y)))
        # y·latent is above 0: y·prediction − Φ⁻¹(u·Φ(y·prediction)), in logarithms for the tails
        self.target = self.fitted - self.y * ndtri_exp(u + log_ndtr(self.y * self.fitted))

    def _draw_term(self, m: int, P: NDArray[np.float64]) -> None:
        loss = LOSSES.get("squared")
        weights = np.ones(len(self.y)) if self.row_weights is None else self.row_weights
        target = Target(self.target, self.fitted, loss.code, loss.curvature, weights)
        scale = self.precision * len(self.y)  # of the sum over rows beside a mean

        def prior(_: int, factors: NDArray[np.float64]) -> tuple[Any, Any, Any]:
            means, precisions, noise = [], [], []
            for p in factors:
                # From w = 0 the precision would follow w, and w it, over dozens of draws.
                mean, precision = self._draw_prior(p) if m > 1 or self._draws else (0.0, 1.0)
                means.append(mean)
                precisions.append(precision / scale)
                noise.append(self.rng.standard_normal(len(p)) / np.sqrt(scale))
            return np.array(precisions), np.array(means), np.array(noise)

        term = self._term(m, P)
        none = Shrinkage(0.0, L2, 0.0)
        pair_epoch(self.pairs, [term], target, [none], threads=self.threads, prior=prior)
        for end, values in zip(self.ends, (term.left, term.right), strict=True):
            P[end] = values

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
