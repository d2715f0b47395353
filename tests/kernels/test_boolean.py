"""Every Boolean kernel against the enumeration of its feature space, and against exact integers."""

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from recsys import InputError
from recsys.kernels import make_kernel
from tests.reference import kernels as reference

ONE = ["mc", "md", "c", "d", "mc-sum", "anova"]
TWO = ["mdnf", "dnf", "mcnf", "cnf", "mdnf-sum"]
NONE = ["linear", "negation", "literal", "all-subsets"]
CASES = st.tuples(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 5))


def vectors(seed, n, rows):
    rng = np.random.default_rng(seed)
    X = (rng.random((rows, n)) < rng.random((rows, 1))).astype(int)
    X[rng.integers(rows)] = rng.integers(2)
    return X, rng


def check(name, X, params):
    expected = reference.gram(name, X, **params)
    kernel = make_kernel(name, **params)
    np.testing.assert_allclose(kernel(X), expected, rtol=1e-10)
    np.testing.assert_allclose(
        kernel(X, normalize=True), reference.normalised(expected), rtol=1e-10, atol=1e-14
    )


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(CASES)
@pytest.mark.parametrize("name", ONE)
def test_one_degree(name, case):
    X, rng = vectors(*case)
    check(name, X, {"degree": int(rng.integers(1, case[1] + 1))})


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(CASES, st.integers(1, 3), st.integers(1, 3))
@pytest.mark.parametrize("name", TWO)
def test_normal_forms(name, case, d, c):
    seed, n, rows = case
    n = min(n, 4 if name in ("dnf", "cnf") else 5)
    inner = c if name in ("mdnf", "dnf", "mdnf-sum") else d
    assume(inner <= n)
    clauses = {
        "mdnf": comb(n, c),
        "dnf": 2**c * comb(n, c),
        "mdnf-sum": sum(comb(n, k) for k in range(1, c + 1)),
    }
    assume(d <= clauses.get(name, d))
    X, _ = vectors(seed, n, rows)
    check(name, X, {"d": d, "c": c})


@settings(max_examples=40, deadline=None)
@given(CASES)
@pytest.mark.parametrize("name", NONE)
def test_without_parameters(name, case):
    check(name, vectors(*case)[0], {})


@settings(max_examples=40, deadline=None)
@given(CASES)
@pytest.mark.parametrize("name", ["sadohara-mdnf", "sadohara-dnf"])
def test_sadohara(name, case):
    X, rng = vectors(*case)
    n = case[1]
    arity = int(rng.integers(1, n + 1))
    check(name, X, {"arity": arity})
    np.testing.assert_allclose(make_kernel(name)(X), reference.gram(name, X, arity=n), rtol=1e-10)
    sigma = 0.3
    a, b = X[:, None, :], X[None, :, :]
    agree = a * b if name == "sadohara-mdnf" else a * b + (1 - a) * (1 - b)
    np.testing.assert_allclose(
        make_kernel(name, sigma=sigma)(X), (sigma * agree + 1).prod(axis=2) - 1, rtol=1e-10, atol=1e-14
    )
    weighted = sum(sigma**i * np.vectorize(comb)(agree.sum(axis=2), i) for i in range(1, arity + 1))
    np.testing.assert_allclose(
        make_kernel(name, sigma=sigma, arity=arity)(X), weighted, rtol=1e-10, atol=1e-14
    )


def hits(size, x, z, both, d):
    """Exact: d-subsets of `size` features that meet both sets."""
    return comb(size, d) - comb(size - x, d) - comb(size - z, d) + comb(size - x - z + both, d)


