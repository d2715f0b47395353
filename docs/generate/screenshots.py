"""The pictures of the app: `python -m docs.generate.screenshots [PAGE …]` opens it and takes them."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# A page, the button that is pressed on it, and what then stands there.
PICTURES = {
    "recommend": ("", ""),
    "explain": ("", "How the score adds up"),
    "interactions": ("Fit", "Top interactions"),
    "links": ("Compare", "Comparison"),
    "map": ("", "Around a title"),
    "compare": ("Run", ""),
    "data": ("", "Long tails"),
    "kernels": ("Compute", ""),
}
SIZE = {"width": 1280, "height": 900}


@contextmanager
def serving(**environment: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start the app with these variables and give its address, once it answers, and its process."""
    sys.path.insert(0, str(ROOT))
    from recsys.cli.open_app import command_line

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as empty:  # no dataset that was downloaded shows up
        app = subprocess.Popen(
            command_line("127.0.0.1", port, True), stdout=subprocess.DEVNULL,
            env={**os.environ, "XDG_CACHE_HOME": empty, **environment},
        )  # fmt: skip
        try:
            for _ in range(600):
                with suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5).close()
                    break
                time.sleep(0.1)
            else:
                raise SystemExit("the app does not answer")
            yield f"http://127.0.0.1:{port}", app
        finally:
            app.terminate()
            app.wait(30)


def settled(page: Any) -> None:
    """Wait until nothing is computed any more."""
    page.wait_for_timeout(1000)
    for _ in range(300):
        page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", timeout=180_000)
        if page.locator("[data-testid=stProgress]").count() == 0:
            break
        page.wait_for_timeout(1000)
    page.wait_for_timeout(1500)


def main() -> None:
    """Take them."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    program = next((path for name in names if (path := shutil.which(name))), None)
    with serving(RECSYS_DATA="") as (address, _), sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)
        page.goto(f"{address}/?user=u0007")
        page.locator(".rs-title").first.wait_for(timeout=180_000)
        page.get_by_text("being read from the profile").wait_for(state="detached", timeout=180_000)
        for name in sys.argv[1:] or PICTURES:
            button, text = PICTURES[name]
            page.goto(f"{address}/{name}?user=u0007")
            page.get_by_role("heading", name=name.capitalize(), exact=True).wait_for(timeout=180_000)
            settled(page)
            if button:
                page.get_by_role("button", name=button, exact=True).click()
                settled(page)
            if button and text:
                page.get_by_role("heading", name=text).first.scroll_into_view_if_needed(timeout=180_000)
                settled(page)
            page.screenshot(path=ROOT / "docs" / f"{name}.png")


if __name__ == "__main__":
    main()
