"""Differences user by user against loops over users and folds."""

import numpy as np
import pytest

from recsys import EASE, InputError, Popularity
from recsys.datasets import load_dataset
from recsys.evaluation import evaluate
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
