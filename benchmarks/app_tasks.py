"""Five tasks in the app, each from a fresh visit in Chromium: clicks, screenshots, and what axe finds.

    python -m benchmarks.app_tasks FOLDER [TASK ...] [--width 1440 ...]

Every task is done at each width, and its last page is pictured in light and dark: FOLDER/TASK-WIDTH-THEME.png. A click
is a press of the mouse; typing a few letters and giving a file count beside. Serious violations that axe finds on the
last page are counted, where axe-playwright-python is installed. The exit code is 1 if a task cannot be done.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from docs.generate.screenshots import serving
from recsys._jit import cache_dir
from tests.app.browsing import CHROMIUM, settled

WIDTHS = {1440: 900, 1024: 768, 390: 844}
THEMES = ("light", "dark")
TALLEST = 4000  # pixels of a picture
PATIENCE = 180_000  # milliseconds
# As a German spreadsheet writes it: semicolons, decimal commas, days first, cp1252.
GERMAN = "Kunde;Artikel;Bewertung;Datum\r\n" + "".join(
    f"Müller {user};Käse Nr. {(user * 3 + k * k) % 17};{1 + (user + k) % 5},5;"
    f"{1 + (user * k) % 28:02d}.{1 + k % 12:02d}.2017 13:{user % 60:02d}\r\n"
    for user in range(30)
    for k in range(8)
)


class Visit:
    """A page in a browser of its own, and what a person has done on it.

    Parameters
    ----------
    page : playwright.sync_api.Page
    narrow : bool
        Whether the menu is beside the page and closed, as on a phone.

    Attributes
    ----------
    clicks, typed : int
        Presses of the mouse, and words or files given.
    """

    def __init__(self, page: Any, narrow: bool) -> None:
        self.page, self.narrow = page, narrow
        self.clicks = self.typed = 0

    def click(self, target: Any) -> None:
        """Click on something and wait until the page is drawn again."""
        target.click()
        self.clicks += 1
        settled(self.page)

    def press(self, name: str) -> None:
        """Press the first button of a name."""
        self.click(self.page.get_by_role("button", name=name, exact=True).first)

    def go(self, name: str, group: str = "") -> None:
        """Open a page by the menu."""
        if self.narrow:
            self.click(self.page.get_by_test_id("stExpandSidebarButton"))
            beside = self.page.get_by_test_id("stSidebar")
            self.click(beside.get_by_role("link", name=name, exact=True))
        elif group:
            self.click(self.page.get_by_role("button", name=group))
            self.click(self.page.get_by_role("menuitem", name=name, exact=True))
        else:
            self.click(self.page.get_by_role("link", name=name, exact=True).first)
        self.page.get_by_role("heading", name=name, exact=True).first.wait_for()
        settled(self.page)

    def sample(self) -> None:
        """Begin with the sample."""
        self.press("Try the sample")
        self.page.locator(".rs-title").first.wait_for()
        settled(self.page)
        # The arrival of the rule draws the list again, and the picture shall have it.
        self.page.get_by_text("being read from the profile").wait_for(state="detached")
        settled(self.page)


def own_file(visit: Visit) -> str:
    """Get a list from a German spreadsheet of one's own."""
    page = visit.page
    visit.press("Use my file")
    page.locator("input[type=file]").first.set_input_files(
        {"name": "kunden.csv", "mimeType": "text/csv", "buffer": GERMAN.encode("cp1252")}
    )
    visit.typed += 1
    page.get_by_role("button", name="Use this table").wait_for()
    settled(page)
    visit.press("Use this table")
    visit.press("Recommend from it")
    page.locator(".rs-why").first.wait_for()
    settled(page)
    return page.locator(".rs-title").first.inner_text()


def why_this(visit: Visit) -> str:
    """Ask why an item is on the list."""
    visit.sample()
    visit.press("Explain")
    visit.page.get_by_role("heading", name="What would move it").wait_for()
    settled(visit.page)
    return _line(visit.page, "Because you")


