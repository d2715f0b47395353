"""Fuzzy KOMD: CF-KOMD under a Boolean kernel of fuzzy items, for weights and ratings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.kernels import Kernel
from recsys.kernels.fuzzy import CONNECTIVES, fuzzy_kernel
from recsys.kernels.gram.counts import ItemCounts, dense_counts
from recsys.kernels.gram.rows import ItemRows
from recsys.rankers._gram_view import DenseView, GramView
from recsys.rankers._margin import MarginRanker
from recsys.rankers.registry import RANKERS
from recsys.rankers.state import expect_csr
from recsys.utils.docstrings import documented
from recsys.utils.memory import check_memory
from recsys.utils.validation import check_choice, check_integer


@RANKERS.add("fuzzy-komd")
@documented
@dataclass(eq=False)
class FuzzyKOMD(MarginRanker):
    """CF-KOMD under the Boolean kernel of fuzzy vectors: how much a user has an item counts.

    A user has an item to the degree of its weight over the user's largest weight. An item is the vector
    of these degrees, and the kernel counts the sets of `degree` users as far as they have both items
    (`recsys.kernels.fuzzy_kernel`, normalised). On weights that are all equal the lists are those of
    `cf-komd` under mC or mD.

    Parameters
    ----------
    connective : "and" or "or"
        Of the users of a set.
    degree : int ≥ 1
        Users in a set; at most the number of users is taken.

    Attributes
    ----------
    degrees_ : (users, items) float64 CSR
        To what degree each user has each item.

    Notes
    -----
    Source: Polato's thesis, 10.2, with the fuzzy logic that its last chapter names as future work. The
    fit takes (interactions of both items) × degree operations for each pair of items, and the matrix
    12·items² bytes while it is made, 4·items² afterwards.

    Examples
    --------
    >>> plays = [[9, 1, 0, 0], [8, 7, 2, 0], [0, 1, 9, 0], [0, 0, 0, 1]]
    >>> model = FuzzyKOMD(degree=1).fit(plays, show_progress=False)
    >>> model.recommend(0, [plays[0]], N=1).ids
    array([2], dtype=int32)
    """

    connective: str = "and"
    degree: int = 2
    regularization: float = 0.01
    recency: float = 0.0
    q: str = "exact"
    unrated: str = "kernel"

    name: ClassVar[str] = "fuzzy-komd"
    weighted: ClassVar[bool] = True  # values above 0 become degrees
    dense: ClassVar[bool] = True
    search_space: ClassVar[dict[str, Any]] = {
        "connective": CONNECTIVES,
        "degree": (1, 2, 3),
        "regularization": ("log", 1e-3, 10.0),
        "recency": ("real", 0.0, 2.0, "times"),
    }

    @property
    def kernel_(self) -> Kernel:
        """None, by an AttributeError: the kernel is not one of counts."""
        raise AttributeError("the kernel is of degrees, and not of counts")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("connective", self.connective, CONNECTIVES)
        check_integer("degree", self.degree, 1)

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Any) -> None:
        items = liked.shape[1]
        check_memory(12 * items * items, f"the kernel of {items:,} items")
        degrees = sp.csr_matrix(liked, dtype=np.float64, copy=True)
        degrees.data /= np.repeat(degrees.max(axis=1).toarray().ravel(), np.diff(liked.indptr))
        self.degrees_: sp.csr_matrix = degrees
        self._keep(dense_counts(liked))
        self.prepare()

    def _key(self) -> Any:
        return self.connective, self.degree

    def _derive(
        self, counts: ItemCounts | ItemRows
    ) -> tuple[GramView, NDArray[np.float64], NDArray[np.float64] | None]:
        degree = min(self.degree, self.degrees_.shape[0])
        found = fuzzy_kernel(
            self.degrees_.T.tocsr(), connective=self.connective, degree=degree, normalize=True
        )
        gram = found.astype(np.float32)
        return DenseView(gram), gram.sum(axis=1, dtype=np.float64), None

    def _check_state(self) -> None:
        super()._check_state()
        expect_csr("degrees_", self.degrees_, (self.n_users_, self.n_items_), np.float64)
        if not ((self.degrees_.data > 0.0) & (self.degrees_.data <= 1.0)).all():
            raise ValueError("degrees_ should be above 0 and at most 1")
