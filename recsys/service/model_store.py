"""The model that the service answers from, and its replacement by a newer file."""

from __future__ import annotations

import gc
import json
import logging
import threading
import time
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys._jit import compiled_at_once
from recsys.errors import InputError, ModelFileError
from recsys.rankers import ModelPackage, load_package
from recsys.recommender.filters import passing

RETRY_SECONDS = 60.0  # after which a refused file is tried again: memory may be back


class FileState(NamedTuple):
    """The identity of a file, which changes when the file is replaced."""

    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, path: Path) -> FileState:
        """Return the state of the file at a path."""
        try:
            stat = path.stat()
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
        return cls(stat.st_ino, stat.st_size, stat.st_mtime_ns)


class ServedModel:
    """A model package and the state of its file; it never changes, a newer one replaces it."""

    def __init__(self, package: ModelPackage, state: FileState) -> None:
        self.package, self.state = package, state
        # Not a method of this object, which the cache would keep alive.
        self.passing = lru_cache(64)(partial(_passing, package.item_features))


def _passing(item_features: Any, filters: str) -> NDArray[np.bool_]:
    """Return which items pass filters by attribute, given as JSON so that they can be cached."""
    conditions = {
        column: (value.get("min"), value.get("max")) if isinstance(value, dict) else value
        for column, value in json.loads(filters).items()
    }
    return passing(item_features, conditions)


def load(path: str | Path, mapped: bool = False) -> ServedModel:
    """Read a model file, compile what requests call, and refuse scores that are not finite."""
    path = Path(path)
    state = FileState.of(path)  # before the file is read: if it is replaced meanwhile, it is read again
    package = load_package(path, mapped=mapped)
    ranker = package.ranker
    if len(package.user_ids):
        profile = package.profile(user=str(package.user_ids[0]))
    else:
        profile = package.profile(history=[str(package.item_ids[0])])
    with compiled_at_once():
        scores = ranker.recommend(profile.userid, profile.row, N=ranker.n_items_).scores
        if not np.isfinite(scores).all():
            raise ModelFileError(f"{path}: its scores are not finite: fit it again")
        if "fold-in" in ranker.capabilities:
            ranker.recommend(0, profile.row, N=1, recalculate_user=True, times=profile.times)
    package.known_items(())
    return ServedModel(package, state)


@dataclass
class ModelStore:
    """The current model, and a thread that loads the file again when it changes."""

    path: Path
    seconds: float = 1.0  # between two looks at the file
    mapped: bool = False
    reloads: int = 0
    error: str | None = None  # why the newest file was refused
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.current = load(self.path, self.mapped)
        self._refused: tuple[FileState | None, float] = (None, 0.0)
        threading.Thread(target=self._watch, daemon=True).start()

    def check(self) -> None:
        """Load the file if it has changed; a broken one leaves the current model in place."""
        state = None
        try:
            state = FileState.of(self.path)
            if state != self.current.state:
                refused, since = self._refused
                if state == refused and time.monotonic() < since + RETRY_SECONDS:
                    return
                self.current = load(self.path, self.mapped)
                self.reloads += 1
                gc.collect()  # the old model, before another one is read
            self.error = None
        except Exception as error:
            kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
            self.error = f"the new model was refused: {kind}{error}"[:300]
            if state != self._refused[0]:
                logging.getLogger(__name__).warning(self.error)
            self._refused = state, time.monotonic()

    def close(self) -> None:
        """Stop checking the file."""
        self._stop.set()

    def _watch(self) -> None:
        while not self._stop.wait(self.seconds):
            self.check()
