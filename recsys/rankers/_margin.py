"""Collaborative filtering by optimising the margin distribution: what its rankers share.

Sources: Polato's thesis, 10.2 (CF-KOMD) and 10.1 (ECF-OMD).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import FitError, InputError
from recsys.kernels import Kernel, make_kernel
from recsys.kernels.gram.counts import ItemCounts, check_counts, dense_counts, sparse_counts
from recsys.kernels.gram.dense import centred_gram
from recsys.kernels.gram.rows import ItemRows, check_item_rows, item_rows
from recsys.kernels.gram.structured import StructuredGram
from recsys.optim.simplex_qp import TOLERANCE, Solution, solve_simplex
from recsys.rankers._gram_view import DenseView, GramView, prefers_dense, prefers_rows
from recsys.rankers._row_view import RowView
from recsys.rankers._structured_view import StructuredView
from recsys.rankers.base import Ranker, Shares, Times
from recsys.utils.memory import parse_memory
from recsys.utils.recency import recency_weights
from recsys.utils.sparse import entries_of, owners
from recsys.utils.validation import check_choice, check_real, clean_matrix

# Weights of interactions at least: a ridge that is larger by more than this would leave no digits to
# certify.
LEAST_WEIGHT = 1e-12
LOOSEST = 100 * TOLERANCE  # residual of a program whose steps ended


def certified(
    weights: NDArray[np.float64],
    residuals: NDArray[np.float64],
    program: Callable[[int], tuple[Any, Any, Solution]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return weights and residuals of programs that are all solved, or refuse them.

    The few whose residuals are above the tolerance are solved again, with pairwise steps: program(u)
    returns where the weights of user u are, their signs and the solution.
    """
    for u in np.flatnonzero(residuals > TOLERANCE).tolist():
        where, sign, solution = program(u)
        weights[where], residuals[u] = sign * solution.weights, solution.residual
    if residuals.max(initial=0.0) > LOOSEST:
        raise FitError(
            f"a program stopped at residual {residuals.max():.1e}, above {LOOSEST:.0e}: "
            "raise regularization"
        )
    return weights, residuals


