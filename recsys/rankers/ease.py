"""EASE: the ridge regression of every item on the others, by one inverse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numba
import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack

from recsys._jit import jit, parallel
from recsys.errors import FitError
from recsys.kernels import item_gram, make_kernel
from recsys.rankers._item_weights import ItemWeights
from recsys.rankers.base import Candidate
from recsys.rankers.registry import RANKERS
from recsys.utils.memory import check_memory
from recsys.utils.validation import check_real


@RANKERS.add("ease")
@dataclass(eq=False)
class EASE(ItemWeights):
    """EASE: the ridge regression of every item on the others, in closed form.

    With P = (RᵀR + λI)⁻¹ the weights are B_ij = −P_ij/P_jj off the diagonal, 0 on it. A
    constant item (liked by all) or one liked by nobody is as good as any other.

    Parameters
    ----------
    regularization : float > 0
        λ, in units of users.
    recency : float ≥ 0
        A like that k newer ones follow in its profile counts (k + 1)^−recency, where times are given;
        0 for all alike.

    Notes
    -----
    Source: Steck, Embarrassingly shallow autoencoders for sparse data, 2019.

    Examples
    --------
    >>> likes = [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    >>> model = EASE(regularization=1.0).fit(likes, show_progress=False)
    >>> model.recommend(0, [likes[0]], N=1).ids
    array([2], dtype=int32)
    """

    regularization: float = 500.0
    recency: float = 0.0

    name: ClassVar[str] = "ease"
    compared: ClassVar[tuple[str, ...]] = ("",)
    dense: ClassVar[bool] = True
    search_space: ClassVar[dict[str, Any]] = {
        "regularization": ("log", 10.0, 5000.0),
        "recency": ("real", 0.0, 2.0, "times"),
    }
    candidates: ClassVar[tuple[Candidate, ...]] = (
        Candidate("regularization=100"),
        Candidate("regularization=400"),
        Candidate("regularization=1500"),
        Candidate("regularization=1500,recency=0.5", timed=True),
        Candidate("regularization=3000,recency=1", timed=True),
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("regularization", self.regularization, 0.0, open_low=True)

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Any) -> None:
        items = liked.shape[1]
        check_memory(16 * items * items, f"EASE on {items:,} items")
        gram = np.asfortranarray(item_gram(liked, make_kernel("linear"), normalize=False), np.float64)
        gram[np.diag_indices(items)] = np.diff(liked.tocsc().indptr) + self.regularization
        factor, failed = lapack.dpotrf(gram, lower=False, overwrite_a=True, clean=False)
        if failed == 0:
            inverse, failed = lapack.dpotri(factor, lower=False, overwrite_c=True)
        if failed:
            raise FitError(
                f"EASE cannot invert its matrix: raise regularization ({self.regularization:g})"
            )
        out = np.empty((items, items), dtype=np.float32)
        with parallel():
            _negate_and_scale(inverse, out)
        self.weights_ = out


# ---- kernels


@jit(parallel=True)
def _negate_and_scale(inverse, out):
    """out_ij = −P_ij / P_jj off the diagonal; only the upper triangle of P is filled."""
    m = len(out)
    for i in numba.prange(m):
        for j in range(i + 1, m):
            out[i, j] = -inverse[i, j] / inverse[j, j]
        for j in range(i):
            out[i, j] = -inverse[j, i] / inverse[j, j]
        out[i, i] = 0.0
