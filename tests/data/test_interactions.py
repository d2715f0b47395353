"""`Interactions.from_ids`: what it takes, by position, and what it refuses in a line."""

import datetime
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recsys import InputError, load_ranker, make_ranker
from recsys.data import Interactions
from recsys.datasets import load_dataset
from recsys.rankers import fit_package, load_package

USERS, ITEMS = ["a", "b", "a", "c"], ["x", "y", "y", "x"]
DENSE = [[1, 1], [0, 1], [1, 0]]

TEXT = {
    "list": list,
    "tuple": tuple,
    "object": lambda ids: np.array(ids, dtype=object),
    "str": np.array,
    "Series": pd.Series,
    "Series of objects": lambda ids: pd.Series(ids, dtype=object),
    "Series, filtered": lambda ids: pd.Series(ids, index=[7, 5, 99, 2]),
    "Index": pd.Index,
    "Categorical": pd.Categorical,
    "Series of categories": lambda ids: pd.Series(ids, dtype="category"),
    "Arrow": lambda ids: pd.array(ids, dtype=pd.ArrowDtype(pa.string())),
    "an Arrow array": pa.array,
}


@pytest.mark.parametrize("kind", TEXT)
def test_ids_of_every_kind_of_column(kind):
    data = Interactions.from_ids(TEXT[kind](USERS), TEXT[kind](ITEMS))
    assert data.user_ids.tolist() == ["a", "b", "c"] and data.item_ids.tolist() == ["x", "y"]
    assert data.user_ids.dtype == object and all(type(k) is str for k in data.user_ids)
    assert data.matrix.toarray().tolist() == DENSE


@pytest.mark.parametrize(
    "kind",
    [
        list,
        np.array,
        lambda ids: np.array(ids, np.uint8),
        pd.Series,
        lambda ids: pd.Series(ids, index=[7, 5, 99, 2]),
        lambda ids: pd.array(ids, dtype="Int64"),
        lambda ids: np.array(ids, dtype=object),
        pd.Categorical,
    ],
)
def test_whole_numbers_stay_whole_numbers(kind):
    data = Interactions.from_ids(kind([196, 7, 196, 3]), kind([1, 2, 2, 1]))
    assert data.user_ids.tolist() == [196, 7, 3] and all(type(k) is int for k in data.user_ids)
    assert data.matrix.toarray().tolist() == DENSE
    assert Interactions.lookup("user", data.user_ids, [3, 196]).tolist() == [2, 0]


def test_whole_floats_are_whole_numbers():
    data = Interactions.from_ids(pd.Series([1.0, 2.0, 1.0]), np.array([7.0, 7.0, 8.0]))
    assert data.user_ids.tolist() == [1, 2] and all(type(k) is int for k in data.item_ids)


def test_a_file_keeps_ids_of_their_kind_and_an_unknown_number_is_named(tmp_path):
    data = Interactions.from_ids([196, 7, 196, 3], [1, 2, 2, 1])
    fit_package(make_ranker("popularity"), data).save(tmp_path / "m")
    package = load_package(tmp_path / "m")
    assert package.user_ids.tolist() == [196, 7, 3] and package.item_ids.tolist() == [1, 2]
    assert package.rows(["7", 7])[0].tolist() == [1, 1]  # as the command line and the service name it
    assert package.rows(["196"])[0].tolist() == [0]
    with pytest.raises(InputError, match="unknown user id '8'; there are 3, such as 196"):
        package.rows(["7", "8"])
    assert load_ranker(tmp_path / "m").n_users_ == 3


def test_ratings_and_times_go_by_position():
    """A Series whose index a filter left with gaps was looked up by label."""
    irregular = [7, 5, 99, 2]
    data = Interactions.from_ids(
        pd.Series(USERS, index=irregular),
        pd.Series(ITEMS, index=irregular[::-1]),
        rating=pd.Series([4, 3, 2, 1], index=[1000, 0, 1, 2]),
        time=pd.Series([1, 2, 3, 4], index=irregular),
    )
    assert data.rating.tolist() == [4.0, 3.0, 2.0, 1.0] and data.rating.dtype == np.float64
    assert data.time.tolist() == [1.0, 2.0, 3.0, 4.0] and data.time.dtype == np.float64
    assert data.rated(3).matrix.toarray().tolist() == [[1, 0], [0, 1]]


RATINGS = {
    "list": [4, 3.5, 2, 1],
    "int8": np.array([4, 3, 2, 1], np.int8),
    "bool": [True, False, True, True],
    "nullable": pd.array([4, 3, 2, 1], dtype="Int64"),
    "objects": np.array([4, 3.5, 2, 1], dtype=object),
    "Arrow": pd.array([4, 3, 2, 1], dtype="int64[pyarrow]"),
    "text": ["4", "3.5", "2", "1"],
}


