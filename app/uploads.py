"""Uploaded files and the tables read from them, kept for the process: a reload of a page finds them."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from typing import Any

from app.jobs import size_of

MOST = 1_500_000_000  # bytes of all uploads; the oldest go first
LETTERS = 24  # of a token: nobody guesses another person's


class Uploads:
    """What was uploaded, by a token that follows from the content.

    Parameters
    ----------
    most : int
        Bytes to keep.
    """

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[str, Any, int]] = OrderedDict()

    def keep(self, name: str, content: Any, told: str = "") -> str:
        """Keep bytes, or a table that was read from them, and return the token.

        Parameters
        ----------
        told : str
            What else a table depends on, where the content is none of bytes.
        """
        digest = hashlib.sha256(name.encode() + b"\0" + told.encode())
        if isinstance(content, bytes):
            digest.update(content)
            size = len(content)
        else:
            size = size_of(content)
        token = digest.hexdigest()[:LETTERS]
        with self._lock:
            self._kept[token] = (name, content, size)
            self._kept.move_to_end(token)
            total = sum(one[2] for one in self._kept.values())
            while total > self.most and len(self._kept) > 1:
                total -= self._kept.popitem(last=False)[1][2]
        return token

    def find(self, token: str) -> tuple[str, Any] | None:
        """Return the name and the content, or None where they are gone."""
        with self._lock:
            if token not in self._kept:
                return None
            self._kept.move_to_end(token)
            return self._kept[token][:2]
