"""Each page in Streamlit's own test harness: what it hands to the library, and what it shows of the result."""

import io
import re
import time
import zipfile
from pathlib import Path

import pandas as pd
import pytest

pytest.importorskip("streamlit")
from streamlit.testing.v1 import AppTest

import recsys
from app import choices, uploads
from app.catalog import catalog_of
from app.jobs import Job
from app.parts import lists
from app.parts.person import Person
from app.parts.text import escaped
from app.views import compare, interactions, kernels, rules
from app.views.recommend import inert

ROOT = Path(__file__).parents[2]
DATA = recsys.load_dataset("sample")
PAGES = ("recommend", "compare", "data", "rules", "interactions", "kernels", "links")


@pytest.fixture(scope="module")
def catalog():
    return catalog_of("sample", DATA, None)


@pytest.fixture(scope="module")
def model():
    return recsys.Recommender("ease").fit(DATA)


def person(user="u0001", added=(), dislikes=(), lower=(), catalog=None):
    own = [] if user is None else catalog.history(user)
    return Person(user, [*own, *added], list(added), list(dislikes), list(lower), "likes", "dislikes")


def opened(page, **state):
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom app.views import {page}\n{page}.page()"
    )
    at = AppTest.from_string(script, default_timeout=120)
    for name, value in state.items():
        at.session_state[name] = value
    at.run()
    for _ in range(300):
        assert not at.exception, [error.message for error in at.exception]
        if not len(at.get("progress")):
            return at
        time.sleep(0.3)
        at.run()
    raise AssertionError("the page still waits")


@pytest.mark.thorough
@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_on_a_result(page):
    at = opened(page)
    assert not at.error and not at.warning


@pytest.mark.thorough
def test_the_cards_are_the_models_list(model):
    at = opened("recommend", model="ease")
    listed = model.recommend("u0001", n=10)["title"].tolist()
    shown = [one.value for one in at.markdown]
    assert shown == [f"**{rank}. {escaped(title)}**" for rank, title in enumerate(listed, 1)]


def test_a_list_leaves_out_likes_dislikes_and_low_ratings(catalog, model):
    first = lists.recommend(model, catalog, person(catalog=catalog), 6)["item"].tolist()
    who = person(added=first[:1], dislikes=first[1:2], lower=first[2:3], catalog=catalog)
    assert not set(lists.recommend(model, catalog, who, 20)["item"]) & set(first[:3])
    nobody = person(None, catalog=catalog)
    popular = lists.recommend(model, catalog, nobody, 3)["item"].tolist()
    assert popular == list(catalog.items)[:3]


def test_a_card_names_the_shares_of_the_score(catalog, model):
    who = person(catalog=catalog)
    item = lists.recommend(model, catalog, who, 1)["item"][0]
    why = lists.explain(model, catalog, who, item, 3)
    share = f"{100 * why.rows[0][2] / why.score:.0f}%"
    text = lists.reason(catalog, why, item)
    assert text.startswith(f"Because you liked {catalog.titles[str(why.rows[0][0])]} ({share})")


def test_shares_on_a_card_are_parts_of_the_whole(catalog):
    """Of a score near 0, which liked items also lower, what one adds can be many times the score."""
    model, found = recsys.Recommender("cf-komd").fit(DATA), set()
    for user in list(catalog.users)[:8]:
        who = person(user, catalog=catalog)
        for item in lists.recommend(model, catalog, who, 100)["item"][::6]:
            text = lists.reason(catalog, lists.explain(model, catalog, who, item, 3), item)
            shares = [int(number) for number in re.findall(r"\((\d+)%\)", text)]
            assert sum(shares) <= 101
            found.add(bool(shares))
    assert found == {True, False}


def test_an_item_that_nothing_speaks_for_is_called_popular(catalog):
    model = recsys.Recommender("popularity").fit(DATA)
    who = person(catalog=catalog)
    item = lists.recommend(model, catalog, who, 1)["item"][0]
    text = lists.reason(catalog, lists.explain(model, catalog, who, item, 3), item)
    number = int(catalog.popularity[catalog.item_columns[item]])
    assert text == f"Popular: liked by {number} users."


@pytest.mark.thorough
def test_compare_measures_what_evaluate_measures(catalog):
    settings = compare.defaults() | {"models": ("popularity", "ease"), "metrics": ("auc",)}
    report = compare.run(catalog, settings)
    plain = recsys.evaluate(DATA, ["popularity", "ease"], metrics=["auc"], folds=2)
    assert report.frame()["mean"].tolist() == plain.frame()["mean"].tolist()
    text = compare.headline(report, "auc", ["EASE", "Popular"])
    found = plain.comparisons[0]
    assert text.startswith(f"EASE is better than Popular: auc {abs(found['difference']):+.3f}")
    assert compare.command(catalog, settings).startswith(
        "recsys evaluate --dataset sample --model popularity"
    )


def test_a_threshold_divides_ratings():
    frame = pd.DataFrame({"user": list("aabbc"), "item": list("xyxyx"), "rating": [5, 2, 4, 3, 5]})
    every = recsys.Interactions.from_frame(frame)
    made = catalog_of("rated", every, 4.0)
    assert (
        made.verb == "liked" and made.history("a") == ["x"] and made.ratings("a") == {"x": 5.0, "y": 2.0}
    )
    assert catalog_of("rated", every, 2.0).verb == "rated"


@pytest.mark.thorough
def test_lab_pages_find_something_on_the_sample(catalog):
    assert len(rules.rules(catalog, 20)) > 0
    found = interactions.fit(
        interactions.Examples(*interactions.liked_pairs(DATA, rows=2000), True, "a like"), 1e-3
    )
    assert len(found.pairs) > 0 and found.value > 0.5
    frame = kernels.curves(catalog.draw(150, 150), ["mc", "linear"], 3)
    assert frame["AUC"].gt(0.5).all() and len(frame) == 6


