"""Link predictors by the known links alone: common neighbors, resource allocation, Katz.

They use no features. Between two kinds of objects there are no common neighbors, and paths of length
three take their place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.links.base import LINKS, Array, Learned, LinkPredictor, Task
from recsys.utils.validation import check_integer, check_real

ROWS = 500  # objects whose paths are counted at once


class _Paths(LinkPredictor):
    """Base: scores are sums over paths of known links."""

    def check_parameters(self) -> None:
        """Refuse parameters that are out of range."""

    def _fit(self, task: Task) -> None:
        linked = task.y > 0
        left, right = task.left[linked], task.right[linked]
        self.one_kind_ = task.A is task.B
        self.n_left_ = task.A.shape[0]
        size = self.n_left_ if self.one_kind_ else self.n_left_ + task.B.shape[0]
        if not self.one_kind_:
            right = right + self.n_left_
        ones = np.ones(2 * len(left))
        ends = np.concatenate([left, right]), np.concatenate([right, left])
        links = sp.csr_matrix((ones, ends), shape=(size, size))
        links.data[:] = 1.0
        self.links_ = links

    def _score(
        self, A: sp.csr_matrix, B: sp.csr_matrix, left: NDArray[np.int64], right: NDArray[np.int64]
    ) -> Array:
        if not self.one_kind_:
            right = right + self.n_left_
        objects, places = np.unique(left, return_inverse=True)
        out = np.zeros(len(left))
        for start in range(0, len(objects), ROWS):
            some = objects[start : start + ROWS]
            mine = np.flatnonzero((places >= start) & (places < start + ROWS))
            out[mine] = self._rows(some)[places[mine] - start, right[mine]]
        return out

    def _rows(self, objects: NDArray[np.int64]) -> Array:
        """Return the scores of some objects with all, (objects, all)."""
        raise NotImplementedError

    def _learned(self) -> Learned:
        links = self.links_.tocoo()
        arrays = {"ends": np.stack([links.row, links.col]).astype(np.int64)}
        return Learned({"one_kind_": self.one_kind_, "n_left_": self.n_left_}, arrays)

    def _restore(self, learned: Learned) -> None:
        self.one_kind_ = bool(learned.scalars.pop("one_kind_"))
        self.n_left_ = int(learned.scalars.pop("n_left_"))
        ends = learned.arrays.pop("ends")
        size = int(ends.max(initial=self.n_left_ - 1)) + 1
        self.links_ = sp.csr_matrix((np.ones(ends.shape[1]), tuple(ends)), shape=(size, size))


@LINKS.add("common-neighbors")
@dataclass(eq=False, repr=False)
class CommonNeighbors(_Paths):
    """Number of common neighbors; between two kinds, of paths of length three."""

    def _rows(self, objects: NDArray[np.int64]) -> Array:
        paths = self.links_[objects] @ self.links_
        return np.asarray((paths if self.one_kind_ else paths @ self.links_).toarray())


@LINKS.add("resource-allocation")
@dataclass(eq=False, repr=False)
class ResourceAllocation(_Paths):
    """Common neighbors weighed by 1/degree; between two kinds L3, paths weighed by 1/√(degrees).

    Sources: Zhou, Lü and Zhang 2009; Kovács et al. 2019 (L3).
    """

    def _rows(self, objects: NDArray[np.int64]) -> Array:
        degrees = np.maximum(np.asarray(self.links_.sum(axis=1)).ravel(), 1.0)
        if self.one_kind_:
            return np.asarray((self.links_[objects] @ sp.diags(1.0 / degrees) @ self.links_).toarray())
        scale = sp.diags(1.0 / np.sqrt(degrees))
        return np.asarray((self.links_[objects] @ scale @ self.links_ @ scale @ self.links_).toarray())


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

    def _rows(self, objects: NDArray[np.int64]) -> Array:
        step: Any = self.links_[objects].toarray()
        out = self.decay * step
        for power in range(2, self.length + 1):
            step = step @ self.links_
            out += self.decay**power * step
        return out
