"""Neural link predictors on PyTorch: PairDNN, HONFM and plain concatenation."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.links.base import LINKS, Array, LinkPredictor, Task
from recsys.multilinear import newton_identities
from recsys.utils.docstrings import documented
from recsys.utils.progress import report
from recsys.utils.validation import check_integer, check_real

__all__ = ["HONFM", "ConcatDNN", "PairDNN"]


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise InputError(
            "the neural link predictors need PyTorch: pip install 'recsys[deep]'"
        ) from error
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
    layers : int ≥ 0
        Hidden layers, each with ReLU and dropout.
    dropout : float in [0, 1)
    learning_rate : float > 0
        Of the interaction layer; the others have 0.001.
    epochs, batch_size : int ≥ 1
    device : str, optional
        Of PyTorch; by default a GPU where there is one.
    random_state : int

    Attributes
    ----------
    history_ : list of dict
        "loss" (mean, of the epoch) and "seconds".
    """

    n_components: int = 30
    hidden: int = 256
    layers: int = 4
    dropout: float = 0.2
    learning_rate: float = 0.003
    epochs: int = 30
    batch_size: int = 128
    device: str | None = None
    random_state: int = 0

    def check_parameters(self) -> None:
        """Refuse parameters that are out of range."""
        _torch()
        for name in ("n_components", "hidden", "epochs", "batch_size"):
            check_integer(name, getattr(self, name), 1)
        check_integer("layers", self.layers, 0)
        check_integer("random_state", self.random_state, 0)
        check_real("dropout", self.dropout, 0.0, 0.99)
        check_real("learning_rate", self.learning_rate, 0.0, open_low=True)

    def _tables(self, d1: int, d2: int) -> list[tuple[int, int]]:
        """Return the shapes of the interaction layer's tables."""
        raise NotImplementedError

    def _width(self) -> int:
        return self.n_components

    def _layer(self, a: list[Any], b: list[Any]) -> Any:
        """Return the network's input, (pairs, width), from the sparse powers of both ends' features."""
        raise NotImplementedError

    def _powers(self) -> int:
        return 1

    def _fit(self, task: Task) -> None:
        torch = _torch()
        self._symmetric = task.A is task.B
        self._place = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.random_state)
            shapes = self._tables(task.A.shape[1], task.B.shape[1])
            self._parameters = [
                (0.1 * torch.randn(shape, device=self._place)).requires_grad_() for shape in shapes
            ]
            sizes = [self._width(), *[self.hidden] * self.layers]
            parts: list[Any] = []
            for wide, narrow in zip(sizes[:-1], sizes[1:], strict=True):
                parts += [torch.nn.Linear(wide, narrow), torch.nn.ReLU(), torch.nn.Dropout(self.dropout)]
            self._network = torch.nn.Sequential(*parts, torch.nn.Linear(sizes[-1], 1)).to(self._place)
            self._train(torch, task)

    def _train(self, torch: Any, task: Task) -> None:
        groups = [{"params": self._network.parameters(), "lr": 0.001}]
        if self._parameters:
            groups.append({"params": self._parameters, "lr": self.learning_rate})
        optimizer = torch.optim.Adam(groups)
        goal = torch.as_tensor((task.y > 0).astype(np.float32), device=self._place)
        rng = np.random.default_rng(self.random_state)
        self.history_: list[dict[str, float]] = []
        started = time.perf_counter()
        self._network.train()
        for epoch in range(self.epochs):
            total, order = 0.0, rng.permutation(len(task.y))
            for start in range(0, len(order), self.batch_size):
                report(f"epoch {epoch + 1}", epoch + start / len(order), self.epochs)
                rows = order[start : start + self.batch_size]
                logits = self._forward(task.A, task.B, task.left[rows], task.right[rows])
                loss = torch.nn.functional.binary_cross_entropy_with_logits(
                    logits, goal[torch.as_tensor(rows, device=self._place)]
                )
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += float(loss.detach()) * len(rows)
            self.history_.append({"loss": total / len(order), "seconds": time.perf_counter() - started})
        self._network.eval()

    def _forward(
        self, A: sp.csr_matrix, B: sp.csr_matrix, left: NDArray[np.int64], right: NDArray[np.int64]
    ) -> Any:
        a, b = self._sparse(A, left), self._sparse(B, right)
        z = self._layer(a, b)
        if self._symmetric and self._symmetrises():
            z = 0.5 * (z + self._layer(b, a))
        return self._network(z).squeeze(1)

    def _symmetrises(self) -> bool:
        return False

    def _sparse(self, X: sp.csr_matrix, rows: NDArray[np.int64]) -> list[Any]:
        """Return the features of the pairs' ends and their element-wise powers as sparse tensors."""
        torch = _torch()
        part = X[rows].tocoo()
        index = torch.as_tensor(np.vstack([part.row, part.col]).astype(np.int64))
        out = []
        for power in range(1, self._powers() + 1):
            values = torch.as_tensor((part.data**power).astype(np.float32))
            out.append(
                torch.sparse_coo_tensor(
                    index, values, part.shape, is_coalesced=True, check_invariants=True
                ).to(self._place)
            )
        return out

    def _score(
        self, A: sp.csr_matrix, B: sp.csr_matrix, left: NDArray[np.int64], right: NDArray[np.int64]
    ) -> Array:
        torch = _torch()
        out = np.empty(len(left))
        with torch.no_grad():
            for start in range(0, len(left), 2048):
                part = slice(start, start + 2048)
                out[part] = self._forward(A, B, left[part], right[part]).cpu().numpy()
        return out


