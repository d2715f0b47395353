"""Fuzzy Boolean kernels, against the enumeration of all sets of variables."""

from itertools import combinations
from math import prod

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys.errors import InputError
from recsys.kernels import fuzzy_kernel, make_kernel

ENTRIES = st.sampled_from([0.0, 0.0, 1.0, 0.5, 0.25, 1e-9, 1 - 1e-9, 0.7])


def truth(x, chosen, connective):
    """Return how far a formula over some variables is true."""
    if connective == "and":
        return prod(x[i] for i in chosen)
    missed = prod(1.0 - x[i] for i in chosen)
    if 1.0 - missed > 0.5:
        return 1.0 - missed
    # The same without cancellation: the first one that holds, after others that do not.
    found, left = 0.0, 1.0
    for i in chosen:
        found, left = found + left * x[i], left * (1.0 - x[i])
    return found


def enumerated(x, z, degree, connective):
    return sum(
        truth(x, chosen, connective) * truth(z, chosen, connective)
        for chosen in combinations(range(len(x)), degree)
    )


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 6).flatmap(lambda n: st.tuples(
        st.lists(st.lists(ENTRIES, min_size=n, max_size=n), min_size=2, max_size=4), st.integers(1, n),
    )),
    st.sampled_from(["and", "or"]),
)  # fmt: skip
def test_it_is_the_sum_over_all_formulas(case, connective):
    rows, degree = case
    X = np.array(rows)
    wanted = np.array([[enumerated(x, z, degree, connective) for z in X] for x in X])
    K = fuzzy_kernel(X, connective=connective, degree=degree)
    np.testing.assert_allclose(K, wanted, rtol=1e-13, atol=0)
    for other in (sp.csr_matrix(X), sp.coo_matrix(X), X.tolist()):
        assert (fuzzy_kernel(other, X[:1], connective=connective, degree=degree) == K[:, :1]).all()
    assert np.linalg.eigvalsh(K).min() >= -1e-9 * max(np.trace(K), 1e-300)


@pytest.mark.parametrize(("connective", "name"), [("and", "mc"), ("or", "md")])
@pytest.mark.parametrize("normalize", [False, True])
def test_on_bits_it_is_the_boolean_kernel(connective, name, normalize):
    X = (np.random.default_rng(1).random((12, 30)) < 0.3).astype(int)
    X[3], X[5] = 0, 1
    for degree in (1, 2, 5, 30):
        plain = make_kernel(name, degree=degree)(X, normalize=normalize)
        found = fuzzy_kernel(X, connective=connective, degree=degree, normalize=normalize)
        np.testing.assert_allclose(found, plain, rtol=1e-12, atol=0)
        if normalize:
            apart = make_kernel(name, degree=degree)(X, X[:4], normalize=True)
            found = fuzzy_kernel(X, X[:4], connective=connective, degree=degree, normalize=True)
            np.testing.assert_allclose(found, apart, rtol=1e-12, atol=0)


def test_rare_truths_among_many_variables_keep_their_digits():
    """Two rows of one small entry each: C(n, d) − … would leave no digit of it."""
    n, degree = 2000, 3
    X = sp.csr_matrix(([1e-8, 1e-8], ([0, 1], [4, 900])), (2, n))
    K = fuzzy_kernel(X, connective="or", degree=degree)
    with_both, with_one = n - 2, (n - 1) * (n - 2) / 2
    assert K[0, 1] == pytest.approx(1e-16 * with_both, rel=1e-14)
    assert K[0, 0] == pytest.approx(1e-16 * with_one, rel=1e-14)


@pytest.mark.parametrize(
    ("given", "named", "text"),
    [
        ([[0.5, 1.5]], {}, "entries outside 0…1"),
        ([[0.5, -0.1]], {}, "entries outside 0…1"),
        ([[0.5, np.nan]], {}, "entries outside 0…1"),
        ([["a", "b"]], {}, "matrix of real numbers"),
        ([[1, 0]], {"degree": 3}, "degree"),
        ([[1, 0]], {"connective": "xor"}, "connective"),
        ([[1, 0]], {"Z": [[1, 0, 0]]}, "they must agree"),
        (np.ones((1, 5000)), {"degree": 2000}, "leaves the range of float64"),
    ],
    ids=str,
)
def test_what_is_no_fuzzy_vector_is_refused(given, named, text):
    with pytest.raises(InputError, match=text):
        fuzzy_kernel(given, **named)


def test_inputs_are_not_changed():
    X = sp.csr_matrix(np.array([[0.5, 0.0, 1.0]]))
    before = X.data.copy()
    fuzzy_kernel(X, normalize=True)
    assert (X.data == before).all() and X.nnz == 2
