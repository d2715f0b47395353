"""The page Compare: what it says is in the report, and what it gives away can be run again."""

import csv
import io
import json
import re
import shlex
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("streamlit")

from recsys import EASE, InputError, Popularity
from recsys.data import PROTOCOLS
from recsys.datasets import load_dataset
from recsys.evaluation import evaluate
from tests.app.browsing import MARKS, pick, settled, shot
from tests.app.page_runs import box, captions, open_page, press, settle, texts

TWO = ["popularity", "ease"]


@pytest.fixture
def no_runs(monkeypatch):
    """Nothing that another test has run is kept."""
    from app import state
    from app.jobs import Jobs
    from app.store import Store
    from app.views import compare as view

    kept, jobs = Store(10**9), Jobs()
    monkeypatch.setattr(view, "runs", lambda: kept)
    monkeypatch.setattr(state, "jobs", lambda: jobs)
    return kept


def runs_of(kept):
    return [run for run, _ in kept._kept.values()]


def only_run(kept):
    (run,) = runs_of(kept)
    return run


@pytest.mark.thorough
def test_it_runs_in_the_background_and_says_what_the_report_says(no_runs):
    at = open_page("compare", evaluate__models=TWO)
    assert at.info and box(at, "Metrics", "multiselect").value == ["auc", "map@10", "ndcg@10"]
    press(at, "Run")
    report = only_run(no_runs).report
    table = at.dataframe[0].value
    assert table["model"].tolist() == TWO and report.folds == 2
    for result in report.results:
        row = table[table["model"] == result.model].iloc[0]
        for name, figure in result.metrics.items():
            low, high = (ends[result.model, name] for ends in report.intervals())
            assert row[name] == figure.mean and low < figure.mean < high
            assert row[f"{name}: 95% interval"] == f"{low:.4f} to {high:.4f}"
        assert row["fit s"] == result.fit_seconds and row["score s"] == result.score_seconds
    shown = texts(at)
    assert [t for t in shown if "95% interval [" in t] == report.verdicts()
    assert report.decision() == next(t for t in shown if t.startswith("Use "))
    assert f"sample: {report.about()}" in shown and len(report.verdicts()) == 3
    assert not at.error and not at.info


def test_seconds_of_compiling_are_beside_those_of_fitting(no_runs):
    from app.parts.runs import Run, Settings, Source
    from app.views.compare import table

    report = evaluate(load_dataset("sample"), {"pop": Popularity()}, folds=2, metrics=["auc"])
    run = Run(Settings(Source(), "d", ("pop",), ("auc",), "half-profile", 2, 0), report, "now")
    report.results[0].compile_seconds = 0.0
    assert not [c for c in table(run).columns if "compiling" in c] and report.decision() == ""
    report.results[0].compile_seconds = 2.5
    assert table(run)["compiling s, besides"].tolist() == [2.5]


def test_a_model_has_one_colour_and_the_best_mean_is_bold(no_runs):
    from app.charts import evaluate as charts
    from app.views.compare import ends, styled, table

    press(open_page("compare", evaluate__models=TWO), "Run")
    run = only_run(no_runs)
    html = styled(table(run), run.report).to_html()
    own = charts.colours(TWO)
    assert len(set(own.values())) == 2 and all(f"color: {colour}" in html for colour in own.values())
    bold = re.search(r"([^{}]*) \{\s*font-weight: bold", html)[1]
    cells = {tuple(map(int, found)) for found in re.findall(r"row(\d+)_col(\d+)", bold)}
    columns = list(table(run).columns)
    better = {name: max(r.metrics[name].mean for r in run.report.results) for name in run.report.better}
    assert cells == {
        (k, columns.index(name))
        for k, r in enumerate(run.report.results)
        for name, most in better.items()
        if r.metrics[name].mean == most
    }
    drawn = charts.forest(ends(run, "auc"), "auc", "auc").to_dict()
    scale = drawn["layer"][0]["encoding"]["color"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True)) == own


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 0.0, 0.25, -0.25, 0.5, -1.0, 0.031, -0.4]), max_size=40),
    st.sampled_from([1.0, -1.0]),
)
def test_bars_hold_every_user_once_on_the_right_side(values, sign):
    from app.charts.evaluate import binned

    frame = binned(np.array(values), "a", "b", sign)
    counts = frame.groupby("who")["users"].sum().to_dict()
    above, below = sum(v > 0 for v in values), sum(v < 0 for v in values)
    a, b = (above, below) if sign > 0 else (below, above)
    assert (counts.get("a", 0), counts.get("b", 0), counts.get("equal", 0)) == (
        a,
        b,
        len(values) - a - b,
    )
    for row in frame.to_dict("records"):
        inside = [v for v in values if v and row["from"] - 1e-9 <= v <= row["to"] + 1e-9]
        assert row["who"] == "equal" or len(inside) >= row["users"]