class KernelRanker(Ranker):
    """Base of the rankers over an item kernel: counts of pairs, and the kernel as a view of them.

    The counts are `together_` and `sizes_` over `vectors_` rows (`recsys.kernels.gram.counts`); in CSR
    `order_` maps positions to items. Where the counts would take too much memory (`prefers_rows`), the
    rows of interactions are stored instead, as `rows_` (`recsys.kernels.gram.rows`), and pairs are
    counted on demand. A file holds nothing else. The Gram matrix is computed when it is first needed, so
    that `set_params` may change kernel and degree of a fitted ranker. Where the kernel's values tend to
    1 the matrix is centred (`recsys.kernels.gram.dense.centred_gram`), and `offsets_` holds what was
    subtracted.

    Parameters
    ----------
    regularization : float ≥ 0
        λ_p of (10.2).
    recency : float ≥ 0
        As in `cf-komd`.
    """

    together_: Any
    sizes_: NDArray[Any]
    vectors_: int
    order_: NDArray[np.int32]
    rows_: sp.csr_matrix
    counting_: str
    memory: Any = None
    regularization: float
    recency: float = 0.0
    _derived: tuple[Any, GramView, NDArray[np.float64], NDArray[np.float64] | None] | None = None

    def _kernel(self) -> Kernel:
        return make_kernel("linear")

    def _check_parameters(self) -> None:
        check_real("regularization", self.regularization, 0.0)
        check_real("recency", self.recency, 0.0)

    def _reads_times(self) -> bool:
        return self.recency > 0 and self.regularization > 0

    def _omega(self, rows: sp.csr_matrix, times: Times) -> NDArray[np.float64]:
        """Return ω of each interaction; its ridge is λ_p/ω. Return ones where λ_p is 0."""
        if not self._reads_times():
            return np.ones(rows.nnz)
        return np.maximum(recency_weights(rows, times, float(self.recency)), LEAST_WEIGHT)

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Any) -> None:
        self._keep(self._count(liked))
        self.prepare()

    def _count(self, rows: sp.csr_matrix) -> ItemCounts | ItemRows:
        """Return the counts of these rows, in whichever form is smaller and fits the memory."""
        budget = parse_memory(self.memory)
        if prefers_dense(rows, budget):
            return dense_counts(rows)
        if prefers_rows(rows, budget):
            return item_rows(rows)
        return sparse_counts(rows, None, budget)

    def _votes(self) -> float:
        """Return the exponent by which long rows count less."""
        return 0.0

    def _counting(self) -> str:
        """Return the parameters that counts depend on, as text; empty for none."""
        return ""

    def _keep(self, counts: ItemCounts | ItemRows) -> None:
        """Keep counts of any form, and nothing of earlier ones."""
        for name in ("order_", "together_", "rows_"):
            vars(self).pop(name, None)
        self.sizes_, self.vectors_ = counts.sizes, counts.vectors
        if isinstance(counts, ItemRows):
            self.rows_ = counts.rows
        else:
            self.together_ = counts.together
            if counts.order is not None:
                self.order_ = counts.order
        self.counting_ = self._counting()
        self._derived = None

    @property
    def counts(self) -> ItemCounts | ItemRows:
        """The co-occurrences of all item pairs, or the rows of interactions from which they are counted.

        Raises
        ------
        NotFittedError
        """
        if not hasattr(self, "sizes_"):
            self._check_fitted()
        if "rows_" in vars(self):
            return ItemRows(self.rows_, self.sizes_, self.vectors_, self._votes())
        return ItemCounts(self.together_, self.sizes_, self.vectors_, getattr(self, "order_", None))

    def prepare(self) -> Self:
        """Make the Gram matrix of the present kernel now, which the first call would wait for.

        Raises
        ------
        InputError
            If a parameter is out of range, the matrix does not fit the memory, or counts were made with
            other parameters that they depend on.
        """
        self._view()
        return self

    def _key(self) -> Any:
        """Return the key of the view: the state besides the counts on which it depends."""
        return self._kernel()

    def _view(self) -> tuple[Any, GramView, NDArray[np.float64], NDArray[np.float64] | None]:
        key, kept = (self._key(), self._counting()), self._derived
        if kept is None or kept[0] != key:
            if key[1] != self.counting_:
                raise InputError(
                    f"this {self.name} counted pairs with {self.counting_}, not {key[1]}: fit again"
                )
            kept = self._derived = (key, *self._derive(self.counts))
        return kept

    def _derive(
        self, counts: ItemCounts | ItemRows
    ) -> tuple[GramView, NDArray[np.float64], NDArray[np.float64] | None]:
        """Return the view of the counts, its row sums, and what centring took."""
        if isinstance(counts, ItemRows):
            view = RowView(counts, self._kernel())
            return view, view.row_sums(), view.offsets
        if counts.dense:
            gram, offsets = centred_gram(counts, self._kernel())
            return DenseView(gram), gram.sum(axis=1, dtype=np.float64), offsets
        structured = StructuredGram(
            counts, self._kernel(), centring=True, budget=parse_memory(self.memory)
        )
        return StructuredView(structured), structured.row_sums(), structured.offsets

    @property
    def kernel_(self) -> Kernel:
        """The kernel over items that scores are made with, normalised to unit diagonal.

        Raises
        ------
        AttributeError
            Where it is a combination of several.
        """
        return self._kernel()

    def signed_weights(self, user_items: Any, times: Any = None) -> NDArray[np.float64]:
        """Return yᵢαᵢ of all items: a row's scores are K @ these weights.

        Parameters
        ----------
        user_items : (users, items) sparse matrix
        times : (users, items) sparse matrix, optional
            As in `weights`.

        Returns
        -------
        (users, items) float64
            Those of interactions sum to 1, those of what stands against them to −1; all are 0 for an
            empty row, whose scores are popularity. Of a centred kernel (`offsets_`) K is what it was
            before, and K @ these weights differs from the scores by one number a row.

        Raises
        ------
        InputError, NotFittedError
        """
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without the view, which is made again."""
        return {key: value for key, value in vars(self).items() if key != "_derived"}

    @property
    def _gram(self) -> GramView:
        return self._view()[1]

    @property
    def gram_(self) -> NDArray[np.floating]:
        """The dense Gram matrix, (items, items) float32 or float64, of the present kernel.

        Raises
        ------
        AttributeError
            Where it is not dense.
        """
        view = self._gram if "sizes_" in vars(self) else None
        if not isinstance(view, DenseView):
            raise AttributeError("the Gram matrix is not dense")
        return view.gram

    @property
    def row_sums_(self) -> NDArray[np.float64]:
        """Sums of the Gram matrix' rows, (items,) float64."""
        return self._view()[2]

    @property
    def offsets_(self) -> NDArray[np.float64]:
        """The centring t, (items,) float64: the Gram matrix is K − tᵢ − tⱼ.

        Raises
        ------
        AttributeError
            Where it is K itself.
        """
        offsets = self._offsets() if "sizes_" in vars(self) else None
        if offsets is None:
            raise AttributeError("the Gram matrix is not centred")
        return offsets

    def _item_similarity(self, ids: NDArray[np.int64]) -> NDArray[Any]:
        rows = self._gram.rows(ids)
        offsets = self._offsets()
        # In float64, whose digits order what float32 would tie.
        return rows if offsets is None else rows + offsets[ids][:, None] + offsets

    def _offsets(self) -> NDArray[np.float64] | None:
        """Return t where the matrix kept is K − tᵢ − tⱼ; None where it is K."""
        return self._view()[3]

    def _check_state(self) -> None:
        self._derived = None
        if "gram_" in vars(self) or "correction_" in vars(self):
            raise ValueError("it was written before counts were kept: fit again")
        if type(self.vectors_) is not int or self.vectors_ < 1 or not isinstance(self.counting_, str):
            raise ValueError("vectors_ should be an integer above 0, counting_ text")
        if self.counting_ != self._counting():
            raise ValueError("counting_ does not fit the parameters")
        most = self.n_users_
        if getattr(self, "windows", None) is not None:  # one for each interaction and length at most
            most += int(self.sizes_.sum())
        if not self.n_users_ <= self.vectors_ <= most:
            raise ValueError("vectors_ does not fit the users")
        counts = self.counts
        if isinstance(counts, ItemRows):
            check_item_rows(counts, self.n_items_)
        else:
            check_counts(counts, self.n_items_)


