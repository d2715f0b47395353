import threading
import time

import pytest

from recsys import make_ranker
from recsys.datasets import load_dataset
from recsys.rankers import fit_bundle


@pytest.fixture(scope="session")
def data():
    return load_dataset("sample")


@pytest.fixture(scope="session")
def path(data, tmp_path_factory):
    file = tmp_path_factory.mktemp("service") / "model.recsys"
    fit_bundle(make_ranker("cf-komd"), data, show_progress=False).save(file)
    return file


@pytest.fixture
def serving():
    """Return what serves an application on a port of its own, in a thread, until the test ends."""
    from recsys.service import server

    running = []

    def serve(app, connections=1000, **where):
        where = server.Listening(port=0, connections=connections, **where)
        listener = server.listen(where)
        made = server.make_server(app, where, connections)
        thread = threading.Thread(target=made.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        running.append((made, thread))
        for _ in range(1000):
            if made.started:
                return listener.getsockname()
            time.sleep(0.01)
        raise AssertionError("it did not start")

    yield serve
    for made, thread in running:
        made.should_exit = True
        thread.join(20)
        assert not thread.is_alive()
