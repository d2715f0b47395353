"""The server is killed again and again while it takes events: what it acknowledged is there, once."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("sqlalchemy")
from recsys import load_dataset, make_ranker
from recsys.data.event_database import EventDatabase
from recsys.data.events import fold, with_events
from recsys.rankers import fit_package, load_package
from recsys.service.model_store import ModelStore
from tests.service.test_events import same_models

KILLS = int(os.environ.get("RECSYS_KILLS", "200"))
SERVER = Path(__file__).with_name("server_to_kill.py")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


class Client(threading.Thread):
    """Sends batches one after another; one without an answer is sent again until there is one."""

    def __init__(self, port, seed, number):
        super().__init__(daemon=True)  # a failure is not waited for
        self.port, self.name, self.rng = port, f"c{number}", np.random.default_rng([seed, number])
        self.sent, self.acknowledged, self.repeated, self.cut = {}, [], 0, 0
        self.done = threading.Event()

    def run(self):
        for k in range(10**6):
            if self.done.is_set():
                return
            key = f"{self.name}-{k}"
            self.sent[key] = [
                {"user": f"n{self.rng.integers(40)}", "item": f"m{self.rng.integers(60):04d}", "time": 1_100_000_000 + k,
                 "action": str(self.rng.choice(["like", "like", "unlike"]))}
                for _ in range(int(self.rng.integers(1, 40)))
            ]  # fmt: skip
            while not self.done.is_set():
                try:
                    answer = self.post(key)
                except (OSError, http.client.HTTPException):
                    self.cut += 1  # no answer: perhaps kept, perhaps not
                    time.sleep(0.005)
                    continue
                assert answer["events"] == len(self.sent[key])
                self.repeated += answer["repeated"]
                self.acknowledged.append(key)
                break

    def post(self, key):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            body = json.dumps({"batch": key, "events": self.sent[key]})
            connection.request("POST", "/events", body, {"content-type": "application/json"})
            answer = connection.getresponse()
            read = answer.read()
            assert answer.status == 200, read
            return json.loads(read)
        finally:
            connection.close()


def test_nothing_acknowledged_is_lost(tmp_path, capsys):
    data = load_dataset("sample")
    model, where = tmp_path / "model.recsys", tmp_path / "events.db"
    fit_package(make_ranker("msdw"), data, show_progress=False).save(model)
    rng = np.random.default_rng(7)
    with subprocess.Popen(
        [sys.executable, str(SERVER), str(model), str(where)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        try:
            port = int(server.stdout.readline())
            clients = [Client(port, 7, number) for number in range(3)]
            begun = 0
            for kill in range(KILLS):
                server.stdin.write("go\n")
                server.stdin.flush()
                child = int(server.stdout.readline())
                if kill == 0:
                    for client in clients:
                        client.start()
                before = sum(len(client.acknowledged) for client in clients)
                until = time.monotonic() + 30
                while sum(len(client.acknowledged) for client in clients) == before:
                    assert time.monotonic() < until, "no answer within 30 s"
                    time.sleep(0.001)
                time.sleep(float(rng.uniform(0, 0.05)))
                os.kill(child, signal.SIGKILL)
                begun += 1
            for client in clients:
                client.done.set()
            for client in clients:
                client.join()
        except BaseException:  # leaving this block waits for the server, and it for its child
            for one in [*psutil.Process(server.pid).children(), server]:
                one.kill()
            raise
        server.stdin.close()
    acknowledged = [key for client in clients for key in client.acknowledged]
    sent = {key: events for client in clients for key, events in client.sent.items()}
    with EventDatabase(where, create=False) as database:
        import sqlalchemy as sa

        kept: dict[str, list] = {}
        with database._engine.connect() as connection:
            rows = connection.execute(
                sa.text(
                    "select key, user_id, item_id, time, action from events join batches"
                    " on events.batch = batches.id order by events.id"
                )
            )
            for key, user, item, when, action in rows:
                kept.setdefault(key, []).append(
                    {"user": user, "item": item, "time": when, "action": action}
                )
        assert set(acknowledged) <= set(kept) and len(set(acknowledged)) == len(acknowledged)
        assert all(kept[key] == sent[key] for key in kept), "a batch is there in part, or twice"
        changes = fold(event for _, event in database.after(0))
    refit = fit_package(make_ranker("msdw"), with_events(data, changes), show_progress=False)
    store = ModelStore(model, 60, EventDatabase(where))
    store.close()
    same_models(store.current.package, refit)
    same_models(load_package(model).updated(changes), refit)
    cut, repeated = sum(c.cut for c in clients), sum(c.repeated for c in clients)
    with capsys.disabled():
        print(
            f"\n{begun} kills: {len(acknowledged):,} batches acknowledged, none lost; {len(kept):,} kept, "
            f"{repeated} of them committed before the kill and acknowledged after it"
        )
    assert begun == KILLS and cut >= KILLS and repeated > 0
