"""Rows divided at a time before they are merged: `test_from` of `Interactions.from_frame` and the command line."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from recsys import InputError, Interactions, evaluate
from recsys.cli import app
from recsys.data import split

ROWS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 5), st.integers(0, 9), st.integers(-1, 3)),
    min_size=2, max_size=40,
)  # fmt: skip


def table(rows):
    return pd.DataFrame(rows, columns=["user", "item", "time", "n"]).astype({"user": str, "item": str})


@pytest.mark.thorough
@settings(max_examples=100, deadline=None)
@given(ROWS, st.integers(1, 9))
def test_rows_from_a_time_on_are_tested_and_the_others_train(rows, start):
    early = {(str(u), str(i)) for u, i, t, n in rows if t < start and n > 0}
    late = {(str(u), str(i)) for u, i, t, n in rows if t >= start and n > 0}
    users, items = {u for u, _ in early}, {i for _, i in early}
    frame = table(rows)
    if not users & {u for u, _ in late} or not items & {i for _, i in late}:
        with pytest.raises(InputError):
            Interactions.from_frame(frame, weight="n", test_from=start)
        return
    data = Interactions.from_frame(frame, weight="n", test_from=start)
    (fold,) = split(data, "published")

    def pairs(matrix):
        found = matrix.tocoo()
        return {(data.user_ids[u], data.item_ids[i]) for u, i in zip(found.row, found.col, strict=True)}

    assert pairs(fold.train) == early
    assert pairs(fold.test) == {(u, i) for u, i in late if u in users}
    amounts = {}
    for u, i, t, n in rows:
        if t < start and n > 0:
            amounts[str(u), str(i)] = amounts.get((str(u), str(i)), 0) + n
    train = data.matrix.toarray()
    assert all(
        train[list(data.user_ids).index(u), list(data.item_ids).index(i)] == n
        for (u, i), n in amounts.items()
    )
    tested = sum(t >= start and n > 0 for *_, t, n in rows)
    assert (
        f"{tested:,} row{'s' * (tested != 1)} from {start} on {'is' if tested == 1 else 'are'} tested"
        in data.notes
    )


@pytest.mark.thorough
@settings(max_examples=40, deadline=None)
@given(ROWS, st.integers(1, 9))
def test_repeats_are_ranked_where_liked_items_are(rows, start):
    frame = table(rows).assign(n=1)
    late = frame.time >= start
    try:
        before = Interactions.from_frame(frame[~late])
        two = evaluate(before, "popularity", test=frame[late], filter_liked=False, metrics="ndcg@3")
    except InputError:
        return
    data = Interactions.from_frame(frame, test_from=start)
    one = evaluate(data, "popularity", protocol="published", filter_liked=False, metrics="ndcg@3")
    assert one.frame()["mean"].tolist() == two.frame()["mean"].tolist()
    new = frame[late].merge(frame[~late][["user", "item"]].drop_duplicates(), how="left", indicator=True)
    new = new[(new._merge == "left_only") & new.user.isin(frame[~late].user)]
    if new.item.isin(frame[~late].item).any():  # otherwise only what is not known yet is tested
        one = evaluate(data, "popularity", protocol="published", metrics="ndcg@3")
        two = evaluate(before, "popularity", test=new[["user", "item", "time"]], metrics="ndcg@3")
        assert one.frame()["mean"].tolist() == two.frame()["mean"].tolist()


def test_a_test_half_is_what_is_tested_unless_a_protocol_is_named():
    frame = table([(u, i, (u + i) % 6, 1) for u in range(5) for i in range(6)])
    data = Interactions.from_frame(frame, test_from=4)
    reports = [
        evaluate(data, "popularity", metrics="ndcg@3", protocol=one)
        for one in (None, "published", "holdout")
    ]
    assert [one.protocol for one in reports] == ["published", "published", "holdout"]
    means = [one.frame()["mean"].item() for one in reports]
    assert means[0] == means[1]


def test_dates_and_ratings(tmp_path):
    frame = pd.DataFrame(
        {
            "user": ["c", "a", "a", "b", "b", "b"], "item": ["y", "x", "y", "x", "y", "x"],
            "stars": [5, 5, 4, 5, 5, 1],
            "when": ["2024-01-01", "2024-01-01", "2024-03-01", "2024-01-02", "2024-03-05", "2024-03-06"],
        }
    )  # fmt: skip
    read = dict(rating="stars", time="when", min_rating=4)
    for start in ("2024-03-01", pd.Timestamp("2024-03-01"), np.datetime64("2024-03-01"), 1709251200):
        data = Interactions.from_frame(frame, test_from=start, **read)
        assert data.held_out.tolist() == [False, False, False, True, True]
        assert "3 rows from 2024-03-01 on are tested" in data.notes
    path = tmp_path / "stars.csv"
    frame.to_csv(path, index=False)
    ran = CliRunner().invoke(
        app,
        ["evaluate", "--interactions", str(path), "--rating-col", "stars", "--time-col", "when",
         "--min-rating", "4", "--test-from", "2024-03-01", "--model", "popularity", "--metric", "ndcg@1"],
    )  # fmt: skip
    assert ran.exit_code == 0 and "3 rows from 2024-03-01 on are tested" in ran.output


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"test_from": "soon"}, "test_from 'soon': no time"),
        (
            {"test_from": 5, "time": "none"},
            "interactions: test_from needs a column of times; name it with time",
        ),
        ({"test_from": 99}, "no row is at or after 99; times are from 1 to 7"),
        (
            {"test_from": 5},
            "interactions from 5 on: no item of it is in interactions; its ids are such as 'y'",
        ),
        ({"test_from": 0}, "no row is before 0; times are from 1 to 7"),
    ],
)
def test_a_time_that_divides_nothing_is_refused(options, told):
    frame = pd.DataFrame({"user": ["a", "a"], "item": ["x", "y"], "time": [1, 7]})
    with pytest.raises(InputError, match=told.replace("(", r"\(")):
        Interactions.from_frame(frame, **options)


@pytest.mark.parametrize("more", [["--test", "late.csv", "--interactions", "x.csv"], []])
def test_commands_refuse_a_time_beside_a_test_half_and_of_a_named_dataset(more):
    ran = CliRunner().invoke(
        app, ["evaluate", "--test-from", "2024-01-01", "--model", "popularity", *more]
    )
    assert isinstance(ran.exception, InputError)
    assert "--test-from" in str(ran.exception)
