"""Collaborative filtering by optimising the margin distribution: CF-KOMD, ECF-OMD, CF-OMD.

A user's weights α over the liked items minimise αᵀKα + λ_p‖α‖² − 2αᵀq on the simplex, with
q the mean kernel value to the items not liked; an item's score is Σᵢ αᵢK(i, ·) − q(·).
Source: Polato's thesis, 5.2, 10.1 and 10.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import parallel
from recsys.errors import FitError, InputError
from recsys.kernels import Kernel, make_kernel
from recsys.kernels.item_gram.dense import centred_item_gram
from recsys.kernels.item_gram.structured import StructuredGram, cooccurrence, structured_gram
from recsys.optim.simplex_qp import TOLERANCE
from recsys.rankers._gram_view import prefers_dense, solve_programs, weighted_structured
from recsys.rankers._margin_programs import programs, programs_parallel
from recsys.rankers._scoring import weighted_rows
from recsys.rankers._updates import CountUpdates
from recsys.rankers.serialization import RANKERS, SavedRanker, expect
from recsys.utils.memory import check_memory, parse_memory
from recsys.utils.sparse import owners
from recsys.utils.validation import check_choice, check_real, clean_matrix

# Each pairwise step costs a pass over the profile; no program has needed a hundredth of these.
MAX_STEPS = 200_000


class KernelRanker(SavedRanker):
    """What the rankers over an item kernel share: the Gram matrix, in either form, and its row sums.

    Dense it is `gram_`; structured it is `correction_`, `classes_` and `table_`. Where the kernel's
    values tend to 1 the matrix is centred (`recsys.kernels.item_gram.dense.centred_item_gram`), and
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

    def _kernel(self) -> Kernel:
        return make_kernel("linear")

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
    def _structured(self) -> StructuredGram | None:
        if hasattr(self, "gram_"):
            return None
        return StructuredGram(self.correction_, self.classes_, self.table_)

    def _entries(self, rows: NDArray[np.int32], item: int) -> NDArray[np.float64]:
        """Return the kernel between some items and one."""
        gram = self._structured
        if gram is None:
            return self.gram_[rows, item].astype(np.float64)
        return gram.sub(rows, [item])[:, 0]

    def _item_similarity(self, ids: NDArray[np.int64]) -> NDArray[Any]:
        gram = self._structured
        rows = self.gram_[ids] if gram is None else gram.rows(ids)
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

    With a centred kernel K' = K − tᵢ − tⱼ a user's scores are those of K less one number, Σ αᵢtᵢ less
    the mean of t over the items that q averages: weights and order are the same, and the items at the
    top keep their digits.
    """

    regularization: float
    q: str = "exact"
    unrated: str = "kernel"

    def weights(self, user_items: Any) -> tuple[sp.csr_matrix, NDArray[np.float64]]:
        """Solve the programs of the given rows.

        Parameters
        ----------
        user_items : (users, items) sparse matrix

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
        alpha, residuals = self._solve(rows)
        return sp.csr_matrix((alpha, rows.indices, rows.indptr), rows.shape), residuals

    def _solve(self, rows: sp.csr_matrix) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        lengths = np.diff(rows.indptr)
        longest = int(lengths.max(initial=1))
        order = np.argsort(-lengths, kind="stable")
        alpha, residuals = np.empty(rows.nnz), np.zeros(rows.shape[0])
        exact = self.q == "exact"
        offsets = self._offsets()
        lone = np.zeros(self.n_items_) if offsets is None else -offsets
        gram = self._structured
        if gram is not None:
            check_memory(8 * longest**2, f"the program of a user with {longest:,} items")
            ridge = float(self.regularization)
            alpha, residuals = solve_programs(
                rows, gram, self.row_sums_, lone, exact, ridge, TOLERANCE, MAX_STEPS
            )
            return self._certified(alpha, residuals)
        shared = (
            order,
            rows.indptr,
            rows.indices.view(np.uint32),
            self.gram_,
            self.row_sums_,
            lone,
            exact,
            float(self.regularization),
            TOLERANCE,
            MAX_STEPS,
            longest,
            alpha,
            residuals,
        )
        if rows.shape[0] <= 1:
            programs(0, 1, *shared)
        else:
            with parallel() as threads:
                check_memory(8 * threads * longest**2, f"the program of a user with {longest:,} items")
                programs_parallel(threads, *shared)
        return self._certified(alpha, residuals)

    def _scores(
        self, userids: NDArray[np.int64], rows: sp.csr_matrix, recalculate: bool
    ) -> NDArray[np.float32]:
        alpha, _ = self._solve(rows)
        lengths = np.diff(rows.indptr)
        # q needs the kernel rows that the weights need: one pass serves both.
        share = self._share(lengths)
        if self.q == "exact":
            alpha = alpha + np.repeat(share, lengths)
        gram = self._structured
        if gram is None:
            out = weighted_rows(rows, alpha, self.gram_, self.row_sums_, share)
        else:
            out = weighted_structured(rows, alpha, gram, self.row_sums_, share)
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

    def _explain(self, userid: int, row: sp.csr_matrix, item: int) -> tuple[float, NDArray[np.float64]]:
        """Share αᵢ(Kᵢⱼ − qⱼ) of liked item i in item j's score, α held fixed."""
        if self.unrated == "mean" and self.popularity_[item] == 0:
            score = self._scores(np.array([userid]), row, False)[0, item]
            return float(score), np.zeros(row.nnz)
        alpha, _ = self._solve(row)
        similarity = self._entries(row.indices, item)
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


