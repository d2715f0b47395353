"""CF-KOMD and its family with a ridge of its own for each like, by how old it is."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import CFKOMD, InputError, load_ranker, make_ranker
from recsys.kernels import make_kernel
from recsys.registry import parse_spec
from tests.reference import rankers as reference
from tests.strategies import liked_matrices

SMALL = settings(max_examples=25, deadline=None)
FAMILY = ("cf-komd", "ecf-omd", "cf-omd")


@st.composite
def timed(draw, **sizes):
    """Likes and their times: often tied, often unknown, on the pattern of the likes or beyond it."""
    R = draw(liked_matrices(**sizes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    times = rng.integers(0, draw(st.sampled_from([1, 2, 4, 1000])), R.shape).astype(float)
    if draw(st.booleans()):
        times = times * (R.toarray() > 0)
    return R, times


def times_of(liked, seed=0):
    """A time for each like: three likes share each."""
    rng = np.random.default_rng(seed)
    times = liked.astype(np.float64)
    times.data = 1.0 + rng.permutation(liked.nnz) // 3
    return times


def all_scores(ranker, R, **given):
    return ranker.scores(np.arange(R.shape[0]), R, **given)


def check(ranker, expected, R, times):
    ranker.fit(R, show_progress=False, times=times)
    found, full = all_scores(ranker, R), np.diff(R.indptr) > 0
    if hasattr(ranker, "offsets_"):  # a centred kernel takes one number from all of a user's scores
        found = found - found.mean(axis=1, keepdims=True)
        expected = expected - expected.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(found[full], expected[full], atol=3e-5, rtol=1e-5)


@pytest.mark.thorough
@SMALL
@given(timed(min_users=2))
@pytest.mark.parametrize("regularization, recency", [(0.05, 1.0), (1.0, 0.5), (1.0, 2.0)])
@pytest.mark.parametrize("kernel, q", [("linear", "exact"), ("mc", "exact"), ("md", "mean")])
def test_cf_komd(kernel, q, regularization, recency, sample):
    R, times = sample
    K = reference.kernel_of_items(R.toarray() > 0, make_kernel(kernel))
    expected = reference.cf_komd(K, R.toarray(), regularization, q, times, recency)
    ranker = CFKOMD(kernel=kernel, regularization=regularization, q=q, recency=recency)
    check(ranker, expected, R, times)


@SMALL
@given(timed())
def test_ecf_omd(sample):
    R, times = sample
    expected = reference.ecf_omd(R.toarray(), R.toarray(), 0.5, times, 1.0)
    check(make_ranker("ecf-omd", regularization=0.5, recency=1), expected, R, times)


@pytest.mark.thorough
@SMALL
@given(timed())
@pytest.mark.parametrize("negative", [0.5, 1000.0])
def test_cf_omd(negative, sample):
    R, times = sample
    expected = reference.cf_omd(R.toarray(), R.toarray(), 0.5, negative, times, 1.0)
    ranker = make_ranker("cf-omd", regularization=0.5, negative_regularization=negative, recency=1)
    check(ranker, expected, R, times)


@pytest.mark.thorough
@SMALL
@given(timed(min_users=2), st.sampled_from(["linear", "mc", "md"]))
def test_both_forms_of_the_kernel_have_the_same_weights(sample, kernel):
    R, times = sample
    params = {"kernel": kernel, "regularization": 0.3, "recency": 1.5}
    dense = CFKOMD(**params).fit(R, False, times=times)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("recsys.rankers.margin.DENSE_ITEMS", 0)
        structured = CFKOMD(**params).fit(R, False, times=times)
    assert sp.issparse(structured.gram_)
    (a, ra), (b, rb) = dense.weights(R, times), structured.weights(R, times)
    np.testing.assert_allclose(a.data, b.data, atol=2e-5)
    assert max(ra.max(), rb.max()) <= 1e-6


@pytest.mark.thorough
@pytest.mark.parametrize("name", FAMILY)
def test_likes_of_one_age_give_the_thesis_program_to_the_bit(name, liked):
    liked = liked[:, :20]
    plain = make_ranker(name).fit(liked, False)
    recent = make_ranker(name, recency=1).fit(liked, False)
    expected = all_scores(plain, liked)
    assert (all_scores(recent, liked) == expected).all()
    constant = liked * 7.0
    assert (all_scores(recent, liked, times=constant) == expected).all()
    recent.fit(liked, False, times=constant)
    assert (all_scores(recent, liked) == expected).all()
    # Times that nobody asks about are not read.
    times = times_of(liked)
    assert (all_scores(plain.fit(liked, False, times=times), liked, times=times) == expected).all()
    assert (all_scores(recent, liked, times=times) != expected).any()


@pytest.mark.parametrize("name", FAMILY)
def test_without_a_ridge_recency_changes_nothing(name, liked):
    liked = liked[:, :20]
    params = {"regularization": 0}
    expected = all_scores(make_ranker(name, **params).fit(liked, False), liked)
    recent = make_ranker(name, **params, recency=3).fit(liked, False, times=times_of(liked))
    assert (all_scores(recent, liked) == expected).all() and recent.times_ is None


@pytest.mark.parametrize("recency", [0.5, 2.0])
def test_a_large_ridge_shares_by_recency_alone(recency, liked):
    times = times_of(liked)
    ranker = CFKOMD(regularization=1e6, recency=recency).fit(liked)
    weights, residuals = ranker.weights(liked, times)
    assert residuals.max() <= 1e-6
    for u in range(liked.shape[0]):
        mine = liked.indices[liked.indptr[u] : liked.indptr[u + 1]]
        shares = reference.omega(times[u].toarray().ravel(), mine, recency)
        np.testing.assert_allclose(weights[u].data, shares / max(shares.sum(), 1), rtol=1e-4)
    assert (weights.data != ranker.weights(liked)[0].data).any()


def test_older_likes_get_less(liked):
    """Of likes that the kernel does not tell apart, the newer always has more."""
    alone = sp.csr_matrix(np.vstack([np.eye(6), np.ones((1, 6))]), dtype=np.float32)
    times = np.array([[50, 40, 30, 20, 10, 10.0]])
    weights = [
        CFKOMD(regularization=0.1, recency=c).fit(alone).weights(alone[6], times)[0].data
        for c in (0.5, 1, 2)
    ]
    for row in weights:
        assert (np.diff(row[:5]) < 0).all() and row[4] == pytest.approx(row[5], abs=1e-6)
    assert weights[0][0] < weights[1][0] < weights[2][0]


def test_no_recency_is_too_large(liked):
    times = times_of(liked)
    ranker = CFKOMD(recency=1000.0).fit(liked, times=times)
    weights, residuals = ranker.weights(liked, times)
    assert np.isfinite(weights.data).all() and residuals.max() <= 1e-6
    for u in range(1, liked.shape[0]):
        row = times[u].data
        newest = weights[u].data[row == row.max()]
        assert newest.sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("kernel, degree", [("linear", None), ("mc", 2), ("md", 30)])
@pytest.mark.parametrize("regularization", [0.001, 1.0])
def test_every_program_on_movielens_is_certified(movielens, kernel, degree, regularization):
    R = movielens.matrix
    times = sp.csr_matrix((movielens.time.astype(float), (movielens.users, movielens.items)), R.shape)
    ranker = CFKOMD(kernel=kernel, degree=degree, regularization=regularization)
    ranker.fit(R)
    K = ranker._item_similarity(np.arange(R.shape[1]))
    for recency in (0.5, 2.0):
        weights, residuals = ranker.set_params(recency=recency).weights(R, times)
        assert residuals.max() <= 1e-6
        for u in range(0, 943, 100):  # not taken at its word
            mine, a = weights[u].indices, weights[u].data
            others = np.setdiff1d(np.arange(R.shape[1]), mine)
            own = reference.omega(times[u].toarray().ravel(), mine, recency)
            gradient = (
                K[np.ix_(mine, mine)] @ a
                + regularization / own * a
                - K[np.ix_(mine, others)].mean(axis=1)
            )
            assert gradient[a > 0].max() - gradient.min() <= 2e-6
            assert a.sum() == pytest.approx(1) and a.min() >= 0


@pytest.mark.parametrize("name", FAMILY)
def test_contributions_sum_to_the_score(name, liked):
    times = times_of(liked)
    ranker = make_ranker(name, recency=1, regularization=1)
    ranker.fit(liked, False, times=times)
    fitted, other = all_scores(ranker, liked), times_of(liked, seed=1)
    for user in (3, 7, 11):
        given = ranker.scores([user], liked[user], times=other[user])
        for asked, scores in (({}, fitted[[user]]), ({"times": other[user]}, given)):
            why = ranker.explain(user, liked[user], 2, N=50, **asked)
            assert why.score == pytest.approx(scores[0, 2], abs=1e-5)
            assert why.bias + sum(v for _, v in why.contributions) == pytest.approx(why.score, abs=1e-5)
        assert (given != fitted[user]).any()


def test_a_row_that_is_folded_in_brings_its_times(liked, tmp_path):
    times = times_of(liked)
    ranker = CFKOMD(kernel="mc", recency=1, regularization=1).fit(liked, times=times)
    users = np.arange(60)
    folded = ranker.scores(users, liked, recalculate_user=True, times=times)
    assert (folded == all_scores(ranker, liked)).all()
    alike = CFKOMD(kernel="mc", regularization=1).fit(liked)
    assert (ranker.scores(users, liked, recalculate_user=True) == all_scores(alike, liked)).all()
    ranker.save(tmp_path / "m.recsys")
    assert (all_scores(load_ranker(tmp_path / "m.recsys"), liked) == folded).all()


def test_specifications_take_it():
    name, params = parse_spec("cf-komd:kernel=mc,degree=2,recency=0.5")
    ranker = make_ranker(name, **params)
    assert (ranker.kernel, ranker.degree, ranker.recency) == ("mc", 2, 0.5)
    for name in FAMILY:
        assert make_ranker(name, recency=1).recency == 1
        assert "times" in make_ranker(name).capabilities


@pytest.mark.parametrize("name", FAMILY)
def test_refusals(name, liked):
    for wrong in (-1, float("nan"), "often"):
        with pytest.raises(InputError, match="recency"):
            make_ranker(name, recency=wrong).fit(liked)
    ranker = make_ranker(name, recency=1).fit(liked, False)
    with pytest.raises(InputError, match="times are of shape"):
        ranker.weights(liked[:2], times_of(liked))
