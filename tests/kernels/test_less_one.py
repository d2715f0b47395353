"""K − 1 keeps its digits: against whole numbers in 200 digits."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError
from recsys.kernels import Kernel, list_kernels, make_kernel
from recsys.kernels.base import KERNELS
from tests.reference import exact

PARAMS = {
    "mdnf": {"d": 3, "c": 2}, "dnf": {"d": 3, "c": 2}, "mcnf": {"d": 3, "c": 2}, "cnf": {"d": 3, "c": 2},
    "mdnf-sum": {"d": 3, "c": 2}, "sadohara-mdnf": {"arity": 3}, "sadohara-dnf": {"arity": 3},
}  # fmt: skip


def rows(n, s, a, b):
    """Two vectors of n with a and b ones, s of them in common."""
    X = np.zeros((2, n), dtype=np.int8)
    X[0, :a] = 1
    X[1, a - s : a - s + b] = 1
    return X


def expected(name, params, n, s, a, b):
    """As the definition has it; the reference's own values take vectors without ones for null."""
    key = tuple(sorted(params.items()))
    with localcontext() as context:
        context.prec = 2 * exact.DIGITS  # K may be 1 in the first 200
        own = exact.count(name, key, n, a, a, a) * exact.count(name, key, n, b, b, b)
        if not own:
            return Decimal(-1)
        return Decimal(exact.count(name, key, n, s, a, b)) / Decimal(own).sqrt() - 1


def check(name, params, n, s, a, b):
    found = make_kernel(name, **params).less_one(rows(n, s, a, b))
    right = expected(name, params, n, s, a, b)
    assert found[0, 0] == found[1, 1] == 0 and found[0, 1] == found[1, 0]
    gap = exact.gap(found[0, 1], right)
    assert gap <= 1e-12 * abs(float(right)) or (gap < 1e-300 and abs(right) < Decimal("1e-295")), (
        found[0, 1],
        right,
    )


@st.composite
def overlaps(draw):
    n = draw(st.integers(300, 10_000))
    sizes = st.one_of(st.integers(0, n), st.integers(0, 12), st.integers(n - 12, n))
    a, b = draw(sizes), draw(st.one_of(sizes, st.none()))
    b = a if b is None else b
    least, most = max(0, a + b - n), min(a, b)
    near = st.integers(max(least, most - 2), most)
    return n, draw(st.one_of(st.integers(least, most), near)), a, b


@pytest.mark.thorough
@settings(max_examples=150, deadline=None)
@given(overlaps(), st.integers(20, 300))
@pytest.mark.parametrize("name", ["md", "d", "mc", "c"])
def test_one_degree(name, overlap, degree):
    check(name, {"degree": degree}, *overlap)


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(overlaps(), st.integers(20, 150), st.integers(1, 3))
@pytest.mark.parametrize("name", ["mdnf", "dnf", "mcnf", "cnf", "mdnf-sum"])
def test_normal_forms(name, overlap, many, few):
    if name == "mdnf-sum":
        many = 20 + many % 10
    of_many = "d" if name in ("mdnf", "dnf", "mdnf-sum") else "c"
    check(name, {of_many: many, "c" if of_many == "d" else "d": few}, *overlap)


@settings(max_examples=60, deadline=None)
@given(overlaps())
@pytest.mark.parametrize("name", ["negation", "literal"])
def test_without_degree(name, overlap):
    check(name, {}, *overlap)


def test_degree_100_at_a_thousand_users_where_floats_have_nothing_left():
    X = rows(1000, 300, 310, 320)
    kernel = make_kernel("md", degree=100)
    assert kernel(X, normalize=True)[0, 1] == 1.0
    assert -1e-15 < kernel.less_one(X)[0, 1] < -1e-18
    check("md", {"degree": 100}, 1000, 300, 310, 320)


@settings(max_examples=40, deadline=None)
@given(st.floats(1e-12, 2.0), overlaps())
def test_rbf_is_an_expm1(gamma, overlap):
    n, s, a, b = overlap
    found = make_kernel("rbf", gamma=gamma).less_one(rows(n, s, a, b))[0, 1]
    with localcontext() as context:
        context.prec = 60
        right = (-Decimal(gamma) * (a + b - 2 * s)).exp() - 1
    assert exact.gap(found, right) <= 1e-15 * abs(float(right))


@pytest.mark.thorough
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
@pytest.mark.parametrize("name", list_kernels())
def test_every_kernel_is_its_call_less_one(name, seed, other):
    rng = np.random.default_rng(seed)
    X, Z = ((rng.random((5, 12)) < rng.random((5, 1))).astype(int) for _ in range(2))
    X[0], Z[0] = 0, 1
    kernel = make_kernel(name, **PARAMS.get(name, {}))
    given_ = (X, Z) if other else (X,)
    called = kernel(*given_, normalize=True) - 1.0
    np.testing.assert_allclose(kernel.less_one(*given_), called, rtol=1e-10, atol=1e-11)


def test_a_kernel_without_exact_values_is_less_one_in_floats():
    class Plain(KERNELS.get("tanimoto")):
        exact = Kernel.exact

    X = rows(20, 3, 5, 8)
    np.testing.assert_array_equal(Plain().less_one(X), Plain()(X, normalize=True) - 1.0)


def test_errors_are_those_of_a_call():
    kernel = make_kernel("md", degree=5)
    with pytest.raises(InputError, match="X has 6 columns and Z has 7; they must agree"):
        kernel.less_one(np.ones((2, 6)), np.ones((2, 7)))
    with pytest.raises(InputError, match="degree must be an integer from 1 to 4"):
        kernel.less_one(np.ones((2, 4)))
