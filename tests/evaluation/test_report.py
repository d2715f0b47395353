"""Reports: frames, intervals, groups, plots, lists."""

import io
import itertools
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys import InputError, make_ranker
from recsys.evaluation import evaluate
from recsys.evaluation.significance import QUANTILES, decision, mean_intervals, resamples, verdict


@pytest.fixture(scope="module")
def people(planted):
    rng = np.random.default_rng(0)
    ages = rng.integers(15, 80, planted.n_users).astype(float)
    ages[:4] = np.nan
    table = pd.DataFrame(
        {
            "age": ages,
            "sex": rng.choice(["f", "m"], planted.n_users),
            "kids": rng.integers(0, 3, planted.n_users),
        },
        index=planted.user_ids,
    )
    return replace(planted, user_features=table)


@pytest.fixture(scope="module")
def report(people):
    return recsys.evaluate(
        people, ["ease", "popularity"], folds=3, metrics=["auc", "ndcg@5", "coverage@5"], seed=2
    )


def test_a_frame_has_a_row_a_model_and_metric(report):
    frame = report.frame()
    assert frame.shape == (6, 7) and list(frame["metric"].unique()) == list(report.definitions)
    for row in frame.to_dict("records"):
        figure = report.result(row["model"]).metrics[row["metric"]]
        assert (row["mean"], row["std"], row["users"]) == (figure.mean, figure.std, figure.users)
        if row["metric"] == "coverage@5":
            assert np.isnan(row["low"]) and np.isnan(row["high"])
        else:
            assert row["low"] < row["mean"] < row["high"]


def test_json_has_the_intervals_of_the_frame(report):
    told = report.as_dict()
    rows = report.frame().to_dict("records")
    for result in told["results"]:
        for name, figure in result["metrics"].items():
            (row,) = [r for r in rows if (r["model"], r["metric"]) == (result["model"], name)]
            for key in ("mean", "std", "low", "high", "users"):
                assert figure[key] == row[key] or (np.isnan(figure[key]) and np.isnan(row[key]))
    assert told["better"]["coverage@5"] == "more" and json.dumps(told)


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_a_frame_of_the_kind_asked_for(report, kind):
    pytest.importorskip(kind)
    found, wanted = report.frame(kind), report.frame()
    assert type(found).__module__.split(".")[0] in (kind, "pyarrow")
    found = pd.DataFrame(found.to_pydict() if kind == "pyarrow" else found.to_dict(as_series=False))
    pd.testing.assert_frame_equal(found, wanted, check_dtype=False)
    with pytest.raises(InputError, match="one of pandas, polars, pyarrow, not 'exel'"):
        report.frame("exel")


def test_intervals_against_a_plain_bootstrap():
    rng = np.random.default_rng(0)
    users, folds = np.arange(90), np.arange(90) % 3
    values = rng.random((90, 2)) + folds[:, None]
    values[::7, 0] = np.nan
    low, high = mean_intervals(values, users, folds, seed=1)
    drawn = []
    for _ in range(4000):
        rows = rng.choice(90, 90)
        parts = [np.nanmean(values[rows][folds[rows] == f], axis=0) for f in range(3)]
        drawn.append(np.mean(parts, axis=0))
    expected = np.quantile(drawn, [0.025, 0.975], axis=0)
    np.testing.assert_allclose([low, high], expected, atol=0.1 * (expected[1] - expected[0]).max())


def test_a_draw_without_users_of_a_fold_is_a_mean_over_the_other_folds():
    values, folds = np.array([0.2, 0.9, 0.5, 0.4]), np.array([0, 1, 1, 1])
    means = []
    for times in np.concatenate(list(resamples(4, 3))):
        drawn = [folds == fold for fold in (0, 1) if times[folds == fold].sum()]
        means.append(np.mean([np.average(values[rows], weights=times[rows]) for rows in drawn]))
    ends = mean_intervals(values[:, None], np.arange(4), folds, seed=3)
    np.testing.assert_allclose(np.ravel(ends), np.quantile(means, QUANTILES), rtol=1e-12)


def test_users_of_several_folds_are_drawn_as_one():
    rng = np.random.default_rng(0)
    once = rng.random((200, 1))
    alone = mean_intervals(once, np.arange(200), np.zeros(200, dtype=int))
    thrice = mean_intervals(
        np.tile(once, (3, 1)), np.tile(np.arange(200), 3), np.repeat(np.arange(3), 200)
    )
    np.testing.assert_allclose(thrice, alone)


def test_intervals_of_nothing_are_nan():
    for values in (np.zeros((0, 2)), np.full((4, 2), np.nan)):
        rows = np.arange(len(values))
        assert np.isnan(mean_intervals(values, rows, np.zeros(len(rows), dtype=int))).all()


