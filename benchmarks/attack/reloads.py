"""A soak: mixed requests while the model is replaced by good and by broken files; memory, failed requests."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from random import Random

from benchmarks.attack.common import Result, workspace
from benchmarks.attack.overload import apart
from benchmarks.attack.serving import Service, bundle, heavy, known
from benchmarks.lab.http_load import closed_loop, get, post


def put(content: bytes, path: Path) -> None:
    """Replace a file as a save does."""
    fresh = path.with_suffix(".fresh")
    fresh.write_bytes(content)
    os.replace(fresh, path)


def run(seconds: float, seed: int) -> Result:
    """Reload every ten seconds, or as often as gives a dozen; every other file is broken."""
    result = Result()
    random = Random(seed)
    pause = min(10.0, max(1.5, seconds / 12))
    requests = [
        *known(200, random), *heavy(20, random), *[get(f"/items/i{k}/similar") for k in range(50)],
        *[post("/explain", {"user": f"u{k}", "item": "i3"}) for k in range(50)],
    ]  # fmt: skip
    random.shuffle(requests)
    with workspace() as folder:
        model = folder / "m"
        bundle().save(model)
        good = [model.read_bytes(), b""]
        bundle("popularity").save(model)
        good[1] = model.read_bytes()
        put(good[0], model)
        memory: list[int] = []
        replaced = 0
        stop = threading.Event()
        with Service(model, folder) as service:
            closed_loop(service.address, requests, 4, 2.0)

            def replace() -> None:
                nonlocal replaced
                while not stop.wait(pause):
                    content = good[replaced // 2 % 2]
                    if replaced % 2:
                        content = content[: random.randrange(len(content))]
                    put(content, model)
                    replaced += 1
                    memory.append(service.memory())

            thread = threading.Thread(target=replace)
            thread.start()
            load = apart(closed_loop, service.address, requests, 8, seconds, patient=True)
            stop.set()
            thread.join()
            put(good[0], model)
            time.sleep(2.5)
            failed = {s: len(times) for s, times in load.times.items() if s not in (200, 503)}
            # Popularity explains nothing and has nothing similar: refused in one line.
            failed.pop(422, None)
            fault = f"answers {failed}" if failed else service.faults()
            fault = fault or ("" if load.count(200) else "nothing was answered")
            fault = fault or ("" if service.healthy() else "/health does not answer")
            for status, times in load.times.items():
                result.counts[str(status)] += len(times)
            result.tried = sum(map(len, load.times.values())) - 1
            result.add("the soak", "soak", fault, load.ms(1.0) / 1000)
            result.memory = max(memory, default=0)
        part = max(1, len(memory) // 5)
        early, late = sorted(memory[part : 2 * part] or memory), sorted(memory[-part:])
        grown = 100 * (late[len(late) // 2] / early[len(early) // 2] - 1) if memory else float("nan")
        result.notes.append(f"{replaced} files, half of them broken")
        result.notes.append(f"memory {grown:+.1f}% from the second fifth to the last")
    return result
