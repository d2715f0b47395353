"""The page Interactions: three clicks on an uploaded table, and the figures of the command line."""

import json
import shlex
import time
from pathlib import Path

import pytest

pytest.importorskip("streamlit")

from app.charts import interactions as charts
from app.views import interactions as view
from recsys import cli
from recsys.fm.penalties import Penalty, penalties
from recsys.fm.problem import table_problem
from recsys.fm.study import study
from recsys.fm.study_settings import MODELS, StudySettings
from recsys.utils import progress
from tests.app.browsing import MARKS, settled, shot
from tests.app.page_runs import box, open_page, press, settle
from tests.fm.test_study import table

BARE = """
from dataclasses import replace
from app import state
from app.uploads import UploadedTable
from recsys import Interactions
from recsys.data.columns import Columns
users, items = zip(*((f"u{k % 9}", f"i{(k * k) % 11}") for k in range(60)))
data = Interactions.from_ids(users, items, name="![bare](x)")
state.use_table(UploadedTable(replace(data, columns=Columns("user", "item"))), "bare")
"""


@pytest.fixture(autouse=True)
def folder_of_its_own(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def opened(before="", **address):
    given = {f"interactions.{name}": value for name, value in address.items()}
    return open_page("interactions", given, before=before)


def upload(at, name, content):
    at.file_uploader[0].set_value((name, content, "text/csv"))
    return settle(at.run())


def commands_figures(at, capfd):
    """Run what the page says is the same on the command line, and return its JSON."""
    words = shlex.split(at.code[0].value)
    assert words[:2] == ["recsys", "interactions"]
    assert cli.call([*words[1:], "--json", "found.json", "--quiet"]) == 0, capfd.readouterr().err
    return json.loads(Path("found.json").read_text())


def assert_shows(at, found):
    """Compare all that the page prints with what the command wrote."""
    order = 2
    frame = next(one.value for one in at.dataframe if "interaction" in one.value)
    some = [one for one in found["interactions"] if one["order"] == order]
    assert frame["interaction"].tolist() == [" × ".join(one["names"]) for one in some]
    for name in ("weight", "rows", *(("low", "high") if found["settings"]["refits"] else ())):
        assert frame[name].tolist() == [one[name] for one in some]
    assert at.metric[0].value == f"{found['value']:.4g}"
    assert at.metric[1].value == f"{found['alone']:.4g}"
    assert at.metric[2].value == f"{found['used_features']:,} of {found['features']:,}"
    assert at.metric[3].value == f"{found['used_pairs']:,} of {found['pairs']:,}"
    singles = next(one.value for one in at.dataframe if "weight by itself" in one.value)
    assert singles["feature"].tolist() == [one["name"] for one in found["singles"]]
    assert singles["weight by itself"].tolist() == [one["weight"] for one in found["singles"]]
    assert singles["in a product"].sum() == sum(one["used"] for one in found["singles"])
    told = f"{singles['in a product'].sum()} feature"
    assert any(text.value.startswith(told) for text in at.text)
    for note in found["notes"]:
        assert f"Note: {note}." in [text.value for text in at.text]


@pytest.mark.thorough
def test_a_table_takes_three_clicks_and_has_the_commands_figures(capfd):
    table(200).to_csv("things.csv", index=False)
    at = upload(opened(epochs="8"), "things.csv", Path("things.csv").read_bytes())
    assert box(at, "Target: the column to predict").value == "sold"  # the last one is guessed
    box(at, "Target: the column to predict").set_value("price").run()
    at = press(settle(at), "Fit")
    found = commands_figures(at, capfd)
    assert found["wanted"] == "price" and found["metric"] == "RMSE" and found["chosen"]
    assert_shows(at, found)
    sentences = [text.value for text in at.text]
    problem = table_problem(table(200), "price", name="things.csv")
    assert set(study(problem, StudySettings(model="sparse-fm", epochs=8)).sentences()) <= set(sentences)
    # other settings are other figures: the old ones go, and Fit is asked for
    box(at, "Model").set_value("hofm").run()
    at = settle(at)
    assert not at.metric and any("Press Fit" in one.value for one in at.caption)


@pytest.mark.slow
def test_a_dataset_has_the_commands_figures(capfd):
    at = press(opened(model="fm", epochs="5", strength="0.001", refits="2"), "Fit")
    found = commands_figures(at, capfd)
    assert found["name"] == "sample" and not found["chosen"] and found["settings"]["refits"] == 2
    assert len(found["path"]) == 6
    assert_shows(at, found)


@pytest.mark.slow
def test_interactions_of_three_are_filtered_by_order():
    at = press(opened(model="hofm", epochs="5", strength="0.0001"), "Fit")
    frame = next(one.value for one in at.dataframe if "interaction" in one.value)
    assert all(text.count(" × ") == 1 for text in frame["interaction"])
    box(at, "Products of", "button_group").set_value(3).run()
    frame = next(one.value for one in settle(at).dataframe if "interaction" in one.value)
    assert len(frame) == 20 and all(text.count(" × ") == 2 for text in frame["interaction"])


@pytest.mark.thorough
def test_a_reload_finds_table_settings_and_results():
    table(100).to_csv("things.csv", index=False)
    at = upload(opened(epochs="5", model="fm"), "things.csv", Path("things.csv").read_bytes())
    at = press(at, "Fit")
    before = [one.value for one in at.metric]
    here = at.session_state["session"]
    kept = {name: value for name, value in here.address().items() if name.startswith("interactions.")}
    again = opened(**{name.removeprefix("interactions."): value for name, value in kept.items()})
    assert [one.value for one in again.metric] == before and len(before) == 4


def test_a_table_is_forgotten_and_one_that_is_gone_is_said_to_be():
    at = upload(opened(), "mine.csv", b"x,y\na,1\nb,0\n")
    assert "File: mine.csv" in [one.value for one in at.text]
    at = press(at, "Forget it")
    assert not at.file_uploader[0].value and not at.warning
    assert "File: mine.csv" not in [one.value for one in at.text]
    at = opened(table="0123456789abcdef01234567")
    assert [one.value for one in at.warning] == ["The uploaded file is no longer here: upload it again."]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"x,y\n", "there is a header only"),
        (b"x,y\n1\n", "line 2"),
        (b"x,y,x\n1,2,3\n", "2 columns are called 'x'"),
        (b"x,y\n" + b"a,yes\nb,yes\n" * 20, "'yes' in every row"),
        (b"x,y\n" + b"".join(b"own %d,%d\n" % (k, k % 2) for k in range(40)), "no column beside 'y'"),
        (b"x,y\n" + b"a,1\nb,0\n" * 2, "at least 5 are needed"),
    ],
)
def test_tables_that_cannot_be_used_are_told_in_one_sentence(content, message):
    at = upload(opened(), "mine.csv", content)
    if not at.error:
        at = press(at, "Fit")
    assert len(at.error) == 1 and message in at.error[0].value and not at.metric
    assert "mine.csv" in at.error[0].value and "upload.csv" not in at.error[0].value


