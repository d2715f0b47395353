"""Popularity behind equal scores of a blend, and what its parts add."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import EASE, SLIM, Blend, InputError, load_ranker, make_ranker
from recsys.rankers.blend import break_ties, popularity_ranks
from tests.reference import ties as slow

# Neighbors of float32, on both sides of powers of two and of 0, where the room between them changes.
EDGES = [
    np.nextafter(np.float32(start), np.float32(towards), dtype=np.float32)
    for start in (0.0, 1.0, -1.0, 2.0, -2.0, 1e-37, 3e38, -3e38)
    for towards in (np.inf, -np.inf, start)
]
VALUES = st.floats(-(2.0**99), 2.0**99, width=32).filter(lambda v: v == 0 or abs(v) > 1e-30)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.one_of(st.sampled_from(EDGES), VALUES), min_size=1, max_size=30),
    st.randoms(use_true_random=False),
)
def test_scores_stay_and_only_equal_ones_are_ordered(values, random):
    scores = np.array([values], dtype=np.float32)
    popularity = np.array([random.choice([0, 1, 2, 7, 1000]) for _ in values], dtype=np.float32)
    popularity[0] = max(popularity[0], 1)
    found = break_ties(scores, popularity_ranks(popularity))
    np.testing.assert_array_equal(found.astype(np.float32), scores)
    places = np.unique(found[0], return_inverse=True)[1].tolist()
    assert places == slow.places(scores[0], slow.prior(popularity))


def test_lists_are_in_the_order_of_scores_and_popularity(liked, tmp_path):
    plain, ordered = (
        Blend([SLIM(l1=0.0, top_k=1)], ties=ties).fit(liked, False) for ties in (None, "popularity")
    )
    users = np.arange(liked.shape[0])
    scores, prior = plain.scores(users, liked), slow.prior(ordered.popularity_)
    np.testing.assert_array_equal(ordered.scores(users, liked).astype(np.float32), scores)
    found = ordered.recommend(users, liked, N=5)
    for u in users[np.diff(liked.indptr) > 0]:
        allowed = set(range(liked.shape[1])) - set(liked[u].indices.tolist())
        best = slow.ranking(scores[u], prior, allowed)[:5]
        assert found.ids[u, : len(best)].tolist() == best
    ordered.save(tmp_path / "m")
    again = load_ranker(tmp_path / "m").recommend(users, liked, N=5)
    np.testing.assert_array_equal(again.ids, found.ids)
    with pytest.raises(InputError, match="ties must be one of popularity, not 'x'"):
        Blend(ties="x").fit(liked)


def test_what_parts_add_and_contributions_sum_to_the_score(liked):
    blend = Blend([EASE(), SLIM()], weights=[2, 1]).fit(liked, False)
    user = int(np.flatnonzero(np.diff(liked.indptr) > 2)[0])
    scores = blend.scores(user, liked[user])[0]
    np.testing.assert_allclose(blend.part_scores(user, liked[user]).sum(axis=0), scores, atol=1e-5)
    for item in (0, 5):
        reason = blend.explain(user, liked[user], item, N=40)
        parts = zip(blend.parts_, blend.part_weights_, strict=True)
        expected = 0.0
        for part, weight in parts:
            own = part.scores(user, liked[user])[0]
            expected += weight / own.std() * (part.explain(user, liked[user], item, N=40).score)
        shares = sum(share for _, share in reason.contributions)
        assert shares == pytest.approx(expected, rel=1e-5)
        assert reason.score == pytest.approx(scores[item], rel=1e-6)


@pytest.mark.parametrize("name", ["fm", "bilinear", "cf-komd", "cosine"])
def test_a_part_of_any_family_explains(liked, name):
    part, user = make_ranker(name), int(np.flatnonzero(np.diff(liked.indptr) > 2)[0])
    blend = Blend([part]).fit(liked, False)
    item = int(blend.recommend(user, liked[user], N=1).ids[0])
    reason, own = (ranker.explain(user, liked[user], item, N=40) for ranker in (blend, blend.parts_[0]))
    assert reason.bias + sum(share for _, share in reason.contributions) == pytest.approx(reason.score)
    deviation = blend.parts_[0].scores(user, liked[user]).std()
    expected = {likes: share / deviation for likes, share in own.contributions}
    assert dict(reason.contributions) == pytest.approx(expected, rel=1e-6, abs=1e-7)