def test_intervals_groups_and_folds_are_those_of_the_report(no_runs):
    from app.views.compare import ends

    at = open_page("compare", evaluate__models=TWO)
    press(at, "Run")
    run = only_run(no_runs)
    low, high = run.report.intervals()
    for metric in run.report.definitions:
        for row, result in zip(ends(run, metric).to_dict("records"), run.report.results, strict=True):
            key = (result.model, metric)
            assert (row["low"], row["high"], row["mean"]) == (
                low[key],
                high[key],
                result.metrics[metric].mean,
            )
    groups = run.report.by("profile length")
    assert groups.query("model == @TWO[0] and metric == 'auc'")["users"].sum() == 400


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["leave-one-out", "next-5", "rolling"])
def test_protocols_in_time_tell_their_conventions(protocol, no_runs):
    at = open_page(
        "compare", evaluate__models=["popularity"], evaluate__protocol=protocol, evaluate__folds=3
    )
    assert {"leave-one-out", "next-5", "rolling", "temporal"} <= set(box(at, "Protocol").options)
    assert any(PROTOCOLS.get(protocol).description in c for c in captions(at))
    press(at, "Run")
    report = only_run(no_runs).report
    assert (report.protocol, report.folds) == (protocol, 3 if protocol == "rolling" else 1)
    assert report.notes and set(report.notes) <= set(captions(at))
    assert not set(report.notes) & set(texts(at))  # once is enough


def test_a_protocol_that_is_typed(no_runs):
    at = open_page(
        "compare",
        evaluate__models=["popularity"],
        evaluate__protocol="next-3",
        evaluate__metrics=["hit@10"],
    )
    assert box(at, "Protocol").value == "next-3"
    press(at, "Run")
    report = only_run(no_runs).report
    assert report.protocol == "next-3" and report.folds == 1
    at = open_page("compare", evaluate__protocol="next-x")
    assert (
        "did you mean 'next-5'" in at.error[0].value and next(b for b in at.button if b.label == "Run").disabled
    )


WRONG = {
    "did you mean 'ease'": {"evaluate__more": "eaze"},
    "'x' is not key=value": {"evaluate__more": "ease:x"},
    "choose at least one model": {"evaluate__models": []},
    "choose at least one metric": {"evaluate__metrics": []},
    "model ease is chosen twice": {"evaluate__models": ["ease"], "evaluate__more": "ease"},
}


@pytest.mark.thorough
@pytest.mark.parametrize("told", WRONG)
def test_what_cannot_be_run_is_told_before_it_is(told):
    at = open_page("compare", **WRONG[told])
    assert told in at.warning[0].value and "\n" not in at.warning[0].value
    assert next(b for b in at.button if b.label == "Run").disabled


def test_a_protocol_that_needs_times_is_refused_without_them():
    import dataclasses

    from app import state
    from app.catalogues import catalogue_of
    from app.views import compare as view

    timeless = catalogue_of(("dataset", "t"), dataclasses.replace(load_dataset("sample"), time=None))
    found = pytest.MonkeyPatch()
    found.setattr(state, "choose_data", lambda: timeless)
    try:
        at = open_page("compare", evaluate__protocol="temporal")
    finally:
        found.undo()
    assert "protocol temporal needs times" in at.warning[0].value and view.KIND


