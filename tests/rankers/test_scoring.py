import numpy as np
import pytest
import scipy.sparse as sp

from recsys.rankers._scoring import weighted_rows


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_are_the_weighted_sums_alone_in_few_and_in_many(dtype):
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
    many = weighted_rows(rows, weights, matrix, offset, scale)
    expected = sp.csr_matrix((weights, rows.indices, rows.indptr), rows.shape) @ matrix.astype(
        np.float64
    )
    expected -= scale[:, None] * offset
    assert many.dtype == dtype
    np.testing.assert_allclose(many, expected, rtol=0, atol=3e-7 if dtype is np.float32 else 1e-14)
    for u in range(len(lengths)):
        part = slice(rows.indptr[u], rows.indptr[u + 1])
        alone = weighted_rows(rows[[u]], weights[part], matrix, offset, scale[u : u + 1])
        assert (alone[0] == many[u]).all()
    end = rows.indptr[9]  # so few that their columns are not packed
    few = weighted_rows(rows[:9], weights[:end], matrix, offset, scale[:9])
    assert end < 4 * 300 <= rows.nnz and (few == many[:9]).all()
