"""Kernels: parameters, a plan for a dimension, and Gram matrices of row vectors."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys._jit import jit
from recsys.errors import InputError
from recsys.kernels.exact import Counting, exact_less_one, make_whole
from recsys.kernels.plans import CODES, Plan, scaled, weights
from recsys.registry import Registry, check_parameters
from recsys.utils.features import as_array, native
from recsys.utils.validation import check_integer

KERNELS: Registry[type[Kernel]] = Registry("kernel", package="recsys.kernels")


@dataclass(frozen=True)
class Kernel:
    """A kernel of binary vectors. Calling it gives a Gram matrix.

    Subclasses are dataclasses whose fields are the parameters, with one method: `plan`; those
    whose plan is `integer` also have `exact`.

    Examples
    --------
    >>> from recsys.kernels import make_kernel
    >>> kernel = make_kernel("mc", degree=2)
    >>> kernel([[1, 1, 1], [1, 1, 0]], normalize=True).round(3)
    array([[1.   , 0.577],
           [0.577, 1.   ]])
    """

    def plan(self, n: int) -> Plan:
        """Return the kernel made ready for vectors of dimension n ≥ 1."""
        raise NotImplementedError

    def checked_plan(self, n: int) -> Plan:
        """Return the plan, whose code has a branch.

        Raises
        ------
        InputError
            If it has none: the kernel was registered without one.
        """
        plan = self.plan(n)
        if not 0 <= plan.code < CODES:
            raise InputError(
                f"{self} has a plan of code {plan.code}, for which there is no compiled value: subclass "
                "recsys.kernels.CountKernel to define a kernel outside the package"
            )
        return plan

    def exact(self, n: int, s: int, a: int, b: int) -> int | Fraction | None:
        """Return the raw value of two vectors by the definition, without rounding.

        Parameters
        ----------
        n, s, a, b : int
            Dimension, common ones, ones of each vector; parameters fit n, as `plan` has checked.

        Returns
        -------
        int or Fraction, or None for a kernel whose values are irrational
        """
        return None

    def dimension(self, n: int) -> int | float:
        """Return the number of features over n variables, exactly.

        Of Boolean kernels these are formulas, of polynomials monomials (on binary vectors some of them
        are equal).

        Returns
        -------
        int, or inf for RBF and Tanimoto

        Raises
        ------
        InputError
            If a parameter does not fit n.

        Notes
        -----
        Source: Polato's thesis, Table 6.1.

        Examples
        --------
        >>> from recsys.kernels import make_kernel
        >>> make_kernel("mdnf", d=2, c=3).dimension(20)  # pairs of the 1,140 conjunctions
        649230
        """
        n = check_integer("n", n, 1)
        self._check_fits(n)
        return self._dimension(n)

    def _dimension(self, n: int) -> int | float:
        return inf

    def _check_fits(self, n: int) -> None:
        """Refuse parameters that do not fit n: without the plan's tables, where a kernel says how."""
        self.plan(n)

    def _keep_integer(self, name: str) -> None:
        """Make a parameter of at least 1 an int: one of NumPy's would wrap in counts beyond 2⁶³."""
        object.__setattr__(self, name, check_integer(name, getattr(self, name), 1))

    def counting(self) -> Counting | None:
        """Return the form of a kernel that counts disjunctions of conjunctions, or None."""
        return None

    def __call__(
        self, X: ArrayLike, Z: ArrayLike | None = None, normalize: bool = False
    ) -> NDArray[np.float64]:
        """Return the Gram matrix of the rows of X with those of Z.

        Parameters
        ----------
        X : (rows, n) array or sparse matrix
            Any numeric dtype; an entry above 0 counts as 1, all others as 0.
        Z : (others, n) array or sparse matrix, optional
            X itself when not given.
        normalize : bool
            Divide by √(κ(x,x) κ(z,z)). A null vector (κ(x,x) = 0) then has 0 off the
            diagonal and 1 with itself.

        Returns
        -------
        (rows, others) float64
            Raw counts of formulas are exact below 2⁵³.

        Raises
        ------
        InputError
            If an entry is not finite, the widths differ, a parameter does not fit n, or a
            value without normalisation leaves the range of float64.
        """
        n, counts, a, b = overlaps(X, Z)
        plan = self.checked_plan(n)
        # Raw values first leave the tables' scale here, where an overflow can still be named.
        wa, wb = weights(plan, a, normalize), weights(plan, b, normalize)
        if not normalize and not plan.logarithmic:
            wa, wb = np.ones(len(a)), np.ones(len(b))
        with np.errstate(over="ignore"):
            out = _cross(plan.code, plan.logarithmic, counts, a, b, wa, wb, plan.par, plan.table)
            if not normalize:
                out *= np.exp(plan.log_scale)
        if not normalize and plan.integer:
            make_whole(self, plan, n, counts, a, b, out)
        if not np.isfinite(out).all():
            raise InputError(f"{self} leaves the range of float64 on these vectors: pass normalize=True")
        if normalize and Z is None:
            np.fill_diagonal(out, 1.0)
        elif normalize:
            out[np.ix_(_null(plan, a), _null(plan, b))] = 0.0
        return out

    def less_one(self, X: ArrayLike, Z: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return the normalised Gram matrix less 1, K − 1, with its digits.

        Disjunctions of high degree, and literals of sparse vectors, have values so close to 1 that K
        keeps few digits of what tells vectors apart, or none. Counts are taken here as integers,
        once for each pair of sizes with each overlap: right to the last digits, and slower than K.

        Parameters
        ----------
        X, Z
            As of a call.

        Returns
        -------
        (rows, others) float64
            From −1, also for null vectors, to 0. What is closer to 0 than 1e-308 is 0.

        Raises
        ------
        InputError
            If an entry is not finite, the widths differ, or a parameter does not fit n.

        Examples
        --------
        >>> import numpy as np
        >>> from recsys.kernels import make_kernel
        >>> X = np.tri(200, dtype=int)[[49, 99]]
        >>> kernel = make_kernel("md", degree=100)
        >>> (kernel(X, normalize=True) - 1.0)[0, 1], float(kernel.less_one(X)[0, 1])
        (np.float64(0.0), -1.1114848756039308e-19)
        """
        n, counts, a, b = overlaps(X, Z)
        plan = self.checked_plan(n)
        if self.exact(n, 0, 0, 0) is not None:
            out = exact_less_one(self, n, counts, a, b)
        else:
            out = self._rounded_less_one(plan, counts, a, b)
        if Z is None:
            np.fill_diagonal(out, 0.0)
        return out

    def _rounded_less_one(
        self, plan: Plan, counts: NDArray[np.int64], a: NDArray[np.int64], b: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return K − 1 of a kernel without `exact`, with as many digits as K has."""
        wa, wb = weights(plan, a, True), weights(plan, b, True)
        return _cross(plan.code, plan.logarithmic, counts, a, b, wa, wb, plan.par, plan.table) - 1.0


def overlaps(
    X: ArrayLike, Z: ArrayLike | None
) -> tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return n, the overlaps of the rows of X with those of Z, and how many ones each has."""
    A = binary_rows(X, "X")
    B = A if Z is None else binary_rows(Z, "Z")
    if A.shape[1] != B.shape[1]:
        raise InputError(f"X has {A.shape[1]} columns and Z has {B.shape[1]}; they must agree")
    counts = np.ascontiguousarray((A @ B.T).toarray(), dtype=np.int64)
    a, b = np.diff(A.indptr).astype(np.int64), np.diff(B.indptr).astype(np.int64)
    return A.shape[1], counts, a, b


def _null(plan: Plan, sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
    own = weights(plan, sizes, True)
    return np.isinf(own) if plan.logarithmic else own == 0


def binary_rows(X: ArrayLike, name: str) -> sp.csr_matrix:
    """Return X as a CSR matrix of int32 ones where X is above 0, with sorted indices."""
    given: Any = native(X if sp.issparse(X) else np.atleast_2d(as_array(name, X)))
    if given.dtype.kind not in "biuf":
        raise InputError(f"{name} has dtype {given.dtype}; real numbers are needed")
    if given.ndim != 2:
        raise InputError(f"{name} has {given.ndim} dimensions; one row per vector is needed")
    matrix = sp.csr_matrix(given.astype(np.float32) if given.dtype == np.float16 else given)
    if not np.isfinite(matrix.data).all():
        raise InputError(f"{name} holds NaN or infinity; entries must be finite")
    out = sp.csr_matrix((matrix.data > 0, matrix.indices.copy(), matrix.indptr.copy()), matrix.shape)
    out.sum_duplicates()
    out.eliminate_zeros()
    out.sort_indices()
    return out.astype(np.int32)


def make_kernel(name: str, /, **params: Any) -> Kernel:
    """Return the kernel called `name`.

    Parameters
    ----------
    name : str
        One of `list_kernels()`.
    **params
        The kernel's parameters: `degree` for one-degree kernels.

    Raises
    ------
    InputError
        If the name or a parameter is unknown, or a value out of range.

    Examples
    --------
    >>> from recsys.kernels import make_kernel
    >>> make_kernel("mc", degree=3)
    MonotoneConjunctiveKernel(degree=3)
    """
    kind = KERNELS.get(name)
    check_parameters(f"kernel {name!r}", params, [f.name for f in dataclasses.fields(kind)])
    return kind(**params)


def list_kernels() -> list[str]:
    """Return the names that `make_kernel` takes.

    Examples
    --------
    >>> from recsys.kernels import list_kernels, make_kernel
    >>> [name for name in list_kernels() if name.startswith("m")]
    ['mc', 'mc-sum', 'mcnf', 'md', 'mdnf', 'mdnf-sum', 'ml']
    """
    return KERNELS.names()


# ---- kernels


@jit
def _cross(code, logarithmic, counts, a, b, wa, wb, par, table):
    out = np.empty(counts.shape)
    for i in range(len(a)):
        for j in range(len(b)):
            s = counts[i, j]
            out[i, j] = scaled(code, logarithmic, s, a[i], b[j], wa[i], wb[j], par, table)
    return out
