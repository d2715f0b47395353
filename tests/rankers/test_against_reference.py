"""Every ranker against its formula in plain numpy, or against the library it wraps."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from sklearn.exceptions import ConvergenceWarning

from recsys import make_ranker
from recsys.kernels import list_kernels, make_kernel
from tests.reference import rankers as reference
from tests.strategies import SMALL_KERNELS, liked_matrices

SMALL = settings(max_examples=25, deadline=None)


def compare(ranker, expected, R, atol):
    ranker.fit(R, show_progress=False)
    scores = ranker.scores(np.arange(R.shape[0]), R)
    full = np.diff(R.indptr) > 0
    np.testing.assert_allclose(scores[full], expected[full], atol=atol, rtol=1e-5)


@SMALL
@given(liked_matrices())
def test_popularity(R):
    compare(make_ranker("popularity"), reference.popularity(R.toarray(), R.toarray()), R, 0)


@SMALL
@given(liked_matrices())
@pytest.mark.parametrize("alpha, locality", [(0.3, 1.0), (0.5, 2.0), (0.0, 1.0), (1.0, 0.5)])
def test_msdw(alpha, locality, R):
    expected = reference.msdw(R.toarray(), R.toarray(), alpha, locality)
    compare(make_ranker("msdw", alpha=alpha, locality=locality), expected, R, 1e-5)


@pytest.mark.thorough
@SMALL
@given(liked_matrices())
@pytest.mark.parametrize("amount, votes", [(1.0, 0.0), (0.6, 0.5)])
def test_sharpened_msdw(amount, votes, R):
    params = {"votes": votes, "locality": 1.2, "alpha": 0.25}
    expected = reference.sharpened(R.toarray(), R.toarray(), amount, **params)
    compare(make_ranker("msdw", sharpening=amount, **params), expected, R, 1e-5)


@pytest.mark.slow
@SMALL
@given(liked_matrices(max_users=20))
@pytest.mark.parametrize("regularization", [0.5, 500.0])
@pytest.mark.parametrize("votes", [0.0, 0.7])
@pytest.mark.parametrize("power, dropout", [(0.0, 0.0), (0.5, 0.4), (1.3, 0.0), (0.0, 0.8)])
def test_ease(power, dropout, votes, regularization, R):
    expected = reference.ease(R.toarray(), R.toarray(), regularization, votes, power, dropout)
    ranker = make_ranker(
        "ease", regularization=regularization, votes=votes, ridge_power=power, dropout=dropout
    )
    compare(ranker, expected, R, 1e-6)


@pytest.mark.thorough
def test_ease_weights_on_movielens_equal_those_of_numpys_inverse(movielens):
    R = movielens.matrix
    weights = make_ranker("ease", regularization=500.0).fit(R).weights_
    dense = R.toarray().astype(np.float64)
    P = np.linalg.inv(dense.T @ dense + 500.0 * np.eye(R.shape[1]))
    expected = -P / np.diag(P)
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(weights, expected, atol=1e-6)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(liked_matrices(max_users=10, max_items=6))
@pytest.mark.parametrize("l1, l2", [(0.1, 0.5), (1.0, 10.0)])
def test_slim(l1, l2, R):
    expected = reference.slim(R.toarray(), R.toarray(), l1, l2)
    compare(make_ranker("slim", l1=l1, l2=l2, iterations=5000, tol=1e-7), expected, R, 2e-4)


def test_slim_keeps_the_items_of_the_largest_cosines():
    R = np.random.default_rng(2).random((300, 16)) < np.linspace(0.05, 0.6, 16)
    G = R.T.astype(float) @ R
    W = (
        make_ranker("slim", l1=0.5, l2=1.0, top_k=4, iterations=500, tol=1e-7)
        .fit(sp.csr_matrix(R, dtype=np.float32), show_progress=False)
        .weights_
    )
    for j in range(16):
        cosines = G[j] / np.sqrt(G[j, j] * G.diagonal())
        cosines[[j]] = -1.0
        near = np.sort(np.argsort(-cosines)[:4])
        w = np.zeros(4)  # by coordinate descent on those alone
        for _ in range(500):
            for a, i in enumerate(near):
                rest = G[i, j] - G[i, near] @ w + G[i, i] * w[a]
                w[a] = max(0.0, (rest - 0.5) / (G[i, i] + 1.0))
        expected = np.zeros(16)
        expected[near] = w
        np.testing.assert_allclose(np.asarray(W[:, j]).ravel(), expected, atol=1e-5)


@pytest.mark.slow
@SMALL
@given(liked_matrices(min_users=2))
@pytest.mark.parametrize("q", ["exact", "mean"])
@pytest.mark.parametrize("name", list_kernels())
def test_cf_komd(name, q, R):
    dense = R.toarray()
    small = SMALL_KERNELS.get(name, {})
    K = make_kernel(name, **small)(dense.T, normalize=True)
    empty = ~dense.any(axis=0)
    K[empty] = K[:, empty] = 0
    np.fill_diagonal(K, 1)
    expected = reference.cf_komd(K, dense, 0.05, q)
    ranker = make_ranker("cf-komd", kernel=name, regularization=0.05, q=q, **small)
    ranker.fit(R)
    scores = ranker.scores(np.arange(R.shape[0]), R)
    full = np.diff(R.indptr) > 0
    if hasattr(ranker, "offsets_"):  # a centred kernel takes one number from all of a user's scores
        scores = scores - scores.mean(axis=1, keepdims=True)
        expected = expected - expected.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(scores[full], expected[full], atol=2e-5, rtol=1e-5)


@SMALL
@given(liked_matrices(min_users=2))
def test_items_nobody_has_can_score_as_the_mean_of_the_others(R):
    plain, mean = make_ranker("cf-komd").fit(R), make_ranker("cf-komd", unrated="mean").fit(R)
    users = np.flatnonzero(np.diff(R.indptr))
    known = np.asarray(R.sum(axis=0)).ravel() > 0
    expected = plain.scores(users, R[users])
    expected[:, ~known] = expected[:, known].mean(axis=1, keepdims=True)
    np.testing.assert_allclose(mean.scores(users, R[users]), expected, atol=1e-6)
    for item in np.flatnonzero(~known):
        why = mean.explain(int(users[0]), R[users[0]], int(item), N=50)
        assert why.score == pytest.approx(expected[0, item], abs=1e-6)
        assert why.bias + sum(v for _, v in why.contributions) == pytest.approx(why.score)


def test_what_nobody_has_scores_as_the_mean_where_it_would_sink():
    R = sp.csr_matrix(np.array([[1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [0, 1, 1, 1, 0]] * 10, np.float32))
    for params, mean in (
        ({}, False),
        ({"kernel": "mc", "degree": 2}, False),
        ({"kernel": "md", "degree": 9}, False),
        ({"kernel": "md", "degree": 10}, True),
        ({"kernel": "md", "degree": 20}, True),
        ({"kernel": "md", "degree": 20, "unrated": "kernel"}, False),
        ({"unrated": "mean"}, True),
    ):
        scores = make_ranker("cf-komd", **params).fit(R).scores(0, R[0])[0]
        assert bool(scores[4] == pytest.approx(scores[:4].mean())) is mean


@SMALL
@given(liked_matrices())
@pytest.mark.parametrize("regularization", [0.1, 10.0])
def test_ecf_omd(regularization, R):
    expected = reference.ecf_omd(R.toarray(), R.toarray(), regularization)
    compare(make_ranker("ecf-omd", regularization=regularization), expected, R, 1e-5)


@pytest.mark.thorough
@SMALL
@given(liked_matrices())
@pytest.mark.parametrize("negative", [0.5, 1000.0])
def test_cf_omd(negative, R):
    expected = reference.cf_omd(R.toarray(), R.toarray(), 0.1, negative)
    compare(make_ranker("cf-omd", negative_regularization=negative), expected, R, 2e-5)


@pytest.mark.thorough
def test_cf_omd_tends_to_ecf_omd(movielens):
    R = movielens.matrix[:8]  # a second each
    limit = make_ranker("cf-omd", negative_regularization=1e9).fit(movielens.matrix)
    signed, residuals = limit.weights(R)
    exact = make_ranker("ecf-omd").fit(movielens.matrix)
    weights, _ = exact.weights(R)
    assert residuals.max() <= 1e-6
    assert np.abs(np.maximum(signed, 0) - weights.toarray()).max() <= 1e-6
    scores = limit.scores(np.arange(8), R) - exact.scores(np.arange(8), R)
    assert np.abs(scores).max() <= 1e-6


@pytest.mark.thorough
@pytest.mark.parametrize(
    "kernel", [{"kernel": "linear"}, {"kernel": "mc"}, {"kernel": "md", "degree": 5}]
)
@pytest.mark.parametrize("regularization", [0.0, 0.01, 0.1])
def test_every_program_on_movielens_is_optimal_to_1e_6(movielens, kernel, regularization):
    ranker = make_ranker("cf-komd", regularization=regularization, **kernel).fit(movielens.matrix)
    weights, residuals = ranker.weights(movielens.matrix)
    assert residuals.max() <= 1e-6
    # Not taken at its word: the gradient once more, in numpy, and the kernel from its definition.
    named = dict(kernel)
    K = make_kernel(named.pop("kernel"), **named)(movielens.matrix.T.tocsr(), normalize=True)
    for u in range(0, 943, 50):
        row = weights[u]
        liked, a = row.indices, row.data
        others = np.setdiff1d(np.arange(K.shape[0]), liked)
        gradient = (
            K[np.ix_(liked, liked)] @ a + regularization * a - K[np.ix_(liked, others)].mean(axis=1)
        )
        assert gradient[a > 0].max() - gradient.min() <= 2e-6
        assert a.sum() == pytest.approx(1) and a.min() >= 0


def test_cf_omd_warns_of_a_program_that_did_not_come_to_its_end(movielens, monkeypatch):
    R = movielens.matrix[:, :150]
    ranker = make_ranker("cf-omd").fit(R)
    _, residuals = ranker.weights(R[:20])
    assert 0 < residuals.max() <= 1e-6
    # The same residuals where more is asked for: CF-OMD looks at them, as CF-KOMD does.
    monkeypatch.setattr("recsys.rankers.margin.LOOSEST", residuals.max() / 10)
    with pytest.warns(ConvergenceWarning, match="residual"):
        ranker.scores(np.arange(20), R[:20])


def test_a_constant_added_to_the_kernel_changes_nothing(movielens):
    R = movielens.matrix
    plain = make_ranker("cf-komd").fit(R)
    shifted = make_ranker("cf-komd").fit(R)
    with_gram(shifted, shifted.gram_ + np.float32(1.0))
    np.testing.assert_allclose(shifted.weights(R)[0].data, plain.weights(R)[0].data, atol=1e-4)
    ours, other = plain.scores(np.arange(943), R), shifted.scores(np.arange(943), R)
    np.testing.assert_allclose(other, ours, atol=1e-4 * np.abs(ours).max())


POWER_SERIES = {  # f with coefficients of which none is negative, and f(0) > 0
    "exponential": np.exp,
    "polynomial": lambda x: (1.0 + x) ** 3,
    "geometric": lambda x: 1.0 / (1.5 - x),
}


def with_gram(ranker, gram):
    """Let a fitted ranker over items have another kernel matrix."""
    ranker.gram_, ranker.row_sums_ = gram, gram.sum(axis=1, dtype=np.float64)
    return ranker


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["cf-komd", "cf-omd"])
@pytest.mark.parametrize("form", POWER_SERIES)
def test_without_its_constant_a_dot_product_kernel_has_the_linear_zeros_and_the_same_lists(
    movielens, name, form
):
    """Theorem 10.1 of Polato's thesis and the sparsification that it draws from it."""
    R = movielens.matrix[:, 700:1000].tocsr()
    users = np.flatnonzero(np.diff(R.indptr) > 4)[:: 10 if name == "cf-komd" else 60]
    linear = make_ranker("cf-komd").fit(R).gram_.astype(np.float64)
    f = POWER_SERIES[form]
    dense = f(linear)
    sparse = dense - f(np.zeros(()))
    np.testing.assert_array_equal(sparse == 0, linear == 0)
    assert (dense > 0).all() and 0.05 < (linear == 0).mean() < 0.95
    ridge = {"regularization": 1.0}
    kind = np.float64 if name == "cf-komd" else np.float32
    ours, other = (
        with_gram(make_ranker(name, **ridge).fit(R), gram.astype(kind)) for gram in (dense, sparse)
    )
    scores = [ranker.scores(users, R[users]).astype(np.float64) for ranker in (ours, other)]
    weights = [sp.csr_matrix(ranker.weights(R[users])[0]).toarray() for ranker in (ours, other)]
    np.testing.assert_allclose(*weights, atol=1e-5)
    lists = [ranker.recommend(users, R[users], N=10)[0] for ranker in (ours, other)]
    for row, (one, two) in enumerate(zip(*lists, strict=True)):
        for mine in scores:  # places may be changed by what is equal to rounding only
            np.testing.assert_allclose(mine[row, one], mine[row, two], atol=1e-5)
    assert (lists[0] == lists[1]).mean() > 0.98


