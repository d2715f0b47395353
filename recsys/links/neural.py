"""Neural link predictors: PairDNN, HONFM and plain concatenation. PyTorch fits them, NumPy scores."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import FitError, InputError
from recsys.links.base import LINKS, Array, Index, LinkPredictor, Task
from recsys.multilinear import newton_identities
from recsys.utils.distribution import install_hint
from recsys.utils.progress import report
from recsys.utils.validation import check_integer, check_real

BATCH = 2**14  # pairs that are scored at once


def import_torch() -> Any:
    """Return PyTorch, or refuse with what to install."""
    try:
        import torch
    except ImportError as error:
        raise InputError(f"the neural link predictors need PyTorch: {install_hint('deep')}") from error
    return torch


@dataclass(eq=False, repr=False)
class _Network(LinkPredictor):
    """A network on top of an interaction layer, trained by Adam on the logistic loss.

    Parameters
    ----------
    n_components : int ≥ 1
        Width k of the interaction layer.
    hidden : int ≥ 1
        Units of each hidden layer.
    layers : int in 0…100
        Hidden layers, each with ReLU and dropout.
    dropout : float in [0, 0.99]
    learning_rate : float > 0
        Of the interaction layer; the others have 0.001.
    epochs, batch_size : int ≥ 1
    random_state : int

    Attributes
    ----------
    symmetric_ : bool
        Whether a pair has the score of its reverse.
    tables_ : list of (features, k) float32
        Of the interaction layer: of the left and the right end, order by order.
    weights_, biases_ : list of (outputs, inputs) and (outputs,) float32
        Of each layer of the network.
    history_ : list of dict
        The mean "loss" of each epoch.
    """

    n_components: int = 30
    hidden: int = 256
    layers: int = 4
    dropout: float = 0.2
    learning_rate: float = 0.003
    epochs: int = 30
    batch_size: int = 128
    random_state: int = 0

    symmetrizes: ClassVar[bool] = False

    def check_parameters(self) -> None:
        """Refuse parameters that are out of range."""
        for name in ("n_components", "hidden", "epochs", "batch_size"):
            check_integer(name, getattr(self, name), 1)
        check_integer("layers", self.layers, 0, 100)
        check_integer("random_state", self.random_state, 0)
        check_real("dropout", self.dropout, 0.0, 0.99)
        check_real("learning_rate", self.learning_rate, 0.0, open_low=True)

    def _orders(self) -> int:
        """Return how many tables each end has."""
        return 1

    def _sizes(self) -> list[tuple[int, int]]:
        """Return the inputs and outputs of each layer of the network."""
        return list(pairwise([self.n_components, *[self.hidden] * self.layers, 1]))

    def _factors(self, X: sp.csr_matrix, table: Any, order: int) -> list[Any]:
        """Return what the layer takes from the objects of an end, (objects, k) each, by its table."""
        raise NotImplementedError

    def _layer(self, left: list[Any], right: list[Any]) -> Any:
        """Return an order's part of the network's input, (pairs, k), from the factors of both ends."""
        raise NotImplementedError

    def _fit(self, task: Task) -> None:
        torch = import_torch()
        self.symmetric_ = self.symmetrizes and task.A is task.B
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.random_state)
            shapes = [(X.shape[1], self.n_components) for X in (task.A, task.B)] * self._orders()
            tables = [
                (0.1 * torch.randn(shape, dtype=torch.float32)).requires_grad_() for shape in shapes
            ]
            parts: list[Any] = []
            for inputs, outputs in self._sizes():
                parts += [torch.nn.Linear(inputs, outputs, dtype=torch.float32), torch.nn.ReLU()]
                parts.append(torch.nn.Dropout(self.dropout))
            network = torch.nn.Sequential(*parts[:-2])  # none after the last
            self._train(torch, task, tables, network)

        def arrays(tensors: list[Any]) -> list[NDArray[np.float32]]:
            return [tensor.detach().numpy() for tensor in tensors]

        dense = list(network)[::3]
        self.tables_ = arrays(tables)
        self.weights_ = arrays([layer.weight for layer in dense])
        self.biases_ = arrays([layer.bias for layer in dense])

    def _train(self, torch: Any, task: Task, tables: list[Any], network: Any) -> None:
        optimizer = torch.optim.Adam(
            [
                {"params": network.parameters(), "lr": 0.001},
                {"params": tables, "lr": self.learning_rate},
            ]
        )
        labels = torch.as_tensor((task.y > 0).astype(np.float32))
        rng = np.random.default_rng(self.random_state)
        self.history_: list[dict[str, float]] = []
        for epoch in range(self.epochs):
            total, order = 0.0, rng.permutation(len(task.y))
            for start in range(0, len(order), self.batch_size):
                report(f"epoch {epoch + 1}", epoch + start / len(order), self.epochs)
                rows = order[start : start + self.batch_size]
                inputs = self._inputs(task.A, task.B, task.left[rows], task.right[rows], tables)
                loss = torch.nn.functional.binary_cross_entropy_with_logits(
                    network(inputs).squeeze(1), labels[rows]
                )
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += float(loss.detach()) * len(rows)
            if not np.isfinite(total):
                raise FitError(
                    f"the loss is {total / len(order)} in epoch {epoch + 1}: scale the features, or "
                    f"lower learning_rate (now {self.learning_rate:g})"
                )
            self.history_.append({"loss": total / len(order)})

    def _inputs(
        self, A: sp.csr_matrix, B: sp.csr_matrix, left: Index, right: Index, tables: list[Any]
    ) -> Any:
        """Return the network's input for pairs; each object is computed once."""
        (a, left), (b, right) = (np.unique(ends, return_inverse=True) for ends in (left, right))
        one = self._one_way(A[a], left, B[b], right, tables)
        if not self.symmetric_:
            return one
        return 0.5 * (one + self._one_way(B[b], right, A[a], left, tables))

    def _one_way(
        self, X: sp.csr_matrix, left: Index, Y: sp.csr_matrix, right: Index, tables: list[Any]
    ) -> Any:
        total: Any = 0.0
        for order, (p, q) in enumerate(zip(tables[::2], tables[1::2], strict=True), 2):
            one = [_rows(factor, left) for factor in self._factors(X, p, order)]
            other = [_rows(factor, right) for factor in self._factors(Y, q, order)]
            total = total + self._layer(one, other)
        return total

    def _score(self, A: sp.csr_matrix, B: sp.csr_matrix, left: Index, right: Index) -> Array:
        tables = [table.astype(np.float64) for table in self.tables_]
        out = np.empty(len(left))
        for start in range(0, len(left), BATCH):
            part = slice(start, start + BATCH)
            units = self._inputs(A, B, left[part], right[part], tables)
            for k, (weights, biases) in enumerate(zip(self.weights_, self.biases_, strict=True)):
                units = (np.maximum(units, 0.0) if k else units) @ weights.T + biases
            out[part] = units[:, 0]
        return out


