"""Lists of all users as JSON lines, in a table of a database, and as a stream of arrow batches."""

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

import recsys
from recsys import Recommender
from recsys.cli.commands import app
from recsys.errors import DatabaseError, InputError
from recsys.recommender import lists as lists_module

sa = pytest.importorskip("sqlalchemy")


@pytest.fixture(scope="module")
def model():
    return recsys.Recommender("ease").fit(recsys.load_dataset("sample"))


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(lists_module, "USERS", 150)


def rows_of(url, table="top"):
    engine = sa.create_engine(url)
    found = pd.read_sql(f'SELECT * FROM "{table}" ORDER BY "user", "rank"', engine)
    engine.dispose()
    return found


def test_json_lines(model, tmp_path, small_blocks):
    path = model.recommend_all(tmp_path / "top.jsonl", 3)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    every = model.recommend_all(n=3)
    assert list(lines[0]) == list(every.columns) and pd.DataFrame(lines).equals(every)


def test_a_stream_makes_a_block_at_a_time(model, small_blocks):
    reader = model.recommend_all(n=3, stream=True)
    batches = list(reader)
    assert [batch.num_rows for batch in batches] == [450, 450, 300]
    every = model.recommend_all(n=3)
    found = pd.concat([batch.to_pandas() for batch in batches], ignore_index=True)
    assert found.astype(every.dtypes).equals(every)
    with pytest.raises(InputError, match="stream"):
        model.recommend_all("top.csv", stream=True)


def test_a_table_is_made_and_users_are_replaced(model, tmp_path, small_blocks):
    url = f"sqlite:///{tmp_path}/top.db"
    assert model.recommend_all(url, 4, table="top") == url
    every = model.recommend_all(n=4).sort_values(["user", "rank"], ignore_index=True)
    found = rows_of(url)
    assert (found.pop("source") == "model").all()
    assert found.astype(every.dtypes).equals(every)
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("INSERT INTO top VALUES ('other', 1, 'x', 'X', 0.5, 'model')"))
    model.recommend_all(engine, 2, table="top")
    found = rows_of(url)
    assert (found["user"] == "other").sum() == 1 and len(found) == 801
    assert sa.inspect(engine).get_pk_constraint("top")["constrained_columns"] == ["user", "rank"]
    engine.dispose()


def test_a_block_is_written_whole_or_not_at_all(model, tmp_path, small_blocks):
    url = f"sqlite:///{tmp_path}/top.db"
    model.recommend_all(url, 2, table="top")
    before = rows_of(url)
    engine = sa.create_engine(url)
    last = str(model.user_ids[299])  # of the second block
    with engine.begin() as connection:
        connection.execute(sa.text(
            f"CREATE TRIGGER full BEFORE INSERT ON top WHEN NEW.user = '{last}' "
            "BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
        ))  # fmt: skip
    engine.dispose()
    with pytest.raises(DatabaseError, match="disk is full") as told:
        model.recommend_all(url, 3, table="top")
    assert "\n" not in str(told.value)
    counts = rows_of(url).groupby("user").size()
    first, others = model.user_ids[:150], model.user_ids[150:]
    assert (counts[first] == 3).all() and (counts[others] == 2).all()
    after = rows_of(url)
    kept = after["user"].isin(others)
    assert (
        after[kept]
        .reset_index(drop=True)
        .equals(before[before["user"].isin(others)].reset_index(drop=True))
    )


@pytest.mark.parametrize(
    ("where", "table", "says"),
    [
        ("nonsense", "top", "no database URL"), (7, "top", "no database URL"), (None, "top", "no database URL"),
        ("nosuch://x/y", "top", "no such kind of database"), ("sqlite:////nowhere/x/top.db", "top", "unable to open"),
        ("sqlite://", "", "name of a table"), ("sqlite://", 7, "name of a table"),
    ],
)  # fmt: skip
def test_wrong_databases_are_refused_in_a_line(model, where, table, says):
    with pytest.raises((InputError, DatabaseError), match=says) as told:
        model.recommend_all(where, table=table)
    assert "\n" not in str(told.value)


def test_a_table_of_other_columns_is_left_alone(model, tmp_path):
    engine = sa.create_engine(f"sqlite:///{tmp_path}/x.db")
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE top (a INTEGER)"))
    with pytest.raises(InputError, match="no column 'user'"):
        model.recommend_all(engine, table="top")
    engine.dispose()


def test_a_table_without_titles_takes_the_lists_of_the_command_line(tmp_path):
    sqlalchemy = pytest.importorskip("sqlalchemy")
    url, file = f"sqlite:///{tmp_path / 'top.db'}", tmp_path / "m.recsys"
    rows = pd.DataFrame({"user": list("aabbcc"), "item": list("xyyzzx")})
    model = Recommender("popularity").fit(rows)
    model.recommend_all(url, 1, table="top")
    model.save(file)
    told = CliRunner().invoke(
        app,
        ["recommend", "--ranker", str(file), "--all", "-n", "1", "--database", url, "--table", "top"],
    )
    assert told.exception is None
    engine = sqlalchemy.create_engine(url)
    found = pd.read_sql("select * from top", engine)
    engine.dispose()
    assert found.groupby("user").size().max() == 1 and "title" not in found
