import numpy as np
import pytest
import scipy.sparse as sp

from recsys import InputError, make_ranker
from recsys.reranking import mmr, overlap, rerank, similar


@pytest.fixture
def ranker(liked):
    return make_ranker("ease").fit(liked)


def test_overlap_is_the_cosine_of_columns(liked):
    ids = np.array([3, 5, 9, 5])
    X = liked.toarray().astype(np.float64)[:, ids]
    found = overlap(liked.tocsc(), ids)
    for a in range(4):
        for b in range(4):
            size = np.linalg.norm(X[:, a]) * np.linalg.norm(X[:, b])
            wanted = 1.0 if a == b else (X[:, a] @ X[:, b] / size if size else 0.0)
            assert found[a, b] == pytest.approx(wanted, abs=1e-12)


def test_mmr_takes_the_best_item_at_each_step():
    rng = np.random.default_rng(0)
    scores, S = rng.random(8), rng.random((8, 8))
    S = np.maximum(S, S.T)
    relevance, chosen = (scores - scores.min()) / np.ptp(scores), []
    while len(chosen) < 6:
        left = [i for i in range(8) if i not in chosen]
        chosen.append(
            max(left, key=lambda i: 0.3 * relevance[i] - 0.7 * max((S[i, j] for j in chosen), default=0))
        )
    assert mmr(scores, S, 6, diversity=0.7).tolist() == chosen


def test_without_wishes_it_is_recommend(ranker, liked):
    ids, scores = rerank(ranker, 3, liked[3], 7)
    wanted = ranker.recommend(3, liked[3], N=7)
    np.testing.assert_array_equal(ids, wanted.ids)
    np.testing.assert_array_equal(scores, wanted.scores)


def test_dislikes_are_left_out_and_lower_what_goes_with_them(ranker, liked):
    row = liked[3]
    disliked = int(ranker.recommend(3, row, N=1).ids[0])
    ids, scores = rerank(ranker, 3, row, 40, dislikes=[disliked])
    assert disliked not in ids and not set(ids) & set(row.indices)
    assert (np.diff(scores) <= 0).all()
    plain = ranker.scores(3, row)[0].astype(np.float64)
    alone = sp.csr_matrix(([1.0], [disliked], [0, 1]), (1, 40))
    against = ranker.scores(0, alone)[0].astype(np.float64)
    z = (against - against.mean()) / against.std()
    wanted = plain[ids] - 0.5 * plain[ids].std() * z[ids]
    np.testing.assert_allclose(scores, wanted, rtol=1e-5, atol=1e-6)
    assert set(ids) == set(ranker.recommend(3, row, N=40).ids) - {disliked}


def test_variety_makes_the_list_less_alike(ranker, liked):
    columns = liked.tocsc()
    plain = rerank(ranker, 3, liked[3], 6).ids
    varied = rerank(ranker, 3, liked[3], 6, diversity=0.7, item_users=columns).ids
    assert plain[0] == varied[0]
    assert overlap(columns, varied).mean() < overlap(columns, plain).mean()


def test_a_varied_list_may_be_longer_than_a_hundred():
    R = sp.csr_matrix(np.random.default_rng(0).random((40, 180)) < 0.2, dtype=np.float32)
    ranker, columns = make_ranker("msdw").fit(R, show_progress=False), R.tocsc()
    plain = ranker.recommend(3, R[3], N=130)
    order = mmr(plain.scores, overlap(columns, plain.ids), 130, 0.5)
    varied = rerank(ranker, 3, R[3], 130, diversity=0.5, item_users=columns)
    np.testing.assert_array_equal(varied.ids, plain.ids[order])
    alike = similar(ranker, 4, 130, diversity=0.5, item_users=columns)[0]
    assert sorted(alike) == sorted(similar(ranker, 4, 130)[0]) and len(alike) == 130


def test_filters_hold(ranker, liked):
    columns = liked.tocsc()
    wishes = {"dislikes": [2], "diversity": 0.5, "item_users": columns}
    only = rerank(ranker, 3, liked[3], 10, items=[1, 2, 3, 4, 8], **wishes).ids
    assert set(only) <= {1, 3, 4, 8} - set(liked[3].indices)
    without = rerank(ranker, 3, liked[3], 40, filter_items=[1, 4], **wishes).ids
    assert not set(without) & {1, 2, 4}


def test_folded_in_and_empty_rows(ranker, liked):
    nothing = sp.csr_matrix((1, 40), dtype=np.float32)
    found = rerank(ranker, 0, nothing, 5, dislikes=[1], recalculate_user=True)
    assert found.fallback and 1 not in found.ids and len(found.ids) == 5


def test_bad_wishes_are_refused(ranker, liked):
    for wrong in ({"dislikes": [99]}, {"diversity": 1.5}, {"diversity": 0.5}):
        with pytest.raises(InputError):
            rerank(ranker, 3, liked[3], 5, **wrong)
    with pytest.raises(InputError, match="one user at a time"):
        rerank(ranker, [3], liked[3], 5)
    factors = make_ranker("bpr", factors=2, iterations=2).fit(liked, show_progress=False)
    with pytest.raises(InputError, match="dislikes need"):
        rerank(factors, 3, liked[3], 5, dislikes=[1])


def test_similar_items_leave_the_item_out_and_keep_the_filters(ranker, liked):
    plain, scores = similar(ranker, 4, 6)
    assert 4 not in plain and (np.diff(scores) <= 0).all()
    assert set(similar(ranker, 4, 40, filter_items=range(3, 40))[0]) == {0, 1, 2}
    assert set(similar(ranker, 4, 6, filter_items=[int(plain[0])])[0]).isdisjoint({4, plain[0]})
    varied, _ = similar(ranker, 4, 6, diversity=0.9, item_users=liked.tocsc())
    assert len(set(varied)) == 6 and list(varied) != list(plain)
    with pytest.raises(InputError, match="item_users"):
        similar(ranker, 4, 6, diversity=0.5)


def test_times_reach_the_ranker(liked):
    times = liked.astype(np.float64)
    times.data = 1.0 + (np.arange(liked.nnz) * 7919) % 31
    ranker = make_ranker("ease", recency=1.0).fit(liked, show_progress=False, times=times)
    row, when = liked[3], times[3]
    back = sp.csr_matrix((when.data.max() + 1 - when.data, when.indices, when.indptr), when.shape)
    columns = liked.tocsc()
    for given in (when, back):
        for wishes in ({}, {"recalculate_user": True}):
            wanted = ranker.recommend(3, row, N=40, times=given)
            found = rerank(ranker, 3, row, 40, times=given, **wishes)
            np.testing.assert_array_equal(found.ids, wanted.ids)
            np.testing.assert_array_equal(found.scores, wanted.scores)
        varied = rerank(ranker, 3, row, 6, times=given, diversity=0.4, item_users=columns)
        kept = dict(zip(wanted.ids.tolist(), wanted.scores.tolist(), strict=True))
        assert [kept[k] for k in varied.ids.tolist()] == varied.scores.tolist()
        away = rerank(ranker, 3, row, 40, times=given, dislikes=[int(wanted.ids[0])])
        assert sorted(away.ids) == sorted(wanted.ids[1:])
    assert (
        rerank(ranker, 3, row, 40, times=when).ids.tolist()
        != rerank(ranker, 3, row, 40, times=back).ids.tolist()
    )
