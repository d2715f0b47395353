"""Differences user by user against loops over users and folds."""

import numpy as np
import pytest
from scipy.stats import wilcoxon

from recsys import EASE, InputError, Popularity
from recsys.datasets import load_dataset
from recsys.evaluation import compare, compare_all, evaluate
from recsys.evaluation.differences import user_differences


@pytest.fixture(scope="module")
def report():
    return evaluate(
        load_dataset("sample"), {"popularity": Popularity(), "ease": EASE()}, protocol="holdout", folds=3, metrics=["ndcg@10", "calibration:genres@10", "coverage@10"],
    )  # fmt: skip


@pytest.mark.parametrize("metric", ["ndcg@10", "calibration:genres@10"])
def test_a_user_counts_once_with_the_mean_of_the_folds(report, metric):
    found = user_differences(report, metric, "popularity", "ease")
    a, b = (report.result(m).per_user[metric] for m in ("popularity", "ease"))
    mine = {}
    for user, x, y in zip(report.evaluated.users, a, b, strict=True):
        if np.isfinite(x) and np.isfinite(y):
            mine.setdefault(int(user), []).append((x, y))
    assert found.users.tolist() == sorted(mine)
    for user, x, y in zip(found.users, found.first_values, found.second_values, strict=True):
        assert (x, y) == pytest.approx(np.mean(mine[int(user)], axis=0))
    mean = {user: sum(x - y for x, y in v) / len(v) for user, v in mine.items()}
    first, second = sum(d > 1e-12 for d in mean.values()), sum(d < -1e-12 for d in mean.values())
    counts = found.counts() if metric == "ndcg@10" else found.counts()[::-1]  # less is better
    assert counts == (first, len(mine) - first - second, second) and first and second


def test_the_mean_difference_is_that_of_the_comparison():
    models = {"popularity": Popularity(), "ease": EASE()}
    one = evaluate(load_dataset("sample"), models, folds=2, metrics=["auc"])
    found = user_differences(one, "auc", "popularity", "ease")
    assert found.values.mean() == pytest.approx(one.comparisons[0]["difference"])
    assert len(found.users) == one.comparisons[0]["users"]


@pytest.mark.parametrize("metric", ["coverage@10", "auc"])
def test_a_metric_without_values_of_users_is_refused(report, metric):
    with pytest.raises(InputError, match="has no value for each user in this report"):
        user_differences(report, metric, "popularity", "ease")


@pytest.mark.parametrize("seed", range(4))
def test_a_user_of_several_folds_is_one_observation(seed):
    """Repeats of a user are no more users: the comparison is that of the users' means, one by one."""
    rng = np.random.default_rng(seed)
    users = rng.integers(0, 25, 150)
    values = [rng.random(150), rng.random(150)]
    values[0][rng.random(150) < 0.1] = np.nan
    known = np.isfinite(values[0])
    distinct = sorted(set(users[known].tolist()))
    means = [np.array([one[known & (users == u)].mean() for u in distinct]) for one in values]
    ((_, _, found),) = compare_all(values, seed, users)
    wanted = compare(*means, seed)
    assert found.users == len(distinct) and found.difference == pytest.approx(wanted.difference)
    assert (found.low, found.high, found.p_value) == pytest.approx(
        (wanted.low, wanted.high, wanted.p_value)
    )


def test_repetitions_do_not_make_a_difference_clearer():
    """Twenty times the same users: as many users as there are, not twenty times as many."""
    data = load_dataset("sample")
    report = evaluate(
        data, ["ease", "popularity"], protocol="holdout", folds=5, metrics=["auc"], only_folds=3
    )
    row = report.comparisons[0]
    apart = user_differences(report, "auc", "ease", "popularity")
    assert row["users"] == len(apart.users) <= data.n_users
    assert row["difference"] == pytest.approx(apart.values.mean())
    assert row["p_value"] == pytest.approx(wilcoxon(apart.values, method="approx").pvalue)
