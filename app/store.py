"""Values of all sessions by key, kept while they fit into memory set aside for them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

V = TypeVar("V")


class Store(Generic[V]):
    """Values by key; those least recently asked for are dropped when memory runs out.

    Threads may share it.

    Parameters
    ----------
    most : int
        Bytes of all that is kept; the latest value is kept whatever its size.

    Examples
    --------
    >>> kept: Store[str] = Store(most=100)
    >>> for key in ("a", "b"):
    ...     kept.keep(key, key.upper(), 40)
    >>> kept.find("a")
    'A'
    >>> kept.keep("c", "C", 40)
    >>> kept.find("b") is None
    True
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[V, int]] = OrderedDict()

    def keep(self, key: str, value: V, size: int) -> None:
        """Keep a value of so many bytes, in the place of one of the same key."""
        with self._lock:
            self._kept[key] = (value, size)
            self._kept.move_to_end(key)
            total = sum(bytes_ for _, bytes_ in self._kept.values())
            while total > self.most and len(self._kept) > 1:
                total -= self._kept.popitem(last=False)[1][1]

    def find(self, key: str) -> V | None:
        """Return the value of a key, or None where there is none or it was dropped."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]
