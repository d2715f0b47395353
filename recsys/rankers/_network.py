"""Base of rankers by networks on products of a history's and an item's features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.multilinear import PairTerm
from recsys.rankers._history import Factors
from recsys.rankers._pair_terms import PairTerms, powers
from recsys.rankers._scoring import cosines, inner_products
from recsys.rankers.base import expect
from recsys.utils.validation import MOST, check_integer, check_real


@dataclass(eq=False)
class NetworkRanker(PairTerms):
    """A network with ReLU on sums of products of features of history and item, one sum a factor.

    PyTorch fits it; what is fitted scores, is saved and is loaded without.

    Parameters
    ----------
    factors : int ≥ 1
        Inputs of the network.
    hidden : int ≥ 1
        Units of each hidden layer.
    layers : int in 0…100
        Hidden layers.
    dropout : float in [0, 0.99]
    batch_size : int ≥ 1
        Pairs of a step.
    learning_rate : float > 0
        Of the products' factors; the network's weights have 0.001.
    degree : int in 2…4
        Highest order of the products.
    """

    factors: int = 16
    hidden: int = 64
    layers: int = 2
    dropout: float = 0.2
    learning_rate: float = 0.01
    batch_size: int = 1024
    neg_prop: int = 3
    iterations: int = 20
    random_state: int = 0
    degree: int = 2

    needs: ClassVar[str] = "torch"
    search_space: ClassVar[dict[str, Any]] = {
        "factors": (8, 16, 32), "hidden": (32, 64), "layers": (1, 2), "dropout": ("real", 0.0, 0.5),
    }  # fmt: skip

    def _check_parameters(self) -> None:
        from recsys.links.neural import MOST_LAYERS  # late: it imports scikit-learn

        super()._check_parameters()
        check_integer("degree", self.degree, 2, 4)
        check_integer("hidden", self.hidden, 1, MOST)
        check_integer("batch_size", self.batch_size, 1, MOST)
        check_integer("layers", self.layers, 0, MOST_LAYERS)
        check_real("dropout", self.dropout, 0.0, 0.99)
        check_real("learning_rate", self.learning_rate, 0.0, open_low=True)

    def _coefficients(self, order: int) -> NDArray[np.float64]:
        """Return the weights of A^t(a)·A^(order−t)(b), t = 0…order, in the products of an order."""
        raise NotImplementedError

    def _learn(self, liked: sp.csr_matrix) -> None:
        model = self._model(
            degree=self.degree, n_components=self.factors, hidden=self.hidden, layers=self.layers,
            dropout=self.dropout, learning_rate=self.learning_rate, epochs=self.iterations,
            batch_size=self.batch_size, random_state=self.random_state,
        )  # fmt: skip
        model.check_parameters()  # without PyTorch, also where there is nothing to learn
        self.weights_: list[NDArray[np.float32]] = []
        self.biases_: list[NDArray[np.float32]] = []
        found = self._training_pairs(liked)
        if found is None:
            self._keep([])
            self.item_vectors_ = self._popularities(liked)
            return
        arrays = model.fit(*found)._learned().arrays
        tables = [arrays[f"tables_.{k}"].astype(np.float64) for k in range(2 * self.degree - 2)]
        terms = [
            PairTerm(self._coefficients(k + 2), left, right, np.ones(self.factors))
            for k, (left, right) in enumerate(zip(tables[::2], tables[1::2], strict=True))
        ]
        self._keep(terms)
        self.item_vectors_ = self._item_vectors(terms, found[1])
        self.weights_ = [arrays[f"weights_.{k}"] for k in range(self.layers + 1)]
        self.biases_ = [arrays[f"biases_.{k}"] for k in range(self.layers + 1)]

    def _scores(self, userids: NDArray[np.int64], rows: sp.csr_matrix) -> NDArray[np.float32]:
        return self._network(self._row_vectors(rows, userids))

    def _fold_in_scores(self, rows: sp.csr_matrix) -> NDArray[np.float32]:
        return self._network(self._row_vectors(rows))

    def _network(self, rows: Factors) -> NDArray[np.float32]:
        """Return the network's output for each row's and each item's factors, (rows, items)."""
        if not self.degrees_:
            return inner_products(rows, self.item_vectors_)
        out = np.empty((len(rows), self.n_items_), dtype=np.float32)
        for row, scores in zip(rows, out, strict=True):
            units = self._inputs(row * self.item_vectors_).astype(np.float32)
            for k, (weights, biases) in enumerate(zip(self.weights_, self.biases_, strict=True)):
                units = np.maximum(units, np.float32(0.0)) if k else units
                # by no BLAS, whose sums depend on threads
                units = np.einsum("is,hs->ih", units, weights) + biases
            scores[:] = units[:, 0]
        return out

    def _inputs(self, products: Factors) -> Factors:
        """Return the sum of each factor's products of all orders, (items, factors)."""
        total, at = np.zeros((len(products), self.factors)), 0
        for m, whole in zip(self.degrees_, self.whole_, strict=True):
            width = self.factors * len(powers(m, whole))
            part = products[:, at : at + width].reshape(len(products), self.factors, -1)
            total += part.sum(axis=2)
            at += width
        return total

    def _item_similarity(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        return cosines(self.item_vectors_, ids)

    def _check_state(self) -> None:
        super()._check_state()
        fitted = len(self.degrees_) > 0
        if self.degrees_ != (list(range(2, self.degree + 1)) if fitted else []):
            raise ValueError("degrees_ are not those of the parameters")
        if any(left.shape[1] != self.factors for left in self.lefts_):
            raise ValueError("lefts_ have another number of factors")
        sizes = [self.factors, *[self.hidden] * self.layers, 1]
        if len(self.weights_) != len(self.biases_) or len(self.weights_) != (len(sizes) - 1) * fitted:
            raise ValueError("weights_ and biases_ are not those of the layers")
        for k, (weights, biases) in enumerate(zip(self.weights_, self.biases_, strict=True)):
            expect("weights_", weights, (sizes[k + 1], sizes[k]), np.float32)
            expect("biases_", biases, (sizes[k + 1],), np.float32)
