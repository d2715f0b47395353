"""Sets of items that clients upload once and name in requests, such as the stock of a shop."""

from __future__ import annotations

import re
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
from fastapi import HTTPException

from recsys.errors import InputError
from recsys.service.model_store import FileState, file_state
from recsys.service.schemas import ITEM_SET_NAME, NO_SET_NAME
from recsys.utils.atomic import replacing

MOST_SETS = 200
ENDING = ".items.json"


class ItemSets:
    """Named sets of item ids, one JSON file a set, which several processes of a service share.

    A file is written atomically. Each request that names a set checks its file, so that a set uploaded
    to one process is at once used by the others. Without a folder, sets are in a temporary one, which
    `close` removes, or the end of this object.

    >>> sets = ItemSets()
    >>> sets.put("stock", ["b", "a", "b"])
    2
    >>> sets.read("stock")
    ['b', 'a']
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self._given = None if folder is None else Path(folder)
        self._finalizer: Any = None
        if folder is not None:
            self.folder  # noqa: B018  is made before the first request, or refused

    @cached_property
    def folder(self) -> Path:
        """The folder of the sets; a temporary one is made when a set is first named."""
        try:
            if self._given is None:
                made = Path(tempfile.mkdtemp(prefix="recsys-item-sets-"))
                self._finalizer = weakref.finalize(self, shutil.rmtree, made, True)
                return made
            self._given.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            where = self._given or "a temporary folder"
            raise InputError(f"item sets cannot be kept in {where}: {error.strerror or error}") from None
        return self._given

    def close(self) -> None:
        """Remove the folder if it is a temporary one."""
        if self._finalizer is not None:
            self._finalizer()

    def put(self, name: str, items: Sequence[str]) -> int:
        """Store a set, replacing one of the same name; return its number of different ids."""
        path = self._path(name)
        if not path.exists() and sum(1 for _ in self.folder.glob(f"*{ENDING}")) >= MOST_SETS:
            raise InputError(f"there are {MOST_SETS} item sets: delete one first")
        different = list(dict.fromkeys(items))
        with replacing(path) as file:
            file.write(msgspec.json.encode(different))
        return len(different)

    def read(self, name: str) -> list[str]:
        """Return the ids of a set."""
        try:
            return msgspec.json.decode(self._path(name).read_bytes(), type=list[str])
        except FileNotFoundError:
            raise unknown(name) from None
        except (OSError, msgspec.DecodeError):
            raise InputError(f"item set {name!r} cannot be read: upload it again") from None

    def state(self, name: str) -> FileState:
        """Return the state of a set's file, which changes when the set is replaced."""
        path = self._path(name)
        try:
            return file_state(path)
        except InputError:
            if path.exists():
                raise
            raise unknown(name) from None

    def delete(self, name: str) -> None:
        """Remove a set."""
        try:
            self._path(name).unlink()
        except FileNotFoundError:
            raise unknown(name) from None
        except OSError as error:
            raise InputError(f"item set {name!r} cannot be removed: {error.strerror or error}") from None

    def _path(self, name: str) -> Path:
        if not re.fullmatch(ITEM_SET_NAME, name) or name.endswith("\n"):
            raise InputError(NO_SET_NAME)
        return self.folder / f"{name}{ENDING}"


def unknown(name: str) -> HTTPException:
    """Return the error for a set that does not exist."""
    return HTTPException(404, f"unknown item set {name!r}: upload it by PUT /item-sets/{name}")
