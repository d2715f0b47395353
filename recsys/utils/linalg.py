"""Leading singular vectors."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.errors import FitError

Array = NDArray[Any]


def leading_singular(
    A: Any, rank: int, *, passes: int, seed: int, oversamples: int = 10, flip_sign: bool = True
) -> tuple[Array, Array, Array]:
    """Return the leading singular vectors and values, U, s and Vᵀ, by scikit-learn's randomized SVD.

    A is (n, m), an array or sparse matrix of float32 or float64. LAPACK's fastest routine does not
    always converge in float32 where singular values repeat; then QR iterations in float64 do.
    """
    from sklearn.utils.extmath import randomized_svd  # late: it takes half a second

    options = {"n_oversamples": oversamples, "n_iter": passes, "flip_sign": flip_sign}
    svd = partial(randomized_svd, n_components=rank, random_state=seed, **options)
    try:
        U, s, Vt = svd(A)
    except np.linalg.LinAlgError:
        U, s, Vt = svd(A.astype(np.float64), svd_lapack_driver="gesvd")
    if not np.isfinite(s).all():
        raise FitError("a singular value decomposition did not converge: lower the number of factors")
    return U, s, Vt
