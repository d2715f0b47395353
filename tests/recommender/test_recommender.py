"""The recommender against matrices and brute force: the same lists, in ids."""

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys import InputError, Interactions, NotFittedError, Recommender, make_ranker
from recsys.data import tables
from recsys.recommender.filters import passing

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

N_USERS, N_ITEMS = 40, 25
RNG = np.random.default_rng(5)
PAIRS = np.argwhere(RNG.random((N_USERS, N_ITEMS)) < 0.25 + 0.4 * (np.arange(N_ITEMS) % 5 == 0))
RNG.shuffle(PAIRS)
ROWS = pd.DataFrame(
    {
        "user_id": PAIRS[:, 0] + 100,
        "item_id": PAIRS[:, 1] + 7,
        "ts": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(len(PAIRS)), unit="h"),
    }
)
ITEMS = pd.DataFrame(
    {
        "item_id": np.arange(N_ITEMS) + 7,
        "title": [f"Title {k}" for k in range(N_ITEMS)],
        "year": 1980 + np.arange(N_ITEMS),
        "genres": ["Drama|War" if k % 3 else "Comedy" for k in range(N_ITEMS)],
    }
)
KINDS = {"pandas": lambda t: t, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}


def data_of(kind="pandas", rows=ROWS, text=False):
    if text:
        rows = rows.assign(
            user_id="u" + rows.user_id.astype(str), item_id="i" + rows.item_id.astype(str)
        )
        items = ITEMS.assign(item_id="i" + ITEMS.item_id.astype(str))
    else:
        items = ITEMS
    make = KINDS[kind]
    return Interactions.from_frame(
        make(rows), user="user_id", item="item_id", time="ts", items=make(items)
    )


@pytest.fixture(scope="module")
def model():
    return Recommender("ease").fit(data_of())


def as_pandas(table):
    table = tables.wrapped("it", table)
    return pd.DataFrame({name: table[name].to_list() for name in table.columns})


@pytest.mark.parametrize("spec", ["ease", "cf-komd:kernel=mc,degree=2", "popularity", "als", "slist"])
def test_lists_are_those_of_the_ranker(spec):
    data = data_of()
    model = Recommender(spec).fit(data)
    users = [117, 100, 139]
    found = model.recommend(users, n=4, why=False)
    ranker, matrix = model.ranker, data.matrix
    for user in users:
        k = data.user_ids.tolist().index(user)
        ids, scores = ranker.recommend(k, matrix[k], N=4)
        mine = found[found.user == user]
        assert mine["item"].tolist() == data.item_ids[ids].tolist()
        assert mine["score"].tolist() == pytest.approx(scores.tolist(), rel=1e-6)
        assert mine["title"].tolist() == [f"Title {i - 7}" for i in data.item_ids[ids]]
        assert mine["rank"].tolist() == [1, 2, 3, 4]
    assert found["user"].drop_duplicates().tolist() == users
    assert all(type(name) is int for name in found["item"].tolist())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", [False, True])
def test_ids_and_tables_come_back_as_they_came_also_after_a_file(kind, text, tmp_path):
    model = Recommender("ease").fit(data_of(kind, text=text))
    model.save(tmp_path / "m")
    for one in (model, recsys.load(tmp_path / "m")):
        user = "u117" if text else 117
        found = one.recommend([user], n=3)
        assert tables.kind_of(tables.wrapped("it", found)) == kind == one.kind
        table = as_pandas(found)
        assert table["user"].tolist() == [user] * 3
        assert {type(name) for name in table["item"].tolist()} == {str if text else int}
        assert list(table.columns) == ["user", "rank", "item", "title", "score", "why"]
        assert as_pandas(one.similar(table["item"][0]))["to"][0] == table["item"][0]
    assert table.equals(as_pandas(model.recommend([user], n=3)))
    assert recsys.load(tmp_path / "m", frames="pandas").kind == "pandas"
    with pytest.raises(InputError, match="frames must be one of"):
        recsys.load(tmp_path / "m", frames="spark")


def test_everything_known_is_in_the_file(tmp_path, model):
    model.save(tmp_path / "m")
    again = recsys.load(tmp_path / "m")
    want = {"year": (1985, 1995), "genres": ["War", "Musical"]}
    assert again.recommend(117, filters=want).equals(model.recommend(117, filters=want))
    assert str(again.rules(117)) == str(model.rules(117))
    assert again.package.columns == model.package.columns
    before, after = model.package.item_features, again.package.item_features
    assert before.columns.tolist() == after.columns.tolist() and after["year"].dtype == np.int64
    assert (before.astype(object).to_numpy() == after.astype(object).to_numpy()).all()


