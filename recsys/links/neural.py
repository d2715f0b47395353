"""Neural link predictors on PyTorch: PairDNN, HONFM and plain concatenation."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import FitError, InputError
from recsys.links.base import LINKS, Array, Learned, LinkPredictor, Task
from recsys.links.serialization import taken, taken_flag
from recsys.multilinear import newton_identities
from recsys.utils.docstrings import documented
from recsys.utils.memory import check_fits
from recsys.utils.progress import report
from recsys.utils.validation import check_integer, check_real

__all__ = ["HONFM", "ConcatDNN", "PairDNN"]

MOST_LAYERS = 100  # whose arrays fit one file
BATCH = 2048  # pairs that are scored at once


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise InputError(
            "the neural link predictors need PyTorch: pip install 'recsys[deep]'"
        ) from error
    return torch


def _usable(torch: Any, device: str | None) -> str:
    """Return the device to compute on, once it holds a number.

    Raises
    ------
    InputError
        If it is none of PyTorch's, or not on this machine.
    """
    place = ("cuda" if torch.cuda.is_available() else "cpu") if device is None else device
    try:
        torch.zeros(1, device=place).item()
    except (AssertionError, NotImplementedError, RuntimeError, TypeError) as error:
        why = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise InputError(f"device {place!r} cannot be used: {why}") from error
    return place


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
    device : str, optional
        Of PyTorch; by default a GPU where there is one. A file does not keep it.
    random_state : int

    Attributes
    ----------
    symmetric_ : bool
        Whether a pair has the score of its reverse.
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
        torch = _torch()
        for name in ("n_components", "hidden", "epochs", "batch_size"):
            check_integer(name, getattr(self, name), 1)
        check_integer("layers", self.layers, 0, MOST_LAYERS)
        check_integer("random_state", self.random_state, 0)
        check_real("dropout", self.dropout, 0.0, 0.99)
        check_real("learning_rate", self.learning_rate, 0.0, open_low=True)
        _usable(torch, self.device)

    def _tables(self, d1: int, d2: int) -> list[tuple[int, int]]:
        """Return the shapes of the interaction layer's tables."""
        raise NotImplementedError

    def _sizes(self) -> list[tuple[int, int]]:
        """Return the inputs and outputs of each layer of the network."""
        return list(pairwise([self.n_components, *[self.hidden] * self.layers, 1]))

    def _layer(self, a: list[Any], b: list[Any]) -> Any:
        """Return the network's input, (pairs, width), from the sparse powers of both ends' features."""
        raise NotImplementedError

    def _powers(self) -> int:
        return 1

    def _fit(self, task: Task) -> None:
        torch = _torch()
        self.symmetric_ = task.A is task.B and self._symmetrises()
        shapes = self._tables(task.A.shape[1], task.B.shape[1])
        weights = sum(rows * columns for rows, columns in [*shapes, *self._sizes()])
        # float32 each, with its gradient and Adam's two moments
        check_fits(
            2.0 * weights, f"the {weights:,} weights of this network",
            "lower n_components, hidden or layers",
        )  # fmt: skip
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.random_state)
            self._place = _usable(torch, self.device)
            self._parameters = [
                (0.1 * torch.randn(shape, dtype=torch.float32, device=self._place)).requires_grad_()
                for shape in shapes
            ]
            self._build(torch)
            self._train(torch, task)

    def _build(self, torch: Any) -> None:
        parts: list[Any] = []
        for wide, narrow in self._sizes():
            parts += [torch.nn.Linear(wide, narrow, dtype=torch.float32), torch.nn.ReLU()]
            parts.append(torch.nn.Dropout(self.dropout))
        self._network = torch.nn.Sequential(*parts[:-2]).to(self._place)  # none behind the last

    def _dense(self) -> list[Any]:
        """Return the network's linear layers."""
        return list(self._network)[::3]

    def _learned(self) -> Learned:
        found = {f"tables_.{k}": table for k, table in enumerate(self._parameters)}
        for k, dense in enumerate(self._dense()):
            found |= {f"weights_.{k}": dense.weight, f"biases_.{k}": dense.bias}
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in found.items()}
        return Learned({"symmetric_": self.symmetric_}, arrays)

    def _restore(self, learned: Learned) -> None:
        torch = _torch()
        self.symmetric_ = taken_flag(learned, "symmetric_")
        if self.symmetric_ and not (self._symmetrises() and len(set(self.n_features_)) == 1):
            raise ValueError("symmetric_ needs one kind of objects, and a model that symmetrises")
        tables = [
            taken(learned, f"tables_.{k}", shape, np.float32)
            for k, shape in enumerate(self._tables(*self.n_features_))
        ]
        dense = [
            (
                taken(learned, f"weights_.{k}", (narrow, wide), np.float32),
                taken(learned, f"biases_.{k}", (narrow,), np.float32),
            )
            for k, (wide, narrow) in enumerate(self._sizes())
        ]
        self._place = _usable(torch, self.device)
        self._parameters = [torch.tensor(table, device=self._place) for table in tables]
        with torch.random.fork_rng(devices=[]):  # layers are drawn before they are filled
            self._build(torch)
        with torch.no_grad():
            for layer, (weights, biases) in zip(self._dense(), dense, strict=True):
                layer.weight.copy_(torch.tensor(weights))
                layer.bias.copy_(torch.tensor(biases))
        self._network.eval()

    def _train(self, torch: Any, task: Task) -> None:
        optimizer = torch.optim.Adam(
            [
                {"params": self._network.parameters(), "lr": 0.001},
                {"params": self._parameters, "lr": self.learning_rate},
            ]
        )
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
            if not np.isfinite(total):
                raise FitError(
                    f"the loss is {total / len(order)} in epoch {epoch + 1}: scale the features, or "
                    f"lower learning_rate (now {self.learning_rate:g})"
                )
            self.history_.append({"loss": total / len(order), "seconds": time.perf_counter() - started})
        self._network.eval()

    def _forward(
        self, A: sp.csr_matrix, B: sp.csr_matrix, left: NDArray[np.int64], right: NDArray[np.int64]
    ) -> Any:
        a, b = A[left], B[right]
        if self.symmetric_:  # both directions in one pass: the powers of the tables are dear
            z = self._layer(self._sparse(sp.vstack([a, b])), self._sparse(sp.vstack([b, a])))
            z = 0.5 * (z[: len(left)] + z[len(left) :])
        else:
            z = self._layer(self._sparse(a), self._sparse(b))
        return self._network(z).squeeze(1)

    def _symmetrises(self) -> bool:
        return False

    def _sparse(self, X: sp.csr_matrix) -> list[Any]:
        """Return the features of the pairs' ends and their element-wise powers as sparse tensors."""
        torch = _torch()
        part = X.tocoo()
        index = torch.as_tensor(np.vstack([part.row, part.col]).astype(np.int64))
        out = []
        for power in range(1, self._powers() + 1):
            with np.errstate(over="ignore"):  # of which there is a message later
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
            for start in range(0, len(left), BATCH):
                part = slice(start, start + BATCH)
                out[part] = self._forward(A, B, left[part], right[part]).cpu().numpy()
        if not np.isfinite(out).all():
            raise InputError(
                "a score is not finite: the features are too large for single precision, scale them"
            )
        return out


