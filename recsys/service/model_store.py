"""The model a service answers from, and its replacement by a newer file without a pause."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import scipy.sparse as sp

from recsys.errors import InputError
from recsys.rankers import Bundle, load_bundle


class FileState(NamedTuple):
    """What changes when a file is replaced."""

    inode: int
    size: int
    modified: int


def file_state(path: Path) -> FileState:
    """Return the state of a file.

    Raises
    ------
    InputError
        If it cannot be looked at.
    """
    try:
        about = path.stat()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    return FileState(about.st_ino, about.st_size, about.st_mtime_ns)


@dataclass(frozen=True)
class LoadedModel:
    """A bundle and what requests need of it. Never changed: a reload puts another in its place.

    Attributes
    ----------
    bundle : Bundle
    item_users : (users, items) CSC matrix
        The histories by item.
    state : FileState
        Of the file it was read from.
    """

    bundle: Bundle
    item_users: sp.csc_matrix
    state: FileState


def load(path: Path) -> LoadedModel:
    """Read a file that `recsys fit --out` wrote.

    Raises
    ------
    ModelFileError
    """
    before = file_state(path)
    bundle = load_bundle(path)
    loaded = LoadedModel(bundle, bundle.user_items.tocsc(), before)
    # What a request runs is compiled, and what it looks ids up in is made, before the first.
    first = bundle.profile(user=str(bundle.user_ids[0]))
    bundle.ranker.recommend(first.userid, first.row, N=1)
    if "fold-in" in bundle.ranker.capabilities:
        bundle.ranker.recommend(0, first.row, N=1, recalculate_user=True, times=first.times)
    bundle.known_items(())
    return loaded


@dataclass
class ModelStore:
    """The current model, looked after by a thread that loads a newer file when there is one.

    Attributes
    ----------
    path : Path
    every : float
        Seconds between two looks at the file.
    current : LoadedModel
    error : str or None
        Why the newest file was refused.
    reloads : int
        Newer files taken.
    """

    path: Path
    every: float = 1.0
    error: str | None = None
    reloads: int = 0
    current: LoadedModel = field(init=False)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.current = load(self.path)
        self._seen = self.current.state
        threading.Thread(target=self._watch, daemon=True).start()

    def check(self) -> None:
        """Load the file anew if it has changed; a broken one leaves the old model in place."""
        try:
            now = file_state(self.path)
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
