"""Singular values where LAPACK's fastest routine does not converge."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.utils.extmath

from recsys import FitError, make_ranker
from recsys.utils.sparse import leading_singular

RNG = np.random.default_rng(3)


def parted(components, size, seed=0):
    """A sparse table of many components that share no user: its normalised form has as many ones."""
    rng = np.random.default_rng(seed)
    blocks = [(rng.random((size, size)) < 0.6) for _ in range(components)]
    R = sp.block_diag(blocks, format="csr").astype(np.float32)
    R.eliminate_zeros()
    return R


TABLES = {
    "many components": parted(60, 4),
    "components of one user and one item": sp.eye(90, format="csr", dtype=np.float32),
    "one column": sp.csr_matrix(np.ones((30, 1), np.float32)),
    "one row": sp.csr_matrix(np.ones((1, 30), np.float32)),
    "equal rows": sp.csr_matrix(np.tile(RNG.random(20) < 0.5, (40, 1)).astype(np.float32)),
    "one entry": sp.csr_matrix(([1.0], ([2], [3])), (9, 8), dtype=np.float32),
}


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", ["graph-filter", "random-features", "als", "ease", "slist", "slim"])
def test_rankers_fit_tables_with_repeated_singular_values(table, name):
    R = TABLES[table]
    params = {"als": {"factors": 8}, "random-features": {"n_components": 16}}.get(name, {})
    ranker = make_ranker(name, **params).fit(R, show_progress=False)
    assert np.isfinite(ranker.scores(np.arange(R.shape[0]), R)).all()


@pytest.mark.parametrize("table", TABLES)
def test_singular_values_are_the_same_in_float64_by_qr_iterations(table, monkeypatch):
    A, rank = TABLES[table], min(5, *TABLES[table].shape)
    usual = sklearn.utils.extmath.randomized_svd
    expected = leading_singular(A.astype(np.float64), rank, passes=8, seed=0)[1]

    def by_gesvd(*args, svd_lapack_driver="gesdd", **kwargs):
        if svd_lapack_driver == "gesdd":
            raise np.linalg.LinAlgError("SVD did not converge")
        return usual(*args, svd_lapack_driver=svd_lapack_driver, **kwargs)

    monkeypatch.setattr(sklearn.utils.extmath, "randomized_svd", by_gesvd)
    U, s, Vt = leading_singular(A, rank, passes=8, seed=0)
    np.testing.assert_allclose(s, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(A @ Vt.T, U * s, atol=0.05)
    make_ranker("graph-filter").fit(parted(5, 6), show_progress=False)


def test_values_that_are_not_finite_are_an_error_with_advice(monkeypatch):
    nan = np.full((2, 2), np.nan), np.full(2, np.nan), np.full((2, 2), np.nan)
    monkeypatch.setattr(sklearn.utils.extmath, "randomized_svd", lambda *args, **kwargs: nan)
    with pytest.raises(FitError, match="lower the number of factors"):
        leading_singular(np.eye(4), 2, passes=4, seed=0)
