"""The real app in headless Chromium."""

import re
from importlib.resources import files

import pytest

from app.navigation import PAGES
from tests.app.browsing import MARKS, chosen, go, pick, settled, shot

pytestmark = MARKS
WHY = "Because you liked"
ORDERS = "Kunde;Artikelnummer;Artikelbezeichnung;Menge;Datum\n" + "".join(
    f"K{u};A{(u * 3 + k * k) % 17};Artikel Nr. {(u * 3 + k * k) % 17};{1 + k % 3},00;{1 + k}.02.2024\n"
    for u in range(40)
    for k in range(8)
)


def opened(tab, address, path=""):
    tab.goto(f"{address}/{path}")
    tab.get_by_text(WHY).first.wait_for()
    settled(tab)


def titles(tab):
    texts = tab.locator("[data-testid=stMarkdown] strong").all_inner_texts()
    return [text.split(". ", 1)[1] for text in texts if re.match(r"\d+\. ", text)]


def press(tab, name, place=0):
    tab.get_by_role("button", name=name, exact=True).nth(place).click()
    settled(tab)


def upload(tab, name, content):
    file = {"name": name, "mimeType": "text/csv", "buffer": content.encode()}
    tab.locator("input[type=file]").first.set_input_files(file)


def test_twelve_steps_across_the_pages_with_a_reload_lose_nothing(tab, address):
    opened(tab, address)
    pick(tab, "Model", "Balanced")  # 1
    pick(tab, "User", "u0124")  # 2
    tab.get_by_text(WHY).first.wait_for()
    disliked = titles(tab)[1]
    press(tab, "Dislike", 1)  # 3
    liked = titles(tab)[2]
    press(tab, "Like", 2)  # 4
    listed = titles(tab)
    assert disliked not in listed and liked not in listed and len(listed) == 10

    def everything():
        tab.get_by_text(WHY).first.wait_for()
        settled(tab)
        boxes = [chosen(tab, label) for label in ("Dataset", "Model", "User")]
        return [*boxes, titles(tab)]

    wanted = ["sample (invented films)", "Balanced", "u0124", listed]
    assert everything() == wanted
    press(tab, "Explain", 3)  # 5
    tab.get_by_role("dialog").get_by_text("How the score adds up").first.wait_for()
    shot(tab, "explain-1400")
    tab.keyboard.press("Escape")  # 6
    assert everything() == wanted
    go(tab, "Data")  # 7
    go(tab, "Kernels")  # 8
    go(tab, "Recommend")  # 9
    assert everything() == wanted
    tab.reload()  # 10
    assert everything() == wanted
    copy = tab.context.browser.new_page()  # 11
    copy.set_default_timeout(180_000)
    copy.goto(tab.url)
    copy.get_by_text(WHY).first.wait_for()
    settled(copy)
    assert titles(copy) == listed
    copy.close()
    own = tab.url
    go(tab, "Compare")
    tab.go_back()  # 12
    assert everything() == wanted and tab.url == own


@pytest.mark.parametrize("user", ["u0115", "u0117", "u0124"])
def test_a_click_at_the_first_moment_changes_nothing_else(tab, address, user):
    tab.goto(f"{address}/recommend?user={user}")
    tab.get_by_role("button", name="Like", exact=True).first.click()
    settled(tab)
    tab.get_by_text(WHY).first.wait_for()
    settled(tab)
    assert len(titles(tab)) == 10 and "n=" not in tab.url
    assert chosen(tab, "User") == user and chosen(tab, "Model") == "EASE"


def test_a_missing_dataset_is_named_until_another_is_chosen(tab, address):
    tab.goto(f"{address}/recommend?data=upload-0123456789abcdef01234567&model=Balanced")
    tab.get_by_text("The uploaded table is no longer available.").wait_for()
    tab.wait_for_timeout(3000)
    assert tab.get_by_text("no longer available").count() == 1 and not titles(tab)
    tab.reload()
    tab.get_by_text("The uploaded table is no longer available.").wait_for()
    press(tab, "Use the sample")
    tab.get_by_text(WHY).first.wait_for()
    assert chosen(tab, "Model") == "Balanced" and tab.get_by_text("no longer available").count() == 0


def test_a_shop_file_gives_a_list_of_titles(tab, address):
    tab.goto(f"{address}/data")
    upload(tab, "bestellungen.csv", ORDERS)
    tab.get_by_role("button", name="Use this table").click()
    tab.get_by_text(WHY).first.wait_for()
    settled(tab)
    assert all(title.startswith("Artikel Nr.") for title in titles(tab))
    address_of_file = tab.url
    tab.reload()
    tab.get_by_text(WHY).first.wait_for()
    assert tab.url == address_of_file and "data=upload-" in tab.url


def test_two_visitors_see_their_own_choices(browser, address):
    contexts = [browser.new_context(viewport={"width": 1400, "height": 1000}) for _ in range(2)]
    one, two = (context.new_page() for context in contexts)
    for page in (one, two):
        page.set_default_timeout(180_000)
        opened(page, address)
    pick(one, "Model", "Balanced")
    pick(two, "User", "u0007")
    press(one, "Dislike")
    press(two, "Like")
    assert (chosen(one, "Model"), chosen(one, "User")) == ("Balanced", "u0001")
    assert (chosen(two, "Model"), chosen(two, "User")) == ("EASE", "u0007")
    assert "dislikes" in one.url and "likes-u0007" in two.url and "dislikes" not in two.url
    for context in contexts:
        context.close()


def test_a_long_fit_can_be_cancelled(tab, address):
    opened(tab, address)
    box = tab.get_by_role("combobox", name="Model").first
    box.click()
    box.fill("als:iterations=1000000")
    tab.keyboard.press("Enter")
    tab.get_by_text("the most popular items").wait_for()
    tab.get_by_role("button", name="Cancel").first.click()
    tab.get_by_text("cancelled").first.wait_for()
    pick(tab, "Model", "EASE")
    tab.get_by_text(WHY).first.wait_for()


def visited(page, address, name):
    page.goto(f"{address}/{name}")
    page.get_by_role("heading").first.wait_for()
    settled(page)
    page.locator("[data-testid=stProgress]").first.wait_for(state="detached")
    settled(page)
    assert page.get_by_test_id("stException").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation_on_any_page(browser, address, scheme):
    pytest.importorskip("axe_playwright_python")
    axe = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
    page = browser.new_page(viewport={"width": 1400, "height": 1000}, color_scheme=scheme)
    page.set_default_timeout(180_000)
    fetched, found = [], []
    page.on("request", lambda request: fetched.append(request.url))
    for name in PAGES:
        visited(page, address, name)
        shot(page, f"{name}-{scheme}-1400")
        page.evaluate(axe)
        for one in page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]:
            if one["impact"] in ("serious", "critical"):
                found.append((name, one["id"], one["nodes"][0]["html"][:120]))
    assert not found
    own = (address, address.replace("http", "ws"), "data:", "blob:")
    assert not [url for url in fetched if not url.startswith(own)]
    page.close()


@pytest.mark.parametrize("width", [1400, 400])
def test_every_page_fits_its_width(browser, address, width):
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.set_default_timeout(180_000)
    for name in PAGES:
        visited(page, address, name)
        shot(page, f"{name}-{width}")
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(wide) <= 1, name
    page.close()
