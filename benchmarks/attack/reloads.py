"""The model is replaced by good and by broken files under load: no request fails, each file is judged.

The broken ones are whole files cut short, and what is no model at all: an empty file, one of a terabyte
without content, a folder, a pipe, a link to itself, a device. Each is refused with its reason in /health
before it costs memory or disk, and the good file after it is served.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import threading
import time
from pathlib import Path
from random import Random

from benchmarks.attack.common import Result, workspace
from benchmarks.attack.overload import apart
from benchmarks.attack.serving import WORKERS, Service, get, heavy, known, model_file, post, running
from benchmarks.lab.http_load import closed_loop

NOTICED = 10.0  # seconds in which a file that was put in place is judged
BROKEN = ("cut", "empty", "a terabyte", "a folder", "a pipe", "a link to itself", "a device", "cut")
MOST_DISK = 16 << 20  # bytes that a broken file may cost while it is judged


def put(path: Path, kind: str, content: bytes, random: Random) -> None:
    """Replace a file as a save does."""
    fresh = path.with_suffix(".fresh")
    if kind == "a folder":
        fresh.mkdir()
        path.unlink()
    elif kind == "a pipe":
        os.mkfifo(fresh)
    elif kind == "a link to itself":
        fresh.symlink_to(path)
    elif kind == "a device":
        fresh.symlink_to("/dev/zero")
    else:
        fresh.write_bytes(
            {"good": content, "empty": b""}.get(kind, content[: random.randrange(len(content))])
        )
        if kind == "a terabyte":
            with fresh.open("wb") as file:
                file.write((1 << 19).to_bytes(8, "little") + b"{" * 100)
                file.truncate(1 << 40)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    os.replace(fresh, path)


def used(folder: Path) -> int:
    """Return the bytes on disk of what is in a folder."""
    found = 0
    for entry in folder.rglob("*"):
        with contextlib.suppress(OSError):
            found += 512 * entry.lstat().st_blocks
    return found


def state(service: Service) -> dict[str, object]:
    """Return what /health says."""
    connection = http.client.HTTPConnection(*service.address, timeout=5)
    try:
        connection.request("GET", "/health", headers={"Host": "127.0.0.1"})
        return dict(json.loads(connection.getresponse().read()))
    except (OSError, http.client.HTTPException, ValueError) as error:
        return {"failed": str(error)}
    finally:
        connection.close()


def waited(service: Service, workers: int, holds: object) -> dict[str, object] | None:
    """Return what /health says as soon as something holds for each worker in turn, or None."""
    until, right, said = time.monotonic() + NOTICED, 0, None
    while time.monotonic() < until:
        said = state(service)
        right = right + 1 if holds(said) else 0  # type: ignore[operator]
        if right >= 1 if workers == 1 else right >= 5:  # any worker answers: five in a row
            return said
        time.sleep(0.05)
    return None


def replaced(
    result: Result, service: Service, model: Path, good: dict[str, bytes], workers: int, random: Random,
    stop: threading.Event, memory: list[int],
) -> None:  # fmt: skip
    """Put a broken and a good file in turn, and see that each is judged."""
    number = 0
    while not stop.is_set():
        kind, name = BROKEN[number % len(BROKEN)], ("popularity", "ease")[number % 2]
        told = f"{workers} workers, file {number}"
        put(model, kind, good[name], random)
        sizes: list[int] = []

        def told_why(said: dict[str, object], sizes: list[int] = sizes) -> bool:
            sizes.append(used(model.parent))
            return bool(said.get("error"))

        refused = waited(service, workers, told_why)
        grown = max(sizes) - 3 * len(good["ease"])  # the file itself, and at most two copies
        fault = "" if refused else "/health does not say that it was refused"
        fault = fault or (f"took {grown:,} bytes of disk" if grown > MOST_DISK else "")
        result.add(f"{told}, {kind}", "refused" if not fault else "not refused", fault)
        put(model, "good", good[name], random)
        taken = waited(
            service, workers, lambda said, name=name: said.get("model") == name and not said.get("error")
        )
        fault = "" if taken else f"{name} is not served: {state(service)}"
        result.add(f"{told}, {name} after {kind}", "served" if taken else "not served", fault)
        memory.append(service.memory())
        number += 1


def run(seconds: float, seed: int) -> Result:
    result = Result()
    for workers in WORKERS:
        soak(result, seconds / len(WORKERS), workers, Random(seed))
    return result


def soak(result: Result, seconds: float, workers: int, random: Random) -> None:
    """Send mixed requests while files are put; every kind is put at least once, whatever the time."""
    requests = [
        *known(200, random), *heavy(20, random), *[get(f"/items/i{k}/similar") for k in range(50)],
        *[post("/explain", {"user": f"u{k}", "item": "i3"}) for k in range(50)],
    ]  # fmt: skip
    random.shuffle(requests)
    good = {name: model_file(name).read_bytes() for name in ("ease", "popularity")}
    memory: list[int] = []
    with workspace() as folder:
        model = folder / "m"
        put(model, "good", good["ease"], random)
        stop = threading.Event()
        own = {"TMPDIR": str(folder)}  # where copies of the model go: on the disk that is looked at
        with running(model, folder, workers, env=own) as service:
            closed_loop(service.address, requests, 4, 0.5)
            arguments = (result, service, model, good, workers, random, stop, memory)
            thread = threading.Thread(target=replaced, args=arguments)
            thread.start()
            load = apart(closed_loop, service.address, requests, 4, max(seconds, 1.0), patient=True)
            until = time.monotonic() + 60
            while len(memory) < len(set(BROKEN)) and time.monotonic() < until:
                time.sleep(0.1)
            stop.set()
            thread.join()
            failed = {s: len(times) for s, times in load.times.items() if s not in (200, 503)}
            # Popularity explains nothing and has nothing similar: refused in one line.
            failed.pop(422, None)
            fault = f"answers {failed}" if failed else service.faults()
            fault = fault or ("" if load.count(200) else "nothing was answered")
            fault = fault or ("" if service.healthy() else "/health does not answer")
            for status, times in load.times.items():
                result.counts[str(status)] += len(times)
            result.tried += sum(map(len, load.times.values())) - 1
            result.add(f"{workers} workers, the soak", "soaks", fault, load.ms(1.0) / 1000)
            result.memory = max(result.memory, *memory, 0)
        left = [entry.name for entry in folder.rglob("*.new")]
        result.add(f"{workers} workers, afterwards", "nothing left", f"left {left}" if left else "")
    if len(memory) > 5:
        part = max(1, len(memory) // 5)
        early, late = sorted(memory[part : 2 * part]), sorted(memory[-part:])
        grown = 100 * (late[len(late) // 2] / early[len(early) // 2] - 1)
        result.notes.append(f"{workers} workers: memory {grown:+.1f}% from the second fifth to the last")
