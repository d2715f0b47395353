"""An update is a fit on all rows: of any settings, kinds of tables and rankers, and after a file."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recsys
from recsys import InputError, Recommender

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

KINDS = {"pandas": lambda t: t, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}
COLUMNS = {"user": "who", "item": "what"}


@st.composite
def tables(draw):
    """Draw rows with repeated pairs, low ratings, ties in time and ids of either kind; and where to cut."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = draw(st.integers(8, 40))
    rows = pd.DataFrame(
        {
            "who": rng.integers(0, 6, size),
            "what": rng.integers(0, 7, size),
            "stars": rng.integers(0, 6, size),
            "when": rng.integers(1, 9, size) * 86_400.0 + 1e9,
            "plays": rng.integers(1, 5, size),
        }
    )
    rows.loc[0, ["who", "what", "stars"]] = 8, 8, 5  # one pair is liked throughout
    if draw(st.booleans()):
        rows = rows.assign(who="u" + rows.who.astype(str), what="i" + rows.what.astype(str))
    return rows, draw(st.integers(4, size - 2)), draw(st.booleans())


SETTINGS = [
    {},
    {"duplicates": "count"},
    {"weight": "plays"},
    {"weight": "plays", "duplicates": "last"},
    {"weight": "plays", "duplicates": "count"},
    {"rating": "stars"},
    {"rating": "stars", "min_rating": 3},
    {"rating": "stars", "min_rating": 3, "weight": "plays"},
]


def pairs(model):
    """Return weight and time of each pair of a model, by ids."""
    package = model.package
    cells, times = package.user_items.tocoo(), package.times
    when = np.zeros(cells.nnz) if times is None else times.data + package.start
    keys = zip(package.user_ids[cells.row], package.item_ids[cells.col], strict=True)
    return dict(zip(keys, zip(cells.data.tolist(), when.tolist(), strict=True), strict=True))


def assert_same(updated, fitted, order=list):
    assert pairs(updated) == pairs(fitted)
    assert order(updated.user_ids) == order(fitted.user_ids)
    assert order(updated.item_ids) == order(fitted.item_ids)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given_time", [True, False])
@pytest.mark.parametrize("options", SETTINGS, ids=str)
@given(table=tables())
@settings(max_examples=6, deadline=None)
def test_an_update_is_a_fit_on_all_rows(kind, given_time, options, table):
    rows, cut, cold = table
    make = KINDS[kind]
    options = COLUMNS | {"rating": "none", "time": "when" if given_time else "none"} | options
    if cold:
        ids = [*rows.what.unique(), *(["i99"] if isinstance(rows.what[0], str) else [99])]
        items = pd.DataFrame({"what": ids, "year": range(len(ids))})
        options |= {"items": make(items), "cold_items": True}
    fitted = Recommender("als:factors=2,iterations=1").fit(make(rows), **options)
    model = Recommender("als:factors=2,iterations=1").fit(make(rows.iloc[:cut]), **options)
    model.update(make(rows.iloc[cut:].reset_index(drop=True)))
    assert_same(model, fitted)
    assert model.kind == kind and model.package.columns == fitted.package.columns


FAMILIES = (
    "popularity",
    "msdw",
    "cosine",
    "user-knn",
    "ease",
    "slim",
    "cf-komd:kernel=mc,degree=2",
    "graph-filter",
    "slist",
    "blend:models=ease+msdw",
)


@pytest.mark.parametrize("spec", FAMILIES)
def test_every_family_of_rankers_is_fitted_again(spec, tmp_path):
    rng = np.random.default_rng(3)
    rows = pd.DataFrame(
        {
            "who": rng.integers(0, 25, 400),
            "what": rng.integers(0, 15, 400),
            "stars": rng.integers(1, 6, 400),
            "when": 1e9 + rng.integers(0, 500, 400) * 86_400.0,
        }
    )
    options = COLUMNS | {"rating": "stars", "time": "when", "min_rating": 3}
    fitted = Recommender(spec).fit(rows, **options)
    Recommender(spec).fit(rows.iloc[:250], **options).save(tmp_path / "m")
    model = recsys.load(tmp_path / "m").update(rows.iloc[250:])
    assert_same(model, fitted)
    for user in fitted.user_ids[:6]:
        mine, theirs = (
            one.recommend(user, n=99, why=False).set_index("item")["score"] for one in (model, fitted)
        )
        # slim stops at a tolerance, and its items come in another order
        exact = {"rtol": 1e-4, "atol": 1e-5} if spec != "slim" else {"atol": 1e-3}
        np.testing.assert_allclose(mine[theirs.index], theirs, **exact)


def test_rows_are_removed_as_if_they_had_never_been():
    rng = np.random.default_rng(4)
    rows = pd.DataFrame(
        {
            "who": rng.integers(0, 9, 150),
            "what": rng.integers(0, 9, 150),
            "stars": rng.integers(1, 6, 150),
        }
    ).drop_duplicates(["who", "what"])
    options = COLUMNS | {"rating": "stars", "min_rating": 3}
    model = Recommender("msdw").fit(rows, **options)
    some = rows.iloc[::7]
    rest = rows.drop(some.index)
    fitted = Recommender("msdw").fit(rest, **options)
    assert_same(model.update(remove=some[["who", "what"]]), fitted, set)
    rest = rest[rest.who != 3]
    model.update(remove=pd.DataFrame({"who": [3]}))
    assert_same(model, Recommender("msdw").fit(rest, **options), set)
    assert "3" not in {str(name) for name in model.package.excluded.user_ids}
    with pytest.raises(InputError, match="no interactions are left"):
        model.update(remove=pd.DataFrame({"who": range(9)}))


def test_a_fit_that_declined_a_column_declines_it_in_an_update():
    rows = pd.DataFrame({"who": list("aabb"), "what": list("xyxz"), "rating": [5, 1, 0, 4]})
    options = COLUMNS | {"rating": "none"}
    fitted = Recommender("msdw").fit(rows, **options)
    assert_same(Recommender("msdw").fit(rows.iloc[:2], **options).update(rows.iloc[2:]), fitted)


def test_auto_keeps_its_models_and_weights():
    rng = np.random.default_rng(5)
    rows = pd.DataFrame({"who": rng.integers(0, 30, 300), "what": rng.integers(0, 15, 300)})
    model = Recommender("auto:rounds=2").fit(rows.iloc[:250], **COLUMNS)
    names, weights = model.ranker.part_names_, model.ranker.part_weights_
    model.update(rows.iloc[250:])
    assert model.ranker.part_names_ == names
    np.testing.assert_array_equal(model.ranker.part_weights_, weights)
    assert_same(model, Recommender("popularity").fit(rows, **COLUMNS))
