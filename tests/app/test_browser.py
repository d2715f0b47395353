"""The real app in headless Chromium: sessions that lose nothing, and pages that anybody can use."""

import re
import time
from importlib.resources import files

import numpy as np
import pytest

from app.navigation import PAGES
from recsys import make_ranker
from recsys.datasets import load_dataset
from recsys.explain import item_rule
from recsys.explain import text as wording
from tests.app.browsing import MARKS, RATINGS, chosen, go, pick, settled, shot

pytestmark = MARKS

WHY = "Because you liked"


def opened(tab, address):
    tab.goto(address if "?" in address else f"{address}/?data=sample")
    tab.get_by_text(WHY).first.wait_for()
    settled(tab)


def titles(tab):
    return tab.locator(".rs-head .rs-title").all_inner_texts()


def press(tab, name, place=0):
    tab.get_by_role("button", name=name, exact=True).nth(place).click()
    settled(tab)


def test_twelve_steps_across_the_pages_with_a_reload_lose_nothing(tab, address):
    opened(tab, address)
    pick(tab, "Model", "What comes next")  # 1
    pick(tab, "User", "u0124")  # 2
    tab.get_by_text("what fits in general").click()  # 3
    settled(tab)
    disliked = titles(tab)[1]
    press(tab, "Dislike", 1)  # 4
    liked = titles(tab)[2]
    press(tab, "Like", 2)  # 5
    listed = titles(tab)
    assert disliked not in listed and liked not in listed
    press(tab, "Explain", 3)  # 6
    tab.get_by_role("heading", name="Explain").wait_for()
    tab.get_by_text("Each bar is what an item adds").first.wait_for()
    settled(tab)
    shot(tab, "explain-1400")

    def everything():
        boxes = [chosen(tab, label) for label in ("Dataset", "Model", "User", "As of")]
        general = tab.get_by_role("radio", name="what fits in general").is_checked()
        return [*boxes, general, tab.get_by_text(f"Liked here besides: {liked}.").count()]

    wanted = ["sample (invented films)", "What comes next", "u0124", "today", True, 1]
    assert everything() == wanted and chosen(tab, "Item") == listed[3]
    go(tab, "Data")  # 7
    tab.get_by_text("Long tails").first.wait_for()
    go(tab, "Kernels")  # 8
    tab.reload()  # 9: another session
    tab.get_by_role("heading", name="Kernels").first.wait_for()
    settled(tab)
    go(tab, "Recommend")  # 10
    tab.get_by_text(WHY).first.wait_for()
    settled(tab)
    press(tab, "Explain", 3)
    tab.get_by_text("Each bar is what an item adds").first.wait_for()
    settled(tab)
    assert everything() == wanted and chosen(tab, "Item") == listed[3]
    go(tab, "Recommend")  # 11
    tab.get_by_text(WHY).first.wait_for()
    settled(tab)
    assert everything() == wanted and titles(tab) == listed
    tab.go_back()  # 12
    tab.get_by_role("heading", name="Explain").wait_for()
    settled(tab)
    assert everything() == wanted
    tab.go_back()  # a page is one step, whatever was chosen on it
    tab.get_by_role("heading", name="Recommend").first.wait_for()


def test_a_model_chosen_before_the_dataset_stays(tab, address):
    opened(tab, address)
    pick(tab, "Model", "ease")
    go(tab, "Compare")
    go(tab, "Recommend")
    tab.get_by_text(WHY).first.wait_for()
    assert chosen(tab, "Model") == "ease"
    assert "model=ease" in tab.url and tab.title() == "Recommend · recsys"


def test_a_built_profile_gets_recommendations_and_stays(tab, address):
    opened(tab, address)
    tab.get_by_text("a profile I build").click()
    tab.get_by_text("This profile is empty").wait_for()
    settled(tab)
    for _ in range(3):
        pick(tab, "Titles you like", "harbour")
    tab.keyboard.press("Escape")
    tab.get_by_text(WHY).first.wait_for()
    settled(tab)
    shot(tab, "recommend-built-1400")
    listed = titles(tab)
    tab.get_by_role("heading", name="Recommend").click()  # the open list of titles takes one click
    settled(tab)
    tab.get_by_role("button", name="Save or open").click()
    tab.get_by_role("textbox", name="Name").fill("Sunday")
    tab.get_by_role("button", name="Save", exact=True).click()
    settled(tab)
    tab.keyboard.press("Escape")
    press(tab, "Explain")
    tab.get_by_text("Each bar is what an item adds").first.wait_for()
    tab.reload()
    tab.get_by_text("Each bar is what an item adds").first.wait_for()
    settled(tab)
    go(tab, "Recommend")
    tab.get_by_text(WHY).first.wait_for()
    settled(tab)
    assert titles(tab) == listed and len(set(re.findall(r"likes=(\w+)", tab.url))) == 3
    tab.get_by_role("button", name="Save or open").click()
    assert chosen(tab, "Saved on this dataset") == "Sunday", "saved profiles are the browser's"


def test_two_sessions_at_once_do_not_see_each_others_choices(browser, address):
    one, two = (browser.new_context(viewport={"width": 1400, "height": 1000}) for _ in range(2))
    first, second = one.new_page(), two.new_page()
    for page in (first, second):
        page.set_default_timeout(180_000)
        opened(page, address)
    pick(first, "Model", "ease")
    pick(second, "User", "u0007")
    press(first, "Dislike")
    press(second, "Like")
    assert (chosen(first, "Model"), chosen(first, "User")) == ("ease", "u0001")
    assert (chosen(second, "Model"), chosen(second, "User")) == ("Balanced", "u0007")
    assert "dislikes=" in first.url and "more=" not in first.url
    assert "more=" in second.url and "dislikes=" not in second.url
    for context in (one, two):
        context.close()