@pytest.mark.parametrize("attribute", ["profile length", "popularity", "age", "sex", "kids"])
def test_groups_part_the_users_and_their_means_are_plain(report, attribute):
    groups = report.by(attribute)
    assert set(groups["metric"]) == {"auc", "ndcg@5"}
    one = groups[(groups["model"] == "ease") & (groups["metric"] == "auc")]
    assert one["users"].sum() == report.values["ease", "auc"].notna().sum()
    total = (one["mean"] * one["users"]).sum() / one["users"].sum()
    assert total == pytest.approx(report.values["ease", "auc"].mean())
    assert (one["low"] <= one["mean"]).all() and (one["mean"] <= one["high"]).all()


def test_what_users_are_grouped_by(report, people):
    ease = report.by("sex").query("model == 'ease' and metric == 'auc'").set_index("group")["mean"]
    plain = report.values["ease", "auc"].groupby(report.rows["sex"].to_numpy()).mean()
    np.testing.assert_allclose(ease[plain.index], plain)
    names = list(report.by("age")["group"].unique())
    assert names[-1] == "(unknown)" and len(names) == 5
    low, high = (int(end) for end in names[0].split("–"))
    ages = report.rows["age"]
    assert low == ages.min() and high == ages[ages <= np.nanquantile(ages, 0.25)].max()
    assert list(report.by("kids")["group"].unique()) == ["0", "1", "2"]
    for fold, train in enumerate(recsys.data.split(people, folds=3, seed=2), 1):
        rows = report.rows[report.rows["fold"] == fold]
        lengths = np.diff(train.train.indptr)[rows.index]
        np.testing.assert_array_equal(rows["profile length"], lengths)
        counts = np.asarray(train.train.sum(axis=0)).ravel()
        for user, popularity in rows["popularity"].items():
            assert popularity == pytest.approx(counts[train.test[user].indices].mean())


def test_numbers_as_text_are_numbers(people):
    table = people.user_features.assign(
        age=[None if np.isnan(a) else f"{a:.0f}" for a in people.user_features["age"]],
        kids=people.user_features["kids"].astype(str),
        known=people.user_features["kids"] > 0,
    )
    asked = {"models": "popularity", "metrics": "auc", "folds": 3, "seed": 2}
    found = recsys.evaluate(replace(people, user_features=table), **asked)
    wanted = recsys.evaluate(people, **asked)
    for name in ("age", "kids"):
        pd.testing.assert_frame_equal(found.by(name), wanted.by(name))
    assert set(found.by("known")["group"]) == {"True", "False"}


def test_many_values_are_put_together(people):
    table = pd.DataFrame({"town": [f"t{k % 20}" for k in range(people.n_users)]}, index=people.user_ids)
    found = recsys.evaluate(replace(people, user_features=table), "popularity", metrics="auc", folds=2)
    groups = found.by("town")
    assert len(groups) == 12 and groups["group"].iloc[-1] == "(others)" and groups["users"].sum() == 60


@pytest.mark.parametrize(
    ("attribute", "text"), [("agge", "did you mean 'age'"), ("profile", "did you mean 'profile length'")]
)
def test_an_attribute_that_is_none(report, attribute, text):
    with pytest.raises(InputError, match=text):
        report.by(attribute)


def test_groups_need_a_metric_of_each_user(planted):
    found = evaluate(planted, make_ranker("popularity"), folds=2, metrics="coverage@3")
    with pytest.raises(InputError, match="coverage@3"):
        found.by("profile length")
    assert len(found.frame()) == 1


def test_the_long_table_has_every_value(report):
    table = report.user_values()
    assert len(table) == 2 * 3 * len(report.rows)
    assert {"model", "fold", "user", "metric", "value", "profile length", "sex"} <= set(table)
    means = table.groupby(["model", "metric", "fold"])["value"].mean()
    for result in report.results:
        for name, value in result.metrics.items():
            np.testing.assert_allclose(means[result.model, name], value.folds)


def test_lists_and_what_was_tested_are_kept_where_asked_for(planted):
    found = evaluate(planted, ["ease", "popularity"], folds=2, metrics="recall@5", keep_lists=5)
    run, qrels = found.run("ease"), found.qrels()
    assert list(run) == list(qrels) and len(run) == len(found.rows)
    recall = [len(set(run[user]) & set(qrels[user])) / len(qrels[user]) for user in run]
    np.testing.assert_allclose(recall, found.values["ease", "recall@5"], atol=1e-12)
    several = evaluate(planted, "ease", protocol="holdout", folds=2, metrics="auc", keep_lists=2)
    assert {user.split("/")[1] for user in several.run()} == {"fold1", "fold2"}
    for ask in (evaluate_one().run, evaluate_one().qrels):
        with pytest.raises(InputError, match="pass keep_lists=100 to evaluate"):
            ask()


