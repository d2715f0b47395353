"""The first card in the app, in processor seconds from the start of the server; and eight sessions for some minutes.

    python -m benchmarks.app_load [first] [sessions] [--minutes 10]

`first` starts a server for each line of app_first_card.csv, opens a list in Chromium and counts the processor seconds
of the server up to the first card: with nothing compiled, and a second time with everything on disk; the median of
three starts. `sessions` has eight visits change users, models and pages at random, and prints what they met and the
server's memory after the first minute and at the end. Their models are fitted before, and a first round is made: what
a page needs for the first time is no leak.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from benchmarks.lab.common import write_csv
from docs.generate.screenshots import serving
from tests.app.browsing import CHROMIUM

SETS = ("sample", "movielens-1m")
STARTS = 3
VISITS = 8
PATIENCE = 300_000  # milliseconds
ADDRESSES = (
    "recommend?data=sample&user=u{user:04d}",
    "recommend?data=sample&user=u{user:04d}&model=cf-komd",
    "recommend?data=sample&mode=profile",
    "explain?data=sample&user=u{user:04d}",
    "map?data=sample&user=u{user:04d}",
    "data?data=sample",
    "kernels?data=sample",
    "compare?data=sample",
)


def processor(process: psutil.Process) -> float:
    """Return the processor seconds of a process and of its children."""
    times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def first_card(browser: Any, data: str, cache: Path) -> tuple[float, float]:
    """Return processor seconds and seconds from the start of a server to its first card."""
    began = time.perf_counter()
    with serving(NUMBA_CACHE_DIR=str(cache)) as (address, app):
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(f"{address}/recommend?data={data}")
        page.locator(".rs-why").first.wait_for()
        took = processor(psutil.Process(app.pid)), time.perf_counter() - began
        page.close()
    return took


def first(browser: Any) -> None:
    """Measure the first card of each set, cold and warm."""
    rows = []
    for data in SETS:
        found: dict[str, list[tuple[float, float]]] = {"nothing compiled": [], "on disk": []}
        for _ in range(STARTS):
            with tempfile.TemporaryDirectory() as folder:
                for state in found:
                    found[state].append(first_card(browser, data, Path(folder)))
        for state, times in found.items():
            used, took = (median(one[k] for one in times) for k in (0, 1))
            rows.append([data, state, STARTS, round(used, 1), round(took, 1)])
            print(*rows[-1], flush=True)
    write_csv("app_first_card", ["data", "compiled", "starts", "processor_seconds", "seconds"], rows)


def sessions(browser: Any, minutes: float) -> int:
    """Let eight visits go about; return how many errors they met."""
    rng, errors, views = random.Random(0), [], 0
    with serving() as (address, app):
        process = psutil.Process(app.pid)
        pages = [browser.new_context().new_page() for _ in range(VISITS)]
        for page in pages:
            page.set_default_timeout(PATIENCE)
            page.on("pageerror", lambda error: errors.append(str(error)))
        for one in ADDRESSES:
            pages[0].goto(f"{address}/{one.format(user=1)}")
            _drawn(pages[0], errors)
        begin = time.perf_counter()
        start = None
        while (now := time.perf_counter() - begin) < 60 * minutes:
            if start is None and now > 60:
                start = process.memory_info().rss
            for page in pages:
                page.goto(f"{address}/{rng.choice(ADDRESSES).format(user=rng.randint(1, 400))}")
            for page in pages:
                _drawn(page, errors)
                views += 1
        end = process.memory_info().rss
    grown = f"{end / start - 1:+.1%}" if start else "not known"
    print(
        f"{VISITS} visits, {minutes:g} minutes, {views} pages, {len(errors)} errors; memory "
        f"{(start or 0) / 1e6:.0f} MB after a minute, {end / 1e6:.0f} MB at the end ({grown})"
    )
    for error in sorted(set(errors)):
        print(f"  {error[:200]}")
    return len(errors)


def _drawn(page: Any, errors: list[str]) -> None:
    """Wait until a page is drawn, and note the errors on it."""
    for _ in range(3):
        page.wait_for_timeout(300)
        page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
    errors += page.get_by_test_id("stException").all_inner_texts()


def main() -> int:
    """Measure what is asked for."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("parts", nargs="*", choices=["first", "sessions", []], default=[])
    parser.add_argument("--minutes", type=float, default=10.0)
    given = parser.parse_args()
    parts, errors = given.parts or ["first", "sessions"], 0
    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        if "first" in parts:
            first(browser)
        if "sessions" in parts:
            errors = sessions(browser, given.minutes)
    return min(errors, 1)


if __name__ == "__main__":
    sys.exit(main())
