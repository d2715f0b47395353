"""Networks on products of a history's and an item's features; PyTorch fits them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.multilinear import PairTerm
from recsys.rankers.base import Rows
from recsys.rankers.histories import Pairs, PairTermRanker, orders
from recsys.rankers.protocol import Floats, Users, integer, real
from recsys.rankers.registry import register_ranker
from recsys.utils.validation import MOST


@dataclass(eq=False)
class NetworkRanker(PairTermRanker):
    """Base of the networks with ReLU on sums of products of features of history and item.

    Only `fit` needs PyTorch.

    Parameters
    ----------
    hidden : int ≥ 1
        Units of each hidden layer.
    layers : int in 0…100
        Hidden layers.
    dropout : float in [0, 0.99]
    batch_size : int ≥ 1
        Pairs of a step.
    learning_rate : float > 0
        Learning rate of the factors; that of the network is 0.001.
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

    needs = "torch"
    checks = PairTermRanker.checks | {
        "degree": integer(2, 4),
        "hidden": integer(1, MOST),
        "batch_size": integer(1, MOST),
        "layers": integer(0, 100),
        "dropout": real(0.0, 0.99),
    }
    search_space = {
        "factors": (8, 16, 32),
        "hidden": (32, 64),
        "layers": (1, 2),
        "dropout": ("real", 0.0, 0.5),
    }

    def _coefficients(self, order: int) -> Floats:
        """Return the weights of A^t(a)·A^(order−t)(b), t = 0…order, in the products of an order."""
        raise NotImplementedError

    def _learn(self, liked: Any) -> None:
        self.weights_: list[NDArray[np.float32]] = []
        self.biases_: list[NDArray[np.float32]] = []
        from recsys.links.neural import import_torch  # late: scikit-learn takes most of a second

        import_torch()  # refuses also where there is nothing to learn
        super()._learn(liked)

    def _terms(self, found: Pairs) -> list[PairTerm]:
        params = self.get_params()
        params |= {"n_components": params.pop("factors"), "epochs": params.pop("iterations")}
        del params["neg_prop"]
        model = self._model(**params).fit(*found)
        self.weights_, self.biases_ = model.weights_, model.biases_
        tables = [table.astype(np.float64) for table in model.tables_]
        return [
            PairTerm(self._coefficients(k + 2), left, right, np.ones(self.factors))
            for k, (left, right) in enumerate(zip(tables[::2], tables[1::2], strict=True))
        ]

    def _scores(self, rows: Rows, users: Users = None) -> NDArray[np.float32]:
        vectors = self._row_factors(rows.matrix, users)
        if not self.degrees_:
            return np.asarray(vectors @ self.item_factors_.T, dtype=np.float32)
        out = np.empty((len(vectors), self.n_items_), dtype=np.float32)
        for vector, scores in zip(vectors, out, strict=True):
            units = self._inputs(vector * self.item_factors_).astype(np.float32)
            for k, (weights, biases) in enumerate(zip(self.weights_, self.biases_, strict=True)):
                units = np.maximum(units, np.float32(0.0)) if k else units
                units = units @ weights.T + biases
            scores[:] = units[:, 0]
        return out

    def _inputs(self, products: Floats) -> Floats:
        """Return the sum of each factor's products of all orders, (items, factors)."""
        total, at = np.zeros((len(products), self.factors)), 0
        for m, whole in zip(self.degrees_, self.whole_, strict=True):
            width = self.factors * len(orders(m, whole))
            part = products[:, at : at + width].reshape(len(products), self.factors, -1)
            total += part.sum(axis=2)
            at += width
        return total


@register_ranker("pair-dnn")
class PairDNNRanker(NetworkRanker):
    """A network on products across history and item, of order 2 to `degree`: HOPairDNN above 2.

    Other parameters: as of `Ranker` and `NetworkRanker`. Source: Atarashi's thesis, 3.3.7.
    """

    link = "PairDNN"

    def _coefficients(self, order: int) -> Floats:
        return np.array([0.0, *[1.0] * (order - 1), 0.0])


@register_ranker("honfm")
class HONFMRanker(NetworkRanker):
    """A network on a factorization machine's products of history and item, of order 2 to `degree`.

    Other parameters: as of `PairDNNRanker`. Source: Atarashi's thesis, 3.4.3.
    """

    link = "HONFM"

    def _coefficients(self, order: int) -> Floats:
        return np.ones(order + 1)
