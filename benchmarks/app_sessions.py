"""Eight browsers at the app for ten minutes: its memory, and the errors in its log.

    python benchmarks/app_sessions.py [--minutes 10] [--sessions 8]

Each session is another person with another model who goes through the pages, likes, dislikes and
reloads. Memory is the resident set of the server, every ten seconds; it is compared between the second
and the last fifth of the time, after a first fifth in which code is compiled and models are fitted.
Needs Chromium and Playwright.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np
import psutil

ROOT = Path(__file__).resolve().parents[1]
MODELS = ("cf-komd:kernel=mc,degree=2", "ease", "msdw", "slist", "popularity", "als", "slim", "cf-komd")
PAGES = ("", "explain", "map", "data", "evaluate", "links", "interactions", "kernels")


def started(log: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Start the app, and return it with its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {key: value for key, value in os.environ.items() if key != "RECSYS_DATA"}
    command = [sys.executable, "-m", "streamlit", "run", "app/main.py", "--server.port", str(port)]
    out = log.open("wb")
    app = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=out)
    address = f"http://127.0.0.1:{port}"
    for _ in range(120):
        try:
            urllib.request.urlopen(f"{address}/_stcore/health", timeout=2).close()
            return app, address
        except OSError:
            time.sleep(0.5)
    raise SystemExit("the app does not answer")


def visit(address: str, sessions: int, until: float, seen: dict[str, int]) -> None:
    """Let all sessions go their ways in turn until the time is up."""
    from playwright.sync_api import Error, sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    program = next((path for name in names if (path := shutil.which(name))), None)
    rng = np.random.default_rng(0)
    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=program, args=["--no-sandbox"])
        tabs = [browser.new_context().new_page() for _ in range(sessions)]
        while time.monotonic() < until:
            for k, tab in enumerate(tabs):
                page = PAGES[int(rng.integers(len(PAGES)))]
                user = f"u{int(rng.integers(1, 401)):04d}"
                try:
                    tab.goto(f"{address}/{page}?model={MODELS[k % len(MODELS)]}&user={user}")
                    tab.get_by_role("heading").first.wait_for(timeout=120_000)
                    if page == "":
                        tab.locator(".rs-title").first.wait_for(timeout=120_000)
                        name = ("Like", "Dislike", "Why")[int(rng.integers(3))]
                        tab.get_by_role("button", name=name, exact=True).first.click()
                    tab.wait_for_timeout(300)
                    seen["pages"] += 1
                    seen["exceptions"] += tab.get_by_test_id("stException").count()
                except Error:
                    seen["lost"] += 1
        browser.close()


def main() -> None:
    """Run, and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--sessions", type=int, default=8)
    asked = parser.parse_args()
    log = Path(tempfile.mkdtemp()) / "app.log"
    app, address = started(log)
    seen = {"pages": 0, "lost": 0, "exceptions": 0}
    until = time.monotonic() + 60 * asked.minutes
    sizes: list[float] = []

    def watch() -> None:
        process = psutil.Process(app.pid)
        while time.monotonic() < until and app.poll() is None:
            sizes.append(process.memory_info().rss / 1e6)
            time.sleep(10)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    visit(address, asked.sessions, until, seen)
    watcher.join()
    alive = app.poll() is None
    app.terminate()
    text = log.read_text(encoding="utf-8", errors="replace")
    fifth = max(1, len(sizes) // 5)
    early, late = np.median(sizes[fifth : 2 * fifth]), np.median(sizes[-fifth:])
    found = {
        "minutes": asked.minutes,
        "sessions": asked.sessions,
        **seen,
        "alive": alive,
        "errors in the log": text.count("Traceback") + text.count("ERROR"),
        "MB in the second fifth": round(float(early), 1),
        "MB in the last fifth": round(float(late), 1),
        "growth": round(float(late / early - 1), 4),
        "MB every ten seconds": [round(size) for size in sizes],
    }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
