"""The model a service answers from, and its replacement by a newer one without a pause."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from recsys.data.event_database import EventDatabase
from recsys.data.events import Event, fold
from recsys.errors import CapabilityError, InputError, ModelFileError
from recsys.rankers import Bundle, load_bundle
from recsys.service.model_copies import FileState, ModelCopies

RETRY_SECONDS = 60.0  # at most, between two looks at a file that was refused


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
    """A bundle and what requests need of it. Never changed: a newer one is put in its place.

    Attributes
    ----------
    bundle : Bundle
    state : FileState
        Of the file it was read from.
    applied : int
        Position of the last event that is in it; 0 for what the file alone holds.
    """

    bundle: Bundle
    state: FileState
    applied: int = 0

    @cached_property
    def item_users(self) -> sp.csc_matrix:
        """The histories by item; made when the first request varies its list."""
        return self.bundle.user_items.tocsc()


def load(path: Path, copies: ModelCopies | None = None) -> LoadedModel:
    """Read a file that `recsys fit --out` wrote; of copies, if any, into memory that processes share.

    Raises
    ------
    ModelFileError
    """
    before = file_state(path)
    if copies is None:
        return prepared(load_bundle(path), before)
    try:
        bundle = load_bundle(copies.of(path, before), mapped=True)
    except ModelFileError as error:  # of the copy, which nobody knows
        copies.name(before).unlink(missing_ok=True)
        raise ModelFileError(str(error).replace(str(copies.name(before)), str(path))) from None
    copies.keep_only(before)
    return prepared(bundle, before)


def prepared(bundle: Bundle, state: FileState, applied: int = 0) -> LoadedModel:
    """Return a bundle as it is served: what a request runs is compiled, and what it reads is made.

    Raises
    ------
    ModelFileError
        If its scores are no numbers, which a checksum cannot tell: no JSON holds them.
    """
    loaded = LoadedModel(bundle, state, applied)
    first = bundle.profile(user=str(bundle.user_ids[0]))
    scores = bundle.ranker.recommend(first.userid, first.row, N=bundle.ranker.n_items_).scores
    if not np.isfinite(scores).all():
        raise ModelFileError("its scores are not finite: fit it again")
    if "fold-in" in bundle.ranker.capabilities:
        bundle.ranker.recommend(0, first.row, N=1, recalculate_user=True, times=first.times)
    bundle.known_items(())
    return loaded


@dataclass
class ModelStore:
    """The current model, looked after by a thread that loads a newer file when there is one.

    With a database of events another thread applies those that the model does not have yet, to a copy
    that takes its place. What a run of events leaves does not depend on how much of it was applied
    before, so a file, old or new, catches up from the first event on.

    Attributes
    ----------
    path : Path
    every : float
        Seconds between two looks at the file.
    events : EventDatabase, optional
    copies : ModelCopies, optional
        Where several processes that serve one file share it.
    current : LoadedModel
    reloads : int
        Newer files taken.
    kept : int
        Position of the last event in the database.
    """

    path: Path
    every: float = 1.0
    events: EventDatabase | None = None
    copies: ModelCopies | None = None
    reloads: int = 0
    kept: int = 0
    current: LoadedModel = field(init=False)
    _refused: str | None = None
    _failures: int = 0
    _again: float = math.inf  # when a file that was refused is tried again
    _waiting: str | None = None
    _counting: threading.Lock = field(default_factory=threading.Lock)
    _stop: threading.Event = field(default_factory=threading.Event)
    _arrived: threading.Event = field(default_factory=threading.Event)
    _replacing: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        loaded = load(self.path, self.copies)
        self._seen: FileState | None = loaded.state
        if self.events is not None:
            self.kept = self.events.last()
        self._take(loaded)
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
                self._take(load(self.path, self.copies))
                self.reloads += 1
            self._refused, self._failures, self._again = None, 0, math.inf
        except InputError as error:
            self._gone(str(error))
        except Exception as error:
            self._gone(" ".join(f"{type(error).__name__}: {error}".split()))

    def _gone(self, why: str) -> None:
        self._refused = f"the new model was refused: {why}"[:300]
        # Memory, descriptors or the disk may be back soon, and the same file, too.
        self._failures += 1
        self._again = time.monotonic() + min(RETRY_SECONDS, self.every * 2.0**self._failures)
        if not self.path.exists():
            self._seen = None

    @property
    def error(self) -> str | None:
        """Why the newest file was refused, or events could not be applied; None where all is well."""
        return self._refused or self._waiting

    def keep(self, key: str, events: Sequence[Event]) -> bool:
        """Keep a batch of events in the database; return whether it is new. Applied a little later.

        Raises
        ------
        InputError, DatabaseError
            As `EventDatabase.append`.
        """
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
        """Serve a file with all events; without them, and say so, where its ranker takes none."""
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
        position = model.applied

        def following(found: Iterator[tuple[int, Event]]) -> Iterator[Event]:
            nonlocal position
            for place, event in found:
                position = place
                yield event

        changes = fold(following(self.events.after(model.applied)))
        if position == model.applied:
            return model
        return prepared(model.bundle.updated(changes), model.state, position)

    def _watch(self) -> None:
        while not self._stop.wait(self.every):
            self.check()

    def _follow(self) -> None:
        while not self._stop.is_set():
            self._arrived.wait()
            self._arrived.clear()
            if self._stop.is_set():
                return
            start = time.monotonic()
            try:
                self.catch_up()
                self._waiting = None
            except Exception as error:
                self._waiting = _not_applied(error)
                if isinstance(error, OSError):  # the database may be back soon
                    self._stop.wait(self.every)
                    self._arrived.set()
            # Requests have the processors at least half of the time, however fast events come.
            self._stop.wait(time.monotonic() - start)


def _not_applied(error: BaseException) -> str:
    return f"events are kept, but not applied: {error}"[:300]
