"""Content: the reference implementation, cold items, files, and what texts and auto make of it."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError, load_ranker, make_ranker
from recsys.data import Interactions
from recsys.data.features import SideInformation, texts
from recsys.rankers.auto import candidate_specs
from recsys.rankers.content import Content
from tests.reference import rankers as reference


def world(seed, users=15, items=12, kinds=6):
    """Interactions, their times without ties, and attributes."""
    rng = np.random.default_rng(seed)
    R = (rng.random((users, items)) < 0.4) * 1.0
    R[0, 0] = 1
    R[:, items - 1] = 0  # a cold item
    times = R * (1 + rng.permutation(users * items).reshape(users, items))
    F = (rng.random((items, kinds)) < 0.4) * rng.integers(1, 3, (items, kinds))
    F[items - 1, 0], F[:, kinds - 1] = 1, 1
    return R, times, F.astype(float)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from([0.0, 1.0, 2.0]),
    st.sampled_from([0.0, 0.7]),
    st.sampled_from([0.0, 1.0]),
)
def test_scores_are_those_of_the_reference(seed, idf, popularity, recency):
    R, times, F = world(seed)
    model = Content(idf=idf, popularity=popularity, recency=recency)
    model.fit(R, show_progress=False, item_features=F, times=times)
    expected = reference.content(R, R, F, idf, popularity, recency, times)
    full = R.any(axis=1)
    found = model.scores(np.arange(len(R)), R)
    np.testing.assert_allclose(found[full], expected[full], rtol=1e-5, atol=1e-6)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_shares_sum_to_the_score_and_a_file_keeps_it(tmp_path_factory, seed):
    R, times, F = world(seed)
    model = Content(popularity=0.5)
    model.fit(R, show_progress=False, item_features=F, times=times)
    user = int(np.flatnonzero(R.any(axis=1))[-1])
    for item in (3, 11):
        told = model.explain(user, R[[user]], item, N=20)
        assert told.score == pytest.approx(model.scores(user, R[[user]])[0, item], abs=1e-5)
        assert told.bias == pytest.approx(0.0, abs=1e-5)
    path = tmp_path_factory.mktemp("content") / "model"
    model.save(path)
    users = np.arange(len(R))
    np.testing.assert_array_equal(load_ranker(path).scores(users, R), model.scores(users, R))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_how_items_and_attributes_are_numbered_does_not_matter(seed):
    R, times, F = world(seed)
    rng = np.random.default_rng(seed)
    items, kinds = rng.permutation(R.shape[1]), rng.permutation(F.shape[1])
    model = Content().fit(R, False, item_features=F, times=times)
    other = Content().fit(R[:, items], False, item_features=F[items][:, kinds], times=times[:, items])
    users = np.arange(len(R))
    np.testing.assert_allclose(
        other.scores(users, R[:, items])[R.any(axis=1)],
        model.scores(users, R)[R.any(axis=1)][:, items],
        rtol=1e-5,
        atol=1e-6,
    )


def test_cold_items_are_ranked_by_their_attributes():
    F = np.repeat(np.eye(2), 10, axis=0)
    R = np.zeros((4, 20))
    R[:2, 1:5], R[2:, 11:15] = 1, 1
    for params in ({}, {"popularity": 1.0}):
        times = R * np.arange(1, 21)
        model = Content(**params).fit(R, show_progress=False, item_features=F, times=times)
        ids = model.recommend(np.arange(4), R, N=6).ids
        assert (ids[:2] < 10).all() and (ids[2:] >= 10).all()
    assert "cold-items" in model.capabilities


def test_parameters_out_of_range_are_refused():
    for params in ({"idf": -1}, {"recency": -1}, {"popularity": np.nan}):
        with pytest.raises(InputError, match=next(iter(params))):
            Content(**params).fit([[1, 1]])


TABLE = pd.DataFrame(
    {
        "title": ["The Red Door", "A red car", "Blue car", "Blue door", None, "Green"],
        "tags": ["rock|pop", "rock", "pop|jazz", "jazz|rock|folk", "folk|pop", "jazz"],
        "year": [1990, 1991, 1992, 1990, 1991, 1992],
    }
)


def test_texts_give_words_and_lists_give_values():
    found = texts(TABLE)
    assert found.names == (
        "title=blue",
        "title=car",
        "title=door",
        "title=red",
        "tags=folk",
        "tags=jazz",
        "tags=pop",
        "tags=rock",
    )
    assert found.X[3].toarray().ravel().tolist() == [1, 0, 1, 0, 1, 1, 0, 1]
    assert texts(TABLE[["year"]]) is None and texts(None) is None
    assert texts(pd.DataFrame({"title": ["one", "two"]})) is None  # no word stands twice


def test_texts_reach_content_and_auto_and_no_other_ranker():
    data = Interactions(
        np.repeat(np.arange(3), 2), np.arange(6), np.arange(3), np.arange(6), item_features=TABLE
    )
    known = SideInformation(data)
    with_texts = known.of(make_ranker("content"))["item_features"]
    without = known.of(make_ranker("fm"))["item_features"]
    assert with_texts.shape[1] == without.shape[1] + len(texts(TABLE).names)
    assert (with_texts != known.of(make_ranker("auto"))["item_features"]).nnz == 0


@pytest.mark.thorough
def test_auto_tries_content_where_items_have_features_and_gives_cold_items():
    rng = np.random.default_rng(0)
    kind = np.repeat(np.arange(8), 10)
    taste = rng.integers(0, 8, 150)
    R = (rng.random((150, 80)) < np.where(taste[:, None] == kind[None], 0.35, 0.01)) * 1.0
    R[:, ::10] = 0
    R = sp.csr_matrix(R)
    F = np.eye(8)[kind]
    plain = make_ranker("auto", rounds=4).fit(R, show_progress=False)
    model = make_ranker("auto", rounds=4).fit(R, show_progress=False, item_features=F)
    assert not any("content" in spec for spec in plain.validation_)
    assert {spec for spec in model.validation_ if "content" in spec} == {
        spec for spec in candidate_specs(80, R.nnz, described=True) if spec.startswith("content")
    }
    assert any(spec.startswith("content") for spec in model.part_names_)
    scores = model.scores(np.arange(150), R)
    cold = scores[:, ::10]
    assert (cold.argmax(axis=1) == taste).mean() > 0.9
