"""Tables of every kind are read alike, and what cannot be read is refused in one line, soon."""

import json
import time
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from recsys import InputError, Interactions, Recommender
from recsys.recommender.filters import passing

BIG = 7_310_000_000_000_000_001  # no float
LIKES = pd.DataFrame(
    {
        "user": ["007", "8", "007", "9", "8", "9", "7"],
        "item": pd.array([BIG, BIG + 1, BIG + 2, BIG, BIG, BIG + 1, None], dtype="Int64"),
        "rating": [5.0, 4.5, 3.0, 1.0, None, 4.0, 2.0],
        "time": [
            *("2024-01-31", "2150-02-01", "1899-12-31", "2024-03-01", "2024-03-02", "2024-03-03"),
            "2024-03-04",
        ],
    }
)
FILMS = pd.DataFrame(
    {
        "item": pd.array([BIG, BIG + 1, BIG + 2, BIG + 3], dtype="Int64"),
        "price": [62.88, 89.5, 10.25, 7.0],
        "made": [1983, None, 1990, 2001],
        "day": pd.to_datetime(["2020-01-01", "2020-01-02", None, "2020-01-04"]),
        "genre": ["a|b", "b", None, "c"],
        "code": ["02139", "10001", "00501", "1"],
    }
)


def written(frame, kind, folder, name):
    """Return a table as this kind has it."""
    path = folder / f"{name}.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "tsv":
        frame.to_csv(path, index=False, sep="\t")
    elif kind == "semicolon":
        frame.to_csv(path, index=False, sep=";", decimal=",")
    elif kind in ("jsonl", "json"):
        texts = {name: frame[name].astype(str) for name in {"day"} & {*frame.columns}}
        frame = frame.assign(**texts)
        rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
        path.write_text(json.dumps(rows) if kind == "json" else "\n".join(map(json.dumps, rows)))
    elif kind == "xlsx":
        frame.astype({"item": str}).replace("<NA>", None).to_excel(path, index=False)
    elif kind == "parquet":
        frame.to_parquet(path)
    elif kind == "pandas":
        return frame
    elif kind == "polars":
        return pytest.importorskip("polars").from_pandas(frame)
    elif kind == "pyarrow":
        return pa.Table.from_pandas(frame, preserve_index=False)
    return path


@pytest.mark.parametrize(
    "kind", "csv tsv semicolon jsonl json xlsx parquet pandas polars pyarrow".split()
)
def test_every_kind_of_table_is_read_alike(kind, tmp_path):
    likes, films = (
        written(*one) for one in ((LIKES, kind, tmp_path, "likes"), (FILMS, kind, tmp_path, "films"))
    )
    data = Interactions.from_frame(likes, items=films, name="likes")
    assert data.user_ids.tolist() == ["007", "8", "9"]
    assert list(map(int, data.item_ids)) == [BIG, BIG + 1, BIG + 2]
    assert data.users.tolist() == [0, 1, 0, 2, 2] and data.items.tolist() == [0, 1, 2, 0, 1]
    assert data.rating.tolist() == [5, 4.5, 3, 1, 4]
    assert (pd.to_datetime(data.time, unit="s").year == [2024, 2150, 1899, 2024, 2024]).all()
    features = data.item_features
    assert features["price"].tolist() == [62.88, 89.5, 10.25]
    np.testing.assert_array_equal(features["made"], [1983, np.nan, 1990])
    assert features["genre"].fillna("").tolist() == ["a|b", "b", ""]
    assert features["day"].fillna("").tolist() == ["2020-01-01", "2020-01-02", ""]
    assert features["code"].tolist() == ["02139", "10001", "00501"]
    assert passing(features, {"made": (1985, None)}).tolist() == [False, False, True]
    assert passing(features, {"made": 1983, "genre": "b"}).tolist() == [True, False, False]
    assert [note for note in data.notes if "decimal comma" not in note] == [
        "user = user, item = item, time = time, rating = rating; rows: 7, pairs: 5",
        "rows without an item, left out: 1",
        "rows without a rating, left out: 1",
        "items that only the item table has, left out: 1 (cold_items=True or --cold-items takes them in)",
    ]
    cold = Interactions.from_frame(likes, items=films, cold_items=True)
    assert int(cold.item_ids[3]) == BIG + 3 and cold.item_features["made"].iloc[3] == 2001
    liked = Interactions.from_frame(likes, min_rating=4)
    assert liked.users.tolist() == [0, 1, 2] and len(liked.excluded.users) == 2


