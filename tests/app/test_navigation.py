"""The pages there are, what they may import, and which models and metrics they offer."""

import re
from pathlib import Path

import pytest

pytest.importorskip("streamlit")

from streamlit.testing.v1 import AppTest

from app.navigation import CARD, LAB, MAIN, MOVED, PAGES
from app.parts.models import metrics, models, summary
from recsys import EASE
from recsys.evaluation.metrics import METRICS
from tests.app.browsing import MARKS, settled
from tests.app.card_texts import cards
from tests.app.page_runs import ROOT, box, captions, open_page, press, settle

APP = ROOT / "app"


def test_pages_are_found_by_name_and_import_neither_each_other_nor_the_command_line():
    assert {path.stem for path in (APP / "views").glob("*.py")} - {"__init__"} == set(PAGES)
    for path in Path(APP).rglob("*.py"):
        imported = re.findall(r"^ *(?:from|import) ([\w.]+)", path.read_text(), re.M)
        assert not [name for name in imported if name.startswith(("app.views", "recsys.cli"))], path


def test_a_first_visit_is_welcomed_and_the_sample_then_is_an_example():
    at = settle(AppTest.from_file(str(ROOT / "app" / "main.py"), default_timeout=60).run())
    assert [h.value for h in at.header] == ["recsys"] and not cards(at)
    assert [b.label for b in at.button] == ["Try the sample", "Use my file"]
    press(at, "Try the sample")
    assert [h.value for h in at.header] == ["Recommend"] and len(cards(at)) == 10
    assert "Dataset: sample (invented films), an example" in captions(at)
    assert not at.session_state["session"].fresh
    assert at.session_state["session"].address()["data"] == "sample", "a reload is no first visit"


def test_a_file_of_ones_own_is_one_click_away():
    at = settle(AppTest.from_file(str(ROOT / "app" / "main.py"), default_timeout=60).run())
    press(at, "Use my file")
    assert [h.value for h in at.header] == ["Data"]


@pytest.mark.thorough
@pytest.mark.parametrize("page", sorted(set(PAGES) - {"links", "interactions", "kernels"}))
def test_the_name_of_the_dataset_stands_under_every_heading(page):
    from app import state
    from app.uploads import UploadedTable
    from recsys.data import Interactions

    rows = [(f"u{k % 9}", f"i{k * k % 11}") for k in range(60)]
    data = Interactions.from_ids(*zip(*dict.fromkeys(rows), strict=True), name="my *list*")
    at = open_page(page, data=state.keep_table(UploadedTable(data), "named"), model="ease")
    assert at.caption[0].value == r"Dataset: my \*list\* (uploaded)"


class TestBrowser:
    pytestmark = MARKS

    def test_every_address_opens_its_page_and_old_ones_lead_on(self, tab, address):
        shown = {name: name for name in PAGES} | MOVED
        for path, name in shown.items():
            tab.goto(f"{address}/{path}?data=sample&user=u0007")
            tab.get_by_role("heading", name=name.capitalize(), exact=True).first.wait_for()
            settled(tab)
            assert tab.get_by_text("Page not found").count() == 0
            assert f"/{name}?" in tab.url and tab.title() == f"{name.capitalize()} · recsys"
        tab.goto(f"{address}/explain?data=sample&explain.show=Rules of all users")
        tab.get_by_role("heading", name="Rules", exact=True).wait_for()

    def test_the_menu_of_a_phone_closes_when_a_page_is_chosen(self, tab, address):
        tab.set_viewport_size({"width": 390, "height": 844})
        tab.goto(f"{address}/recommend?data=sample&model=popularity")
        tab.locator(".rs-title").first.wait_for()
        tab.get_by_test_id("stExpandSidebarButton").click()
        tab.get_by_test_id("stSidebar").get_by_role("link", name="Data", exact=True).click()
        tab.get_by_role("heading", name="Data", exact=True).wait_for()
        tab.get_by_test_id("stSidebarCollapseButton").wait_for(state="hidden")
        tab.get_by_test_id("stExpandSidebarButton").wait_for()

    def test_the_address_of_the_first_page_leads_on(self, tab, address):
        tab.goto(f"{address}/welcome?data=sample")
        tab.get_by_role("heading", name="Recommend", exact=True).first.wait_for()
        tab.wait_for_url("**/recommend?*")

    @pytest.mark.parametrize("path", ["nothing", "w%C3%A4hlen", "%3Cb%3Ex", "first"])
    def test_an_unknown_address_is_said_in_a_sentence(self, tab, address, path):
        tab.goto(f"{address}/{path}?data=sample")
        tab.get_by_role("heading", name="No such page", exact=True).wait_for()
        settled(tab)
        assert tab.get_by_text("Page not found").count() == 0
        assert tab.get_by_test_id("stException").count() == 0
        tab.get_by_role("button", name="Open Recommend").click()
        tab.get_by_role("heading", name="Recommend", exact=True).first.wait_for()
        tab.wait_for_url("**/recommend?*")

    def test_the_menu_has_four_entries_and_the_lab_its_pages(self, tab, address):
        tab.goto(address)
        tab.get_by_role("button", name="Try the sample").wait_for()
        settled(tab)
        links = tab.get_by_test_id("stTopNavLink")
        assert links.all_inner_texts() == [name.capitalize() for name in MAIN]
        tab.get_by_role("button", name="Lab").click()
        tab.get_by_role("menuitem").first.wait_for()
        listed = tab.get_by_role("menuitem").all_inner_texts()
        assert listed == [name.capitalize() for name in LAB] and CARD.capitalize() not in listed


def test_models_and_metrics_are_offered_as_the_registries_declare_them(monkeypatch):
    assert models()[:2] == ["cf-komd:kernel=mc,degree=2", "auto"] and "ease" in models()
    monkeypatch.setattr(EASE, "offered", ("regularization=3",))
    assert "ease:regularization=3" in models() and "ease" not in models()
    assert {name.split("@")[0] for name in metrics()} == set(METRICS.names())
    assert "ease:regularization=3" in box(open_page("compare"), "Models", "multiselect").options


@pytest.mark.parametrize("spec", models())
def test_every_model_says_what_it_is_in_a_sentence(spec):
    told = summary(spec)
    assert told.endswith(".") and 20 < len(told) < 260 and "`" not in told and "\n" not in told
