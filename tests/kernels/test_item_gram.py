"""The three forms of the Gram matrix of items: the same numbers as the kernel called on the columns."""

import sys
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import make_ranker
from recsys.kernels import item_gram, list_kernels, make_kernel
from recsys.kernels.item_gram import CountedGram, DenseGram, SparseGram, dense_counts, sparse_counts
from recsys.rankers import margin
from recsys.utils.sparse import row_votes
from tests.strategies import SMALL_KERNELS, liked_matrices

gram_module = sys.modules["recsys.kernels.item_gram"]  # its name is also that of a function


def data(seed, users=12, items=9, density=0.25):
    rng = np.random.default_rng(seed)
    R = (rng.random((users, items)) < density * rng.random(items) * 2).astype(np.float32)
    return sp.csr_matrix(R)


def direct(kernel, R):
    K = kernel(R.T.tocsr(), normalize=True)
    cold = np.asarray(R.sum(axis=0)).ravel() == 0
    K[cold] = K[:, cold] = 0.0
    np.fill_diagonal(K, 1.0)
    return K


@settings(max_examples=40, deadline=None)
@given(liked_matrices())
def test_counts_are_the_product(R):
    X = R.toarray().astype(np.int64)
    np.testing.assert_array_equal(dense_counts(R), X.T @ X)
    sparse = sparse_counts(R)
    np.testing.assert_array_equal(sparse.toarray(), X.T @ X)
    stored = sp.csr_matrix((np.ones(sparse.nnz), sparse.indices, sparse.indptr), sparse.shape)
    assert (stored.diagonal() == 1).all() and sparse.has_sorted_indices
    votes = np.random.default_rng(0).random(len(X))
    np.testing.assert_allclose(sparse_counts(R, votes).toarray(), X.T @ (votes[:, None] * X), atol=1e-12)


KERNELS = {name: make_kernel(name, **SMALL_KERNELS.get(name, {})) for name in list_kernels()}
KERNELS["centered"] = make_kernel("md", degree=9)


@pytest.mark.parametrize("name", KERNELS)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
def test_all_forms_hold_the_kernel(name, seed):
    R, kernel = data(seed), KERNELS[name]
    n, m = R.shape
    K = direct(kernel, R)
    whole = item_gram(R, kernel)
    np.testing.assert_allclose(whole, K, atol=1e-6)
    np.testing.assert_array_equal(whole, whole.T)
    forms = [
        DenseGram.of_counts(kernel, dense_counts(R), n),
        SparseGram.of_counts(kernel, sparse_counts(R), n),
    ]
    for kept in (0, 4, m):  # rows of a counted matrix
        with patch.multiple(gram_module, ROW_BYTES=4 * m * kept, PAIRS=20):
            forms.append(CountedGram(R, kernel))
            assert forms[-1].rows.nbytes <= gram_module.ROW_BYTES
    ids, others = np.array([3, 0, 5]), np.array([1, 8, 2, 3])
    rows = sp.random(2, m, 0.5, format="csr", random_state=seed)
    for gram in forms:
        t = np.zeros(m) if gram.offsets is None else gram.offsets
        whole = K - t[:, None] - t
        np.testing.assert_allclose(gram.similar(np.arange(m)), whole, atol=1e-6)
        np.testing.assert_allclose(gram.block(ids, others), whole[np.ix_(ids, others)], atol=1e-6)
        np.testing.assert_allclose(gram.block(ids), whole[np.ix_(ids, ids)], atol=1e-6)
        np.testing.assert_allclose(gram.row_sums, whole.sum(axis=1), atol=1e-5)
        np.testing.assert_allclose(gram.scores(rows), rows @ whole, atol=2e-6)


SPECS = [
    {},
    {"kernel": "md", "degree": 2},
    {"kernel": "mc", "degree": 2},
    {"kernel": "tanimoto"},
    {"q": "mean"},
    {"kernel": "md", "degree": 5, "unrated": "mean"},
    {"kernel": "mdnf", "kernel_params": {"d": 2, "c": 2}},
    {"kernel": "md", "degree": 30},
    {"votes": 1.0},
    {"kernel": "negation"},
]


def in_form(monkeypatch, form):
    monkeypatch.setattr(margin, "DENSE_ITEMS", 8_000 if form == "dense" else 0)
    monkeypatch.setattr(margin, "MODEST", 0 if form == "counted" else 10**9)
    monkeypatch.setattr(margin, "TIMES_DATA", 0 if form == "counted" else 4)
    monkeypatch.setattr(gram_module, "ROW_BYTES", 2_000)  # a few rows
    monkeypatch.setattr(gram_module, "PAIRS", 300)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["sparse", "counted"])
@pytest.mark.parametrize("params", SPECS, ids=str)
def test_cf_komd_is_the_same_in_every_form(params, form, monkeypatch, tmp_path):
    R = data(5, users=60, items=40, density=0.4)
    users = np.arange(60)
    in_form(monkeypatch, "dense")
    dense = make_ranker("cf-komd", **params).fit(R)
    in_form(monkeypatch, form)
    other = make_ranker("cf-komd", **params).fit(R)
    assert isinstance(dense.gram_, np.ndarray)
    assert sp.issparse(other.gram_ if form == "sparse" else other.rows_)
    gap = other.scores(users, R).astype(float) - dense.scores(users, R)
    gap -= np.median(gap, axis=1, keepdims=True)  # centered scores differ by one number a user
    np.testing.assert_allclose(gap[np.diff(R.indptr) > 0], 0.0, atol=2e-5)
    alone = np.vstack([other.scores(u, R[u]) for u in range(0, 60, 9)])
    np.testing.assert_allclose(alone, other.scores(users, R)[::9], atol=2e-6)
    why = other.explain(3, R[3], 7, N=50)
    assert why.score == pytest.approx(float(other.scores(3, R[3])[0, 7]), abs=1e-5)
    similar = [model.similar_items(4, N=5)[1] for model in (other, dense)]
    np.testing.assert_allclose(*similar, atol=1e-5)
    other.save(tmp_path / "m")
    loaded = type(other).load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.scores(users, R), other.scores(users, R))


