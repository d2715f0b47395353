"""The pictures of the app: `python -m docs.generate.screenshots` starts it and takes them."""

import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import suppress
from os import environ
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
PORT = 8599
ADDRESS = f"http://127.0.0.1:{PORT}"
# A page, the button that is pressed on it, and the text that is waited for.
PICTURES = {
    "recommend": ("", "Because you liked"),
    "explain": ("Explain", "How the score adds up"),
    "compare": ("", "95% interval"),
    "kernels": ("", "Expressiveness"),
}


def take(page: Page, name: str) -> None:
    """Take the picture of one page."""
    button, text = PICTURES[name]
    path = "recommend" if name == "explain" else name
    page.goto(f"{ADDRESS}/{path}")
    if button:
        page.get_by_role("button", name=button).first.click(timeout=180_000)
    page.get_by_text(text).first.wait_for(timeout=180_000)
    page.wait_for_timeout(3000)
    page.screenshot(path=ROOT / "docs" / f"{name}.png")


def main() -> None:
    """Start the app without other datasets, and take all pictures."""
    browsers = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    with tempfile.TemporaryDirectory() as empty, sync_playwright() as tool:
        command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app" / "main.py")]
        command += ["--server.headless=true", f"--server.port={PORT}"]
        app = subprocess.Popen(command, env={**environ, "XDG_CACHE_HOME": empty, "RECSYS_DATA": empty})
        try:
            for _ in range(300):
                with suppress(OSError):
                    urllib.request.urlopen(f"{ADDRESS}/_stcore/health").close()
                    break
                time.sleep(0.1)
            program = next(path for path in browsers if path)
            browser = tool.chromium.launch(executable_path=program, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            for name in PICTURES:
                take(page, name)
        finally:
            app.terminate()


if __name__ == "__main__":
    main()
