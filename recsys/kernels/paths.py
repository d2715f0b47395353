"""Gram matrices of all degrees up to one, each from the one before (thesis, 6.5).

For a curve over the degree this costs one elementwise product a degree, where calling the
kernel anew looks every pair up again. Where a binomial leaves float64 on its way, that entry is
looked up from there on: C(2000, 1000) is infinite, C(2000, 1999) is 2000.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys.kernels.base import binary_rows
from recsys.kernels.boolean import log_binomials, log_choices, shares_hit
from recsys.utils.validation import check_choice, check_integer


def degree_path(name: str, X: ArrayLike, up_to: int) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield (degree, raw Gram matrix) of mc, md, c or d for the degrees 1…up_to.

    Parameters
    ----------
    name : "mc", "md", "c" or "d"
    X : (rows, n) array or sparse matrix
        An entry above 0 counts as 1.
    up_to : int
        From 1 to n. Values beyond float64 are infinite, all others finite.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Examples
    --------
    >>> from recsys.kernels import degree_path
    >>> [(d, float(K[0, 1])) for d, K in degree_path("mc", [[1, 1, 1], [1, 1, 0]], 3)]
    [(1, 2.0), (2, 1.0), (3, 0.0)]
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
    total, single, pair = np.ones(1), np.ones(len(size)), np.ones_like(dot)
    n_all = np.array([float(n)])
    for d in range(1, up_to + 1):
        total, pair = _next(total, n_all, d), _next(pair, base, d)
        if name in ("mc", "c"):
            yield d, pair
        elif name == "d":
            with np.errstate(over="ignore"):
                yield d, (np.exp2(float(d)) - 2.0) * total[0] + pair
        else:
            single = _next(single, free, d)
            if np.isfinite(total[0]):
                # In pairs that are equal where a vector is null, so that 0 is 0.
                yield d, (total - single[:, None]) - (single[None, :] - pair)
            else:  # differences of infinite numbers: by shares, as the kernel itself
                h = shares_hit(n, d)
                a = size.astype(np.int64)
                union = a[:, None] + a[None, :] - dot.astype(np.int64)
                with np.errstate(over="ignore", divide="ignore"):
                    logs = np.log(h[a][:, None] - (h[union] - h[a][None, :]))
                    yield d, np.exp(logs + log_choices(float(n), d))


def _next(before: NDArray[np.float64], k: NDArray[np.float64], d: int) -> NDArray[np.float64]:
    """Return C(k, d) from C(k, d − 1)."""
    with np.errstate(over="ignore", invalid="ignore"):
        # Also for k < d, where a factor has become 0. A product below 2⁵³ has an exact quotient.
        out = before * np.maximum(k - d + 1, 0.0) / d
        lost = ~np.isfinite(before)
        if lost.any():
            at = k[lost].astype(np.int64)
            out[lost] = np.exp(log_binomials(int(at.max()), d)[at])
    return out
