"""How many components are enough: against signs enumerated and against maps."""

from itertools import combinations, product
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError
from recsys.random_features import RandomKernelMap, components_for
from recsys.random_features.bounds import _size


def kernel_of(kernel, degree, x, y):
    if kernel == "all-subsets":
        return float(np.prod(1.0 + x * y))
    return float(
        sum(np.prod([x[j] * y[j] for j in part]) for part in combinations(range(len(x)), degree))
    )


@given(st.integers(0, 2**32 - 1), st.sampled_from(["anova", "all-subsets"]), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_no_component_is_larger_than_the_bound_takes_it_to_be(seed, kernel, degree):
    """B against all signs of six features."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=6) * (rng.random(6) < 0.8)
    radius = max(float(np.abs(x).sum()), 1e-9)
    largest = max(abs(kernel_of(kernel, degree, x, np.array(w))) for w in product((-1.0, 1.0), repeat=6))
    assert largest <= _size(kernel, degree, radius) * (1 + 1e-9)


@pytest.mark.parametrize("n", [3, 30])
@pytest.mark.parametrize("degree", [2, 3])
def test_equal_entries_come_near_the_size_that_is_taken(n, degree):
    """Σ over m distinct features of n equal ones is C(n, m)/n^m, which goes to 1/m!."""
    squared = _size("anova", degree, 1.0) ** 2
    assert squared == pytest.approx(1.0 / factorial(degree) ** 2)
    reached = (kernel_of("anova", degree, np.full(n, 1.0 / n), np.ones(n))) ** 2
    assert reached <= squared and (n < 30 or reached > 0.75 * squared)


@pytest.mark.parametrize(("kernel", "degree", "error"), [("anova", 2, 0.1), ("anova", 3, 0.02), ("all-subsets", 1, 3.0)])  # fmt: skip
def test_maps_of_so_many_components_err_less_at_least_so_often(kernel, degree, error):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2, 8))
    X /= np.abs(X).sum(axis=1, keepdims=True)
    exact, D = kernel_of(kernel, degree, *X), components_for(error, 0.2, kernel, degree)
    missed = 0
    for seed in range(200):
        Z = RandomKernelMap(kernel=kernel, degree=degree, n_components=D, random_state=seed).fit_transform(X)  # fmt: skip
        missed += abs(Z[0] @ Z[1] - exact) >= error
    assert missed <= 0.2 * 200


@given(
    st.floats(1e-2, 10), st.floats(1e-6, 0.99), st.sampled_from(["anova", "all-subsets"]), st.integers(1, 5),
    st.floats(0.1, 5),
)  # fmt: skip
def test_the_number_is_the_first_with_which_the_bound_holds(error, probability, kernel, degree, radius):
    D = components_for(error, probability, kernel, degree, radius)

    def bound(components):  # Hoeffding's, solved for the error
        return _size(kernel, degree, radius) ** 2 * np.sqrt(2.0 / components * np.log(2.0 / probability))

    assert bound(D) <= error * (1 + 1e-9)
    if D > 1:
        assert bound(D - 1) > error * (1 - 1e-9)


@pytest.mark.parametrize(("options", "message"), [
    ({"error": 0.0}, "error must be"), ({"error": 0.1, "probability": 1.0}, "probability must be below 1"),
    ({"error": 0.1, "probability": 0.0}, "probability must be"), ({"error": 0.1, "kernel": "rbf"}, "kernel must be one of anova, all-subsets"),
    ({"error": 0.1, "degree": 0}, "degree must be"), ({"error": 0.1, "radius": -1.0}, "radius must be"),
    ({"error": 0.1, "kernel": "all-subsets", "radius": 1e5}, "more components than can be counted"),
    ({"error": 1e-9, "radius": 50.0}, "more components than can be counted"),
    ({"error": 0.1, "degree": 300, "radius": 1e9}, "more components than can be counted"),
])  # fmt: skip
def test_what_cannot_be_asked(options, message):
    with pytest.raises(InputError, match=message):
        components_for(**options)


def test_a_high_degree_is_nearly_nothing():
    assert components_for(0.01, degree=400, radius=2.0) == 1