@pytest.mark.parametrize(
    "n, c, d", [(240, 3, 5), (240, 10, 3), (240, 120, 2), (60, 5, 300), (943, 2, 40)]
)
def test_normal_forms_equal_exact_integers_far_beyond_float64(n, c, d):
    rng = np.random.default_rng(n + c)
    X = np.zeros((7, n), dtype=np.int8)
    for row, size in enumerate([max(c - 1, 0), c, c + 1, n // 2 + c // 2, n - 2, n - 1, n]):
        X[row, rng.permutation(n)[:size]] = 1
    X[1, :] = 0
    X[1, np.flatnonzero(X[2])[:c]] = 1  # a vector just inside another
    S = X.astype(int) @ X.T.astype(int)
    L = n - X.sum(1)[:, None] - X.sum(1)[None, :] + 2 * S
    monotone, signed = make_kernel("mdnf", d=d, c=c), make_kernel("dnf", d=d, c=c)
    size, own = comb(n, c), comb(n, c)
    for kernel, value in (
        (
            monotone,
            lambda i, j: hits(
                size, comb(int(S[i, i]), c), comb(int(S[j, j]), c), comb(int(S[i, j]), c), d
            ),
        ),
        (signed, lambda i, j: hits(2**c * size, own, own, comb(int(L[i, j]), c), d)),
    ):
        K = kernel(X, normalize=True)
        for i in range(7):
            for j in range(i):
                exact, a, b = value(i, j), value(i, i), value(j, j)
                expected = 0.0 if a * b == 0 else float(Fraction(exact * exact, a * b)) ** 0.5
                assert K[i, j] == pytest.approx(expected, rel=1e-9, abs=1e-150), (i, j)


@pytest.mark.parametrize("name", ["mcnf", "cnf"])
def test_conjunctive_forms_equal_exact_integers(name):
    n, d, c = 100, 4, 3
    rng = np.random.default_rng(0)
    X = (rng.random((6, n)) < [[0.0], [0.02], [0.1], [0.5], [0.9], [1.0]]).astype(int)
    S = X @ X.T
    K = make_kernel(name, d=d, c=c)(X, normalize=True)

    def value(i, j):
        if name == "mcnf":
            inner = hits(n, int(S[i, i]), int(S[j, j]), int(S[i, j]), d)
        else:
            agree = n - int(S[i, i]) - int(S[j, j]) + 2 * int(S[i, j])
            inner = (2**d - 2) * comb(n, d) + comb(agree, d)
        return comb(inner, c)

    for i in range(6):
        for j in range(i):
            a, b = value(i, i), value(j, j)
            expected = 0.0 if a * b == 0 else float(Fraction(value(i, j) ** 2, a * b)) ** 0.5
            assert K[i, j] == pytest.approx(expected, rel=1e-9)


def count(name, n, a, b, s, d, c):
    """The raw value by the printed formula, in whole numbers."""
    agree = n - a - b + 2 * s

    def up_to(k):
        return sum(comb(k, i) for i in range(1, c + 1))

    return {
        "mc": lambda: comb(s, d),
        "c": lambda: comb(agree, d),
        "mc-sum": lambda: sum(comb(s, i) for i in range(1, d + 1)),
        "md": lambda: hits(n, a, b, s, d),
        "d": lambda: (2**d - 2) * comb(n, d) + comb(agree, d),
        "hp": lambda: s**d,
        "all-subsets": lambda: 2**s,
        "mdnf": lambda: hits(comb(n, c), comb(a, c), comb(b, c), comb(s, c), d),
        "dnf": lambda: hits(2**c * comb(n, c), comb(n, c), comb(n, c), comb(agree, c), d),
        "mcnf": lambda: comb(hits(n, a, b, s, d), c),
        "cnf": lambda: comb((2**d - 2) * comb(n, d) + comb(agree, d), c),
        "mdnf-sum": lambda: sum(
            hits(up_to(n), up_to(a), up_to(b), up_to(s), k) for k in range(1, d + 1)
        ),
    }[name]()


def check_counts(name, n, rows, d, c):
    params = {"d": d, "c": c} if name in TWO else {} if name == "all-subsets" else {"degree": d}
    X = np.zeros((len(rows), n), dtype=np.int8)
    for x, row in zip(X, rows, strict=True):
        x[list(row)] = 1
    try:
        K = make_kernel(name, **params)(X)
    except InputError as error:
        assert "range of float64" in str(error)
        values = [count(name, n, len(x), len(z), len(x & z), d, c) for x in rows for z in rows]
        assert max(values) > 1e290
        return 0
    small = 0
    for i, x in enumerate(rows):
        for j, z in enumerate(rows):
            exact = count(name, n, len(x), len(z), len(x & z), d, c)
            if exact < 2**45:
                assert K[i, j] == exact
                small += exact > 0
            else:
                assert K[i, j] == pytest.approx(float(exact), rel=1e-7)
    return small


COUNTS = ["mc", "c", "mc-sum", "md", "d", "hp", "all-subsets", *TWO]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(8, 300), st.integers(1, 12), st.integers(1, 12))
@pytest.mark.parametrize("name", COUNTS)
def test_raw_counts_below_2_to_the_45_are_exact(name, seed, n, d, c):
    """Rows of few and of many ones, overlapping much and not at all."""
    assume(max(d, c) <= n // 2)
    rng = np.random.default_rng(seed)
    order = rng.permutation(n).tolist()
    sizes = rng.integers(0, [4, 4, min(n, 45), min(n, 45), n + 1])
    starts = [int(rng.integers(0, n - size + 1)) for size in sizes]
    rows = [set(order[start : start + size]) for start, size in zip(starts, sizes, strict=True)]
    check_counts(name, n, [*rows, rows[0] | rows[2]], d, c)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name, n, sizes, d, c",
    [
        ("mdnf", 60, (40, 35, 30), 1, 10),  # 30,045,015 = C(30, 10) came out as 30,042,147
        ("mdnf", 60, (30, 30, 20), 1, 12),
        ("mdnf", 200, (30, 30, 20), 1, 6),
        ("mdnf-sum", 100_000, (3, 3, 2), 2, 2),
        ("dnf", 100_000, (3, 3, 2), 1, 2),
        ("md", 1_000_000, (5, 4, 3), 3, 1),
        ("md", 1_000_000, (1, 1, 0), 4, 1),
        ("mcnf", 3000, (9, 8, 7), 2, 2),
        ("cnf", 30, (9, 8, 7), 3, 3),
        ("mdnf", 30, (29, 28, 28), 29, 1),  # nearly all features: 30 and fewer sets of 29
    ],
)
def test_raw_counts_that_were_rounded_to_others(name, n, sizes, d, c):
    a, b, s = sizes
    rows = [set(range(a)), set(range(a - s, a - s + b))]
    assert check_counts(name, n, rows, d, c) > 0


@pytest.mark.slow
def test_twenty_thousand_disjuncts():
    """Sets that hardly any formula misses: 1 − e^{−400} times itself, where 0·∞ was formed."""
    n, c = 1000, 2
    X = np.zeros((3, n), dtype=np.int8)
    X[0, :500], X[1, 250:750], X[2, :3] = 1, 1, 1
    S = X.astype(int) @ X.T.astype(int)
    for d in (20, 2000, 20_000):
        K = make_kernel("mdnf", d=d, c=c)(X, normalize=True)
        for i in range(3):
            for j in range(i):
                x, z, both = (comb(int(k), c) for k in (S[i, i], S[j, j], S[i, j]))
                value, own, other = (
                    hits(comb(n, c), *sets, d) for sets in ((x, z, both), (x, x, x), (z, z, z))
                )
                expected = float(Fraction(value * value, own * other)) ** 0.5
                assert K[i, j] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "name, params, text",
    [
        ("md", {"degree": 4}, "degree must be an integer from 1 to 3, not 4"),
        ("c", {"degree": 4}, "degree"),
        ("mdnf", {"c": 4}, "c must be"),
        ("mcnf", {"d": 4}, "d must be"),
        ("mdnf", {"c": 2, "d": 4}, "d must be at most the number of clauses, 3, not 4"),
        ("sadohara-dnf", {"arity": 4}, "arity"),
    ],
)
def test_degrees_of_no_feature_are_refused(name, params, text):
    with pytest.raises(InputError, match=text):
        make_kernel(name, **params)(np.ones((2, 3)))


