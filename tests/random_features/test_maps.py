import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from recsys import InputError
from recsys.random_features import (
    CountableItemsetMap,
    DotProductMap,
    ItemsetMap,
    RandomKernelMap,
    RandomMaclaurin,
    SignedCirculantMap,
    SparseRandomKernelMap,
    SubsampledRandomKernelMap,
    TensorSketch,
    kernel_maps,
)
from tests.reference.fm import anova

MAPS = [
    RandomKernelMap(),
    RandomKernelMap(kernel="all-subsets", n_components=20),
    SignedCirculantMap(degree=3),
    SparseRandomKernelMap(sparsity=0.5),
    SubsampledRandomKernelMap(subset=3),
    RandomMaclaurin(coef=1.0),
    TensorSketch(),
    ItemsetMap(),
    ItemsetMap([(), (0,), (0, 0)], groups=[0, 1, 1]),
    RandomKernelMap("polynomial", sampling="sparse", sparsity=0.5),
    RandomKernelMap("polynomial", sampling="subsampled", subset=2),
    DotProductMap(n_components=20),
    CountableItemsetMap(n_components=20),
]


@pytest.mark.slow
@pytest.mark.parametrize("model", MAPS, ids=str)
def test_scikit_learns_checks(model):
    failed = [
        f"{row['check_name']}: {row['exception']!r}"
        for row in check_estimator(model, on_fail=None, on_skip=None)
        if row["status"] == "failed"
    ]
    assert not failed, "\n".join(failed)


def pair(seed=0, d=6):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.3, 1.2, size=(2, d))
    return X


def true(kernel, X, m):
    if kernel == "all-subsets":
        return np.prod(1 + X[0] * X[1])
    return anova(X[0], X[1], m)


CASES = [
    *[
        (RandomKernelMap(degree=m, distribution=d), "anova", m)
        for m in (2, 3)
        for d in ("rademacher", "gaussian", "uniform", "laplace")
    ],
    *[
        (RandomKernelMap(kernel="all-subsets", distribution=d), "all-subsets", 0)
        for d in ("rademacher", "gaussian")
    ],
    (SignedCirculantMap(degree=2), "anova", 2),
    *[pytest.param(SignedCirculantMap(degree=m), "anova", m, marks=pytest.mark.slow) for m in (3, 4)],
    *[(SparseRandomKernelMap(degree=m, sparsity=0.4), "anova", m) for m in (2, 3)],
    *[(SubsampledRandomKernelMap(degree=m, subset=4), "anova", m) for m in (2, 3)],
]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "kernel", "m"), CASES, ids=str)
def test_maps_are_unbiased(model, kernel, m):
    """Over so many draws that a constant wrong by 5% fails: four standard errors are below 5%."""
    X = pair()
    goal = true(kernel, X, m)
    values = []
    for seed in range(500):
        model.set_params(n_components=4000, random_state=seed)
        Z = model.fit(X).transform(X)
        Z = Z.toarray() if sp.issparse(Z) else Z
        values.append(Z[0] @ Z[1])
        if seed % 25 == 24 and 4 * np.std(values) / np.sqrt(len(values)) < 0.045 * goal:
            break
    error = np.std(values) / np.sqrt(len(values))
    assert 4 * error < 0.05 * goal
    assert abs(np.mean(values) - goal) < 4 * error


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [RandomMaclaurin(degree=2, coef=0.5), RandomMaclaurin(degree=3), TensorSketch(degree=2, coef=0.5)],
)
def test_polynomial_maps_are_unbiased(model):
    X = pair()
    goal = (X[0] @ X[1] + model.coef) ** model.degree
    values = []
    for seed in range(3000):
        Z = model.set_params(n_components=500, random_state=seed).fit(X).transform(X)
        values.append(Z[0] @ Z[1])
        if seed % 200 == 199 and 4 * np.std(values) / np.sqrt(len(values)) < 0.045 * goal:
            break
    error = np.std(values) / np.sqrt(len(values))
    assert 4 * error < 0.05 * goal and abs(np.mean(values) - goal) < 4 * error


