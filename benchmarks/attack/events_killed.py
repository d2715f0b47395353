"""The service is killed while clients send events: each acknowledged batch is in the database, once, whole."""

from __future__ import annotations

import http.client
import json
import sqlite3
import threading
import time
from collections import Counter
from pathlib import Path
from random import Random

from benchmarks.attack.common import Result, workspace
from benchmarks.attack.serving import Service, model_file

WRITERS = 6
LEAST = 2  # kills, whatever the time


class Writer(threading.Thread):
    """Sends batches; one without an answer is sent again, under the same key, until there is one."""

    def __init__(self, number: int, seed: int) -> None:
        super().__init__(daemon=True)
        self.number, self.random = number, Random(f"{seed}:{number}")
        self.port = 0
        self.sizes: dict[str, int] = {}
        self.acknowledged: set[str] = set()
        self.refused: list[str] = []
        self.done = threading.Event()

    def run(self) -> None:
        """Send batches until `done`."""
        k = 0
        while not self.done.is_set():
            key, k = f"w{self.number}-{k}", k + 1
            self.sizes[key] = self.random.randint(1, 40)
            body = json.dumps({"batch": key, "events": [
                {"user": f"n{self.random.randrange(99)}", "item": f"i{self.random.randrange(99)}", "time": k}
                for _ in range(self.sizes[key])
            ]})  # fmt: skip
            while not self.done.is_set() and not self.sent(key, body):
                time.sleep(0.02)

    def sent(self, key: str, body: str) -> bool:
        """Send a batch; return whether there was an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("POST", "/events", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            told = answer.read()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
        if answer.status == 200:
            self.acknowledged.add(key)
        elif answer.status != 503:
            self.refused.append(f"{answer.status} {told[:100]!r}")
        return answer.status != 503


def counted(database: Path, writers: list[Writer]) -> list[str]:
    """Return what is wrong with the database, as SQLite itself reads it."""
    with sqlite3.connect(database) as connection:
        found = connection.execute(
            "select key, count(events.id) from batches left join events on batch = batches.id group by batches.id"
        ).fetchall()
        whole = connection.execute("pragma integrity_check").fetchone()[0]
    sizes = {key: size for writer in writers for key, size in writer.sizes.items()}
    keys = Counter(key for key, _ in found)
    lost = {key for writer in writers for key in writer.acknowledged} - set(keys)
    faults = [f"{key} is lost" for key in sorted(lost)]
    faults += [f"{key} is there {number} times" for key, number in keys.items() if number > 1]
    faults += [f"{key} has {n} events, not {sizes[key]}" for key, n in found if n != sizes.get(key)]
    faults += [] if whole == "ok" else [f"the file is damaged: {whole}"]
    return faults + [told for writer in writers for told in writer.refused]


def run(seconds: float, seed: int) -> Result:
    """Kill, count and start again until the time is up. `--events` is for one worker: two are refused."""
    result, random = Result(), Random(seed)
    writers = [Writer(number, seed) for number in range(WRITERS)]
    until, kills = time.monotonic() + seconds, 0
    with workspace() as folder:
        database, model = folder / "events.db", model_file("msdw")
        while kills < LEAST or time.monotonic() < until:
            with Service(model, folder, "--events", str(database)) as service:
                for writer in writers:
                    writer.port = service.address[1]
                    if kills == 0:
                        writer.start()
                before = sum(len(writer.acknowledged) for writer in writers)
                time.sleep(random.uniform(0.3, 1.5))
                service.kill()
            kills += 1
            after = sum(len(writer.acknowledged) for writer in writers)
            faults = counted(database, writers)
            if after == before:
                faults.append("no batch was acknowledged")
            result.add(f"kill {kills}", "kills", "; ".join(faults[:3]))
        for writer in writers:
            writer.done.set()
        for writer in writers:
            writer.join(10)
        result.tried += after
        result.counts["batches acknowledged"] += after
        try:
            with Service(model, folder, "--workers", "2", "--events", str(database)):
                result.add("2 workers", "taken", "two processes that write events were not refused")
        except RuntimeError as error:
            refused = "--workers 1" in str(error)
            result.add("2 workers", "refused", "" if refused else str(error))
    return result