class MarginRanker(KernelRanker):
    """Base of the rankers with a small program per user: the program, its scores, its shares.

    With `recency` each interaction has a ridge of its own, λ_p/ωᵢ with ωᵢ = (newer interactions +
    1)^−recency.

    With a centred kernel K' = K − tᵢ − tⱼ a user's scores are those of K less one number, Σ αᵢtᵢ less
    the mean of t over the items that q averages: weights and order are the same, and the items at the
    top keep their digits.

    Parameters
    ----------
    q : "exact" or "mean"
        As in `cf-komd`.
    unrated : "kernel" or "mean"
        As in `cf-komd`.
    """

    q: str = "exact"
    unrated: str | None = "kernel"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("q", self.q, ("exact", "mean"))
        if self.unrated is not type(self).unrated:  # None is the default of some
            check_choice("unrated", self.unrated, ("kernel", "mean"))

    def _imputes(self) -> bool:
        """Return whether a cold item scores as the mean of the others."""
        return self.unrated == "mean"

    def weights(self, user_items: Any, times: Any = None) -> tuple[sp.csr_matrix, NDArray[np.float64]]:
        """Solve the programs of the given rows.

        Parameters
        ----------
        user_items : (users, items) sparse matrix
        times : (users, items) sparse matrix, optional
            When each interaction happened; all are equally recent when not given. Read where `recency`
            and `regularization` are above 0.

        Returns
        -------
        weights : (users, items) float64 CSR
            α of each row, on the pattern of its liked items, zeros stored; they sum to 1.
        residuals : (users,) float64
            Largest violation of the optimality conditions: at most 5e-7 where the program converged,
            5e-5 where its steps ended; 0 for empty rows.

        Raises
        ------
        FitError
            If a program is further from its solution.
        InputError, NotFittedError
        """
        self._check_fitted()
        rows = clean_matrix(user_items, n_items=self.n_items_)
        alpha, residuals = self._solve(rows, self._times_of_rows(None, rows, times))
        return entries_of(rows, alpha), residuals

    def signed_weights(self, user_items: Any, times: Any = None) -> NDArray[np.float64]:
        """Return yᵢαᵢ of all items, (users, items) float64: α of liked items less 1 over the items of q.

        As in `KernelRanker.signed_weights`. With q = "mean" a liked item is also one of those that q
        averages; a user with all items has none to average under the exact q.
        """
        self._check_fitted()
        rows = clean_matrix(user_items, n_items=self.n_items_)
        alpha, _ = self._solve(rows, self._times_of_rows(None, rows, times))
        lengths = np.diff(rows.indptr)
        out = np.repeat(-self._share(lengths)[:, None], self.n_items_, axis=1)
        liked = owners(rows), rows.indices
        out[liked] = alpha + (out[liked] if self.q == "mean" else 0.0)
        out[lengths == 0] = 0.0
        return out

    def _solve(
        self, rows: sp.csr_matrix, times: Times
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        offsets = self._offsets()
        q_all = np.zeros(self.n_items_) if offsets is None else -offsets
        ridge, omega = float(self.regularization), self._omega(rows, times)
        exact, m = self.q == "exact", self.n_items_
        alpha, residuals = self._gram.solve(rows, self.row_sums_, q_all, exact, ridge, omega)

        def program(u: int) -> tuple[slice, Any, Solution]:  # as `_margin_programs.solve_one` poses it
            span = slice(rows.indptr[u], rows.indptr[u + 1])
            items = rows.indices[span]
            K = self._gram.rows(items)[:, items]
            if not exact:
                q = self.row_sums_[items] / m
            elif len(items) < m:
                q = (self.row_sums_[items] - K.sum(0, dtype=np.float64)) / (m - len(items))
            else:
                q = q_all[items]
            return span, 1.0, solve_simplex(K, q, ridge=ridge / omega[span])

        return certified(alpha, residuals, program)

    def _fold_in_scores(self, rows: sp.csr_matrix, times: Times = None) -> NDArray[np.floating]:
        return self._summed(rows, *self._sums(rows, times))

    def _summed(
        self, rows: sp.csr_matrix, alpha: NDArray[np.float64], share: NDArray[np.float64]
    ) -> NDArray[np.floating]:
        """Return the scores of what `_sums` gave."""
        out = self._gram.weighted(rows, alpha, self.row_sums_, share)
        offsets = self._offsets()
        if offsets is not None and (share == 0).any():  # no q to centre with for users with all items
            out[share == 0] += offsets
        known = self.popularity_ > 0
        if self._imputes() and not known.all():
            out[:, ~known] = out[:, known].mean(axis=1, dtype=np.float64)[:, None]
        return out

    def _sums(
        self, rows: sp.csr_matrix, times: Times
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return how often the liked items' rows count in each score, and the sums of all rows.

        q needs the kernel rows that the weights need: one pass serves both.
        """
        alpha, _ = self._solve(rows, times)
        lengths = np.diff(rows.indptr)
        share = self._share(lengths)
        if self.q == "exact":
            alpha = alpha + np.repeat(share, lengths)
        return alpha, share

    def _share(self, lengths: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return one over the number of items that q averages; 0 where there is none."""
        others = self.n_items_ - (lengths if self.q == "exact" else 0 * lengths)
        return np.divide(1.0, others, out=np.zeros(len(lengths)), where=others > 0)

    def _explain_items(  # type: ignore[override]
        self, userid: int, row: sp.csr_matrix, items: NDArray[np.int64], times: Times = None
    ) -> list[Shares]:
        alpha, _ = self._solve(row, times)
        return [self._shares(row, alpha, item, times) for item in items.tolist()]

    def _shares(self, row: sp.csr_matrix, alpha: NDArray[np.float64], item: int, times: Times) -> Shares:
        """Share αᵢ(Kᵢⱼ − qⱼ) of liked item i in item j's score, α held fixed."""
        if self._imputes() and self.popularity_[item] == 0:
            score = self._fold_in_scores(row, times)[0, item]
            return float(score), np.zeros(row.nnz)
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
