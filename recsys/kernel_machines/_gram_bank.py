"""Gram matrices for the machines: from names, kernels, callables, or given ones; kept in bounds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.kernels import Kernel, make_kernel
from recsys.utils.memory import free_memory


def resolve(kernel: Any, params: dict[str, Any] | None = None) -> Callable[..., NDArray[np.float64]]:
    """Return a callable (X, Z, normalize) for a name, a Kernel or a function of two matrices."""
    if isinstance(kernel, str):
        return make_kernel(kernel, **(params or {}))
    if isinstance(kernel, type) or not callable(kernel):
        raise InputError(f"a kernel is a name, a Kernel or a function of two matrices, not {kernel!r}")
    return kernel if isinstance(kernel, Kernel) else FunctionKernel(kernel)


@dataclass(frozen=True)
class FunctionKernel:
    """A function of two matrices of real rows, as scikit-learn's SVC takes it, called as a Kernel is."""

    function: Callable[..., Any]

    def __call__(self, X: Any, Z: Any = None, normalize: bool = False) -> NDArray[np.float64]:
        """Return the Gram matrix."""
        K = self._matrix(X, X if Z is None else Z)
        if not normalize:
            return K
        left = np.sqrt(K.diagonal() if Z is None else self._own(X))
        scale = np.outer(left, left if Z is None else np.sqrt(self._own(Z)))
        out = np.divide(K, scale, out=np.zeros_like(K), where=scale > 0)
        if Z is None:
            np.fill_diagonal(out, 1.0)
        return out

    def _matrix(self, X: Any, Z: Any) -> NDArray[np.float64]:
        K = np.asarray(self.function(X, Z), dtype=np.float64)
        if K.shape != (X.shape[0], Z.shape[0]) or not np.isfinite(K).all():
            name = getattr(self.function, "__name__", repr(self.function))
            shape = (X.shape[0], Z.shape[0])
            raise InputError(f"kernel function {name} must return finite values of shape {shape}")
        return K

    def _own(self, X: Any) -> NDArray[np.float64]:
        return np.array([self._matrix(X[i : i + 1], X[i : i + 1])[0, 0] for i in range(X.shape[0])])


class Bank:
    """Gram matrices of one size, taken one by one: in memory, or beyond `max_bytes` in a temporary file.

    `max_bytes` is half of the free memory by default.
    """

    def __init__(
        self, grams: Iterable[NDArray[np.float64]], count: int, rows: int, max_bytes: int | None = None
    ) -> None:
        if isinstance(grams, np.ndarray) and grams.flags.c_contiguous and grams.dtype == np.float64:
            self.on_disk, self.all = False, grams  # one array already: read, never written
            return
        need = 8 * count * rows * rows
        limit = free_memory() // 2 if max_bytes is None else max_bytes
        self.on_disk = need > limit
        shape = (count, rows, rows)
        if self.on_disk:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the bank
            self.all = np.memmap(self._file, dtype=np.float64, mode="w+", shape=shape)
        else:
            self.all = np.empty(shape)
        for k, gram in enumerate(grams):
            self.all[k] = gram

    all: NDArray[np.float64]

    def close(self) -> None:
        """Give the memory or the file back; the bank is empty afterwards."""
        self.all = np.empty((0, 0, 0))
        if self.on_disk:
            self._file.close()

    def __iter__(self) -> Iterator[NDArray[np.float64]]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def combine(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Σ weights[r]·K_r, in one pass over the bank."""
        count, rows, _ = self.all.shape
        flat = self.all.reshape(count, -1)
        return (weights @ flat).reshape(rows, rows)

    def quadratic(self, *vectors: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Return vᵀ K_r v over r for each v, all in one pass over the bank."""
        V = np.array(vectors).T
        support = np.flatnonzero((V != 0).any(axis=1))
        if len(support) < 0.3 * len(V):
            V = np.ascontiguousarray(V[support])
            parts = (gram[np.ix_(support, support)] for gram in self.all)
        else:
            parts = (gram for gram in self.all)
        found = np.array([np.einsum("ij,ij->j", V, part @ V) for part in parts])
        return list(found.T)

    def diagonals(self) -> NDArray[np.float64]:
        """Return the diagonals, (kernels, rows)."""
        return np.array([np.diag(gram) for gram in self.all])
