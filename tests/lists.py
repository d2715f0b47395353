"""Two ways of asking agree to 1e-6, ties by item index: what near ties allow in lists."""

import numpy as np

RELATIVE = 1e-6


def assert_close(found, expected, err_msg=""):
    """Scores agree relatively, or relatively to the largest."""
    expected = np.asarray(expected, dtype=np.float64)
    known = np.abs(expected[np.abs(expected) < 1e30])
    scale = known.max(initial=0.0)
    np.testing.assert_allclose(found, expected, rtol=RELATIVE, atol=RELATIVE * scale, err_msg=err_msg)


def assert_same_lists(found, expected):
    """Ids and scores agree; an item may only stand elsewhere among near ties, or be the last."""
    (ids, scores), (others, values) = (map(np.atleast_2d, one) for one in (found, expected))
    assert_close(scores, values)
    for mine, theirs, row in zip(ids, others, np.asarray(values, dtype=np.float64), strict=True):
        near = 2 * RELATIVE * max(np.abs(row[np.abs(row) < 1e30]).max(initial=0.0), 1e-30)
        for k in np.flatnonzero(mine != theirs):
            assert (np.abs(row - row[k]) <= near).sum() > 1 or k == len(row) - 1
