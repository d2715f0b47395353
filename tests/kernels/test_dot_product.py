"""Kernels of the dot product and the overlap against their formulas, value by value."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError
from recsys.kernels import list_kernels, make_kernel
from tests.reference.kernels import normalised

FORMULAS = {
    "linear": ({}, lambda x, z: x @ z),
    "ml": ({}, lambda x, z: x @ z),
    "polynomial": ({"degree": 3, "coef": 0.5}, lambda x, z: (x @ z + 0.5) ** 3),
    "hp": ({"degree": 6}, lambda x, z: (x @ z) ** 6),
    "rbf": ({"gamma": 0.3}, lambda x, z: np.exp(-0.3 * ((x - z) ** 2).sum())),
    "tanimoto": ({}, lambda x, z: x @ z / max(x.sum() + z.sum() - x @ z, 1) if (x + z).any() else 1.0),
}


def vectors(seed, n, rows):
    rng = np.random.default_rng(seed)
    X = (rng.random((rows, n)) < rng.random((rows, 1))).astype(float)
    X[rng.integers(rows)] = rng.integers(2)
    return X


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 9), rows=st.integers(1, 6))
@pytest.mark.parametrize("name", FORMULAS)
def test_equals_the_formula(name, seed, n, rows):
    params, formula = FORMULAS[name]
    X = vectors(seed, n, rows)
    K = np.array([[formula(x, z) for z in X] for x in X], dtype=float)
    kernel = make_kernel(name, **params)
    np.testing.assert_allclose(kernel(X), K, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel(X, X[:1]), K[:, :1], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel(X, normalize=True), normalised(K), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", list_kernels())
def test_every_input_form_gives_the_same(name):
    X = vectors(1, 8, 5)
    kernel = make_kernel(name)
    expected = kernel(X)
    for given_ in (
        X.astype(np.float32),
        X.astype(np.int8),
        X.astype(bool),
        X * 7,
        sp.csr_matrix(X),
        sp.csc_matrix(X),
        sp.coo_array(X),
        X - 5 * (X == 0),
    ):
        np.testing.assert_array_equal(kernel(given_), expected)
    assert expected.dtype == np.float64


@pytest.mark.parametrize("name", list_kernels())
def test_gram_matrices_are_positive_semi_definite(name):
    K = make_kernel(name)(vectors(2, 12, 30), normalize=True)
    values = np.linalg.eigvalsh(K)
    assert values[0] >= -1e-8 * values[-1] and np.allclose(K, K.T)


@pytest.mark.parametrize(
    "name, params, text",
    [
        ("mc", {"degree": 0}, "degree"),
        ("md", {"degree": 1.5}, "degree"),
        ("hp", {"degree": -1}, "degree"),
        ("polynomial", {"coef": -1}, "coef"),
        ("polynomial", {"alpha": 0}, "alpha"),
        ("rbf", {"gamma": 0}, "gamma"),
        ("rbf", {"gamma": np.nan}, "gamma"),
        ("mc", {"degre": 2}, "did you mean 'degree'"),
        ("linear", {"degree": 2}, "it takes none"),
        ("mcc", {}, "unknown kernel 'mcc': did you mean 'mc'"),
    ],
)
def test_refusals(name, params, text):
    with pytest.raises(InputError, match=text):
        make_kernel(name, **params)


def test_inputs_that_cannot_be_used():
    kernel = make_kernel("linear")
    with pytest.raises(InputError, match="NaN"):
        kernel([[np.nan]])
    with pytest.raises(InputError, match="must agree"):
        kernel(np.ones((2, 3)), np.ones((2, 4)))
    with pytest.raises(InputError, match="real numbers"):
        kernel([["a"]])


def test_raw_values_beyond_float64_are_refused_and_normalised_ones_are_not():
    X = np.ones((2, 3000))
    for name in ("mc", "md"):
        with pytest.raises(InputError, match="normalize=True"):
            make_kernel(name, degree=1500)(X)
        np.testing.assert_allclose(make_kernel(name, degree=1500)(X, normalize=True), 1.0)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 9),
    degree=st.integers(1, 9),
    coef=st.sampled_from([0.0, 1.0, 0.3]),
    alpha=st.sampled_from([1.0, 2.0, 0.25, 1e-3]),
)
def test_a_polynomial_with_a_scale(seed, n, degree, coef, alpha):
    X = vectors(seed, n, 4)
    K = (alpha * (X @ X.T) + coef) ** degree
    kernel = make_kernel("polynomial", degree=degree, coef=coef, alpha=alpha)
    np.testing.assert_allclose(kernel(X), K, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(kernel(X, normalize=True), normalised(K), rtol=1e-12, atol=1e-14)
    if coef != 0.3 and alpha in (1.0, 2.0) and K.max() < 2**53:
        assert (kernel(X) == np.round(K)).all(), "whole numbers stay whole"
