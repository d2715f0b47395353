"""The item Gram matrix, at the sizes and degrees of real data, against exact integers."""

from fractions import Fraction
from math import comb, isqrt

import numpy as np
import pytest
import scipy.sparse as sp

from recsys import InputError
from recsys.kernels import item_gram, make_kernel


def root_ratio(value, a, b):
    """value / √(a·b) of huge integers, to 18 digits."""
    scale = 10**40
    return float(Fraction(value * scale, max(1, isqrt(a * b * scale * scale))))


def disjunctions(n, d, a, b, s):
    return comb(n, d) - comb(n - a, d) - comb(n - b, d) + comb(n - a - b + s, d)


@pytest.mark.slow
@pytest.mark.parametrize("n", [943, 6040, 17615])
@pytest.mark.parametrize("name", ["mc", "md"])
def test_normalised_values_equal_exact_integers_at_any_degree(name, n):
    rng = np.random.default_rng(n)
    sizes = [1, 2, 3, 17, n // 50, n // 3, n - 1, n]
    X = np.zeros((len(sizes), n), dtype=np.int8)
    for row, size in enumerate(sizes):
        X[row, rng.permutation(n)[:size]] = 1
    S = X.astype(int) @ X.T.astype(int)
    for d in (1, 2, 3, 6, 13, 50, 153, 300, n // 2, n):
        K = make_kernel(name, degree=d)(X, normalize=True)
        assert np.isfinite(K).all()
        for i, a in enumerate(sizes):
            for j, b in enumerate(sizes):
                if i == j:
                    assert K[i, j] == 1
                    continue
                if name == "mc":
                    exact = (comb(int(S[i, j]), d), comb(a, d), comb(b, d))
                else:
                    exact = (
                        disjunctions(n, d, a, b, int(S[i, j])),
                        disjunctions(n, d, a, a, a),
                        disjunctions(n, d, b, b, b),
                    )
                expected = root_ratio(*exact) if exact[1] and exact[2] else 0.0
                assert K[i, j] == pytest.approx(expected, rel=1e-9, abs=1e-280), (d, a, b)


def test_too_many_items_are_refused_with_the_bytes_before_anything_is_allocated():
    wide = sp.csr_matrix(([1.0], ([0], [0])), shape=(2, 10_000_000), dtype=np.float32)
    with pytest.raises(InputError, match=r"10,000,000 items: needs 400000.0 GB"):
        item_gram(wide, make_kernel("linear"))
