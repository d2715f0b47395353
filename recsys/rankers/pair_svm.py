"""A pairwise-kernel SVM on history and item, as a ranker."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.rankers._feature_shares import ExplainedRanker, Products
from recsys.rankers._scoring import cosines, weighted_rows
from recsys.rankers.base import expect
from recsys.rankers.registry import RANKERS
from recsys.utils.memory import check_fits
from recsys.utils.validation import check_real

if TYPE_CHECKING:
    from recsys.links import PairSVM


@RANKERS.add("pair-svm")
@dataclass(eq=False)
class PairSVMRanker(ExplainedRanker):
    """A squared-hinge SVM with the pairwise kernel of history and item, fitted to sampled pairs.

    Its scores are bilinear, aᵀWb, without a bound on the rank of W: what each feature of a history adds
    to each item is stored. The fit has the Gram matrices of half profiles and of items in memory.

    Parameters
    ----------
    regularization : float > 0
        Weight of ½‖W‖² against the sum of the losses, 1/C.
    neg_prop : int ≥ 1
        Items not liked that are drawn for each liked one.
    iterations : int ≥ 1
        Newton steps at most.
    random_state : int ≥ 0

    Notes
    -----
    Source: Atarashi's thesis, 3.4.2.

    Examples
    --------
    >>> from recsys.datasets import planted_catalogue
    >>> likes = planted_catalogue(40, 30, seed=1).interactions.matrix
    >>> model = PairSVMRanker().fit(likes, show_progress=False)
    >>> model.recommend(0, likes[0], N=3).ids.shape
    (3,)
    """

    regularization: float = 10.0
    neg_prop: int = 3
    iterations: int = 50
    random_state: int = 0

    name: ClassVar[str] = "pair-svm"
    dense: ClassVar[bool] = True
    search_space: ClassVar[dict[str, Any]] = {"regularization": ("log", 1.0, 100.0), "neg_prop": (1, 3)}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("regularization", self.regularization, 0.0, open_low=True)

    def _learn(self, liked: sp.csr_matrix) -> None:
        from sklearn.exceptions import ConvergenceWarning  # late: it takes most of a second

        from recsys.links import PairSVM

        items = liked.shape[1]
        width = self._width(items)
        check_fits(
            1.5 * width * items, f"the weights of {width:,} features of histories for {items:,} items",
            "use bilinear, which has a rank",
        )  # fmt: skip
        found = self._training_pairs(liked)
        if found is None:
            self.weights_ = np.tile(self._popularities(liked).T, (width, 1))
            return
        model = PairSVM(C=1.0 / self.regularization, max_iter=self.iterations)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # `iterations` says how long to go on
            model.fit(*found)
        self.weights_ = self._item_vectors(model, found[1])

    def _item_vectors(self, model: PairSVM, B: sp.csr_matrix) -> NDArray[np.float32]:
        """Return what each feature of a history adds to every item, (features, items)."""
        shape = (model.A_.shape[0], model.B_.shape[0])
        dual = sp.csr_matrix((model.dual_coef_, model.pairs_), shape=shape)
        W = model.A_.T @ (dual @ model.B_)
        return np.ascontiguousarray((W @ B.T).toarray(), dtype=np.float32)

    def _scores(self, userids: NDArray[np.int64] | None, rows: sp.csr_matrix) -> NDArray[np.float32]:
        A = self._rows(rows, userids)
        return weighted_rows(A, A.data, self.weights_)

    def _fold_in_scores(self, rows: sp.csr_matrix) -> NDArray[np.float32]:
        return self._scores(None, rows)

    def _item_similarity(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        return cosines(np.ascontiguousarray(self.weights_.T), ids)

    def _feature_shares(self, A: sp.csr_matrix, item: int) -> NDArray[np.float64]:
        return A.data * self.weights_[A.indices, item].astype(np.float64)

    def _products(self, A: sp.csr_matrix, item: int) -> Products:
        shares = self._feature_shares(A, item)
        return Products(A.indices.copy(), 0.0, shares, np.zeros((A.nnz, A.nnz)), 0.0)

    def _check_state(self) -> None:
        self._check_user_features()
        expect("weights_", self.weights_, (self._width(self.n_items_), self.n_items_), np.float32)