def test_one_id_text_of_a_number_and_a_column_are_asked_for_alike(model):
    want = model.recommend([117], n=3)
    for users in (117, "117", np.int64(117), ["117"], pd.Series([117], index=[9]), pl.Series([117])):
        assert model.recommend(users, n=3).equals(want)
    for wrong in (5.5, [5.5], None, [True], {1.5}):
        with pytest.raises(InputError, match="users must be ids, text or integers"):
            model.recommend(wrong)


def test_unknown_users(model):
    with pytest.raises(InputError, match="unknown user id 3; there are 40, such as "):
        model.recommend([117, 3])
    assert model.recommend([3, 117], unknown="skip")["user"].unique().tolist() == [117]
    found = model.recommend([3, 117], n=4, unknown="popular")
    assert found["user"].tolist() == [3] * 4 + [117] * 4
    people = ROWS.drop_duplicates(["user_id", "item_id"]).item_id.value_counts()
    mine = found[found.user == 3]
    assert mine["score"].tolist() == people.head(4).tolist()
    for item, why in zip(mine["item"], mine["why"], strict=True):
        assert why == f"{people[item]} people like it."
    assert model.recommend([3], unknown="popular", items=[9], n=4)["item"].tolist() == [9]
    with pytest.raises(InputError, match="unknown must be one of error, skip, popular"):
        model.recommend([3], unknown="guess")


def test_no_padding_and_nothing_liked(model):
    found = model.recommend([117], n=1000)
    liked = set(ROWS[ROWS.user_id == 117].item_id)
    assert set(found["item"]) == set(ITEMS.item_id) - liked and len(found) == len(set(found["item"]))


@pytest.mark.parametrize("seed", range(8))
def test_filters_are_those_of_a_loop(seed, model):
    rng = np.random.default_rng(seed)
    low, high = sorted(rng.integers(1978, 2008, 2).tolist())
    wanted = rng.choice(["Drama", "War", "Comedy"], rng.integers(1, 3), replace=False).tolist()
    some = rng.choice(ITEMS.item_id, 15, replace=False).tolist()
    out = rng.choice(ITEMS.item_id, 5, replace=False).tolist()
    expected = {
        item
        for item, year, genres in zip(ITEMS.item_id, ITEMS.year, ITEMS.genres, strict=True)
        if low <= year <= high
        and set(wanted) & set(genres.split("|"))
        and item in some
        and item not in out
    }
    liked = set(ROWS[ROWS.user_id == 117].item_id)
    filters = {"year": (low, high), "genres": wanted}
    if not expected:
        with pytest.raises(InputError, match="no item passes the filters"):
            model.recommend(117, items=some, exclude=out, filters=filters)
        return
    found = model.recommend(117, n=99, items=some, exclude=out, filters=filters)
    assert set(found["item"]) == expected - liked
    near = model.similar(7, n=99, candidates=some, exclude=out, filters=filters)
    assert set(near["item"]) == expected - {7}


def test_filters_read_text_numbers_and_gaps():
    table = pd.DataFrame(
        {
            "year": ["1980", None, "1999"],
            "colour": ["red", "blue", None],
            "size": [1.0, np.nan, 3.0],
            "made": ["2020-01-01", "2021-05-01", None],
        }
    )
    for filters, kept in (
        ({"year": (1985, None)}, [False, False, True]),
        ({"year": (None, 1980)}, [True, False, False]),
        ({"colour": "red"}, [True, False, False]),
        ({"colour": {"red", "blue"}}, [True, True, False]),
        ({"size": 3}, [False, False, True]),
        ({"size": (None, None)}, [True, False, True]),
        ({"made": ("2020-06-01", None)}, [False, True, False]),
    ):
        assert passing(table, filters).tolist() == kept, filters
    for filters, told in (
        ({"colur": "red"}, "did you mean 'colour'"),
        ({"year": (1, 2, 3)}, "a pair"),
        ({"year": ("a", None)}, "the column contains numbers, but the bound is 'a'"),
        ({"made": (2020, None)}, "the column contains dates, but the bound is '2020'"),
    ):
        with pytest.raises(InputError, match=told):
            passing(table, filters)
    with pytest.raises(InputError, match="pass items= to Interactions.from_frame"):
        passing(None, {"year": 1})


