"""Copies of a model file that nobody else writes to, so that processes may share them in memory."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from recsys.errors import ModelFileError


class FileState(NamedTuple):
    """What changes when a file is replaced."""

    inode: int
    size: int
    modified: int


class ModelCopies:
    """A folder with a copy of the file that is served, made by whichever process comes first.

    A file that is mapped into memory must not be cut or written to: a process that reads beyond its new
    end is killed. Nobody can promise that of a file that others replace, so it is copied once, and the
    copy is mapped. A copy that is removed stays with those who have mapped it.

    Parameters
    ----------
    folder : path
        Of this service alone.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def name(self, state: FileState) -> Path:
        """Return where the copy of a file is, or would be."""
        return self.folder / "-".join(map(str, state))

    def of(self, path: Path, state: FileState) -> Path:
        """Return the copy of a file, which is made if it is not there.

        Raises
        ------
        ModelFileError
            If it cannot be copied.
        """
        copy = self.name(state)
        try:
            with self._alone():
                if not copy.exists():
                    if not path.is_file():
                        raise ModelFileError(f"{path} is not a file")
                    new = copy.with_suffix(".new")
                    with path.open("rb") as source, new.open("wb") as target:
                        opened = os.fstat(source.fileno())
                        if FileState(opened.st_ino, opened.st_size, opened.st_mtime_ns) != state:
                            raise ModelFileError(f"{path} was replaced while it was read")
                        shutil.copyfileobj(source, target, 1 << 20)
                    new.rename(copy)
        except OSError as error:
            raise ModelFileError(f"{path} cannot be copied: {error.strerror or error}") from error
        return copy

    def keep_only(self, state: FileState) -> None:
        """Remove the copies made before that of a file: a newer one may be wanted by others."""
        with contextlib.suppress(OSError), self._alone():
            made = self.name(state).stat().st_mtime_ns
            for other in self.folder.iterdir():
                if other != self._lock and other.stat().st_mtime_ns < made:
                    other.unlink()

    @property
    def _lock(self) -> Path:
        return self.folder / "lock"

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        import fcntl  # not on Windows, where there is one process

        with self._lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
