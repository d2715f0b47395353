import contextlib
import shutil
import threading
import time

import pytest

from recsys import make_ranker
from recsys.datasets import load_dataset
from recsys.rankers import fit_package


def wait_until(condition):
    until = time.monotonic() + 60
    while not condition():
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
def served(app):
    """Serve an application on a port of its own, in a thread; give its address."""
    import uvicorn

    from recsys.cli.serve import listen
    from recsys.service.http import Protocol

    listener = listen("127.0.0.1", 0, None)
    server = uvicorn.Server(uvicorn.Config(app, http=Protocol, ws="none", log_level="error"))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    wait_until(lambda: server.started)
    try:
        yield listener.getsockname()
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()
