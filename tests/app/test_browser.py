"""The real app in headless Chromium."""

import time

import pytest

from tests.app.browsing import MARKS, settled, shot

pytestmark = MARKS

RATINGS = "user_id,item_id,rating\n" + "".join(
    f"u{u},film {(u * 3 + k * k) % 17},{1 + (u + k) % 5}\n" for u in range(30) for k in range(8)
)
NASTY = "item_id,title,genres\n" + "".join(
    f'film {k},"{t}",Drama|War\n'
    for k, t in enumerate(
        (
            "<script>document.title='x'</script>",
            "<img src=x onerror=alert(1)>",
            "![](http://127.0.0.1:9/x)",
            "$\\href{http://127.0.0.1:9}{x}$",
            "plain",
        )
    )
)


def test_a_built_profile_gets_recommendations_and_an_explanation(tab, address):
    tab.goto(address)
    tab.get_by_text("Because you liked").first.wait_for()
    tab.get_by_text("a profile I build").click()
    tab.get_by_text("This profile is empty").wait_for()
    box = tab.get_by_role("combobox", name="Titles you like")
    for _ in range(3):
        box.click()
        box.fill("Harbour")
        tab.get_by_role("option").first.click()
    tab.keyboard.press("Escape")
    tab.get_by_text("Because you liked").first.wait_for()
    assert tab.get_by_text("Harbour").count() >= 3
    settled(tab)
    shot(tab, "recommend-built-1400")
    tab.get_by_text("Why, and what is similar").first.click()
    tab.get_by_role("button", name="Explain this").first.click()
    tab.get_by_role("heading", name="Explain").wait_for()
    tab.get_by_text("Each bar is what an item adds").first.wait_for()
    shot(tab, "explain-1400")


def test_choices_stay_from_page_to_page(tab, address):
    def pick(label, text):
        box = tab.get_by_role("combobox", name=label).first
        box.click()
        box.fill(text)
        tab.get_by_role("option", name=text).first.click()

    def shown():
        tab.get_by_text("Because you liked").first.wait_for()
        boxes = (tab.get_by_role("combobox", name=label).first for label in ("Model", "User"))
        chosen = [box.input_value() for box in boxes]
        return [*chosen, tab.get_by_role("radio", name="what fits in general").is_checked()]

    tab.goto(address)
    tab.get_by_text("Because you liked").first.wait_for()
    pick("Model", "slist")
    pick("User", "u0124")
    tab.get_by_text("what fits in general").click()
    tab.get_by_role("radio", name="what fits in general", checked=True).wait_for(state="attached")
    tab.get_by_text("latest like").first.wait_for(state="detached")
    settled(tab)
    tab.get_by_text("Why, and what is similar").first.click()
    tab.get_by_role("button", name="Explain this").first.click()
    tab.get_by_text("Each bar is what an item adds").first.wait_for()
    assert shown() == ["slist", "u0124", True]
    for name in ("Recommend", "Explain"):
        tab.get_by_role("link", name=name).first.click()
        tab.get_by_role("heading", name=name).wait_for()
        assert shown() == ["slist", "u0124", True]


def test_an_evaluation_runs_and_reports(tab, address):
    tab.goto(f"{address}/evaluate")
    tab.get_by_role("button", name="Run").click()
    tab.get_by_text("How users spread").wait_for(timeout=180_000)
    tab.get_by_role("button", name="Download JSON").wait_for()
    shot(tab, "evaluate-1400")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"MZ\x90\x00" + bytes(range(256)) * 50, "bad.csv"),
        (b"user_id,item_id\nu1,i1,9\n", "line 2"),
    ],
)
def test_bad_uploads_are_told_and_the_app_goes_on(tab, address, content, message):
    tab.goto(f"{address}/data")
    tab.get_by_text("Upload a table of interactions").click()
    tab.locator("input[type=file]").first.set_input_files(
        {"name": "bad.csv", "mimeType": "text/csv", "buffer": content}
    )
    alert = tab.get_by_test_id("stAlert").first
    alert.wait_for()
    assert message in alert.inner_text() and "Traceback" not in tab.content()
    assert tab.get_by_text("Long tails").count() == 1


def test_a_good_upload_with_hostile_titles_is_used_and_harmless(tab, address):
    calls = []
    tab.on("request", lambda request: calls.append(request.url))
    tab.goto(f"{address}/data")
    tab.get_by_text("Upload a table of interactions").click()
    files = tab.locator("input[type=file]")
    files.nth(0).set_input_files(
        {"name": "mine.csv", "mimeType": "text/csv", "buffer": RATINGS.encode()}
    )
    tab.get_by_role("button", name="Use this table").wait_for()
    files.nth(1).set_input_files({"name": "items.csv", "mimeType": "text/csv", "buffer": NASTY.encode()})
    time.sleep(2)
    tab.get_by_role("button", name="Use this table").click()
    tab.get_by_text("30 users").wait_for()
    shot(tab, "data-upload-1400")
    tab.get_by_role("link", name="Recommend").click()
    tab.get_by_text("Why, and what is similar").first.wait_for()
    shot(tab, "hostile-titles-1400")
    assert tab.title() == "recsys"
    assert not [url for url in calls if ":9/" in url or url.endswith("/x")]
    assert tab.locator("img[src='x']").count() == 0


@pytest.mark.parametrize("width", [1400, 400])
def test_every_page_fits_its_width(browser, address, width):
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.set_default_timeout(90_000)
    waits = {
        "": "Because you liked",
        "explain": "Each bar is what an item adds",
        "evaluate": "Run",
        "data": "Density of the item kernel",
        "kernels": "Compute",
    }
    for name, text in waits.items():
        page.goto(f"{address}/{name}")
        page.get_by_text(text).first.wait_for()
        time.sleep(1.5)
        shot(page, f"{name or 'recommend'}-{width}")
        overflow = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert overflow <= 1, f"{name} is {overflow} px too wide"
        assert page.get_by_test_id("stException").count() == 0
    page.close()
