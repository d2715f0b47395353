"""Decompositions that end in an answer or in advice.

LAPACK's first choice for singular values and eigenvalues divides and conquers. It is the fastest, and it
does not always converge: repeated values, as sparse tables of many components have, can stop it in
float32. Each function here tries the usual routine first, so that its results stay what they are, then
slower ones that converge where it does not, and raises FitError if none does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import FitError

RANK = 1e-13  # eigenvalues below this share of the largest one are rounding
Array = NDArray[Any]


def leading_singular(
    A: Any, rank: int, *, passes: int, seed: int, oversamples: int = 10, flip_sign: bool = True
) -> tuple[Array, Array, Array]:
    """Return the leading singular vectors and values, U, s and Vᵀ, by scikit-learn's randomized SVD.

    A is (n, m), an array or sparse matrix of float32 or float64. Where the SVD does not converge: in
    float64; by QR iterations (gesvd) in float64; from the eigenvectors of the Gram matrix of the shorter
    side; else FitError.
    """
    from sklearn.utils.extmath import randomized_svd  # late: it takes half a second

    usual = partial(
        randomized_svd,
        n_components=rank,
        n_oversamples=oversamples,
        n_iter=passes,
        random_state=seed,
        flip_sign=flip_sign,
    )
    return first_converged(
        "a singular value decomposition did not converge: lower the number of factors",
        [
            lambda: usual(A),
            lambda: usual(A.astype(np.float64)),
            lambda: usual(A.astype(np.float64), svd_lapack_driver="gesvd"),
            lambda: _from_gram(A, rank),
        ],
    )


def symmetric_eigen(A: Array) -> tuple[Array, Array]:
    """Return the eigenvalues of a symmetric matrix, ascending, and its eigenvectors as columns."""
    return first_converged(
        "an eigendecomposition did not converge: scale the features, or raise the regularization",
        [
            lambda: tuple(np.linalg.eigh(A)),
            lambda: scipy.linalg.eigh(A, driver="ev"),
            lambda: scipy.linalg.eigh(np.asarray(A, dtype=np.float64), driver="evr"),
        ],
    )


def symmetric_eigenvalues(A: Array) -> Array:
    """Return the eigenvalues of a symmetric matrix, ascending; errors as `symmetric_eigen`."""
    return first_converged(
        "eigenvalues did not converge: scale the features, or raise the regularization",
        [lambda: np.linalg.eigvalsh(A), lambda: symmetric_eigen(A)[0]],
    )


def spectral_norm(A: Array) -> float:
    """Return the largest singular value of a matrix; errors as `symmetric_eigen`."""
    return first_converged(
        "a spectral norm did not converge: scale the features",
        [
            lambda: float(np.linalg.norm(A, 2)),
            lambda: float(np.sqrt(max(symmetric_eigenvalues(A.T @ A)[-1], 0.0))),
        ],
    )


def solve_symmetric(A: Array, b: Array) -> Array:
    """Return A⁻¹b of a symmetric matrix, by its LU factors.

    Where rounding has left it singular, what its eigenvectors give: the shortest solution.
    """
    return first_converged(
        "a linear system has no solution: raise the regularization, or scale the features",
        [lambda: np.linalg.solve(A, b), lambda: _by_eigenvectors(A, b)],
    )


def least_squares(A: Array, b: Array) -> Array:
    """Return the shortest x of least ‖Ax − b‖, (m,)."""
    return first_converged(
        "a least-squares problem has no solution: raise the regularization",
        [
            lambda: np.linalg.lstsq(A, b, rcond=None)[0],
            lambda: scipy.linalg.lstsq(A, b, lapack_driver="gelss")[0],
            lambda: scipy.linalg.lstsq(A, b, lapack_driver="gelsy")[0],
        ],
    )


def first_converged(advice: str, ways: Sequence[Callable[[], Any]]) -> Any:
    """Return the result of the first method that converges to finite numbers; FitError if none does.

    It is an array, a number or a tuple of arrays. `advice` is what the error says.
    """
    for way in ways:
        try:
            found = way()
        except np.linalg.LinAlgError:  # SciPy's is the same class
            continue
        except ValueError as error:
            # What SciPy says of NaN or infinity: what was given is no longer a matrix of numbers.
            if "infs or NaNs" not in str(error) and "NaN" not in str(error):
                raise
            continue
        if all(np.isfinite(part).all() for part in (found if isinstance(found, tuple) else (found,))):
            return found
    raise FitError(advice)


def _by_eigenvectors(A: Array, b: Array) -> Array:
    sizes, along = symmetric_eigen(A)
    kept = np.abs(sizes) > RANK * np.abs(sizes).max(initial=0.0)
    V = along[:, kept]
    return np.asarray(V @ ((V.T @ b).T / sizes[kept]).T)


def _from_gram(A: Any, rank: int) -> tuple[Array, Array, Array]:
    """Return U, s and Vᵀ from the eigenvectors of AAᵀ or AᵀA, whichever is smaller."""
    A = A.astype(np.float64)
    if A.shape[0] < A.shape[1]:
        V, s, Ut = _from_gram(A.T, rank)
        return Ut.T, s, V.T
    G = A.T @ A
    squares, along = symmetric_eigen(G.toarray() if sp.issparse(G) else G)
    s, V = np.sqrt(np.maximum(squares[::-1][:rank], 0.0)), along[:, ::-1][:, :rank]
    return np.asarray(A @ V) / np.where(s > 0, s, 1.0), s, V.T
