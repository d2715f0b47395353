"""CF-OMD: the full program of the margin distribution, over liked and other items.

Source: Polato's thesis, 5.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import in_parts, parallel
from recsys.kernels.gram.counts import dense_counts
from recsys.optim.simplex_qp import TOLERANCE, Solution, solve_simplex
from recsys.rankers._margin import KernelRanker, certified
from recsys.rankers._margin_programs import full_programs
from recsys.rankers._scoring import weighted_rows
from recsys.rankers.base import Shares, Times
from recsys.rankers.registry import RANKERS
from recsys.utils.memory import check_memory
from recsys.utils.validation import check_real, clean_matrix


@RANKERS.add("cf-omd")
@dataclass(eq=False)
class CFOMD(KernelRanker):
    """CF-OMD: the full program over liked and other items of every user (5.7).

    Its cost per user is quadratic in the number of items; ECF-OMD is the affordable form.

    Parameters
    ----------
    regularization : float ≥ 0
        λ_p, on the liked items.
    negative_regularization : float ≥ 0
        λ_n, on the other items; the larger, the closer to ECF-OMD.
    recency : float ≥ 0
        As in `cf-komd`, for the liked items.

    Examples
    --------
    >>> likes = [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    >>> model = CFOMD().fit(likes, show_progress=False)
    >>> model.recommend(0, [likes[0]], N=1).ids
    array([2], dtype=int32)
    """

    regularization: float = 0.1
    negative_regularization: float = 1000.0
    recency: float = 0.0

    name: ClassVar[str] = "cf-omd"
    offered: ClassVar[tuple[str, ...]] = ()  # its fit is too long for a page
    dense: ClassVar[bool] = True
    search_space: ClassVar[dict[str, Any]] = {
        "regularization": ("log", 1e-3, 10.0),
        "recency": ("real", 0.0, 2.0, "times"),
        "negative_regularization": ("log", 1.0, 1e5),
    }

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Any) -> None:
        self._keep(dense_counts(liked))
        self.prepare()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("negative_regularization", self.negative_regularization, 0.0)

    def weights(
        self, user_items: Any, times: Any = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Solve the programs of the given rows.

        Parameters
        ----------
        user_items : (users, items) sparse matrix
        times : (users, items) sparse matrix, optional
            As in `cf-komd`.

        Returns
        -------
        weights : (users, items) float64
            αᵢ of liked items, −αᵢ of the others; each side sums to 1 in magnitude.
        residuals : (users,) float64
            Largest violation of the optimality conditions, at most 5e-5 and as a rule below 1e-6.

        Raises
        ------
        InputError, NotFittedError
        FitError
            If a program stops above that bound.
        """
        self._check_fitted()
        rows = clean_matrix(user_items, n_items=self.n_items_)
        return self._solve(rows, self._times_of_rows(None, rows, times))

    def signed_weights(self, user_items: Any, times: Any = None) -> NDArray[np.float64]:
        """Return yᵢαᵢ of all items, (users, items) float64, as in `KernelRanker.signed_weights`."""
        return self.weights(user_items, times)[0]

    def _solve(
        self, rows: sp.csr_matrix, times: Times
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        users, m = rows.shape
        signed, residuals, omega = np.zeros((users, m)), np.zeros(users), self._omega(rows, times)
        shared = (
            rows.indptr,
            rows.indices,
            self.gram_,
            float(self.regularization),
            float(self.negative_regularization),
            omega,
            TOLERANCE,
            signed,
            residuals,
        )
        if users <= 1:
            full_programs(0, 1, *shared)
        else:
            with parallel() as threads:
                check_memory(4 * threads * m * m, f"the programs over {m:,} items")
                in_parts(threads, full_programs, *shared)

        def program(u: int) -> tuple[int, NDArray[np.float64], Solution]:
            span = slice(rows.indptr[u], rows.indptr[u + 1])
            sign, ridge = np.full(m, -1.0), np.full(m, float(self.negative_regularization))
            sign[rows.indices[span]] = 1.0
            ridge[rows.indices[span]] = self.regularization / omega[span]
            return u, sign, solve_simplex(self.gram_, sign=sign, ridge=ridge)

        return certified(signed, residuals, program)

    def _fold_in_scores(self, rows: sp.csr_matrix, times: Times = None) -> NDArray[np.floating]:
        signed, _ = self._solve(rows, times)
        return weighted_rows(sp.csr_matrix(np.ones(rows.shape)), signed.ravel(), self.gram_)

    def _explain(self, userid: int, row: sp.csr_matrix, item: int, times: Times = None) -> Shares:
        """Share αᵢ(Kᵢⱼ − Σₙ αₙKₙⱼ) of liked item i, n over the items not liked."""
        signed, _ = self._solve(row, times)
        column = self.gram_[:, item].astype(np.float64)
        negative = -(np.minimum(signed[0], 0.0) @ column)
        shares = signed[0][row.indices] * (column[row.indices] - negative)
        return float(signed[0] @ column), shares
