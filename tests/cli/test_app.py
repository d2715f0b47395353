"""`recsys app`: what it runs, what it says without Streamlit, and that it answers."""

import importlib.util
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from recsys.cli import call
from recsys.cli.open_app import app_folder, command_line
from recsys.utils.distribution import install_hint


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(url, process, seconds=90):
    """Return what an address answers, once it does; None if the process ended."""
    for _ in range(2 * seconds):
        if process.poll() is not None:
            return None
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.read().decode()
        except OSError:
            time.sleep(0.5)
    return None


def test_it_runs_the_page_of_the_checkout_with_its_settings_as_flags():
    command = command_line("0.0.0.0", 8502, headless=True)
    main = app_folder() / "app" / "main.py"
    assert main.is_file() and str(main) in command and command[1:4] == ["-m", "streamlit", "run"]
    assert {"--server.address=0.0.0.0", "--server.port=8502", "--server.headless=true"} <= set(command)
    assert "--server.maxUploadSize=200" in command and "--browser.gatherUsageStats=false" in command
    themes = {flag.split("=")[0] for flag in command if flag.startswith("--theme.")}
    assert {"--theme.light.primaryColor", "--theme.dark.sidebar.backgroundColor"} <= themes
    assert not any("{" in flag for flag in command), "tables in tables are flags of their own"


@pytest.mark.parametrize("missing", [("streamlit",), ("streamlit", "altair")])
def test_without_streamlit_one_line_says_what_to_install(missing, monkeypatch, capsys):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in missing else find(name)
    )
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("it was started"))
    assert call(["app"]) == 2
    told = capsys.readouterr().err
    assert told == f"recsys: app needs {' and '.join(missing)}: {install_hint('app')}\n"


def test_a_port_is_a_port(monkeypatch, capsys):
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("it was started"))
    assert call(["app", "--port", "70000"]) == 2 and "--port" in capsys.readouterr().err


@pytest.mark.slow
def test_it_answers(tmp_path):
    port = free_port()
    code = "from recsys.cli import run; run()"
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", code, "app", "--headless", "--port", str(port)]
    process = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL)
    try:
        assert answers(f"http://127.0.0.1:{port}/_stcore/health", process) == "ok"
        assert "<title>" in answers(f"http://127.0.0.1:{port}/", process)
    finally:
        process.terminate()
        process.wait(20)
