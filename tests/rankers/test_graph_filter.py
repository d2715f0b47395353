"""Filters of the graph of items against dense matrices."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from recsys import InputError, load_ranker, make_ranker
from recsys.rankers.msdw import largest_eigenvalue
from tests.reference import rankers as reference
from tests.strategies import liked_matrices

FILTERS = ("gf-cf", "ideal")


def gap(R, factors, votes, item_power):
    """By how much, relatively, the last singular value that is kept is above the next."""
    U, D = np.maximum(R.sum(axis=1), 1), np.maximum(R.sum(axis=0), 1)
    A = U[:, None] ** (-votes / 2) * R * D**-item_power
    values = np.linalg.svd(A, compute_uv=False)
    if factors >= len(values) or values[factors] < 1e-7 * values[0]:
        return 1.0
    return 1.0 - values[factors] / values[factors - 1]


@settings(max_examples=60, deadline=None)
@given(
    liked_matrices(max_users=20, max_items=14),
    st.integers(1, 8),
    st.sampled_from([0.0, 1.0, 1.4]),
    st.sampled_from([0.5, 0.3]),
)
@pytest.mark.parametrize("filter", FILTERS)
def test_each_filter(filter, R, factors, votes, item_power):
    dense = R.toarray().astype(np.float64)
    assume(gap(dense, factors, votes, item_power) > 1e-3)
    options = {"factors": factors, "votes": votes, "item_power": item_power}
    model = make_ranker("graph-filter", filter=filter, **options).fit(R, show_progress=False)
    users = np.arange(R.shape[0])
    scores = model.scores(users, R)
    expected = reference.graph_filter(dense, dense, filter, **options)
    some = dense.any(axis=1)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(scores[some], expected[some], rtol=1e-4, atol=2e-5 * scale)
    for user in np.flatnonzero(some)[:2]:
        reason = model.explain(int(user), R[[user]], 0, N=99)
        shares = sum(share for _, share in reason.contributions)
        assert shares == pytest.approx(scores[user, 0], rel=1e-4, abs=2e-5 * scale)


@pytest.mark.parametrize("filter", FILTERS)
def test_files_and_refits(liked, tmp_path, filter):
    ranker = make_ranker("graph-filter", filter=filter, factors=5).fit(liked, show_progress=False)
    users = np.arange(60)
    ranker.save(tmp_path / "m")
    again = load_ranker(tmp_path / "m").scores(users, liked)
    np.testing.assert_allclose(again, ranker.scores(users, liked), rtol=1e-6)
    ranker.set_params(filter="ideal").fit(liked, show_progress=False)
    assert not hasattr(ranker, "normalized_")


def test_an_item_that_nobody_had_scores_zero_and_adds_nothing(liked):
    row = sp.csr_matrix(([1.0, 1.0], [2, 5], [0, 2]), (1, 40))
    without = sp.csr_matrix(([1.0], [2], [0, 1]), (1, 40))
    liked = liked.tolil()
    liked[:, 5] = 0
    liked = liked.tocsr()
    for filter in FILTERS:
        ranker = make_ranker("graph-filter", filter=filter, factors=9).fit(liked, show_progress=False)
        one = ranker.scores(0, row, recalculate_user=True)
        np.testing.assert_allclose(one, ranker.scores(0, without, recalculate_user=True), rtol=1e-6)
        assert one[0, 5] == 0 and one.any()


def test_errors(liked, monkeypatch):
    for params, message in (
        ({"filter": "low"}, "filter must be one of gf-cf, ideal, not 'low'"),
        ({"factors": 0}, "factors must be an integer from 1 to"),
        ({"item_power": -1}, "item_power must be a finite number .*, not -1"),
        ({"votes": 20}, "votes must be a finite number"),
        ({"random_state": -1}, "random_state must be an integer"),
    ):
        with pytest.raises(InputError, match=message):
            make_ranker("graph-filter", **params).fit(liked, show_progress=False)
    monkeypatch.setattr("recsys.utils.resources.free_memory", lambda: 1000)
    with pytest.raises(InputError, match="factors=256 of 60 users and 40 items: needs .* are free"):
        make_ranker("graph-filter").fit(liked, show_progress=False)


def test_factors_beyond_what_there_are_take_no_memory(liked):
    model = make_ranker("graph-filter", factors=10**8).fit(liked, show_progress=False)
    assert model.directions_.shape[1] <= min(liked.shape)


@settings(max_examples=50, deadline=None)
@given(liked_matrices(max_users=40, max_items=30))
def test_the_largest_eigenvalue(R):
    G = (R.T @ R).toarray().astype(np.float64)
    found = largest_eigenvalue(R, np.ones(R.shape[0]), np.ones(R.shape[1]))
    assert found == pytest.approx(np.linalg.eigvalsh(G)[-1], rel=1e-9)
