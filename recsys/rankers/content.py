"""Content: items whose attributes are those of the user's items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.rankers._item_weights import weighted_sums
from recsys.rankers.base import Candidate, Ranker, Shares, Times, expect
from recsys.rankers.registry import RANKERS
from recsys.utils.docstrings import documented
from recsys.utils.recency import recency_weights
from recsys.utils.sparse import entries_of, unit_rows
from recsys.utils.validation import check_real


@RANKERS.add("content")
@documented
@dataclass(eq=False)
class Content(Ranker):
    """The cosine of an item's attributes to those of the user's items.

    An attribute that n of m items have weighs log(m / n)^idf, and the rows of items are scaled to unit
    length: x_i. The score of item j is Σ_i v_i ⟨x_i, x_j⟩ · (1 + log(1 + users of j))^popularity, i the
    user's items, of weights v_i by recency. Items without interactions are ranked like the others.

    Parameters
    ----------
    idf : float ≥ 0
        Exponent of the weights of attributes; 0 for all alike.
    popularity : float ≥ 0
        How much an item's number of users counts.

    Attributes
    ----------
    attributes_ : (items, attributes) float32 CSR
        x.
    prior_ : (items,) float32
        (1 + log(1 + users))^popularity.

    Notes
    -----
    Source of the cosine: Salton and Buckley 1988. Without item features all scores are 0.

    Examples
    --------
    >>> likes = [[1, 0, 0, 0], [0, 1, 1, 0]]
    >>> genres = [[1, 0], [0, 1], [0, 1], [1, 0]]
    >>> model = Content().fit(likes, show_progress=False, item_features=genres)
    >>> model.recommend(0, [likes[0]], N=1).ids
    array([3], dtype=int32)
    """

    idf: float = 1.0
    popularity: float = 0.0
    recency: float = 1.0
    ties: str | None = None

    name: ClassVar[str] = "content"
    reads_texts: ClassVar[bool] = True
    search_space: ClassVar[dict[str, Any]] = {
        "idf": ("real", 0.0, 2.0),
        "popularity": ("real", 0.0, 2.0),
        "recency": ("real", 0.0, 2.0, "times"),
    }
    candidates: ClassVar[tuple[Candidate, ...]] = (
        Candidate("", described=True),
        Candidate("idf=2,popularity=1", described=True),
    )

    def _check_parameters(self) -> None:
        for key in ("idf", "popularity", "recency"):
            check_real(key, getattr(self, key), 0.0)

    def _fit(
        self,
        liked: sp.csr_matrix,
        show_progress: bool,
        callback: Any,
        *,
        item_features: sp.csr_matrix | None = None,
    ) -> None:
        items = liked.shape[1]
        users = np.bincount(liked.indices, minlength=items)
        self.attributes_ = _weighed(item_features, items, self.idf)
        self.prior_ = ((1.0 + np.log1p(users)) ** self.popularity).astype(np.float32)
        self._make_weights()

    def _make_weights(self) -> None:
        """Keep the matrix that multiplies a history's attributes: xᵀ, the items scaled by the prior."""
        self._weights = sp.csr_matrix(self._item_vectors().T, dtype=np.float32)
        self._weights.sort_indices()

    def _item_vectors(self) -> sp.csr_matrix:
        """Return the rows of items that histories are multiplied with, of items without users, too."""
        return sp.diags(self.prior_) @ self.attributes_

    def _fold_in_scores(self, rows: sp.csr_matrix, times: Times = None) -> NDArray[np.float32]:
        votes = entries_of(rows, recency_weights(rows, times, self.recency))
        profiles = sp.csr_matrix(votes @ self.attributes_, dtype=np.float64)
        profiles.sort_indices()
        return weighted_sums(profiles, profiles.data, self._weights)

    def _explain(self, userid: int, row: sp.csr_matrix, item: int, times: Times = None) -> Shares:
        votes = recency_weights(row, times, self.recency)
        own = sp.csr_matrix(self.attributes_[row.indices], dtype=np.float64)
        shares = votes * np.asarray((own @ self._weights[:, [item]]).toarray(), np.float64).ravel()
        return float(shares.sum()), shares

    def _item_similarity(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return cosines."""
        some = sp.csr_matrix(self.attributes_[ids], dtype=np.float64)
        whole = sp.csr_matrix(self.attributes_.T)
        whole.sort_indices()
        return weighted_sums(some, some.data, whole)

    def common_attributes(self, item: int, other: int) -> NDArray[np.int64]:
        """Return which attributes two items have in common, those that make them most alike first.

        Parameters
        ----------
        item, other : int

        Returns
        -------
        (n,) int64
            Columns of the item features that were fitted.

        Examples
        --------
        >>> model = Content().fit([[1, 1, 1]], False, item_features=[[1, 1, 0], [1, 1, 1], [1, 0, 0]])
        >>> model.common_attributes(0, 1)
        array([1])
        """
        self._check_fitted()
        both = self.attributes_[[item]].multiply(self.attributes_[[other]]).tocsr()
        return np.asarray(both.indices[np.lexsort((both.indices, -both.data))], dtype=np.int64)

    def set_state(self, state: Any) -> Content:
        """Take over what `get_state` gave, checked as if it came from a stranger."""
        super().set_state(state)
        self._make_weights()
        return self

    def _check_state(self) -> None:
        x = self.attributes_
        if not sp.issparse(x) or x.shape[0] != self.n_items_ or x.dtype != np.float32:
            raise ValueError("attributes_ does not fit the items")
        expect("prior_", self.prior_, (self.n_items_,), np.float32)


def _weighed(features: sp.csr_matrix | None, items: int, idf: float) -> sp.csr_matrix:
    """Return tf-idf rows of unit length; an attribute of every item tells none apart."""
    if features is None:
        return sp.csr_matrix((items, 1), dtype=np.float32)
    x = sp.csr_matrix(features, dtype=np.float64)
    x.eliminate_zeros()
    x.sort_indices()
    having = np.bincount(x.indices, minlength=x.shape[1])
    weights = np.log(items / np.maximum(having, 1)) ** idf if idf else np.ones(x.shape[1])
    x.data *= weights[x.indices]
    x.eliminate_zeros()
    return sp.csr_matrix(unit_rows(x), dtype=np.float32)