@pytest.mark.parametrize("kind", RATINGS)
def test_numbers_of_every_kind(kind):
    data = Interactions.from_ids(USERS, ITEMS, rating=RATINGS[kind], time=RATINGS[kind])
    for column in (data.rating, data.time):
        assert column.dtype == np.float64 and column.tolist() == [float(v) for v in RATINGS[kind]]


DATES = ["2020-01-01", "1970-01-01T00:00:01.5", "1969-12-31", "2020-01-01T01:00"]
SECONDS = [1577836800.0, 1.5, -86400.0, 1577840400.0]
MOMENTS = {
    "seconds": lambda d: np.array(d, "datetime64[ms]"),
    "Series": lambda d: pd.Series(pd.to_datetime(d, format="ISO8601")),
    "with a zone": lambda d: (
        pd.to_datetime(pd.Series(d), format="ISO8601").dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    ),
    "Timestamps": lambda d: [pd.Timestamp(x) for x in d],
    "objects": lambda d: np.array([datetime.datetime.fromisoformat(x) for x in d], dtype=object),
    "Arrow": lambda d: pd.Series(pd.to_datetime(d, format="ISO8601")).astype("timestamp[ns][pyarrow]"),
}


@pytest.mark.parametrize("kind", MOMENTS)
def test_datetimes_become_seconds(kind):
    data = Interactions.from_ids(USERS, ITEMS, time=MOMENTS[kind](DATES))
    assert data.time.dtype == np.float64 and data.time.tolist() == SECONDS


def test_the_latest_of_a_repeated_pair_is_kept_by_datetime_too():
    data = Interactions.from_ids(
        ["a"] * 3,
        ["x"] * 3,
        [5, 1, 3],
        np.array(["2020-01-01", "2021-01-01", "2019-01-01"], "datetime64[D]"),
    )
    assert (
        data.rating.tolist() == [1.0]
        and "repeated pairs merged, the latest row kept: 2" in data.notes[0]
    )


BAD_IDS = {
    "None": (["a", None, "b", "c"], "row 1 of users has no id"),
    "NaN": (["a", "b", np.nan, "c"], "row 2 of users has no id"),
    "NA": (pd.array(["a", "b", pd.NA, "c"]), "row 2 of users has no id"),
    "NaN among numbers": ([1.0, np.nan, 2.0, 3.0], "row 1 of users has no id"),
    "NaN in categories": (pd.Categorical(["a", None, "b", "c"]), "row 1 of users has no id"),
    "fractions": ([1.0, 2.5, 1.0, 3.0], "users contains fractions"),
    "bools": ([True, False, True, True], "must be text or integers, not bool"),
    "dates": (np.array(["2020-01-01"] * 4, "datetime64[D]"), "must be text or integers"),
    "tuples": ([("a", 1)] * 4, "must be a column"),
    "lists": (np.array([[1], [1, 2], [], [3]], dtype=object), "must be text or integers"),
    "ragged": ([["a"], ["b", "c"], [], ["d"]], "must be text or integers"),
    "a table": (pd.DataFrame({"a": USERS}), "must be a column"),
    "two columns": (np.array([USERS, USERS]), "must be a column"),
    "a text": ("abcd", "must be a column"),
    "a number": (3, "must be a column"),
    "nothing": (None, "must be a column"),
    "mixed with a float": (["a", 1.5, "b", "c"], "mixes float and str"),
}


@pytest.mark.parametrize("kind", BAD_IDS)
def test_what_is_no_column_of_ids_is_one_line(kind):
    users, told = BAD_IDS[kind]
    with pytest.raises(InputError, match=re.escape(told)) as caught:
        Interactions.from_ids(users, ITEMS, name="plays")
    assert str(caught.value).startswith(
        ("plays: users must be", "plays: users contains", "plays: users mixes", "plays: row")
    )
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 200
    with pytest.raises(InputError, match=re.escape(told.replace("users", "items"))):
        Interactions.from_ids(USERS, users)


BAD_NUMBERS = {
    "mixed": [4, "3", 2, 1],
    "None": [4, None, 2, 1],
    "NaN": [4, np.nan, 2, 1],
    "complex": [4j, 3, 2, 1],
    "lists": [[4], [3], [2], [1]],
    "a text": "4321",
    "intervals": np.array([1, 2, 3, 4], "timedelta64[s]"),
}


@pytest.mark.parametrize("kind", BAD_NUMBERS)
@pytest.mark.parametrize("what", ["rating", "time"])
def test_what_is_no_column_of_numbers_is_one_line(kind, what):
    with pytest.raises(InputError, match=f"^plays: (row 1 of )?{what} ") as caught:
        Interactions.from_ids(USERS, ITEMS, **{what: BAD_NUMBERS[kind]}, name="plays")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 200


