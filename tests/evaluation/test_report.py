"""Reports: frames, intervals, groups, figures, pages."""

import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys import InputError, make_ranker
from recsys.evaluation import Report, evaluate
from recsys.evaluation.bootstrap import mean_intervals
from recsys.evaluation.groups import group_of
from recsys.evaluation.significance import decision, verdict


@pytest.fixture(scope="module")
def people(planted):
    rng = np.random.default_rng(0)
    ages = rng.integers(15, 80, planted.n_users).astype(float)
    ages[:4] = np.nan
    table = pd.DataFrame(
        {"age": ages, "sex": rng.choice(["f", "m"], planted.n_users), "kids": rng.integers(0, 3, planted.n_users)},
        index=planted.user_ids,
    )  # fmt: skip
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
    assert not {"evaluated", "whole"} & set(told) and told["better"]["coverage@5"] == "more"


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_a_frame_of_the_kind_asked_for(report, kind):
    pytest.importorskip(kind)
    for one in (report, report.by("sex")):
        found, wanted = one.frame(kind), one.frame()
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
def test_groups_part_the_users_and_their_means_are_plain(report, people, attribute):
    groups = report.by(attribute)
    assert sum(groups.sizes.values()) == len(report.evaluated.users) == 60
    names, group = group_of(report.evaluated, attribute)
    assert names == list(groups.sizes)
    for row in groups.rows:
        values = report.result(row["model"]).per_user[row["metric"]][group == names.index(row["group"])]
        assert (
            row["mean"] == pytest.approx(np.nanmean(values)) and row["low"] <= row["mean"] <= row["high"]
        )
        assert row["users"] == np.isfinite(values).sum()
    assert {row["metric"] for row in groups.rows} == {"auc", "ndcg@5"}
    assert len(groups.frame()) == len(groups.rows) and "<table>" in groups._repr_html_()


def test_what_users_are_grouped_by(report, people):
    who = report.evaluated
    names, group = group_of(who, "sex")
    sex = people.user_features["sex"].to_numpy()[who.users]
    assert [names[k] for k in group] == sex.tolist()
    names, group = group_of(who, "age")
    age = people.user_features["age"].to_numpy()[who.users]
    assert names[-1] == "unknown" and (np.isnan(age) == (group == len(names) - 1)).all()
    tops = [age[group == k].max() for k in range(4)]
    assert tops == sorted(tops) and names[0] == f"{age[group == 0].min():.0f}–{tops[0]:.0f}"
    for fold in range(3):
        train = next(f for k, f in enumerate(recsys.data.split(people, folds=3, seed=2)) if k == fold)
        rows = who.folds == fold
        np.testing.assert_array_equal(who.profile[rows], np.diff(train.train.indptr)[who.users[rows]])
        counts = np.asarray(train.train.sum(axis=0)).ravel()
        for row in np.flatnonzero(rows):
            tested = train.test[who.users[row]].indices
            assert who.popularity[row] == pytest.approx(counts[tested].mean())


def test_numbers_as_text_are_numbers(people):
    table = people.user_features.assign(
        age=[None if np.isnan(a) else f"{a:.0f}" for a in people.user_features["age"]],
        kids=people.user_features["kids"].astype(str),
        known=people.user_features["kids"] > 0,
    )
    found = recsys.evaluate(
        replace(people, user_features=table), "popularity", metrics="auc", folds=3, seed=2
    )
    wanted = recsys.evaluate(people, "popularity", metrics="auc", folds=3, seed=2)
    for name in ("age", "kids"):
        assert found.by(name).rows == wanted.by(name).rows
    assert set(found.by("known").sizes) == {"True", "False"}


def test_many_values_are_put_together(people):
    table = pd.DataFrame({"town": [f"t{k % 20}" for k in range(people.n_users)]}, index=people.user_ids)
    found = recsys.evaluate(replace(people, user_features=table), "popularity", metrics="auc", folds=2)
    sizes = found.by("town").sizes
    assert len(sizes) == 12 and list(sizes)[-1] == "others" and sum(sizes.values()) == 60
    named = table.assign(town=[f"t{k}" if (k := j % 20) else "others" for j in range(people.n_users)])
    found = recsys.evaluate(replace(people, user_features=named), "popularity", metrics="auc", folds=2)
    sizes = found.by("town").sizes
    assert sum(sizes.values()) == 60 and "others" in sizes and "others (rare values)" in sizes


@pytest.mark.parametrize(
    ("attribute", "text"), [("agge", "did you mean 'age'"), ("profile", "did you mean 'profile length'")]
)
def test_an_attribute_that_is_none(report, attribute, text):
    with pytest.raises(InputError, match=text):
        report.by(attribute)


