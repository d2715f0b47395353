"""The model a service answers from, and its replacement by a newer one without a pause."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import compiled_at_once
from recsys.data.event_database import EventDatabase
from recsys.data.events import Event, fold
from recsys.errors import CapabilityError, InputError, ModelFileError
from recsys.explain import Attributes, item_attributes
from recsys.rankers import ModelPackage, load_package
from recsys.recommender.filters import passing
from recsys.service.background import Background

RETRY_SECONDS = 60.0  # at most, between two looks at a file that was refused
MASKS = 64  # of items, that a model keeps for the sets and the filters of the latest requests
DOUBLINGS = 32  # of that time, at most: a higher power of two may leave the range of floats


class FileState(NamedTuple):
    """The identity of a file, which changes when the file is replaced."""

    inode: int
    size: int
    modified: int


def file_state(path: Path) -> FileState:
    """Return the state of a file."""
    try:
        about = path.stat()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    return FileState(about.st_ino, about.st_size, about.st_mtime_ns)


@dataclass(frozen=True)
class LoadedModel:
    """A model package and what requests need of it. It never changes: a newer one replaces it."""

    package: ModelPackage
    state: FileState  # of the file it was read from
    applied: int = 0  # position of the last event in it; 0 for what the file alone holds

    @cached_property
    def attributes(self) -> Attributes:
        """The items' attributes; made when the first request asks for a rule."""
        return item_attributes(self.package.interactions)

    @property
    def item_users(self) -> sp.csc_matrix:
        """The histories by item; made when the first request needs them."""
        return self.package.item_users

    @cached_property
    def in_set(self) -> Callable[[Callable[[str], list[str]], str, FileState], NDArray[np.bool_]]:
        """Masks of items in a set, (items,) bool, by its reader, its name and its state."""

        def found(read: Callable[[str], list[str]], name: str, state: FileState) -> NDArray[np.bool_]:
            mask = np.zeros(len(self.package.item_ids), dtype=bool)
            mask[self.package.known_items(read(name))[0]] = True
            return mask

        return lru_cache(MASKS)(found)

    @cached_property
    def passing(self) -> Callable[[bytes], NDArray[np.bool_]]:
        """Masks of items that pass filters by attribute, (items,) bool, by the filters as JSON."""

        def found(filters: bytes) -> NDArray[np.bool_]:
            wanted = {
                name: (one.get("min"), one.get("max")) if isinstance(one, dict) else one
                for name, one in json.loads(filters).items()
            }
            return passing(self.package.item_features, wanted)

        return lru_cache(MASKS)(found)


def load(path: str | Path, mapped: bool = False) -> LoadedModel:
    """Read a file that `recsys fit --out` wrote.

    The file is opened once. Its head, and the sizes that the head declares, are compared with the size
    of the file before memory is allocated or anything else is read. Nothing is copied: a mapped file
    stays as it was when another file is renamed to this path. Mapped arrays stay in the file, where
    processes share them.
    """
    before = file_state(Path(path))
    return prepared(load_package(path, mapped=mapped), before)


def prepared(package: ModelPackage, state: FileState, applied: int = 0) -> LoadedModel:
    """Return a package ready to serve: the code of requests is compiled, what they read is made.

    Scores that are no numbers are refused, which a checksum cannot tell: no JSON holds them.
    """
    loaded = LoadedModel(package, state, applied)
    first = package.profile(user=str(package.user_ids[0]))
    with compiled_at_once():
        scores = package.ranker.recommend(first.userid, first.row, N=package.ranker.n_items_).scores
        if not np.isfinite(scores).all():
            raise ModelFileError("its scores are not finite: fit it again")
        if "fold-in" in package.ranker.capabilities:
            package.ranker.recommend(0, first.row, N=1, recalculate_user=True, times=first.times)
    package.known_items(())
    return loaded


