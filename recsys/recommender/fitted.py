"""The state of a fitted recommender, and its use by several threads."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from recsys.data import Interactions
from recsys.explain import Attributes, item_attributes
from recsys.rankers import ModelPackage
from recsys.rankers.catalogue import texts_of

Method = TypeVar("Method", bound=Callable[..., Any])


def of_one_state(method: Method) -> Method:
    """Run a method on a shallow copy of its object, so that an update meanwhile does not change it."""

    @functools.wraps(method)
    def answer(self: Any, *given: Any, **named: Any) -> Any:
        return method(copy.copy(self), *given, **named)

    return answer  # type: ignore[return-value]


def one_at_a_time(method: Method) -> Method:
    """Run one such method at a time, whichever threads call them."""

    @functools.wraps(method)
    def change(self: Any, *given: Any, **named: Any) -> Any:
        with self._changing:
            return method(self, *given, **named)

    return change  # type: ignore[return-value]


class Fitted:
    """A model package, and values derived from it once."""

    def __init__(self, package: ModelPackage) -> None:
        self.package = package

    @cached_property
    def titled(self) -> bool:
        """Whether items have titles besides their ids."""
        return bool((self.package.titles != texts_of(self.package.item_ids)).any())

    @property
    def item_users(self) -> Any:
        """Users of each item, as CSC."""
        return self.package.item_users

    @cached_property
    def attributes(self) -> Attributes:
        """The items' attributes."""
        return item_attributes(self.package.interactions)


def of_matrix(matrix: sp.csr_matrix) -> Interactions:
    """Return the pairs of a matrix, with the numbers of its rows and columns for ids."""
    pairs = matrix.tocoo()
    users, items = (np.array(range(size), dtype=object) for size in matrix.shape)
    weight = pairs.data.astype(np.float64) if (pairs.data != 1).any() else None
    return Interactions(
        pairs.row.astype(np.int32), pairs.col.astype(np.int32), users, items, weight=weight
    )
