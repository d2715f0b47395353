"""Parquet: only what is used is read, ids are what they are, and a bomb is known before it goes off."""

import datetime
import decimal
import gzip
import io
import random
import resource
import subprocess
import sys
import uuid

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recsys import InputError
from recsys.data import parquet, read_features, read_interactions
from recsys.data.readers import read_table

IDS = pa.array(["u1", "u2", "u1"])
ITEMS = pa.array(["a", "a", "b"])


@pytest.fixture
def file(tmp_path):
    def write(columns, **options):
        path = tmp_path / "r.parquet"
        pq.write_table(pa.table(columns), path, **options)
        return path

    return write


TYPES = {
    "text": IDS,
    "large text": IDS.cast(pa.large_string()),
    "binary, as Spark and Impala write it": IDS.cast(pa.binary()),
    "large binary": IDS.cast(pa.large_binary()),
    "binary of one size": pa.array([b"u1", b"u2", b"u1"], pa.binary(2)),
    "a dictionary": IDS.dictionary_encode(),
    "a dictionary of binary": IDS.cast(pa.binary()).dictionary_encode(),
    "an unsigned dictionary": pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 0], pa.uint8()), ["u1", "u2"]
    ),
    "a dictionary of large text": IDS.dictionary_encode().cast(
        pa.dictionary(pa.uint32(), pa.large_string())
    ),
    "views": IDS.cast(pa.string_view()),
}


@pytest.mark.parametrize("case", TYPES)
@pytest.mark.parametrize(
    "options", [{}, {"use_dictionary": False}, {"store_schema": False, "row_group_size": 2}]
)
def test_ids_of_text_are_the_text(file, case, options):
    data = read_interactions(file({"user": TYPES[case], "item": ITEMS}, **options))
    assert list(data.user_ids) == ["u1", "u2"] and data.users.tolist() == [0, 1, 0]


@pytest.mark.parametrize("writer", ["polars", "fastparquet"])
def test_files_of_other_writers(tmp_path, writer):
    pytest.importorskip(writer)
    rng = np.random.default_rng(0)
    users, items = rng.integers(0, 300, 5000), rng.integers(0, 90, 5000)
    frame = pd.DataFrame({"user": [f"u{k}" for k in users], "item": items, "kind": ["x", "y"] * 2500})
    frame["kind"] = frame["kind"].astype("category")
    for compression in ("zstd", "snappy", "gzip"):
        path = tmp_path / f"{compression}.parquet"
        if writer == "polars":
            import polars as pl

            pl.from_pandas(frame).write_parquet(path, compression=compression)
        else:
            import fastparquet

            fastparquet.write(str(path), frame.astype({"user": object}), compression=compression.upper())
        data = read_interactions(path)
        assert set(data.user_ids) == set(frame["user"]) and set(data.item_ids) == set(map(str, items))
        assert set(read_interactions(path, item="kind").item_ids) == {"x", "y"}


