"""Content: items whose attributes are those of the user's items."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.rankers.base import Candidate, Data, Ranker, Rows
from recsys.rankers.protocol import Floats, Ints, Users, real
from recsys.rankers.registry import register_ranker
from recsys.rankers.scoring import LinearRanker, sparse_sums
from recsys.utils.sparse import unit_rows


@register_ranker("content")
class Content(LinearRanker):
    """Cosine similarity between the attributes of an item and of the user's items.

    An attribute of n of m items has the weight log(m / n)^idf; the attribute vectors x_i of items have
    unit length. The score of item j is Σ_i v_i ⟨x_i, x_j⟩ · (1 + log(1 + users of j))^popularity over
    the user's items i with weights v_i by recency. Items without interactions are ranked like other
    items. Source of the cosine: Salton and Buckley 1988. Without item features all scores are 0.

    Parameters
    ----------
    idf : float ≥ 0
        Exponent of the weights of attributes; 0 for equal weights.
    popularity : float ≥ 0
        Exponent of the popularity of items.

    Other parameters: as of `Ranker`.

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

    checks = Ranker.checks | {"idf": real(), "popularity": real()}
    uses = frozenset({"item_features", "item_texts", "times"})
    search_space = {
        "idf": ("real", 0.0, 2.0),
        "popularity": ("real", 0.0, 2.0),
        "recency": ("real", 0.0, 2.0, "times"),
    }
    candidates = (
        Candidate("", described=True),
        Candidate("idf=2,popularity=1", described=True),
    )

    def _fit(self, data: Data) -> None:
        items = data.liked.shape[1]
        users = np.bincount(data.liked.indices, minlength=items)
        self.attributes_ = _weighted(data.item_features, items, self.idf)
        self.prior_ = ((1.0 + np.log1p(users)) ** self.popularity).astype(np.float32)
        self.scores_of_attributes_ = sp.csr_matrix(self.attributes_.T @ sp.diags(self.prior_))

    def _item_vectors(self) -> sp.csr_matrix:
        return self.scores_of_attributes_

    def _scores(self, rows: Rows, users: Users = None) -> NDArray[np.float32]:
        profiles = self._weighed(rows) @ self.attributes_
        return sparse_sums(profiles, profiles.data, self._item_vectors())

    def _contributions(self, liked: Ints, items: Ints) -> Floats:
        own, others = (self.attributes_[some].astype(np.float64) for some in (liked, items))
        return np.asarray((others @ own.T).toarray() * self.prior_[items, None])

    def _item_similarity(self, ids: Ints) -> NDArray[np.float32]:
        return np.asarray((self.attributes_[ids] @ self.attributes_.T).toarray(), dtype=np.float32)


def _weighted(features: sp.csr_matrix | None, items: int, idf: float) -> sp.csr_matrix:
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
