"""The page Kernels: curves over the degree, and rules that a person can change."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("streamlit")

from recsys.datasets import load_dataset
from recsys.datasets.categorical import encode, load_table
from recsys.explain import measure_rule
from recsys.explain.rules.formula import formula_text, measure_formula, parse_formula
from recsys.kernel_machines import radius_margin_ratio
from recsys.kernels import list_kernels, make_kernel
from recsys.utils.spec import parse_spec
from tests.app.browsing import MARKS, settled, shot
from tests.app.page_runs import box, captions, open_page, press, read, settle, texts

RULES = "Rules on a table"
FOLDER = Path(os.environ.get("RECSYS_DATA", "/nowhere"))


def rules(**chosen):
    return open_page("kernels", kernels__show=RULES, **chosen)


# ---- over the degree


def test_every_kernel_is_offered_with_what_it_counts():
    at = open_page("kernels", kernels__kernels=["mc", "tanimoto"])
    assert box(at, "Kernels", "multiselect").options == list_kernels()
    shown = texts(at)
    assert any(t.startswith("mc: how many conjunctions of “degree” variables hold") for t in shown)
    assert any(
        t.startswith("tanimoto: ") and t.endswith("It has no degree and is drawn as a broken line.")
        for t in shown
    )


@pytest.mark.parametrize("name", list_kernels())
def test_each_kernel_grows_by_its_own_parameters_and_is_spelled_out(name):
    from app.parts.kernel_curves import growing, spelled_out
    from recsys.kernels import make_kernel

    kernel = make_kernel(name, **dict.fromkeys(growing(name), 3))
    for field in ("degree", "d", "c", "arity"):
        assert getattr(kernel, field, 3) == 3
    assert len(spelled_out(name)) > 8 and "`" not in spelled_out(name)


def test_curves_are_those_of_each_kernel_by_itself():
    from app.parts.kernel_curves import curves
    from recsys import make_ranker
    from recsys.evaluation import evaluate
    from recsys.kernels import item_gram, make_kernel, spectral_ratio

    data = load_dataset("sample")
    told = []
    frame = curves(
        data,
        data.matrix,
        ["mc", "tanimoto"],
        2,
        lambda text, done, total: told.append((text, done, total)),
    )
    assert told == [("mc of degree 1", 0, 3), ("mc of degree 2", 1, 3), ("tanimoto", 2, 3)]
    assert frame["degree"].tolist() == [1, 2, 1, 2] and frame["has degree"].tolist() == [
        True,
        True,
        False,
        False,
    ]
    for row in frame.to_dict("records"):
        params = {"degree": row["degree"]} if row["has degree"] else {}
        gram = item_gram(data.matrix, make_kernel(row["kernel"], **params))
        assert row["spectral ratio"] == spectral_ratio(gram, standardized=True)
        model = make_ranker("cf-komd", kernel=row["kernel"], **params)
        report = evaluate(data, {"m": model}, metrics=["auc"], folds=5, only_folds=1)
        assert row["AUC"] == report.results[0].metrics["auc"].mean


def test_a_degree_that_is_refused_ends_the_line_and_is_told():
    from app.parts.kernel_curves import curves
    from app.views.kernels import refusals
    from recsys.data import Interactions

    users = [f"u{k}" for k in range(12) for _ in range(3)]
    items = [f"i{(k + j) % 7}" for k in range(12) for j in range(3)]
    data = Interactions.from_ids(users, items)
    frame = curves(data, data.matrix, ["md"], 20, lambda *told: None)
    assert frame["degree"].tolist() == list(range(1, len(frame) + 1)) and len(frame) < 20
    assert frame["why"].tolist()[:-1] == [""] * (len(frame) - 1)
    (line,) = refusals(frame)
    assert line.startswith(f"md, degree {len(frame)}: ")


@pytest.mark.thorough
def test_the_page_computes_when_asked_and_not_on_the_hidden_part(monkeypatch):
    from app.views import kernels as view

    asked = []
    monkeypatch.setattr(view, "measure_rule", lambda *a, **k: asked.append("rule"))
    monkeypatch.setattr(view, "load_table", lambda *a, **k: asked.append("table"))
    at = open_page("kernels", kernels__top=2)
    assert not asked and not at.get("vega_lite_chart"), "nothing is learned that is not looked at"
    press(at, "Compute")
    assert len(at.get("vega_lite_chart")) == 2 and not asked
    address = at.session_state["session"].address()
    again = open_page("kernels", address)
    assert len(again.get("vega_lite_chart")) == 2, "a reload finds what was computed"


def test_axes_of_degrees_are_whole_numbers_with_titles():
    import pandas as pd

    from app.charts.kernels import degrees

    frame = pd.DataFrame(
        {"kernel": ["mc"] * 2, "degree": [1, 2], "has degree": [True] * 2, "AUC": [0.7, 0.8]}
    )
    drawn = degrees(frame, "AUC", "Accuracy", "AUC, mean over users").to_dict()
    axis = drawn["layer"][0]["encoding"]["x"]
    assert (
        axis["axis"]["format"] == "d" and axis["axis"]["tickMinStep"] == 1 and axis["title"] == "degree"
    )
    assert drawn["layer"][0]["encoding"]["y"]["title"] == "AUC, mean over users"


# ---- rules


@pytest.mark.slow
def test_a_kernel_is_chosen_by_its_ratio(monkeypatch):
    from app.views import kernels as view

    table = load_table("monks-1")
    at = rules(rules__table="monks-1", rules__kernels=True)
    made = [make_kernel(name, **params) for name, params in map(parse_spec, view.SEPARATING)]
    wanted = [radius_margin_ratio(one(table.X, normalize=True), table.y, identity=0.01) for one in made]
    shown = at.dataframe[-1].value
    assert shown["kernel"].tolist() == list(view.SEPARATING)
    assert shown["radius-margin ratio"].tolist() == np.round(wanted, 4).tolist()
    best = view.SEPARATING[int(np.argmin(wanted))]
    assert any(line.startswith(f"{best} has the smallest ratio: ") for line in captions(at))
    assert len(rules(rules__table="monks-1").dataframe) == len(at.dataframe) - 1
    monkeypatch.setattr(view, "MOST_SEPARATED", 100)
    at = rules(rules__table="monks-1", rules__kernels=True)
    assert "Kernels are compared on at most 100 rows: use `recsys kernels`." in captions(at)


@pytest.mark.slow
def test_a_rule_is_learned_measured_and_shown_as_text_table_and_formula():
    at = rules()
    table = load_table("tic-tac-toe")
    found = measure_rule(table.X, table.y, max_clauses=10, max_literals=5, names=table.names)
    values = {m.label: m.value for m in at.metric}
    assert values["accuracy"] == f"{found.accuracy:.3f}" == "1.000" and values["clauses"] == "8"
    assert any(c.startswith(f"{found.guarantee} A rule's weight is the sum") for c in captions(at))
    positive = int(table.y[found.held].sum())
    base = max(positive, len(found.held) - positive) / len(found.held)
    assert values["base rate"] == f"{base:.3f}"
    shown = texts(at)
    assert f"{table.target} if {found.rule}" in shown
    assert (
        f"958 rows with 27 features; class=positive in {table.y.sum()} of them ({table.y.mean():.1%})."
        in shown
    )
    assert box(at, "Formula", "text_input").value == formula_text(found.rule)
    clauses = at.dataframe[0].value
    for row, clause in zip(clauses.to_dict("records"), found.rule.clauses, strict=True):
        holds = table.X[:, list(clause)].all(axis=1)
        assert (
            row["rows covered"] == holds.sum() and row["of the class"] == (holds & (table.y == 1)).sum()
        )
        others = np.any(
            [table.X[:, list(c)].all(axis=1) for c in found.rule.clauses if c != clause], axis=0
        )
        assert row["alone"] == (holds & ~others).sum()


def test_what_no_rule_weighs_more_than_is_said_after_the_seconds_that_are_given(monkeypatch):
    from app.views import kernels as view

    rng, given = np.random.default_rng(0), []
    table = load_table("monks-1")
    noisy = replace(table, y=np.where(rng.random(len(table.y)) < 0.1, 1 - table.y, table.y))

    def measured(*arguments, **options):
        asked.append(options.pop("seconds"))
        # Whether two seconds are enough is the machine's affair; no second is not, on any.
        given.append(measure_rule(*arguments, **options, seconds=0.0))
        return given[-1]

    asked = []
    monkeypatch.setattr(view, "ready_table", lambda name, folder: noisy)
    monkeypatch.setattr(view, "measure_rule", measured)
    at = rules(rules__seconds=2, rules__clauses=9)
    assert asked == [2.0] and not given[0].search.exact
    said = next(c for c in captions(at) if c.startswith(given[0].guarantee))
    assert "The best rule of at most 9 clauses of at most 5 literals weighs at most" in said


@pytest.mark.slow
def test_a_formula_is_measured_as_it_is_typed():
    at = rules()
    table = load_table("tic-tac-toe")
    found = measure_rule(table.X, table.y, max_clauses=10, max_literals=5, names=table.names)
    entry = box(at, "Formula", "text_input")
    text = "middle-middle=x and not top-left=o or bottom-right=b"
    entry.set_value(text).run()
    settle(at)
    X, y = table.X[found.held], table.y[found.held] == 1
    place = {name: k for k, name in enumerate(table.names)}
    covers = (
        X[:, place["middle-middle=x"]] & (1 - X[:, place["top-left=o"]]) | X[:, place["bottom-right=b"]]
    ) > 0
    right = int((covers == y).sum())
    shown = texts(at)
    assert any(f"Told right: {right} ({right / len(y):.3f};" in t for t in shown)
    told = f"Covered: {covers.sum()}, of which class=positive: {(covers & y).sum()}. Missed: {(y & ~covers).sum()} of {y.sum()}."
    assert told in shown
    assert at.dataframe[0].value["clause"].tolist() == [
        "middle-middle=x and not top-left=o",
        "bottom-right=b",
    ]
    box(at, "Formula", "text_input").set_value("middle-middle=q").run()
    settle(at)
    assert any(t.startswith("⚠ no column=value 'middle-middle=q': did you mean") for t in texts(at))
    assert not at.exception


def test_the_class_and_the_columns_are_chosen_from_lists():
    from app import state

    rng = np.random.default_rng(0)
    lines = ["size,colour,odd,kind"]
    for k in range(120):
        size = rng.choice(["big", "small"])
        lines.append(
            f"{size},{rng.choice(['red', 'blue'])},{'?' if k % 5 == 0 else 'a'},{'yes' if size == 'big' else 'no'}"
        )
    at = rules(rules__file=state.keep_file("t.csv", "\n".join(lines).encode()))
    assert box(at, "Table").value == "the upload"
    assert box(at, "Column of the class").options == ["size", "colour", "odd", "kind"]
    assert "24 of 120 rows with a missing value dropped." in texts(at)
    left_out = box(at, "Columns to leave out", "multiselect")
    assert left_out.options == ["size", "colour", "odd (24 missing)"]
    left_out.set_value(["odd"]).run()
    settle(at)
    assert not any("dropped" in t for t in texts(at))
    yes = sum(line.endswith(",yes") for line in lines)
    assert (
        f"120 rows with 4 features; kind={'yes' if yes > 60 else 'no'} in {max(yes, 120 - yes)} of them ({max(yes, 120 - yes) / 120:.1%})."
        in texts(at)
    )
    box(at, "Class to describe", "multiselect").set_value(["no"]).run()
    settle(at)
    assert any(t.startswith("kind=no if size=small") for t in texts(at))


@pytest.mark.slow
def test_an_uploaded_table_is_taken_at_once_and_forgotten():
    at = rules()
    lines = b"size,kind\n" + b"big,yes\nsmall,no\n" * 40
    at.file_uploader[0].set_value(("t.csv", lines, "text/csv"))
    settle(at.run())
    assert box(at, "Table").value == "the upload" and "File: t.csv" in texts(at)
    press(at, "Forget it")
    assert box(at, "Table").value == "tic-tac-toe" and not at.file_uploader[0].value
    at = rules(rules__file="0123456789abcdef01234567")
    assert [w.value for w in at.warning] == ["The uploaded file is no longer here: upload it again."]


WRONG = {
    "one value only": "a,b\n" + "x,y\n" * 20,
    "each needs at least 8": "a,b\n" + "x,y\n" * 20 + "z,n\n" * 3,
    "more than 200 different values: leave it out": "a,b\n"
    + "".join(f"{k},{'yn'[k % 2]}\n" for k in range(300)),
    "has 300 different values": "a,b\n" + "".join(f"{'yn'[k % 2]},{k}\n" for k in range(300)),
    "the file is empty": "\n",
    "60,000 rows; at most 50,000 are looked at here": "a,b\n" + "x,y\nz,n\n" * 30_000,
    "5,200 rows; at most 5,000 here, use `recsys rules` for more": "a,b\n" + "x,y\nz,n\n" * 2600,
}


@pytest.mark.thorough
@pytest.mark.parametrize("told", WRONG)
def test_tables_that_give_no_rule_are_refused_in_a_sentence(told):
    from app import state

    at = rules(rules__file=state.keep_file("t.csv", WRONG[told].encode()))
    assert told in read(at.error[0].value) and at.error[0].value.startswith("t.csv") and not at.exception


@pytest.mark.thorough
@pytest.mark.skipif(not (FOLDER / "categorical").is_dir(), reason="the real tables are not here")
def test_the_tables_of_this_machine_are_offered_and_dropped_rows_are_said(monkeypatch):
    monkeypatch.setenv("RECSYS_DATA", str(FOLDER))
    at = rules(rules__table="house-votes")
    options = box(at, "Table").options
    assert {"house-votes", "kr-vs-kp", "tic-tac-toe", "vote.arff (raw file)"} <= set(options)
    rows = [
        line.split(",") for line in (FOLDER / "categorical" / "vote.arff").read_text("latin-1").splitlines()
        if line.strip() and not line.startswith(("%", "@"))
    ]  # fmt: skip
    dropped = sum(any(cell.strip().strip("'") == "?" for cell in row) for row in rows)
    assert f"{dropped} of {len(rows)} rows with a missing value dropped." in texts(at)
    raw = rules(rules__table="vote.arff")
    assert f"{dropped} of {len(rows)} rows with a missing value dropped." in texts(raw)
    assert any("missing" in option for option in box(raw, "Columns to leave out", "multiselect").options)


def test_dropped_rows_and_the_base_rate_are_said(monkeypatch):
    from app.views import kernels as view

    rng = np.random.default_rng(0)
    rows = [["?" if k % 7 == 0 else "ab"[k % 2], "ab"[k % 2], "yn"[k % 2]] for k in range(210)]
    rng.shuffle(rows)
    table = encode(["one", "two", "class"], rows, None, None, "t")
    monkeypatch.setattr(view, "ready_table", lambda name, folder: table)
    at = rules()
    assert "30 of 210 rows with a missing value dropped." in texts(at)
    assert any("the larger class has 0.5" in c for c in captions(at))


def test_a_learned_rule_measures_as_its_formula():
    table = load_table("monks-1")
    found = measure_rule(table.X, table.y, max_clauses=10, max_literals=5, names=table.names)
    again = measure_formula(
        parse_formula(formula_text(found.rule), table.names), table.X[found.held], table.y[found.held]
    )
    assert again.accuracy == found.accuracy and again.base == found.majority


# ---- in a browser


class TestBrowser:
    pytestmark = MARKS

    def test_a_formula_is_measured_without_leaving_its_field(self, tab, address):
        tab.goto(f"{address}/kernels")
        tab.get_by_text(RULES).click()
        entry = tab.get_by_role("textbox", name="Formula")
        entry.wait_for()
        settled(tab)
        entry.fill("middle-middle=x")
        tab.get_by_text("Covered: ").wait_for()
        tab.get_by_text("(0.", exact=False).first.wait_for()
        shot(tab, "kernels-rules-1400")
        entry.fill("middle-middle=q")
        tab.get_by_text("no column=value").wait_for()
        tab.reload()
        tab.get_by_role("textbox", name="Formula").wait_for()
        settled(tab)
        assert tab.get_by_role("textbox", name="Formula").input_value() == "middle-middle=q"