def _power_sums(x: list[Any], tables: list[Any], needs: list[int]) -> list[list[Any]]:
    """Return Σ_j (p_js x_j)^r of each table, (pairs, k), r = 1…what it needs; needs rise.

    The tables are side by side: a product with the sparse features serves all of them.
    """
    torch = _torch()
    k = tables[0].shape[1]
    wide = torch.cat(tables, dim=1)
    power, before = wide, 0
    out: list[list[Any]] = [[] for _ in tables]
    for r in range(needs[-1]):
        first = sum(need <= r for need in needs)  # the tables before it have all they need
        if r:
            power = power[:, (first - before) * k :] * wide[:, first * k :]
        found = torch.sparse.mm(x[r], power).split(k, dim=1)
        for sums, own in zip(out[first:], found, strict=True):
            sums.append(own)
        before = first
    return out


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
        needs = list(range(1, self.degree))
        ends = zip(
            _power_sums(a, self._parameters[::2], needs),
            _power_sums(b, self._parameters[1::2], needs),
            strict=True,
        )
        total: Any = 0.0
        for sums in ends:
            left, right = (newton_identities(own) for own in sums)  # A^1…A^(t − 1) of each end
            total = total + sum(p * q for p, q in zip(left, right[::-1], strict=True))
        return total


@LINKS.add("honfm")
@documented
@dataclass(eq=False, repr=False)
class HONFM(_Interactions):
    """A network on the layer z_s = Σ_t A^t(p_s, a⊕b), t = 2…degree: the higher-order neural FM.

    Each end has factors of its own, so that a pair of one kind and its reverse differ.

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
        needs = list(range(2, self.degree + 1))
        ends = zip(
            _power_sums(a, self._parameters[::2], needs),
            _power_sums(b, self._parameters[1::2], needs),
            strict=True,
        )
        total: Any = 0.0
        for left, right in ends:
            both = [p + q for p, q in zip(left, right, strict=True)]
            total = total + newton_identities(both)[-1]
        return total


@LINKS.add("concat-dnn")
@documented
@dataclass(eq=False, repr=False)
class ConcatDNN(_Network):
    """A network on the concatenated features of both ends, with no interactions given.

    A pair of one kind and its reverse differ.

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
