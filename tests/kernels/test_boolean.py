import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError
from recsys.kernels import make_kernel
from tests.reference import kernels as reference

FEATURES = {"mc": reference.conjunctions, "md": reference.disjunctions}


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 7), rows=st.integers(1, 6))
@pytest.mark.parametrize("name", ["mc", "md"])
def test_equals_enumeration(name, seed, n, rows):
    rng = np.random.default_rng(seed)
    X = (rng.random((rows, n)) < rng.random()).astype(int)
    degree = int(rng.integers(1, n + 1))
    expected = reference.gram(FEATURES[name], X, degree)
    kernel = make_kernel(name, degree=degree)
    np.testing.assert_allclose(kernel(X), expected, rtol=1e-12)
    np.testing.assert_allclose(
        kernel(X, normalize=True), reference.normalised(expected), rtol=1e-12, atol=1e-14
    )


def test_degree_of_no_feature_is_refused():
    with pytest.raises(InputError, match="degree must be a whole number from 1 to 3, not 4"):
        make_kernel("md", degree=4)(np.ones((2, 3)))
