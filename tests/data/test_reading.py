"""What becomes of every row, what decides it, and what overrules it."""

import bz2
import gzip
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError, Interactions, Recommender, cli
from recsys.data import delimited
from recsys.data.reading import read
from recsys.data.roles import WORDS, Looks, find_roles, words_of
from recsys.data.row_counts import FAULTS
from recsys.utils.progress import listening

CELLS = st.sampled_from(["a", "b", " c", "", "d e", "total"])
RATINGS = st.sampled_from(["1", "5", "3.5", "4,5", "", "good", "nan", "0", "-2"])
TIMES = st.sampled_from(["1", "20", "", "2020-01-02", "2021-03-04", "yesterday", "1577836800000"])
ROWS = st.lists(
    st.tuples(CELLS, CELLS, RATINGS, TIMES, st.sampled_from([0, 0, 0, 0, 1, -1])),
    min_size=1,
    max_size=14,
)


def accounted(data, rows):
    counts = data.counts
    assert counts.rows == rows == counts.kept + counts.repeated + sum(counts.left_out.values())
    assert counts.kept == len(data.users) and set(counts.left_out) <= set(FAULTS)
    assert all(number > 0 for number in counts.left_out.values())
    told = re.search(
        r"([\d,]+) rows?, ([\d,]+) interactions?(?:, ([\d,]+) merged)?, ([\d,]+) left out", data.notes[0]
    )
    rows, pairs, merged, out = (int((text or "0").replace(",", "")) for text in told.groups())
    assert rows == pairs + merged + out


@pytest.mark.thorough
@settings(max_examples=40, deadline=None)
@given(ROWS, st.sampled_from(["file", "frame", "page"]), st.sampled_from([None, "last", "count"]))
def test_every_row_is_kept_merged_or_left_out_for_a_reason(
    tmp_path_factory, rows, interface, duplicates
):
    if interface == "frame":
        rows = [(*row[:4], 0) for row in rows]
        table = pd.DataFrame([row[:4] for row in rows], columns=["user", "item", "rating", "time"])
    else:
        table = tmp_path_factory.mktemp("t") / "t.csv"
        lines = [";".join([u, i, r, t, "more"][: 4 + wrong]) for u, i, r, t, wrong in rows]
        table.write_text("\n".join(["user;item;rating;time", *lines]) + "\n")
    try:
        data = read(table, interface="page" if interface == "page" else "python", duplicates=duplicates)
    except InputError as error:
        assert "\n" not in str(error)
        return
    accounted(data, len(rows))


@pytest.mark.thorough
def test_five_kinds_of_dirt_at_once_and_the_note_alone_tells(tmp_path, capfd):
    rng = np.random.default_rng(0)
    n = 200_000
    users, items = rng.integers(1, 5000, n), rng.integers(1, 900, n)
    stars, seconds = rng.integers(1, 6, n), rng.integers(1_400_000_000, 1_500_000_000, n)
    lines = [f"{u};{i};{s},5;{t}" for u, i, s, t in zip(users, items, stars, seconds, strict=True)]
    lines[100] = ";7;3,5;1400000000"
    lines[2000] = "5;;3,5;1400000000"
    lines[30_000] = "5;7;good;1400000000"
    lines[40_000] = "5;7;3,5;1400000000;more"
    lines[50_000] = "user;item;rating;time"
    lines[60_000:60_003] = ["5;8;0;1400000000", "6;8;-1;1400000000", "7;8;3,5;someday"]
    path = tmp_path / "dirty.csv"
    path.write_bytes(("user;item;rating;time\n" + "\n".join(lines) + "\nTotal;;;\n").encode("cp1252"))
    data = Interactions.from_frame(path)
    accounted(data, n + 1)
    left = {"fields": 1, "header": 1, "totals": 1, "user": 1, "item": 1, "rating": 1, "time": 1}
    assert data.counts.left_out == left | {"zero": data.counts.left_out["zero"]}
    first = {
        "fields": 40_002,
        "header": 50_002,
        "user": 102,
        "item": 2002,
        "rating": 30_002,
        "time": 60_004,
    }
    told = " | ".join(data.notes)
    for fault, line in first.items():
        assert f"1 {FAULTS[fault][0]} is left out (line {line})" in told
    assert "rated at or below 0" in told and "decimal commas" in told and "1 row of totals" in told
    code = cli.call(
        ["fit", "--interactions", str(path), "--model", "popularity", "--out", str(tmp_path / "m")]
    )
    err = capfd.readouterr().err
    assert code == 0 and all(
        f"note: dirty.csv: {note}" in err for note in data.notes if "rating=" not in note
    )