def test_cells_of_text_and_numbers_in_a_file_are_text(tmp_path):
    path = tmp_path / "t.jsonl"
    rows = [["007", 1, 4], [8, "x", "n/a"], [10**20, 2.0, 5], ["a", None, 3]]
    path.write_text(
        "\n".join(json.dumps(dict(zip(("user", "item", "rating"), r, strict=True))) for r in rows)
    )
    rows[2][0] = str(10**20)  # of which a workbook has rounded the number
    pd.DataFrame(rows, columns=["user", "item", "rating"]).to_excel(tmp_path / "t.xlsx", index=False)
    for file in (path, tmp_path / "t.xlsx"):
        data = Interactions.from_frame(file)
        assert data.user_ids.tolist() == ["007", str(10**20)] and data.rating.tolist() == [4, 5]
        assert {"rows without an item, left out: 1", "rows without a rating, left out: 1"} < {
            *data.notes
        }


@pytest.mark.parametrize("odd", ["007", "+7", " 7 ", "-0", "-7", "7.5e1", "99999999999999999999"])
def test_ids_of_text_stay_as_they_are_written(odd, tmp_path):
    (tmp_path / "t.csv").write_text("user,item\n" + "7,1\n8,2\n" * 999 + f"{odd},0\n")
    data = Interactions.from_frame(tmp_path / "t.csv")
    assert data.user_ids.tolist() == list(dict.fromkeys(["7", "8", odd.strip()]))
    assert data.item_ids.tolist() == ["1", "2", "0"]


@pytest.mark.parametrize("text", [True, False])
def test_ids_are_text_or_integers_in_all_tables(text, tmp_path):
    likes = pd.DataFrame({"user": [1, 2, 2], "item": [10, 10, 20]})
    films = pd.DataFrame({"item": [10, 20, 30], "year": [1950, 1960, 1970]})
    path = tmp_path / "t.csv"
    (likes if text else films.astype(str)).to_csv(path, index=False)
    tables = (path, films) if text else (likes, path)
    data = Interactions.from_frame(tables[0], items=tables[1], cold_items=True)
    assert data.item_ids.tolist() == (["10", "20", "30"] if text else [10, 20, 30])
    assert data.item_features["year"].tolist() == [1950, 1960, 1970]


def test_attributes_of_new_items_are_taken_in_or_told():
    films = pd.DataFrame({"item": list("xyz"), "genre": list("aab")})
    for cold in (False, True):
        given = {"items": films[:2], "cold_items": cold}
        model = Recommender("content").fit(LIKES.assign(item=list("xyxyxyx")), **given)
        model.update(items=films)
        assert ("z" in model.item_ids) == cold
        told = "taken from the item table: 1" if cold else "only the item table has, left out: 1"
        assert any(told in note for note in model.notes)


@pytest.mark.parametrize("encoding", ["nope", "hex", 5])
def test_unknown_encodings_are_refused(encoding, tmp_path):
    with pytest.raises(InputError, match="unknown encoding"):
        Interactions.from_frame(written(LIKES, "csv", tmp_path, "t"), encoding=encoding)


def test_ids_that_a_workbook_has_rounded_are_refused(tmp_path):
    path = tmp_path / "t.xlsx"
    pd.DataFrame({"user": [BIG, 7], "item": ["a", "b"]}).to_excel(path, index=False)
    with pytest.raises(InputError, match="rounded ids"):
        Interactions.from_frame(path)


