from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp

from recsys._jit import compiled_at_once
from recsys.rankers.scoring import weighted_rows


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_are_the_weighted_sums_alone_and_in_many(dtype, compiled):
    rng = np.random.default_rng(0)
    lengths = [0, 1, 7, 8, 9, 31, 32, 33, 100, 300, *rng.integers(1, 60, size=40)]
    liked = np.zeros((len(lengths), 300), dtype=np.float32)
    for u, n in enumerate(lengths):
        liked[u, rng.permutation(300)[:n]] = 1
    rows = sp.csr_matrix(liked)
    matrix = rng.random((300, 300)).astype(dtype)
    # Weights that float32 holds: products take them in float32.
    weights = (rng.random(rows.nnz) / np.repeat(lengths, lengths)).astype(np.float32).astype(np.float64)
    offset, scale = rng.random(300), rng.random(len(lengths))
    expected = sp.csr_matrix((weights, rows.indices, rows.indptr), rows.shape) @ matrix.astype(float)
    expected -= scale[:, None] * offset
    with compiled_at_once() if compiled else nullcontext():
        many = weighted_rows(rows, weights, matrix, offset, scale)
        assert many.dtype == dtype
        tolerance = 3e-7 if dtype is np.float32 else 1e-14
        np.testing.assert_allclose(many, expected, rtol=0, atol=tolerance)
        for u in range(len(lengths)):
            part = slice(rows.indptr[u], rows.indptr[u + 1])
            alone = weighted_rows(rows[[u]], weights[part], matrix, offset, scale[u : u + 1])
            np.testing.assert_allclose(alone[0], many[u], rtol=1e-6, atol=tolerance)