# ---- headers, and what overrules decisions

HEADERS = {
    "numbers": ("1,11,5\n1,5,1\n", False),
    "known names": ("user_id,item_id\n1,2\n", True),
    "unknown names": ("wer,wovon\nann,tee\nbob,rum\n", True),
    "a cell that comes again": ("ann,tee\nann,rum\nbob,rum\n", False),
    "ids of one shape": ("u01,i99\nu02,i98\nu03,i97\n", False),
    "dates": ("ann,2020-01-31\nbob,2020-02-01\n", False),
    "a header that comes again": ("wer,was\nann,tee\nwer,was\nbob,rum\n", True),
}


@pytest.mark.parametrize("case", HEADERS)
def test_a_header_is_told_from_cells(tmp_path, case):
    text, header = HEADERS[case]
    path = tmp_path / "t.csv"
    path.write_text(text)
    names = ["first", "second", "third"][: text.split("\n")[0].count(",") + 1]
    rows = text.strip().split("\n")[1 if header else 0 :]
    rows = [row for row in rows if not header or row != text.split("\n")[0]]
    first = text.split("\n")[0].split(",") if header else ["1", "2"]
    data = Interactions.from_frame(path, user=first[0], item=first[1])
    assert len(data.users) == len(rows)
    assert any("is taken for cells and not for a header" in note for note in data.notes) != header
    named = Interactions.from_frame(path, names=names, user="first", item="second")
    assert named.counts.rows == len(text.strip().split("\n"))
    forced = Interactions.from_frame(path, names=names, header=True, user="first", item="second")
    assert forced.counts.rows == named.counts.rows - 1


@pytest.mark.thorough
def test_each_word_overrules_in_python_and_in_the_terminal(tmp_path, capfd):
    path = tmp_path / "t.txt"
    path.write_bytes("käse|1,5|01/02/2020|u1|3\nmilch|2,5|03/02/2020|u2|4\n".encode("cp1250"))
    words = dict(
        names=["what", "stars", "day", "who", "n"], delimiter="|", encoding="cp1250", decimal=",", day_first=True,
        user="who", item="what", rating="stars", time="day", weight="n",
    )  # fmt: skip
    data = Interactions.from_frame(path, **words)
    assert data.item_ids.tolist() == ["käse", "milch"] and data.rating.tolist() == [1.5, 2.5]
    assert data.time.tolist() == [1580515200.0, 1580688000.0] and data.weight.tolist() == [3, 4]
    assert Interactions.from_frame(path, **words | {"day_first": False}).time[0] == 1577923200.0
    with pytest.raises(
        InputError, match="1 Feb 2020 or 2 Jan 2020: say day_first=True or day_first=False"
    ):
        Interactions.from_frame(path, **words | {"day_first": None})
    terminal = [
        "fit", "--interactions", str(path), "--model", "als:factors=2", "--out", str(tmp_path / "m"), "--names",
        "what,stars,day,who,n", "--delimiter", "|", "--encoding", "cp1250", "--decimal", ",", "--user-col", "who",
        "--item-col", "what", "--rating-col", "stars", "--time-col", "day", "--weight-col", "n",
    ]  # fmt: skip
    assert cli.call([*terminal, "--day-first", "--duplicates", "sum"]) == 0
    assert f"note: t.txt: {data.notes[0]}" in capfd.readouterr().err
    assert cli.call(terminal) == 2
    assert "say --day-first or --no-day-first" in capfd.readouterr().err
    assert (
        cli.call(["fit", "--interactions", str(path), "--user-col", "u", "--out", str(tmp_path / "m")])
        == 2
    )
    assert "name them with --names, or say --header" in capfd.readouterr().err
    with pytest.raises(InputError, match="names is for files; a table has its columns"):
        Interactions.from_frame(pd.DataFrame({"user": [1], "item": [2]}), names=["a", "b"])


