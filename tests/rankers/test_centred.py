"""Kernels whose values tend to 1, against exact whole numbers: values, programs and lists."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

from recsys import load_ranker, make_ranker
from recsys.kernels import make_kernel
from recsys.kernels.item_gram import DenseGram, SparseGram, dense_counts, shortfall, sparse_counts
from tests.reference import exact
from tests.strategies import liked_matrices

pytestmark = pytest.mark.slow
DEGREES = [2, 20, 60, 150]


def long_tailed(users=400, items=25, seed=0, most=1.0):
    """Items from everybody's to nobody's, so that all sizes of 1 − K occur."""
    rng = np.random.default_rng(seed)
    share = most * np.concatenate([[0.0, 1.0, 0.98], np.geomspace(0.9, 2 / users, items - 3)])
    R = sp.csr_matrix(rng.random((users, items)) < share, dtype=np.float32)
    R.sort_indices()
    return R


@pytest.mark.parametrize("degree", DEGREES)
def test_centered_values_equal_whole_numbers_in_their_own_size(degree):
    R = long_tailed()
    n, m = R.shape
    common = (R.T @ R).toarray().astype(int)
    K = exact.matrix("md", {"degree": degree}, n, common)
    kernel = make_kernel("md", degree=degree)
    dense = DenseGram.of_counts(kernel, dense_counts(R), n)
    sparse = SparseGram.of_counts(kernel, sparse_counts(R), n)
    sizes = np.diag(common).astype(np.int64)
    around = shortfall(kernel, sizes, n)
    assert around is not None, "this kernel should be centered on these data"
    np.testing.assert_array_equal(dense.offsets, 0.5 - around)
    np.testing.assert_array_equal(sparse.offsets, dense.offsets)
    short = [exact.short("md", {"degree": degree}, n, int(common[i, i]), True) for i in range(m)]
    np.testing.assert_allclose(around, [float(x) for x in short], rtol=1e-10, atol=1e-190)
    resolution = 3e-7 if dense.K.dtype == np.float32 else 1e-9
    with_table = sparse.block(np.arange(m))
    for i in range(m):
        for j in range(m):
            expected = exact.centred(K, i, j, short)
            size = max(min(around[i], around[j]), abs(float(expected)))
            # the sparse form adds a float32 correction to a float64 table
            table = sparse.table[sparse.classes[i], sparse.classes[j]]
            of = max(size, abs(with_table[i, j] - table))
            assert exact.gap(dense.K[i, j], expected) <= resolution * size + 1e-190, (i, j)
            assert exact.gap(with_table[i, j], expected) <= resolution * of + 1e-190, (i, j)


@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize(
    "name, params",
    [
        ("md", {"degree": 20}),
        ("md", {"degree": 60}),
        ("md", {"degree": 150}),
        ("md", {"degree": 300}),
        ("negation", {}),
        ("literal", {}),
    ],
    ids=str,
)
def test_lists_are_those_of_exact_arithmetic(name, params, structured, monkeypatch, tmp_path):
    if structured:
        monkeypatch.setattr("recsys.rankers.margin.DENSE_ITEMS", 0)
    R = long_tailed(seed=3)
    ranker = make_ranker("cf-komd", kernel=name, unrated="kernel", **params).fit(R)
    assert isinstance(ranker.gram_, np.ndarray) is not structured
    common = (R.T @ R).toarray().astype(int)
    K = exact.matrix(name, params, R.shape[0], common)
    sums = exact.totals(K)
    ranker.save(tmp_path / "m.recsys")
    again = load_ranker(tmp_path / "m.recsys")
    for user in range(0, 400, 57):
        row = ranker.weights(R[user])[0]
        scores = exact.margin_scores(K, sums, row.indices.tolist(), row.data)
        left = [j for j in range(R.shape[1]) if j not in set(row.indices.tolist())]
        best = exact.ranked(scores, left)[:10]
        ids, values = ranker.recommend(user, R[user])
        if ranker.scores(user, R[user]).dtype == np.float64:
            assert ids.tolist() == best
        else:  # what float32 cannot tell apart may swap
            t = ranker.offsets_
            size = 1.0 if t is None else max(0.5 - t[best + row.indices.tolist()])
            for mine, theirs in zip(ids, best, strict=True):
                assert mine == theirs or exact.gap(0, scores[mine] - scores[theirs]) <= 1e-6 * size
        assert (np.diff(values) <= 0).all()
        np.testing.assert_array_equal(again.recommend(user, R[user])[0], ids)
        best_of_all = ranker.scores(user, R[user])[0]
        shown = [float(scores[j] - scores[0]) for j in left]
        np.testing.assert_allclose((best_of_all - best_of_all[0])[left], shown, atol=2e-6)


@pytest.mark.slow
def test_movielens_lists_at_high_degree_are_those_of_exact_arithmetic(movielens):
    R = movielens.matrix
    degree = 100
    ranker = make_ranker("cf-komd", kernel="md", degree=degree).fit(R)
    common = (R.T @ R).toarray().astype(int)
    # Rows of the 60 most popular items and of one user's are enough for the user's q and list.
    K = exact.matrix("md", {"degree": degree}, 943, common[:300, :300])
    part = R[:, :300].tocsr()
    small = make_ranker("cf-komd", kernel="md", degree=degree).fit(part)
    sums = exact.totals(K)
    for user in (0, 200, 500, 900):
        row = small.weights(part[user])[0]
        scores = exact.margin_scores(K, sums, row.indices.tolist(), row.data)
        left = [j for j in range(300) if j not in set(row.indices.tolist())]
        assert small.recommend(user, part[user])[0].tolist() == exact.ranked(scores, left)[:10]
    popular = np.argsort(-ranker.popularity_)[:200]
    block = ranker.gram_[np.ix_(popular, popular)]
    assert len(np.unique(block)) > 10_000  # all of them were exactly 1 once


def test_programs_are_optimal_for_the_kernel_of_the_definition(movielens):
    R = movielens.matrix
    for degree in (2, 20, 100):
        kernel = make_kernel("md", degree=degree)
        K = kernel(R.T.tocsr(), normalize=True)
        ranker = make_ranker("cf-komd", kernel="md", degree=degree).fit(R)
        weights, _ = ranker.weights(R)
        for u in range(0, 943, 90):
            liked, a = weights[u].indices, weights[u].data
            others = np.setdiff1d(np.arange(K.shape[0]), liked)
            gradient = K[np.ix_(liked, liked)] @ a + 0.01 * a - K[np.ix_(liked, others)].mean(axis=1)
            assert gradient[a > 0].max() - gradient.min() <= 2e-6


@settings(max_examples=30, deadline=None)
@given(liked_matrices(min_users=2))
def test_centering_takes_one_number_from_all_scores_of_a_user(R):
    centred = make_ranker("cf-komd", kernel="md", degree=2).fit(R)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys.modules["recsys.kernels.item_gram"], "shortfall", lambda *_: None)
        plain = make_ranker("cf-komd", kernel="md", degree=2).fit(R)
    assert plain.offsets_ is None
    users = np.flatnonzero(np.diff(R.indptr))
    np.testing.assert_allclose(centred.weights(R)[0].data, plain.weights(R)[0].data, atol=2e-4)
    gap = centred.scores(users, R[users]) - plain.scores(users, R[users])
    np.testing.assert_allclose(gap, np.broadcast_to(gap[:, :1], gap.shape), atol=2e-5)
    item = int(R[users[0]].indices[0])
    why = centred.explain(int(users[0]), R[users[0]], item, N=99)
    assert why.bias + sum(v for _, v in why.contributions) == pytest.approx(why.score, abs=1e-9)
    usual = plain.explain(int(users[0]), R[users[0]], item, N=99)
    assert usual.bias == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(
        [v for _, v in sorted(why.contributions)], [v for _, v in sorted(usual.contributions)], atol=2e-5
    )
    assert why.bias == pytest.approx(gap[0, 0], abs=2e-5)
    likeness, expected = centred.similar_items(item, N=99), plain.similar_items(item, N=99)
    np.testing.assert_allclose(likeness[1], expected[1], atol=1e-6)


def test_the_order_of_similar_items_keeps_its_digits():
    R = long_tailed(seed=5)
    ranker = make_ranker("cf-komd", kernel="md", degree=60).fit(R)
    K = exact.matrix("md", {"degree": 60}, 400, (R.T @ R).toarray().astype(int))
    for item in (2, 4, 9):
        ids, values = ranker.similar_items(item, N=8)
        order = exact.ranked(K[item], range(25))[:8]
        assert [round(K[item][j], 15) for j in ids] == [round(K[item][j], 15) for j in order]
        assert values[0] == 1
