"""Rankers from feature models: factorization machines and pairwise networks over history and item.

A user is the items of the row, scaled to unit length, and so needs no refit; an item is its identity,
with its features if there are any, so that items nobody has are ranked by what they are like. Training
rows are halves of profiles, and the items to predict come from the other half: an item never predicts
itself. Every score is an inner product of row factors and item factors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.fm import AllSubsetsClassifier, FactorizationMachineClassifier
from recsys.links import FactorizedBilinear, PairFactorizationMachine, PairNet
from recsys.multilinear import PairTerm
from recsys.random_features import RandomKernelMap
from recsys.rankers._pairwise import Factors, FeatureRanker, products
from recsys.rankers.serialization import RANKERS, expect
from recsys.utils.validation import check_choice, check_integer, check_real


@dataclass(eq=False)
class _Pairs(FeatureRanker):
    """Parameters of the rankers fitted by coordinate descent on pairs."""

    factors: int = 16
    regularization: float = 2e-5
    negatives: int = 3
    iterations: int = 20
    random_state: int = 0

    name: ClassVar[str] = ""
    capabilities = frozenset(
        {"fold-in", "explain", "similar-items", "cold-items", "cold-users", "embeddings"}
    )

    def _model(self, **common: Any) -> Any:
        raise NotImplementedError

    def _train(self, A: sp.csr_matrix, B: sp.csr_matrix, pairs: NDArray[np.int64], y: Any) -> None:
        model = self._model(
            n_components=self.factors, beta=self.regularization, max_iter=self.iterations,
            random_state=self.random_state, tol=1e-4,
        )  # fmt: skip
        model.fit(A, B, pairs, y)
        self._keep(model.terms_, B)


def _term(P: Factors, d: int, degree: int) -> PairTerm:
    """Return a machine's order over rows of d features and items."""
    whole = np.ones(degree + 1)
    return PairTerm(whole, np.array(P[:d]), np.array(P[d:]), np.ones(P.shape[1]))


@RANKERS.add("fm")
@dataclass(eq=False)
class FM(_Pairs):
    """A factorization machine of order 2 on history and item, fitted to sampled pairs (logistic loss).

    Parameters
    ----------
    factors : int ≥ 1
    regularization : float ≥ 0
    negatives : int ≥ 1
        Items not liked that are drawn for each liked one.
    iterations : int ≥ 1
    random_state : int ≥ 0
    loss : "logistic", "bpr" or "auc"
        Of pairs of history and item alone, by coordinate descent; or of a liked one against one that is
        not (logistic, squared hinge), by AdaGrad, which takes longer.

    Notes
    -----
    Item and user features: `set_item_features`, `set_user_features` before fit.
    """

    name = "fm"

    loss: str = "logistic"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("loss", self.loss, ("logistic", "bpr", "auc"))

    def _order(self) -> int:
        return 2

    def _model(self, **common: Any) -> Any:
        return PairFactorizationMachine(degree=self._order(), **common)

    def _train(self, A: sp.csr_matrix, B: sp.csr_matrix, pairs: NDArray[np.int64], y: Any) -> None:
        if self.loss == "logistic":
            super()._train(A, B, pairs, y)
            return
        m, d = self._order(), A.shape[1]
        model = FactorizationMachineClassifier(
            degree=m, n_components=self.factors, alpha=self.regularization, beta=self.regularization,
            loss=self.loss, solver="adagrad", max_iter=self.iterations, tol=0.0, batch_size=8,
            random_state=self.random_state,
        ).fit(sp.hstack([A[pairs[:, 0]], B[pairs[:, 1]]], format="csr"), y)  # fmt: skip
        terms = [_term(model.w_[:, None], d, 1)]
        terms += [_term(P[0], d, t) for t, P in enumerate(model.P_, 2)]
        self._keep(terms, B)


@RANKERS.add("hofm")
@dataclass(eq=False)
class HOFM(FM):
    """A factorization machine of any order on history and item.

    Parameters
    ----------
    degree : int ≥ 2

    The others are those of `fm`.
    """

    factors: int = 12
    degree: int = 3

    name = "hofm"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("degree", self.degree, 2, 6)

    def _order(self) -> int:
        return self.degree


@RANKERS.add("bilinear")
@dataclass(eq=False)
class Bilinear(_Pairs):
    """Low-rank bilinear scores of history and item, aᵀUVᵀb.

    Parameters are those of `fm`, but for `loss`.
    """

    name = "bilinear"

    def _model(self, **common: Any) -> Any:
        return FactorizedBilinear(**common)


@RANKERS.add("pairnet")
@dataclass(eq=False)
class PairNetRanker(_Pairs):
    """A pairwise network: interactions across history and item only, of order 2 to `degree`.

    Parameters
    ----------
    degree : int ≥ 2

    The others are those of `fm`, but for `loss`.
    """

    factors: int = 12
    degree: int = 3

    name = "pairnet"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("degree", self.degree, 2, 6)

    def _model(self, **common: Any) -> Any:
        return PairNet(degree=self.degree, **common)


