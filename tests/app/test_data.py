"""The page Data: uploads in other languages, counts of rows, and sentences that are counts."""

import re
from collections import Counter
from datetime import UTC, datetime

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("streamlit")

from recsys import InputError
from recsys.data import read_interactions
from recsys.data.columns import PAGE_CHOICES, PAGE_LABELS, Spelling
from recsys.datasets import load_dataset
from tests.app.browsing import MARKS, RATINGS, chosen, go, settled, shot
from tests.app.page_runs import box, captions, open_page, press, read, settle, texts
from tests.data.test_spreadsheets import write_xlsx

GERMAN = "Kunde;Artikel;Sterne;Datum\n" + "".join(
    f"k{u};Buch {(u * 3 + k * k) % 17};{1 + (u + k) % 5};2021-{1 + k:02d}-{1 + u % 28:02d}\n"
    for u in range(30) for k in range(8)
)  # fmt: skip
DIRTY = GERMAN + "k1;Buch 1;gut;2021-01-01\n;Buch 2;3;2021-01-01\nk2;Buch 3;3\nk0;Buch 0;2;2022-05-05\n"
RAGGED = "user_id,item_id\nu1,i1,9\nu1,i1\nu2,i1\n"


def uploaded(content, name="liste.csv", **more):
    from app import state

    given = content if isinstance(content, bytes) else content.encode()
    return open_page("data", data__file=state.keep_file(name, given), **more)


def test_messages_name_the_boxes_of_the_page():
    from app.views.data import CHOICES, ROLES

    spelling = Spelling("page")
    for (option, value), text in PAGE_CHOICES.items():
        label, values = CHOICES[option]
        assert text == f"“{label}: {next(name for name, of in values.items() if of is value)}”"
    assert {option: CHOICES[option][0] for option in PAGE_LABELS} == PAGE_LABELS
    assert set(CHOICES) == set(PAGE_LABELS) | {option for option, _ in PAGE_CHOICES}
    assert {role: spelling.of(role) for role in ROLES} == ROLES


def test_a_file_without_a_header_says_where_that_is_chosen():
    at = uploaded("1,11,5\n1,12,3\n2,11,4\n2,13,1\n", "plain.csv")
    told = " ".join(texts(at))
    assert "say “First row: names of columns”" in told and "Day first" not in told


def metrics(at):
    return {m.label: m.value for m in at.metric}


# ---- uploads


def test_a_german_table_is_recognised_used_and_leads_on():
    at = uploaded(GERMAN)
    chosen = [box(at, f"{role} column").value for role in ("User", "Item", "Rating", "Time")]
    assert chosen == ["Kunde", "Artikel", "Sterne", "Datum"]
    assert "Users are in Kunde, as its name says." in texts(at)
    assert at.dataframe[0].value["Kunde"].tolist() == ["k0"] * 8, "the first rows are shown"
    press(at, "Use this table")
    assert at.success and {b.label for b in at.button} >= {"Recommend from it"}
    assert at.session_state["session"].get("data", "").startswith("upload-")
    assert box(at, "Counts as liked: rated at least").value == 1, "nothing is left out unasked"
    box(at, "Counts as liked: rated at least").set_value(4.0).run()
    settle(at)
    rows = [line.split(";") for line in GERMAN.strip().split("\n")[1:]]
    pairs = {(u, i): int(s) for u, i, s, _ in rows}  # of a pair the latest row: months rise with k
    liked = {pair for pair, stars in pairs.items() if stars >= 4}
    shown = metrics(at)
    assert (
        shown["users"] == f"{len({u for u, _ in liked})}"
        and shown["items"] == f"{len({i for _, i in liked})}"
    )
    assert shown["liked"] == f"{len(liked)}" and shown["pairs that are used"] == f"{len(pairs)}"