def test_a_class_is_chosen_of_several():
    table(150).to_csv("things.csv", index=False)
    at = upload(opened(epochs="5", model="fm"), "things.csv", Path("things.csv").read_bytes())
    box(at, "Target: the column to predict").set_value("colour").run()
    at = settle(at)
    assert sorted(box(at, "Class to tell from the rest").options) == ["blue", "green", "red"]
    box(at, "Class to tell from the rest").set_value("green").run()
    at = press(settle(at), "Fit")
    assert any("for colour=green" in text.value for text in at.text)


@pytest.mark.thorough
def test_marks_of_missing_numbers_make_no_classes_of_them(capfd):
    frame = table(150)[["colour", "shape", "price"]].astype(str)
    frame.loc[[3, 50], "price"] = "NA"
    frame["stars"] = [str(k % 5) for k in range(150)]
    frame.to_csv("things.csv", index=False)
    at = upload(
        opened(epochs="5", model="fm", target="price"), "things.csv", Path("things.csv").read_bytes()
    )
    assert "Class to tell from the rest" not in [one.label for one in at.selectbox]
    at = press(at, "Fit")
    found = commands_figures(at, capfd)
    assert found["metric"] == "RMSE" and "2 rows without 'price' left out" in found["notes"]
    assert_shows(at, found)
    box(at, "Target: the column to predict").set_value("stars").run()
    box(settle(at), "The target holds").set_value("classes").run()
    assert sorted(box(settle(at), "Class to tell from the rest").options) == list("01234")


