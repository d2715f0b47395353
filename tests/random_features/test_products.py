"""Kernels of dense rows by products of matrices, beside the walk over their entries."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys.random_features import RandomKernelMap, _products
from recsys.random_features._bases import DISTRIBUTIONS, dense_map, draw
from recsys.random_features._products import LIMIT, accurate_rows, excess, kernel_map
from tests.reference.fm import anova

KINDS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "ones": lambda rng, shape: np.ones(shape),
    "whole": lambda rng, shape: rng.integers(-3, 4, shape).astype(np.float64),
    "unit": lambda rng, shape: rng.normal(size=shape) / shape[1],
    "heavy": lambda rng, shape: rng.standard_cauchy(size=shape),
    "sizes": lambda rng, shape: rng.normal(size=shape) * 10.0 ** rng.integers(-40, 40, (shape[0], 1)),
    "sparse": lambda rng, shape: rng.normal(size=shape) * (rng.random(shape) < 0.3),
}


def off(X, bases, degree):
    """Return how far both ways are from each other, beside the kernel of the sizes."""
    rows = sp.csr_matrix(X)
    ours, walked = kernel_map(rows, bases, degree), dense_map(rows, bases, degree)
    whole = dense_map(abs(rows), np.abs(bases), degree) if degree else np.abs(walked)
    assert (ours[whole == 0.0] == 0.0).all()
    return float((np.abs(ours - walked) / np.where(whole > 0.0, whole, 1.0)).max(initial=0.0))


@given(
    st.sampled_from(sorted(KINDS)),
    st.sampled_from(DISTRIBUTIONS),
    st.integers(0, 5),
    st.sampled_from([1, 2, 3, 7, 30, 150]),
    st.integers(0, 10_000),
)
@settings(max_examples=200, deadline=None)
def test_products_are_as_accurate_as_the_walk(kind, distribution, degree, features, seed):
    rng = np.random.default_rng(seed)
    X = KINDS[kind](rng, (6, features))
    X[rng.integers(6)] = 0.0
    if degree == 0 and kind in ("heavy", "sizes"):
        X = np.clip(X, -3.0, 3.0)
    assert off(X, draw(rng, distribution, (features, 5)), degree) < 1e-13


def exact_rows(monkeypatch):
    """Have the rows that are walked counted."""
    counted = []

    def walk(X, *rest):
        counted.append(X.shape[0])
        return dense_map(X, *rest)

    monkeypatch.setattr(_products, "dense_map", walk)
    return counted


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_dense_rows_are_not_walked_and_others_are(degree, distribution, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 300))
    X[2, 30:] = 0.0  # few entries
    X[5] = 0.0
    bases = draw(rng, distribution, (300, 11))
    counted = exact_rows(monkeypatch)
    assert off(X, bases, degree) < 1e-13 and counted == [2]
    X[7, 0] = 1e6  # outweighs the rest
    del counted[:]
    assert off(X, bases, degree) < 1e-13 and counted == [2 if degree == 1 else 3]


def test_all_subsets_of_signs_are_products_where_logarithms_are_small(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(8, 40)) / 40
    X[1, 3], X[1, 8] = -4.0, 1.5  # factors below 0
    X[2, 5] = 1.0  # a factor of 0 for half of the bases
    X[3] = rng.normal(size=40) * 3
    X[4, 0] = 1.0 + 1e-12
    counted = exact_rows(monkeypatch)
    assert off(X, draw(rng, "rademacher", (40, 30)), 0) < 1e-13 and counted == [3]
    found = kernel_map(sp.csr_matrix(X[1:2]), draw(rng, "rademacher", (40, 30)), 0)
    assert (found < 0).any() and (found > 0).any()
    del counted[:]
    off(X, draw(rng, "gaussian", (40, 3)), 0)
    assert counted == [8]


@pytest.mark.parametrize("degree", [2, 3, 5, 9])
def test_the_bound_is_one_of_the_ratio(degree):
    """h_m/e_m of sizes of which none has more than the share, by the recursions of both."""
    rng = np.random.default_rng(degree)
    for _ in range(50):
        sizes = rng.exponential(size=rng.integers(degree**2 + 1, 200))
        e, h = np.zeros(degree + 1), np.zeros(degree + 1)
        e[0] = h[0] = 1.0
        for size in sizes:
            for t in range(degree, 0, -1):
                e[t] += size * e[t - 1]
            for t in range(1, degree + 1):
                h[t] += size * h[t - 1]
        share = np.array([sizes.max() / sizes.sum()])
        assert 1.0 <= h[degree] / e[degree] <= excess(share, degree)[0]
    alone = np.zeros((1, 4))
    alone[0, 1] = 2.0
    assert not accurate_rows(alone, degree, True)[0] and excess(np.ones(1), degree)[0] > LIMIT


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
@pytest.mark.parametrize("distribution", ["rademacher", "uniform"])
def test_other_numbers_are_read_as_they_are(dtype, distribution):
    X = (np.random.default_rng(0).normal(size=(5, 12)) * 3).astype(dtype)
    for rows in (X, sp.csr_matrix(X)):
        model = RandomKernelMap(degree=3, n_components=6, distribution=distribution)
        Z = model.fit_transform(rows)
        expected = [[anova(w, x.astype(np.float64), 3) for w in model.bases_.T] for x in X]
        assert Z.dtype == np.float64
        np.testing.assert_allclose(Z * np.sqrt(6), expected, rtol=1e-10, atol=1e-10)


def test_numbers_near_the_ends_of_their_range():
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 2.0, size=(2, 60))
    bases = draw(rng, "rademacher", (60, 20))
    plain = kernel_map(sp.csr_matrix(X), bases, 3)
    with np.errstate(all="raise", under="ignore"):
        for scale in (2.0**330, 2.0**-330):
            np.testing.assert_array_equal(
                kernel_map(sp.csr_matrix(X * scale), bases, 3), plain * scale**3
            )
        assert not kernel_map(sp.csr_matrix(X * 2.0**-1000), bases, 3).any()
        assert np.isinf(kernel_map(sp.csr_matrix(X * 2.0**1000), bases, 3)).all()


@pytest.mark.parametrize("distribution", ["rademacher", "laplace"])
@pytest.mark.parametrize("degree", [0, 1, 2, 4])
def test_batches_change_nothing_beyond_rounding(degree, distribution, monkeypatch):
    rng = np.random.default_rng(3)
    X = sp.csr_matrix(rng.normal(size=(37, 90)) / 90)
    bases = draw(rng, distribution, (90, 41))
    whole = kernel_map(X, bases, degree, 0.5)
    for room in (1, 700, 5_000):
        monkeypatch.setattr(_products, "BATCH", room)
        np.testing.assert_allclose(kernel_map(X, bases, degree, 0.5), whole, rtol=1e-12, atol=1e-15)


@pytest.mark.thorough
def test_dense_rows_are_held_a_few_at_a_time():
    import tracemalloc

    X = sp.random(3_000, 2_000, 0.2, format="csr", random_state=0)
    for distribution in ("rademacher", "gaussian"):
        bases = draw(np.random.default_rng(0), distribution, (2_000, 60))
        tracemalloc.start()
        kernel_map(X, bases, 2)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8 * X.shape[0] * X.shape[1]  # less than the rows once, dense
