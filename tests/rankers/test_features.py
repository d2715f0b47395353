"""The feature rankers, the learned kernel and the blends against their definitions."""

import numpy as np
import pytest
import scipy.sparse as sp

from recsys import FM, InputError, load_ranker, make_ranker
from recsys.rankers.auto import criterion
from recsys.rankers.histories import sample_pairs, split_profiles
from tests.reference.fm import anova
from tests.reference.links import pair_kernel


def unit(row):
    return row / max(np.linalg.norm(row), 1e-300)


def by_definition(ranker, R):
    """Scores from the terms, by enumeration, with the item side read back from its vectors."""
    out = []
    for row in R:
        a, at, total = unit(row), 0, np.zeros(R.shape[1])
        for k, (m, whole) in enumerate(zip(ranker.degrees_, ranker.whole_, strict=True)):
            left = ranker.lefts_[k]
            for s in range(left.shape[1]):
                for t in range(0 if whole else 1, m + 1 if whole else m):
                    total = total + anova(left[:, s], a, t) * ranker.item_factors_[:, at]
                    at += 1
        out.append(total)
    return np.array(out)


@pytest.mark.parametrize("name", ["fm", "hofm", "bilinear", "pairnet"])
def test_scores_are_sums_of_products_of_anova_kernels(name, liked):
    R = liked[:, :9]
    R = sp.csr_matrix(R[np.diff(R.indptr) > 0])
    ranker = make_ranker(name, factors=2, iterations=3).fit(R, show_progress=False)
    np.testing.assert_allclose(
        ranker.scores(np.arange(R.shape[0]), R),
        by_definition(ranker, (R.toarray() > 0) * 1.0),
        atol=1e-5,
    )


@pytest.mark.parametrize("name", ["fm", "pairnet"])
def test_the_item_side_is_the_model_fitted_to_the_pairs(name, liked):
    from recsys.links import PairFactorizationMachine, PairNet

    R = sp.csr_matrix(liked[:, :8])
    ranker = make_ranker(name, factors=2, iterations=4, regularization=1e-3)
    ranker.fit(R, show_progress=False)
    rng = np.random.default_rng(0)
    half, other = split_profiles(sp.csr_matrix((R > 0).astype(np.float32)), rng)
    users, items, labels = sample_pairs(other, half, 3, rng)
    A = np.array([unit(row) for row in half.toarray()])
    kind = PairFactorizationMachine if name == "fm" else PairNet
    degree = 2 if name == "fm" else 3
    model = kind(degree=degree, n_components=2, beta=1e-3, max_iter=4, tol=1e-4).fit(
        A, np.eye(8), np.column_stack([users, items]), labels
    )
    user = int(np.argmax(np.diff(R.indptr)))
    row = R[[user]]
    a = unit((row.toarray()[0] > 0) * 1.0)
    for i in range(8):
        expected = sum(
            t.weights[s]
            * pair_kernel(t.left[:, s], t.right[:, s], a, np.eye(8)[i], t.degree, name == "fm")
            for t in model.terms_
            for s in range(t.left.shape[1])
        )
        assert ranker.scores(user, row)[0, i] == pytest.approx(expected, abs=1e-5)


def test_all_subsets_scores_are_products_over_history_and_item(liked):
    ranker = make_ranker("all-subsets", factors=3, iterations=2).fit(liked, show_progress=False)
    row = (liked[[3]].toarray()[0] > 0) * 1.0
    rows = np.prod(1 + ranker.left_ * unit(row)[:, None], axis=0)
    np.testing.assert_allclose(
        ranker.scores(3, liked[3])[0], ranker.item_factors_ @ rows, rtol=1e-5, atol=1e-6
    )
    for loss in ("bpr", "auc"):
        other = make_ranker("all-subsets", factors=3, iterations=2, loss=loss).fit(liked)
        assert np.isfinite(other.scores(3, liked[3])).all()