def test_a_dataset_without_features_combines_users_and_items():
    at = opened(BARE, epochs="5", model="fm", strength="0.001")
    assert any("has no features" in one.value for one in at.info)
    at = press(at, "Fit")
    frame = next(one.value for one in at.dataframe if "weight by itself" in one.value)
    assert set(frame["column"]) == {"user", "item"}
    words = shlex.split(at.code[0].value)
    told = ["--interactions", "![bare](x)", "--user-col", "user", "--item-col", "item"]
    assert words[2:8] == told and "--ids" in words


def test_penalties_are_those_that_go_with_the_model(monkeypatch):
    class Other(Penalty):
        name = "other"

    every = [known.name for known in penalties()]
    assert set(view.PENALTY_LABELS) == set(every)
    assert set(view.penalties_of("fm", None)) == set(every)
    assert set(view.penalties_of("sparse-fm", 2)) == set(every) - {"l2"}
    assert set(view.penalties_of("sparse-fm", 3)) == set(every) - {"l2", "omega"}
    assert (
        set(view.penalties_of("hofm", 3))
        == set(view.penalties_of("all-subsets", None))
        == set(every) - {"omega"}
    )
    monkeypatch.setattr(view, "penalties", lambda: [Other])
    monkeypatch.setattr(view, "_goes", lambda settings: True)
    assert view.penalties_of("fm", None) == [*view.PENALTY_LABELS, "other"]


@pytest.mark.thorough
def test_a_threshold_is_told_to_its_last_digit():
    rated = BARE.replace('name="![bare](x)")', 'rating=[3 + k / 7 for k in range(60)], name="r.csv")')
    at = opened(rated, epochs="5", model="fm", strength="0.001")
    at.session_state["session"].set("least", 3.1234567)
    at = press(settle(at.run()), "Fit")
    words = shlex.split(at.code[0].value)
    assert float(words[words.index("--min-rating") + 1]) == 3.1234567


def test_an_uploaded_dataset_with_features_has_no_command():
    """The command would need files that the page knows no names of."""
    before = BARE.replace('name="![bare](x)")', 'name="mine.csv").with_features(users=FRAME)')
    frame = "import pandas as pd\nFRAME = pd.DataFrame({'land': list('abcabcabc')}, index=[f'u{k}' for k in range(9)])"
    at = press(opened(frame + before, epochs="5", model="fm", strength="0.001"), "Fit")
    singles = next(one.value for one in at.dataframe if "weight by itself" in one.value)
    assert sorted(singles["feature"]) == ["land=a", "land=b", "land=c"] and not at.code
    assert any("No product of features" in one.value for one in at.info)  # of one column there is none
    assert any("No two features occur together" in one.value for one in at.info)


@pytest.mark.thorough
def test_codes_are_chosen_and_told_to_the_command(capfd):
    table(200).assign(code=[k % 9 for k in range(200)]).to_csv("things.csv", index=False)
    at = opened(epochs="5", model="fm", strength="0.001", target="sold")
    at = upload(at, "things.csv", Path("things.csv").read_bytes())
    codes = next(one for one in at.multiselect if one.label == "Columns whose numbers are codes")
    codes.set_value(["code"]).run()
    at = press(settle(at), "Fit")
    found = commands_figures(at, capfd)
    assert "code=7" in [one["name"] for one in found["singles"]]
    assert_shows(at, found)