@RANKERS.add("cf-komd")
@dataclass(eq=False)
class CFKOMD(CountUpdates, MarginRanker):
    """Kernelised CF-OMD: one small quadratic program per user, on the liked items' kernel.

    The kernel is normalised to unit diagonal; adding a constant to it changes neither
    weights nor ranking. Where its values tend to 1 (disjunctions of high degree, literals on sparse
    data) it is centred on the item that everybody, or nobody, likes: the same weights and order, with
    the digits that K has lost; scores then say how much more speaks for an item than for that one.

    Parameters
    ----------
    kernel : str
        Name of a kernel over item vectors, `recsys.kernels.list_kernels()`.
    degree : int ≥ 1, optional
        Degree of a one-degree kernel; its own default when not given.
    regularization : float ≥ 0
        λ_p of (10.2).
    q : "exact" or "mean"
        Mean over the items not liked (10.3), or over all items (10.5), which is cheaper by
        little and off by at most 2·(liked items)/(items).
    votes : float ≥ 0
        Users count |profile|^−votes in the linear kernel; 0 for the thesis' kernel. The identities
        that need counts (generality, decomposition) do not hold for it, those of dot products do.
    memory : str or int, optional
        Budget of the item matrix: "4GB" or bytes; three quarters of what is free when not given.
        Beyond a small catalogue the matrix is kept as a table over popularities and a sparse
        correction wherever that is smaller; the scores are the same up to rounding.
    unrated : "kernel" or "mean"
        Score of an item nobody has: what (10.4) gives for its null vector, or the mean of
        the other items' scores, as if it were an average item. The thesis does not say;
        under kernels of high degree the null vector ranks below everything.
    kernel_params : dict, optional
        Further parameters of the kernel.
    """

    kernel: str = "linear"
    degree: int | None = None
    regularization: float = 0.01
    q: str = "exact"
    unrated: str = "kernel"
    votes: float = 0.0
    memory: str | int | None = None
    kernel_params: dict[str, Any] | None = None

    name = "cf-komd"
    capabilities = frozenset({"fold-in", "explain", "similar-items"})
    extra_parameters: ClassVar[str | None] = "kernel_params"

    def _kernel(self) -> Kernel:
        degree = {} if self.degree is None else {"degree": self.degree}
        return make_kernel(self.kernel, **degree, **(self.kernel_params or {}))

    def _check_parameters(self) -> None:
        check_real("regularization", self.regularization, 0.0)
        check_choice("q", self.q, ("exact", "mean"))
        check_choice("unrated", self.unrated, ("kernel", "mean"))
        parse_memory(self.memory)
        if check_real("votes", self.votes, 0.0) and self.kernel not in ("linear", "ml"):
            raise InputError(f"votes weigh the linear kernel only, not {self.kernel}")
        self._kernel()

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Any) -> None:
        if not self.votes:
            super()._fit(liked, show_progress, callback)
            self._remember(liked)
            return
        budget = parse_memory(self.memory)
        lengths = np.maximum(np.diff(liked.indptr), 1).astype(np.float64)
        counts = cooccurrence(liked, lengths**-self.votes, budget)
        own = counts.diagonal().astype(np.float64)
        scale = 1.0 / np.sqrt(np.where(own > 0, own, 1.0))
        owner = owners(counts)
        counts.data = (counts.data * scale[owner] * scale[counts.indices]).astype(np.float32)
        counts.setdiag(1.0)
        one_class = np.zeros(len(own), dtype=np.int32)
        structured = StructuredGram(counts, one_class, np.zeros((1, 1)))
        self._keep(counts.toarray() if prefers_dense(liked, budget) else structured)

    def _counted(self) -> bool:
        return self.kernel in ("linear", "ml") and not self.votes


@RANKERS.add("ecf-omd")
@dataclass(eq=False)
class ECFOMD(CountUpdates, MarginRanker):
    """Efficient CF-OMD: the normalised linear kernel and the exact q (10.1), CF-OMD with λ_n = ∞.

    Parameters
    ----------
    regularization : float ≥ 0
        λ_p of (10.1).
    memory : str or int, optional
        As in `cf-komd`.
    """

    regularization: float = 0.1
    memory: str | int | None = None

    name = "ecf-omd"
    capabilities = frozenset({"fold-in", "explain", "similar-items"})

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Any) -> None:
        super()._fit(liked, show_progress, callback)
        self._remember(liked)

    def _check_parameters(self) -> None:
        check_real("regularization", self.regularization, 0.0)
        parse_memory(self.memory)
