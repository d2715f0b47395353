"""Collaborative filtering by optimising the margin distribution: what its rankers share.

Sources: Polato's thesis, 10.2 (CF-KOMD) and 10.1 (ECF-OMD).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import FitError
from recsys.kernels import Kernel, make_kernel
from recsys.kernels.gram.dense import centred_item_gram
from recsys.kernels.gram.structured import StructuredGram, structured_gram
from recsys.optim.simplex_qp import TOLERANCE
from recsys.rankers._gram_view import DenseView, GramView, StructuredView, prefers_dense
from recsys.rankers.base import Ranker, expect
from recsys.utils.memory import parse_memory
from recsys.utils.recency import recency_weights
from recsys.utils.validation import check_real, clean_matrix

# Weights of likes at least: a ridge that is larger by more than this would leave no digits to certify.
LEAST_WEIGHT = 1e-12


class KernelRanker(Ranker):
    """What the rankers over an item kernel share: the Gram matrix, in either form, and its row sums.

    Dense it is `gram_`; structured it is `correction_`, `classes_` and `table_`. Where the kernel's
    values tend to 1 the matrix is centred (`recsys.kernels.gram.dense.centred_item_gram`), and
    `offsets_` is what was taken from it.
    """

    gram_: NDArray[np.floating]
    correction_: sp.csr_matrix
    classes_: NDArray[np.int32]
    table_: NDArray[np.float64]
    offsets_: NDArray[np.float64]
    dtype_: str
    row_sums_: NDArray[np.float64]
    memory: Any = None
    regularization: float
    recency: float = 0.0

    def _kernel(self) -> Kernel:
        return make_kernel("linear")

    def _check_parameters(self) -> None:
        check_real("regularization", self.regularization, 0.0)
        check_real("recency", self.recency, 0.0)

    def _reads_times(self) -> bool:
        return self.recency > 0 and self.regularization > 0

    def _omega(self, rows: sp.csr_matrix, times: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """Return ω of each like: its ridge is λ_p/ω. All are 1 where λ_p is 0, whose ridges are none."""
        if not self._reads_times():
            return np.ones(rows.nnz)
        return np.maximum(recency_weights(rows, times, float(self.recency)), LEAST_WEIGHT)

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Any) -> None:
        budget = parse_memory(self.memory)
        dense = prefers_dense(liked, budget)
        kernel = self._kernel()
        if dense:
            self._keep(*centred_item_gram(liked, kernel))
        else:
            structured = structured_gram(liked, kernel, budget=budget, centring=True)
            self._keep(structured, structured.offsets)

    def _keep(
        self,
        gram: NDArray[np.floating] | StructuredGram,
        offsets: NDArray[np.float64] | None = None,
    ) -> None:
        """Keep a Gram matrix of either form, and nothing of an earlier fit."""
        for name in ("gram_", "correction_", "classes_", "table_", "offsets_", "dtype_"):
            vars(self).pop(name, None)
        if offsets is not None:
            self.offsets_ = offsets
            kept = gram.correction if isinstance(gram, StructuredGram) else gram
            self.dtype_ = str(kept.dtype)
        if isinstance(gram, StructuredGram):
            self.correction_, self.classes_, self.table_ = gram.correction, gram.classes, gram.table
            self.row_sums_ = gram.row_sums()
        else:
            self.gram_ = gram
            self.row_sums_ = gram.sum(axis=1, dtype=np.float64)

    @property
    def _gram(self) -> GramView:
        if hasattr(self, "gram_"):
            return DenseView(self.gram_)
        return StructuredView(StructuredGram(self.correction_, self.classes_, self.table_))

    def _item_similarity(self, ids: NDArray[np.int64]) -> NDArray[Any]:
        rows = self._gram.rows(ids)
        offsets = self._offsets()
        # In float64, whose digits order what float32 would tie.
        return rows if offsets is None else rows + offsets[ids][:, None] + offsets

    def _offsets(self) -> NDArray[np.float64] | None:
        """Return t where the matrix kept is K − tᵢ − tⱼ; None where it is K."""
        return getattr(self, "offsets_", None)

    def _certified(
        self, alpha: NDArray[np.float64], residuals: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the weights of programs that came to their end, or refuse them."""
        if residuals.max(initial=0.0) > 100 * TOLERANCE:
            raise FitError(
                f"a program stopped at residual {residuals.max():.1e}, above {TOLERANCE:.0e}: "
                "raise regularization"
            )
        return alpha, residuals

    def _check_state(self) -> None:
        m = self.n_items_
        expect("row_sums_", self.row_sums_, (m,), np.float64)
        kind: type = np.float32
        if hasattr(self, "offsets_"):
            expect("offsets_", self.offsets_, (m,), np.float64)
            kind = {"float32": np.float32, "float64": np.float64}[self.dtype_]
        if hasattr(self, "gram_"):
            expect("gram_", self.gram_, (m, m), kind)
            return
        size = len(self.table_)
        expect("table_", self.table_, (size, size), np.float64)
        expect("classes_", self.classes_, (m,), np.int32)
        if self.classes_.min() < 0 or self.classes_.max() >= size:
            raise ValueError("classes_ leaves its table")
        if self.correction_.shape != (m, m) or self.correction_.dtype != kind:
            raise ValueError("correction_ does not fit the items")


