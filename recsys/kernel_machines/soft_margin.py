"""The soft-margin L2-SVM with a validated C, the yardstick of learned combinations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from recsys.errors import InputError
from recsys.kernel_machines.komd import KernelMachine
from recsys.kernels.expressiveness import margin_program
from recsys.utils.docstrings import documented
from recsys.utils.features import checked_rows
from recsys.utils.two_classes import two_classes
from recsys.utils.validation import check_integer, check_real

COSTS = tuple(2.0**k for k in range(-5, 11, 3))


@documented
@dataclass(eq=False, repr=False)
class SoftMarginSVM(KernelMachine):
    """The L2-SVM: the margin of K + I/C, with C the best of several by cross-validated AUC.

    Parameters
    ----------
    C : float > 0, or sequence of them
        Several are compared by stratified cross-validation on the training rows.
    folds : int ≥ 2
        No more than the rows of the smaller class; with a single row there the middle C is used.
    random_state : int

    Attributes
    ----------
    C_ : float
        The one used.
    validation_auc_ : dict of float to float
        Mean AUC of each C that was compared.
    margin_ : float
        The distance of the hulls under K + I/C.

    Notes
    -----
    Source: Polato's thesis, 9.3.1; μ(C) = 1/C.

    Examples
    --------
    >>> from recsys.datasets import load_table
    >>> table = load_table("monks-1")
    >>> from recsys.kernel_machines import SoftMarginSVM
    >>> model = SoftMarginSVM(C=8.0, kernel="mc", kernel_params={"degree": 2})
    >>> float(model.fit(table.X, table.y).score(table.X, table.y))
    1.0
    """

    C: float | Sequence[float] = COSTS
    kernel: Any = "linear"
    kernel_params: dict | None = None
    normalize: bool = True
    tol: float = 1e-6
    folds: int = 3
    random_state: int = 0

    def fit(self, X: ArrayLike, y: ArrayLike) -> SoftMarginSVM:
        """Choose C and fit on vectors, or on a square Gram matrix if the kernel is precomputed.

        Raises
        ------
        InputError
            If a parameter is out of range, or y does not hold two classes.
        """
        costs = [self.C] if np.isscalar(self.C) else list(self.C)  # type: ignore[arg-type]
        if not costs:
            raise InputError("C names no value")
        costs = sorted(check_real("C", c, 0.0, open_low=True) for c in costs)
        check_real("tol", self.tol, 0.0, open_low=True)
        check_integer("folds", self.folds, 2)
        X, y = checked_rows(self, X, y, dtype="numeric", accept_sparse="csr")
        self.classes_ = two_classes(y)
        codes = (y == self.classes_[1]).astype(np.int64)
        K = self._gram(X, None)
        self.validation_auc_ = self._validated(K, codes, costs) if len(costs) > 1 else {}
        scores = self.validation_auc_
        # Of equally good ones the smallest: the widest margin.
        self.C_ = max(costs, key=lambda c: (scores[c], -c)) if scores else costs[len(costs) // 2]
        self.dual_, self.intercept_, self.gap_ = _solve(K, codes, self.C_, self.tol)
        self.margin_ = float(np.sqrt(max(self.dual_ @ K @ self.dual_, 0.0)))
        self.X_fit_ = None if self._precomputed else X
        return self

    def _validated(
        self, K: NDArray[np.float64], codes: NDArray[np.int64], costs: Sequence[float]
    ) -> dict[float, float]:
        folds = min(self.folds, int(np.bincount(codes).min()))
        if folds < 2:
            return {}
        out = dict.fromkeys(costs, 0.0)
        for a, b in StratifiedKFold(folds, shuffle=True, random_state=self.random_state).split(
            codes, codes
        ):
            for cost in costs:
                dual, _, _ = _solve(K[np.ix_(a, a)], codes[a], cost, self.tol)
                out[cost] += float(roc_auc_score(codes[b], K[np.ix_(b, a)] @ dual)) / folds
        return out


def _solve(
    K: NDArray[np.float64], codes: NDArray[np.int64], cost: float, tol: float
) -> tuple[NDArray[np.float64], float, float]:
    solved = margin_program(K, codes, ridge=1.0 / cost, tol=tol)
    dual = np.where(codes == 1, 1.0, -1.0) * solved.weights
    image = K @ dual + dual / cost
    return dual, float(0.5 * (solved.weights @ image)), solved.gap
