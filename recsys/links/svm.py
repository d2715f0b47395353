"""The pairwise-kernel SVM, without the Gram matrix over pairs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from recsys.links._files import taken, taken_csr, taken_flag, taken_number
from recsys.links.base import LINKS, Array, Learned, LinkPredictor, Parts, Task, check_symmetric
from recsys.links.pair_newton import PairKernel, minimize_squared_hinge, picked
from recsys.utils.memory import check_fits
from recsys.utils.validation import check_integer, check_real

__all__ = ["PairSVM"]


@LINKS.add("pair-svm")
@dataclass(eq=False, repr=False)
class PairSVM(LinkPredictor):
    """A squared-hinge SVM with the pairwise kernel ⟨a, a'⟩⟨b, b'⟩ (3.2).

    Pairs of one kind get the symmetrised kernel ½(⟨a, a'⟩⟨b, b'⟩ + ⟨a, b'⟩⟨b, a'⟩). Products with the
    kernel of the pairs come from the two Gram matrices of the objects in O(pairs · objects): they and as
    much again must fit the memory, and what does not is refused with an InputError. To fit at most 4,000
    pairs their kernel matrix is formed once, where that takes less time, and fits.

    Parameters
    ----------
    C : float > 0
        Weight of the loss, a sum over pairs, against ½‖w‖²; times a pair's `sample_weight`.
    symmetric : bool, optional
        By default where both ends are of one kind.
    max_iter : int ≥ 1
        Newton steps. A fit that ends before the optimum comes with a ConvergenceWarning.
    tol : float > 0
        Of the objective, relative: how far above the optimum it may end.

    Attributes
    ----------
    dual_coef_ : (pairs,) float64
    intercept_ : float

    Notes
    -----
    Newton steps on the active pairs (Chapelle 2007), with a line search (Keerthi & DeCoste 2005): see
    `recsys.links.pair_newton`. Source: Atarashi's thesis, 3.4.2.

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

    takes_weights: ClassVar[bool] = True

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
        self.A_, self.B_, self.pairs_ = task.A[used_a], task.B[used_b], (left, right)
        _check_grams(len(used_a), len(used_a), len(used_b), len(used_b))
        GA = np.asarray((self.A_ @ self.A_.T).todense())
        GB = GA if self.symmetric_ else np.asarray((self.B_ @ self.B_.T).todense())
        kernel = PairKernel(GA, GB, left, right, self.symmetric_)
        weights = np.ones(len(task.y)) if task.weights is None else task.weights
        found = minimize_squared_hinge(kernel, task.y, float(self.C), self.max_iter, self.tol, weights)
        self.dual_coef_, self.intercept_ = found.alpha, float(found.alpha.sum())
        if found.ended != "optimum":
            message = {
                "max_iter": f"max_iter={self.max_iter} Newton steps ended before the optimum: raise it",
                "unsolved": "the linear systems are too ill-conditioned for tol: scale the features",
            }
            warnings.warn(f"{message[found.ended]}, or lower C", ConvergenceWarning, stacklevel=3)

    def _score(
        self, A: sp.csr_matrix, B: sp.csr_matrix, left: NDArray[np.int64], right: NDArray[np.int64]
    ) -> Array:
        ends_a, left = np.unique(left, return_inverse=True)
        ends_b, right = np.unique(right, return_inverse=True)
        _check_grams(len(ends_a), self.A_.shape[0], len(ends_b), self.B_.shape[0])
        GA = np.asarray((A[ends_a] @ self.A_.T).todense())
        GB = np.asarray((B[ends_b] @ self.B_.T).todense())
        W = self._weights()
        return picked(np.ascontiguousarray((W.T @ GA.T).T), GB, left, right) + self.intercept_

    def _weights(self) -> sp.csr_matrix:
        """Return the dual coefficients, (left objects, right objects)."""
        W = sp.csr_matrix((self.dual_coef_, self.pairs_), shape=(self.A_.shape[0], self.B_.shape[0]))
        return 0.5 * (W + W.T) if self.symmetric_ else W

    def _parts(self, a: sp.csr_matrix, b: sp.csr_matrix) -> Parts:
        # the score is aᵀ(AᵀWB)b: of that matrix only what both rows hold is formed
        rows, columns = a.indices.astype(np.int64), b.indices.astype(np.int64)
        M = self.A_[:, rows].T @ (self._weights() @ self.B_[:, columns])
        pairs = np.asarray(M.todense()) * np.outer(a.data, b.data)
        return Parts(float(self.intercept_), 0.0, 0.0, rows, columns, pairs)

    def _learned(self) -> Learned:
        scalars: dict[str, Any] = {
            "intercept_": self.intercept_,
            "symmetric_": bool(self.symmetric_),
        }
        arrays = {
            "dual_coef_": self.dual_coef_,
            **{f"pairs_.{k}": ends.astype(np.int64) for k, ends in enumerate(self.pairs_)},
        }
        for name, X in (("A_", self.A_), ("B_", self.B_))[: 1 if self.symmetric_ else 2]:
            scalars[f"{name}.shape"] = list(X.shape)
            arrays |= {f"{name}.data": X.data, f"{name}.indices": X.indices, f"{name}.indptr": X.indptr}
        return Learned(scalars, arrays)

    def _restore(self, learned: Learned) -> None:
        self.intercept_ = taken_number(learned, "intercept_")
        self.symmetric_ = taken_flag(learned, "symmetric_")
        self.A_ = taken_csr(learned, "A_", self.n_features_[0])
        if self.symmetric_ and len(set(self.n_features_)) > 1:
            raise ValueError("symmetric_ needs the same features at both ends")
        self.B_ = self.A_ if self.symmetric_ else taken_csr(learned, "B_", self.n_features_[1])
        pairs = learned.arrays["dual_coef_"].shape[:1]
        self.dual_coef_ = taken(learned, "dual_coef_", pairs)
        ends = [taken(learned, f"pairs_.{k}", pairs, np.int64) for k in (0, 1)]
        for end, X in zip(ends, (self.A_, self.B_), strict=True):
            if len(end) == 0 or end.min() < 0 or end.max() >= X.shape[0]:
                raise ValueError("pairs_ point to no rows of A_ and B_")
        self.pairs_ = (ends[0], ends[1])


def _check_grams(rows_a: int, columns_a: int, rows_b: int, columns_b: int) -> None:
    # a sparse product on its way to a dense one takes half as much again, one more is Wᵀ·GA
    check_fits(
        2.5 * rows_a * columns_a + 1.5 * rows_b * columns_b,
        f"the Gram matrices of {rows_a} × {columns_a} and {rows_b} × {columns_b} objects",
        "use PairNet or FactorizedBilinear, which need none, or fewer objects",
    )
