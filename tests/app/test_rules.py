"""The page Rules: those of the library, each number counted again."""

import csv
import io
import re
from functools import cache

import numpy as np
import pytest

pytest.importorskip("streamlit")

from recsys import InputError, load_dataset, make_ranker
from recsys.explain import discover_rules, item_attributes
from tests.app.browsing import MARKS, settled, shot
from tests.app.page_runs import box, open_page, press, settle, texts

DATA = load_dataset("sample")
TOLD = re.compile(
    r"(?P<user>\S+) likes (?P<rule>.+): of (?P<set>\d+) likes? set aside, (?P<hits>\d+) follows? it; of "
    r"(?P<others>\d+) items? not liked, (?P<theirs>\d+) \((?P<share>.+?)\)\.(?P<few> \d+ is a small number\.)?"
)


@cache
def found(level=0.05, dependence="any", most=12):
    return discover_rules(DATA, most=most, level=level, dependence=dependence)


LIKES = "what users like"


def searched(**chosen):
    given = {"discover__users": 12, "discover__of": LIKES} | chosen
    return press(open_page("rules", **given), "Search for rules")


def test_nothing_is_searched_before_it_is_asked_for(monkeypatch):
    from app.views import rules as part

    asked = []
    monkeypatch.setattr(part, "discover_rules", lambda *a, **k: asked.append(1))
    at = open_page("rules")
    assert (
        not asked and not at.dataframe and box(at, "Users, drawn at random", "number_input").value == 100
    )
    assert not any(one.label == "Item" for one in at.selectbox)


@pytest.mark.slow
def test_the_page_shows_the_librarys_rules_and_their_counts():
    ours = found()
    at = searched()
    shown = texts(at)
    assert all(sentence in shown for sentence in ours.sentences())
    frame = at.dataframe[0].value
    assert frame["user"].tolist() == [one.user for one in ours.shown] and len(frame) > 3
    names = item_attributes(DATA).names
    X, liked = np.asarray(item_attributes(DATA).X) > 0, DATA.matrix.toarray() > 0
    ids = [str(user) for user in DATA.user_ids]
    told = [match for line in shown if (match := TOLD.fullmatch(line))]
    assert len(told) == min(5, len(frame))
    for row, one in zip(frame.to_dict("records"), ours.shown, strict=True):
        mine = liked[ids.index(row["user"])]
        covers = np.any([X[:, list(clause)].all(axis=1) for clause in one.found.rule.clauses], axis=0)
        # what was not learned from: of the likes the other half, and all that is not liked
        assert row["others"] == (~mine).sum() and row["others that do"] == (covers & ~mine).sum()
        assert row["set aside"] + one.found.learned == mine.sum()
        assert row["follow it"] <= (covers & mine).sum() and one.found.rule.names == tuple(names)
        assert row["q"] == one.q_value <= 0.05
    for match, row in zip(told, frame.to_dict("records"), strict=False):
        said = [
            match["user"],
            match["rule"],
            *(int(match[k]) for k in ("set", "hits", "others", "theirs")),
        ]
        columns = ("user", "rule", "set aside", "follow it", "others", "others that do")
        assert said == [row[column] for column in columns]
        assert (match["few"] is not None) == (row["set aside"] < 20)


@pytest.mark.slow
def test_another_level_or_control_is_that_of_the_library_without_a_search(monkeypatch):
    at = searched()
    from app.views import rules as part

    monkeypatch.setattr(part, "discover_rules", lambda *a, **k: pytest.fail("searched again"))
    box(at, "Share of false rules, at most").set_value(0.2).run()
    assert settle(at).dataframe[0].value["user"].tolist() == [one.user for one in found(0.2).shown]
    box(at, "The share holds").set_value("positive").run()
    ours = found(0.2, "positive")
    assert settle(at).dataframe[0].value["user"].tolist() == [one.user for one in ours.shown]
    assert all(sentence in texts(at) for sentence in ours.sentences())


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.0, 0.01, 0.3, 1.0])
@pytest.mark.parametrize("dependence", ["any", "positive"])
def test_the_same_tests_under_another_control_are_those_of_a_new_search(level, dependence):
    assert found().at(level, dependence) == found(level, dependence)
    with pytest.raises(InputError, match="level"):
        found().at(2.0)
    with pytest.raises(InputError, match="dependence"):
        found().at(0.1, "none")


@pytest.mark.thorough
def test_rules_of_a_models_lists_are_searched_together_with_those_of_likes():
    model = make_ranker("ease").fit(DATA.matrix, show_progress=False)
    ours = discover_rules(DATA, most=6, ranker=model, top=30)
    given = {"discover__users": 6, "model": "ease", "discover__top": 30}
    at = press(open_page("rules", **given), "Search for rules")  # of the model by default
    assert all(sentence in texts(at) for sentence in ours.sentences())
    frame = at.dataframe[0].value
    assert frame["of"].tolist() == [one.found.source.replace("ranker", "ease") for one in ours.shown]


@pytest.mark.thorough
def test_the_download_is_the_table_of_the_command():
    from recsys.utils.export import csv_text

    columns, lines = found().table()
    rows = list(csv.DictReader(io.StringIO(csv_text(list(columns), lines))))
    assert [row["user_id"] for row in rows] == [one.user for one in found().shown]
    assert any(one.label == "Download the rules" for one in searched().get("download_button"))


@pytest.mark.thorough
def test_a_search_that_was_cancelled_begins_again_with_the_button(monkeypatch):
    from app import state

    at = searched()
    here = at.session_state["session"]
    key = next(key for key in state.jobs()._jobs if key[0] == "discoveries" and key[2] == 12)
    state.jobs().forget(key)
    here.cancelled.add(key)
    at.run()
    assert [one.value for one in at.info] == ["Cancelled. Press the button to begin again."]
    assert not at.dataframe and press(at, "Search for rules").dataframe


def test_items_of_which_nothing_is_known_have_no_rules(monkeypatch):
    from dataclasses import replace

    from app import state
    from app.catalogues import catalogue_of

    bare = catalogue_of(("dataset", "bare"), replace(DATA, item_features=None))
    monkeypatch.setattr(state, "choose_data", lambda: bare)
    at = open_page("rules")
    assert at.info[0].value.startswith("Nothing is known of these items") and not at.button


class TestBrowser:
    pytestmark = MARKS

    def test_rules_are_searched_with_progress_and_shown(self, tab, address):
        tab.goto(f"{address}/explain?discover.users=10&explain.show=Rules of all users")
        tab.get_by_role("heading", name="Rules", exact=True).wait_for()
        tab.get_by_role("button", name="Search for rules").wait_for()
        settled(tab)
        tab.get_by_role("button", name="Search for rules").click()
        tab.get_by_text("All that were found").wait_for(timeout=240_000)
        settled(tab)
        shot(tab, "rules-1400")
