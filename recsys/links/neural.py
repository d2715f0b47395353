"""Neural link predictors on PyTorch: PairDNN, HONFM and plain concatenation."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import FitError, InputError
from recsys.links._files import taken, taken_flag
from recsys.links.base import LINKS, Array, Learned, LinkPredictor, Task
from recsys.multilinear import newton_identities
from recsys.utils.extras import install_hint
from recsys.utils.features import relative_weights
from recsys.utils.memory import check_fits
from recsys.utils.progress import report
from recsys.utils.validation import check_integer, check_real

__all__ = ["HONFM", "ConcatDNN", "PairDNN"]

MOST_LAYERS = 100  # whose arrays fit one file
BATCH = 2**16  # pairs that are scored at once


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise InputError(f"the neural link predictors need PyTorch: {install_hint('deep')}") from error
    return torch


def _usable(torch: Any, device: str | None) -> str:
    """Return the device to compute on, once it holds a number."""
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

    With `sample_weight` each pair's loss is times its weight over their mean.

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

    takes_weights: ClassVar[bool] = True

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

    def _end(self, x: list[tuple[Any, Any]], side: int) -> list[Any]:
        """Return all that the layer takes from objects at one end, tensors (objects, k).

        `x` holds the sparse powers of their features, and `side` is 0 at the left end, 1 at the right.
        """
        raise NotImplementedError

    def _layer(self, left: list[Any], right: list[Any]) -> Any:
        """Return the network's input, (pairs, width), from what `_end` gives for each pair's ends."""
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
            2.0 * weights,
            f"the {weights:,} weights of this network",
            "lower n_components, hidden or layers",
        )
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
        relative = relative_weights(task.weights)
        weights = None
        if relative is not None:
            weights = torch.as_tensor(relative.astype(np.float32), device=self._place)
        rng = np.random.default_rng(self.random_state)
        self.history_: list[dict[str, float]] = []
        started = time.perf_counter()
        self._network.train()
        for epoch in range(self.epochs):
            total, order = 0.0, rng.permutation(len(task.y))
            for start in range(0, len(order), self.batch_size):
                report(f"epoch {epoch + 1}", epoch + start / len(order), self.epochs)
                rows = order[start : start + self.batch_size]
                logits = self._network(self._inputs(task.A, task.B, task.left[rows], task.right[rows]))
                logits = logits.squeeze(1)
                picked = torch.as_tensor(rows, device=self._place)
                loss = torch.nn.functional.binary_cross_entropy_with_logits(
                    logits, goal[picked], None if weights is None else weights[picked]
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

    def _inputs(
        self, A: sp.csr_matrix, B: sp.csr_matrix, left: NDArray[np.int64], right: NDArray[np.int64]
    ) -> Any:
        """Return the network's input for pairs; what an object has to give is computed once."""
        (a, left), (b, right) = self._objects(left), self._objects(right)
        x, z = self._sparse(A[a]), self._sparse(B[b])
        one = self._layer(_of(self._end(x, 0), left), _of(self._end(z, 1), right))
        if not self.symmetric_:
            return one
        return 0.5 * (one + self._layer(_of(self._end(z, 0), right), _of(self._end(x, 1), left)))

    def _objects(self, of: NDArray[np.int64]) -> tuple[NDArray[np.int64], Any]:
        """Return the objects among `of`, each once, and the index there of each."""
        objects, places = np.unique(of, return_inverse=True)
        return objects, _torch().as_tensor(places, device=self._place)

    def _symmetrises(self) -> bool:
        return False

    def _sparse(self, X: sp.csr_matrix) -> list[tuple[Any, Any]]:
        """Return the element-wise powers of the features of objects, each with its transpose."""
        part = sp.csr_matrix(X, dtype=np.float64)
        across = part.T.tocsr()
        out = []
        for power in range(1, self._powers() + 1):
            with np.errstate(over="ignore"):  # of which there is a message later
                both = [(x, (x.data**power).astype(np.float32)) for x in (part, across)]
            out.append((_tensor(*both[0], self._place), _tensor(*both[1], self._place)))
        return out

    def _score(
        self, A: sp.csr_matrix, B: sp.csr_matrix, left: NDArray[np.int64], right: NDArray[np.int64]
    ) -> Array:
        torch = _torch()
        out = np.empty(len(left))
        with torch.no_grad():
            for start in range(0, len(left), BATCH):
                part = slice(start, start + BATCH)
                inputs = self._inputs(A, B, left[part], right[part])
                out[part] = self._network(inputs).squeeze(1).cpu().numpy()
        if not np.isfinite(out).all():
            raise InputError(
                "a score is not finite: the features are too large for single precision, scale them"
            )
        return out


def _tensor(X: sp.csr_matrix, values: NDArray[np.float32], place: str) -> Any:
    """Return the matrix of `X`'s entries with other values as a sparse tensor.

    By rows, with short indices, its product is MKL's and takes a third of the time; PyTorch without MKL
    has none of that kind.
    """
    torch = _torch()
    if torch.backends.mkl.is_available() or place != "cpu":
        rows, columns = X.indptr.astype(np.int32), X.indices.astype(np.int32)
        parts = [torch.as_tensor(part, device=place) for part in (rows, columns, values)]
        with warnings.catch_warnings():  # once a process: that such tensors are new
            warnings.simplefilter("ignore", UserWarning)
            return torch.sparse_csr_tensor(*parts, X.shape, check_invariants=True)
    entries = X.tocoo()
    index = torch.as_tensor(np.vstack([entries.row, entries.col]).astype(np.int64), device=place)
    values = torch.as_tensor(values, device=place)
    return torch.sparse_coo_tensor(index, values, X.shape, is_coalesced=True, check_invariants=True)