class MarginRanker(KernelRanker):
    """What the rankers with one small program per user share: the program, its scores, its shares.

    With `recency` each like has a ridge of its own, λ_p/ωᵢ with ωᵢ = (newer likes + 1)^−recency.

    With a centred kernel K' = K − tᵢ − tⱼ a user's scores are those of K less one number, Σ αᵢtᵢ less
    the mean of t over the items that q averages: weights and order are the same, and the items at the
    top keep their digits.
    """

    q: str = "exact"
    unrated: str = "kernel"

    def weights(self, user_items: Any, times: Any = None) -> tuple[sp.csr_matrix, NDArray[np.float64]]:
        """Solve the programs of the given rows.

        Parameters
        ----------
        user_items : (users, items) sparse matrix
        times : (users, items) sparse matrix, optional
            When each like happened; all are equally recent when not given. Read where `recency` and
            `regularization` are above 0.

        Returns
        -------
        weights : (users, items) float64 CSR
            α of each row, on the pattern of its liked items, zeros stored; they sum to 1.
        residuals : (users,) float64
            Largest violation of the optimality conditions, at most 1e-6; 0 for empty rows.

        Raises
        ------
        InputError, NotFittedError
        """
        self._check_fitted()
        rows = clean_matrix(user_items, n_items=self.n_items_)
        alpha, residuals = self._solve(rows, self._times_of_rows(None, rows, times))
        return sp.csr_matrix((alpha, rows.indices, rows.indptr), rows.shape), residuals

    def _solve(
        self, rows: sp.csr_matrix, times: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        offsets = self._offsets()
        lone = np.zeros(self.n_items_) if offsets is None else -offsets
        ridge, omega = float(self.regularization), self._omega(rows, times)
        return self._certified(
            *self._gram.solve(rows, self.row_sums_, lone, self.q == "exact", ridge, omega)
        )

    def _fold_in_scores(
        self, rows: sp.csr_matrix, times: NDArray[np.float64] | None = None
    ) -> NDArray[np.floating]:
        alpha, _ = self._solve(rows, times)
        lengths = np.diff(rows.indptr)
        # q needs the kernel rows that the weights need: one pass serves both.
        share = self._share(lengths)
        if self.q == "exact":
            alpha = alpha + np.repeat(share, lengths)
        out = self._gram.weighted(rows, alpha, self.row_sums_, share)
        offsets = self._offsets()
        if offsets is not None and (share == 0).any():  # who likes everything has no q to centre with
            out[share == 0] += offsets
        known = self.popularity_ > 0
        if self.unrated == "mean" and not known.all():
            out[:, ~known] = out[:, known].mean(axis=1, dtype=np.float64)[:, None]
        return out

    def _share(self, lengths: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return one over the number of items that q averages; 0 where there is none."""
        others = self.n_items_ - (lengths if self.q == "exact" else 0 * lengths)
        return np.divide(1.0, others, out=np.zeros(len(lengths)), where=others > 0)

    def _explain(
        self, userid: int, row: sp.csr_matrix, item: int, times: NDArray[np.float64] | None = None
    ) -> tuple[float, NDArray[np.float64]]:
        """Share αᵢ(Kᵢⱼ − qⱼ) of liked item i in item j's score, α held fixed."""
        if self.unrated == "mean" and self.popularity_[item] == 0:
            score = self._fold_in_scores(row, times)[0, item]
            return float(score), np.zeros(row.nnz)
        alpha, _ = self._solve(row, times)
        similarity = self._gram.entries(row.indices, item)
        inside = similarity.sum() if self.q == "exact" else 0.0
        share = self._share(np.array([row.nnz]))[0]
        q = (self.row_sums_[item] - inside) * share
        offsets = self._offsets()
        if offsets is None:
            shares = alpha * (similarity - q)
            return float(shares.sum()), shares
        if share == 0:
            q -= offsets[item]
        score = float(alpha @ (similarity - q))
        # The shares are those of K itself; what centring took from the score is the bias.
        mine = offsets[row.indices]
        mean = (offsets.sum() - (mine.sum() if self.q == "exact" else 0.0)) * share
        return score, alpha * (similarity - q + mine - mean)
