"""What people hand over by mistake, in odd types, from several threads: right, or refused in one line."""

import copy
import pickle
from datetime import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys import InputError, Interactions, Recommender, RecsysError, load
from recsys.recommender.filters import passing
from tests.recommender.test_recommender import ITEMS, KINDS, ROWS, data_of

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def model():
    return Recommender("ease").fit(data_of())


WRONG = {
    "a fraction": lambda m: m.recommend(117, items=[9.0]),
    "a truth value": lambda m: m.recommend(117, exclude=[True]),
    "a fraction among dislikes": lambda m: m.recommend(117, dislikes=[9.0]),
    "a fraction as user": lambda m: m.explain(117.0, 9),
    "a fraction as item": lambda m: m.explain(117, 9.0),
    "a list as user": lambda m: m.rules([117]),
    "bytes": lambda m: m.recommend(b"57"),
    "an array of two dimensions": lambda m: m.recommend(np.array([[117]])),
    "nothing for dislikes": lambda m: m.recommend(117, dislikes=None),
    "a dict": lambda m: m.recommend({117: 1}),
    "no mapping of filters": lambda m: m.recommend(117, filters=["year"]),
    "a range of years": lambda m: m.recommend(117, filters={"year": range(1980, 1990)}),
    "a range of text": lambda m: m.recommend(117, filters={"genres": ("Drama", "War")}),
    "no path": lambda m: m.recommend_all(5),
    "a NUL in a path": lambda m: m.recommend_all("a\0.csv"),
    "no number": lambda m: m.recommend(117, n="3"),
    "no diversity": lambda m: m.recommend(117, diversity=None),
    "an array of unknown": lambda m: m.recommend(117, unknown=np.array([1, 2])),
    "columns for interactions": lambda m: Recommender("ease").fit(data_of(), user="user_id"),
    "one column for two": lambda m: Interactions.from_frame(ROWS, user="user_id", item="user_id"),
    "a column named by a number": lambda m: Interactions.from_frame(ROWS, time=0),
    "a truth value as least": lambda m: Interactions.from_frame(ROWS.assign(rating=1), min_rating=True),
    "text as least": lambda m: Interactions.from_frame(ROWS.assign(rating=1), min_rating="x"),
    "columns without text": lambda m: Interactions.from_frame(ROWS.rename(columns={"ts": 5})),
    "a column twice": lambda m: Interactions.from_frame(pd.concat([ROWS, ROWS[["item_id"]]], axis=1)),
    "ids of two kinds": lambda m: Interactions.from_ids([1, "1", 2], [1, 2, 3]),
    "ids beyond 64 bits": lambda m: Interactions.from_ids([2**70, 1], [1, 2]),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_wrong_is_one_line(kind, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecsysError) as caught:
        WRONG[kind](model)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 250
    assert not list(tmp_path.iterdir())


def test_one_text_is_one_id():
    rows = pd.DataFrame({"user": ["a", "a", "b", "b", "c"], "item": ["1", "2", "12", "1", "2"]})
    model = Recommender("ease").fit(rows)
    assert "12" not in set(model.recommend("c", exclude="12")["item"])
    assert model.recommend("c", items="12")["item"].tolist() == ["12"]


def test_ids_of_many_types(model):
    want = model.recommend([117, 100], n=2)
    for users in (
        [np.int64(117), np.int32(100)],
        (117, "100"),
        np.array([117, 100]),
        pd.Series([117, 100], index=[5, 5]),
        pd.array([117, 100], dtype="Int64"),
        pl.Series([117, 100]),
        pa.chunked_array([[117], [100]]),
        (u for u in (117, 100)),
    ):
        assert model.recommend(users, n=2).equals(want)
    assert len(model.recommend([], n=2)) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_answer_has_columns_of_the_right_types(kind):
    model = Recommender("ease").fit(data_of(kind))
    empty, full = (model.recommend(users, unknown="skip") for users in ([3], [3, 117]))
    if kind == "pandas":
        assert empty.dtypes.equals(full.dtypes)
    else:
        assert empty.schema == full.schema
    assert len(model.recommend([3, "abc"], unknown="popular")) == 20


def test_dates_before_1970(tmp_path):
    rows = ROWS.assign(ts=ROWS.ts - pd.Timedelta(days=365 * 60))
    model = Recommender("ease").fit(Interactions.from_frame(rows, time="ts"))
    model.save(tmp_path / "m")
    for one in (model, recsys.load(tmp_path / "m")):
        one.update(pd.DataFrame({"user_id": [117], "item_id": [7], "ts": [rows.ts.max()]}))


def test_an_update_keeps_the_latest_as_a_fit_does():
    rated = ROWS.assign(stars=5)
    given = {"time": "ts", "rating": "stars", "min_rating": 3}
    first = ROWS.drop_duplicates(["user_id", "item_id"]).iloc[0]
    old, new = first.ts - pd.Timedelta("1D"), first.ts + pd.Timedelta("1D")
    for when, stars in ((old, 1), (old, 5), (new, 1), (new, 5)):
        row = pd.DataFrame(
            {"user_id": [first.user_id], "item_id": [first.item_id], "ts": [when], "stars": [stars]}
        )
        model = Recommender("msdw").fit(rated, **given).update(row)
        whole = Recommender("msdw").fit(pd.concat([rated, row]), **given)
        for one in (model, whole):
            k, place = (
                one.user_ids.tolist().index(first.user_id),
                one.item_ids.tolist().index(first.item_id),
            )
            expected = 0.0 if (when, stars) == (new, 1) else max(when, first.ts).timestamp()
            assert one.package.times[k, place] == expected


def test_a_threshold_after_reading_is_that_of_later_rows():
    rated = ROWS.assign(stars=5)
    data = Interactions.from_frame(rated, time="ts", rating="stars").rated(3)
    model = Recommender("msdw").fit(data)
    likes = model.package.user_items.nnz
    row = pd.DataFrame({"user_id": [999], "item_id": [7], "ts": [ROWS.ts.max()], "stars": [1]})
    assert model.update(row).package.user_items.nnz == likes


def test_milliseconds_become_the_seconds_that_the_model_knows(model):
    model = Recommender("ease").fit(data_of())
    row = pd.DataFrame({"user_id": [117], "item_id": [7], "ts": [1.7e12]})
    model.update(row)
    assert 1e9 < model.package.times.max() < 1e11


def test_an_update_needs_no_column_that_nothing_reads():
    model = Recommender("msdw").fit(ROWS.drop(columns="ts").assign(rating=3.0))
    model.update(pd.DataFrame({"user_id": [999], "item_id": [7]}))
    assert 999 in model.user_ids.tolist()


def test_a_fit_on_another_kind_of_table_answers_in_it():
    model = Recommender("ease").fit(data_of())
    assert isinstance(model.recommend(117), pd.DataFrame)
    assert isinstance(model.fit(data_of("polars")).recommend(117), pl.DataFrame)


def test_formulas_in_files_are_text_unless_asked(tmp_path):
    rows = pd.DataFrame({"user": ["@1", "@1", "b"], "item": ["-1", "c", "c"]})
    model = Recommender("ease").fit(rows)
    model.recommend_all(tmp_path / "a.csv")
    model.recommend_all(tmp_path / "b.csv", raw=True)
    assert "'-1" in (tmp_path / "a.csv").read_text()
    assert "'-1" not in (tmp_path / "b.csv").read_text() and "-1" in (tmp_path / "b.csv").read_text()


def test_popular_lists_keep_dislikes_away(model):
    best = model.recommend([3], unknown="popular", n=1)["item"][0]
    assert best not in model.recommend([3], unknown="popular", n=25, dislikes=[best])["item"].tolist()


FEATURES = pd.DataFrame(
    {
        "item_id": ITEMS.item_id,
        "made": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(len(ITEMS)), unit="D"),
        "tags": [["a", "b"] if k % 2 else ["c"] for k in range(len(ITEMS))],
        "size": [np.inf if k == 3 else k / 2 for k in range(len(ITEMS))],
        "count": pd.array([None if k == 4 else k for k in range(len(ITEMS))], dtype="Int64"),
        "new": pd.array([None if k == 5 else k % 3 == 0 for k in range(len(ITEMS))], dtype="boolean"),
        "kind": pd.Categorical(["x" if k % 4 else None for k in range(len(ITEMS))]),
        "title": pd.array([None if k == 6 else f"T{k}" for k in range(len(ITEMS))], dtype="string"),
    }
)
WANTED = [
    {"made": ("2020-01-05", "2020-01-10")},
    {"made": (datetime(2020, 1, 5), None)},
    {"tags": "a"},
    {"size": (0, None)},
    {"count": (3, 9)},
    {"new": True},
    {"kind": ["x"]},
    {"title": "T7"},
]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_features_of_many_types_are_read_alike_before_and_after_a_file(kind, tmp_path):
    data = Interactions.from_frame(ROWS, time="ts", items=KINDS[kind](FEATURES))
    model = Recommender("fm:iterations=2").fit(data)
    model.save(tmp_path / "m")
    again = recsys.load(tmp_path / "m")
    for wanted in WANTED:
        kept = passing(model.package.item_features, wanted)
        assert kept.tolist() == passing(again.package.item_features, wanted).tolist(), wanted
        assert 0 < kept.sum() < len(kept), wanted
    by_hand = {7 + k for k in range(len(ITEMS)) if k % 2}
    names = np.array(model.item_ids)[passing(model.package.item_features, {"tags": "a"})]
    assert set(names.tolist()) == by_hand
    assert str(model.rules(117)) == str(again.rules(117))