@cache
def _product() -> Any:
    """Return the product of a sparse tensor with a table, with a gradient in the table alone."""
    torch = _torch()

    class Product(torch.autograd.Function):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(context: Any, x: Any, across: Any, table: Any) -> Any:
            context.across = across
            return torch.sparse.mm(x, table)

        @staticmethod
        def backward(context: Any, slope: Any) -> Any:
            return None, None, torch.sparse.mm(context.across, slope)

    return Product


def _times(x: tuple[Any, Any], table: Any) -> Any:
    """Return x table for a sparse x that is given with its transpose."""
    return _product().apply(*x, table)


def _of(end: list[Any], places: Any) -> list[Any]:
    """Return the rows at `places` of each tensor."""
    return [tensor.index_select(0, places) for tensor in end]


def _power_sums(x: list[tuple[Any, Any]], tables: list[Any], needs: list[int]) -> list[list[Any]]:
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
        found = _times(x[r], power).split(k, dim=1)
        for sums, own in zip(out[first:], found, strict=True):
            sums.append(own)
        before = first
    return out


def _orders(counts: Iterable[int]) -> list[slice]:
    """Return the slices of the tensors of each order in the result of `_end`."""
    ends = [0, *accumulate(counts)]
    return [slice(start, stop) for start, stop in pairwise(ends)]


@dataclass(eq=False, repr=False)
class _Interactions(_Network):
    """Base of the networks on interactions of order 2 to `degree`: one pair of tables an order.

    Parameters
    ----------
    degree : int in 2…4
    """

    degree: int = 2

    def check_parameters(self) -> None:
        """Refuse parameters that are out of range."""
        check_integer("degree", self.degree, 2, 4)
        super().check_parameters()

    def _tables(self, d1: int, d2: int) -> list[tuple[int, int]]:
        return [(d, self.n_components) for _ in range(2, self.degree + 1) for d in (d1, d2)]


@LINKS.add("pair-dnn")
@dataclass(eq=False, repr=False)
class PairDNN(_Interactions):
    """A network on the layer z_s = Σ_t P^t((u_s, v_s), (a, b)), t = 2…degree (HOPairDNN above 2).

    For pairs of one kind the layer is the mean of both directions.

    Other parameters: as of `_Interactions`.

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

    def _end(self, x: list[tuple[Any, Any]], side: int) -> list[Any]:
        """Return A^1…A^(t − 1) of an end for t = 2, for t = 3 and so on."""
        sums = _power_sums(x, self._parameters[side::2], list(range(1, self.degree)))
        return [kernel for own in sums for kernel in newton_identities(own)]

    def _layer(self, left: list[Any], right: list[Any]) -> Any:
        total: Any = 0.0
        for part in _orders(range(1, self.degree)):
            total = total + sum(p * q for p, q in zip(left[part], right[part][::-1], strict=True))
        return total


@LINKS.add("honfm")
@dataclass(eq=False, repr=False)
class HONFM(_Interactions):
    """A network on the layer z_s = Σ_t A^t(p_s, a⊕b), t = 2…degree: the higher-order neural FM.

    Each end has factors of its own, so that a pair of one kind and its reverse differ.

    Other parameters: as of `_Interactions`.

    Notes
    -----
    Source: Atarashi's thesis, 3.4.3.

    Examples
    --------
    >>> import numpy as np
    >>> A, pairs = np.eye(4), np.array([[0, 1], [1, 2], [0, 2], [0, 3], [1, 3], [2, 3]])
    >>> model = HONFM(layers=1, epochs=2).fit(A, None, pairs, [1, 1, 1, 0, 0, 0])
    >>> model.predict(A, None, pairs).shape
    (6,)
    """

    def _powers(self) -> int:
        return self.degree

    def _end(self, x: list[tuple[Any, Any]], side: int) -> list[Any]:
        """Return the power sums 1…t of an end for t = 2, for t = 3 and so on."""
        sums = _power_sums(x, self._parameters[side::2], list(range(2, self.degree + 1)))
        return [power for own in sums for power in own]

    def _layer(self, left: list[Any], right: list[Any]) -> Any:
        total: Any = 0.0
        for part in _orders(range(2, self.degree + 1)):
            both = [p + q for p, q in zip(left[part], right[part], strict=True)]
            total = total + newton_identities(both)[-1]
        return total


@LINKS.add("concat-dnn")
@dataclass(eq=False, repr=False)
class ConcatDNN(_Network):
    """A network on the concatenated features of both ends, with no interactions given.

    A pair of one kind and its reverse differ.

    Parameters
    ----------
    n_components : int ≥ 1
        Width of the first layer.

    Other parameters: as of `_Network`.

    Examples
    --------
    >>> import numpy as np
    >>> A, pairs = np.eye(4), np.array([[0, 1], [1, 2], [0, 2], [0, 3], [1, 3], [2, 3]])
    >>> model = ConcatDNN(layers=1, epochs=2).fit(A, None, pairs, [1, 1, 1, 0, 0, 0])
    >>> model.predict(A, None, pairs).shape
    (6,)
    """

    n_components: int = 256
    learning_rate: float = 0.001

    def _tables(self, d1: int, d2: int) -> list[tuple[int, int]]:
        return [(d1, self.n_components), (d2, self.n_components)]

    def _end(self, x: list[tuple[Any, Any]], side: int) -> list[Any]:
        return [_times(x[0], self._parameters[side])]

    def _layer(self, left: list[Any], right: list[Any]) -> Any:
        return _torch().relu(left[0] + right[0])
