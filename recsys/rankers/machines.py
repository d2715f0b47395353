"""Feature-interaction models of history and item: factorization machines, pair networks, and others."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import FitError
from recsys.multilinear import PairTerm
from recsys.rankers.base import LARGE, SMALL, Candidate, Rows, Shares
from recsys.rankers.histories import FeatureRanker, HistoryRanker, Pairs, PairTermRanker
from recsys.rankers.protocol import POSITIVE, Floats, Ints, Items, Users, integer, one_of, real
from recsys.rankers.registry import register_ranker
from recsys.rankers.scoring import EmbeddingRanker, cosines, entries_between, weighted_rows
from recsys.utils.resources import check_memory
from recsys.utils.sparse import owners

LOSSES = ("logistic", "bpr", "auc")
SEARCHED: dict[str, Any] = {"factors": (4, 8, 16), "regularization": ("log", 1e-6, 1e-3)}
LONGER: dict[str, Any] = SEARCHED | {"neg_prop": (1, 3, 5), "iterations": (15, 30, 60)}


@dataclass(eq=False)
class PairModelRanker(PairTermRanker, FeatureRanker, EmbeddingRanker):
    """Base of the rankers with sums of products of up to `degree` features of history and item."""

    factors: int = 16
    regularization: float = 2e-5
    neg_prop: int = 3
    iterations: int = 20
    random_state: int = 0

    search_space = SEARCHED

    def _terms(self, pairs: Pairs) -> list[PairTerm]:
        more = {key: getattr(self, key) for key in ("degree", "penalty", "gamma") if hasattr(self, key)}
        model = self._model(
            n_components=self.factors,
            beta=self.regularization,
            max_iter=self.iterations,
            random_state=self.random_state,
            tol=1e-4,
            **more,
        )
        terms: list[PairTerm] = model.fit(*pairs).terms_
        return terms

    def _feature_shares(self, A: sp.csr_matrix, items: Items) -> list[Shares]:
        """Share a product of t features of the history evenly among them (Aumann–Shapley).

        For a term of order t in the history: share_j = a_j ∂/∂a_j ÷ t, which sum to the term.
        """
        owner, columns, vectors = owners(A), [], [np.ones(A.shape[0])] * (not self.degrees_)
        for used, p, table in self._tables(A):
            z, slopes = p[A.indices] * A.data, [np.zeros(A.nnz)]  # ∂A^t/∂a_j·a_j of each feature
            rest = np.ones(A.nnz)
            for t in range(1, table.shape[1]):
                slopes.append(z * rest)
                rest = table[owner, t] - z * rest
            columns += [slopes[t] / max(t, 1) for t in used]
            vectors += [table[:, t] for t in used]
        shares, products, out = np.array(columns).reshape(-1, A.nnz), np.array(vectors), []
        for k, (span, some) in enumerate(zip(Rows(A).spans, items, strict=True)):
            of_items = self.item_factors_[some].astype(np.float64)
            out.append((of_items @ products[:, k], of_items[:, : len(shares)] @ shares[:, span]))
        return out


@register_ranker("fm")
class FM(PairModelRanker):
    """A factorization machine of order 2 on history and item, fitted to sampled pairs.

    Parameters
    ----------
    penalty : "l2", "l1" or "ti"
        Penalty beside the squared norms, which selects features and interactions.
    gamma : float ≥ 0
        Strength of the penalty.

    Other parameters: as of `Ranker`.
    """

    penalty: str = "l2"
    gamma: float = 1e-7

    link = "PairFactorizationMachine"
    degree = 2
    checks = HistoryRanker.checks | {
        "penalty": one_of("l2", "l1", "ti"),
        "gamma": real(),
    }
    search_space = LONGER | {"factors": (8, 16, 32)}


@register_ranker("sparse-fm")
class SparseFM(FM):
    """A sparse factorization machine: `fm` with the penalty TI (Atarashi et al. 2021, 3.3).

    Other parameters: as of `FM`.
    """

    penalty: str = "ti"

    search_space = FM.search_space | {"gamma": ("log", 1e-7, 1e-4)}


@register_ranker("hofm")
class HOFM(FM):
    """A factorization machine of any order on history and item, fitted to sampled pairs.

    Other parameters: as of `Ranker` and `FM`.
    """

    factors: int = 12
    degree: int = 3  # type: ignore[misc]

    search_space = SEARCHED | {"degree": (2, 3)}


@register_ranker("bilinear")
class BilinearRanker(PairModelRanker):
    """Low-rank bilinear scores of history and item, aᵀUVᵀb, fitted to sampled pairs (logistic loss).

    Other parameters: as of `Ranker`.
    """

    link = "FactorizedBilinear"
    search_space = LONGER | {"factors": (8, 16, 32, 64)}
    candidates = (
        Candidate("iterations=5", SMALL, most_likes=150_000),
        Candidate("", LARGE, most_likes=150_000),
    )


@register_ranker("pairnet")
class PairNetRanker(PairModelRanker):
    """A pairwise network: products across history and item only, of order 2 to `degree`.

    Other parameters: as of `Ranker`.
    """

    factors: int = 12
    iterations: int = 10
    degree: int = 3

    link = "PairNet"
    search_space = SEARCHED | {"degree": (2, 3)}


@register_ranker("all-subsets")
class AllSubsetsRanker(HistoryRanker, EmbeddingRanker):
    """The all-subsets model on history and item: Σ_s Π_j(1 + p_js a_j)·Π_i(1 + q_is b_i).

    Parameters
    ----------
    loss : "logistic", "bpr" or "auc"
        Loss of single pairs of history and item, or of a liked item against another item.

    Other parameters: as of `Ranker`.
    """

    factors: int = 12
    regularization: float = 1e-5
    loss: str = "bpr"
    neg_prop: int = 3
    iterations: int = 6
    learning_rate: float = 0.1
    random_state: int = 0

    checks = HistoryRanker.checks | {"loss": one_of(*LOSSES)}
    search_space = SEARCHED | {"loss": LOSSES}

    def _learn(self, liked: sp.csr_matrix) -> None:
        pairs = self._training_pairs(liked)
        if pairs is None:
            self.left_ = np.zeros((self._width(liked.shape[1]), 1))
            self.item_factors_ = self._popularity_vectors(liked)
            return
        from recsys.fm import AllSubsetsClassifier  # late: it imports scikit-learn

        X = sp.hstack([pairs.A[pairs.pairs[:, 0]], pairs.B[pairs.pairs[:, 1]]], format="csr")
        model = AllSubsetsClassifier(
            n_components=self.factors,
            beta=self.regularization,
            loss=self.loss,
            solver="adagrad",
            max_iter=self.iterations,
            tol=0.0,
            learning_rate=self.learning_rate,
            random_state=self.random_state,
            batch_size=8,
        ).fit(X, pairs.labels)
        P, features = model.P_[0][0], pairs.A.shape[1]
        self.left_ = np.ascontiguousarray(P[:features])
        self.item_factors_ = self._item_vectors(P[features:], pairs.B)

    def _item_vectors(self, right: Floats, B: sp.csr_matrix) -> NDArray[np.float32]:
        return products(B, right).astype(np.float32)

    def _row_factors(self, rows: sp.csr_matrix, users: Users = None) -> Floats:
        return products(self._history_features(rows, users), self.left_)


def products(X: sp.csr_matrix, P: Floats) -> Floats:
    """Return Π_j (1 + P_js x_j) of each row and component s."""
    out = np.ones((X.shape[0], P.shape[1]))
    full = np.flatnonzero(np.diff(X.indptr))
    for s in range(P.shape[1]):
        out[full, s] = np.multiply.reduceat(1.0 + X.data * P[X.indices, s], X.indptr[full])
    return out


@register_ranker("pair-svm")
class PairSVMRanker(FeatureRanker):
    """A squared-hinge SVM with the pairwise kernel of history and item, fitted to sampled pairs.

    Scores are bilinear, aᵀWb, with W of any rank; the model stores a matrix of features × items. The fit
    holds the Gram matrices of half profiles and of items in memory.

    Parameters
    ----------
    regularization : float > 0
        1/C.

    Other parameters: as of `Ranker`.
    """

    regularization: float = 10.0
    neg_prop: int = 3
    iterations: int = 50
    random_state: int = 0

    checks = HistoryRanker.checks | {"regularization": POSITIVE}
    search_space = {"regularization": ("log", 1.0, 100.0), "neg_prop": (1, 3)}

    def _learn(self, liked: sp.csr_matrix) -> None:
        from sklearn.exceptions import ConvergenceWarning  # late: it takes most of a second

        from recsys.links import PairSVM

        items = liked.shape[1]
        width = self._width(items)
        check_memory(
            12.0 * width * items,
            f"the weights of {width:,} features of histories for {items:,} items",
            "use bilinear, which has a rank",
        )
        pairs = self._training_pairs(liked)
        if pairs is None:
            self.weights_ = np.tile(self._popularity_vectors(liked).T, (width, 1))
            return
        model = PairSVM(C=1.0 / self.regularization, max_iter=self.iterations)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # `iterations` says how long to go on
            model.fit(*pairs)
        self.weights_ = self._item_vectors(model, pairs.B)

    def _item_vectors(self, model: Any, B: sp.csr_matrix) -> NDArray[np.float32]:
        """Return the contribution of each feature of a history to every item, (features, items)."""
        shape = (model.A_.shape[0], model.B_.shape[0])
        dual = sp.csr_matrix((model.dual_coef_, (model.left_, model.right_)), shape=shape)
        W = model.A_.T @ (dual @ model.B_)
        return np.ascontiguousarray((W @ B.T).toarray(), dtype=np.float32)

    def _scores(self, rows: Rows, users: Users = None) -> NDArray[np.float32]:
        A = self._history_features(rows.matrix, users)
        return weighted_rows(A, A.data, self.weights_)

    def _feature_shares(self, A: sp.csr_matrix, items: Items) -> list[Shares]:
        out = []
        for span, some in zip(Rows(A).spans, items, strict=True):
            shares = A.data[span] * entries_between(self.weights_, A.indices[span], some)
            out.append((shares.sum(axis=1), shares))
        return out

    def _item_similarity(self, ids: Ints) -> NDArray[np.float32]:
        return cosines(np.ascontiguousarray(self.weights_.T), ids)

    def _similarities(self, items: Ints, others: Ints) -> NDArray[np.float32]:
        return cosines(self.weights_.T, items, others)


@register_ranker("random-features")
class RandomFeaturesRanker(HistoryRanker, EmbeddingRanker):
    """Ridge regression of every item on the history and random features of its ANOVA kernel of order 2.

    Parameters
    ----------
    n_components : int ≥ 1
        Random features.

    Other parameters: as of `Ranker`.
    """

    n_components: int = 512
    regularization: float = 1.0
    random_state: int = 0

    checks = HistoryRanker.checks | {
        "n_components": integer(1),
        "regularization": POSITIVE,
    }
    search_space = {
        "n_components": (256, 512, 1024),
        "regularization": ("log", 0.01, 100.0),
    }

    def _learn(self, liked: sp.csr_matrix) -> None:
        from recsys.random_features import RandomKernelMap  # late: it imports scikit-learn

        rng = np.random.default_rng(self.random_state)
        half, other, whose = self._halves(liked, rng)
        if half.nnz == 0:  # no user has two items
            half, other, whose = liked, liked, np.arange(liked.shape[0])
        features = RandomKernelMap(
            kernel="anova", degree=2, n_components=self.n_components, random_state=self.random_state
        ).fit(self._history_features(half, whose))
        self.projections_ = np.ascontiguousarray(features.bases_, dtype=np.float64)
        Z = self._row_factors(half, whose)
        gram = Z.T @ Z
        gram[np.diag_indices(len(gram))] += self.regularization
        try:
            vectors = np.linalg.solve(gram, np.asarray(other.T @ Z).T)
        except np.linalg.LinAlgError:
            raise FitError("the features of the histories are singular: raise regularization") from None
        self.item_factors_ = np.ascontiguousarray(vectors.T, dtype=np.float32)

    def _row_factors(self, rows: sp.csr_matrix, users: Users = None) -> Floats:
        A = self._history_features(rows, users)
        first = np.asarray(A @ self.projections_)
        second = np.asarray(A.multiply(A) @ (self.projections_**2))
        z = 0.5 * (first**2 - second) / np.sqrt(first.shape[1])
        return np.hstack([z, first / np.sqrt(first.shape[1]), np.ones((len(z), 1))])
