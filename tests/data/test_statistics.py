import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from recsys.data.statistics import power_law, profile


@given(st.lists(st.integers(0, 10_000), min_size=3, max_size=60))
def test_the_power_law_is_weighted_least_squares(counts):
    values = np.sort([c for c in counts if c > 0])[::-1].astype(float)
    if len(values) < 3:
        return
    ranks = np.arange(1.0, len(values) + 1)
    x, y, w = np.log(ranks), np.log(values), 1 / ranks / (1 / ranks).sum()
    mx, my = w @ x, w @ y
    slope = (w @ ((x - mx) * (y - my))) / (w @ (x - mx) ** 2)
    law = power_law(counts)
    assert law.exponent == pytest.approx(-slope, rel=1e-9, abs=1e-11)
    assert law.scale == pytest.approx(np.exp(my - slope * mx), rel=1e-9)
    if np.ptp(values) > 0:
        explained = 1 - w @ (y - my - slope * (x - mx)) ** 2 / (w @ (y - my) ** 2)
        assert law.r_squared == pytest.approx(explained, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("ones", range(1, 6))
def test_the_density_of_a_kernel_is_the_mean_over_all_matrices(ones):
    """Of matrices whose entries are 1 independently, with the probability that is this one's density (10.6, 10.7)."""
    n, m = 3, 2
    p = ones / (n * m)
    mean = 0.0
    for entries in itertools.product((0, 1), repeat=n * m):
        R = sp.csr_matrix(np.reshape(entries, (n, m)), dtype=np.float32)
        mean += p ** sum(entries) * (1 - p) ** (n * m - sum(entries)) * profile(R).kernel_density
    given = np.zeros(n * m, np.float32)
    given[:ones] = 1
    assert profile(sp.csr_matrix(given.reshape(n, m))).kernel_estimate == pytest.approx(mean)