# ---- uploads


def test_roles_are_proposed_where_names_tell_them():
    content = b"Kunde;Artikelnummer;Artikelbezeichnung;Preis;Datum\nK1;A1;Stuhl;9,50;01.02.2024\nK1;A2;Tisch;8,00;02.02.2024\n"
    found = uploads.preview(content, "orders.csv", None, {})
    assert found.roles == {
        "user": "Kunde",
        "item": "Artikelnummer",
        "title": "Artikelbezeichnung",
        "time": "Datum",
    }
    unsure = uploads.preview(b"a,b,c\n1,2,3\n4,5,6\n", "x.csv", None, {})
    assert "user" not in unsure.roles


def test_the_titles_of_order_lines_are_the_items():
    lines = "Kunde;Artikel;Name\n" + "".join(f"K{k % 9};A{k % 4};Ding {k % 4}\n" for k in range(60))
    roles = {"user": "Kunde", "item": "Artikel", "title": "Name"}
    data = uploads.read(lines.encode(), "orders.csv", None, {}, roles)
    assert sorted(map(str, data.titles)) == [f"Ding {k}" for k in range(4)]


def test_a_table_to_predict_may_have_decimal_commas():
    content = "Region;Preis;Zurück\n" + "".join(
        f"Süd;{k},50;{'ja' if k % 2 else 'nein'}\n" for k in range(60)
    )
    frame = interactions.table(content.encode("cp1252"), "retouren.csv")
    assert frame["Preis"].max() == 59.5
    examples = interactions.of_table(frame, "Zurück")
    assert examples.classes and examples.target == "Zurück=ja" and "Preis=0.5–11.5" in examples.names


MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def workbook(sheets):
    """Return the bytes of a workbook of texts."""
    types, relations, names, parts = [], [], [], {}
    for k, (name, rows) in enumerate(sheets.items(), 1):
        cells = "".join(
            f'<row r="{r}">'
            + "".join(
                f'<c r="{chr(65 + c)}{r}" t="inlineStr"><is><t>{text}</t></is></c>'
                for c, text in enumerate(row)
            )
            + "</row>"
            for r, row in enumerate(rows, 1)
        )
        parts[f"xl/worksheets/sheet{k}.xml"] = (
            f"<worksheet {MAIN}><sheetData>{cells}</sheetData></worksheet>"
        )
        relations.append(
            f'<Relationship Id="rId{k}" Type="{OFFICE}/worksheet" Target="worksheets/sheet{k}.xml"/>'
        )
        names.append(f'<sheet name="{name}" sheetId="{k}" r:id="rId{k}"/>')
        types.append(f'<Override PartName="/xl/worksheets/sheet{k}.xml" ContentType="application/xml"/>')
    parts["xl/workbook.xml"] = (
        f'<workbook {MAIN} xmlns:r="{OFFICE}"><sheets>{"".join(names)}</sheets></workbook>'
    )
    around = f'<Relationships xmlns="{PACKAGE}/relationships">{{}}</Relationships>'
    parts["xl/_rels/workbook.xml.rels"] = around.format("".join(relations))
    main = f'<Relationship Id="rId1" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
    parts["_rels/.rels"] = around.format(main)
    parts["[Content_Types].xml"] = f'<Types xmlns="{PACKAGE}/content-types">{"".join(types)}</Types>'
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return out.getvalue()


def test_each_sheet_of_a_workbook_can_be_read():
    pytest.importorskip("python_calamine")
    orders = [("user", "item"), ("a", "x"), ("a", "y"), ("b", "x")]
    content = workbook({"Notes": [("note",), ("read me",)], "Orders": orders})
    assert uploads.sheets(content, "two.xlsx") == ["Orders"]
    data = uploads.read(content, "two.xlsx", "Orders", {}, {"user": "user", "item": "item"})
    assert data.n_users == 2 and data.n_items == 2


class File:
    def __init__(self, name, content):
        self.name, self.size, self.content = name, len(content), content

    def getvalue(self):
        return self.content


@pytest.mark.parametrize(
    "content, word", [(b"", "empty"), (b"<!DOCTYPE html><h1>Log in</h1>", "web page")]
)
def test_what_is_no_table_is_refused_in_a_line(content, word):
    with pytest.raises(recsys.InputError, match=word):
        uploads.content_of(File("page.csv", content))


def test_an_error_names_the_file_and_not_the_temporary_one():
    with pytest.raises(recsys.InputError) as error:
        uploads.read(b"user,item\n", "mine.csv", None, {}, {"user": "user", "item": "item"})
    assert "mine.csv" in str(error.value) and "upload." not in str(error.value)


def test_anybodys_text_is_no_markup_and_no_formula():
    assert escaped("![x](http://a) :red[b]") == r"!\[x\](http\://a) \:red\[b\]"
    assert inert("=1+1") == "'=1+1" and inert(3) == 3


# ---- jobs and choices


def test_a_job_gives_its_result_its_error_or_stops():
    done = []
    job = Job("k", lambda: 7, "", done)
    job.wait(5)
    assert done == [7] and not job.running

    def refuse():
        raise recsys.InputError("no")

    job = Job("k", refuse, "", [])
    job.wait(5)
    assert job.error == "no"

    def endless():
        while True:
            recsys.utils.progress.report("step", 0, 1)
            time.sleep(0.01)

    job = Job("k", endless, "", [])
    job.cancel()
    job.wait(5)
    assert not job.thread.is_alive()


def test_keys_belong_to_a_dataset_and_a_user():
    assert choices.scoped("user", "sample") == "user"
    assert choices.scoped("likes", "movielens", "42") == "likes-movielens-42"
