"""The page Interactions: the path from nothing on, its points, and what is selected there."""

import pytest

pytest.importorskip("streamlit")

from app.charts import selection as charts
from recsys.fm.problem import table_problem
from recsys.fm.selection import select
from recsys.fm.study_settings import StudySettings
from tests.app.page_runs import press, settle
from tests.app.test_interactions import folder_of_its_own, opened, upload  # noqa: F401
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


def test_the_page_shows_the_librarys_path_and_the_point_that_is_asked_for():
    ours = found()
    at = followed()
    shown = [one.value for one in at.text]
    assert all(sentence in shown for sentence in ours.sentences())
    point = ours.points[ours.taken]
    values = {one.label: one.value for one in at.metric}
    assert values["Before the refit"] == f"{point.figure:.4g}"
    assert values["After the refit"] == f"{point.refitted:.4g}"
    assert values["Leaving none out"] == f"{ours.full.choose:.4g}"
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
    ] == f"{ours.points[0].figure:.4g}"
    assert any("Nothing is selected" in one.value for one in at.info)


def test_halves_and_starts_are_columns():
    ours = found(pairs=2, starts=2)
    at = followed(halves="2", starts="2")
    frame = next(one.value for one in at.dataframe if "refitted" in one.value)
    chosen = ours.points[ours.taken].chosen
    assert frame["halves"].tolist() == [one.halves for one in chosen]
    assert frame["starts"].tolist() == [one.starts for one in chosen]


def test_penalties_that_select_nothing_have_no_path():
    at = press(opened(model="fm", epochs="5", strength="0.001"), "Fit")
    assert not any(one.label == "Follow the path" for one in at.button)
    assert any("leave no interaction out exactly" in one.value for one in at.caption)


def test_charts_draw_the_path():
    ours = found()
    data = [row for rows in charts.path_figures(ours, 1).to_dict()["datasets"].values() for row in rows]
    before = [row["figure"] for row in data if row.get("model") == charts.BEFORE]
    assert before == [point.figure for point in ours.points]
    assert [row["figure"] for row in data if row.get("model") == ours.full.model] == [
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