def test_a_history_is_folded_in_and_dislikes_are_kept_away(model):
    k = model.user_ids.tolist().index(117)
    row = model.package.user_items[k]
    history = [int(name) for name in model.item_ids[row.indices]]
    found = model.recommend_history(history, n=5)
    assert found["item"].tolist() == model.recommend(117, n=5)["item"].tolist()
    assert found["user"].tolist() == ["new"] * 5
    worst = found["item"][0]
    without = model.recommend_history(history, n=25, dislikes=[worst], diversity=0.3)
    assert worst not in without["item"].tolist()
    empty = model.recommend_history([], n=2)
    assert empty["why"].str.endswith("people like it.").all()
    with pytest.raises(InputError, match="in the history twice"):
        model.recommend_history([7, 7])


@pytest.mark.parametrize("ending", [".parquet", ".csv", None])
def test_the_lists_of_all_users(model, tmp_path, ending, monkeypatch):
    monkeypatch.setattr("recsys.recommender.lists.BLOCK", 7)
    want = model.recommend(model.user_ids, n=3, why=False)
    if ending is None:
        found = model.recommend_all(n=3)
    else:
        path = model.recommend_all(tmp_path / f"top{ending}", n=3)
        read = {".parquet": pd.read_parquet, ".csv": pd.read_csv}[ending]
        found = read(path)
    assert found["item"].tolist() == want["item"].tolist()
    assert found["user"].tolist() == want["user"].tolist() and list(found.columns) == list(want.columns)
    np.testing.assert_allclose(found["score"], want["score"], rtol=1e-8)
    if ending == ".parquet":
        assert found.dtypes["user"] == found.dtypes["item"] == np.int64
    with pytest.raises(InputError, match="the ending must be .parquet or .csv"):
        model.recommend_all(tmp_path / "top.xlsx")


def test_what_is_said_equals_counts(model):
    liked = {user: set(mine.item_id) for user, mine in ROWS.groupby("user_id")}
    rules = model.rules(117, n=10)
    for item, hits, support, others_hits, others, (_, _, sentence, rule) in zip(
        *(rules.frame()[name] for name in ("item", "hits", "support", "others_hits", "others")),
        rules.items,
        strict=True,
    ):
        named = {int(model.item_ids[k]) for k in rule.items}
        holds = [user for user in liked if user != 117 and named <= liked[user]]
        rest = [user for user in liked if user != 117 and not named <= liked[user]]
        assert (hits, support) == (sum(item in liked[u] for u in holds), len(holds))
        assert (others_hits, others) == (sum(item in liked[u] for u in rest), len(rest))
        count = f"All {support}" if hits == support else f"{hits} of the {support}"
        assert sentence.startswith(f"{count} other users")
    item_asked = int(model.recommend(117, n=5)["item"].iloc[4])
    why = model.explain(117, item_asked)
    table = why.frame()
    assert set(table["item"]) <= liked[117]
    total = why.base + why.reasons.others + table["adds"].sum()
    assert abs(total - why.score) < 1e-6
    everyone = model.recommend(117, n=99).set_index("item")
    assert abs(everyone["score"][item_asked] - why.score) < 1e-6
    assert everyone["why"][item_asked] == why.sentence


def test_notebooks_are_shown_text_only():
    items = ITEMS.assign(title="<script>alert(1)</script>")
    data = Interactions.from_frame(ROWS, time="ts", items=items)
    model = Recommender("ease").fit(data)
    html = model.explain(117, 8)._repr_html_()
    assert "<script" not in html and html.startswith("<p>")
    assert "&lt;script&gt;" in model.explain(117, 8)._repr_html_()


UPDATED = ("cf-komd:kernel=md,degree=2", "msdw", "ease", "als:iterations=3")


