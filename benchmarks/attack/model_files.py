"""Model files of every ranker, changed at random: a ModelFileError, or the answers of the whole file."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import numpy as np

from benchmarks.attack.common import Result, cases, workspace
from benchmarks.attack.tables import model_files
from recsys.errors import ModelFileError
from recsys.rankers import load_package


def changed(content: bytes, random: Random) -> tuple[str, bytes]:
    """Return what was done to a file, and the file after it."""
    size = len(content)
    where, length = random.randrange(size), random.randint(1, 64)
    kind = random.choice(["flip"] * 6 + ["truncate", "insert", "delete", "splice", "append"])
    if kind == "flip":
        out = bytearray(content)
        # Half of them in the header, where the sense is.
        place = where if random.random() < 0.5 else random.randrange(min(size, 4096))
        out[place] ^= 1 << random.randrange(8)
        return f"flip at {place}", bytes(out)
    if kind == "truncate":
        return f"truncate at {where}", content[:where]
    if kind == "insert":
        return f"insert {length} at {where}", content[:where] + random.randbytes(length) + content[
            where:
        ]
    if kind == "delete":
        return f"delete {length} at {where}", content[:where] + content[where + length :]
    if kind == "append":
        return f"append {length}", content + random.randbytes(length)
    other = random.randrange(size)
    return f"splice {other} to {where}", content[:where] + content[other:]


def answers(path: Path, mapped: bool = False) -> tuple[np.ndarray, np.ndarray]:
    package = load_package(path, mapped=mapped)
    rows = package.user_items
    found = package.ranker.recommend(np.arange(rows.shape[0]), rows, 5)
    return found.ids, found.scores


def run(seconds: float, seed: int) -> Result:
    result = Result()
    with workspace() as folder:
        paths = model_files()
        files = {name: path.read_bytes() for name, path in paths.items()}
        whole = {name: answers(path) for name, path in paths.items()}
        names = sorted(files)
        for number, random in cases(seconds, seed):
            name = names[number % len(names)]
            what, content = changed(files[name], random)
            mapped = random.random() < 0.5  # as a service reads it
            path = folder / "changed"
            path.unlink(missing_ok=True)
            path.write_bytes(content)
            case = f"case {number}, {name}, {what}{', mapped' * mapped}"
            began = time.perf_counter()
            try:
                found = answers(path, mapped)
                same = all(np.array_equal(a, b) for a, b in zip(found, whole[name], strict=True))
                ending, fault = ("same answers", "") if same else ("wrong", "answers differ, no error")
            except ModelFileError:
                ending, fault = "ModelFileError", ""
            except Exception as error:
                ending, fault = "other error", f"{type(error).__name__}: {error}"
            result.add(case, ending, fault, time.perf_counter() - began)
    return result
