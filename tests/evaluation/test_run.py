import os
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from recsys import InputError, Interactions, load_dataset, make_ranker
from recsys.data import split
from recsys.errors import RecsysError
from recsys.evaluation import EvaluationInterrupted, compare, evaluate, holm, measuring
from recsys.evaluation import metrics as M
from recsys.evaluation.significance import Comparison, verdict
from recsys.utils.progress import report as report_step


def models(*names):
    return [(name, make_ranker(name)) for name in names]


def test_figures_are_means_over_folds_of_means_over_users(planted):
    report = evaluate(
        planted, models("popularity", "ease"), folds=3, metrics=["auc", "ndcg@5", "coverage@5"]
    )
    assert {row["metric"] for row in report.comparisons} == {"auc", "ndcg@5"}
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
    report = evaluate(planted, [*models("popularity"), ("plain", Plain())])
    ours, theirs = report.results
    for name in ours.metrics:
        assert theirs.metrics[name].mean == pytest.approx(ours.metrics[name].mean)


def test_nothing_of_a_users_test_half_reaches_the_model(planted):
    seen = []

    class Spy(Plain):
        def fit(self, user_items, show_progress=True, callback=None):
            seen.append(user_items.copy())
            super().fit(user_items)

    evaluate(planted, [("spy", Spy())], folds=3)
    for fold, train in zip(split(planted, folds=3), seen, strict=True):
        assert (train != fold.train).nnz == 0
        assert train.multiply(fold.test).nnz == 0