# ---- roles


def test_words_are_written_as_they_are_compared():
    for role, words in WORDS.items():
        for word in words:
            assert words_of(word) == [word], (role, word)


NAMES = {
    "exact before translated": (["title", "user_id", "item_id", "score"], [1, 2, 3, None]),
    "German": (["Kunden-Nr.", "Artikelnummer", "Bewertung", "Datum"], [0, 1, 2, 3]),
    "no rating among counts": (["user", "item", "average_rating", "ratings_count"], [0, 1, None, None]),
    "a session is a user where there is none": (["session_id", "item_id"], [0, 1, None, None]),
    "and else not": (["session_id", "user_id", "item_id"], [1, 2, None, None]),
}


@pytest.mark.parametrize("case", NAMES)
def test_names_tell_roles(case):
    names, wanted = NAMES[case]
    look = Looks(1.0, 1.0, 1.0, 50, 1.0, 5.0, 200)
    found = find_roles(names, [look] * len(names), {}, True)
    assert [found.user, found.item, found.rating, found.time] == wanted


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text(max_size=6), min_size=2, max_size=5, unique=True),
    st.lists(st.sampled_from([Looks(1, 1, 0, 5, 1, 5, 90), Looks(0, 0, 1, 9, 0, 0, 90), Looks(0, 0, 0, 50, 0, 0, 90)]), min_size=5, max_size=5),
)  # fmt: skip
def test_no_column_has_two_roles_and_without_a_header_content_gives_none(names, looks):
    for header in (True, False):
        found = find_roles(names, looks[: len(names)], {}, header)
        chosen = [k for k in (found.user, found.item, found.rating, found.time) if k is not None]
        assert len(set(chosen)) == len(chosen)
        assert header or (found.rating is None and found.time is None)


# ---- what an interaction is, in every interface

VOTES = pd.DataFrame(
    {
        "user": ["a", "a", "b", "b", "c"],
        "item": ["x", "bad", "x", "bad", "x"],
        "rating": [1, -1, 1, 0, 1],
    }
)


def test_ratings_at_or_below_0_are_no_interactions_anywhere(tmp_path):
    from recsys.evaluation import evaluate

    data = Interactions.from_frame(VOTES)
    assert data.item_ids.tolist() == ["x"] and data.counts.left_out == {"zero": 2}
    model = Recommender("popularity").fit(VOTES)
    assert model.item_ids.tolist() == ["x"]
    raw = Interactions.from_ids(VOTES.user, VOTES.item, VOTES.rating)
    assert Recommender("popularity").fit(raw).item_ids.tolist() == ["x"]
    with pytest.raises(InputError, match="every profile is too short"):
        evaluate(raw, {"popularity": Recommender("popularity").fit(raw).ranker}, folds=2)
    again = Recommender("ease").fit(
        pd.concat([VOTES, pd.DataFrame({"user": ["a", "b"], "item": ["y", "z"], "rating": [2, 2]})])
    )
    again.update(pd.DataFrame({"user": ["a", "c"], "item": ["y", "y"], "rating": [-1, 3]}))
    rows = {
        str(u): {str(i) for i in again.item_ids[again.package.user_items[k].indices]}
        for k, u in enumerate(again.user_ids)
    }
    assert rows == {"a": {"x"}, "b": {"x", "z"}, "c": {"x", "y"}}
    kept = Interactions.from_frame(VOTES, min_rating=-1)
    assert len(kept.users) == 5 and kept.positive() is kept


# ---- counts

