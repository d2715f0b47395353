"""Windows of profiles: rows of interactions that came soon after each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.utils.recency import newer
from recsys.utils.sparse import owners


def parse_windows(given: Any) -> list[int]:
    """Return the lengths, integers from 2 on, that text such as "10-30-100" names; none for None."""
    if given is None:
        return []
    parts = str(given).split("-")
    lengths = [int(part) if part.strip().isdecimal() else 0 for part in parts]
    if isinstance(given, bool) or min(lengths) < 2 or len(set(lengths)) < len(lengths):
        raise InputError(
            f"windows must be different integers above 1 joined by -, as 10-30-100, not {given!r}"
        )
    return lengths


def window_rows(
    liked: sp.csr_matrix, times: NDArray[np.float64] | None, lengths: list[int]
) -> sp.csr_matrix:
    """Return whole profiles and, beneath, their windows of each of these lengths: CSR of ones.

    A window of length L holds the interactions with kL to (k + 1)L − 1 newer ones: windows are counted
    from the newest interaction, interactions of one time are never parted, and the oldest window may be
    shorter. A profile that is one window is there as the whole profile only. Without times, (nnz,),
    there are no windows.
    """
    if times is None or not lengths:
        return liked
    behind, owner = newer(liked.indptr, times), owners(liked)
    oldest = np.zeros(liked.shape[0], dtype=np.int64)
    np.maximum.at(oldest, owner, behind)
    parts = [liked]
    for length in lengths:
        chosen = oldest[owner] >= length
        which = owner[chosen] * np.int64(liked.shape[1] + 1) + behind[chosen] // length
        found, row = np.unique(which, return_inverse=True)
        cells = (liked.data[chosen], (row, liked.indices[chosen]))
        parts.append(sp.csr_matrix(cells, (len(found), liked.shape[1])))
    return sp.csr_matrix(sp.vstack(parts, format="csr"))
