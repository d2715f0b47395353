"""The page Interactions: the path from nothing on, its points, and what is selected there."""

import json
import re
import shlex
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

pytest.importorskip("streamlit")

from app.charts import selection as charts
from recsys import cli, load_dataset
from recsys.fm import selection
from recsys.fm.problem import pairs_problem, table_problem
from recsys.fm.selection import select
from recsys.fm.study import StudyRun
from recsys.fm.study_settings import ALPHA, StudySettings
from tests.app.browsing import settled, shot
from tests.app.page_runs import press, settle
from tests.app.test_interactions import browsed, folder_of_its_own, opened, upload  # noqa: F401
from tests.fm.test_study import table

SETTINGS = {"model": "sparse-fm", "epochs": 8}


def found(**more):
    problem = table_problem(table(200), "price", name="things.csv")
    return select(problem, StudySettings(**SETTINGS), **more)


def followed(**more):
    content = table(200).to_csv(index=False).encode()
    given = {"epochs": "8", "strength": "0.001", "target": "price"} | more
    at = press(upload(opened(**given), "things.csv", content), "Fit")
    return press(at, "Follow the path")


@pytest.mark.thorough
def test_the_page_shows_the_librarys_path_and_the_point_that_is_asked_for():
    ours = found()
    at = followed()
    shown = [one.value for one in at.text]
    assert all(sentence in shown for sentence in ours.sentences())
    point = ours.points[ours.taken]
    values = {one.label: one.value for one in at.metric}
    assert values["Before the refit"] == f"{point.value:.4g}"
    assert values["After the refit"] == f"{point.refitted:.4g}"
    assert values["Leaving none out"] == f"{ours.full.choose:.4g}"
    for place, told in ours.marks.items():
        best = ours.points[place]
        words = f"{told}: {best.strength:.2g}, {best.interactions:,} interaction".lower()
        assert any(words in one.value.lower() for one in at.caption)
    frame = next(one.value for one in at.dataframe if "refitted" in one.value)
    assert frame["interaction"].tolist() == [one.text for one in point.chosen]
    assert frame["refitted"].tolist() == [one.refitted for one in point.chosen]
    measured = next(one.value for one in at.dataframe if "model" in one.value)
    assert measured["model"].tolist() == [one.model for one in ours.measured]
    slider = next(one for one in at.select_slider if one.label == "Point of the path")
    slider.set_value(0).run()
    at = settle(at)
    assert {one.label: one.value for one in at.metric}[
        "Before the refit"
    ] == f"{ours.points[0].value:.4g}"
    assert any("Nothing is selected" in one.value for one in at.info)


@pytest.mark.thorough
def test_a_path_that_is_followed_again_begins_at_its_best_point():
    ours = found()
    at = followed()
    next(one for one in at.select_slider if one.label == "Point of the path").set_value(0).run()
    at = press(settle(at), "Follow the path")
    slider = next(one for one in at.select_slider if one.label == "Point of the path")
    assert slider.value == ours.taken != 0


@pytest.mark.thorough
def test_halves_and_starts_are_columns():
    ours = found(pairs=2, starts=2)
    at = followed(halves="2", starts="2")
    frame = next(one.value for one in at.dataframe if "refitted" in one.value)
    chosen = ours.points[ours.taken].chosen
    assert frame["halves"].tolist() == [one.halves for one in chosen]
    assert frame["starts"].tolist() == [one.starts for one in chosen]


@pytest.mark.thorough
def test_the_command_that_is_shown_gives_the_same_path(capfd):
    table(200).to_csv("things.csv", index=False)
    at = followed(**{"halves": "1", "rows.least": "9", "refits": "2"})
    words = shlex.split(at.code[1].value)
    assert words[:2] == ["recsys", "interactions"]
    assert cli.call([*words[1:], "--json", "found.json", "--quiet"]) == 0, capfd.readouterr().err
    said = json.loads(Path("found.json").read_text())
    ours = found(pairs=1)
    assert said["points"] == json.loads(json.dumps(ours.as_dict()))["points"]
    assert said["halves"] == ours.halves in [one.value for one in at.text]