def test_groups_need_a_metric_of_each_user(planted):
    found = evaluate(planted, make_ranker("popularity"), folds=2, metrics="coverage@3")
    with pytest.raises(InputError, match="coverage@3 has one value for all users"):
        found.by("profile length")
    pytest.importorskip("matplotlib")
    assert found.plot()._repr_png_() and "<table>" in found.html() and len(found.frame()) == 1


def test_without_a_table_of_users_that_is_said(planted):
    with pytest.raises(InputError, match="attributes come with a table of users"):
        evaluate(replace(planted, user_features=None), make_ranker("popularity"), folds=2).by("height")


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


def test_a_page_shows_figures_and_verdicts_and_escapes_what_comes_from_data(people):
    rude = "<script>alert('x')</script> & co"
    data = replace(people, name=rude, notes=(f"note {rude}",))
    found = recsys.evaluate(data, {rude: "ease", "other": "popularity"}, folds=2)
    page = found._repr_html_()
    reader = Reader()
    reader.feed(page)
    assert "script" not in reader.tags and {"table", "details", "th", "td"} <= set(reader.tags)
    assert reader.text.count(rude) >= 4
    for line in found.verdicts():
        assert line in reader.text
    assert found.sentences()[-1] in reader.text.split("What the metrics mean")[1]
    for row in found.frame().to_dict("records"):
        assert f"{row['mean']:.4f}" in reader.text
        assert f"{row['low']:.4f} – {row['high']:.4f}" in reader.text


def test_figures_are_drawn(report):
    pytest.importorskip("matplotlib")
    for figure in (report.plot(), report.by("sex").plot()):
        assert figure._repr_png_()[:4] == b"\x89PNG"
    panels = [panel for panel in report.plot().axes if panel.get_visible()]
    assert [panel.get_title(loc="left") for panel in panels] == list(report.definitions)
    frame = report.frame().set_index(["model", "metric"])
    for panel in panels[:2]:
        (dots, lines) = ([line.get_xdata()[0] for line in panel.lines], panel.collections)
        rows = [frame.loc[(m, panel.get_title(loc="left"))] for m in ("ease", "popularity")]
        assert dots == [row["mean"] for row in rows]
        for line, row in zip(lines, rows, strict=True):
            (segment,) = line.get_segments()
            assert segment[:, 0].tolist() == [row["low"], row["high"]]


def test_a_label_is_no_formula(planted):
    pytest.importorskip("matplotlib")
    found = recsys.evaluate(planted, {"$x_{$": "popularity", "y" * 200: "ease"}, folds=2, metrics="auc")
    assert found.plot()._repr_png_()


def test_plotting_says_what_it_needs(report, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for draw in (report.plot, report.by("sex").plot):
        with pytest.raises(InputError, match=r"needs matplotlib: pip install '.*\[plot\]'"):
            draw()


def test_results_by_label(report):
    assert report.result("ease") is report.results[0]
    with pytest.raises(InputError, match="name one of the models"):
        report.result()
    with pytest.raises(InputError, match="no model 'eaze': did you mean 'ease'"):
        report.result("eaze")
    bare = Report("d", "p", 1, 0, 1, 1, 1, 1, {"auc": "pairs"}, [], [], [])
    with pytest.raises(InputError, match="does not say who was evaluated"):
        bare.by("profile length")


def test_a_report_is_told_in_one_line():
    report = recsys.evaluate(recsys.load_dataset("sample"), ["popularity"], metrics=["auc"], folds=2)
    assert repr(report) == "<Report: popularity on 'sample', half-profile, 2 folds>"


@pytest.mark.parametrize("seed", range(30))
def test_a_decision_says_of_every_comparison_what_its_verdict_says(seed):
    rng = np.random.default_rng(seed)
    models, metrics = ["a", "b", "c"][: rng.integers(2, 4)], {"auc": "more", "loss": "less", "arp": ""}
    pairs = [
        {
            "metric": metric, "first": one, "second": other, "better": better, "low": 0.0, "high": 0.0,
            "difference": float(rng.normal()), "differs_clearly": bool(rng.random() < 0.5), "p_holm": 1.0,
            "users": 9,
        }
        for metric, better in metrics.items() if better
        for one, other in itertools.combinations(models, 2)
    ]  # fmt: skip
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
            "does not differ clearly from" if "do not differ clearly" in line
            else "is better than" if f": {best} is better than {other}" in line else "is worse than"
        )  # fmt: skip
        assert said.pop((c["metric"], other)) == wanted
    assert not said


def test_a_report_says_its_decision_with_its_users_and_folds(report):
    told = report.decision()
    tested = len(set(report.evaluated.users.tolist()))
    assert told == f"{decision(report.comparisons)}; {tested} tested users, {report.folds} folds."
    assert told in report.html() and evaluate_one().decision() == ""


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
