"""Model files changed with a right checksum: a ModelFileError, or answers about items that there are.

A checksum cannot judge the values of somebody who computes it anew: weights may be any, also so large
that scores overflow, which is counted apart. But nothing in such a file may crash, or come out as
anything but an InputError.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import struct
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from benchmarks.attack.common import Result, cases, workspace
from benchmarks.attack.tables import model_files
from recsys.errors import InputError
from recsys.rankers import ModelPackage, load_package

NUMBERS = (-1, 0, 1, 7, 59, 60, 61, 2**31, 2**63, 10**30, 0.5, float("nan"), float("inf"), -0.0, True)
TEXTS = ("", "59", "x" * 5000, "\ud800", "\0", "../../x", "ease", "1e3", "é" * 300)
OTHERS = (None, [], {}, [[]], {"a": 1}, [None], [1, "a"], {"ranker": "ease", "params": {}, "state": {}})
SHAPES = ([0, 2**63], [0, 2**62], [1] * 65, [0] * 70, [], [-1], [2**31, 0], ["3"], [3.0], [True], None)


def deep(depth: int) -> Any:
    made: Any = []
    for _ in range(depth):
        made = [made]
    return made


def value(random: Random) -> Any:
    kind = random.randrange(4)
    if kind == 0:
        return random.choice(NUMBERS)
    if kind == 1:
        return random.choice(TEXTS)
    return copy.deepcopy(random.choice(OTHERS)) if kind == 2 else deep(random.choice((2, 90, 900)))


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return where the values of a JSON document stand."""
    found = [path] if path else []
    entries = (
        node.items() if isinstance(node, dict) else enumerate(node[:3]) if isinstance(node, list) else ()
    )
    for key, inner in entries:
        found += places(inner, (*path, key))
    return found


def put(node: Any, path: tuple[Any, ...], new: Any) -> None:
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = new


def split(content: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Return manifest, array table and array bytes of a file."""
    size = struct.unpack("<Q", content[:8])[0]
    table = json.loads(content[8 : 8 + size])
    return json.loads(table.pop("__metadata__")["recsys"]), table, content[8 + size :]


def joined(manifest: dict[str, Any], table: dict[str, Any], payload: bytes) -> bytes:
    """Return a file of these, with the checksum that they have."""
    unsigned = {key: inner for key, inner in manifest.items() if key != "sha256"}
    digest = hashlib.sha256(json.dumps([unsigned, dict(sorted(table.items()))], sort_keys=True).encode())
    digest.update(payload)
    told = json.dumps(unsigned | {"sha256": digest.hexdigest()})
    header = json.dumps({"__metadata__": {"recsys": told}} | table).encode()
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + payload


def forged(content: bytes, random: Random) -> tuple[str, bytes]:
    """Return what was done to a file, and the file after it."""
    manifest, table, payload = split(content)
    kind = random.choice(("value", "value", "bytes", "bytes", "shape", "swap", "absent", "id"))
    name = random.choice(sorted(table))
    what = f"{kind} of {name}"
    if kind == "value":
        path = random.choice(places(manifest))
        new = value(random)
        put(manifest, path, new)
        what = f"{'.'.join(map(str, path))} = {str(new)[:40]!r}"
    elif kind == "bytes":
        first, end = table[name]["data_offsets"]
        if end > first:
            out = bytearray(payload)
            for _ in range(random.choice((1, 1, 8, 64))):
                place = random.randrange(first, end)
                out[place] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
            payload = bytes(out)
    elif kind == "shape":
        table[name]["shape"] = copy.deepcopy(random.choice(SHAPES))
        if random.random() < 0.5:
            table[name]["shape"] = [random.choice((0, 1, 59, 60, 61, 2**31))] * random.choice((1, 2, 3))
    elif kind == "swap":
        other = random.choice(sorted(table))
        table[name], table[other] = table[other], table[name]
        what += f" and {other}"
    elif kind == "absent":
        first, end = table.pop(name)["data_offsets"]
        payload = payload[:first] + payload[end:]
        for entry in table.values():
            if entry["data_offsets"][0] >= end:
                entry["data_offsets"] = [place - (end - first) for place in entry["data_offsets"]]
    else:
        keys = [path for path in places(manifest) if "ids" in str(path)] or places(manifest)
        path = random.choice(keys)
        put(manifest, path, random.choice(TEXTS))
        what = f"{'.'.join(map(str, path))} a text"
    return what, joined(manifest, table, payload)


def used(package: ModelPackage) -> tuple[str, str]:
    """Ask for all that a package offers; return how that ended, and what is wrong with the answers."""
    ranker, rows = package.ranker, package.user_items
    users, items = rows.shape
    found = ranker.recommend(np.arange(users), rows, 5)
    if found.ids.max(initial=-1) >= items or found.ids.min(initial=-1) < -1:
        return "loads, wrong", "ids out of range"
    calls = {"fold-in": lambda: ranker.recommend(0, rows[0], 5, recalculate_user=True)}
    calls["similar-items"] = lambda: ranker.similar_items(0, 5)
    calls["explain"] = lambda: ranker.explain(0, rows[0], 0)
    for ability, call in calls.items():
        if ability in ranker.capabilities:
            call()
    return ("loads, answers" if np.isfinite(found.scores).all() else "loads, scores not finite"), ""


def tried(path: Path, mapped: bool = False) -> tuple[str, str]:
    """Load a file and use it; return how that ended, and what is wrong with it."""
    try:
        package = load_package(path, mapped=mapped)
    except InputError as error:
        kind = type(error).__name__
        return kind, "" if kind == "ModelFileError" else f"{kind} while it was read: {error}"
    except Exception as error:
        return "other error", f"{type(error).__name__} while it was read: {error}"
    try:
        return used(package)
    except InputError:
        return "loads, calls refused", ""
    except Exception as error:
        return "other error", f"{type(error).__name__} in use: {error}"


def bounds_checked() -> None:
    """Compile with checks of indices from here on: what reads beyond an array is an IndexError then.

    numba does not ask of code in its cache whether it checks, so that such code has a folder of its own.
    It is kept: the first run compiles much, and gets through few files. What is small is compiled, too.
    """
    from recsys._jit import cache_dir, compile_at_once

    folder = cache_dir()
    assert "numba" not in sys.modules, "it reads its settings once, when it is imported"
    os.environ["NUMBA_BOUNDSCHECK"] = "1"
    if folder is not None:
        os.environ["NUMBA_CACHE_DIR"] = str(folder.parent / "bounds-checked")
    cache_dir.cache_clear()
    compile_at_once()


def run(seconds: float, seed: int) -> Result:
    result = Result()
    with workspace() as folder:
        files = {name: path.read_bytes() for name, path in model_files().items()}
        names = sorted(files)
        bounds_checked()
        assert split(files["ease"])[0]["sha256"] == split(joined(*split(files["ease"])))[0]["sha256"]
        for number, random in cases(seconds, seed):
            name = names[number % len(names)]
            what, content = forged(files[name], random)
            mapped = random.random() < 0.5  # as a service reads it
            path = folder / "forged"
            path.unlink(missing_ok=True)
            path.write_bytes(content)
            began = time.perf_counter()
            with np.errstate(all="ignore"):
                ending, fault = tried(path, mapped)
            result.add(
                f"case {number}, {name}, {what}{', mapped' * mapped}",
                ending,
                fault,
                time.perf_counter() - began,
            )
    return result