@pytest.mark.thorough
def test_penalties_that_select_nothing_have_no_path():
    at = press(opened(model="fm", epochs="5", strength="0.001"), "Fit")
    assert not any(one.label == "Follow the path" for one in at.button)
    assert any("leave no interaction out exactly" in one.value for one in at.caption)


def test_charts_draw_the_path():
    ours = found()
    data = [row for rows in charts.path_figures(ours, 1).to_dict()["datasets"].values() for row in rows]
    before = [row["value"] for row in data if row.get("model") == charts.BEFORE]
    assert before == [point.value for point in ours.points]
    assert [row["value"] for row in data if row.get("model") == ours.full.model] == [
        ours.full.choose
    ] * 2
    data = [row for rows in charts.path_numbers(ours, 1).to_dict()["datasets"].values() for row in rows]
    assert [row["interactions"] for row in data if "interactions" in row] == [
        point.interactions for point in ours.points
    ]
    place = ours.taken
    rows = [
        row for rows in charts.weight_paths(ours, place).to_dict()["datasets"].values() for row in rows
    ]
    for one in ours.points[place].chosen[: charts.LINES]:
        drawn = [row["weight"] for row in rows if row.get("interaction") == one.text]
        assert drawn[place] == one.weight and len(drawn) == len(ours.points)


def test_weights_that_are_not_listed_are_not_drawn_as_none(monkeypatch):
    monkeypatch.setattr(selection, "LISTED", 2)
    ours = found()
    place = ours.taken
    rows = [
        row for rows in charts.weight_paths(ours, place).to_dict()["datasets"].values() for row in rows
    ]
    cut = {k for k, point in enumerate(ours.points) if point.interactions > 2}
    assert cut and cut != set(range(len(ours.points)))
    for one in ours.points[place].chosen:
        drawn = [row["weight"] for row in rows if row.get("interaction") == one.text]
        for k, point in enumerate(ours.points):
            listed = {other.text: other.weight for other in point.chosen}
            assert drawn[k] == listed.get(one.text, None if k in cut else 0.0)


# ---- in a browser

ROWS = 3000  # of which a few interactions are selected, other ones by each figure
TAKEN = re.compile(
    r"([\d,]+) interactions? of ([\d,]+) (?:is|are) selected: AUC ([\d.]+), refitted ([\d.]+); without "
    r"interactions ([\d.]+), leaving none out ([\d.]+)\."
)


def area(y, scores):
    """The share of pairs of a row of each class that the scores put right, a tie a half."""
    up, down = scores[y > 0][:, None], scores[y <= 0][None, :]
    return ((up > down) + 0.5 * (up == down)).mean()


def refitted_area(problem, parts, products):
    """Fit columns and products of columns by scikit-learn, and measure on the rows that choose."""
    dense = problem.X.toarray()
    Z = np.column_stack([dense, *(dense[:, list(one)].prod(axis=1) for one in products)])
    fitted = LogisticRegression(C=1.0 / (ALPHA * len(parts.fit)), tol=1e-10, max_iter=10_000)
    fitted.fit(Z[parts.fit], problem.y[parts.fit])
    rows = parts.choose
    return area(problem.y[rows], Z[rows] @ fitted.coef_[0])


def sentences(tab):
    return tab.get_by_test_id("stText").all_inner_texts()


def slider(tab, label):
    return tab.get_by_test_id("stSlider").filter(has_text=label).get_by_role("slider")


def waits_for_the_path(tab):
    tab.get_by_text("Point of the path").wait_for()
    settled(tab)


def whole_shot(tab, width):
    """Take the page down to its end: it scrolls within the window, so the window is made long."""
    tab.set_viewport_size({"width": width, "height": 6000 if width < 800 else 4600})
    settled(tab)
    shot(tab, f"selection-{width}")
    tab.set_viewport_size({"width": width, "height": 1000})
    settled(tab)