@RANKERS.add("all-subsets")
@dataclass(eq=False)
class AllSubsets(FeatureRanker):
    """The all-subsets model on history and item: Σ_s Π_j(1 + p_js a_j)·Π_i(1 + q_is b_i).

    Parameters
    ----------
    factors : int ≥ 1
    regularization : float ≥ 0
    loss : "logistic", "bpr" or "auc"
        Of pairs of history and item alone, or of a liked one against one that is not.
    negatives, iterations : int ≥ 1
    learning_rate : float > 0
    random_state : int ≥ 0
    """

    factors: int = 12
    regularization: float = 1e-5
    loss: str = "bpr"
    negatives: int = 3
    iterations: int = 6
    learning_rate: float = 0.1
    random_state: int = 0

    name: ClassVar[str] = "all-subsets"
    capabilities = frozenset({"fold-in", "similar-items", "cold-items", "cold-users", "embeddings"})

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("loss", self.loss, ("logistic", "bpr", "auc"))
        check_real("learning_rate", self.learning_rate, 0.0, open_low=True)

    def _train(self, A: sp.csr_matrix, B: sp.csr_matrix, pairs: NDArray[np.int64], y: Any) -> None:
        X = sp.hstack([A[pairs[:, 0]], B[pairs[:, 1]]], format="csr")
        model = AllSubsetsClassifier(
            n_components=self.factors, beta=self.regularization, loss=self.loss, solver="adagrad",
            max_iter=self.iterations, tol=0.0, learning_rate=self.learning_rate,
            random_state=self.random_state, batch_size=8,
        ).fit(X, y)  # fmt: skip
        P = model.P_[0][0]
        self.left_ = np.ascontiguousarray(P[: A.shape[1]])
        sides = [products(B, P[A.shape[1] :, s]) for s in range(P.shape[1])]
        self.item_vectors_ = np.ascontiguousarray(np.array(sides).T, dtype=np.float32)

    def _keep(self, terms: list[PairTerm], B: sp.csr_matrix) -> None:
        self.left_ = np.zeros((self._people + B.shape[1], 1))

    def _row_vectors(self, rows: sp.csr_matrix, users: NDArray[np.int64] | None = None) -> Factors:
        A = self._rows(rows, users)
        return np.array([products(A, self.left_[:, s]) for s in range(self.left_.shape[1])]).T

    def _check_state(self) -> None:
        self._check_people()
        features, width = self._width(self.n_items_), self.left_.shape[-1]
        expect("left_", self.left_, (features, width), np.float64)
        expect("item_vectors_", self.item_vectors_, (self.n_items_, width), np.float32)


@RANKERS.add("random-features")
@dataclass(eq=False)
class RandomFeatures(FeatureRanker):
    """Ridge regression of every item on random features of the history.

    Half profiles predict the other halves; the random features are those of the ANOVA kernel of order 2,
    with the history itself as more features.

    Parameters
    ----------
    features : int ≥ 1
        Random features.
    regularization : float > 0
    random_state : int ≥ 0
    """

    features: int = 512
    regularization: float = 1.0
    random_state: int = 0

    name: ClassVar[str] = "random-features"
    capabilities = frozenset({"fold-in", "similar-items", "cold-users", "embeddings"})

    def _check_parameters(self) -> None:
        check_integer("features", self.features, 1)
        check_integer("random_state", self.random_state, 0)
        check_real("regularization", self.regularization, 0.0, open_low=True)

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Any) -> None:
        rng = np.random.default_rng(self.random_state)
        half, other, owners = self._training(liked, rng)
        if half.nnz == 0:  # nobody has two items
            half, other, owners = liked, liked, np.arange(liked.shape[0])
        source = self._rows(half, owners)
        fresh = RandomKernelMap(
            kernel="anova", degree=2, n_components=self.features, random_state=self.random_state
        ).fit(source)
        self.projections_ = np.ascontiguousarray(fresh.bases_, dtype=np.float64)
        Z = self._row_vectors(half, owners)
        gram = Z.T @ Z
        gram[np.diag_indices(len(gram))] += self.regularization
        self.item_vectors_ = np.ascontiguousarray(
            np.linalg.solve(gram, np.asarray(other.T @ Z).T).T, dtype=np.float32
        )

    def _row_vectors(self, rows: sp.csr_matrix, users: NDArray[np.int64] | None = None) -> Factors:
        A = self._rows(rows, users)
        first = np.asarray(A @ self.projections_)
        second = np.asarray(A.multiply(A) @ (self.projections_**2))
        z = 0.5 * (first**2 - second) / np.sqrt(first.shape[1])
        return np.hstack([z, first / np.sqrt(first.shape[1]), np.ones((len(z), 1))])

    def _check_state(self) -> None:
        self._check_people()
        features, width = self._width(self.n_items_), self.projections_.shape[-1]
        expect("projections_", self.projections_, (features, width), np.float64)
        expect("item_vectors_", self.item_vectors_, (self.n_items_, 2 * width + 1), np.float32)
