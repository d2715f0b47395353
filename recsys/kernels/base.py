"""Kernels of binary vectors: one NumPy function of counts each, and Gram matrices of row vectors."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, TypeVar, dataclass_transform

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError
from recsys.registry import Registry, check_parameters
from recsys.utils.validation import as_array, check_integer, clean_matrix

KERNELS: Registry[type[Kernel]] = Registry("kernel", package="recsys.kernels")
K = TypeVar("K", bound="type[Kernel]")
INTEGERS = 2.0**53  # below, float64 has all integers


@dataclass(frozen=True)
class Kernel:
    """A kernel of binary vectors. A call returns a Gram matrix.

    A subclass is a frozen dataclass with the method `of_counts`; its fields are the parameters.
    `logarithmic` and `log_unit` keep values in range.

    Examples
    --------
    >>> from recsys.kernels import make_kernel
    >>> kernel = make_kernel("mc", degree=2)
    >>> kernel([[1, 1, 1], [1, 1, 0]], normalize=True).round(3)
    array([[1.   , 0.577],
           [0.577, 1.   ]])
    """

    logarithmic: ClassVar[bool] = False  # `of_counts` returns logarithms of values
    whole: ClassVar[bool] = False  # raw values are integers: counts of formulas
    tabulated: ClassVar[bool] = False  # values are sums of table entries: repeated counts are cheap
    saturates: ClassVar[bool] = False  # normalized values may be too close to 1 for float32

    def of_counts(
        self, s: NDArray[np.int64], a: NDArray[np.int64], b: NDArray[np.int64], n: int
    ) -> NDArray[Any]:
        """Return the values of pairs of vectors of dimension n, divided by exp(log_unit(n)).

        `s`, `a` and `b`, (pairs,) int64, are the numbers of common ones, and of ones in each vector.
        """
        raise NotImplementedError

    def log_unit(self, n: int) -> float:
        """Return the logarithm of the divisor of all values."""
        return 0.0

    def check_width(self, n: int) -> None:
        """Raise an InputError if the parameters do not fit dimension n."""

    def dimension(self, n: int) -> int | float:
        """Return the number of features over n variables (Table 6.1); inf for RBF and Tanimoto."""
        n = check_integer("n", n, 1)
        self.check_width(n)
        return self._dimension(n)

    def _dimension(self, n: int) -> int | float:
        return inf

    def _keep_integer(self, name: str) -> None:
        """Make a parameter of at least 1 an int: one of NumPy's would wrap in counts beyond 2⁶³."""
        object.__setattr__(self, name, check_integer(name, getattr(self, name), 1))

    def __call__(
        self, X: ArrayLike, Z: ArrayLike | None = None, normalize: bool = False
    ) -> NDArray[np.float64]:
        """Return the Gram matrix of the rows of X with those of Z.

        Parameters
        ----------
        X : (rows, n) array or sparse matrix
            Any numeric dtype; an entry above 0 counts as 1, all others as 0.
        Z : (others, n) array or sparse matrix, optional
            X itself by default.
        normalize : bool
            Divide by √(κ(x,x) κ(z,z)). A null vector (κ(x,x) = 0) then has 0 off the
            diagonal and 1 with itself.

        Returns
        -------
        (rows, others) float64
            Counts of formulas are exact below 2⁴⁵.
        """
        n, s, a, b = overlaps(X, Z)
        self.check_width(n)
        sizes, places = np.unique(np.concatenate([a, b]), return_inverse=True)
        out = values(self, s, places[: len(a), None], places[len(a) :], sizes, n, normalize)
        if not np.isfinite(out).all():
            raise InputError(
                f"{self} exceeds the range of float64 on these vectors: pass normalize=True"
            )
        if normalize and Z is None:
            np.fill_diagonal(out, 1.0)
        return out


@dataclass_transform(frozen_default=True)
def register_kernel(*names: str) -> Callable[[K], K]:
    """Register a class under its names, as a frozen dataclass whose fields are the parameters."""

    def register(kind: K) -> K:
        return KERNELS.add(*names)(dataclass(frozen=True)(kind))  # type: ignore[return-value]

    return register


