"""Filters of the graph of items against dense matrices, in each of their forms."""

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from benchmarks.lab.long_tail import long_tail
from recsys import InputError, load_ranker, make_ranker
from recsys.rankers import graph_filter
from recsys.rankers._eigenvalue import largest_eigenvalue
from recsys.rankers.graph_filter import FILTERS, PROJECTING
from tests.reference import rankers as reference
from tests.strategies import liked_matrices


def gap(R, factors, votes, item_power):
    """By how much, relatively, the last singular value that is kept is above the next."""
    U, D = np.maximum(R.sum(axis=1), 1), np.maximum(R.sum(axis=0), 1)
    A = U[:, None] ** (-votes / 2) * R * D**-item_power
    values = np.linalg.svd(A, compute_uv=False)
    if factors >= len(values) or values[factors] < 1e-7 * values[0]:
        return 1.0
    return 1.0 - values[factors] / values[factors - 1]


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(
    liked_matrices(max_users=20, max_items=14), st.integers(1, 8), st.sampled_from([0.0, 1.0, 1.4]),
    st.sampled_from([0.5, 0.3]), st.sampled_from([1.0, 0.7, 2.0]), st.integers(1, 3),
    st.sampled_from(["euler", "rk4"]),
)  # fmt: skip
@pytest.mark.parametrize("filter", FILTERS)
def test_each_filter(filter, R, factors, votes, item_power, locality, steps, solver):
    options = {
        "filter": filter, "factors": factors, "ideal_weight": 0.4, "votes": votes, "steps": steps,
        "item_power": item_power, "locality": locality, "sharpening": 1.7, "solver": solver,
    }  # fmt: skip
    dense = R.toarray().astype(np.float64)
    assume(filter not in PROJECTING or gap(dense, factors, votes, item_power) > 1e-4)
    expected = reference.graph_filter(dense, dense, **options)
    ranker = make_ranker("graph-filter", **options).fit(R, show_progress=False)
    found = ranker.scores(np.arange(R.shape[0]), R)
    full = np.diff(R.indptr) > 0
    np.testing.assert_allclose(found[full], expected[full], atol=1e-5, rtol=1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("locality", [1.0, 0.8])
def test_shares_sum_to_the_score_also_where_times_weigh_likes(filter, locality, liked):
    rng = np.random.default_rng(0)
    times = sp.csr_matrix((rng.random(liked.nnz) + 1, liked.indices, liked.indptr), liked.shape)
    ranker = make_ranker(
        "graph-filter", filter=filter, factors=5, locality=locality, recency=0.7, steps=2
    )
    ranker.fit(liked, show_progress=False, times=times)
    for user in (3, 7, 20):
        scores = ranker.scores(user, liked[user])[0]
        every = ranker.explain_items(user, liked[user], np.arange(liked.shape[1]), N=40)
        for item, why in enumerate(every):
            total = sum(share for _, share in why.contributions)
            assert why.bias == pytest.approx(0, abs=1e-12) and total == pytest.approx(why.score)
            assert why.score == pytest.approx(scores[item], abs=1e-6)
        shares = dict(every[2].contributions)
        alone = sp.csr_matrix(([1.0], [liked[user].indices[0]], [0, 1]), (1, liked.shape[1]))
        one = ranker.scores(0, alone, recalculate_user=True)[0, 2]
        place = (times[user].data > times[user].data[0]).sum()
        weight = (place + 1.0) ** -0.7
        assert shares[int(liked[user].indices[0])] == pytest.approx(weight * one, abs=1e-6)


def test_similar_items_are_those_that_a_like_adds_most_to(liked):
    ranker = make_ranker("graph-filter", factors=6).fit(liked, show_progress=False)
    alone = sp.csr_matrix(([1.0], [4], [0, 1]), (1, liked.shape[1]))
    ids, scores = ranker.similar_items(4, N=40)
    wanted = ranker.scores(0, alone, recalculate_user=True)[0]
    np.testing.assert_array_equal(scores, wanted[ids])
    assert sorted(ids) == list(range(40)) and (np.diff(scores) <= 0).all()


@pytest.mark.parametrize("locality", [1.0, 0.8])
def test_results_do_not_depend_on_threads(locality):
    R = long_tail(300, 200, 6000, seed=1)
    users = np.arange(300)
    before = numba.get_num_threads()
    found = []
    for threads in (before, 1):
        numba.set_num_threads(threads)
        try:
            ranker = make_ranker("graph-filter", filter="bspm-em", factors=20, locality=locality)
            ranker.fit(R, show_progress=False)
            found.append((ranker.directions_, ranker.sharpened_, ranker.scores(users, R)))
        finally:
            numba.set_num_threads(before)
    for mine, other in zip(*found, strict=True):
        np.testing.assert_array_equal(mine, other)


def test_directions_are_orthonormal_and_those_of_the_whole_decomposition():
    R = long_tail(300, 200, 6000, seed=1)
    ranker = make_ranker("graph-filter", filter="ideal", factors=25).fit(R, show_progress=False)
    V = ranker.directions_
    np.testing.assert_allclose(V @ V.T, np.eye(25), atol=1e-5)
    U, D = np.diff(R.indptr), np.maximum(np.asarray(R.sum(axis=0)).ravel(), 1)
    A = np.maximum(U, 1)[:, None] ** -0.5 * R.toarray() * D**-0.5
    exact = np.linalg.svd(A)[2][:25]
    kept = np.linalg.norm(V @ exact.T, axis=1)  # the part of each that is in the exact space
    assert kept.min() > 0.999
    again = make_ranker("graph-filter", filter="ideal", factors=25, random_state=1)
    other = again.fit(R, show_progress=False).directions_
    assert np.abs(np.abs(V @ other.T).diagonal()[:5] - 1).max() < 1e-3


def test_many_users_and_items_are_decomposed_in_float32_to_the_same_scores(monkeypatch):
    R = long_tail(300, 200, 6000, seed=2)
    exact = make_ranker("graph-filter", filter="ideal", factors=20).fit(R, show_progress=False)
    monkeypatch.setattr(graph_filter, "LARGE", 500)
    single = make_ranker("graph-filter", filter="ideal", factors=20).fit(R, show_progress=False)
    assert single.rank_ == exact.rank_ == 20
    assert not np.array_equal(single.directions_, exact.directions_)
    users = np.arange(50)
    np.testing.assert_allclose(
        single.scores(users, R[:50]), exact.scores(users, R[:50]), rtol=0, atol=2e-5
    )


def test_directions_that_rounding_makes_are_not_kept_in_float32(monkeypatch):
    monkeypatch.setattr(graph_filter, "LARGE", 0)
    R = sp.csr_matrix(np.kron(np.eye(3), np.ones((4, 5))))  # of rank 3
    model = make_ranker("graph-filter", filter="ideal", factors=9).fit(R, show_progress=False)
    assert model.rank_ == 3


def test_empty_users_and_items_change_nothing():
    R = long_tail(60, 40, 700, seed=1)
    wide = sp.coo_matrix((R.data, (R.tocoo().row + 30, R.tocoo().col + 5)), (100, 70)).tocsr()
    few, more = (
        make_ranker("graph-filter", filter="ideal", factors=8).fit(x, show_progress=False)
        for x in (R, wide)
    )
    assert more.directions_.shape == (8, 70)
    np.testing.assert_array_equal(more.directions_[:, 5:45], few.directions_[:, :40])
    assert not more.directions_[:, :5].any() and not more.directions_[:, 45:].any()


def test_more_factors_than_there_are_keep_everything_but_rounding(liked):
    ranker = make_ranker("graph-filter", filter="ideal", factors=1000).fit(liked, show_progress=False)
    assert ranker.rank_ == np.linalg.matrix_rank(liked.toarray()) < 40
    scores = ranker.scores(np.arange(60), liked)
    full = np.diff(liked.indptr) > 0
    np.testing.assert_allclose(scores[full], liked.toarray()[full], atol=1e-4)


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("locality", [1.0, 0.8])
def test_a_file_keeps_what_the_filter_needs_and_no_more(filter, locality, liked, tmp_path):
    ranker = make_ranker("graph-filter", filter=filter, locality=locality, factors=7)
    ranker.fit(liked, show_progress=False)
    users = np.arange(60)
    wanted = ranker.scores(users, liked)
    ranker.save(tmp_path / "m")
    np.testing.assert_array_equal(load_ranker(tmp_path / "m").scores(users, liked), wanted)
    assert hasattr(ranker, "directions_") == (filter in PROJECTING)
    assert hasattr(ranker, "likes_") == (filter != "ideal" and locality == 1)
    assert hasattr(ranker, "graph_") == (filter != "ideal" and locality != 1)
    ranker.set_params(filter="ideal").fit(liked, show_progress=False)
    assert not hasattr(ranker, "likes_") and not hasattr(ranker, "sharpened_")


def test_an_item_that_nobody_had_scores_zero_and_adds_nothing(liked):
    row = sp.csr_matrix(([1.0, 1.0], [2, 5], [0, 2]), (1, 40))
    without = sp.csr_matrix(([1.0], [2], [0, 1]), (1, 40))
    for filter in FILTERS:
        ranker = make_ranker("graph-filter", filter=filter, factors=9).fit(liked, show_progress=False)
        one = ranker.scores(0, row, recalculate_user=True)
        np.testing.assert_array_equal(one, ranker.scores(0, without, recalculate_user=True))
        assert one[0, 5] == 0 and one.any()


def test_errors(liked):
    for params, told in (
        ({"filter": "low"}, "filter must be one of linear, ideal, gf-cf, bspm-em, .*, not 'low'"),
        ({"solver": "heun"}, "solver must be one of euler, rk4, not 'heun'"),
        ({"factors": 0}, "factors must be an integer from 1 to"),
        ({"steps": 0}, "steps must be an integer from 1 to"),
        ({"locality": 0}, "locality must be a finite number above 0, not 0"),
        ({"item_power": -1}, "item_power must be a finite number .*, not -1"),
        ({"sharpening": "x"}, "sharpening must be a finite number .*, not 'x'"),
        ({"random_state": -1}, "random_state must be an integer"),
        ({"memory": "much"}, "memory must be a size such as 4GB"),
        ({"memory": 1000, "locality": 2}, r"needs .* KB, the budget is 1\.0 KB"),
    ):
        with pytest.raises(InputError, match=told):
            make_ranker("graph-filter", **params).fit(liked, show_progress=False)


def test_directions_that_do_not_fit_are_refused(liked, monkeypatch):
    monkeypatch.setattr("recsys.utils.memory.free_memory", lambda: 1000)
    with pytest.raises(
        InputError, match="factors=256 of 60 users and 40 items need .* are free: lower factors"
    ):
        make_ranker("graph-filter").fit(liked, show_progress=False)


@settings(max_examples=100, deadline=None)
@given(liked_matrices(max_users=40, max_items=30))
def test_the_largest_eigenvalue(R):
    G = (R.T @ R).toarray().astype(np.float64)
    found = largest_eigenvalue(lambda v: G @ v, np.ones(len(G)))
    assert found == pytest.approx(np.linalg.eigvalsh(G)[-1], rel=1e-9)


def test_the_largest_eigenvalue_where_the_next_are_near():
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(300, 300)))[0]
    values = np.r_[1.0, 1 - 1e-4, 1 - 2e-4, np.linspace(0, 0.9, 297)]
    found = largest_eigenvalue(lambda v: Q @ (values * (Q.T @ v)), np.abs(rng.normal(size=300)))
    assert found == pytest.approx(1.0, rel=1e-7)


