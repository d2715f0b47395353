"""Random Maclaurin features of any dot-product kernel.

A product of n projections of x on independent random vectors has ⟨x, y⟩ⁿ as its expected product with
that of y.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import gammaln

from recsys.errors import InputError
from recsys.random_features._bases import draw
from recsys.random_features.kernel_maps import _Map
from recsys.utils.validation import check_integer, check_real

SERIES: dict[str, Callable[[int], float]] = {
    "exponential": lambda n: float(np.exp(-gammaln(n + 1.0))),
    "inverse": lambda n: 1.0,
}
Coefficients = str | Sequence[float] | Callable[[int], float]


@dataclass(eq=False, repr=False)
class DotProductMap(_Map):
    """Random Maclaurin features of any dot-product kernel Σₙ aₙ⟨x, y⟩ⁿ with aₙ ≥ 0.

    Component s draws an order n with probability pₙ = (1 − 1/r)·r⁻ⁿ (for a sequence, in proportion to
    r⁻ⁿ among orders with nonzero aₙ). It is a product of n projections on Rademacher vectors, times
    √(aₙ/pₙ). Orders of an infinite series are not truncated.

    Parameters
    ----------
    coefficients : "exponential", "inverse", sequence of float, or callable
        aₙ: 1/n! for exp⟨x, y⟩; 1 for 1/(1 − ⟨x, y⟩), for rows of norm below 1; the coefficients of a
        polynomial from a₀ on; or a function of n.
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
    Source: Kar and Karnick 2012; Atarashi's thesis, 4.6.3, where it is the subsampled map (Algorithm 11)
    of all multisets, one part an order. For rows of norm at most R, the variance is finite if Σ
    aₙ²·(3rR⁴)ⁿ converges: always for the exponential, and for R below (3r)^−¼ for the inverse.

    Examples
    --------
    >>> import numpy as np
    >>> from recsys.random_features import DotProductMap
    >>> X = np.array([[0.6, 0.0], [0.3, 0.4]])
    >>> Z = DotProductMap("exponential", n_components=200000).fit_transform(X)
    >>> (Z @ Z.T).round(1), np.exp(X @ X.T).round(1)
    (array([[1.4, 1.2],
           [1.2, 1.3]]), array([[1.4, 1.2],
           [1.2, 1.3]]))
    """

    coefficients: Coefficients = "exponential"
    n_components: int = 100
    ratio: float = 2.0
    random_state: Any = 0

    def _check_parameters(self) -> None:
        check_integer("n_components", self.n_components, 1)
        check_real("ratio", self.ratio, 1.0, open_low=True)
        given = self.coefficients
        if isinstance(given, str):
            if given not in SERIES:
                raise InputError(
                    f"coefficients must be {' or '.join(SERIES)}, numbers or a function, not {given!r}"
                )
        elif not callable(given):
            try:
                a = np.asarray(given, dtype=np.float64)
            except (TypeError, ValueError):
                raise InputError("coefficients must be a name, numbers or a function") from None
            if a.ndim != 1 or not np.isfinite(a).all() or (a < 0).any() or not (a > 0).any():
                raise InputError(
                    "coefficients must be finite and non-negative, with at least one above 0"
                )

    def _draw(self, features: int, rng: np.random.Generator) -> None:
        given, D, r = self.coefficients, self.n_components, float(self.ratio)
        kept = 3.0 / features  # orders and scales, in units of a table of bases
        if isinstance(given, str) or callable(given):
            of = SERIES[given] if isinstance(given, str) else given
            self._check_bases(features, 1.0 / (r - 1.0) + kept)  # the mean order, before any is drawn
            self.orders_ = rng.geometric(1.0 - 1.0 / r, D) - 1
            seen = np.unique(self.orders_)
            a = np.array([_number(of(int(n)), int(n)) for n in seen])
            p = (1.0 - 1.0 / r) * r ** -seen.astype(np.float64)
        else:
            a = np.asarray(given, dtype=np.float64)
            seen = np.flatnonzero(a)  # orders of no weight would be components of zeros
            a = a[seen]
            p = r ** -(seen - seen[0]).astype(np.float64)  # from the first on: r⁻ⁿ itself may be 0
            p /= p.sum()
            self._check_bases(features, float(p @ seen) + kept)
        if not np.isfinite(a).all() or (a < 0).any():
            raise InputError("coefficients must be finite and non-negative")
        if not (a > 0).any():
            raise InputError(
                f"coefficients are 0 at all orders that were drawn, {seen[0]} to {seen[-1]}: raise "
                "n_components, bring ratio closer to 1, or give the coefficients as a sequence"
            )
        if p.min() < np.finfo(np.float64).tiny:
            rare = seen[np.argmin(p)]
            raise InputError(
                f"ratio={r:g} gives order {rare} a probability of 0: use a ratio closer to 1"
            )
        if not (isinstance(given, str) or callable(given)):
            self.orders_ = rng.choice(seen, D, p=p)
        scales = np.sqrt(a) / np.sqrt(p)  # below 1e308, where a/p may leave float64
        self.scales_ = scales[np.searchsorted(seen, self.orders_)]
        self._check_bases(features, float(self.orders_.sum(dtype=np.float64)) / D)
        self.bases_ = [
            draw(rng, "rademacher", (features, int((self.orders_ > t).sum())))
            for t in range(int(self.orders_.max()))
        ]

    def _map(self, rows: sp.csr_matrix) -> NDArray[np.float64]:
        self._check_output(rows.shape[0])
        out = np.tile(self.scales_ / np.sqrt(self.n_components), (rows.shape[0], 1))
        for t, bases in enumerate(self.bases_):
            out[:, self.orders_ > t] *= rows @ bases
        return out


def _number(given: Any, n: int) -> float:
    try:
        return float(given)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"coefficients must give a number at {n}, not {given!r:.60}") from None