def test_what_notebooks_show_escapes_what_comes_from_data(people):
    rude = "<script>alert('x')</script> & co"
    data = replace(people, name=rude, notes=(f"note {rude}",))
    page = recsys.evaluate(data, {rude: "ease", "other": "popularity"}, folds=2)._repr_html_()
    assert "<script" not in page and page.count("&lt;script") >= 4 and "<table" in page


def test_means_and_intervals_are_drawn(report):
    pytest.importorskip("matplotlib")
    figure = report.plot()
    assert [panel.get_title() for panel in figure.axes] == list(report.definitions)
    frame = report.frame().set_index(["model", "metric"])
    for panel in figure.axes[:2]:
        rows = [frame.loc[(m, panel.get_title())] for m in ("ease", "popularity")]
        assert panel.lines[0].get_xdata().tolist() == [row["mean"] for row in rows]
        segments = [segment[:, 0].tolist() for segment in panel.collections[0].get_segments()]
        assert segments == [[row["low"], row["high"]] for row in rows]


def test_a_label_is_no_formula(planted):
    pytest.importorskip("matplotlib")
    found = recsys.evaluate(planted, {"$x_{$": "popularity", "y" * 200: "ease"}, folds=2, metrics="auc")
    found.plot().savefig(io.BytesIO())


def test_plotting_says_what_it_needs(report, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"needs matplotlib: pip install '.*\[plot\]'"):
        report.plot()


def test_results_by_label(report):
    assert report.result("ease") is report.results[0]
    with pytest.raises(InputError, match="name one of the models"):
        report.result()
    with pytest.raises(InputError, match="no model 'eaze': did you mean 'ease'"):
        report.result("eaze")


def test_a_report_is_told_in_one_line():
    report = recsys.evaluate(recsys.load_dataset("sample"), ["popularity"], metrics=["auc"], folds=2)
    assert repr(report) == "<Report: popularity on 'sample', half-profile, folds: 2>"


@pytest.mark.parametrize("seed", range(30))
def test_a_decision_says_of_every_comparison_what_its_verdict_says(seed):
    rng = np.random.default_rng(seed)
    models, metrics = ["a", "b", "c"][: rng.integers(2, 4)], {"auc": "more", "loss": "less", "arp": ""}
    pairs = [
        {
            "metric": metric,
            "first": one,
            "second": other,
            "better": better,
            "low": 0.0,
            "high": 0.0,
            "difference": float(rng.normal()),
            "differs_clearly": bool(rng.random() < 0.5),
            "p_holm": 1.0,
            "users": 9,
        }
        for metric, better in metrics.items()
        if better
        for one, other in itertools.combinations(models, 2)
    ]
    told = decision(pairs)
    clear = [verdict(c) for c in pairs]
    wins = {m: sum(f": {m} is better than" in line for line in clear) for m in models}
    lost = {m: sum(f" is better than {m} by" in line for line in clear) for m in models}
    if not any(wins.values()):
        assert told.startswith("No model is better than another: ")
        return
    best = re.match(r"Use (\w): it ", told)[1]
    net = {m: wins[m] - lost[m] for m in models}
    assert net[best] == max(net.values())
    said = {}  # of (metric, other): the words
    words = "is better than|does not differ clearly from|is worse than"
    for how, others, on in re.findall(rf"({words}) ([\w, ]+?) on (\w+(?: and \w+)*)", told):
        for other in re.split(", | and ", others):
            for metric in on.split(" and "):
                assert said.setdefault((metric, other), how) == how
    for c, line in zip(pairs, clear, strict=True):
        if best not in (c["first"], c["second"]):
            continue
        other = c["second"] if best == c["first"] else c["first"]
        wanted = (
            "does not differ clearly from"
            if "do not differ clearly" in line
            else "is better than"
            if f": {best} is better than {other}" in line
            else "is worse than"
        )
        assert said.pop((c["metric"], other)) == wanted
    assert not said


def test_a_report_says_its_decision_with_its_users_and_folds(report):
    told = report.decision()
    tested = report.rows["user"].nunique()
    assert told == f"{decision(report.comparisons)} (tested users: {tested}, folds: 3)."
    assert told in report._repr_html_() and evaluate_one().decision() == ""


def evaluate_one():
    return evaluate(recsys.load_dataset("sample"), ["popularity"], metrics=["auc"], folds=2)


def test_what_is_printed_has_a_row_a_model_and_metric_and_the_decision(report):
    first, *table, last = str(report).split("\n")
    assert first == repr(report)[1:-1] and last == report.decision()
    assert table[0].split() == ["model", "metric", "mean", "low", "high", "users"]
    rows = report.frame()
    assert [line.split()[-5:-1] for line in table[1:]] == [
        [row.metric, *(f"{v:.4f}" if v == v else "–" for v in (row.mean, row.low, row.high))]
        for row in rows.itertuples()
    ]
