import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError
from recsys.data import Interactions
from recsys.data.features import encode_column, encode_table, ranges
from recsys.datasets import load_dataset
from recsys.explain import item_attributes
from recsys.fm import PairEncoder
from tests.reference import encoders

CELLS = {
    "whole": st.integers(-3, 30),
    "year": st.one_of(st.none(), st.integers(1890, 2025)),
    "number": st.one_of(st.none(), st.floats(-1e6, 1e6, allow_nan=False)),
    "genres": st.one_of(
        st.none(), st.lists(st.sampled_from([" a", "b", "", "nan", "c "])).map("|".join)
    ),
    "Release_Year": st.one_of(st.none(), st.sampled_from(["1999", "about 2000", "", "2004"])),
    "text": st.one_of(st.none(), st.text("ab 1.", max_size=3)),
    "flag": st.booleans(),
    "Title": st.text("xyz", max_size=2),
}


@st.composite
def tables(draw):
    rows = draw(st.integers(1, 15))
    names = draw(st.lists(st.sampled_from(sorted(CELLS)), unique=True, max_size=5))
    return pd.DataFrame(
        {n: draw(st.lists(CELLS[n], min_size=rows, max_size=rows)) for n in names}, index=range(rows)
    )


def same(ours, theirs):
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    ours.sort_indices(), theirs.sort_indices()
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(ours, part), getattr(theirs, part))


def compare(table):
    for buckets in (2, 3, 8, 10, 12):
        ours, (theirs, names) = encode_table(table, buckets=buckets), encoders.table(table, buckets)
        same(ours.X, theirs)
        assert list(ours.names) == names
        for name in table.columns:
            ours, (theirs, names) = (
                encode_column(name, table[name], buckets=buckets),
                encoders.column(name, table[name], buckets),
            )
            same(ours.X, theirs)
            assert list(ours.names) == names
    kept, (theirs, names) = encode_table(table, numbers="keep"), encoders.table(table)
    same(kept.X, theirs)
    assert list(kept.names) == names
    data = Interactions.from_ids(["u"] * len(table), [f"i{k}" for k in range(len(table))])
    data = data.with_features(items=table.set_axis([f"i{k}" for k in range(len(table))]))
    found = item_attributes(data, min_items=0)
    columns = {}
    for name in table.columns:
        if name.lower() not in ("title", "name", "url"):
            columns |= encoders.attributes(name, table[name])
    assert found.names == tuple(columns)
    np.testing.assert_array_equal(
        found.X.T, np.array(list(columns.values())).reshape(len(columns), len(table))
    )


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(tables())
def test_random_tables_give_what_the_plain_encoders_give(table):
    compare(table)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", ["sample", "movielens", pytest.param("movielens-1m", marks=pytest.mark.slow)]
)
def test_the_tables_of_datasets_give_what_the_plain_encoders_give(name, request):
    data = load_dataset(name, None if name == "sample" else request.getfixturevalue("data_dir"))
    for table in (data.user_features, data.item_features):
        if table is not None:
            compare(table.drop(columns=["title", "date", "video", "url"], errors="ignore"))
    pairs = PairEncoder(data.user_features, data.item_features).fit(data.n_users, data.n_items)
    assert len(set(pairs.names_)) == len(pairs.names_)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab|"), st.sampled_from([" x", "y|z", "1"])), min_size=1))
def test_categories_are_taken_whole(rows):
    cells = np.array(rows, dtype=object)
    ours = encode_table(pd.DataFrame(cells, columns=["p", "q"]), numbers="values", separator=None)
    theirs, names = encoders.one_hot(["p", "q"], cells)
    np.testing.assert_array_equal(ours.X.toarray(), theirs)
    assert list(ours.names) == names
    same(ours.X, encoders.dummies([pd.Series(cells[:, k]) for k in (0, 1)]))


def test_two_columns_of_one_name_and_none_at_all():
    twice = pd.DataFrame([["a", "b"], ["a", "c"]], columns=["x", "x"])
    assert encode_table(twice).names == ("x=a", "x=b", "x=c")
    nothing = encode_table(pd.DataFrame(index=range(3)))
    assert nothing.names == () and sp.issparse(nothing.X) and nothing.X.shape == (3, 0)
    with pytest.raises(InputError, match="numbers must be one of keep, "):
        encode_table(twice, numbers="bins")


def test_truth_values_in_one_bucket_are_one_feature():
    found = encode_column("flag", pd.Series([True, False]), buckets=1)
    assert found.names == ("flag=0–1",) and found.X.sum() == 2


def test_missing_numbers_are_in_no_range():
    found = encode_column("n", pd.Series([None, 0, 1, 2]), buckets=2)
    assert found.names == ("n=0", "n=1–2") and found.X.sum(axis=1).tolist() == [[0], [1], [1], [1]]


def test_ranges_write_whole_numbers_out():
    salaries = [np.array([1000000.0, 1000004.0]), np.array([1000005.0, 1250000.0])]
    assert ranges(salaries) == ["1000000–1000004", "1000005–1250000"]
    assert ranges([np.array([1000.25, 1000.3])]) == ["1000.25–1000.3"], "the ends do not read alike"
    assert ranges([np.array([2.0, 2.0]), np.array([1e20, 2e20])]) == ["2", "1e+20–2e+20"]
    assert ranges([]) == []


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.floats(-1e9, 1e9, allow_nan=False).map(lambda x: x + 0.0), min_size=1, unique=True),
    st.integers(1, 4),
)
def test_ranges_tell_numbers_apart(numbers, size):
    numbers = sorted(numbers)
    groups = [np.array(numbers[k : k + size]) for k in range(0, len(numbers), size)]
    texts = ranges(groups)
    assert len(set(texts)) == len(groups)
    for group, text in zip(groups, texts, strict=True):
        ends = [float(end) for end in text.split("–")]
        assert len(ends) == (1 if len(group) == 1 else 2) and ends == sorted(ends)
        np.testing.assert_allclose(ends, [group[0], group[-1]][: len(ends)], rtol=5e-4)