def test_features_by_index_by_path_and_of_one_column(tmp_path):
    indexed = ITEMS.drop(columns="item_id").set_axis(pd.RangeIndex(7, 32, name="item_id"))
    assert Interactions.from_frame(ROWS, items=indexed).titles[0].startswith("Title ")
    ITEMS.assign(year=[None, *ITEMS.year[1:]]).to_csv(tmp_path / "i.csv", index=False)
    data = Interactions.from_frame(ROWS, time="ts", items=tmp_path / "i.csv")
    model = Recommender("ease").fit(data)
    assert len(model.recommend(117, n=99, filters={"year": (1980, 2010)}))
    alone = ITEMS[["item_id"]].assign(g=["a" if k % 2 else None for k in range(len(ITEMS))])
    model = Recommender("ease").fit(Interactions.from_frame(ROWS, time="ts", items=alone))
    assert model.rules(117).taste is None


def test_dates_without_a_time():
    days = [day.date() for day in ROWS.ts]
    data = Interactions.from_frame(ROWS.assign(ts=days), time="ts")
    assert data.time.max() == pd.Timestamp(max(days)).timestamp()
    zones = [
        day.tz_localize("UTC").tz_convert("Asia/Tokyo" if k % 2 else "UTC")
        for k, day in enumerate(ROWS.ts)
    ]
    mixed = Interactions.from_frame(ROWS.assign(ts=pd.Series(zones, dtype=object)), time="ts")
    assert (mixed.time == data_of().time).all()


