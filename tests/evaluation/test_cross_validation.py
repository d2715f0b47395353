"""Rankers under scikit-learn's cross-validation."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from recsys import CapabilityError, InputError, list_rankers, make_ranker
from recsys.data import split
from recsys.evaluation import RankingScorer, UserSplit
from recsys.evaluation import metrics as M
from recsys.utils.sparse import masked, random_halves
from tests.contract.test_rankers import FAST

QUIET = {"show_progress": False}


@pytest.mark.parametrize(("folds", "seed"), [(2, 0), (5, 3)])
def test_groups_are_those_of_the_protocol(planted, folds, seed):
    found = list(UserSplit(folds, seed).split(planted.matrix))
    assert UserSplit(folds).get_n_splits() == folds == len(found)
    for (train, test), fold in zip(found, split(planted, folds=folds, seed=seed), strict=True):
        assert set(fold.users) <= set(test) and not set(train) & set(test)
        assert len(train) + len(test) == planted.n_users
        assert (np.diff(fold.test.indptr)[train] == 0).all()


def test_a_score_is_the_mean_over_users_of_what_is_hidden(planted):
    R = planted.matrix
    model = make_ranker("ease").fit(R[:40], **QUIET)
    rest = sp.vstack(
        [R[40:], sp.csr_matrix((1, R.shape[1])), sp.csr_matrix(np.eye(1, R.shape[1]))]
    ).tocsr()
    keep = random_halves(rest, np.random.default_rng(3))
    seen, hidden = masked(rest, keep), masked(rest, ~keep)
    assert (np.diff(seen.indptr) == (np.diff(rest.indptr) + 1) // 2).all()
    scores = np.vstack([model.scores(0, seen[u], recalculate_user=True) for u in range(rest.shape[0])])
    wanted = np.nanmean(M.recall(scores, seen, hidden, 5))
    assert RankingScorer("recall@5", seed=3)(model, rest) == pytest.approx(wanted)
    assert np.isnan(RankingScorer()(model, sp.csr_matrix(np.eye(3, R.shape[1]))))


@pytest.mark.thorough
@pytest.mark.parametrize("name", list_rankers())
def test_every_ranker_that_folds_in_can_be_cross_validated(planted, name):
    model = make_ranker(name, **FAST.get(name, {}))
    options = {
        "scoring": RankingScorer("auc"),
        "cv": UserSplit(2),
        "params": QUIET,
        "error_score": "raise",
    }
    if "fold-in" not in model.capabilities:
        with pytest.raises(CapabilityError, match="cannot rank users it was not fitted on"):
            cross_val_score(model, planted.matrix, **options)
        return
    found = cross_val_score(model, planted.matrix, **options)
    assert found.shape == (2,) and (found > 0.4).all()
    assert clone(model).get_params() == model.get_params()


def test_a_grid_is_searched_and_the_best_is_fitted_on_everything(planted):
    R = planted.matrix
    grid = {"regularization": [1e-3, 30.0]}
    search = GridSearchCV(make_ranker("ease"), grid, scoring=RankingScorer("auc"), cv=UserSplit(3))
    search.fit(R, **QUIET)
    for params, mean in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        plain = []
        for train, test in UserSplit(3).split(R):
            model = make_ranker("ease", **params).fit(R[train], **QUIET)
            plain.append(RankingScorer("auc")(model, R[test]))
        assert mean == pytest.approx(np.mean(plain))
    best = max(search.cv_results_["mean_test_score"])
    assert search.best_score_ == best and search.best_estimator_.n_users_ == planted.n_users
    two = GridSearchCV(
        make_ranker("cf-komd"),
        {"kernel": ["md", "mc"], "degree": [1, 2]},
        scoring={"auc": RankingScorer("auc"), "hit": RankingScorer("hit@5")},
        refit="hit",
        cv=KFold(2, shuffle=True, random_state=0),
    ).fit(R, **QUIET)
    assert len(two.cv_results_["mean_test_auc"]) == 4


@pytest.mark.parametrize("search", ["grid", "scores"])
def test_what_cannot_rank_the_users_of_a_fold_is_refused_before_it_is_fitted(
    planted, search, monkeypatch
):
    """By default scikit-learn makes NaN of an error of the scorer, after every fit."""
    model = make_ranker("bpr")
    monkeypatch.setattr(type(model), "fit", lambda *_, **__: pytest.fail("it was fitted"))
    options = {"scoring": RankingScorer("auc"), "cv": UserSplit(2)}
    with pytest.raises(CapabilityError, match="bpr cannot rank users it was not fitted on.*recsys.tun"):
        if search == "grid":
            GridSearchCV(model, {"factors": [2, 3]}, **options).fit(planted.matrix)
        else:
            cross_val_score(model, planted.matrix, **options)
    assert clone(model).get_params() == model.get_params() and "BPR" in repr(
        GridSearchCV(model, {"factors": [2]})
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ease", "user-knn"])
def test_workers_of_joblib_make_the_same_lists(planted, name):
    from joblib import Parallel, delayed

    R = planted.matrix
    model = make_ranker(name).fit(R, **QUIET)
    made = Parallel(n_jobs=2, backend="loky")(
        delayed(model.recommend)(user, R[user], N=5) for user in range(6)
    )
    for user, found in enumerate(made):
        np.testing.assert_array_equal(found.ids, model.recommend(user, R[user], N=5).ids)


def test_workers_get_them_too(planted):
    for one in (UserSplit(4, 1), RankingScorer("map@3", 2)):
        assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: RankingScorer("coverage@5"), "needs the training data"),
        (lambda: RankingScorer("novelty"), "use recsys.evaluate"),
        (lambda: RankingScorer("ndgc"), "did you mean"),
        (lambda: next(UserSplit(1).split(np.ones((4, 2)))), "n_splits must be"),
        (
            lambda: next(UserSplit(5).split(np.ones((4, 2)))),
            "n_splits must be an integer from 2 to 4, not 5",
        ),
        (lambda: next(UserSplit(2, -1).split(np.ones((4, 2)))), "seed must be"),
    ],
)
def test_refusals(call, text):
    with pytest.raises(InputError, match=text):
        call()
