"""Maclaurin maps: their expectation, by every base there is and by many draws."""

from itertools import product
from math import factorial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from recsys import InputError
from recsys.random_features import (
    CountableItemsetMap,
    DotProductMap,
    ItemsetMap,
    RandomKernelMap,
)

X = np.array([[0.7, 0.3, 0.6], [0.5, 0.6, 0.4]])


def dense(Z):
    return Z.toarray() if sp.issparse(Z) else Z


def agrees(model, goal, scale, X=X):
    """Assert that the mean over many draws is the kernel; a constant wrong by a fifth fails."""
    values = []
    for seed in range(1000):
        Z = dense(clone(model).set_params(n_components=1000, random_state=seed).fit(X).transform(X))
        values.append(Z[0] @ Z[1])
        error = np.std(values) / np.sqrt(len(values))
        if seed >= 20 and 4 * error < 0.18 * scale:
            break
    assert 4 * error < 0.2 * scale and abs(np.mean(values) - goal) < 4 * error


@pytest.mark.thorough
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize(
    "make",
    [
        RandomKernelMap("polynomial", sampling="sparse", sparsity=0.4),
        RandomKernelMap("polynomial", sampling="subsampled", subset=2),
    ],
)
def test_sparse_maps_of_a_polynomial_are_unbiased(make, n):
    goal = (X[0] @ X[1]) ** n
    agrees(make.set_params(degree=n), goal, max(abs(goal), 0.05))


@pytest.mark.parametrize(
    ("coefficients", "kernel"),
    [
        ("exponential", np.exp),
        ("inverse", lambda t: 1 / (1 - t)),
        (lambda n: 0.5**n, lambda t: 1 / (1 - t / 2)),
        (lambda n: float(n == 2), lambda t: t**2),
    ],
)
def test_maps_of_a_dot_product_kernel_are_unbiased(coefficients, kernel):
    rows = X * (0.6 if coefficients == "inverse" else 1.0)
    if coefficients == "inverse":  # on longer rows the variance is infinite, and no mean would settle
        assert np.linalg.norm(rows, axis=1).max() < (3 * DotProductMap().ratio) ** -0.25
    goal = kernel(rows[0] @ rows[1])
    agrees(DotProductMap(coefficients), goal, max(abs(goal), 0.2), rows)


@pytest.mark.thorough
def test_the_map_of_countably_many_multisets_is_unbiased():
    def family(n):  # Σₙ (x₀y₀x₁y₁)ⁿ/n!, and the powers of x₂
        return ([(0, 1) * n, (2,) * (n + 1)], [1 / factorial(n), 1.0])

    a, b, c = X[0] * X[1]
    agrees(CountableItemsetMap(family), np.exp(a * b) + c / (1 - c), 1.0)
    agrees(CountableItemsetMap(family, ratio=3.0), np.exp(a * b) + c / (1 - c), 1.0)
    agrees(CountableItemsetMap(), 1 + (X[0] * X[1] / (1 - X[0] * X[1])).sum(), 1.0)


@pytest.mark.parametrize(
    "model",
    [
        RandomKernelMap("polynomial", sampling="sparse", degree=3, sparsity=0.3),
        RandomKernelMap("polynomial", sampling="subsampled", degree=2, subset=2),
    ],
)
def test_features_are_products_of_projections(model):
    model.set_params(n_components=7).fit(X)
    factor = 1.0 if model.sampling == "sparse" else (3 / 2) ** (model.degree / 2)
    expected = np.prod([X @ bases.toarray() for bases in model.bases_], axis=0) * factor / np.sqrt(7)
    assert sp.issparse(model.transform(X)) and len(model.bases_) == model.degree
    np.testing.assert_allclose(model.transform(sp.csr_matrix(X)).toarray(), expected, atol=1e-14)


def test_subsets_have_as_many_features_as_asked_for_and_signs_alone():
    model = RandomKernelMap("polynomial", sampling="subsampled", n_components=50, subset=2).fit(
        np.zeros((1, 5))
    )
    for bases in model.bases_:
        assert (np.diff(bases.tocsc().indptr) == 2).all() and set(np.abs(bases.data)) == {1.0}
    whole = RandomKernelMap("polynomial", sampling="subsampled", n_components=5, subset=9).fit(
        np.zeros((1, 4))
    )
    assert whole.scale_ == 1.0 and all(bases.nnz == 20 for bases in whole.bases_)


def test_every_base_of_a_small_map_taken_together_is_the_kernel():
    """d = 2, k = 1, n = 2: the mean over all subsets and signs, each as likely, is ⟨x, y⟩² exactly."""
    small = X[:, :2]
    model = RandomKernelMap("polynomial", sampling="subsampled", n_components=1, subset=1).fit(small)
    total = 0.0
    bases = [sp.csr_matrix(np.eye(2)[:, [j]] * sign) for j in range(2) for sign in (1.0, -1.0)]
    for model.bases_ in product(bases, repeat=2):
        Z = model.transform(small).toarray()
        total += float(Z[0, 0] * Z[1, 0])
    assert total / 16 == pytest.approx((small[0] @ small[1]) ** 2)


def test_sparse_rows_give_sparse_features():
    rows = sp.random(100, 1000, 0.005, format="csr", random_state=0)
    for model in (
        RandomKernelMap("polynomial", sampling="sparse", n_components=300, sparsity=0.98),
        RandomKernelMap("polynomial", sampling="subsampled", n_components=300, subset=20),
    ):
        Z = model.fit(rows).transform(rows)
        assert sp.issparse(Z) and 0 < Z.nnz < 0.1 * 100 * 300


def test_orders_have_the_shares_they_are_drawn_with():
    model = DotProductMap(n_components=40_000, ratio=3.0).fit(np.zeros((1, 1)))
    for n in range(4):
        share = 2 / 3 * 3.0**-n
        assert abs((model.orders_ == n).mean() - share) < 5 * np.sqrt(share / 40_000)
    assert model.orders_.max() > 6, "no order is cut off"
    assert len(model.bases_) == model.orders_.max()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RandomKernelMap("polynomial", sampling="sparse", sparsity=1.0), "below 1"),
        (RandomKernelMap("polynomial", sampling="subsampled", subset=0), "subset"),
        (DotProductMap("cosine"), "one of exponential, inverse"),
        (DotProductMap(lambda n: -1.0), "non-negative"),
        (DotProductMap(ratio=1.0), "ratio"),
        (CountableItemsetMap(lambda n: ([(0.0,)], None)), "feature of an itemset must be integers"),
        (ItemsetMap([(0,)], weights=["a"]), "weights must be an array"),
        (CountableItemsetMap(lambda n: ([(9,)], None)), "feature of an itemset 9 is not"),
        (CountableItemsetMap(lambda n: ([(0,)], [1.0, 2.0])), "must be 1 non-negative numbers"),
        (CountableItemsetMap(lambda n: ([(0, 1), (1, 0)], None)), "is repeated"),
        (ItemsetMap([(0,), (1,), (0,)]), "is repeated"),
    ],
)
def test_bad_parameters(model, message):
    with pytest.raises(InputError, match=message):
        model.fit(X)


def test_huge_coefficients_stay_finite():
    huge = DotProductMap(lambda n: 1e308).fit_transform(X)
    assert np.isfinite(huge).all() and huge.any()
