from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import FitError, InputError
from recsys.kernels import (
    degree_path,
    make_kernel,
    margin,
    mc_decomposition,
    more_general,
    radius,
    spectral_ratio,
)
from recsys.kernels.spectral import margin_program, radius_program


def fixed(seed, rows, n, m):
    rng = np.random.default_rng(seed)
    X = np.zeros((rows, n), dtype=int)
    for row in X:
        row[rng.permutation(n)[:m]] = 1
    return X


def test_spectral_ratio_of_known_matrices():
    assert spectral_ratio(np.eye(9)) == pytest.approx(3)
    assert spectral_ratio(np.eye(9), standardized=True) == pytest.approx(1)
    assert spectral_ratio(np.ones((9, 9))) == pytest.approx(1)
    assert spectral_ratio(np.ones((9, 9)), standardized=True) == pytest.approx(0)
    with pytest.raises(InputError, match="zero"):
        spectral_ratio(np.zeros((2, 2)))
    with pytest.raises(InputError, match="square"):
        spectral_ratio(np.ones((2, 3)))


def solve_generic(P, q, groups):
    """The same programs by cvxopt's interior points."""
    from cvxopt import matrix, solvers

    n = len(P)
    A = np.zeros((len(groups), n))
    for k, group in enumerate(groups):
        A[k, group] = 1
    solution = solvers.qp(
        matrix(2.0 * P), matrix(q), matrix(-np.eye(n)), matrix(np.zeros(n)), matrix(A), matrix(np.ones(len(groups))),
        options={"show_progress": False, "abstol": 1e-12, "reltol": 1e-12, "feastol": 1e-12, "maxiters": 200},
    )  # fmt: skip
    return np.array(solution["x"]).ravel()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(4, 25))
def test_margin_and_radius_agree_with_a_generic_solver(seed, rows):
    pytest.importorskip("cvxopt")
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 5)) + 3
    y = np.r_[1, 0, rng.integers(0, 2, rows - 2)]
    X[y == 1, 0] += 5
    K = X @ X.T
    sign = np.where(y == 1, 1.0, -1.0)
    a = solve_generic(np.outer(sign, sign) * K, np.zeros(rows), [y == 1, y == 0])
    assert margin(K, y) == pytest.approx(np.sqrt((sign * a) @ K @ (sign * a)), abs=1e-6)
    b = solve_generic(K, -np.diag(K).copy(), [np.ones(rows, bool)])
    assert radius(K) == pytest.approx(np.sqrt(b @ np.diag(K) - b @ K @ b), abs=1e-6)


def test_the_gap_is_certified():
    X = fixed(0, 40, 12, 4)
    y = X[:, 0]
    K = make_kernel("mc")(X, normalize=True)
    assert margin_program(K, y).gap <= 1e-8 and radius_program(K).gap <= 1e-8
    with pytest.raises(InputError, match="two classes"):
        margin(K, np.zeros(40))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 6))
def test_conjunctions_get_more_specific_and_disjunctions_more_general_with_the_degree(seed, m):
    X = fixed(seed, 12, 9, m)
    for degree in range(1, m):
        mc, following = (make_kernel("mc", degree=d)(X) for d in (degree, degree + 1))
        assert more_general(mc, following) and spectral_ratio(mc) <= spectral_ratio(following) + 1e-9
        md, following = (make_kernel("md", degree=d)(X) for d in (degree, degree + 1))
        assert more_general(following, md)
        c, following = (make_kernel("c", degree=d)(X) for d in (degree, degree + 1))
        assert more_general(c, following)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_order_of_the_normal_forms(seed):
    """6.7.3 and Figure 6.8: more disjuncts are more general, longer conjunctions more specific."""
    X = fixed(seed, 10, 8, 4)
    for name in ("mdnf", "dnf"):
        K = {(d, c): make_kernel(name, d=d, c=c)(X) for d in (1, 2, 3) for c in (1, 2, 3)}
        for d in (1, 2):
            for c in (1, 2, 3):
                assert more_general(K[d + 1, c], K[d, c])
    for name in ("mcnf", "cnf"):
        K = {(c, d): make_kernel(name, d=d, c=c)(X) for d in (1, 2, 3) for c in (1, 2, 3)}
        for d in (1, 2, 3):
            for c in (1, 2):
                assert more_general(K[c, d], K[c + 1, d])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
@pytest.mark.parametrize("name", ["mc", "md", "c", "d"])
def test_the_recursions_equal_the_kernels(name, seed, n):
    X = (np.random.default_rng(seed).random((6, n)) < 0.5).astype(int)
    seen = 0
    for degree, K in degree_path(name, X, n):
        np.testing.assert_allclose(K, make_kernel(name, degree=degree)(X), rtol=1e-10, atol=1e-9)
        seen += 1
    assert seen == n


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9))
@pytest.mark.parametrize(
    "name, params",
    [
        ("linear", {}),
        ("hp", {"degree": 3}),
        ("hp", {"degree": 7}),
        ("polynomial", {"degree": 4, "coef": 2.0}),
        ("rbf", {"gamma": 0.2}),
        ("all-subsets", {}),
        ("mc", {"degree": 2}),
        ("tanimoto", {}),
    ],
)
def test_dot_product_kernels_are_sums_of_conjunctive_ones(name, params, seed, m):
    X = fixed(seed, 8, 2 * m + 3, m)
    try:
        kernel = make_kernel(name, **params)
        g = mc_decomposition(kernel, m)
    except FitError:
        pytest.fail("a dot-product kernel has a negative coefficient")
    except InputError:
        return
    assert (g >= 0).all()
    S = X @ X.T
    K = sum(g[s] * np.vectorize(comb)(S, s) / comb(m, s) for s in range(m + 1))
    expected = make_kernel(name, **params)(X)
    np.testing.assert_allclose(K, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


def test_a_kernel_that_is_no_dot_product_is_refused():
    with pytest.raises(FitError, match="no dot-product kernel"):
        mc_decomposition(lambda X, Z: (X @ Z.T - 1.0) ** 2, 4)