ONE = uuid.UUID(int=1)
OTHERS = {
    "whole numbers": (pa.array([2**53 + 1, 7, 7]), [str(2**53 + 1), "7"]),
    "unsigned": (pa.array([2**64 - 1, 7, 7], pa.uint64()), [str(2**64 - 1), "7"]),
    "truth": (pa.array([True, False, False]), ["True", "False"]),
    "days": (pa.array([datetime.date(2020, 1, 31)] * 3), ["2020-01-31"]),
    "decimals": (pa.array([decimal.Decimal("1.50")] * 3), ["1.50"]),
    "numbers in a dictionary": (pa.array([5, 7, 7]).dictionary_encode(), ["5", "7"]),
    "uuids": (pa.array([ONE.bytes] * 3, pa.uuid()), [str(ONE)]),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_ids_are_their_text(file, case):
    ids, wanted = OTHERS[case]
    assert list(read_interactions(file({"user": ids, "item": ITEMS})).user_ids) == wanted


NESTED = {
    "lists": pa.array([["a"], ["b"], ["a", "b"]]),
    "structs": pa.array([{"a": 1}, {"a": 2}, {"a": 3}]),
    "maps": pa.array([[("a", 1)], [], []], pa.map_(pa.string(), pa.int64())),
    "lists of a size": pa.array([[1], [2], [3]], pa.list_(pa.int64(), 1)),
}


@pytest.mark.parametrize("case", NESTED)
def test_lists_are_no_ids_and_do_not_matter_where_they_are_not_used(file, case):
    path = file({"user": NESTED[case], "item": ITEMS})
    with pytest.raises(InputError, match=r"user holds .*; each cell must be one value") as caught:
        read_interactions(path)
    assert "\n" not in str(caught.value)
    path = file({"user": IDS, "item": ITEMS, "tags": NESTED[case]})
    assert read_interactions(path).n_users == 2
    with pytest.raises(InputError, match="1 column of several values a cell: tags; write several"):
        read_features(path, "item", "item")


def test_columns_that_are_not_used_are_not_looked_at(file):
    broken = pa.StringArray.from_buffers(
        3, pa.py_buffer(np.int32([0, 1, 2, 3]).tobytes()), pa.py_buffer(b"\xff\xfe\xfd")
    )
    columns = {
        "user": IDS, "item": ITEMS, "rating": pa.array([1.0, 2.0, 3.0]), "nulls": pa.array([None, "x", None]),
        "void": pa.nulls(3), "no text": broken, "stars": pa.array([5, None, 4]),
    }  # fmt: skip
    path = file(columns)
    data = read_interactions(path)
    assert data.rating.tolist() == [1, 2, 3] and data.columns.rating == "rating"
    with pytest.raises(InputError, match="row 2: nulls cannot be read"):
        read_interactions(path, rating="nulls")
    with pytest.raises(InputError, match="no row can be used: 3 rows without a rating"):
        read_interactions(path, rating="void")
    assert read_interactions(path, rating="stars").counts.left_out == {"unrated": 1}
    for name in ("no text",):
        with pytest.raises(InputError, match="no text|UTF-8|UTF8") as caught:
            read_interactions(path, user=name)
        assert "\n" not in str(caught.value)
    with pytest.raises(
        InputError, match=r"no column 'users' \(did you mean 'user'\?\); found: user, item"
    ):
        read_interactions(path, user="users")


def test_missing_features_are_empty(file):
    ages = pa.array([1.5, None, 3.0])
    path = file({"user": pa.array(["a", "b", "c"]), "town": pa.array(["x", None, "y"]), "age": ages})
    found = read_features(path, None, "user")
    assert found["town"].tolist() == ["x", "", "y"] and np.isnan(found["age"]["b"])
    path = file({"user": pa.array(["a", None, "c"]), "town": pa.array(["x", "x", "y"])})
    with pytest.raises(InputError, match="row 2: user is empty"):
        read_features(path, None, "user")


def test_two_columns_of_one_name(tmp_path):
    path = tmp_path / "r.parquet"
    pq.write_table(pa.Table.from_arrays([IDS, IDS, ITEMS], ["user", "user", "item"]), path)
    with pytest.raises(InputError, match="2 columns are called 'user'; rename all but one"):
        read_interactions(path)


def test_bytes_that_are_no_text_are_no_ids(file):
    path = file({"user": pa.array([b"\xff\xfe", b"a", b"b"]), "item": ITEMS})
    with pytest.raises(
        InputError, match=r"user holds bytes that are no UTF-8 text, such as b'\\xff\\xfe'"
    ):
        read_interactions(path)


def test_groups_of_rows_are_one_column(file):
    rng = np.random.default_rng(0)
    users, items, stars = rng.integers(0, 30, 200), rng.integers(0, 30, 200), rng.random(200)
    texts = [f"u{user}" for user in users]
    for options in ({}, {"row_group_size": 13}, {"dictionary_pagesize_limit": 10, "data_page_size": 20}):
        table = read_table(file({"user": texts, "item": items, "stars": stars}, **options))
        assert table.columns[0].tolist() == texts
        assert table.columns[1].tolist() == [str(i) for i in items]
        assert table.columns[2].tolist() == stars.tolist()
        data = read_interactions(file({"user": texts, "item": items}, **options))
        assert data.user_ids.tolist() == list(dict.fromkeys(texts))


BOMB = "x" * 1_000_000


def repeated(rows):
    """Return the long text so many times, kept once."""
    return pa.DictionaryArray.from_arrays(np.zeros(rows, dtype=np.int32), [BOMB])


def bombs(folder):
    """Write small files that are large tables, and return them."""
    for name, item, options in (
        (
            "text",
            repeated(2000),
            {"store_schema": False},
        ),  # read as text, as the writers of others have it
        ("coded", repeated(2000), {}),
        ("plain", [BOMB] * 60, {"use_dictionary": False}),
        ("views", pa.array([BOMB] * 60).cast(pa.string_view()), {}),
        ("sized", pa.array([BOMB.encode()] * 60, pa.binary(len(BOMB))), {}),
    ):
        columns = {"user": ["u1"] * len(item), "item": item}
        pq.write_table(pa.table(columns), folder / f"{name}.parquet", compression="zstd", **options)
    codes = pa.array(np.zeros(30_000_000, dtype=np.int8))
    for name, columns in (
        ("rows", {"user": codes, "item": codes}),
        ("floats", {"user": codes, "item": codes.cast(pa.float32())}),
    ):
        pq.write_table(
            pa.table(columns), folder / f"{name}.parquet", row_group_size=30_000_000, compression="zstd"
        )
    lists = pa.ListArray.from_arrays(pa.array([0, 30_000_000], pa.int32()), codes)
    pq.write_table(
        pa.table({"user": lists, "item": pa.array(["a"])}), folder / "lists.parquet", compression="zstd"
    )
    (folder / "text.csv.gz").write_bytes(gzip.compress(b"user,item\n" + b"a,b\n" * 6_000_000, 9))
    (folder / "line.csv.gz").write_bytes(gzip.compress(b"user,item\n" + b"a" * 200_000_000, 9))
    (folder / "small.csv.gz").write_bytes(gzip.compress(b"user,item\n" + b"a,b\n" * 2_400_000, 9))
    return sorted(folder.iterdir())


def test_bombs_are_refused_before_they_go_off(tmp_path):
    """A long text that a dictionary has once is in memory once; what is written out is refused."""
    path = tmp_path / "r.parquet"
    for options in ({"store_schema": False}, {}):
        columns = {"user": ["u1"] * 2000, "item": repeated(2000)}
        pq.write_table(pa.table(columns), path, compression="zstd", **options)
        assert path.stat().st_size < 10_000
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert read_interactions(path).n_items == 1
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # KiB
    plain = pa.table({"user": ["u1"] * 60, "item": [BOMB] * 60})
    pq.write_table(plain, path, compression="zstd", use_dictionary=False)
    for refused in (read_table, read_interactions):
        with pytest.raises(InputError, match="unpack to more than .*; refused"):
            refused(path)
    pq.write_table(pa.table({"user": IDS, "item": ITEMS}), path)
    with pytest.raises(InputError, match="has 3 rows; from 1 to 2 are read"):
        read_table(path, max_rows=2)
    wide = pa.table({f"c{k}": pa.array([1]) for k in range(11)})
    pq.write_table(wide, path)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parquet, "MOST_COLUMNS", 10)
        with pytest.raises(InputError, match="has 11 columns in 1 group of rows; at most 10 columns"):
            read_table(path)


