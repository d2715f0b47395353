"""The recommender on a SciPy matrix: row and column numbers for ids, values for weights."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from implicit.als import AlternatingLeastSquares
from implicit.nearest_neighbours import BM25Recommender
from threadpoolctl import threadpool_limits

import recsys
from recsys import ALS, BM25, InputError, Interactions, Recommender


def plays(seed=0, users=40, items=25):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 30, (users, items)) * (rng.random((users, items)) < 0.3)
    counts[5], counts[:, 7] = 0, 0
    return sp.csr_matrix(counts.astype(np.float32))


def test_als_on_weights_gives_the_lists_of_implicit():
    R = plays()
    params = {"factors": 8, "regularization": 0.1, "alpha": 2.0, "iterations": 5, "random_state": 3}
    with threadpool_limits(1, "blas"):  # as implicit asks for
        theirs = AlternatingLeastSquares(**params, num_threads=1)
        theirs.fit(R, show_progress=False)
    model = Recommender(ALS(**params, num_threads=1)).fit(R)
    np.testing.assert_array_equal(model.ranker.user_factors_, theirs.user_factors)
    for user in (0, 3, 39):
        for skip in (True, False):
            ids, scores = theirs.recommend(user, R[user], N=8, filter_already_liked_items=skip)
            found = model.recommend(user, n=8, filter_liked=skip)
            assert found["item"].tolist() == ids.tolist()
            np.testing.assert_allclose(found["score"], scores, rtol=1e-5)
    ones = Recommender(ALS(**params, num_threads=1)).fit(R > 0)
    assert not np.allclose(ones.ranker.item_factors_, model.ranker.item_factors_)


def test_neighbours_on_weights_give_the_lists_of_implicit(tmp_path):
    R = plays(1)
    theirs = BM25Recommender(K=30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # implicit warns of the COO matrix that it makes itself
        theirs.fit(R, show_progress=False)
    model = Recommender(BM25(30)).fit(R)
    model.save(tmp_path / "m")
    for one in (model, recsys.load(tmp_path / "m")):
        for user in (0, 3, 39):
            ids, scores = theirs.recommend(user, R[user], N=5)
            assert one.recommend(user, n=5)["item"].tolist() == ids.tolist()
            np.testing.assert_allclose(one.recommend(user, n=5)["score"], scores, rtol=1e-5)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "array"])
def test_ids_are_the_numbers_of_rows_and_columns(form, tmp_path):
    R = plays(2)
    given = sp.csr_array(R) if form == "array" else R.asformat(form)
    model = Recommender("ease").fit(given)
    assert model.user_ids.tolist() == list(range(40)) and model.item_ids.tolist() == list(range(25))
    assert {type(name) for name in [*model.user_ids, *model.item_ids]} == {int}
    for user in (0, 12):
        ids, scores = model.ranker.recommend(user, R[user], N=4)
        found = model.recommend(user, n=4)
        assert found["item"].tolist() == ids.tolist() and found["score"].tolist() == scores.tolist()
    assert model.recommend(5, n=1)["source"].tolist() == ["popular"]  # an empty row has an id, too
    model.save(tmp_path / "m")
    again = recsys.load(tmp_path / "m")
    assert again.recommend(12).equals(model.recommend(12))
    assert (again.package.user_items != (R != 0)).nnz == 0  # ease takes every interaction alike


def test_the_matrix_is_not_changed_and_what_changes_later_is_not_seen():
    R = plays(3)
    before = R.copy()
    model = Recommender("als:iterations=2,factors=4").fit(R)
    first = model.recommend(0)
    assert (R != before).nnz == 0
    R.data[:] = 1.0
    assert model.recommend(0).equals(first) and (model.package.user_items != before).nnz == 0


@pytest.mark.parametrize("spec", ["als:iterations=2,factors=4", "cosine"])
def test_an_update_keeps_the_weights_there_were(spec):
    R = plays(4)
    model = Recommender(spec).fit(R)
    u, i = (int(one[0]) for one in R.nonzero())
    new = int(np.flatnonzero(R[u].toarray().ravel() == 0)[0])
    model.update(Interactions.from_ids([u, u, 77], [new, i, 3]))
    want = sp.lil_matrix((41, 25), dtype=np.float32)
    want[:40] = R
    want[u, new] = want[40, 3] = 1
    want[u, i] += 1  # a row without a weight weighs 1
    assert (model.package.user_items != want.tocsr()).nnz == 0 and model.user_ids[-1] == 77
    whole = Recommender(spec).fit(want.tocsr())
    mine, theirs = (one.recommend(u, n=99, why=False).set_index("item") for one in (model, whole))
    np.testing.assert_allclose(mine["score"], theirs["score"][mine.index], atol=1e-4)
    model.update(remove=pd.DataFrame({"user": [u]}))
    assert (model.package.user_items != want.tocsr()[np.arange(41) != u]).nnz == 0


def test_what_cannot_be_a_matrix_of_interactions_is_refused():
    R = plays(5)
    for given, named, told in (
        (R, {"user": "who"}, "^user applies only to a table or file"),
        (R * np.nan, {}, "^data contains NaN or infinity"),
        (sp.csr_matrix((3, 4)), {}, "has no liked items"),
        (sp.csr_matrix(np.full((2, 2), 1j)), {}, "^data "),
    ):
        with pytest.raises(InputError, match=told):
            Recommender("ease").fit(given, **named)
