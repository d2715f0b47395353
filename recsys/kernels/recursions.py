"""Gram matrices of all degrees up to one, each from the one before (thesis, 6.5).

For a curve over the degree this costs one elementwise product a degree, where calling the
kernel anew looks every pair up again.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys.checks import check_choice, check_integer
from recsys.kernels.base import binary_rows


def degree_path(name: str, X: ArrayLike, up_to: int) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield (degree, raw Gram matrix) of mc, md, c or d for the degrees 1…up_to.

    Parameters
    ----------
    name : "mc", "md", "c" or "d"
    X : (rows, n) array or sparse matrix
        An entry above 0 counts as 1.
    up_to : int
        From 1 to n. Values beyond float64 become infinite.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    check_choice("name", name, ("mc", "md", "c", "d"))
    A = binary_rows(X, "X")
    n = A.shape[1]
    check_integer("up_to", up_to, 1, n)
    dot = (A @ A.T).toarray().astype(np.float64)
    size = np.diff(A.indptr).astype(np.float64)
    return _path(name, dot, size, n, up_to)


def _path(
    name: str, dot: NDArray[np.float64], size: NDArray[np.float64], n: int, up_to: int
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    free = n - size  # N_x
    neither = free[:, None] - size[None, :] + dot  # N_xz
    base = {"mc": dot, "md": neither}.get(name, neither + dot)
    total, single, pair = 1.0, np.ones(len(size)), np.ones_like(dot)
    for d in range(1, up_to + 1):
        # C(k, d) = C(k, d−1)·(k − d + 1)/d, also for k < d, where a factor has become 0
        total *= (n - d + 1) / d
        pair = pair * (np.maximum(base - d + 1, 0.0) / d)
        if name in ("mc", "c"):
            yield d, pair
        elif name == "d":
            yield d, (2.0**d - 2.0) * total + pair
        else:
            single = single * (np.maximum(free - d + 1, 0.0) / d)
            yield d, total - single[:, None] - single[None, :] + pair