PLAYS = pd.DataFrame(
    {"user": ["a", "a", "b", "b", "b"], "item": ["x", "x", "x", "y", "z"], "plays": [3, 4, 1, 9, 0]}
)


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ({"weight": "plays"}, [7, 1, 9]),
        ({"weight": "plays", "duplicates": "last"}, [4, 1, 9]),
        ({"weight": "plays", "duplicates": "count"}, [2, 1, 1]),
        ({"duplicates": "count"}, [2, 1, 1, 1]),
        ({}, [1, 1, 1, 1]),
    ],
)
def test_counts_are_summed_counted_or_the_latest(words, values):
    data = Interactions.from_frame(PLAYS, **words)
    assert data.matrix.data.tolist() == values and data.matrix.dtype == np.float32
    accounted(data, 5)
    assert any("may be counts, and is not read: weight='plays'" in note for note in data.notes) != (
        "weight" in words
    )


def test_counts_reach_als_and_others_say_that_they_leave_them():
    data = Interactions.from_frame(PLAYS, weight="plays")
    model = Recommender("als:factors=2").fit(data)
    assert model.package.user_items.data.tolist() == [7, 1, 9] and model.notes == data.notes
    other = Recommender("popularity").fit(data)
    assert other.package.user_items.data.tolist() == [1, 1, 1]
    assert other.notes[-1] == "popularity takes every interaction alike: weights are left out"
    with pytest.raises(
        InputError, match="duplicates='sum' adds weights up: name their column with weight"
    ):
        Interactions.from_frame(PLAYS, duplicates="sum")


# ---- forms of frames


def test_ids_in_an_index_and_whole_floats():
    frame = pd.DataFrame({"user_id": [1, None, 2], "item_id": [7, 7, 8], "r": [1, 1, 1]})
    data = Interactions.from_frame(frame.dropna())
    assert data.user_ids.tolist() == [1, 2] and all(type(k) is int for k in data.user_ids)
    indexed = Interactions.from_frame(frame.dropna().set_index(["user_id", "item_id"]))
    assert indexed.user_ids.tolist() == [1, 2]
    assert "user_id and item_id taken from the index, as by reset_index()" in indexed.notes
    twice = pd.DataFrame([[1, 2, 3, 3]], columns=["user_id", "item_id", "stock", "stock"])
    with pytest.raises(InputError, match="2 columns are called 'stock'; rename all but one"):
        Interactions.from_frame(twice)


# ---- what else cells and columns may be like


@pytest.mark.parametrize(
    ("cells", "values", "told"),
    [
        (["1,234", "2,500,000", "7"], [1234, 2_500_000, 7], "1,234 is read as 1234"),
        (["1,234.5", "7.25"], [1234.5, 7.25], "1,234.5 is read as 1234.5"),
        (["1.234,5", "7,25"], [1234.5, 7.25], "1.234,5 is read as 1234.5"),
        (["1,25", "1.234,5", "900"], [1.25, 1234.5, 900], "1.234,5 is read as 1234.5"),
        (["1.234", "7.25"], [1.234, 7.25], ""),
        (["1,2345", "7,25"], [1.2345, 7.25], ""),
    ],
)
def test_thousands_are_told_from_decimals(cells, values, told):
    frame = pd.DataFrame({"user": range(len(cells)), "item": "x", "n": cells})
    data = Interactions.from_frame(frame, weight="n")
    assert data.weight.tolist() == values
    assert [note for note in data.notes if "thousands" in note] == (
        [f"n has thousands separators: {told}"] if told else []
    )


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1251", "Пользователь;Товар;Оценка\nИван;Чайник;4\nОльга;Чайник;5\n"),
        ("koi8-r", "Пользователь;Товар;Оценка\nИван;Чайник;4\nОльга;Чайник;5\n"),
        ("cp1253", "user;item;rating\nΜαρία;Ελιές;4\nΓιώργος;Ελιές;5\n"),
        ("cp1250", "Zákazník;Zboží;Hodnocení\nJiří;Příběh;4\nZdeněk;Příběh;5\n"),
        ("cp1250", "Osoba;Książka;Ocena\nŁukasz;Żółć;4\nAnna;Żółć;5\n"),
        ("cp1252", "Bruger;Vare;Karakter\nSøren;Rødgrød på bordet;4\nPål;Rødgrød på bordet;5\n"),
        ("cp1252", "Kund;Vara;Betyg\nÅke;Kött på hög;4\nÖrjan;Kött på hög;5\n"),
        ("cp1252", "utilisateur;livre;note\nZoé;Être où là;4\nIñaki;Être où là;5\n"),
    ],
)
def test_encodings_of_one_byte_are_told(tmp_path, encoding, text):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(encoding))
    data = Interactions.from_frame(path)
    rows = [line.split(";") for line in text.split("\n")[1:3]]
    assert data.user_ids.tolist() == [row[0] for row in rows] and data.item_ids.tolist() == [rows[0][1]]
    assert data.rating.tolist() == [4, 5] and f"read as {encoding} text" in data.notes


