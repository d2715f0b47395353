"""Kernels of the dot product and of the overlap that are not counts of formulas."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.kernels.base import Kernel, register_kernel
from recsys.utils.validation import check_real


@register_kernel("linear", "ml")
class LinearKernel(Kernel):
    """⟨x, z⟩: the number of common ones. A vector without ones is null."""

    whole = True
    tabulated = True

    def of_counts(self, s: Any, a: Any, b: Any, n: int) -> NDArray[Any]:
        """Return s."""
        return np.asarray(s)

    def _dimension(self, n: int) -> int:
        return n


@register_kernel("polynomial")
class PolynomialKernel(Kernel):
    """(alpha·⟨x, z⟩ + coef)^degree. With coef > 0 no vector is null.

    Source: Polato's thesis, Table 4.1.

    Parameters
    ----------
    degree : int ≥ 1
    coef : float ≥ 0
    alpha : float > 0

    Examples
    --------
    >>> PolynomialKernel(degree=2)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[16.,  9.],
           [ 9.,  9.]])
    """

    degree: int = 2
    coef: float = 1.0
    alpha: float = 1.0

    def __post_init__(self) -> None:
        self._keep_integer("degree")
        check_real("coef", self.coef, 0.0)
        check_real("alpha", self.alpha, 0.0, open_low=True)

    logarithmic = True
    tabulated = True

    @property
    def whole(self) -> bool:  # type: ignore[override]
        """Whether raw values are integers."""
        return float(self.coef).is_integer() and float(self.alpha).is_integer()

    def of_counts(self, s: Any, a: Any, b: Any, n: int) -> NDArray[np.float64]:
        """Return the logarithm of the power."""
        return self.degree * np.log(self.alpha * s + self.coef)

    def _dimension(self, n: int) -> int:
        return comb(n + self.degree, n) if self.coef > 0 else comb(n + self.degree - 1, self.degree)


@register_kernel("hp")
class HomogeneousPolynomialKernel(Kernel):
    """⟨x, z⟩^degree. A vector without ones is null.

    Parameters
    ----------
    degree : int ≥ 1
    """

    degree: int = 2

    logarithmic = True
    whole = True
    tabulated = True

    def __post_init__(self) -> None:
        self._keep_integer("degree")

    def of_counts(self, s: Any, a: Any, b: Any, n: int) -> NDArray[np.float64]:
        """Return the logarithm of the power."""
        return self.degree * np.log(s)

    def _dimension(self, n: int) -> int:
        return comb(n + self.degree - 1, self.degree)


@register_kernel("rbf")
class RBFKernel(Kernel):
    """exp(−gamma·‖x − z‖²), where ‖x − z‖² = |x| + |z| − 2⟨x,z⟩. No vector is null.

    Parameters
    ----------
    gamma : float > 0, optional
        1/n by default.
    """

    gamma: float | None = None

    def __post_init__(self) -> None:
        if self.gamma is not None:
            check_real("gamma", self.gamma, 0.0, open_low=True)

    logarithmic = True
    tabulated = True
    saturates = True

    def of_counts(self, s: Any, a: Any, b: Any, n: int) -> NDArray[np.float64]:
        """Return the exponent."""
        return -(1.0 / n if self.gamma is None else self.gamma) * (a + b - 2 * s)


@register_kernel("tanimoto")
class TanimotoKernel(Kernel):
    """|x ∩ z| / |x ∪ z|, and 1 for two vectors without ones. No vector is null."""

    tabulated = True

    def of_counts(self, s: Any, a: Any, b: Any, n: int) -> NDArray[np.float64]:
        """Return the share of the union that is common."""
        return np.where(a + b > s, s / np.maximum(a + b - s, 1), 1.0)