def no_wider_than_the_window(tab):
    wide = "() => [...document.querySelectorAll('[data-testid=stMain]')].some(m => m.scrollWidth > m.clientWidth)"
    return not tab.evaluate(wide)


@browsed
def test_in_a_browser_a_path_is_followed_changed_and_reloaded(tab, address):
    """On the sample: a path, its figures counted here; halves and another point; a reload in the middle."""
    given = {"model": "sparse-fm", "epochs": "8", "rows": str(ROWS), "strength": "0.001"}
    words = "&".join(f"interactions.{name}={value}" for name, value in given.items())
    tab.goto(f"{address}/interactions?{words}")
    tab.get_by_role("heading", name="Interactions", exact=True).wait_for()
    settled(tab)
    tab.get_by_role("button", name="Fit", exact=True).click()
    tab.get_by_role("heading", name="What is selected, and how sure that is").wait_for()
    settled(tab)
    tab.get_by_role("button", name="Follow the path").click()
    waits_for_the_path(tab)

    problem = pairs_problem(load_dataset("sample"), rows=ROWS)
    settings = StudySettings(model="sparse-fm", epochs=8)
    ours, parts = select(problem, settings), StudyRun(problem, settings.resolved())
    said = sentences(tab)
    assert all(sentence in said for sentence in ours.sentences())
    some, among, _, refitted, without, _ = TAKEN.search(" ".join(said)).groups()
    fitted = problem.X[parts.fit].toarray() != 0
    together = {
        pair
        for pair in combinations(range(fitted.shape[1]), 2)
        if fitted[:, list(pair)].all(axis=1).any()
    }
    chosen = [one.features for one in ours.points[ours.taken].chosen]
    assert chosen and len(set(ours.best.values())) == 3, "or little would be tested"
    assert (int(some), int(among)) == (len(chosen), len(together)) and set(chosen) <= together
    assert float(without) == pytest.approx(refitted_area(problem, parts, []), abs=6e-5)
    assert float(refitted) == pytest.approx(refitted_area(problem, parts, chosen), abs=6e-5)

    # another setting is another path, and the old one goes until it is asked for
    for _ in range(2):
        slider(tab, "Pairs of random halves").press("ArrowRight")
    tab.get_by_text("Point of the path").wait_for(state="detached")
    settled(tab)
    tab.get_by_role("button", name="Follow the path").click()
    # in the middle, where it is not done by then: the work goes on, and the page finds it
    tab.get_by_test_id("stProgress").or_(tab.get_by_text("Point of the path")).first.wait_for()
    tab.reload()
    waits_for_the_path(tab)
    assert slider(tab, "Pairs of random halves").input_value() == "2"
    sure = select(problem, settings, pairs=2)
    told = next(one for one in sentences(tab) if one == sure.halves)
    q, p = int(np.sqrt(0.5 * len(together))), len(together)
    if sure.stable:
        assert f"at most {q * q / (0.5 * p):.3g} are expected" in told
        assert f"with probability {q / p:.3g} or less" in told
    else:
        assert told == f"None of {p:,} interactions is taken by 75% of the 4 halves."

    # another point, which a reload keeps
    slider(tab, "Point of the path").press("Home")
    settled(tab)
    tab.get_by_text("Nothing is selected at this regularization strength.").wait_for()
    shown = tab.get_by_test_id("stMetric").filter(has_text="Before the refit")
    first, last = (shown.filter(has_text=f"{sure.points[k].value:.4g}") for k in (0, -1))
    first.wait_for()
    tab.reload()
    waits_for_the_path(tab)
    first.wait_for()
    slider(tab, "Point of the path").press("End")
    last.wait_for()
    settled(tab)
    for _ in range(10):
        slider(tab, "Point of the path").press("ArrowLeft")
    settled(tab)
    for width in (1400, 400):
        whole_shot(tab, width)
        assert no_wider_than_the_window(tab)