def test_times_that_are_missing_or_ratings_without_end_are_refused():
    with pytest.raises(InputError, match="row 1 of time is missing"):
        Interactions.from_ids(["a", "b"], ["x", "x"], time=pd.to_datetime(["2020-01-01", None]))
    with pytest.raises(InputError, match="rating must be numbers, not timestamp"):
        Interactions.from_ids(["a"], ["x"], rating=pd.to_datetime(["2020-01-01"]))
    with pytest.raises(InputError, match="rating contains infinity"):
        Interactions.from_ids(["a"], ["x"], rating=[np.inf])
    with pytest.raises(InputError, match="time contains infinity: .* −inf for the oldest"):
        Interactions.from_ids(["a"], ["x"], time=[np.inf])
    assert Interactions.from_ids(["a"], ["x"], time=[-np.inf]).time.tolist() == [-np.inf]


@pytest.mark.parametrize(
    "given", [{"items": ITEMS[:3]}, {"rating": [1, 2]}, {"time": [1.0] * 5}, {"items": [], "time": [1]}]
)
def test_unequal_lengths_are_counted(given):
    whole = {"items": ITEMS} | given
    with pytest.raises(InputError, match="columns must have equal lengths; there are 4 users"):
        Interactions.from_ids(USERS, **whole)


def test_no_rows_are_refused():
    for none in ([], np.array([]), pd.Series([], dtype=object)):
        with pytest.raises(InputError, match="plays: no interactions"):
            Interactions.from_ids(none, none, name="plays")


def test_nothing_given_is_changed():
    users, rating = pd.Series(USERS), np.array([4.0, 3.0, 2.0, 1.0])
    data = Interactions.from_ids(users, ITEMS, rating)
    data.rating[:] = 0
    assert users.tolist() == USERS and rating.tolist() == [4, 3, 2, 1]


def test_the_sample_from_a_frame_is_the_sample():
    data = load_dataset("sample")
    frame = pd.DataFrame({"u": data.user_ids[data.users], "i": data.item_ids[data.items]})
    assert (Interactions.from_ids(frame.u, frame.i).matrix != data.matrix).nnz == 0


def test_a_file_of_items_is_read_by_what_the_interactions_call_them(tmp_path):
    likes, films = tmp_path / "likes.csv", tmp_path / "films.csv"
    likes.write_text("who,what\nada,7\nbob,9\n")
    films.write_text("title,item,what\nAlien,1,7\nBrazil,2,9\n")
    data = Interactions.from_frame(likes, user="who", item="what", items=films)
    assert data.titles.tolist() == ["Alien", "Brazil"]


@pytest.mark.parametrize("name", ["title", "Bezeichnung", "Artikel-Name", "product_name", "itemTitle"])
def test_titles_are_found_by_the_name_of_their_column(name):
    likes = pd.DataFrame({"user": list("ab"), "item": list("xy")})
    table = pd.DataFrame({"item": list("xy"), "price": [1.0, 2.0], name: ["Tea", "Milk"]})
    data = Interactions.from_frame(likes, user="user", item="item", items=table)
    assert data.titles.tolist() == ["Tea", "Milk"]
    told = f"{name} of the item table is read as the titles of the items"
    assert (told in data.notes) == (name != "title")


def test_a_table_of_features_without_the_ids_in_its_index_is_refused():
    data = Interactions.from_ids(["ada", "bob"], ["tea", "milk"])
    films = pd.DataFrame({"item": ["tea", "milk"], "year": [1, 2]})
    with pytest.raises(
        InputError, match="items: no item id of this table occurs in the interactions; .* such as 0 here"
    ):
        data.with_features(items=films)
    found = data.with_features(items=films.set_index("item").iloc[:1])
    assert found.item_features["year"].isna().tolist() == [False, True]
    assert data.with_features(items=films.iloc[:0].set_index("item")).item_features.isna().all(axis=None)


def test_ids_of_bytes_are_text(tmp_path):
    table = pa.table({"user": pa.array([b"a", "ü".encode(), b"a"]), "item": [b"x", b"y", None]})
    pq.write_table(table, tmp_path / "spark.parquet")
    for given in (table, table.to_pandas(), tmp_path / "spark.parquet"):
        data = Interactions.from_frame(given)
        assert data.user_ids.tolist() == ["a", "ü"]
        assert data.item_ids.tolist() == ["x", "y"]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary()], ids=str
)
def test_ids_of_digits_are_text_in_each_type_of_arrow(kind):
    users = [b"7", None, b"12", b"7"] if pa.types.is_binary(kind) else ["7", None, "12", "7"]
    table = pa.table(
        {"user": pa.array(users, kind), "item": pa.array(["1", "1", "1", "2"], pa.string_view())}
    )
    data = Interactions.from_frame(table)
    assert data.user_ids.tolist() == ["7", "12"] and data.item_ids.tolist() == ["1", "2"]
