"""Boolean kernels of fuzzy vectors: entries in [0, 1], the truth of a formula is a product."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys._jit import jit
from recsys.errors import InputError
from recsys.utils.features import as_array, native
from recsys.utils.validation import check_choice, check_integer

CONNECTIVES = ("and", "or")
MOST = 10**300  # sets of variables: float64 ends at 1.8e308


def fuzzy_kernel(
    X: ArrayLike,
    Z: ArrayLike | None = None,
    *,
    connective: str = "and",
    degree: int = 2,
    normalize: bool = False,
) -> NDArray[np.float64]:
    """Return the Gram matrix of a monotone Boolean kernel on vectors with entries in [0, 1].

    An entry is how far a variable is true. Under the product t-norm a conjunction of variables is true
    to the product of its entries, and a disjunction, by De Morgan, to 1 − Π(1 − x). The kernel is the
    sum, over all sets of `degree` variables, of the products of both truth values:

    - "and": κ(x, z) = Σ_S Π_{i∈S} x_i z_i, the elementary symmetric polynomial of the products x_i z_i;
    - "or": κ(x, z) = Σ_S (1 − Π_{i∈S} (1 − x_i)) (1 − Π_{i∈S} (1 − z_i)).

    On binary vectors these are the kernels mC and mD, of (6.4) and (6.7) in Polato's thesis, which names
    fuzzy logic as future work.

    Parameters
    ----------
    X : (rows, n) array or sparse matrix
        Entries in [0, 1]; what a sparse matrix does not hold is 0.
    Z : (others, n) array or sparse matrix, optional
        X itself when not given.
    connective : "and" or "or"
    degree : int ≥ 1
        Variables in a formula, at most n.
    normalize : bool
        Divide by √(κ(x,x) κ(z,z)). A null vector (κ(x,x) = 0) then has 0 with all others and 1 with
        itself.

    Returns
    -------
    (rows, others) float64
        All terms are of one sign, so that values are right to a few units of the last digits. It takes
        (entries of both rows) × degree operations a pair of rows.

    Raises
    ------
    InputError
        If an entry is no number in [0, 1], the widths differ, the degree does not fit n, or C(n, degree)
        leaves the range of float64.

    Examples
    --------
    >>> from recsys.kernels import make_kernel
    >>> fuzzy_kernel([[1.0, 0.5, 0.0], [1.0, 1.0, 0.5]])  # 0.5·1 of the first two; all three pairs
    array([[0.25, 0.5 ],
           [0.5 , 1.5 ]])
    >>> X = [[1, 1, 1, 0], [1, 1, 0, 0]]
    >>> bool((fuzzy_kernel(X, connective="or") == make_kernel("md", degree=2)(X)).all())
    True
    """
    check_choice("connective", connective, CONNECTIVES)
    A = _fuzzy_rows("X", X)
    B = A if Z is None else _fuzzy_rows("Z", Z)
    n = A.shape[1]
    if B.shape[1] != n:
        raise InputError(f"X has {n} columns and Z has {B.shape[1]}; they must agree")
    degree = check_integer("degree", degree, 1, n)
    either = connective == "or"
    if comb(n, min(degree, n // 2)) > MOST:  # also the ways to fill a set on the way there
        raise InputError(f"C({n:,}, {degree}) leaves the range of float64: lower degree")
    out = np.empty((A.shape[0], B.shape[0]))
    _fill(*_parts(A), *_parts(B), n, degree, either, out)
    if normalize:
        own, others = (_norms(part, n, degree, either) for part in (A, B))
        scale = np.outer(own, others)
        out = np.divide(out, scale, out=np.zeros_like(out), where=scale > 0)
        if Z is None:
            np.fill_diagonal(out, 1.0)
    return out


def _fuzzy_rows(name: str, X: Any) -> sp.csr_matrix:
    """Return rows of entries in (0, 1] as canonical float64 CSR."""
    given: Any = native(X if sp.issparse(X) else np.atleast_2d(as_array(name, X)))
    if given.dtype.kind not in "biuf" or given.ndim != 2:
        raise InputError(f"{name} must be a matrix of real numbers, one row a vector")
    rows = sp.csr_matrix(given, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    if not ((rows.data >= 0.0) & (rows.data <= 1.0)).all():
        raise InputError(f"{name} holds entries outside 0…1: they say how far each is true")
    return rows


def _parts(rows: sp.csr_matrix) -> tuple[NDArray[Any], ...]:
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data


def _norms(rows: sp.csr_matrix, n: int, degree: int, either: bool) -> NDArray[np.float64]:
    """Return √κ(x, x) of each row."""
    out = np.empty(rows.shape[0])
    for k in range(rows.shape[0]):
        own, one = _parts(rows[k]), np.empty((1, 1))
        _fill(*own, *own, n, degree, either, one)
        out[k] = one[0, 0]
    return np.sqrt(out)


# ---- kernels


@jit
def _fill(xp, xi, xd, zp, zi, zd, n, degree, either, out):
    """Fill out[i, j] by one pass over the entries of both rows, that are merged.

    Of all sets of t variables so far: hit[t] is the sum of (1 − A)(1 − B), first[t] of (1 − A) B,
    second[t] of A (1 − B) and none[t] of A B, where A and B are the products of 1 − x and 1 − z. Every
    update adds terms that are not negative. Of conjunctions hit[t] alone is e_t of the products.
    """
    hit, first = np.zeros(degree + 1), np.zeros(degree + 1)
    second, none = np.zeros(degree + 1), np.zeros(degree + 1)
    for i in range(len(xp) - 1):
        for j in range(len(zp) - 1):
            hit[:] = 0.0
            first[:] = 0.0
            second[:] = 0.0
            none[:] = 0.0
            none[0] = 1.0
            hit[0] = 0.0 if either else 1.0
            a, b, seen = xp[i], zp[j], 0
            while a < xp[i + 1] or b < zp[j + 1]:
                left = xi[a] if a < xp[i + 1] else n
                right = zi[b] if b < zp[j + 1] else n
                u, v = 0.0, 0.0
                if left <= right:
                    u = xd[a]
                    a += 1
                if right <= left:
                    v = zd[b]
                    b += 1
                seen += 1
                if not either:
                    if u * v > 0.0:
                        for t in range(degree, 0, -1):
                            hit[t] += u * v * hit[t - 1]
                    continue
                for t in range(degree, 0, -1):
                    f, s, o = first[t - 1], second[t - 1], none[t - 1]
                    hit[t] += hit[t - 1] + v * f + u * s + u * v * o
                    first[t] += (1.0 - v) * (f + u * o)
                    second[t] += (1.0 - u) * (s + v * o)
                    none[t] += (1.0 - u) * (1.0 - v) * o
            if not either:
                out[i, j] = hit[degree]
                continue
            # The others are false in both: so many ways to fill a set with them.
            total, ways, rest = 0.0, 1.0, n - seen
            for t in range(degree + 1):
                total += ways * hit[degree - t]
                ways *= max(rest - t, 0) / (t + 1.0)
            out[i, j] = total