def test_rounded_ids_are_refused_or_told():
    frame = pd.DataFrame({"user": [float(BIG), np.nan], "item": ["a", "b"]})
    with pytest.raises(InputError, match="rounded ids"):
        Interactions.from_frame(frame)
    told = Interactions.from_frame(pd.DataFrame({"user": ["1.2E+12", "1,2E+12"], "item": ["a", "b"]}))
    assert any("have lost digits, in rows: 2" in note for note in told.notes)


@pytest.mark.parametrize("stray", [-1, 1, -62_135_596_800_000])
@pytest.mark.parametrize("unit", [10**3, 10**6])
def test_a_stray_number_among_epochs_is_left_out(stray, unit):
    times = (1_300_000_000 + np.arange(50)) * unit
    times[5] = stray * unit // 1000
    frame = pd.DataFrame({"user": np.arange(50), "item": np.arange(50) % 7, "timestamp": times})
    data = Interactions.from_frame(frame)
    assert (
        data.time.max() == 1_300_000_049 and "rows whose time cannot be read, left out: 1" in data.notes
    )


def test_numbers_that_are_dates_and_numbers_that_are_no_times():
    frame = pd.DataFrame(
        {"user": ["a", "b"], "item": ["x", "y"], "date": [20240131180500, 20240201000000]}
    )
    assert Interactions.from_frame(frame).time.tolist() == [1706724300.0, 1706745600.0]
    with pytest.raises(InputError, match="not times"):
        Interactions.from_frame(frame.assign(date=[88_888_888_888, 99_999_999_999]))


def test_a_column_is_judged_by_all_of_its_rows(tmp_path):
    rows = 2000
    frame = pd.DataFrame({"user": np.arange(rows) % 50, "item": np.arange(rows) % 7, "rating": 4.0})
    frame.loc[:299, "rating"] = np.nan
    frame.to_csv(tmp_path / "late.csv", index=False)
    frame.to_parquet(tmp_path / "late.parquet")
    notes = [Interactions.from_frame(tmp_path / name).notes[1:] for name in ("late.csv", "late.parquet")]
    assert notes[0] == notes[1] and "rows without a rating, left out: 300" in notes[0]


