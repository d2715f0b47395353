"""Kernels of the dot product and of the overlap that are not counts of formulas."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np
from numpy.typing import NDArray

from recsys.kernels.base import KERNELS, Kernel
from recsys.kernels.boolean import OneDegree
from recsys.kernels.plans import AT_EMPTY, CONJUNCTION, LINEAR, POWER, RBF, TANIMOTO, Plan
from recsys.utils.validation import check_real

NO_TABLE = np.zeros(1)


@KERNELS.add("linear", "ml")
@dataclass(frozen=True)
class LinearKernel(Kernel):
    """⟨x, z⟩: how many positive literals hold in both vectors. A vector without ones is null.

    Examples
    --------
    >>> from recsys.kernels import LinearKernel
    >>> LinearKernel()([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[3., 2.],
           [2., 2.]])
    """

    def plan(self, n: int) -> Plan:
        """No table is needed."""
        return Plan(LINEAR, np.zeros(4), NO_TABLE)

    def _dimension(self, n: int) -> int:
        return n

    def exact(self, n: int, s: int, a: int, b: int) -> int:
        """Return s."""
        return s


@KERNELS.add("polynomial")
@dataclass(frozen=True)
class PolynomialKernel(Kernel):
    """(alpha·⟨x, z⟩ + coef)^degree. With coef > 0 no vector is null.

    Parameters
    ----------
    degree : int ≥ 1
    coef : float ≥ 0
    alpha : float > 0

    Notes
    -----
    Source: Polato's thesis, Table 4.1.

    Examples
    --------
    >>> from recsys.kernels import PolynomialKernel
    >>> PolynomialKernel(degree=2)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[16.,  9.],
           [ 9.,  9.]])
    """

    degree: int = 2
    coef: float = 1.0
    alpha: float = 1.0

    def __post_init__(self) -> None:
        """Refuse parameters out of range."""
        self._keep_integer("degree")
        check_real("coef", self.coef, 0.0)
        check_real("alpha", self.alpha, 0.0, open_low=True)

    def _check_fits(self, n: int) -> None:
        pass  # any n fits

    def plan(self, n: int) -> Plan:
        """Return the power, as a logarithm where the degree is high."""
        return _power(n, self.degree, float(self.coef), float(self.alpha))

    def _dimension(self, n: int) -> int:
        return comb(n + self.degree, n) if self.coef > 0 else comb(n + self.degree - 1, self.degree)

    def exact(self, n: int, s: int, a: int, b: int) -> Fraction:
        """Return the power of a fraction: a float is one."""
        return (s * Fraction(float(self.alpha)) + Fraction(float(self.coef))) ** self.degree


@KERNELS.add("hp")
@dataclass(frozen=True)
class HomogeneousPolynomialKernel(OneDegree):
    """⟨x, z⟩^degree. A vector without ones is null.

    Parameters
    ----------
    degree : int ≥ 1

    Examples
    --------
    >>> from recsys.kernels import HomogeneousPolynomialKernel
    >>> HomogeneousPolynomialKernel(degree=2)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[9., 4.],
           [4., 4.]])
    """

    def _check_fits(self, n: int) -> None:
        pass  # any n fits

    def plan(self, n: int) -> Plan:
        """Return the power with coefficient 0."""
        return _power(n, self.degree, 0.0, 1.0)

    def _dimension(self, n: int) -> int:
        return comb(n + self.degree - 1, self.degree)

    def exact(self, n: int, s: int, a: int, b: int) -> int:
        """Return the power of an integer."""
        return s**self.degree


def _power(n: int, degree: int, coef: float, alpha: float) -> Plan:
    """Tabulate degree·log(alpha·k + coef): powers as logarithms, which no degree overflows."""
    if degree > 4 or alpha != 1.0:
        with np.errstate(divide="ignore"):
            table = degree * np.log(alpha * np.arange(n + 1, dtype=np.longdouble) + coef)
        return Plan(
            CONJUNCTION,
            np.zeros(4),
            table.astype(np.float64),
            logarithmic=True,
            zero_at_zero=coef == 0,
            integer=coef.is_integer() and alpha.is_integer(),
        )
    par = np.array([degree, coef, 0.0, 0.0])
    return Plan(POWER, par, NO_TABLE, zero_at_zero=coef == 0)


@KERNELS.add("rbf")
@dataclass(frozen=True)
class RBFKernel(Kernel):
    """exp(−gamma·‖x − z‖²), where ‖x − z‖² = |x| + |z| − 2⟨x,z⟩. No vector is null.

    Parameters
    ----------
    gamma : float > 0, optional
        1/n when not given.

    Examples
    --------
    >>> from recsys.kernels import RBFKernel
    >>> RBFKernel(gamma=0.5)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[1.        , 0.60653066],
           [0.60653066, 1.        ]])
    """

    gamma: float | None = None

    def __post_init__(self) -> None:
        """Refuse a gamma that is not above 0."""
        if self.gamma is not None:
            check_real("gamma", self.gamma, 0.0, open_low=True)

    def plan(self, n: int) -> Plan:
        """Resolve the default gamma."""
        par = np.array([1.0 / n if self.gamma is None else self.gamma, 0.0, 0.0, 0.0])
        return Plan(RBF, par, NO_TABLE, zero_at_zero=False, saturates=AT_EMPTY)

    def _rounded_less_one(
        self, plan: Plan, counts: NDArray[np.int64], a: NDArray[np.int64], b: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        return np.expm1(-plan.par[0] * (a[:, None] + b[None, :] - 2 * counts))


@KERNELS.add("tanimoto")
@dataclass(frozen=True)
class TanimotoKernel(Kernel):
    """|x ∩ z| / |x ∪ z|, and 1 for two vectors without ones. No vector is null.

    Examples
    --------
    >>> from recsys.kernels import TanimotoKernel
    >>> TanimotoKernel()([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[1.        , 0.66666667],
           [0.66666667, 1.        ]])
    """

    def plan(self, n: int) -> Plan:
        """No table is needed."""
        # Only two empty vectors have a value without a common element.
        return Plan(TANIMOTO, np.zeros(4), NO_TABLE, zero_at_zero=False)

    def exact(self, n: int, s: int, a: int, b: int) -> Fraction:
        """Return the fraction, 1 for two empty vectors."""
        return Fraction(s, a + b - s) if a + b > s else Fraction(1)
