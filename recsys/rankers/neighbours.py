"""Item neighbourhoods: MSDw, the asymmetric cosine that won the Million Song challenge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.checks import check_real
from recsys.kernels import item_gram, make_kernel
from recsys.rankers._dense import weighted_rows
from recsys.rankers._saved import RANKERS, SavedRanker, expect


class ItemWeights(SavedRanker):
    """A ranker whose scores sum rows of an item × item matrix over the liked items.

    `weights_[i, j]` is what liking item i adds to the score of item j.
    """

    weights_: NDArray[np.float32]

    def _scores(
        self, userids: NDArray[np.int64], rows: sp.csr_matrix, recalculate: bool
    ) -> NDArray[np.float32]:
        return weighted_rows(rows, np.ones(rows.nnz), self.weights_)

    def _explain(self, userid: int, row: sp.csr_matrix, item: int) -> tuple[float, NDArray[np.float64]]:
        shares = self.weights_[row.indices, item].astype(np.float64)
        return float(shares.sum()), shares

    def _item_similarity(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.weights_[ids]

    def _check_state(self) -> None:
        expect("weights_", self.weights_, (self.n_items_, self.n_items_), np.float32)


@RANKERS.add("msdw")
@dataclass(eq=False)
class MSDw(ItemWeights):
    """Asymmetric cosine: W_ij = (|U_i ∩ U_j| / (|U_i|^α |U_j|^(1−α)))^locality, i the candidate.

    Parameters
    ----------
    alpha : float in 0…1
        How much the candidate's popularity counts against it; ½ is the cosine.
    locality : float > 0
        Power of the weights; above 1 near neighbours count more.

    Notes
    -----
    Source: Polato's thesis, 5.1 (Aiolli 2013).
    """

    alpha: float = 0.3
    locality: float = 1.0

    name = "msdw"
    capabilities = frozenset({"fold-in", "explain", "similar-items"})

    def _check_parameters(self) -> None:
        check_real("alpha", self.alpha, 0.0, 1.0)
        check_real("locality", self.locality, 0.0, open_low=True)

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Any) -> None:
        weights = item_gram(liked, make_kernel("linear"), normalize=False)
        size = np.maximum(weights.diagonal(), 1.0).astype(np.float64)
        weights *= (size ** (self.alpha - 1.0)).astype(np.float32)[:, None]
        weights *= (size**-self.alpha).astype(np.float32)[None, :]
        if self.locality != 1.0:
            np.power(weights, np.float32(self.locality), out=weights)
        self.weights_ = weights