def test_a_fit_without_end_is_cancelled_and_the_page_goes_on(tab, address):
    opened(tab, address)
    box = tab.get_by_role("combobox", name="Model")
    box.click()
    box.fill("als:iterations=1000000")  # it has no end of its own before
    tab.keyboard.press("Enter")
    button = tab.get_by_role("button", name="Cancel").first
    button.wait_for()
    tab.get_by_text(re.compile(r"iteration \d+ of")).first.wait_for()
    tab.get_by_role("heading", name="Popular items, not the model's list").wait_for()
    tab.locator(".rs-lines li").nth(9).wait_for()
    assert tab.locator(".rs-lines li").count() == 10
    shot(tab, "waiting-1400")
    go(tab, "Data")  # other pages stay usable, and the fit goes on
    tab.get_by_text("Long tails").first.wait_for()
    go(tab, "Recommend")
    tab.locator(".rs-lines li").first.wait_for()
    time.sleep(3)
    button.click()
    tab.get_by_text("cancelled. Choose something else").wait_for()
    pick(tab, "Model", "ease")
    tab.get_by_text(WHY).first.wait_for()


def test_rules_and_reasons_say_what_is_counted(tab, address):
    """What other users like, and the taste rule, in numbers that a loop over the data gives."""
    data = load_dataset("sample")
    R, user = data.matrix, 6
    model = make_ranker("ease").fit(R, show_progress=False)
    ids = model.recommend(user, R[user], N=10).ids
    rules = [item_rule(R, R[user].indices, int(item), exclude=user) for item in ids]
    place = next(k for k, rule in enumerate(rules) if rule is not None)
    rule = rules[place]
    has = R.toarray() > 0
    others = np.delete(has, user, axis=0)
    both = others[:, list(rule.items)].all(axis=1)
    counts = (both.sum(), others[both, ids[place]].sum(), (~both).sum(), others[~both, ids[place]].sum())
    assert (rule.support, rule.hits, rule.others, rule.others_hits) == counts
    opened(tab, f"{address}/?model=ease&user=u0007")
    assert titles(tab) == [str(data.titles[k]) for k in ids]
    press(tab, "Explain", place)
    tab.get_by_text(wording.rule_sentence(data.titles, rule), exact=True).wait_for()
    assert tab.get_by_text("The model does not use this rule.").count() == 1


def test_ratings_stand_beside_the_reasons_and_low_ones_are_none(tab, address):
    tab.goto(f"{address}/data")
    tab.locator("input[type=file]").first.set_input_files(
        {"name": "rated.csv", "mimeType": "text/csv", "buffer": RATINGS.encode()}
    )
    tab.get_by_role("button", name="Use this table").click()
    settled(tab)
    go(tab, "Recommend")
    tab.locator(".rs-why").first.wait_for()
    settled(tab)
    pick(tab, "Model", "ease")
    tab.get_by_text("Because you rated").first.wait_for()  # every rating counts, until it is chosen
    assert chosen(tab, "Counts as liked: rated at least").startswith("1 of 5")
    pick(tab, "Counts as liked: rated at least", "4 of 5")
    tab.get_by_text(WHY).first.wait_for()
    settled(tab)
    reasons = [t for t in tab.locator(".rs-why").all_inner_texts() if t.startswith("Because you liked")]
    given = {mark for text in reasons for mark in re.findall(r"\[(\d) of 5\]", text)}
    assert given and given <= {"4", "5"}


def test_a_phone_shows_the_first_card_on_its_first_screen(browser, address):
    page = browser.new_page(viewport={"width": 400, "height": 850})
    page.set_default_timeout(180_000)
    opened(page, address)
    place = page.locator(".rs-title").first.bounding_box()
    assert (
        place is not None and place["y"] + place["height"] < 850 and place["x"] + place["width"] <= 400
    )
    shot(page, "recommend-400")
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation_on_any_page(browser, address, scheme):
    pytest.importorskip("axe_playwright_python")
    axe = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
    page = browser.new_page(viewport={"width": 1400, "height": 1000}, color_scheme=scheme)
    page.set_default_timeout(180_000)
    fetched = []
    page.on("request", lambda request: fetched.append(request.url))
    found = []
    for name in PAGES:
        page.goto(f"{address}/{name}")
        page.get_by_role("heading", level=2).or_(page.get_by_role("heading", level=1)).first.wait_for()
        settled(page)
        page.locator("[data-testid=stProgress]").first.wait_for(state="detached")
        settled(page)
        shot(page, f"{name}-{scheme}-1400")
        page.evaluate(axe)
        result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        for one in result["violations"]:
            if one["impact"] in ("serious", "critical"):
                found.append((name, one["id"], one["nodes"][0]["html"][:120]))
    assert not found
    assert not [
        url
        for url in fetched
        if not url.startswith((address, address.replace("http", "ws"), "data:", "blob:"))
    ]
    page.close()


@pytest.mark.parametrize("width", [1400, 400])
def test_every_page_fits_its_width(browser, address, width):
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.set_default_timeout(180_000)
    for name in PAGES:
        page.goto(f"{address}/{name}")
        page.get_by_role("heading").first.wait_for()
        settled(page)
        page.locator("[data-testid=stProgress]").first.wait_for(state="detached")
        settled(page)
        shot(page, f"{name}-{width}")
        overflow = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert overflow <= 1, f"{name} is {overflow} px too wide"
        assert page.get_by_test_id("stException").count() == 0
    page.close()