def why_not(visit: Visit) -> str:
    """Ask why another item is not."""
    visit.sample()
    box = visit.page.get_by_role("combobox", name="Why not …?")
    visit.click(box)
    box.fill("winter")
    visit.typed += 1
    visit.click(visit.page.get_by_role("option").last)
    visit.page.get_by_role("heading", name="What would move it").wait_for()
    settled(visit.page)
    return _line(visit.page, "Rank ")


def which_model(visit: Visit) -> str:
    """Find which model to use, and how sure that is."""
    visit.sample()
    visit.go("Compare")
    visit.press("Run")
    visit.page.get_by_text("95% bootstrap intervals").first.wait_for()
    settled(visit.page)
    return _line(visit.page, "Use ")


def rule(visit: Visit) -> str:
    """Find a rule of the users, to show to somebody else."""
    visit.sample()
    visit.go("Rules", "Lab")
    visit.press("Search for rules")
    visit.page.get_by_role("heading", name="The surest").wait_for()
    settled(visit.page)
    return _line(visit.page, "u0")  # a user of the sample


TASKS: dict[str, Callable[[Visit], str]] = {
    "own-file": own_file, "why-this": why_this, "why-not": why_not, "which-model": which_model, "rule": rule,
}  # fmt: skip


def _line(page: Any, begins: str) -> str:
    """Return the first text of a page that begins so."""
    texts: list[str] = page.get_by_test_id("stText").all_inner_texts()
    return next((line for text in texts for line in text.split("\n") if line.startswith(begins)), "")


def violations(page: Any) -> list[str]:
    """Return the serious violations that axe finds, with an element; none where it is not installed."""
    try:
        axe = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
    except ModuleNotFoundError:
        return []
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    return [f"{one['id']}: {one['nodes'][0]['html'][:100]}" for one in serious]


def done(browser: Any, address: str, name: str, width: int, folder: Path) -> bool:
    """Do a task at a width, print a line and take its pictures; return whether it could be done."""
    page = browser.new_page(viewport={"width": width, "height": WIDTHS[width]}, color_scheme="light")
    page.set_default_timeout(PATIENCE)
    visit = Visit(page, width < 768)
    said, failed = "", False
    try:
        page.goto(address)
        page.get_by_role("button", name="Try the sample").wait_for()
        settled(page)
        said = TASKS[name](visit)
    except Exception as error:  # noqa: BLE001 - a picture of where it ended says more than a traceback
        said, failed = f"{type(error).__name__}: {str(error).splitlines()[0]}", True
    wrong = []
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        tall = page.get_by_test_id("stMain").evaluate("main => main.scrollHeight")
        page.set_viewport_size({"width": width, "height": min(max(WIDTHS[width], tall), TALLEST)})
        page.mouse.move(0, 0)
        page.wait_for_timeout(1000)
        page.screenshot(path=folder / f"{name}-{width}-{theme}.png")
        wrong += violations(page)
    page.close()
    print(f"{name:12} {width:5} {visit.clicks:6} {visit.typed:5} {len(wrong):4}  {said}", flush=True)
    for one in sorted(set(wrong)):
        print(f"{'':36}axe: {one}")
    return not failed and said != ""


def main() -> int:
    """Do the tasks that are asked for."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("tasks", nargs="*", choices=[*TASKS, []], default=[])
    parser.add_argument("--width", type=int, action="append", choices=list(WIDTHS))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if (kept := cache_dir()) is not None:  # what compiling takes is another matter
        os.environ["NUMBA_CACHE_DIR"] = str(kept.parent)
    with serving(RECSYS_DATA="") as (address, _), sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        print(f"{'task':12} {'width':>5} {'clicks':>6} {'typed':>5} {'axe':>4}  what the page says")
        every = [
            done(browser, address, name, width, given.folder)
            for name in given.tasks or TASKS
            for width in given.width or WIDTHS
        ]
    return 0 if all(every) else 1


if __name__ == "__main__":
    sys.exit(main())