def _rows(factor: Any, places: Index) -> Any:
    """Return rows of an array of NumPy or PyTorch."""
    if isinstance(factor, np.ndarray):
        return factor[places]
    # its gradient, unlike that of [], is a sum in one order
    return factor.index_select(0, import_torch().as_tensor(places))


def _power_sums(X: sp.csr_matrix, table: Any, count: int) -> list[Any]:
    """Return Σ_j (p_js x_j)^r, (objects, k), r = 1…count, for a table of NumPy or PyTorch."""
    power, out = table, []
    for r in range(1, count + 1):
        power = power * table if r > 1 else table
        out.append(_product(X, X.data**r, power))
    return out


def _product(X: sp.csr_matrix, values: Array, table: Any) -> Any:
    """Return the matrix of X's entries with other values times a table."""
    if isinstance(table, np.ndarray):
        return sp.csr_matrix((values, X.indices, X.indptr), shape=X.shape) @ table
    torch = import_torch()
    with np.errstate(over="ignore"):  # the loss is then not finite
        weights = torch.as_tensor(values.astype(np.float32))
    indices, starts = (torch.as_tensor(part.astype(np.int64)) for part in (X.indices, X.indptr[:-1]))
    return torch.nn.functional.embedding_bag(
        indices, table, starts, mode="sum", per_sample_weights=weights
    )


@dataclass(eq=False, repr=False)
class _Interactions(_Network):
    """Base of the networks on interactions of order 2 to `degree`, 4 at most.

    Each order has a pair of tables.
    """

    degree: int = 2

    def check_parameters(self) -> None:
        """Refuse parameters that are out of range."""
        check_integer("degree", self.degree, 2, 4)
        super().check_parameters()

    def _orders(self) -> int:
        return self.degree - 1


@LINKS.add("pair-dnn")
@dataclass(eq=False, repr=False)
class PairDNN(_Interactions):
    """A network on the layer z_s = Σ_t P^t((u_s, v_s), (a, b)), t = 2…degree (HOPairDNN above 2).

    For pairs of one kind the layer is the mean of both directions.

    Other parameters: as in `_Interactions`.

    Notes
    -----
    Source: Atarashi's thesis, 3.3.7.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A, B = rng.normal(size=(30, 4)), rng.normal(size=(20, 3))
    >>> pairs = np.column_stack([rng.integers(0, 30, 400), rng.integers(0, 20, 400)])
    >>> y = A[pairs[:, 0], 0] * B[pairs[:, 1], 1] > 0
    >>> model = PairDNN(n_components=8, hidden=16, layers=1, epochs=2).fit(A, B, pairs[:300], y[:300])
    >>> model.decision_function(A, B, pairs[300:]).shape
    (100,)
    """

    symmetrizes: ClassVar[bool] = True

    def _factors(self, X: sp.csr_matrix, table: Any, order: int) -> list[Any]:
        return newton_identities(_power_sums(X, table, order - 1))

    def _layer(self, left: list[Any], right: list[Any]) -> Any:
        return sum(p * q for p, q in zip(left, right[::-1], strict=True))


@LINKS.add("honfm")
@dataclass(eq=False, repr=False)
class HONFM(_Interactions):
    """A network on the layer z_s = Σ_t A^t(p_s, a⊕b), t = 2…degree: the higher-order neural FM.

    Each end has separate factors, so a pair and its reverse have different scores.

    Other parameters: as in `_Interactions`.

    Notes
    -----
    Source: Atarashi's thesis, 3.4.3.
    """

    def _factors(self, X: sp.csr_matrix, table: Any, order: int) -> list[Any]:
        return _power_sums(X, table, order)

    def _layer(self, left: list[Any], right: list[Any]) -> Any:
        return newton_identities([p + q for p, q in zip(left, right, strict=True)])[-1]


@LINKS.add("concat-dnn")
@dataclass(eq=False, repr=False)
class ConcatDNN(_Network):
    """A network on the concatenated features of both ends, without interactions.

    A pair and its reverse have different scores.

    Parameters
    ----------
    n_components : int ≥ 1
        Width of the first layer.

    Other parameters: as in `_Network`.
    """

    n_components: int = 256
    learning_rate: float = 0.001

    def _factors(self, X: sp.csr_matrix, table: Any, order: int) -> list[Any]:
        return [_product(X, X.data, table)]

    def _layer(self, left: list[Any], right: list[Any]) -> Any:
        total = left[0] + right[0]
        return total * (total > 0)
