"""Novelty against a loop over the list."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recsys import InputError
from recsys.rankers.answers import Recommendations
from recsys.reranking import favour_rare


def place(values, k):
    """From 0 for the lowest of some values to 1 for the highest; equal ones share their mean."""
    below = sum(v < values[k] for v in values)
    same = sum(v == values[k] for v in values)
    return (below + (same - 1) / 2) / max(len(values) - 1, 1)


@example([(0, 2), (0, 2), (0, 2), (1, 0), (1, 3), (2, 3)], 0.5, 6)  # .3 + .2 and .5 + 0 in floats
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=1, max_size=9),
    st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    st.integers(1, 9),
)
def test_the_order_is_that_of_the_weighted_places(pairs, novelty, N):
    scores = sorted((float(s) for s, _ in pairs), reverse=True)
    ids = np.arange(len(pairs))[::-1].copy()
    known = np.array([p for _, p in pairs], dtype=float)
    found = favour_rare(Recommendations(ids, np.array(scores, np.float32)), known, novelty, N)
    if novelty == 0 or len(pairs) < 2:
        assert found.ids.tolist() == ids.tolist()
        return
    best, rare = scores[:N], [-known[k] for k in ids[:N]]
    worth = [(1 - novelty) * place(best, k) + novelty * place(rare, k) for k in range(len(best))]
    order = sorted(range(len(best)), key=lambda k: (-round(worth[k], 9), k))
    assert found.ids.tolist() == [int(ids[k]) for k in order]
    np.testing.assert_allclose(found.scores, [worth[k] for k in order], atol=1e-6)


def test_wrong_numbers_are_refused():
    one = Recommendations(np.array([0]), np.array([1.0]))
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(InputError, match="novelty"):
            favour_rare(one, [1.0], wrong)
    with pytest.raises(InputError, match="N"):
        favour_rare(one, [1.0], 0.5, 0)