@pytest.mark.parametrize(
    ("options", "change", "told"),
    [
        ({}, {"rank_": 2.0}, "rank_ should be an integer"),
        ({"locality": 2.0}, {"graph_": "dense"}, "graph_ does not fit"),
        ({"locality": 2.0}, {"graph_": "upper"}, "graph_ should be symmetric"),
        ({"filter": "linear"}, {"likes_": "float"}, "likes_ should be ones"),
        ({"filter": "linear"}, {"likes_": "dense"}, "likes_ should be ones"),
    ],
)
def test_states_that_would_fail_later_are_refused(liked, options, change, told):
    model = make_ranker("graph-filter", factors=2, **options).fit(liked, show_progress=False)
    for name, how in change.items():
        now = getattr(model, name)
        forms = {
            "dense": lambda X: X.toarray(), "upper": sp.triu, "float": lambda X: X.astype(np.float64),
        }  # fmt: skip
        new = forms[how](now) if how in forms else how
        setattr(model, name, new.tocsr() if how == "upper" else new)
    with pytest.raises(ValueError, match=told):
        model._check_state()


def test_factors_beyond_what_there_are_take_no_memory(liked):
    model = make_ranker("graph-filter", factors=10**8).fit(liked, show_progress=False)
    assert len(model.directions_) <= min(liked.shape)


@pytest.mark.parametrize(
    "given", [{"item_power": 5.0}, {"votes": 20}, {"sharpening": 1e300}, {"steps": 33}]
)
def test_powers_that_float32_cannot_hold_are_refused(given):
    with pytest.raises(InputError, match=next(iter(given))):
        make_ranker("graph-filter", **given)