def _orders(x: list[Any], P: Any, up_to: int) -> list[Any]:
    """Return A^1…A^up_to, (pairs, k) each, from power sums by Newton's identities."""
    torch = _torch()
    sums = [torch.sparse.mm(x[r], P ** (r + 1)) for r in range(up_to)]
    return newton_identities(sums)


@dataclass(eq=False, repr=False)
class _Interactions(_Network):
    """What the networks on interactions of order 2 to `degree` share: one pair of tables an order."""

    degree: int = 2

    def check_parameters(self) -> None:
        """Refuse parameters that are out of range."""
        check_integer("degree", self.degree, 2, 4)
        super().check_parameters()

    def _tables(self, d1: int, d2: int) -> list[tuple[int, int]]:
        return [(d, self.n_components) for _ in range(2, self.degree + 1) for d in (d1, d2)]


@LINKS.add("pair-dnn")
@documented
@dataclass(eq=False, repr=False)
class PairDNN(_Interactions):
    """A network on the layer z_s = Σ_t P^t((u_s, v_s), (a, b)), t = 2…degree (HOPairDNN above 2).

    For pairs of one kind the layer is the mean of both directions.

    Parameters
    ----------
    degree : int in 2…4

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

    def _symmetrises(self) -> bool:
        return True

    def _powers(self) -> int:
        return self.degree - 1

    def _layer(self, a: list[Any], b: list[Any]) -> Any:
        total: Any = 0.0
        for at, order in enumerate(range(2, self.degree + 1)):
            U, V = self._parameters[2 * at : 2 * at + 2]
            left, right = _orders(a, U, order - 1), _orders(b, V, order - 1)
            total = total + sum(left[t - 1] * right[order - t - 1] for t in range(1, order))
        return total


@LINKS.add("honfm")
@documented
@dataclass(eq=False, repr=False)
class HONFM(_Interactions):
    """A network on the layer z_s = Σ_t A^t(p_s, a⊕b), t = 2…degree: the higher-order neural FM.

    Parameters
    ----------
    degree : int in 2…4

    Notes
    -----
    Source: Atarashi's thesis, 3.4.3.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A, B = rng.normal(size=(30, 4)), rng.normal(size=(20, 3))
    >>> pairs = np.column_stack([rng.integers(0, 30, 400), rng.integers(0, 20, 400)])
    >>> y = A[pairs[:, 0], 0] * B[pairs[:, 1], 1] > 0
    >>> model = HONFM(n_components=8, hidden=16, layers=1, epochs=2).fit(A, B, pairs[:300], y[:300])
    >>> model.decision_function(A, B, pairs[300:]).shape
    (100,)
    """

    def _powers(self) -> int:
        return self.degree

    def _layer(self, a: list[Any], b: list[Any]) -> Any:
        torch = _torch()
        total: Any = 0.0
        for at, order in enumerate(range(2, self.degree + 1)):
            P, Q = self._parameters[2 * at : 2 * at + 2]
            sums = [
                torch.sparse.mm(a[r], P ** (r + 1)) + torch.sparse.mm(b[r], Q ** (r + 1))
                for r in range(order)
            ]
            total = total + newton_identities(sums)[-1]
        return total


@LINKS.add("concat-dnn")
@documented
@dataclass(eq=False, repr=False)
class ConcatDNN(_Network):
    """A network on the concatenated features of both ends, with no interactions given.

    Parameters
    ----------
    n_components : int ≥ 1
        Width of the first layer.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A, B = rng.normal(size=(30, 4)), rng.normal(size=(20, 3))
    >>> pairs = np.column_stack([rng.integers(0, 30, 400), rng.integers(0, 20, 400)])
    >>> y = A[pairs[:, 0], 0] * B[pairs[:, 1], 1] > 0
    >>> model = ConcatDNN(n_components=8, hidden=16, layers=1, epochs=2).fit(A, B, pairs[:300], y[:300])
    >>> model.decision_function(A, B, pairs[300:]).shape
    (100,)
    """

    n_components: int = 256
    learning_rate: float = 0.001

    def _tables(self, d1: int, d2: int) -> list[tuple[int, int]]:
        return [(d1, self.n_components), (d2, self.n_components)]

    def _layer(self, a: list[Any], b: list[Any]) -> Any:
        torch = _torch()
        P, Q = self._parameters
        return torch.relu(torch.sparse.mm(a[0], P) + torch.sparse.mm(b[0], Q))
