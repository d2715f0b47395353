"""The model that the service answers from, and its replacement by a newer file."""

from __future__ import annotations

import gc
import json
import logging
import os
import threading
import time
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys._jit import compiled_at_once
from recsys.errors import ModelFileError
from recsys.rankers import ModelPackage, load_package
from recsys.recommender.filters import passing
from recsys.utils.files import check_file
from recsys.utils.tasks import why

QUICK_SECONDS = 0.01
LONG_PROFILE = 300  # liked items from which a list of some models takes more than 20 ms
RETRY_SECONDS = 60.0  # after which a refused file is tried again: memory may be back


class ServedModel:
    """A model package and the state of its file; it never changes, a newer one replaces it."""

    def __init__(self, package: ModelPackage, state: tuple[int, int, int], at_once: int) -> None:
        self.package, self.state = package, state
        self.at_once = at_once  # liked items up to which a list is computed without a thread
        # Not a method of this object, which the cache would keep alive.
        self.passing = lru_cache(64)(partial(_passing, package.item_features))


def _passing(item_features: Any, filters: str) -> NDArray[np.bool_]:
    """Return which items pass filters by attribute, given as JSON so that they can be cached."""
    conditions = {
        column: (value.get("min"), value.get("max")) if isinstance(value, dict) else value
        for column, value in json.loads(filters).items()
    }
    return passing(item_features, conditions)


def file_state(path: Path) -> tuple[int, int, int]:
    """Return inode, size and time of a file, which change when it is replaced."""
    info = os.stat(path)
    return info.st_ino, info.st_size, info.st_mtime_ns


def load(path: Path, mapped: bool = False) -> ServedModel:
    """Read a model file, compile what requests call, and refuse scores that are not finite."""
    check_file(path)
    state = file_state(path)  # before the file is read: if it is replaced meanwhile, it is read again
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
    return ServedModel(package, state, _at_once(package))


def _at_once(package: ModelPackage) -> int:
    """Return up to how many liked items a list takes less time than handing it to a thread is worth."""
    lengths = np.diff(package.user_items.indptr)
    by_length = np.argsort(lengths)
    for share in (1.0, 0.99, 0.9, 0.5) if len(lengths) else ():
        user = int(by_length[int(share * (len(lengths) - 1))])
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            package.ranker.recommend(user, package.user_items[user])
            seconds.append(time.perf_counter() - start)
        if min(seconds) < QUICK_SECONDS:
            return int(lengths[user])
    return 0


class ModelStore:
    """The current model, and a thread that loads the file again when it changes."""

    def __init__(self, path: Path, seconds: float = 1.0, mapped: bool = False) -> None:
        self.path, self.seconds, self.mapped = path, seconds, mapped
        self.current = load(path, mapped)
        self.reloads = 0
        self.error: str | None = None  # why the newest file was refused
        self._refused: tuple[Any, float] = (None, 0.0)
        self._stop = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def check(self) -> None:
        """Load the file if it has changed; a broken one leaves the current model in place."""
        state = None
        try:
            state = file_state(self.path)
            if state != self.current.state:
                refused, since = self._refused
                if state == refused and time.monotonic() < since + RETRY_SECONDS:
                    return
                self.current = load(self.path, self.mapped)
                self.reloads += 1
                gc.collect()  # the old model, before another one is read
            self.error = None
        except Exception as error:
            self.error = f"the new model was refused: {why(error)}"
            if state != self._refused[0]:
                logging.getLogger(__name__).warning(self.error)
            self._refused = state, time.monotonic()

    def close(self) -> None:
        """Stop checking the file."""
        self._stop.set()

    def _watch(self) -> None:
        while not self._stop.wait(self.seconds):
            self.check()