@pytest.mark.parametrize("params", [{"sigma": 0}, {"sigma": -1}, {"arity": 0}])
def test_sadoharas_parameters(params):
    with pytest.raises(InputError):
        make_kernel("sadohara-dnf", **params)


# ---- dimensions


@pytest.mark.parametrize("n", [1, 2, 4])
def test_the_dimension_is_the_number_of_features(n):
    x = np.ones(n, dtype=int)
    cases = [(name, {"degree": k}) for name in ONE for k in range(1, n + 1)]
    cases += [(name, {"d": d, "c": c}) for name in TWO for d in (1, 2) for c in (1, 2)]
    cases += [(name, {}) for name in NONE]
    cases += [
        (name, {"arity": k}) for name in ("sadohara-mdnf", "sadohara-dnf") for k in range(1, n + 1)
    ]
    counted = 0
    for name, params in cases:
        kernel = make_kernel(name, **params)
        features = len(reference.FEATURES[name](x, **params))
        try:
            dimension = kernel.dimension(n)
        except InputError:  # a degree of no feature, or more disjuncts than there are
            with pytest.raises(InputError):
                kernel(x[None, :])
            continue
        assert dimension == features, (name, params)
        counted += 1
    assert counted > len(cases) / 2
    assert make_kernel("sadohara-dnf").dimension(n) == 3**n - 1
    assert make_kernel("sadohara-mdnf").dimension(n) == 2**n - 1


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("degree", [1, 2, 5])
def test_polynomials_have_their_monomials(n, degree):
    below = [powers for powers in product(range(degree + 1), repeat=n) if sum(powers) <= degree]
    exactly = [powers for powers in below if sum(powers) == degree]
    assert make_kernel("polynomial", degree=degree).dimension(n) == len(below)
    assert make_kernel("polynomial", degree=degree, coef=0).dimension(n) == len(exactly)
    assert make_kernel("hp", degree=degree).dimension(n) == len(exactly)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        *((name, {"degree": 70}) for name in ("c", "d", "mc", "md", "mc-sum", "hp", "polynomial")),
        *((name, {"d": 70, "c": 2}) for name in ("mdnf", "dnf", "mcnf", "cnf")),
        *((name, {"d": 2, "c": 70}) for name in ("mdnf", "dnf", "mcnf", "cnf")),
        ("sadohara-mdnf", {"arity": 70}),
        ("sadohara-dnf", {"arity": 70}),
        ("all-subsets", {}),
        ("sadohara-mdnf", {}),
        ("sadohara-dnf", {}),
    ],
)
def test_numpys_integers_do_not_wrap(name, params):
    plain = make_kernel(name, **params)
    numpys = make_kernel(name, **{key: np.int64(value) for key, value in params.items()})
    assert numpys.dimension(np.int64(200)) == plain.dimension(200) > 2**63


def test_a_dimension_takes_no_table():
    n = 10**12
    assert make_kernel("mc").dimension(n) == n * (n - 1) // 2
    assert make_kernel("sadohara-mdnf", arity=2).dimension(n) == n * (n + 1) // 2
    assert make_kernel("hp", degree=5).dimension(n) == comb(n + 4, 5)
    with pytest.raises(InputError, match="arity"):
        make_kernel("sadohara-dnf", arity=4).dimension(3)


def test_dimensions_of_large_catalogues_are_whole_and_others_have_no_number():
    assert make_kernel("c", degree=3).dimension(10**6) == 8 * comb(10**6, 3)
    assert make_kernel("rbf").dimension(5) == make_kernel("tanimoto").dimension(5) == float("inf")
    with pytest.raises(InputError, match="n must be"):
        make_kernel("linear").dimension(0)
    with pytest.raises(InputError, match="degree"):
        make_kernel("mc", degree=4).dimension(3)
