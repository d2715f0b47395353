"""Gram matrices for the machines: from names, kernels, callables, or given ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.kernels import Kernel, make_kernel
from recsys.utils.memory import check_fits


def resolve(kernel: Any, params: dict[str, Any] | None = None) -> Callable[..., NDArray[np.float64]]:
    """Return a callable (X, Z, normalize) for a name, a Kernel or a function of two matrices."""
    if isinstance(kernel, str):
        return make_kernel(kernel, **(params or {}))
    if isinstance(kernel, type) or not callable(kernel):
        raise InputError(
            f"a kernel must be a name, a Kernel or a function of two matrices, not {kernel!r}"
        )
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


class Grams:
    """Gram matrices of one size in one array, (kernels, rows, rows)."""

    def __init__(self, makers: Sequence[Callable[[], NDArray[np.float64]]], rows: int) -> None:
        count = len(makers)
        check_fits(
            count * rows * rows, f"{count} Gram matrices of {rows:,} rows", "use fewer rows or kernels"
        )
        self.all = np.empty((count, rows, rows))
        for k, make in enumerate(makers):
            self.all[k] = make()

    def __iter__(self) -> Iterator[NDArray[np.float64]]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def combine(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Σ weights[r]·K_r, in one pass."""
        count, rows, _ = self.all.shape
        flat = self.all.reshape(count, -1)
        return (weights @ flat).reshape(rows, rows)

    def quadratic(self, *vectors: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Return vᵀ K_r v over r for each v, all in one pass."""
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
