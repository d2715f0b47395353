"""A folder of parts, which a run that was killed leaves for the next one to finish.

It holds `_MANIFEST.json`, written first: what the parts are made of; `part-00004096.parquet`, of the
users from the 4,096th on; and `_SUCCESS`, written last. Every file comes under a temporary name and is
renamed once it is whole and on disk, so that a part that is there is never looked into again. Readers of
Parquet take such a folder as one table: they leave out what begins with _ or a dot.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recsys.errors import InputError
from recsys.utils.atomic import create, replacing, sweep_folder
from recsys.utils.files import shown

MANIFEST, SUCCESS = "_MANIFEST.json", "_SUCCESS"
FORMAT = 1
DIGITS = 8  # of a part's first user, at least
LOOKS, PAUSE = 4, 1.0  # how often a part is looked for that a host elsewhere wrote; seconds between
SHOWN = 60  # characters of a value in a message
NAMES = {"model": "model (its sha256)"}


@dataclass(frozen=True)
class Parts:
    """The parts of one job."""

    folder: Path
    # What JSON holds: `users`, how many there are; `block`, how many a part has; and whatever else the
    # parts' content depends on.
    job: Mapping[str, Any]

    @classmethod
    def of(cls, folder: Path) -> Parts:
        """Return the parts of a folder that was begun."""
        path = folder / MANIFEST
        try:
            job = json.loads(path.read_text(encoding="utf-8"))
            if job["format"] != FORMAT:
                raise InputError(f"{shown(path)} is of format {job['format']}; this reads {FORMAT}")
            if not all(type(job[name]) is int and job[name] > 0 for name in ("users", "block")):
                raise ValueError("users and block are integers above 0")
        except FileNotFoundError:
            raise InputError(f"{shown(path)} does not exist") from None
        except OSError as error:
            raise InputError(f"{shown(path)} cannot be read: {error.strerror or error}") from None
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{shown(path)} is no list of what parts are made of") from None
        return cls(folder, job)

    def begin(self) -> None:
        """Make the folder, or take up what an earlier run of the same job left in it.

        Refused are parts of another job, of which the difference is named, and other files in the
        folder.
        """
        if "\0" in str(self.folder):
            raise InputError(f"{str(self.folder)[-60:]!r} is no name of a folder: it holds a NUL")
        try:
            self.folder.mkdir(exist_ok=True)
            sweep_folder(self.folder)
            names = os.listdir(self.folder)
        except FileExistsError:
            raise InputError(f"{shown(self.folder)} is a file; name a folder") from None
        except OSError as error:
            raise InputError(
                f"{shown(self.folder)} cannot be written: {error.strerror or error}"
            ) from None
        if MANIFEST not in names:
            if any(not name.startswith(".") for name in names) and not (self.folder / MANIFEST).exists():
                raise InputError(
                    f"{shown(self.folder)} holds other files; name an empty folder, or a new one"
                )
            if create(self.folder / MANIFEST, (json.dumps({**self.job}, indent=1) + "\n").encode()):
                return
        self._check(Parts.of(self.folder).job)

    @property
    def digest(self) -> str:
        """The checksum of the job that defines the parts, the same before and after JSON."""
        return hashlib.sha256(json.dumps({**self.job}, sort_keys=True).encode()).hexdigest()

    def _check(self, other: Mapping[str, Any]) -> None:
        found = _differences(other, json.loads(json.dumps(self.job)))
        if found:
            name, there, here = found[0]
            more = f", and {len(found) - 1} more" if len(found) > 1 else ""
            raise InputError(
                f"{shown(self.folder)} holds parts of another job: {NAMES.get(name, name)} is {there} "
                f"there, {here} here{more}; name another folder"
            )

    def starts(self) -> list[int]:
        """Return the first user of each part."""
        return list(range(0, self.job["users"], self.job["block"]))

    def path(self, start: int) -> Path:
        """Return where the part from a user on is."""
        digits = max(DIGITS, len(str(self.job["users"])))
        return self.folder / f"part-{start:0{digits}}.parquet"

    def missing(self) -> list[int]:
        """Return the first user of each part that is not there."""
        there = set(os.listdir(self.folder))
        return [start for start in self.starts() if self.path(start).name not in there]

    def unfinish(self) -> None:
        """Take away what says that all is there: something is not."""
        with suppress(FileNotFoundError):
            os.unlink(self.folder / SUCCESS)

    def finish(self) -> None:
        """Say that all is there.

        Refused where it is not: its parts were written to a folder of the same name on another host; or
        the folder is meanwhile one of another job.
        """
        self._check(Parts.of(self.folder).job)
        for look in range(LOOKS):
            # what another host wrote may be listed late, and is found when it is asked for by name
            left = [start for start in self.missing() if not self.path(start).exists()]
            if not left or look == LOOKS - 1:
                break
            time.sleep(PAUSE)
        if left:
            raise InputError(
                f"{shown(self.path(left[0]))} was written where this process does not see it: workers "
                "need the folder that this process has; name one that all of them share"
            )
        sweep_folder(self.folder)
        if not (self.folder / SUCCESS).exists():
            with replacing(self.folder / SUCCESS):
                pass


def _differences(there: Any, here: Any, name: str = "") -> list[tuple[str, str, str]]:
    """Return the difference of two jobs: its name, and both values as messages show them."""
    if isinstance(there, dict) and isinstance(here, dict):
        return [
            found
            for key in sorted({*there, *here})
            for found in _differences(there.get(key), here.get(key), str(key))
        ]
    return [] if there == here else [(name, _text(there), _text(here))]


def _text(value: Any) -> str:
    text = "not given" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
