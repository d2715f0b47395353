"""Kernels of dense rows by products of matrices, beside the walk over their entries."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys.random_features import RandomKernelMap
from recsys.random_features._bases import dense_map, draw, sign_map
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
    ours, walked = sign_map(rows, bases, degree), dense_map(rows, bases, degree)
    whole = dense_map(abs(rows), np.abs(bases), degree)
    assert (ours[whole == 0.0] == 0.0).all()
    return float((np.abs(ours - walked) / np.where(whole > 0.0, whole, 1.0)).max(initial=0.0))


@given(
    st.sampled_from(sorted(KINDS)),
    st.integers(1, 5),
    st.sampled_from([1, 2, 3, 7, 30, 150]),
    st.integers(0, 10_000),
)
@settings(max_examples=200, deadline=None)
def test_products_are_as_accurate_as_the_walk(kind, degree, features, seed):
    rng = np.random.default_rng(seed)
    X = KINDS[kind](rng, (6, features))
    X[rng.integers(6)] = 0.0
    assert off(X, draw(rng, "rademacher", (features, 5)), degree) < 1e-13


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


@pytest.mark.thorough
def test_dense_rows_are_held_a_few_at_a_time():
    import tracemalloc

    X = sp.random(3_000, 2_000, 0.2, format="csr", random_state=0)
    bases = draw(np.random.default_rng(0), "rademacher", (2_000, 60))
    tracemalloc.start()
    sign_map(X, bases, 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * X.shape[0] * X.shape[1]  # less than the rows once, dense
