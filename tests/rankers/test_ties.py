"""Popularity behind equal scores: brute force over pairs of score and popularity."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError, evaluate, load_dataset, load_ranker, make_ranker
from recsys.evaluation.metrics import auc
from recsys.rankers._ties import break_ties, check_ties, tie_order
from tests.rankers.test_lists import data
from tests.reference import ties as slow
from tests.strategies import liked_matrices

SMALL = settings(max_examples=25, deadline=None)
MODELS = {
    "msdw": {"top_k": 2},
    "ease": {"top_k": 3, "regularization": 2.0},
    "slim": {"l1": 0.1, "top_k": 2},
    "slist": {"form": "cosine", "top_k": 2},
    "bm25": {"top_k": 2},
    "user-knn": {"top_k": 2},
    "graph-filter": {"filter": "linear"},
}
WITHOUT_WEIGHTS = ("graph-filter", "user-knn")  # of items: nothing is below 0
# Neighbours of float32, on both sides of powers of two and of 0, where the room between them changes.
EDGES = [
    np.nextafter(np.float32(start), np.float32(towards), dtype=np.float32)
    for start in (0.0, 1.0, -1.0, 2.0, -2.0, 1e-38, 3e38, -3e38, 2.0**-126)
    for towards in (np.inf, -np.inf, start)
]


def sparse(name, monkeypatch):
    if name in ("msdw", "slim", "ease"):
        monkeypatch.setattr("recsys.rankers.msdw.SMALL", 0)
        monkeypatch.setattr("recsys.rankers._gram_view.SMALL", 0)


def ranked(values):
    return np.unique(values, return_inverse=True)[1]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.one_of(st.sampled_from(EDGES), st.floats(width=32, allow_nan=False, allow_infinity=False)),
             min_size=1, max_size=30),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_scores_stay_and_only_equal_ones_are_ordered(values, random):
    scores = np.array([values], dtype=np.float32)
    popularity = np.array([random.choice([0, 1, 2, 7, 1000]) for _ in values], dtype=np.float32)
    if not popularity.any():
        popularity[0] = 1
    found = break_ties(scores, tie_order(popularity))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found.astype(np.float32), scores)
    assert ranked(found[0]).tolist() == slow.places(scores[0], slow.prior(popularity))


def test_a_million_ranks_leave_scores_as_they_are():
    popularity = np.arange(1, 1_000_001, dtype=np.float32)
    for value in EDGES:
        found = break_ties(np.full((1, 1_000_000), value, np.float32), tie_order(popularity))
        assert (np.diff(found[0]) > 0).all()
        assert (found.astype(np.float32) == value).all()


@pytest.mark.thorough
@pytest.mark.parametrize("form", ["sparse", "dense"])
@pytest.mark.parametrize("name", list(MODELS))
def test_lists_and_scores_are_in_the_order_of_pairs(name, form, monkeypatch):
    params = MODELS[name] if form == "sparse" else {}
    if form == "sparse":
        sparse(name, monkeypatch)
    for seed in range(3):
        R = data(seed).tolil()
        R[:, 3] = 0  # what nobody has
        R = sp.csr_matrix(R)
        plain = make_ranker(name, **params).fit(R)
        model = make_ranker(name, **params, ties="popularity").fit(R)
        if name not in WITHOUT_WEIGHTS:
            assert sp.issparse(model.weights_) or form == "dense"
        if seed == 2 and name not in WITHOUT_WEIGHTS:  # weights below 0 rank behind items without any
            for one in (plain, model):
                (one.weights_.data if sp.issparse(one.weights_) else one.weights_)[::2] *= -1
        prior, users = slow.prior(model.popularity_), np.arange(R.shape[0])
        before, after = plain.scores(users, R), model.scores(users, R)
        np.testing.assert_array_equal(after.astype(np.float32), before)
        for u in users:
            assert ranked(after[u]).tolist() == slow.places(before[u], prior)
        left_out = np.arange(0, 40, 3)
        asked = [
            ({"N": 1}, True), ({"N": 10}, True), ({"N": 10}, False), ({"N": 40}, True),
            ({"N": 10, "filter_items": left_out}, True), ({"N": 10, "items": left_out}, False),
        ]  # fmt: skip
        for given_, skip in asked:
            found = model.recommend(users, R, filter_already_liked_items=skip, **given_)
            for u in users:
                allowed = set(given_.get("items", range(40))) - set(given_.get("filter_items", ()))
                allowed -= set(R[u].indices.tolist()) if skip else set()
                best = slow.ranking(before[u], prior, allowed)[: given_["N"]]
                assert found.ids[u, : len(best)].tolist() == best
                assert (found.ids[u, len(best) :] == -1).all()
                np.testing.assert_array_equal(found.scores[u, : len(best)], before[u, best])
        alone = model.recommend(5, R[5], N=6)
        assert alone.ids.tolist() == model.recommend(users, R, N=6).ids[5, : len(alone.ids)].tolist()


@SMALL
@given(liked_matrices(min_users=3, min_items=3))
def test_auc_is_that_of_the_order_of_pairs(R):
    train, test = R.copy(), R.copy()
    test.data = (np.arange(R.nnz) % 2).astype(np.float32)
    train.data = 1.0 - test.data
    train.eliminate_zeros()
    test.eliminate_zeros()
    if train.nnz == 0:
        return
    users = np.arange(R.shape[0])
    model = make_ranker("msdw", top_k=1, ties="popularity").fit(train, show_progress=False)
    plain = make_ranker("msdw", top_k=1).fit(train, show_progress=False).scores(users, train)
    pairs = np.array(
        [slow.places(row, slow.prior(model.popularity_)) for row in plain], dtype=np.float64
    )
    np.testing.assert_array_equal(auc(model.scores(users, train), train, test), auc(pairs, train, test))


def test_auc_of_sparse_weights_rises():
    plain, ordered = evaluate(
        load_dataset("sample"),
        ["msdw:top_k=10,locality=2", "msdw:top_k=10,locality=2,ties=popularity"],
        metrics=["auc"],
        folds=2,
    ).results
    assert ordered.metrics["auc"].mean > plain.metrics["auc"].mean


@pytest.mark.parametrize("name", list(MODELS))
def test_contributions_sum_to_the_score(name, monkeypatch):
    sparse(name, monkeypatch)
    R = data(1)
    model = make_ranker(name, **MODELS[name], ties="popularity").fit(R)
    for user in (0, 7, 8, 20):
        scores = model.scores(user, R[user])[0]
        for item in range(0, 40, 5):
            told = model.explain(user, R[user], item, N=40)
            total = told.score - sum(value for _, value in told.contributions)
            assert total == pytest.approx(0.0 if R[user].nnz else scores[item], abs=1e-6)
            assert told.score == pytest.approx(scores[item], rel=1e-6, abs=1e-6)


def test_who_likes_nothing_gets_the_popular_ones_with_their_numbers():
    R = data(0)
    model = make_ranker("msdw", ties="popularity").fit(R)
    np.testing.assert_array_equal(model.scores(7, R[7])[0], model.popularity_)


def test_files_keep_the_order(tmp_path, monkeypatch):
    sparse("msdw", monkeypatch)
    R = data(0)
    users = np.arange(R.shape[0])
    model = make_ranker("msdw", top_k=2, ties="popularity").fit(R)
    model.save(tmp_path / "m.recsys")
    loaded = load_ranker(tmp_path / "m.recsys")
    assert loaded.ties == "popularity"
    np.testing.assert_array_equal(loaded.scores(users, R), model.scores(users, R))
    np.testing.assert_array_equal(loaded.recommend(users, R).ids, model.recommend(users, R).ids)


def test_the_order_follows_updates():
    R = data(0)[:40]
    more = np.zeros((30, 40), np.float32)
    more[:, np.argmin(R.sum(axis=0))] = 1
    model = make_ranker("msdw", ties="popularity").fit(R)
    model.scores(0, R[0])
    model.partial_fit(sp.csr_matrix(more))
    refit = make_ranker("msdw", ties="popularity").fit(sp.vstack([R, sp.csr_matrix(more)]).tocsr())
    np.testing.assert_array_equal(model.scores(0, R[0]), refit.scores(0, R[0]))


def test_another_prior_is_refused():
    with pytest.raises(
        InputError, match="ties must be one of popularity, or none for no order, not 'x'"
    ):
        make_ranker("ease", ties="x").fit([[1, 0]], show_progress=False)
    check_ties(None)
