"""Newton's method for a squared-hinge SVM on pairs, in the dual coefficients of the active pairs.

Source: Chapelle 2007, "Training a support vector machine in the primal", for the steps; Keerthi and
DeCoste 2005, "A modified finite Newton method for fast solution of large scale linear SVMs", for the
line search, without which the active sets may alternate for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg
from threadpoolctl import threadpool_limits

from recsys._jit import jit
from recsys.errors import FitError
from recsys.utils.memory import free_memory
from recsys.utils.progress import report

__all__ = ["PairKernel", "Solution", "minimize_squared_hinge", "picked"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

DIRECT = 4000  # pairs up to which the kernel's matrix may be formed and factored
ITERATIONS = 500  # of conjugate gradients, in one system
FEW = 20  # of them before a factor is worth its cost at all
WORTH = 60  # entries of products that take as long as one of a factor
CLOSER = 0.01  # of the systems' tolerance, where a fit ends too far from the optimum
CLOSEST = 1e-14


class PairKernel:
    """The kernel of pairs from both Gram matrices, symmetrised or not, plus 1 (the bias)."""

    def __init__(self, GA: Array, GB: Array, left: Index, right: Index, symmetric: bool) -> None:
        self.GA, self.GB, self.left, self.right, self.symmetric = GA, GB, left, right, symmetric
        self.matrix: Array | None = None

    def product(self, index: Index, v: Array, wanted: Index | None = None) -> Array:
        """Return the rows that are wanted (all by default) of the indexed columns times v."""
        left = self.left if wanted is None else self.left[wanted]
        right = self.right if wanted is None else self.right[wanted]
        if self.matrix is not None and wanted is None:
            return np.asarray(self.matrix[:, index] @ v) + v.sum()
        shape = (self.GA.shape[1], self.GB.shape[1])
        W = sp.csr_matrix((v, (self.left[index], self.right[index])), shape=shape)
        if self.symmetric:
            W = 0.5 * (W + W.T)
        return np.asarray(
            picked(np.ascontiguousarray((W.T @ self.GA.T).T), self.GB, left, right) + v.sum()
        )

    def form(self) -> bool:
        """Form the matrix if it is of few enough pairs to fit; return whether it is there."""
        n = len(self.left)
        if self.matrix is None and n <= DIRECT and 27 * n * n < free_memory():
            K = self.GA[np.ix_(self.left, self.left)] * self.GB[np.ix_(self.right, self.right)]
            if self.symmetric:
                K += self.GA[np.ix_(self.left, self.right)] * self.GB[np.ix_(self.right, self.left)]
                K *= 0.5
            self.matrix = K
        return self.matrix is not None

    def solve(
        self,
        index: Index,
        ridge: Array,
        y: Array,
        start: Array,
        tol: float,
        heard: Callable[[], None],
    ) -> Array:
        """Return about (K + 1 + diag(ridge))⁻¹y of the indexed pairs; `heard` is called at each product.

        Conjugate gradients from `start`; where they take longer than a factor would, that.
        """
        n = len(index)
        if n == 0:
            return np.zeros(0)

        def times(v: Array) -> Array:
            heard()
            v = np.asarray(v).ravel()
            return self.product(index, v, index) + ridge * v

        def iterated(most: int) -> tuple[Array, bool]:
            operator = LinearOperator((n, n), matvec=times, dtype=np.float64)
            found, left_over = cg(operator, y, x0=start, rtol=tol, maxiter=most)
            return np.asarray(found), left_over == 0

        if self.matrix is None:
            objects = len(self.GA) + len(self.GB)
            worth = max(FEW, n * n // (WORTH * objects)) if len(self.left) <= DIRECT else ITERATIONS
            found, solved = iterated(min(worth, ITERATIONS))
            if solved or not self.form():
                return found
        assert self.matrix is not None
        factored = self.matrix[np.ix_(index, index)]
        factored += 1.0
        factored[np.diag_indices(n)] += ridge
        try:
            factor = cho_factor(factored, lower=True, overwrite_a=True, check_finite=False)
            return np.asarray(cho_solve(factor, y, check_finite=False))
        except LinAlgError:  # of rounding
            return iterated(ITERATIONS)[0]


class Solution(NamedTuple):
    """The dual coefficients of a fit, 0 where a pair's score is above its margin, and how it ended.

    `ended` is "optimum", or what kept it from there: "max_iter" or "unsolved" (of a linear system).
    """

    alpha: Array
    ended: str


def minimize_squared_hinge(
    kernel: PairKernel, y: Array, C: float, max_iter: int, tol: float, weights: Array
) -> Solution:
    """Minimise ½αᵀKα + C Σ vᵢ max(0, 1 − yᵢ(Kα)ᵢ)² over α, v > 0 the pairs' weights and y of −1 and 1.

    It makes up to `max_iter` Newton steps, each with a line search. `tol` is how far the objective may
    end above the dual one, relatively; and where the residual of the linear systems begins, which is
    lowered as far as that needs. A kernel that overflows is a FitError.
    """
    n, ridge = len(y), 0.5 / C
    ridges = ridge / weights
    alpha, scores = np.zeros(n), np.zeros(n)
    value = _objective(ridge, alpha, scores, y, weights)  # over C
    if not (np.isfinite(kernel.GA).all() and np.isfinite(kernel.GB).all()):
        raise FitError(
            "inner products of the objects' features are too large for a float: scale the features"
        )
    residual = tol
    with threadpool_limits(1, "blas"):  # the same bits on any number of threads
        for step in range(max_iter):

            def heard(step: int = step) -> None:
                report(f"Newton step {step + 1}", step, max_iter)

            heard()
            active = y * scores < 1.0
            index = np.flatnonzero(active)
            target = np.zeros(n)
            with np.errstate(over="ignore", invalid="ignore"):
                target[index] = kernel.solve(
                    index, ridges[index], y[index], alpha[index], residual, heard
                )
                reached = kernel.product(index, target[index])
            if not np.isfinite(reached).all():
                raise FitError("the kernel of the pairs is too large for a float: scale the features")
            ended = bool(((y * reached < 1.0) == active).all())
            if ended and _gap(kernel, ridge, target, reached, y, weights) <= tol:
                return Solution(target, "optimum")
            way, ahead = target - alpha, reached - scores
            t = _lowest(ridge, alpha, way, scores, ahead, y, weights)
            now = _objective(ridge, alpha + t * way, scores + t * ahead, y, weights)
            lower = now < value
            if lower:
                alpha, scores, value = alpha + t * way, scores + t * ahead, now
            if ended or not lower:  # all that this residual gives
                if _gap(kernel, ridge, alpha, scores, y, weights) <= tol:
                    return Solution(alpha, "optimum")
                if residual <= CLOSEST or kernel.matrix is not None:
                    return Solution(alpha, "unsolved")
                residual = max(CLOSER * residual, CLOSEST)
        close = _gap(kernel, ridge, alpha, scores, y, weights) <= tol
    return Solution(alpha, "optimum" if close else "max_iter")


def _objective(ridge: float, alpha: Array, scores: Array, y: Array, weights: Array) -> float:
    losses = weights * np.maximum(0.0, 1.0 - y * scores) ** 2
    return ridge * float(alpha @ scores) + float(losses.sum())


def _gap(
    kernel: PairKernel, ridge: float, alpha: Array, scores: Array, y: Array, weights: Array
) -> float:
    """Return how far the objective is above that of the dual, as a share of it."""
    primal = _objective(ridge, alpha, scores, y, weights)
    feasible = np.where(y * alpha > 0.0, alpha, 0.0)
    if not np.array_equal(feasible, alpha):
        index = np.flatnonzero(feasible)
        scores = kernel.product(index, feasible[index])
    dual = ridge * (
        2.0 * float(y @ feasible)
        - float(feasible @ scores)
        - ridge * float(feasible @ (feasible / weights))
    )
    return (primal - dual) / primal if primal > 0.0 else 0.0


def _lowest(
    ridge: float,
    alpha: Array,
    way: Array,
    scores: Array,
    ahead: Array,
    y: Array,
    weights: Array,
) -> float:
    """Return how far along the way the objective, a convex one, is least."""

    def slope(t: float) -> float:
        missing = np.maximum(0.0, 1.0 - y * (scores + t * ahead))
        return ridge * float((alpha + t * way) @ ahead) - float((weights * y * ahead) @ missing)

    low, high = 0.0, 1.0
    while slope(high) < 0.0 and high < 2.0**10:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) < 0.0 else (low, middle)
    return 0.5 * (low + high)


# ---- kernels


@jit
def picked(L, R, left, right):
    """Return ⟨L[left], R[right]⟩ of each pair."""
    out = np.empty(len(left))
    for i in range(len(left)):
        out[i] = np.dot(L[left[i]], R[right[i]])
    return out