REFUSED = {
    "open quote": (
        "user,item\n" + "a,b\n" * 5 + 'a,"b\n' + "a,b\n" * 10**5,
        "line 7: unclosed quote",
    ),
    "quote closed later": (
        "user,item,rating\n" + "a,b,1\n" * 5 + 'a,"b,1\n' + "a,b,1\n" * 50 + 'a,"b,1\n' + "a,b,1\n",
        "line 7: unclosed quote",
    ),
    "quote in the last row": ("user\titem\n" + "a\tb\n" * 5 + 'a\t"b\n', "line 7: unclosed quote"),
    "quotes in two lines": ('user,item,note\na,b,"c\na,b,"d\n', "line 2: unclosed quote"),
    "ragged": ("user,item,rating\n" + "x\n" * 10**6, "line 2: 1 fields, but 3 in the first line"),
    "columns": ("user,item," + ",".join(f"c{k}" for k in range(10_000)) + "\na,b\n", "10,002 columns"),
    "matrix": (
        "user,placebo,stars," + ",".join(f"band {k}" for k in range(60)) + "\n1" + ",0" * 62,
        "melt",
    ),
    "matrix without a header": ("," + ",".join(map(str, range(40))) + "\n1" + ",0" * 40, "melt"),
    "matrix of roles": ("user,Track,Score," + "x" + ",y" * 40 + "\n1,0,0" + ",0" * 41 + "\n", "melt"),
    "no columns": ("a,b,reviews.username\n1,2,3\n", "no user column.*found: reviews.username, a, b"),
    "header only": ("user,item\n", "the table has no rows"),
    "empty": ("", "the file is empty"),
    "infinite": ("user,item,rating\na,b,1e39\n", "beyond"),
    "two ways": ("user,item,date\na,b,01/02/2020\n", "day_first=True"),
    "python": ("{'user': 'a', 'item': 'b'}\n", "neither JSON"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_soon(case, tmp_path):
    text, message = REFUSED[case]
    path = tmp_path / "t.csv"
    path.write_text(text)
    begin = time.process_time()
    with pytest.raises(InputError, match=message) as error:
        Interactions.from_frame(path)
    assert time.process_time() - begin < 2 and "\n" not in str(error.value)


def test_a_bomb_and_a_line_without_end_are_refused(tmp_path):
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", b"user,item\n" + b"x" * (1 << 26))
    with pytest.raises(InputError, match="unpack|bytes"):
        Interactions.from_frame(path)


def test_nan_in_json_is_an_empty_cell(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(
        '{"user": NaN, "item": "a"}\n{"user": 3, "item": "b"}\n{"user": Infinity, "item": "b"}\n'
    )
    data = Interactions.from_frame(path)
    assert data.user_ids.tolist() == ["3"] and "rows without a user, left out: 2" in data.notes


def test_rows_of_more_fields_are_left_out_and_counted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("user,item,rating\n" + "a,b,3\nc,d,4\n" * 20 + "x,y,3,4\n" + "u,v\n")
    data = Interactions.from_frame(path)
    assert "rows with another number of fields than the header, left out: 1" in data.notes
    assert "rows without a rating, left out: 1" in data.notes and data.n_users == 2


def test_quoted_cells_may_hold_line_ends_and_delimiters(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('user,item,text\na,b,"one, ""two""\nthree"\nc,7" single,5" disk\nd,"x" y,z\n')
    data = Interactions.from_frame(path)
    assert data.item_ids.tolist() == ["b", '7" single', "x y"] and len(data.notes) == 1
    path.write_text('user,item,n\na,"b,1\nc,d",2\n')
    assert "is an id of several lines, in rows: 1" in Interactions.from_frame(path).notes[1]


DATES = {
    "31. 12. 2020|1. 2. 2021": ("2020-12-31", "2021-02-01"),
    "2020. 12. 31.|2021. 2. 1.": ("2020-12-31", "2021-02-01"),
    "01.02.2021|03.04.2021": ("2021-02-01", "2021-04-03"),
    "12/31/2020 5:07 PM|1/2/2021 3:00 AM": ("2020-12-31 17:07", "2021-01-02 03:00"),
    "31/12/20 10:05|01/02/21 11:00": ("2020-12-31 10:05", "2021-02-01 11:00"),
    "31-Dec-20|01-Feb-21": ("2020-12-31", "2021-02-01"),
    "05 23, 2014|12 1, 2015": ("2014-05-23", "2015-12-01"),
    "2020-12-31T10:05:00Z|2021-02-01 11:00+01:00": ("2020-12-31 10:05", "2021-02-01 10:00"),
    "Thu Dec 31 10:05:00 +0000 2020|Mon Feb 01 11:00:00 +0000 2021": (
        *("2020-12-31 10:05", "2021-02-01 11:00"),
    ),
    "20240131|20240201": ("2024-01-31", "2024-02-01"),
}


@pytest.mark.parametrize("cells", DATES)
def test_dates_of_many_forms(cells):
    frame = pd.DataFrame({"user": ["a", "b"], "item": ["x", "y"], "date": cells.split("|")})
    expected = [pd.Timestamp(one, tz="UTC").timestamp() for one in DATES[cells]]
    assert Interactions.from_frame(frame).time.tolist() == expected


def test_a_decimal_comma_beside_thousands_points(tmp_path):
    (tmp_path / "t.csv").write_text("user;item;rating\na;x;1.234,5\nb;y;4\n")
    assert Interactions.from_frame(tmp_path / "t.csv").rating.tolist() == [1234.5, 4.0]
