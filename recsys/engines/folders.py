"""Folders of one's own for temporary files; those of processes that were killed are swept."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # no locks there: nothing tells whose folder is left behind
    fcntl = None  # type: ignore[assignment]

LOCK = "_lock"  # held for as long as its process lives, in whatever container
YOUNG = 60.0  # seconds in which a folder may have no lock yet


class OwnFolder:
    """A new folder that this process holds.

    Parameters
    ----------
    prefix : str
        Of its name.
    within : str, optional
        Where it is; the system's folder for temporary files when not given.
    """

    def __init__(self, prefix: str, within: str | None = None) -> None:
        sweep(prefix, within)
        self.path = tempfile.mkdtemp(prefix=prefix, dir=within)
        self._lock: Any = open(os.path.join(self.path, LOCK), "wb")  # noqa: SIM115 - held until `remove`
        _locks(self._lock)

    def remove(self) -> None:
        """Remove it with what is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def sweep(prefix: str, within: str | None = None) -> None:
    """Remove the folders of this user's that nobody holds any more."""
    if fcntl is None:
        return
    for folder in Path(within or tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):
            told = folder.lstat()
            if told.st_uid != os.getuid() or time.time() - told.st_ctime < YOUNG or folder.is_symlink():
                continue
            with open(folder / LOCK, "rb") as file:
                if _locks(file):
                    shutil.rmtree(folder, ignore_errors=True)


def _locks(file: Any) -> bool:
    """Return whether this process now holds the file alone."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