@pytest.mark.parametrize("least", [np.int64(3), np.float32(3), 3, Decimal(3)])
def test_a_least_rating_of_any_number_is_kept_in_a_file(least, tmp_path):
    try:
        model = Recommender("msdw").fit(ROWS.assign(rating=4), min_rating=least)
    except InputError as error:
        assert isinstance(least, Decimal) and "min_rating must be a finite number" in str(error)
        return
    model.save(tmp_path / "m")
    assert recsys.load(tmp_path / "m").package.columns.min_rating == 3.0


@pytest.mark.parametrize("through", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_answers_and_changes_by_itself(model, through):
    other = through(model)
    assert other.recommend(117).equals(model.recommend(117))
    other.update(remove=pd.DataFrame({"user_id": [117]}))
    assert len(other.recommend(117, unknown="skip")) == 0 and len(model.recommend(117)) == 10


def dated_file(path, header, rows):
    path.write_text(header + "".join(f"{line}\n" for line in rows))
    return str(path)


def dated_ratings(path, form):
    """Write ratings of 8 users and 5 items, each row by a form of user, item, rating, month and day."""
    pairs = [(u, i) for u in range(8) for i in range(5) if u != i]
    rows = [form.format(u=u, i=i, r=1 + (u + i) % 4, m=1 + i, d=13 + u) for u, i in pairs]
    return dated_file(path, "user;item;rating;time\n", rows)


def test_an_update_reads_dates_and_numbers_as_the_fit_did(tmp_path):
    rows = "0{u:02};{i};{r},5;{m:02}/{d}/2026"  # days from 13 on: months come first
    first = dated_ratings(tmp_path / "first.csv", rows)
    later = dated_file(tmp_path / "later.csv", "user;item;rating;time\n", ["000;0;12,500;07/11/2026"])
    model = Recommender("msdw").fit(first, min_rating=1.5)
    assert model.package.columns.day_first is False and model.package.columns.decimal == ","
    model.save(tmp_path / "m.recsys")
    for one in (model, load(tmp_path / "m.recsys")):
        before = one.package.user_items.nnz
        one.update(later)
        assert one.package.user_items.nnz == before + 1
        assert one.package.times.max() == 1783728000.0


def test_a_fit_keeps_how_dates_are_written_though_its_own_do_not_tell(tmp_path):
    first = dated_file(
        tmp_path / "f.csv", "user,item,time\n", [f"u{u},i{u % 3},2026-01-1{u}" for u in range(8)]
    )
    data = Interactions.from_frame(first, day_first=True)
    assert data.columns.day_first is True
