"""The pairwise-kernel SVM, without the Gram matrix over pairs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from recsys._jit import jit
from recsys.errors import FitError
from recsys.links.base import LINKS, Array, Index, LinkPredictor, Parts, Task, check_symmetric
from recsys.utils.progress import report
from recsys.utils.resources import check_memory
from recsys.utils.validation import check_integer, check_real

MOST_PRODUCTS = 500  # of conjugate gradients, in one Newton step
HALVINGS = 30  # of a step


@LINKS.add("pair-svm")
@dataclass(eq=False, repr=False)
class PairSVM(LinkPredictor):
    """A squared-hinge SVM with the pairwise kernel ⟨a, a'⟩⟨b, b'⟩ (3.2).

    Pairs of one kind get the symmetrized kernel ½(⟨a, a'⟩⟨b, b'⟩ + ⟨a, b'⟩⟨b, a'⟩). Products with the
    kernel of the pairs use the two Gram matrices of the objects in O(pairs · objects); these must fit in
    memory.

    Parameters
    ----------
    C : float > 0
        Weight of the loss, summed over pairs, relative to ½‖w‖².
    symmetric : bool, optional
        By default where both ends are of one kind.
    max_iter : int ≥ 1
        Largest number of Newton steps; a ConvergenceWarning is raised if they do not suffice.
    tol : float > 0
        Relative residual of the linear system of a step.

    Attributes
    ----------
    dual_coef_ : (pairs,) float64
    intercept_ : float

    Notes
    -----
    Newton steps on the pairs within the margin (Chapelle 2007), halved until the objective falls.
    Source: Atarashi's thesis, 3.4.2.

    Examples
    --------
    >>> import numpy as np
    >>> A, pairs = np.eye(4), np.array([[0, 1], [1, 2], [0, 2], [0, 3], [1, 3], [2, 3]])
    >>> model = PairSVM(C=1.0).fit(A, None, pairs, [1, 1, 1, 0, 0, 0])
    >>> model.predict(A, None, pairs).shape
    (6,)
    """

    C: float = 1.0
    symmetric: bool | None = None
    max_iter: int = 50
    tol: float = 1e-4

    def check_parameters(self) -> None:
        """Refuse parameters that are out of range."""
        check_real("C", self.C, 0.0, open_low=True)
        check_real("tol", self.tol, 0.0, open_low=True)
        check_integer("max_iter", self.max_iter, 1)

    def _fit(self, task: Task) -> None:
        self.symmetric_ = check_symmetric(self.symmetric, task.A is task.B)
        used_a, left = np.unique(task.left, return_inverse=True)
        used_b, right = np.unique(task.right, return_inverse=True)
        if self.symmetric_:
            used_a = used_b = np.union1d(task.left, task.right)
            left, right = np.searchsorted(used_a, task.left), np.searchsorted(used_a, task.right)
        self.A_, self.B_, self.left_, self.right_ = task.A[used_a], task.B[used_b], left, right
        _check_grams(len(used_a), len(used_a), len(used_b), len(used_b))
        GA = np.asarray((self.A_ @ self.A_.T).todense())
        GB = GA if self.symmetric_ else np.asarray((self.B_ @ self.B_.T).todense())
        with threadpool_limits(1, "blas"):  # the same result on any number of threads
            self.dual_coef_ = self._solve(GA, GB, task.y)
        self.intercept_ = float(self.dual_coef_.sum())

    def _solve(self, GA: Array, GB: Array, y: Array) -> Array:
        """Minimize ½αᵀKα + C Σ max(0, 1 − y(Kα))², K the kernel of the pairs plus 1 for the bias."""
        alpha, scores = np.zeros(len(y)), np.zeros(len(y))
        ridge, value = 0.5 / self.C, float(len(y))

        def image(v: Array, rows: Any = slice(None)) -> Array:
            M = np.ascontiguousarray((self._weights(v).T @ GA.T).T)
            return np.asarray(picked(M, GB, self.left_[rows], self.right_[rows]) + v.sum())

        for step in range(self.max_iter):
            active = np.flatnonzero(y * scores < 1.0)

            def times(v: Array, step: int = step, active: Index = active) -> Array:
                report(f"Newton step {step + 1}", step, self.max_iter)
                wide = np.zeros(len(y))
                wide[active] = v
                return image(wide, active) + ridge * v

            target = np.zeros(len(y))
            if len(active):
                system = LinearOperator((len(active),) * 2, matvec=times, dtype=np.float64)
                target[active] = cg(
                    system, y[active], x0=alpha[active], rtol=self.tol, maxiter=MOST_PRODUCTS
                )[0]
            ahead = image(target) - scores
            if not np.isfinite(ahead).all():
                raise FitError("the kernel of the pairs is too large: scale the features")
            size = 1.0
            for _ in range(HALVINGS):
                moved, reached = alpha + size * (target - alpha), scores + size * ahead
                hinge = np.maximum(0.0, 1.0 - y * reached)
                now = ridge * float(moved @ reached) + float(hinge @ hinge)
                if now < value:
                    break
                size /= 2.0
            same = np.array_equal(np.flatnonzero(y * reached < 1.0), active)
            if now < value:
                alpha, scores = moved, reached
            if (same and size == 1.0) or value - now <= 1e-3 * self.tol * value:
                return alpha
            value = now
        warnings.warn(
            f"max_iter={self.max_iter} Newton steps ended before the optimum: raise it, scale the "
            "features, or lower C",
            ConvergenceWarning,
            stacklevel=4,
        )
        return alpha

    def _score(self, A: sp.csr_matrix, B: sp.csr_matrix, left: Index, right: Index) -> Array:
        ends_a, left = np.unique(left, return_inverse=True)
        ends_b, right = np.unique(right, return_inverse=True)
        _check_grams(len(ends_a), self.A_.shape[0], len(ends_b), self.B_.shape[0])
        GA = np.asarray((A[ends_a] @ self.A_.T).todense())
        GB = np.asarray((B[ends_b] @ self.B_.T).todense())
        M = np.ascontiguousarray((self._weights(self.dual_coef_).T @ GA.T).T)
        return np.asarray(picked(M, GB, left, right) + self.intercept_)

    def _weights(self, v: Array) -> sp.csr_matrix:
        """Return dual coefficients by the pairs' objects, (left objects, right objects)."""
        W = sp.csr_matrix((v, (self.left_, self.right_)), shape=(self.A_.shape[0], self.B_.shape[0]))
        return 0.5 * (W + W.T) if self.symmetric_ else W

    def parts(self, a: sp.csr_matrix, b: sp.csr_matrix) -> Parts:
        """Return the parts of the score of two rows."""
        # the score is aᵀ(AᵀWB)b: of that matrix only what both rows hold is formed
        M = self.A_[:, a.indices].T @ (self._weights(self.dual_coef_) @ self.B_[:, b.indices])
        pairs = np.asarray(M.todense()) * np.outer(a.data, b.data)
        return Parts(float(self.intercept_), 0.0, 0.0, pairs)


def _check_grams(rows_a: int, columns_a: int, rows_b: int, columns_b: int) -> None:
    # a sparse product on its way to a dense one takes half as much again, one more is Wᵀ·GA
    check_memory(
        20 * rows_a * columns_a + 12 * rows_b * columns_b,
        f"the Gram matrices of {rows_a} × {columns_a} and {rows_b} × {columns_b} objects",
        "use PairNet or FactorizedBilinear, which need none, or fewer objects",
    )


@jit
def picked(L, R, left, right):
    """Return ⟨L[left], R[right]⟩ of each pair."""
    out = np.empty(len(left))
    for i in range(len(left)):
        out[i] = np.dot(L[left[i]], R[right[i]])
    return out