def test_zeros_of_the_dot_product_kernels(movielens):
    """hp has no constant; of polynomial it is coef to the degree."""
    X = movielens.matrix[:, 700:900].T.tocsr()
    zero = make_kernel("linear")(X) == 0
    np.testing.assert_array_equal(make_kernel("hp", degree=3)(X) == 0, zero)
    np.testing.assert_array_equal(make_kernel("polynomial", degree=3, coef=2.0)(X) == 8, zero)
    assert (make_kernel("mc", degree=2)(X) == 0).sum() > zero.sum() > 0


@pytest.mark.parametrize(
    "name, params",
    [
        ("als", {"factors": 16, "regularization": 3.0, "alpha": 2.0, "iterations": 5}),
        ("bpr", {"factors": 8, "learning_rate": 0.03, "iterations": 10}),
        ("lmf", {"factors": 8, "iterations": 5, "neg_prop": 10}),
    ],
)
def test_wrappers_equal_what_they_wrap(movielens, name, params):
    from implicit.als import AlternatingLeastSquares
    from implicit.bpr import BayesianPersonalizedRanking
    from implicit.lmf import LogisticMatrixFactorization
    from threadpoolctl import threadpool_limits

    R = movielens.matrix
    kind = {
        "als": AlternatingLeastSquares,
        "bpr": BayesianPersonalizedRanking,
        "lmf": LogisticMatrixFactorization,
    }[name]
    with threadpool_limits(limits=1, user_api="blas"):
        theirs = kind(
            random_state=7,
            num_threads=1,
            **params,
        )
        theirs.fit(R.copy(), show_progress=False)
    ours = make_ranker(name, random_state=7, **params).fit(R, show_progress=False)
    np.testing.assert_allclose(ours.user_factors_, theirs.user_factors, rtol=1e-6, atol=1e-7)
    ids, scores = theirs.recommend(np.arange(50), R[:50], N=10)
    mine, values = ours.recommend(np.arange(50), R[:50], N=10)
    np.testing.assert_allclose(values, scores, rtol=1e-4, atol=1e-5)
    assert (mine == ids).mean() > 0.99  # near-ties may swap


@pytest.mark.slow
def test_als_folds_in_what_it_was_fitted_on():
    rng = np.random.default_rng(0)
    R = sp.csr_matrix(rng.random((40, 20)) < 0.3, dtype=np.float32)
    ranker = make_ranker("als", factors=4, iterations=200, regularization=1.0, alpha=3.0).fit(R, False)
    stored = ranker.recommend(np.arange(40), R, N=20, filter_already_liked_items=False)
    again = ranker.recommend(
        np.arange(40), R, N=20, recalculate_user=True, filter_already_liked_items=False
    )
    np.testing.assert_allclose(again.scores, stored.scores, atol=5e-3)
