"""Recency: ages of likes, and what rankers that sum item weights make of them."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

from recsys import EASE, Blend, InputError, MSDw, list_rankers, load_ranker, make_ranker
from recsys.rankers.protocol import Rows, aligned, newer, recency_weights
from tests.lists import assert_close, assert_same_lists
from tests.rankers.test_slist import histories
from tests.reference import sequence

SMALL = settings(max_examples=25, deadline=None)
MODELS = (
    EASE(regularization=2.0, recency=1.0),
    MSDw(recency=0.5),
    make_ranker("slim", l1=0.1, recency=2.0),
    Blend([EASE(recency=1.0), MSDw()]),
)


@SMALL
@given(histories())
def test_ages_are_counted(drawn):
    R, T = drawn
    ages = newer(R.indptr, T.data)
    for u in range(R.shape[0]):
        part = slice(R.indptr[u], R.indptr[u + 1])
        np.testing.assert_array_equal(ages[part], sequence.newer(T.data[part]))
    np.testing.assert_allclose(recency_weights(Rows(R, T.data), 1.5), (ages + 1.0) ** -1.5)
    np.testing.assert_array_equal(recency_weights(Rows(R), 1.5), np.ones(R.nnz))


@SMALL
@given(histories())
def test_times_are_found_by_item(drawn):
    R, T = drawn
    users = np.arange(R.shape[0])[::-1]
    some = R[users].multiply(np.arange(R.shape[1]) % 3 != 1).tocsr()
    some.eliminate_zeros()
    some.sort_indices()
    found = aligned(some, T, users)
    dense, at = T.toarray(), 0
    for row, user in zip(some, users, strict=True):
        for item in row.indices:
            assert found[at] == dense[user, item]
            at += 1


@pytest.mark.thorough
@SMALL
@given(histories())
@pytest.mark.parametrize("model", MODELS[:3], ids=lambda m: m.name)
def test_scores_are_weighted_sums_of_the_weights(model, drawn):
    R, T = drawn
    fitted = make_ranker(model.name, **model.get_params()).fit(R, show_progress=False, times=T)
    W = fitted.weights_.toarray() if sp.issparse(fitted.weights_) else fitted.weights_
    timed = not (T.data == T.data[0]).all()
    scores = fitted.scores(np.arange(R.shape[0]), R)
    for u in np.flatnonzero(np.diff(R.indptr)):
        part = slice(R.indptr[u], R.indptr[u + 1])
        ages = sequence.newer(T.data[part]) if timed else np.zeros(part.stop - part.start)
        expected = ((ages + 1.0) ** -model.recency) @ W[R.indices[part]].astype(np.float64)
        np.testing.assert_allclose(scores[u], expected, atol=1e-5, rtol=1e-5)
        told = fitted.explain(int(u), R[[u]], 0, N=100)
        assert sum(s for _, s in told.contributions) == pytest.approx(scores[u, 0], abs=1e-5)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_without_order_nothing_changes(model, tmp_path):
    rng = np.random.default_rng(3)
    R = sp.csr_matrix(rng.random((30, 12)) < 0.4, dtype=np.float32)
    users = np.arange(30)
    same = make_ranker(model.name, **model.get_params()).fit(R, False, times=R * 7.0)
    plain = make_ranker(model.name, **model.get_params()).fit(R, False)
    np.testing.assert_array_equal(same.scores(users, R), plain.scores(users, R))
    T = R.astype(np.float64)
    T.data = rng.integers(1, 40, R.nnz).astype(np.float64)
    timed = make_ranker(model.name, **model.get_params()).fit(R, False, times=T)
    assert (timed.scores(users, R) != plain.scores(users, R)).any()
    np.testing.assert_array_equal(timed.scores(users, R, times=R * 7.0), plain.scores(users, R))
    assert_close(timed.scores(users, R, True), plain.scores(users, R))
    assert_close(timed.scores(users, R, True, times=T), timed.scores(users, R))
    one = np.vstack([timed.scores(u, R[[u]]) for u in users])
    assert_close(one, timed.scores(users, R))
    timed.save(tmp_path / "model")
    assert_close(load_ranker(tmp_path / "model").scores(users, R), one)
    many = timed.recommend(users, R, N=5)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("recsys.rankers.protocol.BLOCK_BYTES", 4 * 12 * 7)
        blocks = timed.recommend(users, R, N=5)
    assert_same_lists(many, blocks)


@pytest.mark.thorough
@pytest.mark.parametrize("name", list_rankers())
def test_constant_times_are_no_times_for_any_model(name):
    params = {"auto": {"rounds": 2}, "lmf": {"iterations": 2}, "bpr": {"iterations": 2}}.get(name, {})
    recent = {"recency": 1.0} if "recency" in make_ranker(name).get_params() else {}
    R = sp.csr_matrix(np.random.default_rng(4).random((40, 12)) < 0.4, dtype=np.float32)
    with_them = make_ranker(name, **params, **recent).fit(R, False, times=R * 5.0)
    without = make_ranker(name, **params).fit(R, False)
    users = np.arange(40)
    np.testing.assert_array_equal(with_them.scores(users, R), without.scores(users, R))
    np.testing.assert_array_equal(with_them.scores(users, R, times=R * 9.0), without.scores(users, R))


def test_models_without_a_notion_of_time_say_so_and_ignore_it():
    R = sp.csr_matrix(np.tri(6, 8), dtype=np.float32)
    T = R.multiply(np.arange(1.0, 9.0)).tocsr()
    ranker = make_ranker("popularity").fit(R, False, times=T)
    assert "times" not in ranker.capabilities and ranker.times_ is None
    np.testing.assert_array_equal(ranker.scores(3, R[[3]], times=T[[3]]), ranker.scores(3, R[[3]]))
    assert "times" in EASE.capabilities and EASE().fit(R, False, times=T).times_ is None


def test_recency_is_checked():
    with pytest.raises(InputError, match="recency must be a finite number of at least 0, not -1"):
        EASE(recency=-1).fit([[1, 1]])
