"""The work folder: what is done already, and that it belongs to the same data."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recsys.engines import Engine
from recsys.errors import InputError
from recsys.partitioned.source import Source
from recsys.utils.files import replacing, shown
from recsys.utils.progress import report

FORMAT = 1
MANIFEST = "_MANIFEST.json"


@dataclass(frozen=True)
class Work:
    """A folder that every worker sees.

    Attributes
    ----------
    folder : Path
    source : Source
    buckets : int
        Of users.
    """

    folder: Path
    source: Source
    buckets: int

    @classmethod
    def begun(cls, folder: str | os.PathLike[str], source: Source, buckets: int) -> Work:
        """Return the folder, made where it is not there; what is in it must be of the same source.

        Raises
        ------
        InputError
            If it holds something else, or the work on other data.
        """
        path = Path(folder).absolute()
        try:
            path.mkdir(parents=True, exist_ok=True)
            others = [one.name for one in path.iterdir()]
        except OSError as error:
            raise InputError(
                f"{shown(folder)} is no folder to work in: {error.strerror or error}"
            ) from None
        if MANIFEST in others:
            found = cls.opened(path)
            differing = [
                name
                for name, value in source.plain().items()
                if json.dumps(value) != json.dumps(found.source.plain()[name])
            ]
            if differing:
                raise InputError(
                    f"{shown(folder)} holds the work on other data ({', '.join(differing)} differ): "
                    "name another folder, or remove it"
                )
            return found
        if [name for name in others if not name.startswith(".")]:
            raise InputError(f"{shown(folder)} holds something else: name an empty folder to work in")
        made = {"format": FORMAT, "buckets": buckets, "source": source.plain()}
        write_json(path / MANIFEST, made)
        return cls(path, source, buckets)

    @classmethod
    def opened(cls, folder: str | os.PathLike[str]) -> Work:
        """Return a folder that `begun` made.

        Raises
        ------
        InputError
        """
        path = Path(folder).absolute() / MANIFEST
        if not path.is_file():
            raise InputError(f"{shown(folder)} is no work folder of `recsys fit --partitions`")
        found = read_json(path)
        try:
            if found["format"] != FORMAT:
                raise InputError(f"{shown(folder)} was made by another version of recsys: remove it")
            return cls(path.parent, Source.of_plain(found["source"]), int(found["buckets"]))
        except (KeyError, TypeError, ValueError):
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
        """Do what of a stage is not done; return how many units that were.

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
        for path in (self.folder / stage).iterdir():
            if path.name != "_SUCCESS":
                path.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write a small file that appears when it is whole."""
    with replacing(path) as file:
        file.write(json.dumps(value, indent=1).encode())


def read_json(path: Path) -> Any:
    """Return what `write_json` wrote.

    Raises
    ------
    InputError
    """
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        raise InputError(f"{shown(path)} is damaged: remove the folder") from None
