"""The model a service answers from, and its replacement by a newer file without a pause."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from recsys.errors import InputError
from recsys.rankers import Bundle, load_bundle


@dataclass(frozen=True)
class Served:
    """A bundle with its id maps. Never changed: a reload puts another in its place."""

    bundle: Bundle
    users: dict[str, int]
    items: dict[str, int]
    stamp: tuple[int, int, int]
    item_users: sp.csc_matrix

    def row(self, user: int) -> sp.csr_matrix:
        """Return a user's history as one row, without scipy's indexing."""
        matrix = self.bundle.user_items
        begin, end = matrix.indptr[user], matrix.indptr[user + 1]
        return self._row(matrix.indices[begin:end])

    def history(self, ids: list[str]) -> tuple[sp.csr_matrix, list[str]]:
        """Return one row that likes these items, and the ids that are unknown."""
        found = sorted({self.items[i] for i in ids if i in self.items})
        unknown = [i for i in ids if i not in self.items]
        return self._row(np.array(found, dtype=np.int32)), unknown

    def _row(self, indices: np.ndarray) -> sp.csr_matrix:
        data = np.ones(len(indices), dtype=np.float32)
        shape = (1, self.bundle.user_items.shape[1])
        return sp.csr_matrix((data, indices, np.array([0, len(indices)], dtype=np.int32)), shape)


def load(path: Path) -> Served:
    """Read a file that `recsys fit --out` wrote.

    Raises
    ------
    ModelFileError
    """
    before = stamp(path)
    bundle = load_bundle(path)
    users = {str(name): k for k, name in enumerate(bundle.user_ids)}
    items = {str(name): k for k, name in enumerate(bundle.item_ids)}
    served = Served(bundle, users, items, before, bundle.user_items.tocsc())
    bundle.ranker.recommend(0, served.row(0), N=1)  # what a request runs is compiled before the first
    return served


def stamp(path: Path) -> tuple[int, int, int]:
    """Return what changes when a file is replaced: inode, size, time."""
    try:
        about = path.stat()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    return about.st_ino, about.st_size, about.st_mtime_ns


@dataclass
class Holder:
    """The current model, looked after by a thread that loads a newer file when there is one."""

    path: Path
    every: float = 1.0
    error: str | None = None
    reloads: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.current = load(self.path)
        self._seen = self.current.stamp
        threading.Thread(target=self._watch, daemon=True).start()

    def check(self) -> None:
        """Load the file anew if it has changed; a broken one leaves the old model in place."""
        try:
            now = stamp(self.path)
            if now == self._seen:
                return
            self._seen = now
            self.current = load(self.path)
            self.error, self.reloads = None, self.reloads + 1
        except (InputError, OSError, MemoryError) as error:
            self.error = f"the new model was refused: {error}"[:300]

    def close(self) -> None:
        """Stop looking."""
        self._stop.set()

    def _watch(self) -> None:
        while not self._stop.wait(self.every):
            self.check()