@pytest.mark.thorough
def test_a_reload_finds_the_file_the_columns_and_the_dataset():
    at = uploaded(GERMAN)
    box(at, "Rating column").set_value("none").run()
    press(at, "Use this table")
    address = at.session_state["session"].address()
    again = open_page("data", address)
    assert box(
        again, "Rating column"
    ).value == "none" and "No column of ratings: every row counts as a like." in texts(again)
    assert box(again, "Dataset").value == box(at, "Dataset").value and not again.warning
    assert metrics(again) == metrics(at)


def test_what_became_of_the_rows_is_counted():
    at = uploaded(DIRTY)
    lines = DIRTY.strip().split("\n")[1:]
    shown = metrics(at)
    pairs = {tuple(line.split(";")[:2]) for line in GERMAN.strip().split("\n")[1:]}
    pairs.add(("k0", "Buch 0"))
    assert shown["rows"] == f"{len(lines)}" and shown["left out"] == "3"
    assert shown["pairs that are used"] == f"{len(pairs)}"
    assert shown["merged: a pair again"] == f"{len(lines) - 3 - len(pairs)}"
    told = texts(at)
    start = len(GERMAN.strip().split("\n"))
    assert f"1 row whose rating is no number is left out (line {start + 1})." in told
    assert f"1 row without a user is left out (line {start + 2})." in told
    assert f"1 row with another number of fields than the header is left out (line {start + 3})." in told
    users, items = {u for u, _ in pairs}, {i for _, i in pairs}
    assert f"They are of {len(users)} users and {len(items)} items." in told
    assert [b.label for b in at.get("download_button")] == ["Download the cleaned table (CSV)"]


def test_the_cleaned_table_is_read_as_the_upload_was(tmp_path):
    from app.views.data import cleaned

    path = tmp_path / "t.csv"
    path.write_text(
        'who,what,stars,when\n=1+1,"a, b",0.1,1700000001\nb,c,3,x\nb,c,3,1700000002.25\nb,"a, b",2,-5\n'
    )
    data = read_interactions(path)
    assert data.counts.left_out == {"time": 1}
    path.write_text(cleaned(data))
    again = read_interactions(path)
    assert again.user_ids.tolist() == ["=1+1", "b"] and (again.matrix != data.matrix).nnz == 0
    assert again.rating.tolist() == data.rating.tolist() and again.time.tolist() == data.time.tolist()


def test_a_table_of_items_comes_with_it():
    from app import state

    films = "Artikel,title,genres\n" + "".join(f"Buch {k},Titel {k},Drama|Krieg\n" for k in range(12))
    at = uploaded(GERMAN, data__items=state.keep_file("films.csv", films.encode()))
    known = {row.split(";")[1] for row in GERMAN.strip().split("\n")[1:]}
    absent = len(known - {f"Buch {k}" for k in range(12)})
    assert f"{absent} of {len(known)} items have no row in the item table." in texts(at)
    press(at, "Use this table")
    name = at.session_state["session"].get("data", "")
    assert state.tables().find(name).items == "films.csv"
    at = uploaded(GERMAN, data__items=state.keep_file("films.csv", b"Artikel,title\nx,y\n"))
    assert (
        "item table films.csv: items: no item of the interactions is in this table" in at.error[0].value
    )


UPLOADS = {
    b"": "empty",
    b"a\n1\n": "needs a column of users",
    bytes(range(256)) * 16: "",
    b"user_id,item_id\nu1,i1,extra\n": "line 2: 3 fields where the header has 2",
    b"user_id,item_id\n,\n": "no row can be used: 1 row without a user",
}


@pytest.mark.thorough
@pytest.mark.parametrize("content", UPLOADS)
def test_bad_uploads_are_one_sentence(content):
    if not content:
        from app.parts import upload

        class File:
            name, size = "<img src=x>.csv", 0

        with pytest.raises(InputError, match="the file is empty"):
            upload.limited(File())
        return
    at = uploaded(content, "<img src=x>.csv")
    (shown,) = [e.value for e in at.error]
    assert shown.startswith(r"\<img src=x\>.csv"), "as text, not as markup"
    told = read(shown)
    assert UPLOADS[content] in told and "/tmp" not in told and "\n" not in told
    assert "users" not in metrics(at), "nothing of another dataset beside a file that waits"
    assert not any(one.label == "Dataset" for one in at.selectbox)
    press(at, "Forget it")
    assert box(at, "Dataset").value == "sample", "the page goes on"