def values(
    kernel: Kernel,
    s: NDArray[Any],
    i: NDArray[Any],
    j: NDArray[Any],
    sizes: NDArray[Any],
    n: int,
    normalize: bool = True,
) -> NDArray[np.float64]:
    """Return a kernel's values on counts s of common ones, each distinct triple evaluated once.

    i and j, which broadcast to the shape of s, are places in `sizes` of the ones of either vector.
    """
    s = s.astype(np.int64)
    few, span = len(sizes), (int(s.max(initial=0)) + 1) * len(sizes) ** 2
    places = None
    if not kernel.tabulated or span <= 4 * s.size + 1000:
        triples, places = _distinct(((s * few + i) * few + j).ravel(), span)
        rest, j = np.divmod(triples, few)
        shape, (s, i) = s.shape, np.divmod(rest, few)
    with np.errstate(all="ignore"):
        v = np.asarray(kernel.of_counts(s, sizes[i], sizes[j], n), dtype=np.float64)
        if normalize:
            roots = own(kernel, sizes, n)
            null = ~np.isfinite(roots) if kernel.logarithmic else roots == 0
            v = np.exp(v - roots[i] - roots[j]) if kernel.logarithmic else v / roots[i] / roots[j]
            v[null[i] | null[j]] = 0.0
        else:
            unit = kernel.log_unit(n)
            if not kernel.logarithmic and unit < 600:
                v = v * np.exp(unit)
            else:  # where v·exp(unit) would be 0·∞
                v = np.exp((v if kernel.logarithmic else np.log(v)) + unit)
            if kernel.whole:
                v = np.where(v < INTEGERS, np.rint(v), v)
    return v if places is None else v[places].reshape(shape)


def own(kernel: Kernel, sizes: NDArray[Any], n: int) -> NDArray[np.float64]:
    """Return √κ(x,x) of vectors of these sizes, or its logarithm; 0 or −∞ of null vectors."""
    with np.errstate(all="ignore"):
        v = np.asarray(kernel.of_counts(sizes, sizes, sizes, n), dtype=np.float64)
        return 0.5 * v if kernel.logarithmic else np.sqrt(np.maximum(v, 0.0))


def _distinct(keys: NDArray[np.int64], span: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct keys, all below `span`, and the place of each key among them."""
    if span > 4 * len(keys) + 1000:
        few, places = np.unique(keys, return_inverse=True)
        return few, places
    seen = np.zeros(span, dtype=np.bool_)
    seen[keys] = True
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[keys]


def overlaps(
    X: ArrayLike, Z: ArrayLike | None
) -> tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return n, the overlaps of the rows of X with those of Z, and how many ones each has."""
    A = binary_rows(X, "X")
    B = A if Z is None else binary_rows(Z, "Z")
    if A.shape[1] != B.shape[1]:
        raise InputError(f"X has {A.shape[1]} columns and Z has {B.shape[1]}; they must agree")
    if A.nnz > 0.05 * A.shape[0] * A.shape[1]:  # float32 has all integers to 2²⁴
        counts = (A.toarray().astype(np.float32) @ B.toarray().astype(np.float32).T).astype(np.int64)
    else:
        counts = (A @ B.T).toarray().astype(np.int64)
    a, b = np.diff(A.indptr).astype(np.int64), np.diff(B.indptr).astype(np.int64)
    return A.shape[1], counts, a, b


def binary_rows(X: ArrayLike, name: str) -> sp.csr_matrix:
    """Return X as a CSR matrix of int32 ones where X is above 0, with sorted indices."""
    matrix = clean_matrix(X if sp.issparse(X) else np.atleast_2d(as_array(name, X)), name=name)
    ones = np.ones(matrix.nnz, dtype=np.int32)
    return sp.csr_matrix((ones, matrix.indices, matrix.indptr), matrix.shape)


def make_kernel(name: str, /, **params: Any) -> Kernel:
    """Return the kernel with this name, one of `list_kernels()`, and these parameters."""
    kind = KERNELS.get(name)
    check_parameters(f"kernel {name!r}", params, [f.name for f in dataclasses.fields(kind)])
    return kind(**params)


def list_kernels() -> list[str]:
    """Return the names of all kernels."""
    return KERNELS.names()
