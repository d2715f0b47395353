"""Factorization machines of any order, the all-subsets model, polynomial networks."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from recsys.errors import FitError, InputError
from recsys.fm.base import Classifier, FactorMachine, Regressor
from recsys.fm.objective import Model
from recsys.fm.selection import BLOCK
from recsys.fm.solvers.weights import check_theta
from recsys.multilinear.forms import ALL_SUBSETS, ANOVA, MIXED, POWER, PRODUCT, Form
from recsys.multilinear.symmetric import elementary_polynomials
from recsys.utils.validation import check_choice, check_integer

FITS = 30  # in which a strength is searched for
LOWER = ("explicit", "augment", "simplex", "inhomogeneous")


def with_ones(X: sp.csr_matrix, count: int) -> sp.csr_matrix:
    """Return the rows with `count` columns of ones appended."""
    return sp.csr_matrix(sp.hstack([X, np.ones((X.shape[0], count))])) if count else X


@dataclass(eq=False, repr=False)
class _FactorizationMachine(FactorMachine):
    """Base of both.

    Parameters
    ----------
    degree : int ≥ 2
        Highest order.
    fit_lower : "explicit", "augment", "simplex", "inhomogeneous" or None
        "explicit": lower orders have their own matrices. "augment": columns of ones add lower orders
        with shared factors. "simplex" and "inhomogeneous": all orders share a matrix, with weights θ
        that are learned on the simplex or fixed. None: no lower orders. β also regularizes the weights
        of columns of ones; otherwise the objective would have no minimum.
    theta : sequence of `degree` floats, optional
        θ_t of A^t(p, x), t = 1…degree, under "inhomogeneous"; 1 each by default.
    """

    degree: int = 2
    fit_lower: str | None = "explicit"
    theta: ArrayLike | None = None

    def _shares(self) -> bool:
        return self.fit_lower in ("simplex", "inhomogeneous")

    def _orders(self) -> list[int]:
        if self._shares():
            return list(range(1, self.degree + 1))
        return list(range(2, self.degree + 1)) if self.fit_lower == "explicit" else [self.degree]

    def _forms(self) -> list[Form]:
        if self._shares():
            return [Form(MIXED, self.degree, 1)]
        return [Form(ANOVA, order, 1) for order in self._orders()]

    def _check_parameters(self) -> None:
        check_integer("degree", self.degree, 2, 20)
        if self.fit_lower is not None:
            check_choice("fit_lower", self.fit_lower, LOWER)
        if self.theta is not None:
            check_theta(self.theta, self.degree, self.fit_lower)
        super()._check_parameters()

    def _zeros(self, features: int) -> Model:
        model = super()._zeros(features)
        if self.theta is not None:
            model.theta[0] = check_theta(self.theta, self.degree, self.fit_lower)
        return model

    def _dummies(self) -> int:
        """Columns of ones that let degree − 1 … 2 (and 1) share P with the highest order."""
        return 0 if self.fit_lower != "augment" else self.degree - (2 if self.fit_linear else 1)

    def _augmented(self, X: sp.csr_matrix) -> sp.csr_matrix:
        return with_ones(X, self._dummies())

    def _learns_theta(self) -> bool:
        return self.fit_lower == "simplex"

    def _table_of(self, order: int) -> tuple[Any, Any]:
        """Return the P that holds an order's interactions, (features, k), and its columns' weights."""
        check_is_fitted(self)
        ones = self._dummies()
        if order == 2 and ones:  # pairs of features, by what the columns of ones come to
            return self.P_[0][0][:-ones], self.order_weights()[1]
        if order not in self._orders():
            raise InputError(f"an interaction of this model has {self._orders()} distinct features")
        if self._shares():
            return self.P_[0][0], self.order_weights()[order - 1]
        place = self._orders().index(order)
        return self.P_[place][0], self.component_weights_[place]

    def order_weights(self) -> NDArray[np.float64]:
        """Return the weights of the orders of a shared P, (degree, components).

        Entry (t − 1, s) multiplies A^t(p_s, x): θ under "simplex" and "inhomogeneous"; under "augment"
        what the columns of ones come to, e_(degree − t) of their entries in p_s; times λ_s. Source:
        Blondel et al. 2016, (18)–(20) and 5.2.
        """
        check_is_fitted(self)
        m, ones = self.degree, self._dummies()
        if self._shares():
            return self.theta_[0, :m, None] * self.component_weights_[0]
        if ones == 0:
            raise InputError(
                "order_weights needs orders that share a P: fit_lower='augment', 'simplex' or "
                "'inhomogeneous'"
            )
        out = np.zeros((m, self.P_[0].shape[2]))
        for s, entries in enumerate(self.P_[0][0][-ones:].T):
            e = [1.0, *elementary_polynomials(entries.copy(), ones)]
            out[m - len(e) :, s] = e[::-1]
        return out * self.component_weights_[0]

    def interaction_weight(self, features: Sequence[int]) -> float:
        """Return the weight of the product of these distinct features: Σ_s λ_s Π_j p_js."""
        chosen = [int(j) for j in features]
        if len(set(chosen)) != len(chosen):
            raise InputError(f"an interaction has distinct features, not {chosen}")
        P, weights = self._table_of(len(chosen))
        return float((weights * np.prod(P[chosen], axis=0)).sum())

    @property
    def n_used_features_(self) -> int:
        """Number of features with a nonzero row in some P."""
        check_is_fitted(self)
        return int(np.any([(P != 0).any(axis=(0, 2)) for P in self.P_], axis=0).sum())

    @property
    def n_used_interactions_(self) -> int:
        """Number of pairs of features with nonzero weight."""
        P, weights = self._table_of(2)
        P = P[(P != 0).any(axis=1)]
        count = 0
        for start in range(0, len(P), BLOCK):
            W = (P[start : start + BLOCK] * weights) @ P.T
            count += int(np.count_nonzero(np.triu(W, start + 1)))
        return count

    def _selects(self) -> bool:
        if self.penalty == "l2":
            raise InputError("penalty 'l2' is not sparse: use a sparse penalty, such as 'ti'")
        return True

    @available_if(_selects)
    def sparsify(
        self,
        X: ArrayLike,
        y: ArrayLike,
        n_interactions: int,
        low: float | None = None,
        high: float | None = None,
    ) -> Any:
        """Fit again with the `gamma` that leaves n interactions, by bisection; returns self.

        Parameters
        ----------
        X, y : as in fit
        n_interactions : int ≥ 1
        low, high : int, optional
            Accepted range; by default 1% below to 3.5% above (Atarashi et al. 2021, 8.3).
        """
        check_integer("n_interactions", n_interactions, 1)
        least = n_interactions * 0.99 if low is None else low
        most = n_interactions * 1.035 if high is None else high
        gamma, weak, strong = self.gamma or 1e-6, 0.0, np.inf
        for _ in range(FITS):
            model = clone(self).set_params(gamma=gamma)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                count = model.fit(X, y).n_used_interactions_
            if least <= count <= most:
                self.__dict__.update(vars(model))
                return self
            last = gamma
            if count > most:
                weak = gamma
            else:
                strong = gamma
            if weak == 0.0 or strong == np.inf:
                gamma *= 10.0 if strong == np.inf else 0.1
            else:
                gamma = float(np.sqrt(weak * strong))
        raise FitError(
            f"no gamma of penalty {self.penalty!r} leaves {least:g} to {most:g} interactions: the last, "
            f"{last:.4g}, leaves {count}"
        )


@dataclass(eq=False, repr=False)
class FactorizationMachineRegressor(_FactorizationMachine, Regressor):
    """A factorization machine of any order for regression.

    ŷ = b + ⟨w, x⟩ + Σ_m Σ_s A^m(p_s, x), with one matrix per order ("explicit").

    Other parameters: as in `_FactorizationMachine` and `FactorMachine`.

    Notes
    -----
    Source: Blondel et al. 2016, (4) and 5.1, θ of (17); Atarashi et al. 2021 for the penalties.

    Examples
    --------
    >>> import numpy as np
    >>> from recsys.fm import interactions
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> y = X[:, 0] - 2.0 * X[:, 1] * X[:, 2]
    >>> model = FactorizationMachineRegressor(n_components=2, beta=1e-5, tol=1e-3).fit(X, y)
    >>> round(model.score(X, y), 2)
    1.0
    >>> interactions(model, 1)[0][0]
    (1, 2)
    """


@dataclass(eq=False, repr=False)
class FactorizationMachineClassifier(_FactorizationMachine, Classifier):
    """A factorization machine of any order for two classes.

    Other parameters: as in `_FactorizationMachine` and `FactorMachine`.
    """

    loss: str = "logistic"


class _Subsets:
    def _forms(self) -> list[Form]:
        return [Form(ALL_SUBSETS, 1, 1)]


@dataclass(eq=False, repr=False)
class AllSubsetsRegressor(_Subsets, Regressor):
    """The all-subsets model for regression: ŷ = b + ⟨w, x⟩ + Σ_s λ_s Π_j (1 + p_js x_j).

    Other parameters: as in `FactorMachine`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> y = (1.0 + X[:, 0]) * (1.0 - 0.5 * X[:, 1])
    >>> model = AllSubsetsRegressor(n_components=1, beta=1e-5, tol=1e-3).fit(X, y)
    >>> round(model.score(X, y), 2)
    1.0
    """

    fit_linear: bool = False


@dataclass(eq=False, repr=False)
class AllSubsetsClassifier(_Subsets, Classifier):
    """The all-subsets model for two classes.

    Other parameters: as in `FactorMachine`.
    """

    fit_linear: bool = False
    loss: str = "logistic"


@dataclass(eq=False, repr=False)
class _Network:
    """Base of both.

    Parameters
    ----------
    degree : int ≥ 2
        The power m.
    lifted : bool
        Whether each of the m factors has its own matrix; otherwise all share `P_[0][0]`. The lifted form
        is linear in each entry and includes the other form.
    fit_lower : "augment" or None
        "augment" adds lower orders by a column of ones: (γ_s + ⟨p_s, x⟩)^m, where γ is the last row of
        `P_[0][0]`. None allows only products of m features.
    """

    degree: int = 2
    lifted: bool = True
    fit_lower: str | None = None

    def _check_parameters(self) -> None:
        check_integer("degree", self.degree, 2, 20)
        if self.fit_lower is not None:
            check_choice("fit_lower", self.fit_lower, ("augment",))
        super()._check_parameters()  # type: ignore[misc]

    def _augmented(self, X: sp.csr_matrix) -> sp.csr_matrix:
        return with_ones(X, 0 if self.fit_lower is None else 1)

    def _forms(self) -> list[Form]:
        if self.lifted:
            return [Form(PRODUCT, self.degree, self.degree)]
        return [Form(POWER, self.degree, 1)]


@dataclass(eq=False, repr=False)
class PolynomialNetworkRegressor(_Network, Regressor):
    """A polynomial network for regression.

    ŷ = b + ⟨w, x⟩ + Σ_s Π_t ⟨u_ts, x⟩, t = 1…m, in its lifted form, or b + ⟨w, x⟩ + Σ_s ⟨p_s, x⟩^m.

    Other parameters: as in `_Network` and `FactorMachine`.

    Notes
    -----
    Source: Blondel et al. 2016, 6.1, has (γ_s + ⟨p_s, x⟩)^m (`lifted=False`, `fit_lower="augment"`); B.2
    has x̃ᵀUVᵀx̃ (`degree=2`, `fit_lower="augment"`).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> y = (X[:, 0] + X[:, 1]) * (X[:, 2] - X[:, 3])
    >>> model = PolynomialNetworkRegressor(n_components=2, beta=1e-5, tol=1e-3).fit(X, y)
    >>> round(model.score(X, y), 2)
    1.0
    """

    init_scale: float = 0.1


@dataclass(eq=False, repr=False)
class PolynomialNetworkClassifier(_Network, Classifier):
    """A polynomial network for two classes.

    Other parameters: as in `_Network` and `FactorMachine`.
    """

    loss: str = "logistic"
    init_scale: float = 0.1