def test_rows_that_do_not_fit_are_left_out_and_said():
    at = uploaded(RAGGED)
    assert "1 row with another number of fields than the header is left out (line 2)." in texts(at)
    assert metrics(at)["pairs that are used"] == "2"


@pytest.mark.thorough
def test_an_excel_file_is_read_and_without_the_reader_it_says_how(tmp_path, monkeypatch):
    import sys

    rows = [line.split(";") for line in GERMAN.strip().split("\n")]
    rows = [rows[0], *([u, i, int(s), d] for u, i, s, d in rows[1:])]
    content = write_xlsx(tmp_path / "t.xlsx", rows).read_bytes()
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "python_calamine", None)
        at = uploaded(content + b"\0", "eins.xlsx")
        assert re.search(r"pip install '.*\[excel\]', or save the sheet as CSV", read(at.error[0].value))
        assert at.error[0].value.startswith("eins.xlsx: Excel files are read through python-calamine")
    pytest.importorskip("python_calamine")
    assert (
        metrics(uploaded(content, "zwei.xlsx"))["pairs that are used"]
        == metrics(uploaded(GERMAN))["pairs that are used"]
    )


def test_oversized_uploads_are_not_read():
    from app.parts import upload

    class File:
        name, size = "big.csv", upload.MOST_BYTES + 1

        def getvalue(self):
            raise AssertionError("read")

    with pytest.raises(InputError, match="at most 200 MB"):
        upload.limited(File())


def test_what_was_uploaded_can_be_forgotten():
    at = uploaded(GERMAN)
    assert "File: liste.csv" in texts(at)
    press(at, "Forget it")
    assert not [b for b in at.button if b.label == "Use this table"] and not at.warning
    assert "data.file" not in at.session_state["session"].address()


def test_a_table_of_items_that_is_gone_is_said_to_be():
    at = uploaded(GERMAN, data__items="0123456789abcdef01234567")
    assert [w.value for w in at.warning] == ["The uploaded file is no longer here: upload it again."]
    assert "File: liste.csv" in texts(at)


def test_a_file_that_is_gone_is_said_to_be():
    at = open_page("data", {"data.file": ["0123456789abcdef01234567"]})
    assert "no longer here: upload it again" in at.warning[0].value


# ---- what a dataset is like


def test_the_sample_is_told_by_counts():
    data = load_dataset("sample")
    R = data.matrix.toarray()
    at = open_page("data")
    shown = metrics(at)
    assert (shown["users"], shown["items"]) == ("400", "300") and shown["density"] == f"{R.mean():.3%}"
    few_u, few_i = int((R.sum(1) < 5).sum()), int((R.sum(0) < 5).sum())
    assert f"{few_u} of 400 users ({few_u / 400:.1%}) liked fewer than 5 items." in captions(at)
    are = "is" if few_i == 1 else "are"
    assert f"{few_i} of 300 items ({few_i / 300:.1%}) {are} liked by fewer than 5 users." in captions(at)
    days = sorted(datetime.fromtimestamp(t, UTC).date().isoformat() for t in data.time)
    assert f"They are from {days[0]} to {days[-1]}." in captions(at)
    table = at.dataframe[-1].value
    common = (R.T @ R > 0) | np.eye(300, dtype=bool)
    assert table.iloc[0, :2].tolist() == pytest.approx([R.mean(), common.mean()])
    text = " ".join([*captions(at), *texts(at), *map(str, table.columns)])
    assert "thesis" not in text and "(10.7)" not in text


MATRIX = st.integers(1, 8).flatmap(
    lambda n: st.integers(1, 9).flatmap(
        lambda m: st.lists(
            st.lists(st.sampled_from([0, 0, 1]), min_size=m, max_size=m), min_size=n, max_size=n
        )
    )
)


