"""Base of rankers by products of a history's and an item's features: terms with two sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.multilinear import PairTerm, object_tables
from recsys.multilinear.losses import loss_names
from recsys.rankers._history import Factors, HistoryRanker
from recsys.rankers.base import expect
from recsys.utils.validation import check_ids

# of a pair of history and item alone, or of a liked item against one that is not
HISTORY_LOSSES = ("logistic", *loss_names(pairwise=True))
SEARCHED: dict[str, Any] = {"factors": (4, 8, 16), "regularization": ("log", 1e-6, 1e-3)}


class Products(NamedTuple):
    """A score as a sum: base + Σ singles + Σ pairs + higher.

    Parameters
    ----------
    features : (n,) int
        Of the history: those of the user, then the items' known features, then the items.
    base : float
        The item's own.
    singles : (n,) float64
        What each feature adds, with the item.
    pairs : (n, n) float64
        What each two add together, above the diagonal.
    higher : float
        What more than two add together.

    Examples
    --------
    >>> one = Products(np.array([3]), 0.5, np.array([0.25]), np.zeros((1, 1)), 0.0)
    >>> one.base + one.singles.sum()
    np.float64(0.75)
    """

    features: NDArray[np.int32]
    base: float
    singles: NDArray[np.float64]
    pairs: NDArray[np.float64]
    higher: float


class PairTermRanker(HistoryRanker):
    """A ranker whose scores are sums of products of up to `degree` features of history and item.

    Parameters
    ----------
    factors : int ≥ 1
        Rank.
    regularization : float ≥ 0
    neg_prop : int ≥ 1
        Items not liked that are drawn for each liked one.
    iterations : int ≥ 1
        Passes over the pairs.
    random_state : int ≥ 0
    """

    factors: int
    regularization: float
    iterations: int
    random_state: int
    degrees_: list[int]
    whole_: list[bool]
    lefts_: list[Factors]
    search_space: ClassVar[dict[str, Any]] = SEARCHED

    def _model(self, **common: Any) -> Any:
        """Return the unfitted link predictor that learns the terms."""
        raise NotImplementedError

    def _learn(self, liked: sp.csr_matrix) -> None:
        found = self._training_pairs(liked)
        if found is None:
            self._keep([])
            self.item_vectors_ = self._popularities(liked)
            return
        terms = self._terms(*found)
        self._keep(terms)
        self.item_vectors_ = self._item_vectors(terms, found[1])

    def _terms(
        self, A: sp.csr_matrix, B: sp.csr_matrix, pairs: NDArray[np.int64], y: NDArray[np.int8]
    ) -> list[PairTerm]:
        """Return the fitted terms."""
        model = self._model(
            n_components=self.factors, beta=self.regularization, max_iter=self.iterations,
            random_state=self.random_state, tol=1e-4,
        )  # fmt: skip
        return model.fit(A, B, pairs, y).terms_

    def _keep(self, terms: list[PairTerm]) -> None:
        """Keep the row side of the terms."""
        self.degrees_ = [term.degree for term in terms]
        self.whole_ = [bool(term.coefficients[0]) for term in terms]
        self.lefts_ = [np.ascontiguousarray(term.left) for term in terms]

    def _item_vectors(self, terms: list[PairTerm], B: sp.csr_matrix) -> NDArray[np.float32]:
        """Return the item side, evaluated on every item's features, (items, factors)."""
        vectors = []
        for term in terms:
            m = term.degree
            for s in range(term.left.shape[1]):
                table = object_tables(B, term.right[:, s], m)
                for t in powers(m, bool(term.coefficients[0])):
                    vectors.append(term.weights[s] * table[:, m - t])
        return np.ascontiguousarray(np.array(vectors).T, dtype=np.float32)

    def _row_vectors(self, rows: sp.csr_matrix, users: NDArray[np.int64] | None = None) -> Factors:
        """Return the row side, (rows, factors); in the order of `item_vectors_`."""
        if not self.degrees_:
            return np.ones((rows.shape[0], 1))
        A, out = self._rows(rows, users), []
        for m, whole, left in zip(self.degrees_, self.whole_, self.lefts_, strict=True):
            for s in range(left.shape[1]):
                table = object_tables(A, np.ascontiguousarray(left[:, s]), m)
                out += [table[:, t] for t in powers(m, whole)]
        return np.array(out).T

    def _explain(self, userid: int, row: sp.csr_matrix, item: int) -> tuple[float, NDArray[np.float64]]:
        return self._explain_row(np.array([userid]), row, item)

    def _explain_folded_in(self) -> Callable[..., list[tuple[float, NDArray[np.float64]]]]:
        """Return what explains scores of rows of unknown users, without features of users."""
        return lambda userid, row, items, **timed: [
            self._explain_row(None, row, item) for item in items.tolist()
        ]

    def _explain_row(
        self, users: NDArray[np.int64] | None, row: sp.csr_matrix, item: int
    ) -> tuple[float, NDArray[np.float64]]:
        """Share a product of t features of the history evenly among them (Aumann–Shapley).

        For a term of order t in the history: share_j = a_j ∂/∂a_j ÷ t, which sum to the term.
        """
        scores = self._fold_in_scores(row) if users is None else self._scores(users, row)
        score = float(scores[0, item])
        shares = np.zeros(row.nnz)
        A = self._rows(row, users)
        at = 0
        vector = self.item_vectors_[item].astype(np.float64)
        per_item = self._item_rows(row, A)
        for m, whole, left in zip(self.degrees_, self.whole_, self.lefts_, strict=True):
            for s in range(left.shape[1]):
                p = np.ascontiguousarray(left[:, s])
                table = object_tables(A, p, m)[0]
                slopes = np.zeros((m + 1, A.nnz))  # ∂A^t/∂a_j·a_j of each feature
                z = p[A.indices] * A.data
                b = np.ones(A.nnz)
                for t in range(1, m + 1):
                    slopes[t] = z * b
                    b = table[t] - z * b
                for t in powers(m, whole):
                    if t > 0:
                        shares += per_item @ (vector[at] * slopes[t] / t)
                    at += 1
        return score, shares

    def products(
        self, userid: int, row: sp.csr_matrix, item: int, *, recalculate_user: bool = False
    ) -> Products:
        """Return the contributions to a score of single features of a history and of pairs of features.

        Parameters
        ----------
        userid : int
        row : (1, items) CSR
            The history.
        item : int
        recalculate_user : bool
            As in `explain`.

        Raises
        ------
        InputError, NotFittedError
            As `explain`.
        """
        self._check_fitted()
        check_ids("item", item, self.n_items_)
        A = self._rows(row, None if recalculate_user else np.array([userid]))
        base, higher, at = 0.0, 0.0, 0
        singles, pairs = np.zeros(A.nnz), np.zeros((A.nnz, A.nnz))
        vector = self.item_vectors_[item].astype(np.float64)
        for m, whole, left in zip(self.degrees_, self.whole_, self.lefts_, strict=True):
            for s in range(left.shape[1]):
                p = np.ascontiguousarray(left[:, s])
                table, z = object_tables(A, p, m)[0], p[A.indices] * A.data
                for t in powers(m, whole):
                    if t == 0:
                        base += vector[at]
                    elif t == 1:
                        singles += vector[at] * z
                    elif t == 2:
                        pairs += vector[at] * np.outer(z, z)
                    else:
                        higher += float(vector[at] * table[t])
                    at += 1
        if not self.degrees_:
            base = float(vector[0])
        return Products(A.indices.copy(), base, singles, np.triu(pairs, 1), higher)

    def _item_rows(self, row: sp.csr_matrix, A: sp.csr_matrix) -> sp.csr_matrix:
        """Return how much of each feature of the history comes from each liked item, (liked, nnz)."""
        people = sp.csr_matrix((row.nnz, self._people))
        items = self._items(row.shape[1])[row.indices]
        B = sp.hstack([people, items], format="csc")[:, A.indices].tocsc()
        totals = np.asarray(B.sum(axis=0)).ravel()
        scale = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals != 0)
        return sp.csr_matrix(B @ sp.diags(scale))

    def _check_state(self) -> None:
        self._check_people()
        width = 0
        features = self._width(self.n_items_)
        for m, whole, left in zip(self.degrees_, self.whole_, self.lefts_, strict=True):
            if not isinstance(m, int) or not 1 <= m <= 10:
                raise ValueError("a degree is out of range")
            expect("lefts_", left, (features, left.shape[-1]), np.float64)
            width += left.shape[1] * len(powers(m, bool(whole)))
        expect("item_vectors_", self.item_vectors_, (self.n_items_, max(width, 1)), np.float32)


def powers(degree: int, whole: bool) -> range:
    """Return the orders t of the row side: all where a term is of the concatenation, else 1…m − 1."""
    return range(degree + 1) if whole else range(1, degree)