def test_random_features_are_a_ridge_regression(liked):
    ranker = make_ranker("random-features", n_components=8, regularization=2.0).fit(liked)
    half, other = split_profiles(sp.csr_matrix((liked > 0).astype(np.float32)), np.random.default_rng(0))
    W = ranker.projections_

    def features(rows):
        A = np.array([unit(row) for row in rows.toarray()])
        z = [
            [
                sum(
                    W[i, s] * W[j, s] * a[i] * a[j]
                    for i in np.flatnonzero(a)
                    for j in np.flatnonzero(a)
                    if i < j
                )
                for s in range(8)
            ]
            for a in A
        ]
        return np.hstack([np.array(z) / np.sqrt(8), A @ W / np.sqrt(8), np.ones((len(A), 1))])

    Z = features(half)
    expected = np.linalg.solve(Z.T @ Z + 2.0 * np.eye(17), Z.T @ other.toarray())
    np.testing.assert_allclose(ranker.item_factors_, expected.T, atol=1e-5)
    row = sp.csr_matrix((liked[[3]] > 0).astype(float))
    np.testing.assert_allclose(ranker.scores(3, liked[3])[0], (features(row) @ expected)[0], atol=1e-5)


def test_items_nobody_has_are_ranked_by_their_features():
    rng = np.random.default_rng(0)
    genre = np.repeat([0, 1], 20)
    taste = rng.integers(0, 2, 200)
    R = (rng.random((200, 40)) < np.where(taste[:, None] == genre[None], 0.35, 0.03)) * 1.0
    R[:, [0, 20]] = 0
    F = np.column_stack([genre == 0, genre == 1]).astype(float)
    R = sp.csr_matrix(R)
    for name in ("fm", "hofm", "bilinear", "pairnet", "pair-svm"):
        given = {} if name == "pair-svm" else {"factors": 4}
        ranker = make_ranker(name, **given).fit(R, show_progress=False, item_features=F)
        scores = ranker.scores(np.arange(200), R)
        assert ((scores[:, 0] > scores[:, 20]) == (taste == 0)).mean() > 0.9
    assert "cold-items" in ranker.capabilities
    with pytest.raises(InputError, match="item_features have 2 rows for 40 items"):
        make_ranker("fm").fit(R, item_features=F[:2])
    with pytest.raises(InputError, match="NaN"):
        make_ranker("ease").fit(R, item_features=F * np.nan)  # who does not use them checks them, too


def test_features_survive_a_file(tmp_path, liked):
    F = np.random.default_rng(0).random((40, 3))
    ranker = make_ranker("hofm", factors=2, iterations=2).fit(liked, item_features=F)
    ranker.save(tmp_path / "x")
    again = load_ranker(tmp_path / "x")
    np.testing.assert_array_equal(again.scores(3, liked[3]), ranker.scores(3, liked[3]))


def test_half_profiles_predict_each_other(liked):
    half, other = split_profiles(liked, np.random.default_rng(0))
    whole = liked[np.diff(liked.indptr) >= 2]
    np.testing.assert_array_equal((half + other).toarray(), sp.vstack([whole, whole]).toarray())
    assert half.multiply(other).nnz == 0
    users, items, labels = sample_pairs(other, half, 2, np.random.default_rng(1))
    dense = (half + other).toarray()
    assert all(dense[u, i] == 0 for u, i, y in zip(users, items, labels, strict=True) if y == 0)
    assert labels.sum() == other.nnz


def test_a_blend_is_the_sum_of_standardised_scores(liked):
    ranker = make_ranker("blend", models="ease+popularity", weights="2+0.5").fit(liked)
    users = np.flatnonzero(np.diff(liked.indptr))
    total = 0.0
    for name, weight in (("ease", 2.0), ("popularity", 0.5)):
        s = make_ranker(name).fit(liked).scores(users, liked[users]).astype(float)
        total = total + weight * (s - s.mean(axis=1, keepdims=True)) / s.std(axis=1, keepdims=True)
    np.testing.assert_allclose(ranker.scores(users, liked[users]), total, atol=1e-5)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"models": "ease+"}, "unknown ranker"),
        ({"models": ""}, "models must name"),
        ({"models": "auto+ease"}, "auto cannot be part"),
        ({"models": "ease", "weights": "1+2"}, "weights must be 1"),
        ({"weights": "a+b+c"}, "numbers joined"),
        ({"models": "bpr+ease"}, "cannot rank users"),
    ],
)
def test_bad_blends_are_refused(params, message):
    with pytest.raises(InputError, match=message):
        make_ranker("blend", **params)