@pytest.mark.thorough
@settings(max_examples=200, deadline=None)
@given(MATRIX)
def test_what_cannot_be_done_is_what_cannot_be_done(rows):
    from app.parts.quality import cold, limits
    from recsys.data import Interactions
    from recsys.evaluation import evaluate

    R = np.array([row for row in rows if any(row)])
    R = R[:, R.any(axis=0)] if len(R) else R
    if R.size == 0:
        return
    n, m = R.shape
    users, items = np.nonzero(R)
    data = Interactions.from_ids([f"u{k}" for k in users], [f"i{k}" for k in items])
    cannot, know = limits(sp.csr_matrix(R), data.time, data.rating)
    told = " ".join(cannot)
    assert ("Compare" in told) == (not can_be_evaluated(data, evaluate))
    assert ("one user only" in told) == (n == 1) and ("one item only" in told) == (m == 1)
    assert ("nothing is left to recommend." in told) == bool(R.all())
    full = int(R.all(axis=1).sum())
    if 0 < full < n:
        assert any(line.startswith(f"{full} user") and "every item" in line for line in know)
    few = [int((R.sum(1) < 5).sum()), int((R.sum(0) < 5).sum())]
    assert list(cold(sp.csr_matrix(R))) == few
    alone = int((R.sum(0) == 1).sum())
    if m > 1 and alone / m >= 0.25:
        have = "item" if alone == 1 else "items"
        assert any(line.startswith(f"{alone} {have} of {m}") for line in know)


def can_be_evaluated(data, evaluate):
    from recsys import Popularity

    try:
        evaluate(data, {"pop": Popularity()}, folds=2, metrics=["hit@1"])
    except InputError:
        return False
    return True


def test_one_row_is_warned_about():
    at = uploaded("user,item\nu,i\n")
    told = " ".join(w.value for w in at.warning)
    assert "one user only" in told and "one item only" in told and "nothing is left to recommend" in told
    assert "1 users" not in " ".join(texts(at)) and "They are of 1 user and 1 item." in texts(at)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(1e8, 2e9), min_size=1, max_size=40), st.integers(0, 3))
