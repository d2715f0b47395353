"""Tables in: every kind, every wrong thing one line."""

import re

import numpy as np
import pandas as pd
import pytest

from recsys import InputError, Interactions
from recsys.data import tables

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")

KINDS = {
    "pandas": lambda table: table,
    "polars": pl.from_pandas,
    "pyarrow": lambda table: pa.Table.from_pandas(table, preserve_index=False),
    "lazy": lambda table: pl.from_pandas(table).lazy(),
}
ROWS = pd.DataFrame(
    {
        "user_id": ["ada", "ada", "bob", "cy", "ada"],
        "item_id": ["tea", "milk", "tea", "rum", "tea"],
        "ts": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-02-01", "2024-03-01", "2024-04-01"]),
        "stars": [5.0, 4.0, 3.0, 1.0, 2.0],
    }
)
ITEMS = pd.DataFrame({"item_id": ["rum", "tea"], "title": ["Rum", "Tea"], "year": [1900, 1600]})


def read(kind, table=ROWS, items=ITEMS, **given):
    given = {"user": "user_id", "item": "item_id", "time": "ts", "rating": "stars"} | given
    items = None if items is None else KINDS[kind](items)
    return Interactions.from_frame(KINDS[kind](table), items=items, **given)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_gives_the_same(kind):
    data = read(kind)
    assert data.user_ids.tolist() == ["ada", "bob", "cy"]
    assert data.item_ids.tolist() == ["tea", "milk", "rum"]
    pairs = {
        (data.user_ids[u], data.item_ids[i]): (r, t)
        for u, i, r, t in zip(data.users, data.items, data.rating, data.time, strict=True)
    }
    seconds = lambda day: float(pd.Timestamp(day).timestamp())  # noqa: E731
    assert pairs == {
        ("ada", "milk"): (4.0, seconds("2024-01-02")),
        ("bob", "tea"): (3.0, seconds("2024-02-01")),
        ("cy", "rum"): (1.0, seconds("2024-03-01")),
        ("ada", "tea"): (2.0, seconds("2024-04-01")),  # the latest of two
    }
    assert data.titles.tolist() == ["Tea", "milk", "Rum"]
    assert data.columns.kind == ("polars" if kind == "lazy" else kind)


@pytest.mark.parametrize("kind", KINDS)
def test_whole_numbers_stay_whole_numbers(kind):
    numbers = ROWS.assign(user_id=[7, 7, 9, 11, 7], item_id=[1, 2, 1, 3, 1])
    data = read(kind, numbers, ITEMS.assign(item_id=[3, 1]))
    assert data.user_ids.tolist() == [7, 9, 11] and data.item_ids.tolist() == [1, 2, 3]
    assert all(type(name) is int for name in (*data.user_ids, *data.item_ids))
    assert data.titles.tolist() == ["Tea", 2, "Rum"]


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_missing_id_among_whole_numbers_is_counted_with_its_row(kind):
    table = KINDS[kind](ROWS.assign(item_id=pd.array([1, 2, None, 3, 4], dtype="Int64")))
    data = Interactions.from_frame(table)
    assert data.item_ids.tolist() == [1, 2, 3, 4] and all(type(k) is int for k in data.item_ids)
    assert "rows without an item, left out: 1" in data.notes


def test_a_path_is_read_as_a_file(tmp_path):
    ROWS.to_csv(tmp_path / "r.csv", index=False)
    ITEMS.to_csv(tmp_path / "i.csv", index=False)
    data = Interactions.from_frame(
        tmp_path / "r.csv", time="ts", rating="stars", items=tmp_path / "i.csv"
    )
    assert data.user_ids.tolist() == ["ada", "bob", "cy"] and data.titles.tolist()[::2] == ["Tea", "Rum"]
    assert (data.time == read("pandas").time).all()
    assert data.columns.user == "user_id" and data.columns.kind == "pandas"


def test_text_dates_are_dates_and_an_index_of_ids_is_taken():
    data = read("pandas", ROWS.assign(ts=ROWS.ts.astype(str)), ITEMS.set_index("item_id"))
    assert (data.time == read("pandas").time).all() and data.titles.tolist() == ["Tea", "milk", "Rum"]


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_least_rating_drops_rows(kind):
    data = read(kind, min_rating=3)
    assert (
        data.rating.min() >= 3
        and data.n_users == 2
        and "rated below 3, left out" in " ".join(data.notes)
    )
    assert data.columns.min_rating == 3


WRONG = {
    "no column 'userid' (did you mean 'user_id'?)": {"user": "userid"},
    "no column 'star' (did you mean 'stars'?)": {"rating": "star"},
    "ts is not a rating column ('2024-01-01 00:00:00'): 5 of 5 cells cannot be read": {
        "rating": "ts",
        "time": None,
    },
    "when is not a time column ('noon'): 5 of 5 cells cannot be read": {
        "table": ROWS.assign(when="noon"),
        "time": "when",
    },
    "no user column; name it with user= (--user-col); found: item_id, ts, stars": {
        "table": ROWS.drop(columns="user_id"),
        "user": None,
    },
    "no user column; name it with user= (--user-col); found: U, item_id": {
        "table": ROWS.rename(columns={"user_id": "U"}),
        "user": None,
    },
    "must be a table of pandas, polars or pyarrow, not list": {"table": [1, 2]},
    "no interactions": {"table": ROWS.iloc[:0]},
    "no item id of this table occurs in the interactions; ids are such as '1' here": {
        "items": ITEMS.assign(item_id=[1, 2])
    },
    "item id 'rum' occurs twice": {"items": ITEMS.assign(item_id=["rum", "rum"])},
    "items, row 2: item_id is empty": {"items": ITEMS.assign(item_id=["rum", None])},
    "items: no item column; found: title, year": {"items": ITEMS.drop(columns="item_id")},
    "a minimum rating needs a column of ratings": {
        "table": ROWS.drop(columns="stars"),
        "rating": None,
        "min_rating": 2,
    },
}


@pytest.mark.parametrize("told", WRONG)
def test_what_is_wrong_is_one_line(told):
    given = {"table": ROWS, "items": None} | WRONG[told]
    with pytest.raises(InputError, match=re.escape(told)) as caught:
        read("pandas", given.pop("table"), given.pop("items"), **given)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 250


@pytest.mark.parametrize("kind", tables.KINDS)
def test_tables_are_made_of_the_kind_asked_for(kind):
    table = tables.make({"user": [7, 8], "score": [0.5, 1.0], "title": ["a", "b"]}, kind)
    assert tables.kind_of(tables.wrapped("it", table)) == kind
    assert tables.wrapped("it", table)["user"].to_list() == [7, 8]
    empty = tables.make({"user": [], "score": []}, kind)
    assert len(tables.wrapped("it", empty)) == 0
    with pytest.raises(InputError, match="must be one of pandas, polars, pyarrow, not 'spark'"):
        tables.make({}, "spark")


def test_all_orders_of_repeated_rows_keep_the_latest():
    rng = np.random.default_rng(0)
    for _ in range(20):
        mixed = ROWS.iloc[rng.permutation(len(ROWS))]
        data = read("pandas", mixed)
        tea = (data.user_ids[data.users] == "ada") & (data.item_ids[data.items] == "tea")
        assert data.rating[tea].tolist() == [2.0]