DAYS = {
    "Date d'achat": True, "Besteldatum": True, "Bewertet am": True, "eventdate": True, "date_reviews": True,
    "release_date": False, "Geburtsdatum": False, "published": False, "x": False,
}  # fmt: skip


@pytest.mark.parametrize("name", DAYS)
def test_a_date_of_the_interaction_is_a_time_by_its_name(name):
    frame = pd.DataFrame({"user": [1, 2], "item": [3, 4], name: ["2020-01-02", "2020-01-03"]})
    assert (Interactions.from_frame(frame).columns.time == name) == DAYS[name]
    frame[name] = ["soon", "later"]
    assert Interactions.from_frame(frame).time is None


def test_columns_about_an_item_are_not_the_item():
    names = ["customer_country", "product_category", "client", "product_name", "product_no"]
    look = Looks(0.0, 0.0, 0.0, 50, np.nan, np.nan, 200)
    found = find_roles(names, [look] * 5, {}, True)
    assert (found.user, found.item) == (2, 4)


def test_ids_that_may_be_none_are_told():
    frame = pd.DataFrame({"user": ["a", "NULL", "NULL"], "item": ["x", "y", "z"]})
    data = Interactions.from_frame(frame)
    assert data.n_users == 2 and any("user: 'NULL' in 2 rows is read as an id" in n for n in data.notes)


def test_lines_of_python_that_are_no_literals_are_refused(tmp_path):
    path = tmp_path / "t.json"
    for line in ("{'user': open('x')}", "{'user': " + "[" * 5000, "{'user': 1"):
        path.write_text("{'user': 'a', 'item': 'b'}\n" + line + "\n")
        with pytest.raises(InputError, match=r"t\.json, line 2"):
            Interactions.from_frame(path)


# ---- weights of new rows


@pytest.mark.parametrize("model", ["als:factors=2"])
def test_weights_of_new_rows_are_added(model, tmp_path):
    plays = PLAYS[PLAYS.plays > 0]
    more = pd.DataFrame({"user": ["a", "b", "d"], "item": ["x", "x", "w"], "plays": [5, 2, 6]})
    fitted = Recommender(model).fit(plays, weight="plays")
    fitted.save(tmp_path / "m")
    import recsys

    for one in (fitted, recsys.load(tmp_path / "m")):
        one.update(more)
        whole = Interactions.from_frame(pd.concat([plays, more]), weight="plays")
        got, want = one.package.user_items, whole.matrix
        assert one.user_ids.tolist() == whole.user_ids.tolist()
        assert (got[:, [list(one.item_ids).index(i) for i in whole.item_ids]] != want).nnz == 0
    with pytest.raises(InputError, match="no column 'plays'"):
        fitted.update(more.drop(columns="plays"))


@pytest.mark.parametrize(
    ("ending", "packed"), [(".csv", bytes), (".csv.gz", gzip.compress), (".csv.bz2", bz2.compress)]
)
def test_reading_reports_how_much_of_the_file_is_read(tmp_path, ending, packed):
    rows = [f"u{k % 1000},i{k % 77}" for k in range(20_000)]
    path = tmp_path / f"likes{ending}"
    path.write_bytes(packed("\n".join(["user,item", *rows]).encode()))
    heard = []
    with listening(lambda step, done, total: heard.append((step, done, total))):
        read(path)
    assert {(step, total) for step, _, total in heard} == {(f"reading {path.name}", path.stat().st_size)}
    assert heard[-1][1] == path.stat().st_size


