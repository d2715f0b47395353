"""Base of the rankers `fm` and `hofm`: a factorization machine's terms, fitted by descent or AdaGrad."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.multilinear import PairTerm
from recsys.rankers._history import Factors
from recsys.rankers._pair_terms import HISTORY_LOSSES, PairTermRanker
from recsys.utils.validation import check_choice, check_real

# `recsys.fm` and `recsys.links` are imported by calls: scikit-learn takes most of a second.
if TYPE_CHECKING:
    from recsys.fm import FactorizationMachineClassifier


class MachineRanker(PairTermRanker):
    """A factorization machine of some order on history and item.

    Parameters
    ----------
    loss : "logistic", "bpr" or "auc"
        Of pairs of history and item alone, by coordinate descent; or of a liked one against one that is
        not (logistic, squared hinge), by AdaGrad, which takes longer.
    penalty : "l2", "l1", "ti", "l21", "cs", "omega", "l1-power" or "l21-power"
        What is added to the squared norms, to choose features and interactions: `recsys.fm.penalties`.
    gamma : float ≥ 0
        Regularization strength.
    solver : "auto" or a solver of `recsys.fm`
        "auto" descends on the objects of the pairs where the penalty takes one entry at a time, and is
        otherwise the first solver that serves it.
    """

    loss: str
    penalty: str
    gamma: float
    solver: str
    degree: int  # the highest order of the products
    link: ClassVar[str] = "PairFactorizationMachine"

    def _check_parameters(self) -> None:
        from recsys.fm.penalties import PENALTIES
        from recsys.fm.solvers import solver_names

        super()._check_parameters()
        check_choice("loss", self.loss, HISTORY_LOSSES)
        check_choice("penalty", self.penalty, tuple(PENALTIES.names()))
        check_choice("solver", self.solver, ("auto", *solver_names()))
        check_real("gamma", self.gamma, 0.0)
        if not self._on_pairs():
            self._machine()._check_parameters()

    def _on_pairs(self) -> bool:
        """Return whether coordinate descent on the objects of the pairs serves."""
        from recsys.links.pairwise import PAIR_PENALTIES

        return self.loss == "logistic" and self.penalty in PAIR_PENALTIES and self.solver == "auto"

    def _model(self, **common: Any) -> Any:
        return super()._model(degree=self.degree, penalty=self.penalty, gamma=self.gamma, **common)

    def _machine(self) -> FactorizationMachineClassifier:
        """Return the machine on the concatenated features of history and item."""
        from recsys.fm import FactorizationMachineClassifier
        from recsys.fm.penalties import PENALTIES

        solver = self.solver
        if solver == "auto" and self.loss != "logistic":
            solver = "adagrad"
        elif solver == "auto":
            solver = "block" if PENALTIES.get(self.penalty).prox_row else "nmapgd"
        return FactorizationMachineClassifier(
            degree=self.degree, n_components=self.factors, alpha=self.regularization,
            beta=self.regularization, gamma=self.gamma, loss=self.loss, penalty=self.penalty,
            solver=solver, max_iter=self.iterations, tol=0.0, batch_size=8,
            random_state=self.random_state,
        )  # fmt: skip

    def _terms(
        self, A: sp.csr_matrix, B: sp.csr_matrix, pairs: NDArray[np.int64], y: NDArray[np.int8]
    ) -> list[PairTerm]:
        if self._on_pairs():
            return super()._terms(A, B, pairs, y)
        from sklearn.exceptions import ConvergenceWarning

        rows = sp.hstack([A[pairs[:, 0]], B[pairs[:, 1]]], format="csr")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # `iterations` says how long to go on
            model = self._machine().fit(rows, y)
        d = A.shape[1]
        terms = [term_of(model.w_[:, None], d, 1)]
        return terms + [term_of(P[0], d, t) for t, P in enumerate(model.P_, 2)]


def term_of(P: Factors, d: int, degree: int, weight: float = 1.0) -> PairTerm:
    """Return a machine's order over rows of d features and items, each component of one weight."""
    whole = np.ones(degree + 1)
    return PairTerm(whole, np.array(P[:d]), np.array(P[d:]), np.full(P.shape[1], weight))
