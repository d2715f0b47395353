"""Factorization machines of any order, the all-subsets model, polynomial networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from recsys.checks import check_choice, check_integer
from recsys.errors import InputError
from recsys.fm import _cd
from recsys.fm._base import Classifier, Regressor, Term

__all__ = [
    "AllSubsetsClassifier", "AllSubsetsRegressor", "FactorizationMachineClassifier",
    "FactorizationMachineRegressor", "PolynomialNetworkClassifier", "PolynomialNetworkRegressor",
]  # fmt: skip


class _FM:
    degree: int
    n_components: int
    fit_lower: str | None
    fit_linear: bool
    P_: Any

    def _orders(self) -> list[int]:
        return list(range(2, self.degree + 1)) if self.fit_lower == "explicit" else [self.degree]

    def _check_parameters(self) -> None:
        check_integer("degree", self.degree, 2, 20)
        if self.fit_lower is not None:
            check_choice("fit_lower", self.fit_lower, ("explicit", "augment"))
        super()._check_parameters()  # type: ignore[misc]

    def _dummies(self) -> int:
        """Columns of ones that let degree − 1 … 2 (and 1) share P with the highest order."""
        return 0 if self.fit_lower != "augment" else self.degree - (2 if self.fit_linear else 1)

    def _augmented(self, X: sp.csr_matrix) -> sp.csr_matrix:
        if self._dummies() == 0:
            return X
        return sp.csr_matrix(sp.hstack([X, np.ones((X.shape[0], self._dummies()))], format="csr"))

    def _shapes(self, features: int) -> list[tuple[int, int, int]]:
        return [(1, features, self.n_components) for _ in self._orders()]

    def _terms(self, P: list[NDArray[np.float64]]) -> list[Term]:
        pairs = zip(P, self._orders(), strict=True)
        return [Term(_cd.ANOVA, order - 1, matrix) for matrix, order in pairs]

    def interaction_weight(self, features: Sequence[int]) -> float:
        """Return the weight of the product of these distinct features: Σ_s Π_j p_js.

        Raises
        ------
        InputError
            If the model has no term of that order.
        """
        check_is_fitted(self)
        chosen = [int(j) for j in features]
        if len(set(chosen)) != len(chosen) or len(chosen) not in self._orders():
            raise InputError(f"an interaction of this model has {self._orders()} distinct features")
        P = self.P_[self._orders().index(len(chosen))][0]
        return float(np.prod(P[chosen], axis=0).sum())

    def top_interactions(
        self, n: int = 10, names: Sequence[str] | None = None
    ) -> list[tuple[tuple[Any, Any], float]]:
        """Return the pairs of features with the largest weights in magnitude.

        Parameters
        ----------
        n : int ≥ 1
        names : sequence of str, optional
            Names instead of numbers.

        Raises
        ------
        InputError
            If the model has no term of second order.
        """
        check_is_fitted(self)
        check_integer("n", n, 1)
        if 2 not in self._orders():
            raise InputError("the model has no term of second order")
        P = self.P_[self._orders().index(2)][0]
        used = np.flatnonzero((P != 0).any(axis=1))
        best: list[tuple[float, int, int]] = []
        for start in range(0, len(used), 512):  # a block of rows at a time: never the whole matrix
            block = used[start : start + 512]
            W = P[block] @ P[used].T
            W[used[None, :] <= block[:, None]] = 0.0
            flat = np.argsort(-np.abs(W).ravel(), kind="stable")[:n]
            a, b = np.unravel_index(flat, W.shape)
            found = zip(W[a, b], block[a], used[b], strict=True)
            best += [(float(w), int(i), int(j)) for w, i, j in found if w != 0]
            best = sorted(best, key=lambda entry: (-abs(entry[0]), entry[1:]))[:n]
        label = (lambda j: j) if names is None else (lambda j: names[j])
        return [((label(i), label(j)), w) for w, i, j in best]

    @property
    def n_used_features_(self) -> int:
        """Features with a non-zero row in some P."""
        check_is_fitted(self)
        return int(np.any([(P != 0).any(axis=(0, 2)) for P in self.P_], axis=0).sum())


class FactorizationMachineRegressor(_FM, Regressor):
    """A factorization machine of any order for regression.

    ŷ = b + ⟨w, x⟩ + Σ_m Σ_s A^m(p_s, x), with a matrix of its own for each order ("explicit").

    Parameters
    ----------
    degree : int ≥ 2
        Highest order.
    fit_lower : "explicit", "augment" or None
        Lower orders with matrices of their own, shared through columns of ones, or left out.

    The other parameters and the attributes are those of `recsys.fm._base.FactorMachine`.

    Notes
    -----
    Source: Blondel et al. 2016, (4) and 5.1; Atarashi et al. 2021 for the penalties.
    """

    def __init__(
        self, degree: int = 2, n_components: int = 8, fit_lower: str | None = "explicit",
        loss: str = "squared", penalty: str = "l2", solver: str = "cd", alpha: float = 1e-4,
        beta: float = 1e-4, gamma: float = 1e-6, fit_linear: bool = True, fit_intercept: bool = True,
        max_iter: int = 100, tol: float = 1e-5, warm_start: bool = False, init_scale: float = 0.05,
        random_state: Any = 0, callback: Callable[[int, float], Any] | None = None,
    ) -> None:  # fmt: skip
        _store(self, locals())


class FactorizationMachineClassifier(_FM, Classifier):
    """A factorization machine of any order for two classes.

    Parameters
    ----------
    degree : int ≥ 2
        Highest order.
    fit_lower : "explicit", "augment" or None
        As for regression.

    The other parameters and the attributes are those of `recsys.fm._base.FactorMachine`.
    """

    def __init__(
        self, degree: int = 2, n_components: int = 8, fit_lower: str | None = "explicit",
        loss: str = "logistic", penalty: str = "l2", solver: str = "cd", alpha: float = 1e-4,
        beta: float = 1e-4, gamma: float = 1e-6, fit_linear: bool = True, fit_intercept: bool = True,
        max_iter: int = 100, tol: float = 1e-5, warm_start: bool = False, init_scale: float = 0.05,
        random_state: Any = 0, callback: Callable[[int, float], Any] | None = None,
    ) -> None:  # fmt: skip
        _store(self, locals())


class _Subsets:
    n_components: int

    def _check_parameters(self) -> None:
        super()._check_parameters()  # type: ignore[misc]
        _only_cd(self, "the all-subsets model")

    def _shapes(self, features: int) -> list[tuple[int, int, int]]:
        return [(1, features, self.n_components)]

    def _terms(self, P: list[NDArray[np.float64]]) -> list[Term]:
        return [Term(_cd.ALL_SUBSETS, 1, P[0])]


class AllSubsetsRegressor(_Subsets, Regressor):
    """The all-subsets model for regression: ŷ = b + ⟨w, x⟩ + Σ_s Π_j (1 + p_js x_j).

    Parameters and attributes are those of `recsys.fm._base.FactorMachine`; solver "cd" only.
    """

    def __init__(
        self, n_components: int = 8, loss: str = "squared", penalty: str = "l2", solver: str = "cd",
        alpha: float = 1e-4, beta: float = 1e-4, gamma: float = 1e-6, fit_linear: bool = False,
        fit_intercept: bool = True, max_iter: int = 100, tol: float = 1e-5, warm_start: bool = False,
        init_scale: float = 0.05, random_state: Any = 0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> None:  # fmt: skip
        _store(self, locals())


class AllSubsetsClassifier(_Subsets, Classifier):
    """The all-subsets model for two classes.

    Parameters and attributes are those of `recsys.fm._base.FactorMachine`; solver "cd" only.
    """

    def __init__(
        self, n_components: int = 8, loss: str = "logistic", penalty: str = "l2", solver: str = "cd",
        alpha: float = 1e-4, beta: float = 1e-4, gamma: float = 1e-6, fit_linear: bool = False,
        fit_intercept: bool = True, max_iter: int = 100, tol: float = 1e-5, warm_start: bool = False,
        init_scale: float = 0.05, random_state: Any = 0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> None:  # fmt: skip
        _store(self, locals())


class _Network:
    degree: int
    n_components: int

    def _check_parameters(self) -> None:
        check_integer("degree", self.degree, 2, 20)
        super()._check_parameters()  # type: ignore[misc]
        _only_cd(self, "a polynomial network")

    def _shapes(self, features: int) -> list[tuple[int, int, int]]:
        return [(self.degree, features, self.n_components)]

    def _terms(self, P: list[NDArray[np.float64]]) -> list[Term]:
        return [Term(_cd.PRODUCT, self.degree, P[0])]


class PolynomialNetworkRegressor(_Network, Regressor):
    """A polynomial network for regression: ŷ = b + ⟨w, x⟩ + Σ_s Π_t ⟨u_ts, x⟩, in its lifted form.

    Parameters
    ----------
    degree : int ≥ 2
        Number of factors.

    The other parameters and the attributes are those of `recsys.fm._base.FactorMachine`; solver
    "cd" only.
    """

    def __init__(
        self, degree: int = 2, n_components: int = 8, loss: str = "squared", penalty: str = "l2",
        solver: str = "cd", alpha: float = 1e-4, beta: float = 1e-4, gamma: float = 1e-6,
        fit_linear: bool = True, fit_intercept: bool = True, max_iter: int = 100, tol: float = 1e-5,
        warm_start: bool = False, init_scale: float = 0.1, random_state: Any = 0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> None:  # fmt: skip
        _store(self, locals())


class PolynomialNetworkClassifier(_Network, Classifier):
    """A polynomial network for two classes.

    Parameters
    ----------
    degree : int ≥ 2
        Number of factors.

    The other parameters and the attributes are those of `recsys.fm._base.FactorMachine`; solver
    "cd" only.
    """

    def __init__(
        self, degree: int = 2, n_components: int = 8, loss: str = "logistic", penalty: str = "l2",
        solver: str = "cd", alpha: float = 1e-4, beta: float = 1e-4, gamma: float = 1e-6,
        fit_linear: bool = True, fit_intercept: bool = True, max_iter: int = 100, tol: float = 1e-5,
        warm_start: bool = False, init_scale: float = 0.1, random_state: Any = 0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> None:  # fmt: skip
        _store(self, locals())


def _store(model: Any, given: dict[str, Any]) -> None:
    for name, value in given.items():
        if name not in ("self", "__class__"):
            setattr(model, name, value)


def _only_cd(model: Any, what: str) -> None:
    if model.solver != "cd":
        raise InputError(f"{what} is fitted by solver='cd', not {model.solver!r}")
