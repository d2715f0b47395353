"""Link predictors by the known links alone: common neighbors, resource allocation, Katz.

They use no features. Between two kinds of objects there are no common neighbors, and paths of length
three take their place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from recsys.links.base import LINKS, Array, Index, LinkPredictor, Task
from recsys.utils.validation import check_integer, check_real

BLOCK = 500  # objects whose paths are counted at once


class _Paths(LinkPredictor):
    """Base: scores are sums over paths of known links."""

    def check_parameters(self) -> None:
        """Refuse parameters that are out of range."""

    def _fit(self, task: Task) -> None:
        self.one_kind_ = task.A is task.B
        self.n_left_ = 0 if self.one_kind_ else task.A.shape[0]
        left, right = task.left[task.y > 0], self.n_left_ + task.right[task.y > 0]
        size = self.n_left_ + task.B.shape[0]
        ends = np.concatenate([left, right]), np.concatenate([right, left])
        self.links_ = sp.csr_matrix((np.ones(len(ends[0])), ends), shape=(size, size))
        self.links_.data[:] = 1.0

    def _score(self, A: sp.csr_matrix, B: sp.csr_matrix, left: Index, right: Index) -> Array:
        objects, places = np.unique(left, return_inverse=True)
        out = np.zeros(len(left))
        for start in range(0, len(objects), BLOCK):
            some = np.flatnonzero((places >= start) & (places < start + BLOCK))
            paths = self._paths(objects[start : start + BLOCK])
            out[some] = paths[places[some] - start, self.n_left_ + right[some]]
        return out

    def _paths(self, objects: Index) -> Array:
        """Return the scores of some objects with all, (objects, all)."""
        raise NotImplementedError


@LINKS.add("common-neighbors")
@dataclass(eq=False, repr=False)
class CommonNeighbors(_Paths):
    """Number of common neighbors; for two kinds, number of paths of length three."""

    def _paths(self, objects: Index) -> Array:
        paths = self.links_[objects] @ self.links_
        return np.asarray((paths if self.one_kind_ else paths @ self.links_).toarray())


@LINKS.add("resource-allocation")
@dataclass(eq=False, repr=False)
class ResourceAllocation(_Paths):
    """Common neighbors with weights 1/degree; for two kinds L3, paths with weights 1/√(degrees).

    Sources: Zhou, Lü and Zhang 2009; Kovács et al. 2019 (L3).
    """

    def _paths(self, objects: Index) -> Array:
        degrees = np.maximum(np.asarray(self.links_.sum(axis=1)).ravel(), 1.0)
        if self.one_kind_:
            return np.asarray((self.links_[objects] @ sp.diags(1.0 / degrees) @ self.links_).toarray())
        scaled = self.links_ @ sp.diags(1.0 / np.sqrt(degrees))
        return np.asarray((scaled[objects] @ scaled @ self.links_).toarray())


@LINKS.add("katz")
@dataclass(eq=False, repr=False)
class Katz(_Paths):
    """Katz' index: Σ_l decay^l · (number of paths of length l), l = 1…length.

    Parameters
    ----------
    decay : float in (0, 1)
    length : int ≥ 2
    """

    decay: float = 0.005
    length: int = 5

    def check_parameters(self) -> None:
        """Refuse parameters that are out of range."""
        check_real("decay", self.decay, 0.0, 1.0, open_low=True)
        check_integer("length", self.length, 2, 20)

    def _paths(self, objects: Index) -> Array:
        step: Any = self.decay * self.links_[objects].toarray()
        out = step.copy()
        for _ in range(self.length - 1):
            step = self.decay * (step @ self.links_)
            out += step
        return out
