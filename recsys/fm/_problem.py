"""A fit as the solvers see it: rows, one vector of parameters, the objective and its pieces."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import parallel
from recsys.fm._losses import CURVATURE, mean_loss, symmetric_polynomials
from recsys.fm._rows import (
    ALL_SUBSETS,
    ANOVA,
    CHUNKS,
    MIXED,
    full_gradient,
    full_gradient_alone,
    predict_rows,
    predict_rows_alone,
)
from recsys.fm._threads import threads_for
from recsys.optim import prox

Vector = NDArray[np.float64]
ROWS = 1024  # from which a gradient is summed in several parts


class Shape(NamedTuple):
    """What a term is: its kind, its order and the number of its tables."""

    kind: int
    order: int
    factors: int

    @property
    def width(self) -> int:
        """Length of the tables that `row_forward` fills."""
        if self.kind in (ANOVA, MIXED):
            return self.order + 1
        return 1 if self.kind == ALL_SUBSETS else self.factors


@dataclass
class Model:
    """Parameters as one vector: the bias, w (features,), then P (factors, features, k) of each term."""

    shapes: list[Shape]
    features: int
    k: int
    z: Vector
    theta: Vector
    weights: Vector
    linear: bool

    @classmethod
    def zeros(cls, shapes: list[Shape], features: int, k: int, linear: bool) -> Model:
        """Return a model of zeros, with θ = 1 and component weights of 1."""
        size = 1 + features + sum(s.factors for s in shapes) * features * k
        theta = np.ones((len(shapes), max(s.order for s in shapes)))
        return cls(shapes, features, k, np.zeros(size), theta, np.ones((len(shapes), k)), linear)

    @property
    def w(self) -> Vector:
        """The linear weights, a view."""
        return self.z[1 : 1 + self.features]

    def tables(self, z: Vector | None = None) -> list[Vector]:
        """Return P of each term, (factors, features, k), as views."""
        z = self.z if z is None else z
        return [
            z[at : at + s.factors * self.features * self.k].reshape(s.factors, self.features, self.k)
            for s, (*_, at) in zip(self.shapes, self.spec, strict=True)
        ]

    @property
    def spec(self) -> NDArray[np.int64]:
        """(kind, order, factors, offset) of each term."""
        rows, at = [], 1 + self.features
        for s in self.shapes:
            rows.append((s.kind, s.order, s.factors, at))
            at += s.factors * self.features * self.k
        return np.array(rows, dtype=np.int64).reshape(-1, 4)

    @property
    def width(self) -> int:
        """Widest table of a row."""
        return max(s.width for s in self.shapes)

    def work(self, X: sp.csr_matrix) -> float:
        """Return about how many multiply-adds a prediction of these rows takes."""
        return float(X.nnz) * self.k * sum(max(s.order, s.factors) for s in self.shapes)

    def predict(self, X: sp.csr_matrix, z: Vector | None = None, threads: int | None = None) -> Vector:
        """Return predictions, (rows,)."""
        out = np.empty(X.shape[0])
        arguments = (
            self.z if z is None else z, self.spec, self.theta, self.weights, self.features, X.indptr,
            X.indices, X.data, self.linear, self.width, self.k, out,
        )  # fmt: skip
        threads = threads_for(self.work(X), threads)
        if threads == 1:
            predict_rows_alone(*arguments)
        else:
            with parallel(threads):
                predict_rows(*arguments)
        return out


@dataclass
class Problem:
    """Minimise mean loss + ½α‖w‖² + ½β‖P‖² + γΩ(P) over a model's vector, in place."""

    model: Model
    X: sp.csr_matrix
    y: Vector
    loss: int
    pairwise: bool
    penalty: str
    alpha: float
    beta: float
    gamma: float
    intercept: bool
    rng: np.random.RandomState
    threads: int | None = None
    pred: Vector = field(init=False)
    pairs: tuple[NDArray[np.int64], NDArray[np.int64]] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Predict, and draw the pairs by which a pairwise objective is measured."""
        if self.pairwise:
            self.pairs = self.draw(self.X.shape[0])
        self.refresh()

    @property
    def curvature(self) -> float:
        """Bound on the loss' second derivative."""
        return float(CURVATURE[self.loss])

    def draw(self, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return rows of the positive class and rows of the negative one, drawn with replacement."""
        up, down = np.flatnonzero(self.y > 0), np.flatnonzero(self.y <= 0)
        return up[self.rng.randint(len(up), size=count)], down[self.rng.randint(len(down), size=count)]

    def refresh(self) -> None:
        """Compute the predictions afresh: rounding does not pile up."""
        self.pred = self.model.predict(self.X, threads=self.threads)

    def objective(self) -> float:
        """Return the objective at the current predictions and parameters."""
        return self.data_loss(self.pred) + self.ridge(self.model.z) + self.penalty_value(self.model.z)

    def trivial(self) -> float:
        """Return the objective of the model whose parameters are all 0: what no fit should end above."""
        k = self.model.k
        constant = float(k * sum(s.kind == ALL_SUBSETS for s in self.model.shapes))
        zeros = np.zeros_like(self.model.z)
        return self.data_loss(np.full(len(self.y), constant)) + self.penalty_value(zeros)

    def data_loss(self, pred: Vector) -> float:
        """Return the mean loss."""
        if self.pairs is None:
            return float(mean_loss(self.loss, pred, self.y))
        with np.errstate(invalid="ignore"):  # of what has diverged
            differences = pred[self.pairs[0]] - pred[self.pairs[1]]
        return float(mean_loss(self.loss, differences, np.ones(len(differences))))

    def ridge(self, z: Vector) -> float:
        """Return ½α‖w‖² + ½β‖P‖²."""
        d = 1 + self.model.features
        with np.errstate(over="ignore", invalid="ignore"):
            return self._halves(z, d)

    def _halves(self, z: Vector, d: int) -> float:
        return 0.5 * self.alpha * float(z[1:d] @ z[1:d]) + 0.5 * self.beta * float(z[d:] @ z[d:])

    def penalty_value(self, z: Vector) -> float:
        """Return γΩ(P)."""
        if self.penalty == "l2" or self.gamma == 0.0:
            return 0.0
        total = 0.0
        for shape, tables in zip(self.model.shapes, self.model.tables(z), strict=True):
            total += sum(omega(self.penalty, shape, P) for P in tables)
        return self.gamma * total

    # ---- the smooth part and the proximal operator, for solvers of whole vectors

    @property
    def _squares(self) -> float:
        """TI and CS are half a squared norm less half ‖P‖²: that half joins the smooth part."""
        return self.gamma if self.penalty in ("ti", "cs") else 0.0

    def smooth(self, z: Vector) -> tuple[float, Vector]:
        """Return the smooth part and its gradient at z; `pred` becomes that of z."""
        model = self.model
        # as many parts as the rows are worth, whatever the number of threads: the same bits on any
        parts = np.zeros((CHUNKS if self.X.shape[0] >= ROWS else 1, len(z)))
        arguments = (
            z, model.spec, model.theta, model.weights, model.features, self.X.indptr, self.X.indices,
            self.X.data, self.y, self.loss, model.linear, model.width, model.k, self.pred, parts,
        )  # fmt: skip
        threads = threads_for(3.0 * model.work(self.X), self.threads)
        if threads == 1:
            full_gradient_alone(*arguments)
        else:
            with parallel(threads):
                full_gradient(*arguments)
        gradient = parts[0] if len(parts) == 1 else parts.sum(axis=0)
        d = 1 + model.features
        if not self.intercept:
            gradient[0] = 0.0
        gradient[1:d] = gradient[1:d] + self.alpha * z[1:d] if model.linear else 0.0
        rest = self.beta - self._squares
        gradient[d:] += rest * z[d:]
        value = self.data_loss(self.pred) + self.ridge(z) - 0.5 * self._squares * float(z[d:] @ z[d:])
        return value, gradient

    def rough(self, z: Vector) -> float:
        """Return what `smooth` leaves of the objective."""
        d = 1 + self.model.features
        return self.penalty_value(z) + 0.5 * self._squares * float(z[d:] @ z[d:])

    def proximal(self, z: Vector, step: float) -> Vector:
        """Return the proximal operator of `rough` times step."""
        out = z.copy()
        strength = step * self.gamma
        if self.penalty == "l2" or strength == 0.0:
            return out
        for tables in self.model.tables(out):
            for P in tables:
                if self.penalty == "l1":
                    P[:] = prox.prox_l1(P, strength)
                elif self.penalty == "l21":
                    P[:] = prox.prox_l21(P, strength)
                elif self.penalty == "cs":
                    P[:] = prox.prox_squared_l21(P, 0.5 * strength)
                elif self.penalty == "ti":
                    for s in range(P.shape[1]):
                        P[:, s] = prox.prox_squared_l1(P[:, s], 0.5 * strength)
                else:
                    P[:] = inexact_omega(P, strength)
        return out


def omega(penalty: str, shape: Shape, P: Vector) -> float:
    """Return Ω of one table (features, k): of the term's own order where the penalty has one."""
    if penalty == "l2":
        return 0.0
    if penalty == "l1":
        return float(np.abs(P).sum())
    rows = np.sqrt((P * P).sum(axis=1))
    if penalty == "l21":
        return float(rows.sum())
    if penalty == "omega":
        W = P @ P.T
        return 0.5 * float(np.abs(W).sum() - np.abs(np.diag(W)).sum())
    order = shape.order if shape.kind in (ANOVA, MIXED) else 2
    columns = [np.abs(P[:, s]) for s in range(P.shape[1])] if penalty == "ti" else [rows]
    if shape.kind == ALL_SUBSETS:
        return float(sum(np.exp(np.log1p(column).sum()) for column in columns))
    return float(sum(symmetric_polynomials(column, order)[-1] for column in columns))


def omega_slope(P: Vector) -> Vector:
    """Return a sub-gradient of Ω_* = Σ_{i<j} |⟨p_i, p_j⟩|: (sign(PPᵀ) without its diagonal)·P."""
    signs = np.sign(P @ P.T)
    np.fill_diagonal(signs, 0.0)
    return signs @ P


def inexact_omega(Q: Vector, strength: float, steps: int = 10) -> Vector:
    """Return an approximate proximal operator of Ω_*: sub-gradient steps of 1/(t + 1) from Q (14)."""
    P, best = Q.copy(), Q

    def value(R: Vector) -> float:
        return 0.5 * float(((R - Q) ** 2).sum()) + strength * omega("omega", Shape(ANOVA, 2, 1), R)

    lowest = value(Q)
    for t in range(1, steps + 1):
        P = P - (P - Q + strength * omega_slope(P)) / (t + 1)
        now = value(P)
        if now < lowest:
            lowest, best = now, P.copy()
    return best