@pytest.mark.parametrize("coef", [0.5, 2.0])
def test_a_constant_weighs_the_orders_of_a_polynomial(coef):
    """Of one feature of values x and y, a component of order n is its factor times (xy)ⁿ."""
    Z = RandomMaclaurin(degree=3, n_components=50_000, coef=coef).fit_transform([[0.5], [0.8]])
    values = 50_000 * Z[0] * Z[1]
    goal, error = (0.4 + coef) ** 3, values.std() / np.sqrt(len(values))
    assert abs(values.mean() - goal) < 5 * error and 5 * error < 0.05 * goal


def circulant(model):
    """The vectors of a circulant map, diag(σ)·circ(ω), as a matrix."""
    d = model.omega_.shape[1]
    shift = (np.arange(d)[:, None] - np.arange(d)[None, :]) % d
    blocks = [
        sign[:, None] * omega[shift] for omega, sign in zip(model.omega_, model.sign_, strict=True)
    ]
    return np.vstack(blocks)[: model.n_components].T


@pytest.mark.thorough
@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_features_are_the_kernel_with_the_bases(degree):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(5, 7)) * (rng.random((5, 7)) < 0.6)
    for model in (
        RandomKernelMap(degree=degree, n_components=9),
        SignedCirculantMap(degree=degree, n_components=9),
        SparseRandomKernelMap(degree=degree, n_components=9, sparsity=0.3),
    ):
        Z = model.fit(X).transform(sp.csr_matrix(X))
        Z = Z.toarray() if sp.issparse(Z) else Z
        bases = circulant(model) if hasattr(model, "omega_") else model.bases_
        bases = bases.toarray() if sp.issparse(bases) else bases
        expected = [[anova(bases[:, s], x, degree) for s in range(9)] for x in X]
        np.testing.assert_allclose(Z, np.array(expected) / 3.0, atol=1e-9)
    whole = RandomKernelMap(kernel="all-subsets", n_components=4).fit(X)
    np.testing.assert_allclose(
        whole.transform(X), [[np.prod(1 + whole.bases_[:, s] * x) / 2 for s in range(4)] for x in X]
    )


def test_the_error_falls_with_the_root_of_the_features():
    rng = np.random.default_rng(0)
    X = rng.random((30, 10))
    K = np.array([[anova(a, b, 2) for b in X] for a in X])
    errors = []
    for D in (50, 200, 800):
        some = []
        for seed in range(8):
            Z = RandomKernelMap(n_components=D, random_state=seed).fit(X).transform(X)
            some.append(np.abs(Z @ Z.T - K).mean())
        errors.append(np.mean(some))
    slope = np.polyfit(np.log([50, 200, 800]), np.log(errors), 1)[0]
    assert -0.6 < slope < -0.4


@pytest.mark.thorough
def test_sparse_maps_keep_sparse_rows_sparse():
    X = sp.random(200, 2000, 0.005, format="csr", random_state=0)
    for model in (
        SparseRandomKernelMap(n_components=500, sparsity=0.98),
        SubsampledRandomKernelMap(n_components=500, subset=40),
    ):
        Z = model.fit(X).transform(X)
        assert sp.issparse(Z) and Z.nnz < 0.2 * 200 * 500


def test_a_linear_model_learns_an_interaction_through_the_map():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(600, 8)) * 2.0 - 1.0
    y = X[:, 0] * X[:, 1] > 0
    flat = LogisticRegression().fit(X[:400], y[:400]).score(X[400:], y[400:])
    mapped = make_pipeline(RandomKernelMap(n_components=300), LogisticRegression(max_iter=2000)).fit(
        X[:400], y[:400]
    )
    assert flat < 0.65 and mapped.score(X[400:], y[400:]) > 0.95


