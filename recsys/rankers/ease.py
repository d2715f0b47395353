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
from recsys.rankers._gram_view import SMALL
from recsys.rankers._item_weights import ItemWeights
from recsys.rankers._sparse_inverse import sparse_inverse_weights
from recsys.rankers.base import DENSE_ITEMS, Candidate
from recsys.rankers.registry import RANKERS
from recsys.utils.memory import free_memory, parse_memory
from recsys.utils.validation import check_integer, check_real

TOP_K = 200  # of a sparse inverse where none is asked for


@RANKERS.add("ease")
@dataclass(eq=False)
class EASE(ItemWeights):
    """EASE: the ridge regression of every item on the others, in closed form.

    With P = (RᵀR + λI)⁻¹ the weights are B_ij = −P_ij/P_jj off the diagonal, 0 on it. A
    constant item (liked by all) or one liked by nobody is as good as any other.

    Where every pair of items does not fit in memory, or `top_k` is given, P is a sparse approximate
    inverse: each item is regressed on the items most like it alone, exactly.

    Parameters
    ----------
    regularization : float > 0
        λ, in units of users.
    top_k : int ≥ 1, optional
        Predict each item from the `top_k` items with the largest cosines at most; from the number of
        other items on that is EASE itself, and the dense inverse is taken where it fits. Where it is not
        given and the dense inverse does not fit, 200, or what fits. Takes items · top_k³ operations.
    memory : str or int, optional
        Budget, such as "4GB", for the inverse in either form; what is free where not given.
    recency : float ≥ 0
        A like that k newer ones follow in its profile counts (k + 1)^−recency, where times are given;
        0 for all alike.

    Notes
    -----
    Sources: Steck, Embarrassingly shallow autoencoders for sparse data, 2019, and Markov random fields
    for collaborative filtering, 2019, for the regressions on few items. Spišák et al., Scalable
    approximate nonsymmetric autoencoder for collaborative filtering (SANSA), 2023, have the same aim by
    an incomplete Cholesky factor and its incomplete inverse, which is not what is done here: of the
    same size, that came out less accurate on Gowalla.

    Examples
    --------
    >>> likes = [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    >>> model = EASE(regularization=1.0).fit(likes, show_progress=False)
    >>> model.recommend(0, [likes[0]], N=1).ids
    array([2], dtype=int32)
    """

    regularization: float = 500.0
    top_k: int | None = None
    memory: str | int | None = None
    recency: float = 0.0

    name: ClassVar[str] = "ease"
    compared: ClassVar[tuple[str, ...]] = ("",)
    search_space: ClassVar[dict[str, Any]] = {
        "regularization": ("log", 10.0, 5000.0),
        "recency": ("real", 0.0, 2.0, "times"),
    }
    candidates: ClassVar[tuple[Candidate, ...]] = (
        Candidate("regularization=100", most_items=DENSE_ITEMS),
        Candidate("regularization=400", most_items=DENSE_ITEMS),
        Candidate("regularization=1500", most_items=DENSE_ITEMS),
        Candidate("regularization=1500,recency=0.5", most_items=DENSE_ITEMS, timed=True),
        Candidate("regularization=3000,recency=1", most_items=DENSE_ITEMS, timed=True),
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("regularization", self.regularization, 0.0, open_low=True)
        if self.top_k is not None:
            check_integer("top_k", self.top_k, 1)
        parse_memory(self.memory)

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Any) -> None:
        items = liked.shape[1]
        budget = parse_memory(self.memory) or free_memory()
        every = self.top_k is None or self.top_k >= items - 1
        if not (every and 16 * items * items <= budget):
            fewer = self.top_k is None
            top_k = min(self.top_k or TOP_K, items)
            found = sparse_inverse_weights(liked, self.regularization, top_k, budget, fewer)
            self.weights_ = found.toarray() if 4 * items * items <= SMALL else found
            return
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
