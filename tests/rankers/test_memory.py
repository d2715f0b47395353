import numpy as np
import pytest
import scipy.sparse as sp

from recsys import InputError, make_ranker
from recsys.utils.resources import check_memory, size_text

pytestmark = pytest.mark.thorough


def data(seed, users=12, items=9, density=0.25):
    rng = np.random.default_rng(seed)
    R = (rng.random((users, items)) < density * rng.random(items) * 2).astype(np.float32)
    return sp.csr_matrix(R)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (-5, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 KB"),
        (999_900, "999.9 KB"),
        (10**6, "1.0 MB"),
        (36_000_000, "36.0 MB"),
        (10**9, "1.0 GB"),
        (4e14, "400000.0 GB"),
    ],
)
def test_sizes_are_written_in_the_unit_that_fits(size, text):
    assert size_text(size) == text


def test_what_does_not_fit_says_what_is_free_and_what_to_do(monkeypatch):
    monkeypatch.setattr("recsys.utils.resources.free_memory", lambda: 2000)
    check_memory(2000, "this")
    told = r"^this: needs 2\.5 KB and 2\.0 KB are free: use a ranker without it \(popularity, als, bpr, lmf\)"
    with pytest.raises(InputError, match=told):
        check_memory(2500, "this")
    with pytest.raises(InputError, match=r"^these: needs 2\.4 KB and 2\.0 KB are free: less$"):
        check_memory(2400.0, "these", "less")


def test_msdw_is_the_same_sparse_and_dense(monkeypatch, tmp_path):
    R = data(2, users=60, items=40, density=0.4)
    dense = make_ranker("msdw", votes=0.5, alpha=0.3).fit(R)
    monkeypatch.setattr("recsys.rankers.scoring.SMALL", 0)
    R0 = data(3, users=60, items=40, density=0.02)
    for model, matrix in ((make_ranker("msdw", votes=0.5), R0),):
        model.fit(matrix)
        assert sp.issparse(model.weights_)
        monkeypatch.undo()
        again = make_ranker("msdw", votes=0.5).fit(matrix)
        assert not sp.issparse(again.weights_)
        np.testing.assert_allclose(
            model.scores(range(60), matrix), again.scores(range(60), matrix), atol=1e-6
        )
        model.save(tmp_path / "m")
        loaded = type(model).load(tmp_path / "m")
        np.testing.assert_array_equal(loaded.scores(range(60), matrix), model.scores(range(60), matrix))
    lengths = np.maximum(np.diff(R.indptr), 1)
    X = R.toarray().astype(float)
    c = X.T @ (X / np.sqrt(lengths)[:, None])
    own = np.maximum(X.sum(axis=0), 1)
    expected = c / (own[:, None] ** 0.7 * own[None, :] ** 0.3)
    np.testing.assert_allclose(dense.weights_, expected, rtol=2e-6, atol=1e-7)


def test_a_long_tailed_matrix_has_what_was_asked_for():
    from benchmarks.lab.long_tail import long_tail

    R = long_tail(500, 800, 5000, seed=1)
    assert R.shape == (500, 800) and R.nnz == 5000 and (R.data == 1).all() and R.has_canonical_format
    assert (R != long_tail(500, 800, 5000, seed=1)).nnz == 0
    counts = np.sort(np.bincount(R.indices, minlength=800))[::-1]
    assert counts[:80].sum() > 0.35 * 5000
    with pytest.raises(InputError, match="n_interactions"):
        long_tail(2, 2, 4)


def test_slim_with_all_neighbours_is_slim(monkeypatch):
    R = data(9, users=80, items=30, density=0.5)
    whole = make_ranker("slim", iterations=500, tol=1e-7).fit(R).weights_
    near = make_ranker("slim", iterations=500, tol=1e-7, top_k=30).fit(R).weights_
    np.testing.assert_allclose(near, whole, atol=1e-4)
    few = make_ranker("slim", top_k=3).fit(R).weights_
    assert ((few > 0).sum(axis=0) <= 3).all() and (np.diag(few) == 0).all()
    monkeypatch.setattr("recsys.rankers.scoring.SMALL", 0)
    sparse = make_ranker("slim", top_k=3).fit(R)
    assert sp.issparse(sparse.weights_)
    np.testing.assert_allclose(sparse.weights_.toarray(), few)
    np.testing.assert_allclose(sparse.scores(range(80), R), R.toarray() @ few, atol=1e-5)
