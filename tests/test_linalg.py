"""Decompositions that do not converge: other routines answer, and none ends in LAPACK's own error."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
import sklearn.utils.extmath

from benchmarks.lab.planted import planted_interactions
from benchmarks.lab.quadratic import SparseLowRankQuadratic
from recsys import FitError, InputError, make_ranker
from recsys.embeddings import embeddings
from recsys.fm import FactorizationMachineRegressor
from recsys.utils import linalg

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


def refuse(monkeypatch, *names):
    """Let these routines, each a module and a name, fail to converge; return how often each was asked."""
    asked = dict.fromkeys([name for _, name in names], 0)

    def failing(name):
        def routine(*args, **kwargs):
            asked[name] += 1
            raise np.linalg.LinAlgError(f"{name} did not converge")

        return routine

    for module, name in names:
        monkeypatch.setattr(module, name, failing(name))
    return asked


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", ["graph-filter", "random-features", "als", "ease", "slist", "slim"])
def test_rankers_fit_tables_with_repeated_singular_values(table, name):
    R = TABLES[table]
    params = {"als": {"factors": 8}, "random-features": {"n_components": 16}}.get(name, {})
    ranker = make_ranker(name, **params).fit(R, show_progress=False)
    assert np.isfinite(ranker.scores(np.arange(R.shape[0]), R)).all()


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("failures", [1, 2, 3])
def test_singular_values_are_the_same_by_every_way(table, failures, monkeypatch):
    A, rank = TABLES[table].astype(np.float64), min(5, *TABLES[table].shape)
    usual, calls = sklearn.utils.extmath.randomized_svd, []
    exact = np.linalg.svd(A.toarray(), compute_uv=False)[:rank]
    expected = exact if failures == 3 else linalg.leading_singular(A, rank, passes=8, seed=0)[1]
    rounding = 1e-7 * exact[0] if failures == 3 else 1e-12  # squares have half the digits

    def failing(*args, **kwargs):
        calls.append(kwargs.get("svd_lapack_driver", "gesdd"))
        if len(calls) <= failures:
            raise np.linalg.LinAlgError("SVD did not converge")
        return usual(*args, **kwargs)

    monkeypatch.setattr(sklearn.utils.extmath, "randomized_svd", failing)
    U, s, Vt = linalg.leading_singular(A, rank, passes=8, seed=0)
    assert calls == ["gesdd", "gesdd", "gesvd"][: min(failures + 1, 3)]
    np.testing.assert_allclose(s, expected, rtol=1e-10, atol=rounding)
    np.testing.assert_allclose(A @ Vt.T, U * s, atol=max(rounding, 0.05 if failures < 3 else 0.0))


def test_the_first_way_is_the_usual_one_to_the_bit():
    A = RNG.normal(size=(30, 20))
    usual = sklearn.utils.extmath.randomized_svd(A, 4, n_oversamples=10, n_iter=4, random_state=1)
    for found, expected in zip(linalg.leading_singular(A, 4, passes=4, seed=1), usual, strict=True):
        np.testing.assert_array_equal(found, expected)
    S, b = A.T @ A, RNG.normal(size=20)
    np.testing.assert_array_equal(linalg.symmetric_eigen(S)[1], np.linalg.eigh(S)[1])
    np.testing.assert_array_equal(linalg.symmetric_eigenvalues(S), np.linalg.eigvalsh(S))
    np.testing.assert_array_equal(linalg.solve_symmetric(S, b), np.linalg.solve(S, b))
    np.testing.assert_array_equal(linalg.least_squares(A, A[:, 0]), np.linalg.lstsq(A, A[:, 0])[0])
    assert linalg.spectral_norm(A) == np.linalg.norm(A, 2)


A, S = RNG.normal(size=(12, 6)), np.cov(RNG.normal(size=(6, 40)))
B = RNG.normal(size=6)
# What is asked, what fails the first time, and what remains.
FAMILIES = {
    "eigenvectors": (lambda: abs(linalg.symmetric_eigen(S)[1]), [(np.linalg, "eigh")]),
    "eigenvalues": (lambda: linalg.symmetric_eigenvalues(S), [(np.linalg, "eigvalsh")]),
    "eigenvalues twice": (
        lambda: linalg.symmetric_eigenvalues(S),
        [(np.linalg, "eigvalsh"), (np.linalg, "eigh")],
    ),
    "norm": (lambda: linalg.spectral_norm(A), [(np.linalg, "norm")]),
    "symmetric": (lambda: linalg.solve_symmetric(S, B), [(np.linalg, "solve")]),
    "least squares": (lambda: linalg.least_squares(A, A @ B), [(np.linalg, "lstsq")]),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_another_routine_answers_as_the_first_would(family, monkeypatch):
    ask, failing = FAMILIES[family]
    expected = ask()
    asked = refuse(monkeypatch, *failing)
    np.testing.assert_allclose(ask(), expected, atol=1e-8)
    assert all(asked.values())


EVERY = [
    (np.linalg, "eigh"),
    (np.linalg, "eigvalsh"),
    (np.linalg, "norm"),
    (np.linalg, "solve"),
    (np.linalg, "lstsq"),
    (scipy.linalg, "eigh"),
    (scipy.linalg, "lstsq"),
    (sklearn.utils.extmath, "randomized_svd"),
]


@pytest.mark.parametrize("ask", [ask for ask, _ in FAMILIES.values()])
def test_where_no_routine_converges_the_error_advises(ask, monkeypatch):
    refuse(monkeypatch, *EVERY)
    with pytest.raises(FitError, match=r": (raise|scale|lower)"):
        ask()


CALLERS = {
    "graph-filter": lambda: make_ranker("graph-filter").fit(parted(5, 6), show_progress=False),
    "random-features": lambda: make_ranker("random-features", n_components=4).fit(
        parted(5, 6), show_progress=False
    ),
    "embeddings": lambda: embeddings(_fitted(), parted(5, 6), 3),
    "als, folded in": lambda: (
        make_ranker("als", factors=3)
        .fit(parted(5, 6), show_progress=False)
        .scores(np.arange(4), parted(5, 6)[:4], recalculate_user=True)
    ),
    "quadratic": lambda: SparseLowRankQuadratic(max_iter=3).fit(PLANTED.X, PLANTED.y),
    "orders' weights": lambda: _machine(fit_lower="simplex", degree=3),
}
PLANTED = planted_interactions(60, groups=1, per_group=3, noise_features=2)


def _fitted():
    return make_ranker("popularity").fit(parted(5, 6), show_progress=False)


def _machine(**params):
    return FactorizationMachineRegressor(n_components=2, max_iter=2, tol=0.0, **params).fit(
        PLANTED.X, PLANTED.y
    )


@pytest.mark.parametrize("name", CALLERS)
def test_callers_end_in_an_error_of_ours_where_nothing_converges(name, monkeypatch):
    CALLERS[name]()
    refuse(
        monkeypatch,
        *[(module, routine) for module, routine in EVERY if routine != "norm" or "orders" in name],
    )
    with pytest.raises(FitError):
        CALLERS[name]()


@pytest.mark.parametrize("name", CALLERS)
def test_callers_go_on_where_the_usual_routine_does_not_converge(name, monkeypatch):
    usual = sklearn.utils.extmath.randomized_svd
    refuse(
        monkeypatch,
        (np.linalg, "eigh"),
        (np.linalg, "eigvalsh"),
        (np.linalg, "solve"),
        (np.linalg, "lstsq"),
    )

    def by_gesvd(*args, svd_lapack_driver="gesdd", **kwargs):
        if svd_lapack_driver == "gesdd":
            raise np.linalg.LinAlgError("SVD did not converge")
        return usual(*args, svd_lapack_driver=svd_lapack_driver, **kwargs)

    monkeypatch.setattr(sklearn.utils.extmath, "randomized_svd", by_gesvd)
    CALLERS[name]()


def test_values_beyond_all_numbers_are_an_error_with_advice():
    with np.errstate(all="ignore"), pytest.raises((FitError, InputError), match="scale"):
        SparseLowRankQuadratic(max_iter=5).fit(1e200 * RNG.normal(size=(20, 4)), RNG.normal(size=20))
