"""What browser tests share: the real app on a port of its own, and how a person uses it.

Screenshots are kept in $RECSYS_SHOTS, if that names a folder.
"""

import os
import shutil
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHOTS = os.environ.get("RECSYS_SHOTS")
CHROMIUM = next(
    (p for name in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(name))), None
)
MARKS = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None, reason="no Chromium here: `make test-browser` says how to get one"
    ),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def shot(page, name):
    folder = Path(SHOTS) if SHOTS else None
    if folder is not None:
        folder.mkdir(exist_ok=True)
    page.screenshot(path=folder and folder / f"{name}.png", full_page=True)


def settled(page):
    """Wait until the page's script has ended: a click on what it is about to replace is lost."""
    for _ in range(3):  # it begins late on a busy machine, and one run may ask for another
        time.sleep(0.4)
        page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()


def pick(page, label, text):
    """Choose an option of a box by its text, and open the box again if the page was drawn anew meanwhile."""
    from playwright.sync_api import TimeoutError

    box = page.get_by_role("combobox", name=label).first
    option = page.get_by_role("option", name=text).first
    for _ in range(12):
        box.click()
        box.fill(text)
        try:
            option.click(timeout=5_000)
        except TimeoutError:
            page.keyboard.press("Escape")
        else:
            break
    else:
        pytest.fail(f"the box {label} does not offer {text}")
    settled(page)


def chosen(page, label):
    """Return what a box shows."""
    return page.get_by_role("combobox", name=label).first.input_value()


def go(page, name):
    """Open another page by the menu."""
    from app.navigation import LAB

    if name.lower() in LAB:
        page.get_by_role("button", name="Lab").click()
        page.get_by_role("menuitem", name=name, exact=True).click()
    else:
        page.get_by_role("link", name=name, exact=True).first.click()
    page.get_by_role("heading", name=name, exact=True).first.wait_for()
    settled(page)
