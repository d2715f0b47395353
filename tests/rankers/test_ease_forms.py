"""Which of EASE's options exclude each other."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_info, threadpool_limits

from recsys import EASE, InputError, Recommender, load_dataset, make_ranker
from recsys.rankers import ease
from recsys.utils import threads
from recsys.utils.memory import size_text


def test_the_whole_inverse_is_kept_of_the_whole_model_only(liked):
    with pytest.raises(InputError, match="keep_inverse is for the whole inverse"):
        make_ranker("ease", keep_inverse=True, top_k=3)
    with pytest.raises(InputError, match="keep_inverse needs the whole inverse of .* does not fit"):
        make_ranker("ease", keep_inverse=True, memory=1000).fit(liked, show_progress=False)
    with pytest.raises(InputError, match="keep_inverse updates an inverse of rows that count alike"):
        make_ranker("ease", keep_inverse=True, votes=0.5).fit(liked, show_progress=False)
    for more in ({"ridge_power": 0.5}, {"dropout": 0.1}):
        with pytest.raises(InputError, match="whose ridge does not depend on popularity"):
            make_ranker("ease", keep_inverse=True, **more).fit(liked, show_progress=False)
    with pytest.raises(InputError, match="dropout must be a finite number of at least 0 and below 1"):
        make_ranker("ease", dropout=1.0).fit(liked, show_progress=False)
    with pytest.raises(InputError, match="ridge_power must be a finite number of at least 0, not -1"):
        make_ranker("ease", ridge_power=-1).fit(liked, show_progress=False)
    thin = make_ranker("ease", top_k=3).fit(liked, show_progress=False)
    assert ((np.asarray(thin.weights_) != 0).sum(axis=0) <= 3).all()


def test_items_that_nobody_has_do_not_change_the_ridge_of_others(liked):
    options = {"regularization": 3.0, "ridge_power": 0.7, "dropout": 0.3}
    weights = make_ranker("ease", **options).fit(liked, show_progress=False).weights_
    more = sp.hstack([liked, sp.csr_matrix((liked.shape[0], 4))]).tocsr()
    found = make_ranker("ease", **options).fit(more, show_progress=False).weights_
    n = liked.shape[1]
    np.testing.assert_allclose(found[:n, :n], weights, atol=1e-6)
    assert not found[n:].any() and not found[:, n:].any()


def test_dropout_is_the_mean_over_all_ways_to_hide_likes():
    R = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1], [1, 0, 1]], dtype=float)
    p, ridge = 0.3, 0.8
    ways = [np.array(bits, float) for bits in itertools.product((0, 1), repeat=int(R.sum()))]
    A, Y = np.zeros((3, 3)), np.zeros((3, 3))
    for bits in ways:
        X = np.zeros_like(R)
        X[R > 0] = bits / (1 - p)  # the mean of what is left is R
        probability = np.prod(np.where(bits > 0, 1 - p, p))
        A += probability * X.T @ X
        Y += probability * X.T @ R
    expected = np.zeros((3, 3))
    for j in range(3):
        others = [i for i in range(3) if i != j]
        inner = A[np.ix_(others, others)] + ridge * np.eye(2)
        expected[others, j] = np.linalg.solve(inner, Y[others, j])
    ranker = make_ranker("ease", regularization=ridge, dropout=p)
    np.testing.assert_allclose(ranker.fit(R, show_progress=False).weights_, expected, atol=1e-6)


def test_a_large_inverse_is_taken_on_one_thread_and_is_the_same(liked, monkeypatch):
    seen = []
    factorised = ease.lapack.dpotrf

    def watched(*given, **known):
        seen.append(max(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"))
        return factorised(*given, **known)

    before = EASE().fit(liked, show_progress=False).weights_
    monkeypatch.setattr(ease.lapack, "dpotrf", watched)
    monkeypatch.setattr(threads, "DENSE_ROWS", (0, liked.shape[1] - 1))
    with threadpool_limits(2, "blas"):
        after = EASE().fit(liked, show_progress=False).weights_
    assert seen == [1]
    np.testing.assert_allclose(after, before, atol=1e-6)


def test_large_weights_are_noted_with_their_sizes(monkeypatch, tmp_path):
    note = EASE(memory="10GB").size_note(17_632)
    assert note.startswith(
        "a weight for every pair of 17,632 items: 1.2 GB in the file, 5.0 GB of memory"
    )
    assert EASE(memory="10GB", top_k=200).size_note(17_632) is None
    assert EASE(memory="4GB").size_note(17_632) is None  # a sparse inverse is taken
    assert EASE(memory="10GB").size_note(11_000) is None
    kept = EASE(memory="10GB", keep_inverse=True).size_note(11_000)
    assert kept.startswith(
        "a weight and an entry of the inverse for every pair of 11,000 items: 1.5 GB in the file, 1.9 GB"
    )
    assert EASE(memory="10GB", keep_inverse=True).size_note(6_000) is None
    monkeypatch.setattr(ease, "NOTED", 0)
    recommender = Recommender("ease").fit(load_dataset("sample"))
    assert recommender.notes[-1].startswith(
        "ease: a weight for every pair of 300 items: 360.0 KB in the file, 1.4 MB of memory"
    )
    recommender.save(tmp_path / "m.recsys")
    assert recommender.ranker.weights_.nbytes <= (tmp_path / "m.recsys").stat().st_size


def test_a_kept_inverse_is_counted_in_the_note(monkeypatch, tmp_path):
    monkeypatch.setattr(ease, "NOTED", 0)
    for keep_inverse in (False, True):
        model = Recommender(EASE(keep_inverse=keep_inverse)).fit(load_dataset("sample"))
        ranker = model.ranker
        arrays = [ranker.weights_] + ([ranker.inverse_] if keep_inverse else [])
        kept = sum(array.nbytes for array in arrays)
        assert f"{size_text(kept)} in the file" in model.notes[-1]
        model.save(tmp_path / "m.recsys")
        rest = 8 * ease.PROBES * 300 + 8 * 400 + 20 * ranker.popularity_.size + 50 * 10_746
        assert kept <= (tmp_path / "m.recsys").stat().st_size <= kept + rest
        assert ("keep_inverse=False keeps a third" in model.notes[-1]) == keep_inverse