@pytest.mark.slow
def test_a_fit_is_cancelled_at_once_and_can_be_begun_again(monkeypatch):
    def endless(problem, settings):
        while True:
            progress.report("epoch", 1, 10)
            time.sleep(0.02)

    monkeypatch.setattr(view, "study", endless)
    at = opened(epochs="7")
    next(one for one in at.button if one.label == "Fit").click()
    at.run()
    assert len(at.get("progress")) == 1
    began = time.monotonic()
    next(one for one in at.button if one.label == "Cancel").click()
    at.run()
    at.run()
    assert time.monotonic() - began < 10 and any("Cancelled" in one.value for one in at.info)
    assert not at.get("progress")
    monkeypatch.undo()
    assert len(press(at, "Fit").metric) == 4


@pytest.mark.thorough
@pytest.mark.parametrize("model", MODELS)
def test_charts_draw_what_was_found(model):
    found = study(table_problem(table(120), "price"), StudySettings(model=model, epochs=5, refits=2))
    assert found.of_order(2)
    for order in {one.order for one in found.interactions}:
        bars = charts.weight_bars(found, order).to_dict()
        data = next(iter(bars["datasets"].values()))
        assert [one["weight"] for one in data] == [one.weight for one in found.of_order(order)]
        assert "units of price" in json.dumps(bars) and bars["title"]
    for grid in (found.grid, found.field_grid):
        data = next(iter(charts.heat_map(grid, "title", found).to_dict()["datasets"].values()))
        filled = [weight for line in grid.weights for weight in line if weight is not None]
        assert [one["weight"] for one in data] == filled
    for chart in (charts.path_figure(found), charts.path_left(found)):
        data = next(iter(chart.to_dict()["datasets"].values()))
        assert [(one["strength"], one["pairs"], one["value"]) for one in data] == [
            (step.strength, step.pairs, step.value) for step in found.path
        ]
        assert [one["strength"] for one in data if one["taken"]] == [found.settings.strength]
    for chart in (charts.curve_figure(found), charts.curve_objective(found)):
        data = next(iter(chart.to_dict()["datasets"].values()))
        assert [(one["epoch"], one["objective"], one["value"]) for one in data] == [
            (one.epoch, one.objective, one.value) for one in found.curve
        ]


def browsed(test):
    for mark in MARKS:
        test = mark(test)
    return test


@browsed
def test_in_a_browser_an_uploaded_table_takes_three_clicks(tab, address):
    content = table(300).drop(columns="sold").to_csv(index=False).encode()
    tab.goto(f"{address}/interactions")
    tab.get_by_role("heading", name="Interactions", exact=True).wait_for()
    settled(tab)
    tab.locator("input[type=file]").first.set_input_files(
        {"name": "things.csv", "mimeType": "text/csv", "buffer": content}
    )
    tab.get_by_text("300 rows and 7 columns").wait_for()
    settled(tab)
    tab.get_by_role("button", name="Fit", exact=True).click()
    tab.get_by_role("heading", name="What was selected").wait_for()
    settled(tab)
    figure = tab.get_by_test_id("stMetricValue").first.inner_text()
    shot(tab, "interactions-1400")
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Download CSV").click()
    assert download.value.suggested_filename == "interactions-things.csv-sparse-fm.csv"
    tab.reload()
    tab.get_by_role("heading", name="What was selected").wait_for()
    settled(tab)
    assert tab.get_by_test_id("stMetricValue").first.inner_text() == figure
    tab.set_viewport_size({"width": 400, "height": 850})
    settled(tab)
    wide = "() => [...document.querySelectorAll('[data-testid=stMain]')].some(m => m.scrollWidth > m.clientWidth)"
    assert not tab.evaluate(wide)
    shot(tab, "interactions-400")
