"""Files nobody vouches for: read exactly, or refused with file, line, value and remedy."""

import gzip
import os

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from recsys import InputError, make_ranker
from recsys.data import read_features, read_interactions
from recsys.data.readers import read_table
from recsys.rankers import fit_package


@pytest.fixture
def file(tmp_path):
    def write(content, name="ratings.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


HEAD = "user_id,item_id,rating\n"

REFUSED = {
    "empty": ("", "no interactions; the file is empty"),
    "blank lines": ("\n\n", "no interactions"),
    "comments only": ("# a\n# b\n", "no interactions"),
    "header only": (HEAD, "no interactions; there is a header only"),
    "all rows long": (HEAD + "a,b,1,x\nc,d,2,y\n", "line 2: 4 fields where the header has 3"),
    "half of the rows long": (HEAD + "a,b,1\nc,d,2,9\n", "line 3: 4 fields where the header has 3"),
    "half of the rows short": (HEAD + "a,b,1\nc,d\n", "line 3: 2 fields where the header has 3"),
    "short row after comments": ("# x\n\n" + HEAD + "# y\nc,d\n", "line 5: 2 fields"),
    "half of the ratings": (HEAD + "a,b,1\nc,d,good\n", r"line 3: rating cannot be read \('good'\), nor can 1 of 2 cells"),
    "infinite": (HEAD + "a,b,1\nc,d,-inf\n", "line 3: rating cannot be read"),
    "no user column": (
        "xx,item_id\na,b\n",
        "no user column; found: xx, item_id. Name it with user",
    ),
    "two user columns": ("user_id,user_id,item_id\na,b,c\n", "2 columns are called 'user_id'"),
    "no user at all": (HEAD + ",b,1\n,c,2\n", "no row can be used: 2 rows without a user"),
    "damaged UTF-8": ("user_id,item_id\né,b\n".encode() + b"a,caf\xe9,1\n", "line 3: byte 0xe9 is not utf-8"),
    "nul": (HEAD.encode() + b"a,b\x00,1\n", "line 2: a NUL byte"),
    "zip": (b"PK\x03\x04rest", "a truncated or damaged zip file"),
    "program": (b"MZ\x90rest", "a program, not text"),
    "a date in two ways": (
        "user_id,item_id,timestamp\na,b,01/02/2020\n",
        "may be 1 Feb 2020 or 2 Jan 2020: say day_first=True or day_first=False",
    ),
    "a date that is none": (
        "user_id,item_id,timestamp\na,b,2020-01-01\na,c,2020-02-30\n",
        r"line 3: timestamp cannot be read \('2020-02-30'\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_file_and_line(file, case):
    content, text = REFUSED[case]
    path = file(content)
    with pytest.raises(InputError, match=text) as caught:
        read_interactions(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_named_column_that_is_absent_gets_a_suggestion(file):
    path = file("user_id,item_id,stars\na,b,1\n")
    with pytest.raises(InputError, match=r"no column 'star' \(did you mean 'stars'\?\); found: user_id"):
        read_interactions(path, rating="star")


ODD = [
    "NA",
    "null",
    "None",
    "nan",
    "001",
    "1",
    "1.0",
    "9223372036854775808",
    "9007199254740993",
    "🎬",
    "x" * 10_000,
    " spaced ",
    "=1+1",
    "-5",
    "true",
    "é",
    "a'b",
    "#notacomment",
]


def test_ids_are_kept_exactly(file):
    rows = "".join(f"{user},{item}\n" for user in ODD for item in ODD if not user.startswith("#"))
    data = read_interactions(file("user_id,item_id\n" + rows))
    assert set(data.item_ids) == {name.strip() for name in ODD}
    assert set(data.user_ids) == {name.strip() for name in ODD if not name.startswith("#")}
    assert "user_id: blanks around ids are taken away" in data.notes


VARIANTS = {
    "csv": ("user_id,item_id,rating\n1,a,3\n2,b,4\n", "r.csv", {}),
    "tsv": ("user_id\titem_id\trating\n1\ta\t3\n2\tb\t4\n", "r.tsv", {}),
    "semicolon": ("user_id;item_id;rating\n1;a;3\n2;b;4\n", "r.csv", {}),
    "double colon": ("1::a::3\n2::b::4\n", "r.dat", {"names": ("user_id", "item_id", "rating")}),
    "bom": ("﻿user_id,item_id,rating\n1,a,3\n2,b,4\n", "r.csv", {}),
    "crlf": ("user_id,item_id,rating\r\n1,a,3\r\n2,b,4\r\n", "r.csv", {}),
    "cr": ("user_id,item_id,rating\r1,a,3\r2,b,4\r", "r.csv", {}),
    "mixed ends": ("user_id,item_id,rating\r\n1,a,3\n2,b,4", "r.csv", {}),
    "quoted": ('user_id,item_id,rating\n"1",a,"3"\n2,"b",4\n', "r.csv", {}),
    "other names": (
        "u,i,s\n1,a,3\n2,b,4\n",
        "r.csv",
        {"user": "u", "item": "i", "rating": "s"},
    ),
    "gzip": (gzip.compress(b"user_id,item_id,rating\n1,a,3\n2,b,4\n"), "r.csv.gz", {}),
    "gzip unnamed": (gzip.compress(b"user_id,item_id,rating\n1,a,3\n2,b,4\n"), "r.csv", {}),
}


@pytest.mark.parametrize("case", VARIANTS)
def test_every_form_reads_the_same(file, case):
    content, name, options = VARIANTS[case]
    data = read_interactions(file(content, name), **options)
    assert list(data.user_ids) == ["1", "2"] and list(data.item_ids) == ["a", "b"]
    assert data.rating.tolist() == [3, 4] and data.users.tolist() == [0, 1]


def test_quoted_fields_may_hold_separators_and_line_ends(file):
    data = read_interactions(file('user_id,item_id\n"a,1","b\nc"\nd,e\n'))
    assert list(data.user_ids) == ["a,1", "d"] and list(data.item_ids) == ["b\nc", "e"]


def test_endings_are_known_in_any_case(tmp_path):
    frame = pd.DataFrame({"user_id": ["a", "b"], "item_id": ["x", None]})
    frame.to_parquet(tmp_path / "R.PARQUET")
    table = read_table(tmp_path / "R.PARQUET")
    assert [cells.tolist() for cells in table.columns] == [["a", "b"], ["x", ""]]
    (tmp_path / "R.XLSX").write_bytes(b"no workbook")
    with pytest.raises(InputError, match="Excel"):
        read_table(tmp_path / "R.XLSX")


def test_ids_are_no_fractions(tmp_path):
    pd.DataFrame({"user_id": ["a", "b"], "item_id": [0.5, 1.5]}).to_parquet(tmp_path / "r.parquet")
    table = read_table(tmp_path / "r.parquet")
    assert table.ids("user_id").tolist() == ["a", "b"]
    for read in (lambda: table.ids("item_id"), lambda: read_interactions(tmp_path / "r.parquet")):
        with pytest.raises(InputError, match="item_id holds fractions; ids must be text or integers"):
            read()


def test_parquet(tmp_path):
    path = tmp_path / "r.parquet"
    frame = pd.DataFrame({"user_id": [2**53 + 1, 7], "item_id": ["001", "NA"], "rating": [3.5, 4.0]})
    frame.to_parquet(path)
    data = read_interactions(path)
    assert list(data.user_ids) == ["9007199254740993", "7"] and list(data.item_ids) == ["001", "NA"]
    assert data.rating.tolist() == [3.5, 4.0]
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="no readable Parquet"):
        read_interactions(path)
    frame.assign(item_id=["a", None]).to_parquet(path)
    assert "1 row without an item is left out (row 2)" in read_interactions(path).notes
    path.write_text("user_id,item_id\n")
    with pytest.raises(InputError, match="no readable Parquet"):
        read_interactions(path)


def test_gzip_that_is_cut_or_is_none(file):
    content = gzip.compress(("user_id,item_id\n" + "a,b\n" * 1000).encode())
    with pytest.raises(InputError, match="truncated or damaged gzip"):
        read_interactions(file(content[:-9], "r.csv.gz"))
    with pytest.raises(InputError, match="not gzip"):
        read_interactions(file("user_id,item_id\na,b\n", "r.csv.gz"))
    flipped = bytearray(content)
    flipped[len(flipped) // 2] ^= 0xFF
    with pytest.raises(InputError, match="truncated or damaged gzip"):
        read_interactions(file(bytes(flipped), "r.csv.gz"))


def test_a_gzip_bomb_is_refused_early(file):
    bomb = gzip.compress(b"a" * 150_000_000, 9)
    with pytest.raises(InputError, match="refused"):
        read_interactions(file(bomb, "r.csv.gz"))


def test_what_is_no_file_is_refused_without_hanging(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_interactions(tmp_path / "absent.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_interactions(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(InputError, match="not a regular file"):
            read_interactions(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_interactions("a\0b")


def test_duplicates_are_merged_by_the_latest_and_counted(file):
    text = "user_id,item_id,rating,timestamp\na,x,1,30\na,x,5,10\na,y,2,1\na,x,1,20\n"
    data = read_interactions(file(text))
    assert data.rating.tolist() == [1, 2] and data.time.tolist() == [30, 1]
    assert data.notes[1:] == ("2 repeated pairs merged, the latest row kept (1 with another rating)",)
    assert data.notes[0].endswith("; 4 rows, 2 interactions, 2 merged, 0 left out")
    untimed = read_interactions(file("user_id,item_id,rating\na,x,1\na,x,5\n"))
    assert untimed.rating.tolist() == [5]


def test_a_threshold_counts_what_it_drops(file):
    path = file(HEAD + "a,x,1\nb,x,5\nb,y,4\n")
    data = read_interactions(path, min_rating=4)
    assert list(data.user_ids) == ["b"] and data.notes[1:] == ("1 row rated below 4 dropped",)
    with pytest.raises(InputError, match="no interactions left; all 3 rows are rated below 6"):
        read_interactions(path, min_rating=6)
    with pytest.raises(InputError, match="needs a column of ratings; name it with rating"):
        read_interactions(file("user_id,item_id\na,b\n"), min_rating=1)


def test_features(file):
    data = read_interactions(file("user_id,item_id\na,001\nb,1\n"))
    table = read_features(file("item_id,title\n001,First\n7,Other\n", "items.csv"), None, "item")
    joined = data.with_features(items=table)
    assert list(joined.titles) == ["First", "1"]
    assert "1 of 2 items has no row" in joined.notes[-1]
    with pytest.raises(InputError, match="line 3: item id 'a' occurs twice"):
        read_features(file("item_id,title\na,x\na,y\n", "twice.csv"), None, "item")
    with pytest.raises(InputError, match="no column 'key'"):
        read_features(file("item_id,title\na,x\n", "t.csv"), "key", "item")


@pytest.mark.thorough
@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_read_or_refused_in_one_line(tmp_path_factory, content, with_header):
    path = tmp_path_factory.mktemp("fuzz") / "r.csv"
    path.write_bytes((b"user_id,item_id,rating\n" if with_header else b"") + content)
    try:
        data = read_interactions(path)
    except InputError as error:
        assert "\n" not in str(error) and str(path) in str(error)
    else:
        assert (
            len(data.users)
            == len(data.items)
            == len(data.rating if data.rating is not None else data.users)
        )
        assert np.isfinite(data.rating).all() if data.rating is not None else True


@pytest.mark.thorough
@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.text(min_size=1, max_size=8), st.text(min_size=1, max_size=8)), min_size=1))
@example([("0", "SUM")])  # no row of totals: another row follows
def test_what_was_written_is_read_back(tmp_path_factory, pairs):
    """Any text id survives a CSV file, but for blanks around it and what no text file can hold."""
    pairs = [
        tuple(
            x.replace("\r", "").replace("\0", "").encode("utf-8", "ignore").decode().strip() or "x"
            for x in pair
        )
        for pair in pairs
    ]
    assume(("user_id", "item_id") not in pairs)  # the header again
    pairs.append(("y", "y"))  # else 0.0 alone is the whole number 0; nor is the last row one of totals
    path = tmp_path_factory.mktemp("round") / "r.csv"
    frame = pd.DataFrame(pairs, columns=["user_id", "item_id"])
    frame.to_csv(path, index=False, quoting=1, lineterminator="\n")
    data = read_interactions(path)
    assert set(zip(data.user_ids[data.users], data.item_ids[data.items], strict=True)) == set(pairs)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("u,i,r\n1,2,3\n", "no user column; found: u, i, r. Name it with user, as in user='u'"),
        ("xx,yy\na,b\n", "no user column; found: xx, yy. Name it with user"),
        ("UX,what,use\na,b,c\n", "Name it with user, as in user='UX'"),
        ("user,xx\na,b\n", "no item column; found: user, xx. Name it with item"),
    ],
)
def test_only_a_column_that_is_there_is_suggested(file, content, told):
    with pytest.raises(InputError) as caught:
        read_interactions(file(content))
    assert str(caught.value).endswith(told)


def test_columns_are_listed_once_and_not_without_end(file):
    path = file("i,r,u\na,b,c\n")
    with pytest.raises(InputError, match=r"no column 'x'; found: i, r, u$"):
        read_interactions(path, user="x")
    wide = file(",".join(f"c{k:02}" for k in range(60)) + "\n" + ",".join("a" * 60) + "\n")
    with pytest.raises(InputError, match=r"found: c00, .*c19 and 40 more$"):
        read_interactions(wide, user="nonsense")


def test_notes_count_one_row_as_one(file):
    data = read_interactions(file("user,item,rating\na,x,1\na,y,5\na,y,4\n"), min_rating=2)
    assert data.notes[1:] == (
        "1 repeated pair merged, the latest row kept (1 with another rating)",
        "1 row rated below 2 dropped",
    )


def test_a_table_of_features_without_rows_is_called_so(tmp_path):
    (tmp_path / "users.csv").write_text("user_id,age\n")
    with pytest.raises(InputError, match="users.csv: no features of users; there is a header only"):
        read_features(tmp_path / "users.csv", None, "user")


DATES = {
    "days": (["2020-01-01", "1999-12-31"], [1577836800.0, 946598400.0]),
    "moments": (["2020-01-01T00:00:01", "2020-01-01 12:30"], [1577836801.0, 1577881800.0]),
    "zones": (["2020-01-01T01:00:00+01:00", "2020-01-01T00:00:00Z"], [1577836800.0, 1577836800.0]),
    "numbers": (["1577836800", "12.5"], [1577836800.0, 12.5]),
}


@pytest.mark.parametrize("case", DATES)
def test_times_may_be_iso_dates(file, case):
    cells, seconds = DATES[case]
    rows = "".join(f"u{k},i,{cell}\n" for k, cell in enumerate(cells))
    data = read_interactions(file("user_id,item_id,when\n" + rows), time="when")
    assert data.time.tolist() == seconds and len(data.notes) == 1


def test_times_of_parquet_files(tmp_path):
    path = tmp_path / "r.parquet"
    frame = pd.DataFrame({"user_id": ["a", "b"], "item_id": ["x", "y"]})
    moments = pd.to_datetime(["2020-01-01 00:00", "1999-12-31 10:00"])
    for column, seconds in (
        (moments, [1577836800.0, 946634400.0]),
        (moments.tz_localize("UTC").tz_convert("Asia/Tokyo"), [1577836800.0, 946634400.0]),
        (moments.date, [1577836800.0, 946598400.0]),
        ([5.0, 7.0], [5.0, 7.0]),
    ):
        frame.assign(timestamp=column).to_parquet(path)
        assert read_interactions(path).time.tolist() == seconds


@pytest.mark.parametrize(
    ("cells", "note"),
    [
        (
            ["1969-12-31", "2020-01-01", "1950-05-05"],
            "2 times are not above 0, as dates before 1970 are: ",
        ),
        (["1970-01-01", "2020-01-01"], "1 time is not above 0, as dates before 1970 are: "),
        (["-3", "5"], "1 time is not above 0, as dates before 1970 are: "),
        (["0", "1", "2"], ""),
        (["1", "1577836800"], ""),
    ],
)
def test_dates_before_1970_are_read_with_a_note(file, cells, note):
    rows = "".join(f"u,i{k},{cell}\n" for k, cell in enumerate(cells))
    data = read_interactions(file("user_id,item_id,timestamp\n" + rows))
    expected = (note + "models count times from the oldest",) if note else ()
    assert data.notes[1:] == expected and len(data.time) == len(cells)
    times = fit_package(make_ranker("ease", recency=0.5), data, show_progress=False).times
    assert (times.data > 0).all(), "each time is known"
    assert np.argsort(times.toarray()[0]).tolist() == np.argsort(data.time).tolist()
