"""What the `fm` and `hofm` rankers share: a factorization machine's terms, by descent or by AdaGrad."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.fm import FactorizationMachineClassifier
from recsys.links import PairFactorizationMachine
from recsys.multilinear import PairTerm
from recsys.rankers._history import Factors
from recsys.rankers._pair_terms import HISTORY_LOSSES, PairTermRanker
from recsys.utils.validation import check_choice


class MachineRanker(PairTermRanker):
    """A factorization machine of some order on history and item."""

    loss: str

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("loss", self.loss, HISTORY_LOSSES)

    def _order(self) -> int:
        """Return the highest order of the products."""
        raise NotImplementedError

    def _model(self, **common: Any) -> Any:
        return PairFactorizationMachine(degree=self._order(), **common)

    def _terms(
        self, A: sp.csr_matrix, B: sp.csr_matrix, pairs: NDArray[np.int64], y: NDArray[np.int8]
    ) -> list[PairTerm]:
        if self.loss == "logistic":
            return super()._terms(A, B, pairs, y)
        m, d = self._order(), A.shape[1]
        model = FactorizationMachineClassifier(
            degree=m, n_components=self.factors, alpha=self.regularization, beta=self.regularization,
            loss=self.loss, solver="adagrad", max_iter=self.iterations, tol=0.0, batch_size=8,
            random_state=self.random_state,
        ).fit(sp.hstack([A[pairs[:, 0]], B[pairs[:, 1]]], format="csr"), y)  # fmt: skip
        terms = [_term(model.w_[:, None], d, 1)]
        return terms + [_term(P[0], d, t) for t, P in enumerate(model.P_, 2)]


def _term(P: Factors, d: int, degree: int) -> PairTerm:
    """Return a machine's order over rows of d features and items."""
    whole = np.ones(degree + 1)
    return PairTerm(whole, np.array(P[:d]), np.array(P[d:]), np.ones(P.shape[1]))