@pytest.mark.parametrize("model", MAPS, ids=str)
def test_the_callers_rows_stay_as_they_are(model):
    rows = np.random.default_rng(0).normal(size=(6, 5))
    X = sp.csr_matrix(rows)
    data, ids = np.repeat(X.data / 2, 2), np.repeat(X.indices, 2)
    double = sp.csr_matrix((data.copy(), ids.copy(), 2 * X.indptr), X.shape)  # each entry in two halves
    Z = model.fit(double).transform(double)
    assert double.nnz == 2 * X.nnz
    np.testing.assert_array_equal(double.data, data)
    np.testing.assert_array_equal(double.indices, ids)
    both = [z.toarray() if sp.issparse(z) else z for z in (Z, model.transform(rows))]
    np.testing.assert_allclose(*both, atol=1e-12)


@pytest.mark.slow
def test_a_circulant_map_has_few_dense_rows_at_once():
    X = sp.random(2_000, 20_000, 0.0005, format="csr", random_state=0)
    model = SignedCirculantMap(degree=2, n_components=50).fit(X)
    whole = model.transform(X[:120])
    tracemalloc.start()
    out = model.transform(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * X.shape[0] * X.shape[1]  # less than the rows once, dense
    np.testing.assert_allclose(out[:120], whole, atol=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "model",
    [
        RandomKernelMap(degree=3),
        RandomKernelMap(kernel="all-subsets"),
        SparseRandomKernelMap(sparsity=0.7),
        SubsampledRandomKernelMap(),
    ],
    ids=str,
)
def test_the_number_of_threads_changes_no_bit(model, monkeypatch):
    from recsys.utils import resources

    X = sp.random(150, 40, 0.2, format="csr", random_state=0)
    found = []
    for worth in (0, 10**18):
        monkeypatch.setattr(resources, "WORTH", worth)
        Z = model.fit(X).transform(X)
        found.append(Z.toarray() if sp.issparse(Z) else Z)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RandomKernelMap(kernel="poly"), "kernel must be one of"),
        (RandomKernelMap(degree=0), "degree"),
        (RandomKernelMap(n_components=0), "n_components"),
        (RandomKernelMap(distribution="cauchy"), "distribution"),
        (SparseRandomKernelMap(sparsity=1.0), "below 1"),
        (SubsampledRandomKernelMap(degree=3, subset=2), "subset"),
        (RandomMaclaurin(coef=-1.0), "coef"),
        (
            RandomKernelMap("all-subsets", sampling="sparse"),
            "sampling of kernel all-subsets must be one of dense",
        ),
        (RandomKernelMap(sampling="sketch"), "sampling of kernel anova must be one of dense, sparse"),
        (RandomKernelMap(sampling="sparse", distribution="laplace"), "needs distribution rademacher"),
        (RandomKernelMap(coef=1.0), "coef is for kernel polynomial"),
    ],
)
def test_bad_parameters(model, message):
    with pytest.raises(InputError, match=message):
        model.fit(pair())


@pytest.mark.parametrize(
    "of",
    [
        RandomKernelMap("polynomial", sampling="sparse", degree=3, sparsity=0.5),
        RandomKernelMap("polynomial", sampling="subsampled", subset=4),
    ],
)
def test_sparse_products_are_the_same_some_rows_at_a_time(of, monkeypatch):
    dense = sp.random(40, 11, 0.3, random_state=0).toarray()
    dense[7], dense[39] = 0.0, 1.0
    X = sp.csr_matrix(dense)
    whole = clone(of).set_params(n_components=60).fit(X).transform(X)
    assert 0 < whole.nnz
    monkeypatch.setattr(kernel_maps, "SPARSE_ROWS", 7)
    some = clone(of).set_params(n_components=60).fit(X).transform(X)
    assert some.format == "csr" and (some != whole).nnz == 0
