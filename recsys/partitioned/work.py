"""The work folder: what is done already, and that it belongs to the same data."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock

from recsys.engines import Engine
from recsys.engines.base import SAME, installed
from recsys.errors import InputError
from recsys.partitioned.source import Source
from recsys.utils.atomic import replacing
from recsys.utils.files import shown
from recsys.utils.progress import report

FORMAT = 3  # 3: times of rows; 2: times of one kind, versions, a digest of the rows
MANIFEST, LOCK = "_MANIFEST.json", ".lock"
MOST_BUCKETS = 4096


@dataclass(frozen=True)
class Work:
    """A folder that every worker sees."""

    folder: Path
    source: Source
    buckets: int  # of users
    memory: int  # bytes a worker, by which there are so many
    versions: dict[str, str]  # of the packages that decide the bits of what is there

    @classmethod
    def begun(
        cls, folder: str | os.PathLike[str], source: Source, buckets: int, memory: int = 0
    ) -> Work:
        """Return the folder, made where it is not there; what is in it must be of the same source.

        What its manifest says counts, also where another run wrote it a moment ago.
        """
        path = _folder(folder)
        versions = {name: installed()[name] for name in SAME}
        if (path / MANIFEST).exists():
            found = cls.opened(path)
            differing = [
                name
                for name, value in source.plain().items()
                if json.dumps(value) != json.dumps(found.source.plain()[name])
            ]
            if differing:
                hint = ""
                if set(differing) <= {"time", "time_kind"} and found.source.time is not None:
                    hint = f"; or name its times, --time-col {found.source.time}"
                raise InputError(
                    f"{shown(folder)} holds the work on other data ({', '.join(differing)} differ): "
                    f"name another folder, or remove it{hint}"
                )
            other = [name for name in SAME if found.versions.get(name) != versions[name]]
            if other:
                there = ", ".join(f"{name} {str(found.versions.get(name))[:20]}" for name in other)
                here = ", ".join(f"{name} {versions[name]}" for name in other)
                raise InputError(
                    f"{shown(folder)} holds what {there} made, here is {here}: name another folder, or "
                    "remove it"
                )
            return found
        made = {
            "format": FORMAT, "buckets": buckets, "memory": memory, "versions": versions,
            "source": source.plain(),
        }  # fmt: skip
        write_json(path / MANIFEST, made)
        return cls.opened(path)

    @classmethod
    def opened(cls, folder: str | os.PathLike[str]) -> Work:
        """Return a folder that `begun` made."""
        path = Path(folder).absolute() / MANIFEST
        if not path.is_file():
            raise InputError(f"{shown(folder)} is no work folder of `recsys fit --partitions`")
        found = read_json(path)
        try:
            if found["format"] != FORMAT:
                raise InputError(f"{shown(folder)} was made by another version of recsys: remove it")
            buckets, memory, versions = found["buckets"], found["memory"], found["versions"]
            if type(buckets) is not int or not 1 <= buckets <= MOST_BUCKETS or type(memory) is not int:
                raise ValueError("buckets and memory are integers")
            return cls(path.parent, Source.of_plain(found["source"]), buckets, memory, dict(versions))
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
            raise InputError(f"{shown(path)} is damaged: remove the folder") from None

    def part(self, stage: str, number: int | str) -> Path:
        """Return the file of a stage's unit."""
        return self.folder / stage / (number if isinstance(number, str) else f"{number:05d}")

    def done(self, stage: str) -> bool:
        """Return whether a whole stage is done."""
        return (self.folder / stage / "_SUCCESS").exists()

    def run(
        self,
        stage: str,
        task: Callable[[Any], Any],
        units: Sequence[tuple[Any, ...]],
        engine: Engine,
    ) -> int:
        """Run the tasks of a stage that are not done; return how many there were.

        The first entry of a unit is its number, and its task writes `part(stage, number)`.
        """
        if self.done(stage):
            return 0
        (self.folder / stage).mkdir(parents=True, exist_ok=True)
        left = [unit for unit in units if not self.part(stage, unit[0]).exists()]
        before = len(units) - len(left)
        report(stage, before, len(units))
        for k, _ in enumerate(engine.map(task, left, threads=1), before + 1):
            report(stage, k, len(units))
        write_json(self.folder / stage / "_SUCCESS", {"units": len(units)})
        return len(left)

    def forget(self, stage: str) -> None:
        """Remove the parts of a stage, which is done; it stays done."""
        for path in (self.folder / stage).glob("*"):
            if path.name != "_SUCCESS":
                path.unlink(missing_ok=True)


@contextmanager
def held(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Have a folder, made where it is not there, for one run: two would mix what they write.

    Where the file system has no locks nothing is refused.
    """
    path = _folder(folder)
    lock = filelock.FileLock(path / LOCK, blocking=False)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise InputError(
            f"another run works in {shown(folder)}: wait for it, or name another folder"
        ) from None
    except OSError as error:
        raise InputError(f"{shown(folder)} is no folder to work in: {error.strerror or error}") from None
    try:
        yield
    finally:
        lock.release()


def _folder(given: str | os.PathLike[str]) -> Path:
    """Return the path of a work folder, made where it is not there, which holds nothing of others."""
    path = Path(given).absolute()
    if path.is_file():
        raise InputError(f"{shown(given)} is a file: name a folder to work in")
    try:
        path.mkdir(parents=True, exist_ok=True)
        names = [one.name for one in path.iterdir()]
    except OSError as error:
        raise InputError(f"{shown(given)} is no folder to work in: {error.strerror or error}") from None
    if MANIFEST not in names and any(not name.startswith(".") for name in names):
        raise InputError(f"{shown(given)} holds something else: name an empty folder to work in")
    return path


def write_json(path: Path, value: Any) -> None:
    """Write a small file that appears when it is whole."""
    with replacing(path) as file:
        file.write(json.dumps(value, indent=1).encode())


def read_json(path: Path) -> Any:
    """Return the content of a file of `write_json`."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        raise InputError(f"{shown(path)} is damaged: remove the folder") from None
