"""Random Maclaurin features of any dot-product kernel.

A product of n projections of x on independent random vectors has ⟨x, y⟩ⁿ as its expected product with
that of y.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import gammaln

from recsys.errors import InputError
from recsys.random_features._bases import draw
from recsys.random_features.kernel_maps import _Map
from recsys.utils.validation import check_choice, check_integer, check_real

Coefficients = Callable[[int], float]
SERIES: dict[str, Coefficients] = {
    "exponential": lambda n: float(np.exp(-gammaln(n + 1.0))),
    "inverse": lambda n: 1.0,
}


@dataclass(eq=False, repr=False)
class DotProductMap(_Map):
    """Random Maclaurin features of any dot-product kernel Σₙ aₙ⟨x, y⟩ⁿ with aₙ ≥ 0.

    Component s draws an order n with probability pₙ = (1 − 1/r)·r⁻ⁿ. It is a product of n projections
    on Rademacher vectors, times √(aₙ/pₙ). Orders are not truncated.

    Parameters
    ----------
    coefficients : "exponential", "inverse", or callable
        aₙ: 1/n! for exp⟨x, y⟩; 1 for 1/(1 − ⟨x, y⟩), for rows of norm below 1; or a function of n.
    n_components : int ≥ 1
        D.
    ratio : float > 1
        r: a large value makes high orders rare with large factors.
    random_state : int, Generator or None

    Attributes
    ----------
    orders_ : (n_components,) int64
    scales_ : (n_components,) float64
        √(aₙ/pₙ).
    bases_ : list of (features, components of an order above t) float64
        The t-th vector of each component of order above t.

    Notes
    -----
    Source: Kar and Karnick 2012; Atarashi's thesis, 4.6.3 and Algorithm 11. For rows of norm at most R,
    the variance is finite if Σ aₙ²·(3rR⁴)ⁿ converges: always for the exponential, and for R below
    (3r)^−¼ for the inverse.

    Examples
    --------
    >>> X = np.array([[0.6, 0.0], [0.3, 0.4]])
    >>> Z = DotProductMap("exponential", n_components=200000).fit_transform(X)
    >>> (Z @ Z.T).round(1), np.exp(X @ X.T).round(1)
    (array([[1.4, 1.2],
           [1.2, 1.3]]), array([[1.4, 1.2],
           [1.2, 1.3]]))
    """

    coefficients: str | Coefficients = "exponential"
    n_components: int = 100
    ratio: float = 2.0
    random_state: Any = 0

    def _check_parameters(self) -> None:
        check_integer("n_components", self.n_components, 1)
        check_real("ratio", self.ratio, 1.0, open_low=True)
        if not callable(self.coefficients):
            check_choice("coefficients", self.coefficients, tuple(SERIES))

    def _draw(self, features: int, rng: np.random.Generator) -> None:
        r = float(self.ratio)
        of = self.coefficients if callable(self.coefficients) else SERIES[self.coefficients]
        self.orders_ = rng.geometric(1.0 - 1.0 / r, self.n_components) - 1
        a = np.array([of(n) for n in self.orders_.tolist()], dtype=np.float64)
        if not np.isfinite(a).all() or (a < 0).any():
            raise InputError("coefficients must be finite and non-negative")
        p = (1.0 - 1.0 / r) * r ** -self.orders_.astype(np.float64)
        self.scales_ = np.sqrt(a) / np.sqrt(p)  # below 1e308, where a/p may leave float64
        self.bases_ = [
            draw(rng, "rademacher", (features, int((self.orders_ > t).sum())))
            for t in range(int(self.orders_.max()))
        ]

    def _map(self, rows: sp.csr_matrix) -> NDArray[np.float64]:
        out = np.tile(self.scales_ / np.sqrt(self.n_components), (rows.shape[0], 1))
        for t, bases in enumerate(self.bases_):
            out[:, self.orders_ > t] *= rows @ bases
        return out