@pytest.mark.parametrize("spec", UPDATED)
def test_an_update_is_a_refit(spec):
    first, later = ROWS.iloc[:200], ROWS.iloc[200:]
    new = pd.DataFrame({"user_id": [999, 999], "item_id": [7, 5000], "ts": [ROWS.ts.max()] * 2})
    model = Recommender(spec).fit(data_of(rows=first))
    model.update(pd.concat([later, new]), items=pd.DataFrame({"item_id": [5000], "title": ["New"]}))
    whole = Recommender(spec).fit(data_of(rows=pd.concat([ROWS, new])))
    assert set(model.user_ids) == set(whole.user_ids) and 5000 in model.item_ids.tolist()
    assert all(type(name) is int for name in model.item_ids)
    assert model.package.titles[-1] == "New"
    mine, theirs = (
        {
            (u, i)
            for u, i in zip(
                one.user_ids[one.package.user_items.tocoo().row],
                one.item_ids[one.package.user_items.tocoo().col],
                strict=True,
            )
        }
        for one in (model, whole)
    )
    assert mine == theirs
    if spec.startswith("als"):  # starts from other random numbers where ids come in another order
        return
    for user in (999, 117, 130):
        mine, theirs = (m.recommend(user, n=99, why=False).set_index("item") for m in (model, whole))
        assert set(mine.index) == set(theirs.index)
        np.testing.assert_allclose(mine["score"], theirs["score"][mine.index], atol=1e-5)
    assert repr(model).endswith(f" on 41 users, 26 items, {len(PAIRS) + 2} interactions>")


def test_a_lower_rating_takes_a_like_back():
    rated = ROWS.assign(stars=5.0)
    data = Interactions.from_frame(rated, time="ts", rating="stars", min_rating=4)
    model = Recommender("msdw").fit(data)
    item = int(ROWS[ROWS.user_id == 117].item_id.iloc[0])
    then = ROWS.ts.max() + pd.Timedelta("1D")
    model.update(
        pd.DataFrame({"user_id": [117, 999], "item_id": [item, item], "ts": [then] * 2, "stars": [1, 2]})
    )
    k = model.user_ids.tolist().index(117)
    place = model.item_ids.tolist().index(item)
    assert model.package.user_items[k, place] == 0
    assert 999 not in model.user_ids.tolist()  # who only rated low likes nothing


@pytest.mark.parametrize("spec", ["msdw", "ease", "slist"])
def test_a_removed_user_left_nothing(spec):
    model = Recommender(spec).fit(data_of())
    model.update(remove=pd.DataFrame({"user_id": [117]}))
    without = Recommender(spec).fit(data_of(rows=ROWS[ROWS.user_id != 117]))
    assert 117 not in model.user_ids.tolist()
    for user in (100, 130):
        mine, theirs = (m.recommend(user, n=99, why=False).set_index("item") for m in (model, without))
        np.testing.assert_allclose(mine["score"], theirs["score"][mine.index], atol=1e-5)
    with pytest.raises(InputError, match="remove needs a column 'user_id', or 'item_id', or both"):
        model.update(remove=pd.DataFrame({"who": [100]}))


def test_rows_without_a_time_are_refused_where_times_are_known(model):
    copied = Recommender("ease").fit(data_of())
    for rows, told in (
        (ROWS.drop(columns="ts"), "give each new row one in the column 'ts'"),
        (Interactions.from_ids([117], [7]), "give each new row one in the column 'ts'"),
        (ROWS.assign(ts=np.arange(len(ROWS), dtype=float)), "in another unit than the model"),
        (ROWS.assign(user_id="x"), "user id 'x': the ids of this model are integers"),
    ):
        before = repr(copied)
        with pytest.raises(InputError, match=told):
            copied.update(rows)
        assert repr(copied) == before
    assert copied.recommend(117).equals(model.recommend(117))


def test_a_model_is_named_by_text_or_a_ranker_and_fitted_on_a_copy():
    ranker = make_ranker("ease", regularization=3.0)
    model = Recommender(ranker).fit(ROWS)
    assert not hasattr(ranker, "weights_") and model.ranker.regularization == 3.0
    assert list(model.recommend(117).columns) == ["user", "rank", "item", "score", "why"]  # no titles
    for wrong, told in (
        (3, "not int"),
        ("eas", "did you mean 'ease'"),
        ("ease:x=1", "no parameter 'x'"),
    ):
        with pytest.raises(InputError, match=told):
            Recommender(wrong)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        Recommender("ease").recommend(1)
    assert repr(Recommender("ease")) == "Recommender('ease')"


def test_every_rating_counts_is_said_so():
    rated = ROWS.assign(rating=RNG.integers(1, 6, len(ROWS)))
    model = Recommender("ease").fit(Interactions.from_frame(rated, time="ts"))
    assert model.recommend(117)["why"].str.startswith("Because you rated").any()
    assert "ratings" in repr(model)