@pytest.mark.slow
def test_bombs_take_less_than_a_gigabyte_and_20_seconds(tmp_path):
    """Each in a process of its own, as `recsys evaluate` reads it."""
    code = """
import sys
from pathlib import Path
from recsys.cli import call
code = call(["evaluate", "--interactions", sys.argv[1], "--model", "popularity", "--quiet"])
# not from getrusage: that remembers the process that this one was forked from
(peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
print(code, peak.split()[1], file=sys.stderr)
"""
    for path in bombs(tmp_path):
        done = subprocess.run(
            [sys.executable, "-c", code, path], capture_output=True, text=True, timeout=120
        )
        *told, last = done.stderr.splitlines()
        status, kilobytes = map(int, last.split())
        print(path.name, path.stat().st_size, status, kilobytes // 1024)
        assert done.returncode == 0 and status in (0, 2) and len(told) <= 1, done.stderr
        assert kilobytes < 1_000_000, path.name


def test_damaged_files_are_read_or_refused_in_one_line(tmp_path):
    rng = random.Random(0)
    buffer = io.BytesIO()
    frame = pd.DataFrame({"user": [f"u{k % 17}" for k in range(300)], "item": range(300), "rating": 1.5})
    frame.to_parquet(buffer)
    good, path = buffer.getvalue(), tmp_path / "r.parquet"
    for _ in range(300):
        content = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            content[rng.randrange(len(content))] = rng.randrange(256)
        path.write_bytes(content[: rng.choice([len(content), rng.randrange(len(content))])])
        try:
            assert len(read_interactions(path).users) <= 300
        except InputError as error:
            assert "\n" not in str(error) and len(str(error)) < 500