@pytest.mark.parametrize(
    "names, metrics, text",
    [
        ([], ["auc"], "at least one model"),
        (["ease"], [], "at least one metric"),
        (["ease", "ease"], ["auc"], "two models have the label 'ease'"),
        (["ease"], ["ndcg", "ndcg@10"], "metric 'ndcg@10' is repeated"),
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


def compared(difference, low, high, p=0.04):
    one = Comparison(difference, low, high, p, 400, p)
    return {
        "metric": "auc",
        "first": "a",
        "second": "b",
        "difference": difference,
        "low": low,
        "high": high,
        "p_value": p,
        "p_holm": p,
        "users": 400,
        "differs_clearly": one.differs_clearly,
    }


@pytest.mark.parametrize(
    ("difference", "low", "high", "told"),
    [
        (
            0.02,
            0.01,
            0.03,
            "auc: a is better than b by 0.0200 over users, 95% interval [0.0100, 0.0300]",
        ),
        (
            -0.02,
            -0.03,
            -0.01,
            "auc: b is better than a by 0.0200 over users, 95% interval [0.0100, 0.0300]",
        ),
        (
            0.0109,
            -0.0022,
            0.0245,
            "auc: a and b do not differ clearly: a has 0.0109 more over users, 95% interval [-0.0022, 0.0245]",
        ),
        (-0.01, -0.02, 0.0, "auc: b and a do not differ clearly: b has 0.0100 more"),
        (0.0, 0.0, 0.0, "auc: a and b do not differ clearly: a has 0.0000 more"),
        (
            0.0006,
            0.00003,
            0.0011,
            "auc: a is better than b by 0.0006 over users, 95% interval [3.0e-05, 0.0011]",
        ),
    ],
)
def test_one_is_better_only_where_the_interval_excludes_zero(difference, low, high, told):
    assert verdict(compared(difference, low, high)).startswith(told)


@pytest.mark.parametrize("p", [0.05, 0.11, 1.0])
def test_one_is_better_only_where_the_test_says_so_after_holms_correction(p):
    """Readers took a sentence for wrong that called a model better with p = 0.11."""
    told = verdict(compared(0.02, 0.01, 0.03, p))
    assert told.startswith("auc: a and b do not differ clearly: a has 0.0200 more over users")
    assert told.endswith(f"Wilcoxon p = {p:.2g} (Holm), users: 400")


def test_each_comparison_of_a_report_is_told_apart_by_its_interval_and_its_p():
    data = load_dataset("sample")
    report = evaluate(data, ["popularity", "ease", "cf-komd:kernel=mc,degree=2"], folds=2)
    assert {c["differs_clearly"] for c in report.comparisons} == {True, False}
    for c in report.comparisons:
        outside = c["low"] > 0 or c["high"] < 0
        assert c["differs_clearly"] == (outside and c["p_holm"] < 0.05)


@pytest.mark.parametrize(
    ("better", "difference", "told"),
    [
        (
            "less",
            0.02,
            "auc: b is better than a by 0.0200 less over users, 95% interval [0.0100, 0.0300]",
        ),
        (
            "less",
            -0.02,
            "auc: a is better than b by 0.0200 less over users, 95% interval [0.0100, 0.0300]",
        ),
        ("", 0.02, "auc: a has 0.0200 more than b over users, 95% interval [0.0100, 0.0300]"),
        ("", -0.02, "auc: b has 0.0200 more than a over users, 95% interval [0.0100, 0.0300]"),
    ],
)
def test_less_may_be_better_or_neither(better, difference, told):
    low, high = sorted((0.5 * difference, 1.5 * difference))
    assert verdict(compared(difference, low, high) | {"better": better}).startswith(told)
    same = verdict(compared(difference, -0.03, 0.03) | {"better": "less"})
    first, second = ("b", "a") if difference > 0 else ("a", "b")
    assert f"{first} and {second} do not differ clearly: {first} has 0.0200 less over users" in same


def test_the_best_figure_is_the_least_where_less_is_better(planted):
    names = ["auc", "gini@5", "arp@5"]
    report = evaluate(planted, models("popularity", "ease"), metrics=names, folds=2)
    best, means = report.best(), {n: [r.metrics[n].mean for r in report.results] for n in names}
    assert best == {"auc": max(means["auc"]), "gini@5": min(means["gini@5"])}


def test_equal_models_are_not_told_apart(planted):
    report = evaluate(
        planted,
        models("ease", "popularity") + [("twin", make_ranker("ease"))],
        metrics=["auc", "ndcg@10"],
        folds=3,
        seed=4,
    )
    lines = report.verdicts()
    assert len(lines) == 2 and all("do not differ clearly" in line for line in lines)
    said = [line for line in report.sentences() if " is better than " in line]
    assert said == [report.decision()] and "does not differ clearly from" in said[0]
    assert {
        c["differs_clearly"] for c in report.comparisons if "popularity" in (c["first"], c["second"])
    } == {True}


@pytest.mark.thorough
def test_compiling_is_not_fitting(planted):
    from recsys._jit import jit

    kernel = jit(cache=False)(lambda x: np.sort(x).cumsum().sum() + x.sum())

    class Compiles:
        def fit(self, user_items, show_progress=True, callback=None):
            kernel(np.ones(3))
            self.m = user_items.shape[1]

        def scores(self, users, rows):
            return np.tile(np.arange(self.m, dtype=np.float32), (len(users), 1))

    fold = next(split(planted, "half-profile", folds=2))
    started = time.perf_counter()
    result = measuring.measure(Compiles(), fold, [M.parse_metric("auc")])
    took = time.perf_counter() - started
    assert result.compile_seconds > 0.02 and 0 <= result.fit_seconds < 0.5 * result.compile_seconds
    assert result.fit_seconds + result.compile_seconds <= took


def test_a_new_metric_is_one_call(planted, monkeypatch):
    from recsys.evaluation.metrics.base import METRICS, list_metric
    from recsys.evaluation.metrics.expectation import HITS
    from recsys.evaluation.metrics.ranking import ranking_metric

    monkeypatch.setattr(METRICS, "_entries", dict(METRICS._entries))

    ranking_metric("f1", "harmonic", HITS, lambda total, k, positives: 2 * total / (k + positives))

    @list_metric("first", "share of lists that begin with item 0", per_user=False)
    def first(ids, context):
        assert context.users is not None and context.test is not None
        return float((ids[:, 0] == 0).mean())

    names = ["precision@5", "recall@5", "f1@5", "first@1"]
    report = evaluate(planted, models("popularity", "ease"), metrics=names, folds=2)
    p, r, f = (report.values["popularity", name].to_numpy() for name in names[:3])
    known = np.isfinite(p)
    # precision is hits / 5 and recall is hits / positives
    hits, positives = 5 * p[known], np.where(r[known] > 0, 5 * p[known] / np.maximum(r[known], 1e-9), 1)
    np.testing.assert_allclose(f[known], 2 * hits / (5 + positives), atol=1e-12)
    assert 0 <= report.results[0].metrics["first@1"].mean <= 1
    assert {row["metric"] for row in report.comparisons} == set(names[:3])


def test_an_evaluation_can_be_ended_between_blocks_of_users(planted, monkeypatch):
    class Ended(BaseException):
        pass

    told = []

    def progress(text, done, total):
        told.append((text, done))
        if sum(text == "plain, fold 1, measuring" for text, _ in told) == 3:
            raise Ended

    monkeypatch.setattr(measuring, "BLOCK_BYTES", 4 * planted.n_items * 5)  # five users a block
    with pytest.raises(Ended):
        evaluate(planted, [("plain", Plain())], folds=2, metrics=["auc"], progress=progress)
    assert told[-1][0] == "plain, fold 1, measuring"
    assert not any("fold 2" in text for text, _ in told)


def test_a_test_half_that_is_not_used_is_told():
    rows = pd.DataFrame({"user": list("aaabbbcccddd") * 3, "item": [f"i{k % 17}" for k in range(36)]})
    data = Interactions.from_frame(rows[:30], user="user", item="item").with_test(rows[30:])
    report = evaluate(data, ["popularity", "ease"], metrics="ndcg@10")
    assert report.protocol == "published" and 0 < len(report.rows) < data.n_users
    anew = evaluate(data, ["popularity", "ease"], protocol="holdout", metrics="ndcg@10")
    assert "The test half that the data come with is not used." in anew.notes


# ---- processes, budgets, interrupts


@pytest.mark.slow
def test_processes_measure_what_one_does(planted):
    asked = {"metrics": ["auc", "ndcg@10", "coverage@5"], "folds": 3, "seed": 2}
    names = ["popularity", "ease", "als", "msdw:recency=1"]
    data = replace(planted, time=np.random.default_rng(0).random(len(planted.users)) + 1)
    for protocol in ("half-profile", "half-profile-time"):
        told, heard = [], []
        one = evaluate(data, names, protocol=protocol, n_jobs=1, **asked)
        two = evaluate(
            data,
            names,
            protocol=protocol,
            n_jobs=2,
            on_result=told.append,
            progress=lambda *step, heard=heard: heard.append(step),
            **asked,
        )
        np.testing.assert_allclose(two.values.to_numpy(), one.values.to_numpy(), rtol=1e-6)
        assert sorted(result.model for result in told) == sorted(names)
        shares = [done / total for _, done, total in heard]
        assert shares == sorted(shares) and shares[-1] == 1 and len(heard) == 13


@pytest.mark.slow
def test_a_cluster_of_dask_measures_what_one_process_does(planted):
    distributed = pytest.importorskip("distributed")
    import joblib

    asked = {"models": ["popularity", "ease"], "folds": 2, "metrics": ["auc", "coverage@5"]}
    one = evaluate(planted, n_jobs=1, **asked)
    with (
        distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None),
        joblib.parallel_config(backend="dask"),
    ):
        two = evaluate(planted, n_jobs=2, **asked)
    np.testing.assert_allclose(two.values.to_numpy(), one.values.to_numpy(), rtol=1e-6)


class Dies(Plain):
    """A model that ends its process."""

    def fit(self, user_items, show_progress=True, callback=None):
        os._exit(3)


@pytest.mark.slow
def test_a_process_that_dies_is_an_error_and_no_wait(planted):
    with pytest.raises(RecsysError, match="a worker process died"):
        evaluate(planted, [*models("popularity"), ("dies", Dies())], folds=2, n_jobs=2)


class Slow(Plain):
    def fit(self, user_items, show_progress=True, callback=None):
        for step in range(50):
            report_step("step", step, 50)
            time.sleep(0.1)
        super().fit(user_items)


def test_a_budget_ends_what_takes_too_long(planted):
    named = [*models("popularity", "ease"), ("slow", Slow())]
    heard = []
    report = evaluate(
        planted,
        named,
        folds=3,
        budget=3.0,
        metrics="auc",
        n_jobs=1,
        progress=lambda *step: heard.append(step[0]),
    )
    assert "slow, fold 1, step" in heard
    assert [r.model for r in report.results] == ["popularity", "ease"] and report.folds >= 1
    assert any(note.startswith("out of time: not measured: slow") for note in report.notes)
    with pytest.raises(InputError, match="no model was measured within 0.5 seconds"):
        evaluate(planted, {"slow": Slow()}, folds=2, budget=0.5, metrics="auc", n_jobs=1)


@pytest.mark.parametrize("stop", ["ease, fold 1", "ease, fold 3", "popularity, fold 2"])
def test_ctrl_c_keeps_what_is_measured(planted, stop):
    def progress(text, done, total):
        if text.startswith(stop):
            raise KeyboardInterrupt

    with pytest.raises(EvaluationInterrupted) as caught:
        evaluate(planted, models("popularity", "ease"), folds=3, progress=progress, n_jobs=1)
    report = caught.value.report
    whole = evaluate(planted, models("popularity"), folds=3, n_jobs=1)
    if stop.startswith("ease"):
        assert str(caught.value) == "interrupted: not measured: ease" and report.folds == 3
        assert report.results[0].metrics == whole.results[0].metrics
    else:
        assert str(caught.value) == "interrupted: not measured: ease; folds: 1 of 3"
        assert report.results[0].metrics["auc"].folds == whole.results[0].metrics["auc"].folds[:1]
