from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import FitError, InputError
from recsys.kernels import (
    approximate_radius,
    degree_path,
    make_kernel,
    margin,
    mc_decomposition,
    more_general,
    propositional,
    radius,
    spectral_ratio,
)
from recsys.kernels.expressiveness import margin_program, radius_program
from tests.reference import decomposition as reference


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


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 12))
def test_spectral_ratio_is_at_most_the_root_of_the_rank(seed, n, rank):
    """And at least 1; both are reached (4.35)."""
    B = np.random.default_rng(seed).normal(size=(n, rank))
    ratio = spectral_ratio(B @ B.T)
    assert 1 - 1e-9 <= ratio <= np.sqrt(min(n, rank)) + 1e-9
    axes = np.eye(n)[:, : min(n, rank)]
    assert spectral_ratio(axes @ axes.T) == pytest.approx(np.sqrt(min(n, rank)))
    assert spectral_ratio(np.outer(B[:, 0], B[:, 0])) == pytest.approx(1)


def solve_generic(P, q, groups):
    """The same programs by cvxopt's interior points."""
    from cvxopt import matrix, solvers

    n = len(P)
    A = np.zeros((len(groups), n))
    for k, group in enumerate(groups):
        A[k, group] = 1
    solution = solvers.qp(
        matrix(2.0 * P),
        matrix(q),
        matrix(-np.eye(n)),
        matrix(np.zeros(n)),
        matrix(A),
        matrix(np.ones(len(groups))),
        options={
            "show_progress": False,
            "abstol": 1e-12,
            "reltol": 1e-12,
            "feastol": 1e-12,
            "maxiters": 200,
        },
    )
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


def test_generality_compares_squares():
    """An angle beyond 90° counts as the one that completes it to 180°."""
    wide, narrow = np.array([[1, -0.9], [-0.9, 1]]), np.array([[4, 2.0], [2.0, 4]])
    assert more_general(wide, narrow) and not more_general(narrow, wide)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_order_of_the_normal_forms(seed):
    """6.7.3 and Figure 6.8: more disjuncts are more general, more conjuncts more specific."""
    X = fixed(seed, 10, 8, 4)
    for name in ("mdnf", "dnf"):
        K = {(d, c): make_kernel(name, d=d, c=c)(X) for d in (1, 2, 3) for c in (1, 2, 3)}
        for d in (1, 2):
            for c in (1, 2, 3):
                assert more_general(K[d + 1, c], K[d, c])
        for d in (1, 2, 3):
            for c in (1, 2):
                assert more_general(K[d, c], K[d, c + 1])
    for name in ("mcnf", "cnf"):
        K = {(c, d): make_kernel(name, d=d, c=c)(X) for d in (1, 2, 3) for c in (1, 2, 3)}
        for d in (1, 2, 3):
            for c in (1, 2):
                assert more_general(K[c, d], K[c + 1, d])
        for d in (1, 2):
            for c in (1, 2, 3):
                assert more_general(K[c, d + 1], K[c, d])


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


@pytest.mark.parametrize("name", ["mc", "md", "c", "d"])
def test_the_recursions_end_beyond_float64(name):
    X = (np.random.default_rng(0).random((4, 2000)) < 0.9).astype(int)
    with pytest.raises(InputError, match="exceed the range"):
        list(degree_path(name, X, 1000))


def test_few_conjunctions_of_many_variables_are_counted_at_every_degree():
    X = (np.random.default_rng(0).random((4, 2000)) < 0.01).astype(int)
    *_, (degree, K) = degree_path("mc", X, 300)  # C(2000, 300) is beyond float64
    assert degree == 300 and not K.any()


DOT_PRODUCTS = [
    ("linear", {}),
    ("hp", {"degree": 3}),
    ("hp", {"degree": 5}),
    ("hp", {"degree": 40}),
    ("polynomial", {"degree": 4, "coef": 2.0}),
    ("polynomial", {"degree": 7, "coef": 0.1}),
    ("rbf", {"gamma": 1e-4}),
    ("rbf", {"gamma": 0.02}),
    ("rbf", {"gamma": 1.0}),
    ("tanimoto", {}),
    ("all-subsets", {}),
    ("mc", {"degree": 2}),
    ("mc-sum", {"degree": 4}),
    ("sadohara-mdnf", {"sigma": 0.3}),
    ("negation", {}),
    ("literal", {}),
    ("c", {"degree": 3}),
    ("d", {"degree": 3}),
    ("md", {"degree": 3}),
    ("mdnf", {"d": 2, "c": 3}),
    ("dnf", {"d": 3, "c": 2}),
    ("mcnf", {"d": 2, "c": 3}),
    ("cnf", {"d": 3, "c": 2}),
]


