"""The page Links: its figures are the command line's, its picture and its sentences are counted."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("streamlit")

from app import state
from app.parts.words import escaped
from app.uploads import UploadedFile
from app.views import links as view
from recsys import InputError
from recsys.cli import call
from recsys.datasets import load_dataset
from recsys.datasets.graphs import GRAPHS, list_graphs
from recsys.datasets.linked_tables import graph_of
from recsys.links import StrongestLinks, fit_on_all_links, link_reasons, strongest_links
from tests.app.browsing import MARKS, go, settled, shot
from tests.app.page_runs import open_page, press, settle, texts
from tests.data.test_spreadsheets import write_xlsx
from tests.links.test_comparison import Hidden, planted


def run(**address):
    return open_page("links", {f"links.{name}": value for name, value in address.items()})


def read(files):
    return view.read_tables([UploadedFile("", *file) for file in files.items()])


def tables(seed=0):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 3, 60)
    rows = [f"n{k},{'|'.join(f'w{w}' for w in np.flatnonzero(rng.random(9) < np.where(np.arange(9) // 3 == g, 0.8, 0.1)))}" for k, g in enumerate(groups)]  # fmt: skip
    pairs = [(a, b) for a, b in itertools.combinations(range(60), 2) if groups[a] == groups[b] and rng.random() < 0.4]  # fmt: skip
    return "id,words\n" + "\n".join(rows) + "\n", "from,to\n" + "".join(f"n{a},n{b}\n" for a, b in pairs)


def printed(arguments, folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert call(["links", *arguments, "--json", "l.json", "--quiet"]) == 0
    return json.loads((folder / "l.json").read_text())


def figures(at):
    return next(d.value for d in at.dataframe if "AUC" in d.value)


def same_figures(at, told):
    frame = figures(at)
    by_model = {entry["model"]: entry for entry in told["results"]}
    assert set(frame["model"]) == set(by_model)
    for _, row in frame.iterrows():
        entry = by_model[row["model"]]
        for shown, name in (("AUC", "auc"), ("±", "auc_error"), ("accuracy", "accuracy"), ("precision", "precision"), ("recall", "recall")):  # fmt: skip
            assert row[shown] == entry[name]
    assert frame["AUC"].is_monotonic_decreasing
    assert set(told["verdicts"]) <= set(texts(at)) and told["about"] in texts(at)


def test_a_graph_without_a_label_goes_by_its_name(monkeypatch, tmp_path):
    assert view.graphs() == {}, "there is no data folder"
    monkeypatch.setenv("RECSYS_DATA", str(tmp_path))
    (tmp_path / "cora").mkdir()
    (tmp_path / "roads").mkdir()
    monkeypatch.setitem(GRAPHS._entries, "roads", None)
    assert view.graphs() == {"cora": "Cora: papers that cite", "roads": "roads"}
    assert set(view.GRAPHS) <= set(list_graphs())


def test_nothing_uploaded_or_chosen_says_what_to_do():
    assert "Upload a table of pairs" in run(graph="tables").info[0].value
    at = run(graph="tables", tables=["gone"])
    assert "Upload a table of pairs" in at.info[0].value and "no longer here" in at.warning[0].value
    at = run()
    at.multiselect[0].set_value([]).run()
    assert "Choose at least one predictor" in settle(at).info[0].value


@pytest.mark.slow
def test_what_cannot_be_compared_is_said():
    token = state.keep_file("pairs.csv", b"a,b\nx,y\ny,z\nz,x\nx,w\nw,y\nz,w\n")
    at = press(run(graph="tables", tables=[token], split="objects"), "Compare")
    assert "nothing is known of these objects but their ids" in at.error[0].value
    at = press(run(graph="tables", tables=[token]), "Compare")
    assert at.error, "six links are too few"
    token = state.keep_file("odd.csv", b"a\n1\n")
    at = run(graph="tables", tables=[token])
    assert at.error[0].value == "odd.csv: a table of pairs needs two columns; found: a"


def test_tables_are_forgotten_and_one_that_is_gone_takes_the_others_along():
    here = [state.keep_file(name, b"a,b\nx,y\ny,z\n") for name in ("one.csv", "two.csv")]
    at = run(graph="tables", tables=here)
    assert "Files: one.csv, two.csv" in texts(at)
    press(at, "Forget them")
    assert "Upload a table of pairs" in at.info[0].value and not at.warning
    at = run(graph="tables", tables=[here[0], "gone"])
    assert [w.value for w in at.warning] == [
        "Not all of the uploaded files are here any longer: upload them again."
    ]
    assert "links.tables" not in at.session_state["session"].address()


def test_a_sheet_makes_a_graph(tmp_path):
    pytest.importorskip("python_calamine")
    write_xlsx(tmp_path / "a[1].xlsx", [["from", "to"], ["x", "y"], ["y", "z"], ["z", "x"]])
    at = run(graph="tables")
    at.file_uploader[0].set_value([("a[1].xlsx", (tmp_path / "a[1].xlsx").read_bytes(), "")])
    told = texts(settle(at.run()))
    assert "File: a[1].xlsx" in told and any(text.startswith("3 objects w") for text in told)


def test_errors_name_the_file_as_it_was_uploaded():
    nodes, _ = tables()
    with pytest.raises(InputError, match=r"^my pairs\.csv, line 3: .* fields"):
        read({"my nodes.csv": nodes.encode(), "my pairs.csv": b"a,b\nn1,n2\nn1\n"})
    with pytest.raises(InputError, match="4 files; at most 3"):
        read({f"{name}.csv": b"a,b\n1,2\n" for name in "abcd"})


@pytest.mark.thorough
def test_nothing_of_a_file_is_read_as_markup():
    nasty = b"id,x\n![p](http://127.0.0.1:9/x),0.5\n$y$,0.1\n<b>,0\n"
    files = {"p[1].csv": b"a,b\n$y$,<b>\n[q](r),$y$\n", "n.csv": nasty}
    with pytest.raises(InputError, match=r"'\[q\]\(r\)'") as found:
        read(files)
    at = run(graph="tables", tables=[state.keep_file(*file) for file in files.items()])
    assert [e.value for e in at.error] == [escaped(found.value)], "what Markdown reads is marked once"
    assert r"\[q\](r)" in at.error[0].value
    rows = [f"![u{u}](h),i{(5 * u + k * k) % 40}" for u in range(12) for k in range(5)]
    token = state.keep_file("one.csv", "\n".join(["user_id,item_id", *rows]).encode())
    at = press(run(graph="tables", tables=[token]), "Compare")
    marked = [e.value for kind in ("markdown", "caption", "info", "warning", "error") for e in getattr(at, kind)]  # fmt: skip
    assert not any("](h)" in text for text in marked) and any("](h)" in text for text in texts(at))
    assert not any("](h)" in element.label for kind in ("selectbox", "multiselect") for element in getattr(at, kind))  # fmt: skip


@pytest.mark.parametrize("one", [True, False])
def test_bars_sum_to_the_score(one):
    graph = planted(one)
    for spec in ("fm:max_iter=5", "pairnet:degree=3,max_iter=5", "pair-svm"):
        model = fit_on_all_links(graph, spec)
        found = link_reasons(model, graph.A, graph.B, 3, 8, 4)
        rows = view.bars(found, graph, ("Ada", "Bob"))
        assert rows[-1] == ("score", "score", found.score)
        assert sum(value for _, _, value in rows[:-1]) == pytest.approx(found.score)
        assert rows[0][:2] == ("whatever the objects", "base") and len([r for r in rows if "×" in r[0]]) == min(4, len(found.pairs))  # fmt: skip
        lines = view.as_csv(found, graph, ("Ada", "Bob")).strip().splitlines()
        assert len(lines) == 1 + len(rows) and lines[1].startswith("Ada,Bob,whatever the objects,base,")
    changes = link_reasons(Hidden().fit(graph.A, graph.B, graph.links[:4], [0, 1, 0, 1]), graph.A, graph.B, 3, 8)  # fmt: skip
    rows = view.bars(changes, graph, ("Ada", "Bob"))
    assert [value for *_, value in rows] == [value for *_, value in changes.changes]


@pytest.mark.parametrize("one", [True, False])
def test_the_picture_has_the_known_and_the_predicted_links(one):
    graph = planted(one)
    model = fit_on_all_links(graph, "bilinear:max_iter=5")
    pairs = {tuple(pair) for pair in graph.links.tolist()}
    for side in ("left", "right"):
        index = view.most_linked(graph, side)
        own = 0 if side == "left" else 1
        number = [sum(pair.count(k) if one else pair[own] == k for pair in pairs) for k in range(35)]
        assert number[index] == max(number) and index == number.index(max(number))
        told = strongest_links(model, graph, index, side, 5)
        nodes, edges = view.neighbourhood(graph, index, side, told)
        known = nodes[nodes["kind"] == "known link"]
        assert len(known) == min(view.MOST_NEIGHBOURS, len(told.known))
        assert (nodes["kind"] == "predicted link").sum() == 5
        other = (graph.right if side == "left" else graph.left).labels
        assert set(known["name"]) <= {view.short(other[k]) for k in told.known}
        assert (known["x"] < 0).all() and (nodes.loc[nodes["kind"] == "predicted link", "x"] > 0).all()
        np.testing.assert_array_equal(nodes.loc[nodes["kind"] == "predicted link", "score"], told.scores)
        spokes = edges[edges["kind"] != "between them"]
        assert len(spokes) == len(nodes) - 1 and (spokes[["x", "y"]] == 0).all(axis=None)
        labels = {view.short(str(other[k])): k for k in [*told.known, *told.objects]}
        at = {(row.x, row.y): labels[row["name"]] for _, row in nodes.iloc[1:].iterrows()}
        drawn = {frozenset((at[e.x, e.y], at[e.x2, e.y2])) for _, e in edges.iterrows() if e.kind == "between them"}  # fmt: skip
        wanted = {frozenset(pair) for pair in pairs if set(pair) <= set(at.values())} if one else set()
        assert drawn == wanted
        assert nodes[["x", "y"]].abs().max(axis=None) <= 1


def test_many_neighbours_are_those_with_most_links_among_the_shown():
    graph = planted()._replace(links=np.array([[0, k] for k in range(1, 20)] + [[18, 19], [17, 19], [3, 5]]))  # fmt: skip
    told = StrongestLinks(np.array([30]), np.array([0.5]), 20, np.arange(1, 20))
    nodes, _ = view.neighbourhood(graph, 0, "left", told)
    shown = nodes.loc[nodes["kind"] == "known link", "name"].tolist()
    assert shown[:3] == ["object 19", "object 3", "object 5"] and len(shown) == view.MOST_NEIGHBOURS
    assert {"object 17", "object 18"} <= set(shown)


def test_names_are_cut_where_they_are_too_long():
    assert view.short("Ada") == "Ada" and len(view.short("x" * 50)) == view.SHORT
    assert view.short("x" * 50).endswith("…")


def test_intervals_of_the_chart_are_those_of_the_figures():
    from recsys.links import compare_links

    graph = graph_of(load_dataset("sample")).weighted()
    found = compare_links(graph, ["bilinear:max_iter=3", "fm:max_iter=3"])
    frame = view.values(found)
    assert isinstance(frame, pd.DataFrame)
    for _, row in frame.iterrows():
        result = next(r for r in found.results if r.model == row["model"])
        assert row["high"] - row["low"] == pytest.approx(2 * 1.96 * result.auc_error)
        assert (row["low"] + row["high"]) / 2 == pytest.approx(result.metrics.auc)


class TestBrowser:
    pytestmark = MARKS

    def test_an_uploaded_table_in_three_clicks(self, tab, address, tmp_path):
        nodes, edges = tables()
        (tmp_path / "nodes.csv").write_text(nodes)
        (tmp_path / "edges.csv").write_text(edges)
        tab.goto(f"{address}/links")
        tab.get_by_text("my tables").click()  # one
        tab.get_by_text("Upload a table of pairs").wait_for()
        tab.locator("input[type=file]").set_input_files(
            [tmp_path / "nodes.csv", tmp_path / "edges.csv"]
        )  # two
        tab.get_by_text("60 objects with 9 features").wait_for()
        tab.get_by_role("button", name="Compare").click()  # three
        tab.get_by_text("has the best AUC").wait_for()
        tab.get_by_text("The score of").wait_for()
        settled(tab)
        shot(tab, "links-1400")
        said = tab.get_by_text("has the best AUC").inner_text()
        go(tab, "Data")
        go(tab, "Links")
        assert tab.get_by_text("has the best AUC").inner_text() == said, "a page switch loses nothing"
        tab.reload()
        tab.get_by_text("The score of").wait_for()
        assert tab.get_by_text("has the best AUC").inner_text() == said, "nor does a reload"

    def test_a_phone_shows_all_of_it(self, browser, address):
        page = browser.new_page(viewport={"width": 400, "height": 900})
        page.set_default_timeout(180_000)
        page.goto(f"{address}/links")
        compare = page.get_by_role("button", name="Compare")  # none where somebody has compared
        compare.or_(page.get_by_text("The score of")).first.wait_for()
        settled(page)
        if compare.is_visible():
            compare.click()
        page.get_by_text("The score of").wait_for()
        settled(page)
        shot(page, "links-400")
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        page.close()

    def test_a_comparison_can_be_cancelled(self, tab, address):
        tab.goto(f"{address}/links?links.seed=11&links.ids=true")  # fmt: skip
        box = tab.get_by_role("combobox", name="Predictors").first
        box.click()
        box.fill("pairnet:degree=4,max_iter=3000,tol=0")
        box.press("Enter")
        tab.keyboard.press("Escape")
        settled(tab)
        tab.get_by_role("button", name="Compare").click()
        cancel = tab.get_by_role("button", name="Cancel").first
        cancel.wait_for()
        cancel.click()
        tab.get_by_text("cancelled").first.wait_for()