def test_what_is_read_as_weights_is_not_proposed_as_a_rating():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"u": rng.integers(30, size=300), "i": rng.integers(30, size=300), "n": rng.integers(1, 6, 300)})  # fmt: skip
    table["u"], table["i"] = "u" + table["u"].astype(str), "i" + table["i"].astype(str)
    told = "n (1 to 5) may be one, and is not read"
    assert any(told in note for note in Interactions.from_frame(table, user="u", item="i").notes)
    found = Interactions.from_frame(table, user="u", item="i", weight="n")
    assert not any(told in note for note in found.notes)


@pytest.mark.parametrize("seed", range(3))
def test_all_threads_read_what_one_does_in_order(tmp_path, monkeypatch, seed):
    monkeypatch.setattr(delimited, "BLOCK", 2_000)
    rng = np.random.default_rng(seed)
    lines = [
        f"u{u},i{i},{r}"
        for u, i, r in zip(*(rng.integers(1, top, 4_000) for top in (300, 500, 6)), strict=True)
    ]
    ragged, comments = rng.choice(4_000, (2, 150), replace=False)
    for at in ragged:
        lines[at] += ",more"
    for at in comments:
        lines[at] = f"# {at}"
    path = tmp_path / "t.csv"
    path.write_text("user,item,rating\n" + "\n".join(lines) + "\n")
    whole, steps = Interactions.from_frame(path), []
    with listening(lambda *step: steps.append(step)):
        blocks = Interactions.from_frame(path)
    assert len(steps) > 20
    for name in ("users", "items", "rating", "user_ids", "item_ids"):
        assert getattr(whole, name).tolist() == getattr(blocks, name).tolist(), name
    assert whole.notes == blocks.notes and whole.counts == blocks.counts
    assert whole.counts.left_out == {"fields": 150} and any(
        "150 lines that begin with #" in n for n in whole.notes
    )


def test_what_repeated_pairs_become_is_checked_of_ids_too():
    with pytest.raises(InputError, match="duplicates must be"):
        Interactions.from_ids(["a", "a"], ["x", "x"], duplicates="max")
    with pytest.raises(InputError, match="duplicates='sum' adds weights up"):
        Interactions.from_ids(["a", "b"], ["x", "x"], duplicates="sum")


def test_a_user_of_an_item_called_total_stays_and_a_row_of_totals_goes():
    rows = pd.DataFrame({"user": ["a", "b", "c"], "item": ["x", "x", "Total"]})
    assert Interactions.from_frame(rows).user_ids.tolist() == ["a", "b", "c"]
    rows = pd.DataFrame({"user": ["a", "b", "Total"], "item": ["x", "y", None], "rating": [1, 2, 3]})
    assert Interactions.from_frame(rows).user_ids.tolist() == ["a", "b"]


@pytest.mark.parametrize("void", ["", "NA", "N/A", "#N/A", "null", "nan", "None"])
def test_cells_that_mean_nothing_are_missing_numbers_and_times(tmp_path, void):
    path = tmp_path / "t.csv"
    path.write_text(
        f"user,item,rating,time\na,x,5,2026-01-01\nb,x,{void},{void}\nc,y,4,2026-01-02\nd,y,4,2026-01-03\n"
    )
    found = Interactions.from_frame(path)
    assert found.user_ids.tolist() == ["a", "c", "d"] and found.rating.tolist() == [5, 4, 4]


@pytest.mark.parametrize("block", range(1, 12))
def test_a_delimiter_of_two_characters_is_found_across_blocks(block):
    text = b"1::2::::97\n3::4::5::98\n"
    parts = iter([text[k : k + block] for k in range(0, len(text), block)])
    whole = b"".join(delimited._replaced(parts, "::"))
    assert whole == text.replace(b"::", b"\x1f")
