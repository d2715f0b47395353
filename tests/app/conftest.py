"""Fixtures of the app's tests: the real app, and a browser."""

import os
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from recsys._jit import cache_dir
from tests.app.browsing import CHROMIUM, ROOT


@pytest.fixture(autouse=True)
def no_other_data(monkeypatch, tmp_path):
    """No test finds data of this machine."""
    monkeypatch.delenv("RECSYS_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {k: v for k, v in os.environ.items() if k != "RECSYS_DATA"}
    if cache_dir() is not None:  # compiled code is the suite's: what compiling takes is another matter
        environment["NUMBA_CACHE_DIR"] = str(cache_dir().parent)
    environment["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    log = open(tmp_path_factory.mktemp("log") / "app.log", "w")
    app = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app/main.py", "--server.port", str(port)],
        cwd=ROOT,
        env=environment,
        stdout=log,
        stderr=log,
    )
    url = f"http://127.0.0.1:{port}"
    for _ in range(120):
        try:
            if urllib.request.urlopen(f"{url}/_stcore/health", timeout=2).read() == b"ok":
                break
        except OSError:
            time.sleep(0.5)
    else:
        app.kill()
        pytest.fail("the app did not start")
    yield url
    app.terminate()
    app.wait(20)
    log.close()


@pytest.fixture(scope="session")
def browser():
    sync = pytest.importorskip("playwright.sync_api")
    with sync.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def tab(browser):
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.set_default_timeout(180_000)
    yield page
    page.close()