@dataclass
class ModelStore:
    """The current model, looked after by a thread that loads a newer file when there is one.

    With a database of events another thread applies those that the model does not have yet to a copy,
    which then replaces the model. The net change of a series of events does not depend on how much of it
    was applied before. So a file, old or new, is brought up to date from the first event on.

    The file is looked at `every` so many seconds; `loading` says what is being loaded, `reloads` how
    many newer files were taken, `kept` where the last event in the database is.
    """

    path: Path
    every: float = 1.0
    events: EventDatabase | None = None
    mapped: bool = False
    background: Background = field(default_factory=Background)
    reloads: int = 0
    kept: int = 0
    current: LoadedModel = field(init=False)
    loading: str | None = None
    _refused: str | None = None
    _failures: int = 0
    _again: float = math.inf  # when a file that was refused is tried again
    _waiting: str | None = None
    _counting: threading.Lock = field(default_factory=threading.Lock)
    _stop: threading.Event = field(default_factory=threading.Event)
    _arrived: threading.Event = field(default_factory=threading.Event)
    _replacing: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        loaded = load(self.path, self.mapped)
        self._seen: FileState | None = loaded.state
        if self.events is not None:
            self.kept = self.events.last()
        self.current = self._with_events(loaded)
        threading.Thread(target=self._watch, daemon=True).start()
        if self.events is not None:
            threading.Thread(target=self._follow, daemon=True).start()

    def check(self) -> None:
        """Load the file anew if it has changed; a broken one leaves the old model in place.

        Whatever goes wrong is told by `error`, and the next file is looked at all the same.
        """
        try:
            now = file_state(self.path)
            if now == self._seen and time.monotonic() < self._again:
                return
            self._seen = now
            if now != self.current.state:  # else it was away, and is back
                self.loading = f"{self.path.name}, {now.size:,} bytes"[:200]
                self._take(load(self.path, self.mapped))
                self.reloads += 1
            self._refused, self._failures, self._again = None, 0, math.inf
        except InputError as error:
            self._gone(str(error))
        except Exception as error:
            self._gone(" ".join(f"{type(error).__name__}: {error}".split()))
        finally:
            self.loading = None

    def _gone(self, why: str) -> None:
        self._refused = f"the new model was refused: {why}"[:300]
        # Memory, descriptors or the disk may be back soon, and the same file, too.
        self._failures += 1
        wait = self.every * 2.0 ** min(self._failures, DOUBLINGS)
        self._again = time.monotonic() + min(RETRY_SECONDS, wait)
        if not self.path.exists():
            self._seen = None

    @property
    def error(self) -> str | None:
        """Why the newest file was refused, or events could not be applied; None where all is well."""
        return self._refused or self._waiting

    def keep(self, key: str, events: Sequence[Event]) -> bool:
        """Keep a batch of events in the database; return whether it is new. Applied a little later."""
        assert self.events is not None
        position = self.events.append(key, events)
        if position is None:
            return False
        with self._counting:
            self.kept = max(self.kept, position)
        self._arrived.set()
        return True

    def catch_up(self) -> None:
        """Apply the events that the current model does not have."""
        with self._replacing:
            self.current = self._with_events(self.current)

    def close(self) -> None:
        """Stop looking; what is being applied is finished."""
        self._stop.set()
        self._arrived.set()
        if self.events is not None:
            with self._replacing:
                self.events.close()

    def _take(self, loaded: LoadedModel) -> None:
        """Serve a newer file with all events; without them, and say so, where its ranker takes none."""
        with self._replacing:
            self._waiting = None
            try:
                loaded = self._with_events(loaded)
            except CapabilityError as error:
                self._waiting = _not_applied(error)
            self.current = loaded

    def _with_events(self, model: LoadedModel) -> LoadedModel:
        if self.events is None:
            return model
        model.package.check_events()
        position = model.applied

        def following(found: Iterator[tuple[int, Event]]) -> Iterator[Event]:
            nonlocal position
            for place, event in found:
                position = place
                yield event

        changes = fold(following(self.events.after(model.applied)))
        if position == model.applied:
            return model
        return prepared(model.package.updated(changes), model.state, position)

    def _watch(self) -> None:
        while not self._stop.wait(self.every):
            with self.background.guard("model watcher"):
                self.check()

    def _follow(self) -> None:
        while not self._stop.is_set():
            self._arrived.wait()
            self._arrived.clear()
            if self._stop.is_set():
                return
            start = time.monotonic()
            with self.background.guard("events"):
                try:
                    self.catch_up()
                    self._waiting = None
                except Exception as error:
                    self._waiting = _not_applied(error)
                    if isinstance(error, OSError):  # the database may be back soon
                        self._stop.wait(self.every)
                        self._arrived.set()
                    raise
            # Requests have the processors at least half of the time, however fast events come.
            self._stop.wait(time.monotonic() - start)


def _not_applied(error: BaseException) -> str:
    return f"events are kept, but not applied: {error}"[:300]