@pytest.mark.thorough
@pytest.mark.parametrize("name, params", DOT_PRODUCTS)
def test_dot_product_kernels_are_sums_of_conjunctive_ones(name, params):
    """Each value to 1e-10 of the largest, against exact or 60-digit arithmetic."""
    for m in (3, 9, 16, 22, 36, 57, 60, 150):
        g = mc_decomposition(make_kernel(name, **params), m)
        assert g.shape == (m + 1,) and (g >= 0).all()
        largest = Fraction(reference.VALUES[name](m, m, **params))
        for k in range(m + 1):
            exact = Fraction(reference.VALUES[name](m, k, **params))
            assert abs(reference.summed(g, m, k) - exact) <= Fraction(1e-10) * largest, k


def test_rbf_by_default_has_the_gamma_of_the_least_dimension():
    g = mc_decomposition(make_kernel("rbf"), 22)
    np.testing.assert_allclose(g, mc_decomposition(make_kernel("rbf", gamma=1 / 44), 22))


def test_a_formula_is_decomposed():
    g = mc_decomposition(propositional.parse("(a & b) | (c & d & e)"), 60)
    n, f = 120, np.arange(61)
    for k in f.tolist():
        p, q = Fraction(k, n) ** 2, Fraction(k, n) ** 3
        own_p, own_q = Fraction(60, n) ** 2, Fraction(60, n) ** 3
        # both hold: all minus those where either fails, with p and q independent of each other
        both = 1 - 2 * (1 - own_p) * (1 - own_q) + (1 - 2 * own_p + p) * (1 - 2 * own_q + q)
        exact = both * n**5
        assert abs(reference.summed(g, 60, k) - exact) <= Fraction(1e-10) * n**5


@pytest.mark.parametrize("m", [4, 22, 60])
def test_a_kernel_that_is_no_dot_product_is_refused(m):
    with pytest.raises(FitError, match="not a dot-product kernel"):
        mc_decomposition(lambda X, Z: (X @ Z.T - 1.0) ** 2, m)
    with pytest.raises(FitError, match="not a dot-product kernel"):
        mc_decomposition(propositional.parse("a ^ b"), m)
    with pytest.raises(FitError, match="not a dot-product kernel"):
        mc_decomposition(lambda X, Z: -1.0 * (X @ Z.T), m)
    assert mc_decomposition(lambda X, Z: X @ Z.T, 200)[1] == pytest.approx(200)
    assert mc_decomposition(lambda X, Z: 1e-300 * (X @ Z.T), m)[1] == pytest.approx(m * 1e-300)


@pytest.mark.thorough
def test_decompositions_at_the_boundary():
    assert (mc_decomposition(lambda X, Z: 0.0 * (X @ Z.T), 3) == 0).all()
    assert (mc_decomposition(make_kernel("mc", degree=5), 3) == 0).all()
    for m in (0, 2.5, True):
        with pytest.raises(InputError, match="m must be an integer of at least 1"):
            mc_decomposition(make_kernel("linear"), m)
    with pytest.raises(InputError, match="exceeds the range of float64"):
        mc_decomposition(make_kernel("hp", degree=400), 60)
    with pytest.raises(InputError, match="exceeds the range of float64"):
        mc_decomposition(lambda X, Z: np.where(X @ Z.T > 50, np.inf, 1.0), 60)
    with pytest.raises(InputError, match="degree must be"):
        mc_decomposition(make_kernel("md", degree=9), 4)
    deep = " ^ ".join(["(a & b & c & d & e)"] * 50)
    with pytest.raises(InputError, match="exceeds the range of float64"):
        mc_decomposition(propositional.parse(deep), 60)


@given(st.integers(0, 10_000), st.integers(1, 8))
@settings(max_examples=40, deadline=None)
def test_the_approximate_radius_is_a_distance_from_the_mean_and_no_more_than_the_radius(seed, rows):
    F = np.random.default_rng(seed).normal(size=(rows, 3))
    K = F @ F.T
    mean = np.sqrt(((F - F.mean(axis=0)) ** 2).sum(axis=1).mean())
    assert approximate_radius(K) == pytest.approx(mean, abs=1e-7)
    assert approximate_radius(K) <= radius(K) + 1e-6
    assert approximate_radius(np.ones((rows, rows))) == 0
    assert approximate_radius(np.eye(rows)) == pytest.approx(np.sqrt(1 - 1 / rows))


def test_a_null_row_is_normalized_to_1_on_the_diagonal():
    from recsys.kernels.expressiveness import normalized

    np.testing.assert_allclose(
        normalized([[0, 0, 0], [0, 4, 2], [0, 2, 4]]), [[1, 0, 0], [0, 1, 0.5], [0, 0.5, 1]]
    )
