"""Kernels that a user defines: a function of two matrices, or of the counts of two vectors.

A function of counts may be plain Python of numbers, or compiled with numba. The loops that call it
are compiled for it once in a process, and are not kept on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys._jit import jit
from recsys._specialised import compiled
from recsys.errors import InputError
from recsys.kernels.base import Kernel, overlaps
from recsys.kernels.gram.counts import ItemCounts
from recsys.kernels.plans import Plan
from recsys.utils.memory import check_memory

__all__ = ["CountKernel", "FunctionKernel", "as_kernel"]


@dataclass(frozen=True)
class CountKernel(Kernel):
    """A kernel of binary vectors as a function of four counts, for users to define.

    A subclass is a frozen dataclass whose fields are numeric parameters, with one static method.

    Attributes
    ----------
    value_of_counts : static method
        value_of_counts(s, a, b, n, parameters): the value for two vectors of dimension n with a and b
        ones, s of them in common. `parameters` is a float64 array in the order of the fields.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Ochiai(CountKernel):
    ...     @staticmethod
    ...     def value_of_counts(s, a, b, n, parameters):
    ...         return s / (a * b) ** 0.5 if a * b > 0 else 0.0
    >>> Ochiai()([[1, 1, 0], [1, 0, 0]]).round(3)
    array([[1.   , 0.707],
           [0.707, 1.   ]])
    """

    value_of_counts: ClassVar[Any] = None

    def plan(self, n: int) -> Plan:
        """Refuse: there is no branch for it in the package's chain."""
        raise InputError(f"{self} is a kernel from outside: it has a dense matrix only")

    def _check_fits(self, n: int) -> None:
        """Accept any dimension."""

    def _values(
        self, n: int, s: NDArray[Any], a: NDArray[np.int64], b: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        if type(self).value_of_counts is None:
            raise InputError(f"kernel {type(self).__name__} must define value_of_counts")
        given = np.array(astuple(self), dtype=np.float64)
        out: NDArray[np.float64] = np.empty(s.shape)
        _filling(type(self).value_of_counts)(s, a, b, n, given, out)
        if not np.isfinite(out).all():
            raise InputError(f"{self} has a value that is not finite on these vectors")
        return out

    def _own(self, n: int, a: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return 1/√κ(x,x) by the numbers of ones; 0 of null vectors."""
        unique, inverse = np.unique(a, return_inverse=True)
        own = np.array([self._values(n, np.array([[k]]), *([np.array([k])] * 2))[0, 0] for k in unique])
        if (own < 0).any():
            raise InputError(f"{self} is no kernel: a vector has a negative value with itself")
        return np.divide(1.0, np.sqrt(own), out=np.zeros_like(own), where=own > 0)[inverse]

    def __call__(
        self, X: ArrayLike, Z: ArrayLike | None = None, normalize: bool = False
    ) -> NDArray[np.float64]:
        """Return the Gram matrix, as of any kernel."""
        n, s, a, b = overlaps(X, Z)
        out = self._values(n, s, a, b)
        if normalize:
            out *= self._own(n, a)[:, None] * self._own(n, b)
            if Z is None:
                np.fill_diagonal(out, 1.0)
        return out

    def less_one(self, X: ArrayLike, Z: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return K − 1 of the normalised K, with as many digits as K has."""
        return self(X, Z, normalize=True) - 1.0

    def item_gram(self, counts: ItemCounts) -> NDArray[np.float32]:
        """Return the normalised matrix of items from dense counts, (items, items)."""
        items = len(counts.sizes)
        check_memory(12 * items * items, f"the item × item matrix of {items:,} items")
        together, sizes = counts.together.astype(np.int64), counts.sizes.astype(np.int64)
        np.fill_diagonal(together, sizes)
        own = self._own(counts.vectors, sizes)
        return _unit(self._values(counts.vectors, together, sizes, sizes) * own[:, None] * own, sizes)


@dataclass(frozen=True)
class FunctionKernel:
    """A function of two matrices of real rows, as scikit-learn's SVC takes it, called as a Kernel is."""

    function: Callable[..., Any]

    def __call__(self, X: Any, Z: Any = None, normalize: bool = False) -> NDArray[np.float64]:
        """Return the Gram matrix."""
        K = self._matrix(X, X if Z is None else Z)
        if not normalize:
            return K
        left = np.sqrt(K.diagonal() if Z is None else self._own(X))
        scale = np.outer(left, left if Z is None else np.sqrt(self._own(Z)))
        out = np.divide(K, scale, out=np.zeros_like(K), where=scale > 0)
        if Z is None:
            np.fill_diagonal(out, 1.0)
        return out

    def item_gram(self, user_items: sp.csr_matrix) -> NDArray[np.float32]:
        """Return the normalised matrix of the columns, (items, items); the function gets dense rows."""
        users, items = user_items.shape
        check_memory(8 * items * (2 * items + users), f"a kernel function of {items:,} items")
        vectors = (user_items.T > 0).toarray().astype(np.float64)
        return _unit(self(vectors, normalize=True), vectors.sum(axis=1))

    def _matrix(self, X: Any, Z: Any) -> NDArray[np.float64]:
        K = np.asarray(self.function(X, Z), dtype=np.float64)
        if K.shape != (X.shape[0], Z.shape[0]) or not np.isfinite(K).all():
            name = getattr(self.function, "__name__", repr(self.function))
            raise InputError(
                f"kernel function {name} must return finite values of shape "
                f"{(X.shape[0], Z.shape[0])}; it returned "
                + ("NaN or infinity" if K.shape == (X.shape[0], Z.shape[0]) else f"shape {K.shape}")
            )
        return K

    def _own(self, X: Any) -> NDArray[np.float64]:
        rows = (X[i : i + 1] for i in range(X.shape[0]))
        return np.array([float(self._matrix(row, row)[0, 0]) for row in rows])


def as_kernel(given: Any, params: dict[str, Any] | None = None) -> Any:
    """Return a Kernel as it is, and the wrapper of a function of two matrices."""
    if isinstance(given, type) or not callable(given):
        raise InputError(f"a kernel is a name, a Kernel or a function of two matrices, not {given!r}")
    if params:
        raise InputError("a kernel that is an object has its parameters: leave the others out")
    return given if isinstance(given, Kernel) else FunctionKernel(given)


def _unit(K: NDArray[np.float64], sizes: NDArray[Any]) -> NDArray[np.float32]:
    """Return a normalised matrix in which an item without users resembles none."""
    out = K.astype(np.float32)
    out[sizes == 0] = 0.0
    out[:, sizes == 0] = 0.0
    np.fill_diagonal(out, 1.0)
    return out


@cache
def _filling(value: Any) -> Any:
    own = compiled(value)

    @jit(cache=False)
    def fill(s, a, b, n, parameters, out):
        for i in range(len(a)):
            for j in range(len(b)):
                out[i, j] = own(s[i, j], a[i], b[j], n, parameters)

    return fill
