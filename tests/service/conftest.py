import contextlib
import shutil
import threading
import time

import pytest

from recsys import make_ranker
from recsys.datasets import load_dataset
from recsys.rankers import fit_package


def wait_until(told):
    until = time.monotonic() + 60
    while not told():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.fixture(scope="session")
def data():
    return load_dataset("sample")


@pytest.fixture(scope="session")
def path(data, tmp_path_factory):
    file = tmp_path_factory.mktemp("service") / "model.recsys"
    fit_package(make_ranker("cf-komd"), data, show_progress=False).save(file)
    return file


@pytest.fixture
def model(path, tmp_path):
    """A copy of the file, to be replaced or removed."""
    return shutil.copy(path, tmp_path / "m.recsys")


@contextlib.contextmanager
def served(app, **where):
    """Serve an application on a port of its own, in a thread; give its address."""
    import uvicorn

    from recsys.service import server

    where = server.Listening(port=0, **where)
    listener = server.listen(where)
    made = uvicorn.Server(server.settings(app, where))
    thread = threading.Thread(target=made.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    for _ in range(1000):
        if made.started:
            break
        time.sleep(0.01)
    assert made.started
    try:
        yield listener.getsockname()
    finally:
        made.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture
def serving():
    """Return what serves an application until the test ends, and returns its address."""
    with contextlib.ExitStack() as running:
        yield lambda app, **where: running.enter_context(served(app, **where))
