"""The objective of a fit: parameters as one vector, loss, regularization and penalty."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import in_threads
from recsys.fm.penalties import Penalty
from recsys.multilinear.forms import Compressed, Form, Layout
from recsys.multilinear.losses import Loss, Target, mean_loss
from recsys.multilinear.rows import ROW_CHUNKS, full_gradient, predict_rows
from recsys.utils.resources import threads_for

Vector = NDArray[np.float64]
MANY_ROWS = 1024  # from which a gradient is summed in several parts
ROUNDING = 1e-9  # relative error of sums of weights, compared with those of repeated rows


@dataclass
class Model:
    """Parameters as one vector: the bias, w (features,), then P (factors, features, k) of each term."""

    forms: list[Form]
    features: int
    components: int
    z: Vector
    theta: Vector
    weights: Vector
    linear: bool

    @classmethod
    def zeros(cls, forms: list[Form], features: int, components: int, linear: bool) -> Model:
        """Return a model of zeros, with θ = 1 and component weights of 1."""
        size = 1 + features + sum(form.factors for form in forms) * features * components
        theta = np.ones((len(forms), max(form.order for form in forms)))
        weights = np.ones((len(forms), components))
        return cls(forms, features, components, np.zeros(size), theta, weights, linear)

    @property
    def w(self) -> Vector:
        """The linear weights, a view."""
        return self.z[1 : 1 + self.features]

    def tables(self, z: Vector | None = None) -> list[Vector]:
        """Return P of each term, (factors, features, components), as views."""
        z = self.z if z is None else z
        shapes = [(form.factors, self.features, self.components) for form in self.forms]
        return [
            z[at : at + np.prod(shape)].reshape(shape)
            for shape, at in zip(shapes, self._offsets(), strict=True)
        ]

    def _offsets(self) -> list[int]:
        sizes = [form.factors * self.features * self.components for form in self.forms]
        return [1 + self.features + sum(sizes[:n]) for n in range(len(sizes))]

    @property
    def layout(self) -> Layout:
        """The layout of the vector, as compiled passes take it."""
        spec = np.array(
            [(*form, at) for form, at in zip(self.forms, self._offsets(), strict=True)], dtype=np.int64
        ).reshape(-1, 4)
        width = max(form.width for form in self.forms)
        return Layout(spec, self.theta, self.weights, self.features, self.components, width, self.linear)

    def work(self, X: sp.csr_matrix) -> float:
        """Return about how many multiply-adds a prediction of these rows takes."""
        return float(X.nnz) * self.components * sum(max(form.order, form.factors) for form in self.forms)

    def predict(self, X: sp.csr_matrix, z: Vector | None = None, threads: int | None = None) -> Vector:
        """Return predictions, (rows,)."""
        out = np.empty(X.shape[0])
        arguments = (self.z if z is None else z, self.layout, Compressed.of(X), out)
        in_threads(threads_for(self.work(X), threads), predict_rows, *arguments)
        return out


@dataclass(frozen=True)
class Regularization:
    """½α‖w‖² + ½β‖P‖² + γΩ(P)."""

    penalty: Penalty
    alpha: float
    beta: float
    gamma: float


@dataclass
class Objective:
    """Mean loss + ½α‖w‖² + ½β‖P‖² + γΩ(P) over a model's vector, which solvers change in place."""

    model: Model
    X: sp.csr_matrix
    y: Vector
    loss: Loss
    regularization: Regularization
    intercept: bool  # whether the bias moves
    rng: np.random.RandomState  # draws the pairs that are compared, and the solvers' samples
    threads: int | None = None
    learns_theta: bool = False  # the weights of the orders, on the simplex
    learns_weights: bool = False  # the weights λ of the components, under ½β‖λ‖²
    row_weights: Any = None  # (rows,) positive with mean 1; pairs are drawn in proportion to them
    pred: Vector = field(init=False, repr=False)
    pairs: tuple[NDArray[np.int64], NDArray[np.int64]] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Predict, and draw the pairs by which a pairwise objective is measured."""
        self.alike = self.row_weights is None
        if self.alike:
            self.row_weights = np.ones(len(self.y))
        if self.loss.pairwise:
            self.pairs = self.draw(self.X.shape[0])
        self.refresh()

    @property
    def target(self) -> Target:
        """The targets of compiled passes, with the predictions, which they change in place."""
        return Target(self.y, self.pred, self.loss.code, self.loss.curvature, self.row_weights)

    def compared(self) -> Target:
        """Return the targets of the loss: of rows, or of the differences of pairs, drawn by weight."""
        if self.pairs is None:
            return self.target
        ones = np.ones(len(self.pairs[0]))
        with np.errstate(invalid="ignore"):  # of what has diverged
            difference = self.pred[self.pairs[0]] - self.pred[self.pairs[1]]
        return Target(ones, difference, self.loss.code, self.loss.curvature, ones)

    def draw(self, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return rows of the positive class and rows of the negative one, drawn with replacement."""
        drawn = []
        for some in (np.flatnonzero(self.y > 0), np.flatnonzero(self.y <= 0)):
            weights = self.row_weights[some]
            shares = None if self.alike else weights / weights.sum()
            drawn.append(self.rng.choice(some, size=count, p=shares))
        return drawn[0], drawn[1]

    def counts(self) -> NDArray[Any]:
        """Return the sum of the weights of the rows that have each column, (features,)."""
        weights = np.repeat(self.row_weights, np.diff(self.X.indptr))
        return (1.0 + ROUNDING) * np.bincount(self.X.indices, weights, minlength=self.X.shape[1])

    def shares_of(self, members: NDArray[np.bool_]) -> Vector:
        """Return the share of these rows that has each column, (features,), by their weights."""
        weights = self.row_weights[members]
        return np.asarray((self.X[members] != 0).T @ weights).ravel() / weights.sum()

    def refresh(self) -> None:
        """Compute the predictions afresh: rounding does not pile up."""
        self.pred = self.model.predict(self.X, threads=self.threads)

    def value(self) -> float:
        """Return the objective at the current predictions and parameters."""
        return mean_loss(self.compared()) + self.ridge(self.model.z) + self.penalty_value(self.model.z)

    def zero_loss(self) -> float:
        """Return the mean loss of predictions of 0."""
        target = self.compared()
        return mean_loss(target._replace(pred=np.zeros_like(target.y)))

    def ridge(self, z: Vector) -> float:
        """Return ½α‖w‖² + ½β‖P‖², and ½β‖λ‖² where λ is learned."""
        d, by = 1 + self.model.features, self.regularization
        with np.errstate(over="ignore", invalid="ignore"):
            squares = float(z[d:] @ z[d:])
            if self.learns_weights:
                squares += float((self.model.weights**2).sum())
            return 0.5 * by.alpha * float(z[1:d] @ z[1:d]) + 0.5 * by.beta * squares

    def penalty_value(self, z: Vector) -> float:
        """Return γΩ(P)."""
        by = self.regularization
        if by.gamma == 0.0:
            return 0.0
        tables = zip(self.model.forms, self.model.tables(z), strict=True)
        return by.gamma * sum(by.penalty.value(form, P) for form, whole in tables for P in whole)

    # ---- the smooth part and the proximal operator, for solvers of whole vectors

    @property
    def half_squares(self) -> float:
        """The γ of the ½‖P‖² by which the penalty is completed, and the smooth part diminished."""
        return self.regularization.gamma if self.regularization.penalty.half_squares else 0.0

    def smooth(self, z: Vector) -> tuple[float, Vector]:
        """Return the smooth part and its gradient at z; `pred` becomes that of z."""
        model, by = self.model, self.regularization
        # as many parts as the rows are worth, whatever the number of threads: the same bits on any
        parts = np.zeros((ROW_CHUNKS if self.X.shape[0] >= MANY_ROWS else 1, len(z)))
        threads = threads_for(3.0 * model.work(self.X), self.threads)
        in_threads(threads, full_gradient, z, model.layout, Compressed.of(self.X), self.target, parts)
        gradient = parts[0] if len(parts) == 1 else parts.sum(axis=0)
        d = 1 + model.features
        if not self.intercept:
            gradient[0] = 0.0
        gradient[1:d] = gradient[1:d] + by.alpha * z[1:d] if model.linear else 0.0
        gradient[d:] += (by.beta - self.half_squares) * z[d:]
        return self._smooth_part(z), gradient

    def smooth_value(self, z: Vector) -> float:
        """Return the smooth part at z; `pred` becomes that of z."""
        self.pred[:] = self.model.predict(self.X, z, self.threads)
        return self._smooth_part(z)

    def _smooth_part(self, z: Vector) -> float:
        d = 1 + self.model.features
        return (
            mean_loss(self.compared()) + self.ridge(z) - 0.5 * self.half_squares * float(z[d:] @ z[d:])
        )

    def rough(self, z: Vector) -> float:
        """Return the part of the objective that is not in `smooth`."""
        d = 1 + self.model.features
        return self.penalty_value(z) + 0.5 * self.half_squares * float(z[d:] @ z[d:])

    def proximal(self, z: Vector, step: float) -> Vector:
        """Return the proximal operator of `rough` times step, or the penalty's approximation of it."""
        out, by = z.copy(), self.regularization
        if by.gamma == 0.0:
            return out
        for form, tables in zip(self.model.forms, self.model.tables(out), strict=True):
            for P in tables:
                P[:] = by.penalty.prox(P, step * by.gamma, form)
        return out

    def subgradient(self, z: Vector) -> Vector:
        """Return a sub-gradient of the objective at z; `pred` becomes that of z."""
        _, gradient = self.smooth(z)
        by = self.regularization
        assert by.penalty.subgradient is not None
        slopes, whole = self.model.tables(gradient), self.model.tables(z)
        for form, slope, tables in zip(self.model.forms, slopes, whole, strict=True):
            for g, P in zip(slope, tables, strict=True):
                g += by.gamma * by.penalty.subgradient(P, form)
        return gradient