@pytest.mark.parametrize("params", SPECS, ids=str)
def test_counted_rows_beyond_the_memory_have_the_scores_of_others(params, monkeypatch):
    in_form(monkeypatch, "counted")
    R = data(5, users=60, items=40, density=0.4)
    ranker, users = make_ranker("cf-komd", **params).fit(R), np.arange(60)
    scores = ranker.scores(users, R)
    monkeypatch.setattr(gram_module, "MOST_PAIRS", 0)
    np.testing.assert_allclose(ranker.scores(users, R), scores, atol=2e-6)


@pytest.mark.parametrize("form", ["sparse", "counted"])
@pytest.mark.parametrize("density", [0.02, 0.4])
@pytest.mark.parametrize("params", [{}, {"kernel": "md", "degree": 2}, {"kernel": "hp"}], ids=str)
def test_lists_are_the_best_scores(params, density, form, monkeypatch):
    """Few common users, where lists are made of some items, and many; filters, ties and empty rows."""
    in_form(monkeypatch, form)
    R = data(2, users=50, items=90, density=density)
    ranker = make_ranker("cf-komd", **params).fit(R)
    users, allowed = np.arange(50), np.arange(0, 90, 2)
    scores, liked = ranker.scores(users, R), R.toarray() > 0
    for skip, options in ((True, {}), (False, {}), (True, {"filter_items": allowed + 1})):
        ids, best = ranker.recommend(users, R, 8, skip, **options)
        left = np.where(liked & skip, -np.inf, scores)
        if options:
            left[:, 1::2] = -np.inf
        order = np.argsort(-left, axis=1, kind="stable")[:, :8]
        np.testing.assert_array_equal(ids, order)
        np.testing.assert_array_equal(best, np.take_along_axis(left, order, 1))


@pytest.mark.parametrize("form", ["dense", "sparse", "counted"])
@pytest.mark.parametrize("params", [{}, {"kernel": "md", "degree": 2}, {"q": "mean"}], ids=str)
def test_long_profiles_have_the_solutions_of_short_ones(params, form, monkeypatch):
    """Profiles of all lengths up to the whole catalogue, solved whole and on working sets of a few."""
    m = 60
    R = data(3, users=80, items=m, density=0.5).tolil()
    for u in range(m + 1):
        R[u] = (np.random.default_rng(u).permutation(m) < u).astype(np.float32)
    R = sp.csr_matrix(R)
    in_form(monkeypatch, form)
    ranker = make_ranker("cf-komd", **params).fit(R)
    whole, residuals = ranker.weights(R)
    monkeypatch.setattr(margin, "LONG", 4)
    monkeypatch.setattr(margin, "WORKING_SET", 3)
    parts, others = ranker.weights(R)
    assert max(residuals.max(), others.max()) <= margin.TOLERANCE
    np.testing.assert_allclose(parts.toarray(), whole.toarray(), atol=2e-4)


def test_long_profiles_whose_kernel_is_singular_come_to_their_end(monkeypatch):
    R = data(0, users=12, items=40, density=0.6)
    monkeypatch.setattr(margin, "LONG", 1)
    ranker = make_ranker("cf-komd", regularization=0.0, q="mean").fit(R)
    assert ranker.weights(R)[1].max() <= margin.TOLERANCE


def test_sums_of_long_rows_keep_their_digits():
    R = data(5, users=60, items=400, density=0.4)
    gram = SparseGram.of_counts(make_kernel("linear"), sparse_counts(R), 60)
    whole = gram.values.astype(np.float64).sum(axis=1)
    np.testing.assert_allclose(gram.row_sums, np.asarray(whole).ravel(), rtol=1e-12)


def test_users_of_the_least_votes_still_count():
    R = data(5, users=60, items=40, density=0.4)
    counts = sparse_counts(R, row_votes(R, 1e4))
    assert ((counts.diagonal() > 0) == (R.sum(axis=0) > 0)).all()


def test_a_ranker_fits_on_counts(monkeypatch):
    R = data(5, users=60, items=40, density=0.4)
    users = np.arange(60)
    for name, params in (("cf-komd", {"kernel": "md"}), ("ecf-omd", {})):
        fitted = make_ranker(name, **params).fit(R)
        with monkeypatch.context() as patched:  # a ranker that has kept other interactions
            in_form(patched, "counted")
            of_counts = make_ranker(name, **params).fit(data(6, users=60, items=40, density=0.4))
        of_counts._fit_counts(sp.csr_matrix(R.T @ R).astype(np.int64), 60)
        of_counts.n_users_, of_counts.n_items_, of_counts.popularity_ = 60, 40, fitted.popularity_
        np.testing.assert_allclose(of_counts.scores(users, R), fitted.scores(users, R), atol=1e-7)