@pytest.mark.thorough
def test_auto_chooses_on_hidden_halves_only(liked):
    ranker = make_ranker("auto", validation_fraction=0.5).fit(liked)
    assert ranker.part_weights_.sum() == pytest.approx(1)
    figures = ranker.validation_
    alone = [float(criterion(np.array(one))) for one in figures.values()]
    assert max(alone) == alone[-1]  # the blend is not worse than its parts
    tiny = make_ranker("auto").fit(sp.csr_matrix(np.eye(4)))
    assert tiny.part_names_ == ["cf-komd"]


@pytest.fixture(scope="module")
def tastes():
    """200 users of two tastes, which their features tell; the last ten have no likes."""
    rng = np.random.default_rng(3)
    taste = rng.integers(0, 2, 200)
    side = np.repeat([0, 1], 15)
    R = (rng.random((200, 30)) < np.where(taste[:, None] == side[None], 0.4, 0.04)) * 1.0
    R[190:] = 0
    F = np.column_stack([taste == 0, taste == 1]).astype(float)
    return sp.csr_matrix(R), F, taste, side


FEATURED = ["fm", "hofm", "bilinear", "pairnet", "pair-svm", "all-subsets", "random-features"]


@pytest.mark.parametrize("name", FEATURED)
def test_users_without_likes_are_ranked_by_their_features(name, tastes, tmp_path):
    R, F, taste, side = tastes
    ranker = make_ranker(name).fit(R, show_progress=False, user_features=F)
    users = np.arange(190, 200)
    ids, _ = found = ranker.recommend(users, R[users], N=5)
    assert not found.fallback.any()
    assert (side[ids] == taste[users][:, None]).mean() > 0.9
    assert "cold-users" in ranker.capabilities
    ranker.save(tmp_path / "x")
    again = load_ranker(tmp_path / "x")
    np.testing.assert_array_equal(again.scores(users, R[users]), ranker.scores(users, R[users]))
    # a row that is folded in has no features: with nothing liked it gets what is popular
    assert ranker.recommend(0, R[199], recalculate_user=True).fallback
    if "explain" in ranker.capabilities:
        for user in (5, 199):
            item = int(ranker.recommend(user, R[user], N=1).ids[0])
            why = ranker.explain(user, R[user], item, N=30)
            total = why.bias + sum(share for _, share in why.contributions)
            assert total == pytest.approx(why.score, rel=1e-5, abs=1e-5)
            assert why.score == pytest.approx(float(ranker.scores(user, R[user])[0, item]), rel=1e-5)


def test_wrong_user_features_are_refused(tastes):
    R, F, _, _ = tastes
    with pytest.raises(InputError, match="user_features have 7 rows for 200 users"):
        make_ranker("fm").fit(R, user_features=F[:7])
    with pytest.raises(InputError, match="user_features contain NaN or infinity"):
        make_ranker("fm").fit(R, user_features=F + np.inf)


def test_features_with_duplicate_entries_are_summed_in_a_copy():
    double = sp.csr_matrix((np.ones(4), [0, 0, 1, 1], [0, 2, 4]), (2, 2))
    kept = FM(factors=1, iterations=1).fit([[1, 1], [1, 0]], False, item_features=double).item_features_
    assert double.nnz == 4 and kept.nnz == 2 and kept.toarray().tolist() == [[2, 0], [0, 2]]


def test_a_refit_without_features_forgets_them(tastes):
    R, F, _, _ = tastes
    ranker = make_ranker("fm", factors=2, iterations=2).fit(R, False, user_features=F)
    plain = make_ranker("fm", factors=2, iterations=2).fit(R, False)
    ranker.fit(R, False)
    assert ranker.user_features_ is None
    np.testing.assert_array_equal(ranker.scores(5, R[5]), plain.scores(5, R[5]))