def test_the_course_of_time_counts_every_like_in_its_period(times, unknown):
    from app.parts.quality import over_time, span

    found = over_time(np.array([*times, *[0.0] * unknown]))
    frame, period = found
    assert frame["likes"].sum() == len(times)
    form = {"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}[period]
    counts = Counter(datetime.fromtimestamp(t, UTC).strftime(form) for t in times)
    for start, likes in zip(frame["start"], frame["likes"], strict=True):
        assert likes == counts.get(start.strftime(form), 0)
    first, last = (datetime.fromtimestamp(f(times), UTC).date().isoformat() for f in (min, max))
    assert span(np.array(times)) in (f"They are from {first} to {last}.", f"All are from {first}.")


def test_times_that_are_no_dates_have_no_course():
    from app.parts.quality import over_time

    assert over_time(np.array([1.0, 2.0, 3.0])) is None and over_time(np.zeros(3)) is None
    at = uploaded("user,item,time\n" + "".join(f"u{k},i{k % 5},{k}\n" for k in range(20)))
    press(at, "Use this table")
    assert any(c.startswith("Times are numbers and no dates") for c in captions(at))


@pytest.mark.parametrize("values", [[1, 2, 3, 4, 5], list(np.linspace(0.1, 9.9, 300))])
@pytest.mark.parametrize("least", [0.1, 3.0, 4.0])
def test_bars_of_ratings_count_each_once_on_its_side(values, least):
    from app.parts.quality import ratings

    rating = np.random.default_rng(0).choice(values, 2000)
    frame = ratings(rating, least, "liked")
    sides = frame.groupby("counts")["rows"].sum().to_dict()
    assert sides.get("liked", 0) == sum(r >= least for r in rating)
    assert sides.get("does not count", 0) == sum(r < least for r in rating)


def test_the_threshold_is_told_with_live_counts():
    from app import state
    from app.uploads import UploadedTable
    from recsys.data import Interactions

    rng = np.random.default_rng(3)
    u = np.repeat(np.arange(40), 12)
    i = np.concatenate([rng.choice(50, 12, replace=False) for _ in range(40)])
    r = rng.choice([1.0, 2, 3, 4, 5], len(u))
    data = Interactions.from_ids([f"u{k}" for k in u], [f"i{k}" for k in i], r, name="rated")
    at = open_page("data", data=state.keep_table(UploadedTable(data), "threshold"))
    for least in (4.0, 2.0, 1.0):
        box(at, "Counts as liked: rated at least").set_value(least).run()
        settle(at)
        keep = r >= least
        told = (
            f"From {least:g} on a rating counts: {keep.sum():,} of {len(r):,} ratings, of "
            f"{len(set(u[keep]))} users and {len(set(i[keep]))} items. Choose the threshold beside the page."
        )
        assert told in captions(at)
        table = next(d.value for d in at.dataframe if "rated at least" in d.value)
        assert table["ratings"].tolist() == [int((r >= g).sum()) for g in (1, 2, 3, 4, 5)]


@pytest.mark.parametrize(
    ("exponent", "told"),
    [(0.7, "rank^(-0.70)"), (-0.001, "rank^(0.00)"), (0.001, "rank^(0.00)"), (-0.5, "rank^(0.50)")],
)
def test_a_power_law_reads_as_one(exponent, told):
    from app.parts.quality import formula
    from recsys.data.statistics import PowerLaw

    assert told in formula(PowerLaw(exponent=exponent, scale=10.0, r_squared=0.9))


def test_the_fit_is_a_line_without_marks_through_the_law():
    from app.charts.data import tail as chart
    from app.parts.quality import tail
    from recsys.data.statistics import power_law

    counts = np.array([90, 40, 20, 20, 7, 3, 1, 1])
    law = power_law(counts)
    points, line = tail(counts, law, "items")
    assert points["likes"].tolist() == counts[points["rank"] - 1].tolist()
    assert line["likes"].to_numpy() == pytest.approx(
        law.scale * line["rank"].to_numpy() ** -law.exponent
    )
    drawn = chart(points, line, "Items", "rank", "likes").to_dict()
    assert [layer["mark"]["type"] for layer in drawn["layer"]] == ["circle", "line"]
    assert "point" not in drawn["layer"][1]["mark"]
    assert drawn["layer"][0]["encoding"]["x"]["title"] == "rank" and "Items" in str(drawn)


# ---- messages


LONG = "/tmp/tmpab12/upload.csv: no column 'x'; found: " + ", ".join(f"column{k}" for k in range(200))


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("/tmp/t1/upload.csv: no interactions; the file is empty", "h.csv: no interactions; the file is empty"),
        ("/tmp/t1/upload.csv, line 2: 3 fields", "h.csv, line 2: 3 fields"),
        ("/tmp/t1/upload.parquet is no readable Parquet file: x", "h.csv is no readable Parquet file: x"),
        ("/tmp/t1/upload.csv.gz: no user column", "h.csv: no user column"),
        ("users and items must differ", "h.csv: users and items must differ"),
        ("/tmp/t1/upload.arff: no column 'nonsense'; found: a", "h.csv: no column 'nonsense'; found: a"),
    ],
)  # fmt: skip
def test_a_readers_message_stays_a_sentence(message, told):
    from app.parts import upload

    assert upload.clean(message, "h.csv") == told


def test_a_long_message_ends_at_a_word():
    from app.parts import upload

    told = upload.clean(LONG, "h.csv")
    assert len(told) <= 402 and told.endswith(" …")
    assert told.removesuffix(" …").split(", ")[-1] in [f"column{k}" for k in range(200)]


# ---- in a browser


NASTY = "item_id,title,genres\n" + "".join(
    f'film {k},"{t}",Drama|War\n'
    for k, t in enumerate(
        (
            "<script>document.title='x'</script>",
            "<img src=x onerror=alert(1)>",
            "![](http://127.0.0.1:9/x)",
            "$\\href{http://127.0.0.1:9}{x}$",
            "plain",
        )
    )
)