def test_every_model_and_metric_is_offered_and_explained():
    from recsys.evaluation.metrics import METRICS

    at = open_page("compare", evaluate__metrics=["gini@10", "auc"])
    assert {name.split("@")[0] for name in box(at, "Metrics", "multiselect").options} == set(
        METRICS.names()
    )
    shown = captions(at)
    assert f"auc: {METRICS.get('auc').definition}." in shown
    assert f"gini@10: {METRICS.get('gini').definition}; less is better." in shown
    assert any(t.startswith("ease: EASE: the ridge regression") for t in texts(at))


# ---- repeated


def by_command(words, tmp_path):
    from typer.testing import CliRunner

    from recsys.cli.commands import app

    assert words[0] == "recsys"
    path = tmp_path / "out.json"
    done = CliRunner().invoke(app, [*words[1:], "--quiet", "--json", str(path)])
    assert done.exit_code == 0, done.output
    return json.loads(path.read_text())


def same_figures(report, told):
    low, high = report.intervals()
    for result, other in zip(report.results, told["results"], strict=True):
        assert result.model == other["model"]
        for name, figure in result.metrics.items():
            theirs = other["metrics"][name]
            assert (figure.mean, figure.std, figure.users) == (
                theirs["mean"],
                theirs["std"],
                theirs["users"],
            )
            assert (low[result.model, name], high[result.model, name]) == (theirs["low"], theirs["high"])
    assert [c["p_holm"] for c in report.comparisons] == [c["p_holm"] for c in told["comparisons"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "chosen",
    [
        {"evaluate__models": TWO, "evaluate__more": "cf-komd:kernel=mc,degree=3", "evaluate__seed": 3},
        {"evaluate__models": ["popularity"], "evaluate__protocol": "holdout", "evaluate__folds": 5},
        {"evaluate__models": ["popularity"], "evaluate__protocol": "rolling", "evaluate__folds": 1},
    ],
)
def test_the_command_prints_the_same_figures(chosen, no_runs, tmp_path):
    at = open_page("compare", **chosen)
    press(at, "Run")
    run = only_run(no_runs)
    command = at.code[0].value.split("\n")[0]
    assert command == run.settings.command()
    same_figures(run.report, by_command(shlex.split(command), tmp_path))


def test_the_command_of_an_upload_says_how_the_file_was_read(tmp_path, monkeypatch, capfd):
    from app.parts.runs import Source
    from recsys import cli
    from recsys.data.reading import read

    monkeypatch.chdir(tmp_path)
    form = {"header": False, "delimiter": "|", "encoding": "cp1250", "decimal": ",", "day_first": True}
    path = tmp_path / "my list.csv"
    path.write_bytes("käse|1,5|01/02/2020|u1|3\nmilch|2,5|03/02/2020|u2|4\n".encode("cp1250"))
    columns = {"user": "4", "item": "1", "rating": "none", "time": "3", "weight": "5"}
    data = read(path, interface="page", **columns, **form)
    said = tuple(form.items())
    source = Source("", path.name, "4", "1", "", "3", weight=data.columns.weight, form=said)
    words = source.options()
    assert {"--no-header", "--delimiter", "--encoding", "--decimal", "--day-first"} <= set(words)
    assert cli.call(["fit", *words, "--model", "popularity", "--out", "m"]) == 0
    assert f"note: my list.csv: {data.notes[0]}" in capfd.readouterr().err
    cleaned = Source("", path.name, "4", "1", "", "3", left_out=1, weight="5", form=said).options()
    assert "--header" in cleaned and "--encoding" not in cleaned


def test_the_command_of_an_upload_prints_the_same_figures(no_runs, tmp_path, monkeypatch):
    from app import state
    from app.uploads import UploadedTable, as_written
    from app.views.data import cleaned
    from recsys.data import read_interactions

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [
        f"k {u};{a};{rng.integers(1, 6)}" for u in range(30) for a in rng.choice(20, 9, replace=False)
    ]
    path = tmp_path / "meine liste.csv"
    path.write_text("\n".join(["Kunde;Artikel;Sterne", *rows, ";3;4", rows[0]]) + "\n")
    data = as_written(read_interactions(path))
    counts = data.counts
    assert counts.left_out == {"user": 1} and counts.repeated == 1
    at = open_page("compare", evaluate__models=TWO, evaluate__folds=3)
    here = at.session_state["session"]
    here.set("data", state.keep_table(UploadedTable(data, counts=counts), "t"))
    settle(at.run())
    press(at, "Run")
    run = only_run(no_runs)
    assert (run.settings.source.least, run.settings.source.left_out) == (1.0, 1)
    assert "# on the cleaned table" in at.code[0].value
    path.write_text(cleaned(data))
    same_figures(run.report, by_command(shlex.split(run.settings.command()), tmp_path))


@pytest.mark.thorough
def test_the_files_hold_what_is_needed_to_repeat_a_run(no_runs):
    from app.parts.runs import csv_of, json_of
    from recsys.doctor import versions

    at = open_page("compare", evaluate__models=TWO)
    press(at, "Run")
    run = only_run(no_runs)
    named = [("mine, <b>", run)]
    (told,) = json.loads(json_of(named))["runs"]
    assert (
        told["settings"]["seed"] == 0
        and told["settings"]["models"] == TWO
        and told["name"] == "mine, <b>"
    )
    assert told["settings"]["source"]["dataset"] == "sample" and told["settings"]["folds"] == 2
    assert told["command"] == run.settings.command() and told["versions"] == versions()
    same_figures(run.report, told["report"])
    rows = list(csv.DictReader(io.StringIO(csv_of(named))))
    assert len(rows) == 6
    for row in rows:
        figure = run.report.result(row["model"]).metrics[row["metric"]]
        low, high = (ends[row["model"], row["metric"]] for ends in run.intervals)
        found = [float(row[k]) for k in ("mean", "std", "low", "high")]
        assert found == pytest.approx([figure.mean, figure.std, low, high], rel=1e-8)
        assert (row["dataset"], row["protocol"], row["folds"], row["seed"]) == (
            "sample",
            "half-profile",
            "2",
            "0",
        )
    assert {b.label for b in at.get("download_button")} == {"Download JSON", "Download CSV"}


# ---- kept


@pytest.mark.thorough
def test_a_reload_finds_the_run_its_name_and_what_was_chosen(no_runs):
    at = open_page("compare", evaluate__models=TWO, evaluate__seed=5)
    press(at, "Run")
    run = only_run(no_runs)
    box(at, "Name of this run", "text_input").set_value("first try").run()
    address = at.session_state["session"].address()
    again = open_page("compare", address)
    assert again.dataframe[0].value.equals(at.dataframe[0].value)
    assert box(again, "Name of this run", "text_input").value == "first try"
    assert (
        box(again, "Seed", "number_input").value == 5
        and box(again, "Models", "multiselect").value == TWO
    )
    press(again, "Run")
    assert only_run(no_runs) is run, "what is kept is not run again"


@pytest.mark.slow
def test_several_runs_are_compared_and_what_they_differ_in_is_said(no_runs):
    at = open_page("compare", evaluate__models=["popularity"])
    press(at, "Run")
    box(at, "Seed", "number_input").set_value(7).run()
    press(at, "Run")
    box(at, "Protocol").set_value("holdout").run()
    press(at, "Run")
    assert len(runs_of(no_runs)) == 3 and len(box(at, "Run").options) == 3
    table = at.dataframe[1].value
    assert table["seed"].tolist() == [7, 7, 0] and table["protocol"].tolist() == [
        "holdout",
        "half-profile",
        "half-profile",
    ]
    means = [run.report.results[0].metrics["auc"].mean for run in runs_of(no_runs)]
    assert sorted(table["auc"]) == sorted(means)
    assert any(c.startswith("These runs differ in: protocol, folds, seed.") for c in captions(at))
    assert at.text and f"seed {7}" in [t for t in texts(at) if t.startswith("sample: ")][0]


def test_the_size_of_a_run_is_that_of_its_arrays():
    from app.parts.runs import Run, Settings, Source

    models, sizes, held = {"pop": Popularity(), "ease": EASE()}, [], []
    for metrics in (["auc"], ["auc", "map@10", "ndcg@10"]):
        report = evaluate(load_dataset("sample"), models, folds=2, metrics=metrics)
        settings = Settings(Source(), "d", tuple(models), tuple(metrics), "half-profile", 2, 0)
        sizes.append(Run(settings, report, "now").size)
        held.append(report.values.to_numpy().nbytes)
    assert sizes[1] - sizes[0] == held[1] - held[0] > 0 and sizes[0] > held[0]


def test_runs_that_are_gone_are_said_to_be(no_runs):
    at = open_page("compare", {"evaluate.runs": ["abc", "def"], "evaluate.running": ["xyz"]})
    assert "2 earlier runs are no longer kept: press Run to have them again." in captions(at)
    assert "no longer known to the server" in at.warning[0].value
    again = open_page("compare", {"evaluate.runs": ["abc"]})
    assert "1 earlier run is no longer kept: press Run to have them again." in captions(again)


@pytest.fixture
def slow(monkeypatch, no_runs):
    """An evaluation that goes on until it is let go, and hears only then."""
    from app.views import compare as view

    go = threading.Event()

    def work_of(catalogue, settings):
        def work(progress):
            progress("popularity, fold 1", 1, 4)
            go.wait(30)
            progress("popularity, fold 2", 2, 4)
            raise InputError("nobody cancelled it")

        return work

    monkeypatch.setattr(view, "work_of", work_of)
    yield go
    go.set()


def clicked(at, label):
    next(b for b in at.button if b.label == label).click().run()


def test_a_cancel_is_heard_at_once_and_told(slow):
    at = open_page("compare", evaluate__models=TWO)
    clicked(at, "Run")
    for _ in range(100):
        at.run()
        if "popularity, fold 1" in at.get("progress")[0].proto.text:
            break
        time.sleep(0.1)
    assert "popularity, fold 1" in at.get("progress")[0].proto.text
    clicked(at, "Cancel")
    assert "Cancelling…" in at.get("progress")[0].proto.text  # while the evaluation still goes on
    slow.set()
    time.sleep(0.2)
    settle(at)
    assert [i.value for i in at.info][0] == "The evaluation was cancelled." and not at.error


def test_an_evaluation_is_found_again_after_a_reload(slow):
    from streamlit.testing.v1 import AppTest

    from app.session import Session
    from tests.app.page_runs import HARNESS, ROOT

    def begin(address):
        at = AppTest.from_string(HARNESS.format(root=str(ROOT), page="compare"), default_timeout=60)
        at.session_state["session"] = Session(address, "another" if address else "first", "browser")
        return at.run()

    at = begin({})
    clicked(at, "Run")
    assert at.get("progress")
    address = at.session_state["session"].address()
    again = begin({k: v if isinstance(v, list) else [v] for k, v in address.items()})
    assert "Evaluating on sample" in again.get("progress")[0].proto.text
    slow.set()
    settle(again)
    again.run()
    assert [e.value for e in again.error] == ["nobody cancelled it"] or not again.error


# ---- in a browser


class TestBrowser:
    pytestmark = MARKS

    def test_run_reload_and_cancel(self, tab, address):
        tab.goto(f"{address}/evaluate")
        tab.get_by_role("button", name="Run", exact=True).click()
        tab.get_by_text("Use ease: it is better than popularity").wait_for(timeout=180_000)
        settled(tab)
        tab.get_by_text("with p-values").click()
        tab.get_by_text("95% interval").nth(2).wait_for(state="attached")  # after the click
        command = tab.get_by_text("recsys evaluate --dataset sample").first.inner_text()
        shot(tab, "evaluate-run-1400")
        tab.reload()
        tab.get_by_text("Use ease: it is better").wait_for()
        settled(tab)
        assert tab.get_by_text("recsys evaluate --dataset sample").first.inner_text() == command
        tab.get_by_text("Settings: another model").click()
        pick(tab, "Protocol", "holdout")
        more = tab.get_by_role("textbox", name="Another model")
        more.fill("als:iterations=1000000")  # it has no end of its own before
        more.press("Enter")
        settled(tab)
        tab.get_by_role("button", name="Run", exact=True).click()
        main = tab.get_by_test_id("stMain")
        main.get_by_role("button", name="Cancel").wait_for()
        tab.reload()
        main.get_by_role("button", name="Cancel").wait_for()
        main.get_by_role("button", name="Cancel").click()
        tab.get_by_text("The evaluation was cancelled.").wait_for(timeout=60_000)
