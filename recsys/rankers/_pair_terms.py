"""Base of rankers by products of a history's and an item's features: terms with two sides."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.multilinear import PairTerm, object_tables
from recsys.multilinear.losses import loss_names
from recsys.rankers._feature_shares import ExplainedRanker, Products
from recsys.rankers._history import Factors, FeatureRanker, HistoryRanker
from recsys.rankers.base import expect

# of a pair of history and item alone, or of a liked item against one that is not
HISTORY_LOSSES = ("logistic", *loss_names(pairwise=True))
SEARCHED: dict[str, Any] = {"factors": (4, 8, 16), "regularization": ("log", 1e-6, 1e-3)}


class PairTerms(FeatureRanker):
    """A ranker by products of up to `degree` features of history and item: their two sides."""

    degrees_: list[int]
    whole_: list[bool]
    lefts_: list[Factors]
    item_vectors_: NDArray[np.float32]
    link: ClassVar[str]  # the link predictor of `recsys.links` that learns the terms

    def _model(self, **params: Any) -> Any:
        """Return the unfitted link predictor."""
        import recsys.links  # late: it imports scikit-learn

        return getattr(recsys.links, self.link)(**params)

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

    def _check_state(self) -> None:
        self._check_user_features()
        width = 0
        features = self._width(self.n_items_)
        for m, whole, left in zip(self.degrees_, self.whole_, self.lefts_, strict=True):
            if not isinstance(m, int) or not 1 <= m <= 10:
                raise ValueError("a degree is out of range")
            expect("lefts_", left, (features, left.shape[-1]), np.float64)
            width += left.shape[1] * len(powers(m, bool(whole)))
        expect("item_vectors_", self.item_vectors_, (self.n_items_, max(width, 1)), np.float32)


class PairTermRanker(ExplainedRanker, PairTerms, HistoryRanker):
    """A ranker whose scores are sums of products of up to `degree` features of history and item."""

    factors: int
    regularization: float
    iterations: int
    random_state: int
    search_space: ClassVar[dict[str, Any]] = SEARCHED

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

    def _feature_shares(self, A: sp.csr_matrix, item: int) -> NDArray[np.float64]:
        """Share a product of t features of the history evenly among them (Aumann–Shapley).

        For a term of order t in the history: share_j = a_j ∂/∂a_j ÷ t, which sum to the term.
        """
        shares, at = np.zeros(A.nnz), 0
        vector = self.item_vectors_[item].astype(np.float64)
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
                        shares += vector[at] * slopes[t] / t
                    at += 1
        return shares

    def _products(self, A: sp.csr_matrix, item: int) -> Products:
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


def powers(degree: int, whole: bool) -> range:
    """Return the orders t of the row side: all where a term is of the concatenation, else 1…m − 1."""
    return range(degree + 1) if whole else range(1, degree)