class TestBrowser:
    pytestmark = MARKS

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "empty"),
            (b"MZ\x90\x00" + bytes(range(256)) * 50, "bad.csv"),
            (b"user_id,item_id\nu1,i1,9\n", "line 2: 3 fields where the header has 2"),
        ],
    )
    def test_bad_uploads_are_told_and_the_app_goes_on(self, tab, address, content, message):
        tab.goto(f"{address}/data")
        tab.locator("input[type=file]").first.set_input_files(
            {"name": "bad.csv", "mimeType": "text/csv", "buffer": content}
        )
        alert = tab.get_by_test_id("stAlert").first
        alert.wait_for()
        assert message in alert.inner_text() and "Traceback" not in tab.content()
        assert tab.get_by_text("Long tails").count() == (not content)

    def test_hostile_titles_and_columns_stay_text(self, tab, address):
        calls = []
        tab.on("request", lambda request: calls.append(request.url))
        tab.goto(f"{address}/data")
        files = tab.locator("input[type=file]")
        rows = RATINGS.replace("rating", "<b>![](http://127.0.0.1:9/x)", 1)
        files.nth(0).set_input_files(
            {"name": "<i>mine.csv", "mimeType": "text/csv", "buffer": rows.encode()}
        )
        tab.get_by_role("button", name="Use this table").wait_for()
        settled(tab)
        files.nth(1).set_input_files(
            {"name": "items.csv", "mimeType": "text/csv", "buffer": NASTY.encode()}
        )
        tab.get_by_text("items in items.csv").wait_for()
        settled(tab)
        tab.get_by_role("button", name="Use this table").click()
        tab.get_by_role("button", name="Recommend from it").wait_for()
        settled(tab)
        go(tab, "Recommend")
        tab.get_by_text("For u0").first.wait_for()
        settled(tab)
        assert chosen(tab, "Dataset").startswith("<i>mine.csv")
        shot(tab, "hostile-titles-1400")

        def harmless():
            assert tab.locator("img[src='x']").count() == 0
            assert not [url for url in calls if ":9/" in url or url.endswith("/x")]

        harmless()
        tab.reload()
        tab.get_by_text("For u0").first.wait_for()
        settled(tab)
        assert chosen(tab, "Dataset").startswith("<i>mine.csv"), "an upload survives a reload"
        assert tab.title() == "Recommend · recsys"
        harmless()
        go(tab, "Compare")
        assert tab.title() == "Compare · recsys"
        harmless()

    def test_from_an_upload_to_a_recommendation_and_back(self, tab, address):
        tab.goto(f"{address}/data")
        tab.locator("input[type=file]").first.set_input_files(
            {"name": "meine.csv", "mimeType": "text/csv", "buffer": DIRTY.encode()}
        )
        tab.get_by_text("Users are in Kunde, as its name says.").wait_for()
        tab.get_by_text("1 row without a user is left out").wait_for()
        shot(tab, "data-upload-preview-1400")
        settled(tab)
        tab.get_by_role("button", name="Use this table").click()
        tab.get_by_role("button", name="Recommend from it").wait_for()
        settled(tab)
        shot(tab, "data-upload-used-1400")
        tab.reload()
        tab.get_by_text("The file, its columns and its rows").click()
        tab.get_by_text("Users are in Kunde, as its name says.").wait_for()
        settled(tab)
        assert "meine.csv" in tab.get_by_role("combobox", name="Dataset").input_value()
        tab.get_by_role("button", name="Recommend from it").click()
        tab.get_by_role("heading", name="Recommend", exact=True).wait_for()
        tab.get_by_text("Buch").first.wait_for()
        settled(tab)
        assert "meine.csv" in tab.get_by_role("combobox", name="Dataset").input_value()
        go(tab, "Data")
        tab.get_by_text("Long tails").wait_for()
