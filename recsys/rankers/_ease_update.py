"""EASE's inverse after rows came and went: a low-rank update, and how far it has drifted."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, blas, solve

from recsys._jit import jit
from recsys.errors import InputError
from recsys.utils.digests import mixed
from recsys.utils.sparse import binary

PROBES = 8
# Of P(G + λI)z = z for vectors z of ±1. An entry of it has the length of a row of P(G + λI) − I as its
# expected size, and weights are off by that times the length of a column of weights: far below 1e-6.
RESIDUAL = 1e-9
ALWAYS = 64  # rows at once that are never too many


def probes(items: int) -> NDArray[np.float64]:
    """Return vectors of ±1, (items, PROBES), the first rows of which are the same for any number."""
    bits = mixed(np.arange(items))[:, None] >> np.arange(PROBES, dtype=np.uint64)
    return 2.0 * (bits & np.uint64(1)).astype(np.float64) - 1.0


def probed(rows: sp.csr_matrix) -> NDArray[np.float64]:
    """Return RᵀR times the probes, (items, PROBES): integers, exact below 2⁵³."""
    ones = binary(rows)
    return np.asarray(ones.T @ (ones @ probes(rows.shape[1])))


def residual(
    inverse: NDArray[np.float64], products: NDArray[np.float64], regularization: float
) -> float:
    """Return by how much P(G + λI)z differs from z at most, of the probes z; `products` are Gz."""
    Z = probes(len(inverse))
    return float(np.abs(inverse @ (products + regularization * Z) - Z).max())


def changed_inverse(
    inverse: NDArray[np.float64], taken: sp.csr_matrix, added: sp.csr_matrix
) -> NDArray[np.float64]:
    """Return (A + addedᵀadded − takenᵀtaken)⁻¹ of A⁻¹: P − PUᵀ(S + UPUᵀ)⁻¹UP, S = ±1 of each row of U.

    It is a new array in Fortran order, symmetric, with both triangles filled like the given one. Refused
    are so many rows that a fit is cheaper, and a small matrix without an inverse.
    """
    U = binary(sp.csr_matrix(sp.vstack([added, taken])))
    signs = np.repeat([1.0, -1.0], [added.shape[0], taken.shape[0]])
    filled = np.flatnonzero(np.diff(U.indptr))
    U, signs = U[filled], signs[filled]
    k, m = U.shape
    if 4 * k > m and k > ALWAYS:  # 2km² operations and more beside, against m³
        raise InputError(
            f"{k:,} rows come and go at once, of {m:,} items: to fit again is cheaper than to update"
        )
    if k == 0:
        return np.array(inverse, order="F")
    Y = np.asarray(U @ inverse)
    try:
        X = solve(np.diag(signs) + U @ Y.T, Y, assume_a="sym")
    except LinAlgError:
        raise InputError("the update of EASE's inverse has no solution: fit again") from None
    out = blas.dgemm(-1.0, Y.T, X, beta=1.0, c=np.asfortranarray(inverse))
    mirror(out)
    return np.asarray(out)


# ---- kernels


@jit
def mirror(out):
    """Copy the upper triangle to the lower one."""
    for j in range(len(out)):
        for i in range(j):
            out[j, i] = out[i, j]
