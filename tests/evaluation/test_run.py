import numpy as np
import pytest

from recsys import InputError, make_ranker
from recsys.data import split
from recsys.evaluation import compare, evaluate, holm
from recsys.evaluation import metrics as M


def models(*names):
    return [(name, {}, make_ranker(name)) for name in names]


def test_figures_are_means_over_folds_of_means_over_users(planted):
    report = evaluate(
        planted, models("popularity", "ease"), folds=3, metrics=["auc", "ndcg@5", "coverage@5"]
    )
    for result in report.results:
        folds = []
        for fold in split(planted, folds=3):
            model = make_ranker(result.model).fit(fold.train)
            scores = model.scores(fold.users, fold.train[fold.users])
            folds.append(np.nanmean(M.auc(scores, fold.train[fold.users], fold.test[fold.users])))
        assert result.metrics["auc"].folds == pytest.approx(folds)
        assert result.metrics["auc"].mean == pytest.approx(np.mean(folds))
        assert result.metrics["auc"].std == pytest.approx(np.std(folds, ddof=1))
        assert result.metrics["auc"].users + result.metrics["auc"].left_out == 60
        assert 0 < result.metrics["coverage@5"].mean <= 1


class Plain:
    """A model with implicit's `fit` and `recommend` and nothing else."""

    def fit(self, user_items, show_progress=True, callback=None):
        self.counts = np.asarray(user_items.sum(axis=0)).ravel()

    def recommend(self, userid, user_items, N=10, filter_already_liked_items=True):
        order = np.argsort(-self.counts, kind="stable")[:N]
        return np.tile(order, (len(userid), 1)), np.tile(self.counts[order], (len(userid), 1))


def test_any_object_with_fit_and_recommend_can_be_measured(planted):
    report = evaluate(planted, [*models("popularity"), ("plain", {}, Plain())])
    ours, theirs = report.results
    for name in ours.metrics:
        assert theirs.metrics[name].mean == pytest.approx(ours.metrics[name].mean)


def test_nothing_of_a_users_test_half_reaches_the_model(planted):
    seen = []

    class Spy(Plain):
        def fit(self, user_items, show_progress=True, callback=None):
            seen.append(user_items.copy())
            super().fit(user_items)

    evaluate(planted, [("spy", {}, Spy())], folds=3)
    for fold, train in zip(split(planted, folds=3), seen[1:], strict=True):  # the first call compiles
        assert (train != fold.train).nnz == 0
        assert train.multiply(fold.test).nnz == 0


@pytest.mark.parametrize(
    "names, metrics, text",
    [
        ([], ["auc"], "at least one model"),
        (["ease"], [], "at least one metric"),
        (["ease", "ease"], ["auc"], "asked for twice"),
        (["ease"], ["ndcg", "ndcg@10"], "asked for twice"),
    ],
)
def test_refusals(planted, names, metrics, text):
    with pytest.raises(InputError, match=text):
        evaluate(planted, models(*names), metrics=metrics)


def test_comparisons_against_a_plain_bootstrap_and_scipy():
    from scipy import stats

    rng = np.random.default_rng(0)
    first, second = rng.random(200), rng.random(200) - 0.05
    first[3] = np.nan
    found = compare(first, second, seed=1)
    delta = np.delete(first - second, 3)
    assert found.users == 199 and found.difference == pytest.approx(delta.mean())
    assert found.p_value == pytest.approx(stats.wilcoxon(delta, method="approx").pvalue)
    means = [rng.choice(delta, len(delta)).mean() for _ in range(4000)]
    spread = delta.std() / np.sqrt(len(delta))
    np.testing.assert_allclose(
        [found.low, found.high], np.quantile(means, [0.025, 0.975]), atol=0.25 * spread
    )
    same = compare(second, second)
    assert same.p_value == 1 and same.low == same.high == 0
    assert compare(np.full(3, np.nan), np.ones(3)) is None
    with pytest.raises(InputError, match="different numbers of users"):
        compare(np.ones(2), np.ones(3))


def test_holm():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06])
    assert holm([]) == [] and holm([0.9, 0.8]) == [1.0, 1.0]
