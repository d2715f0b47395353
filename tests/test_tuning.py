"""Tuning hides what is validated in the way in which the protocol hides what is tested."""

from dataclasses import replace

import numpy as np
import pytest

from recsys import EASE, InputError, make_ranker, tuning
from recsys.data import split
from recsys.evaluation import evaluate
from recsys.tuning import training_part, tune


@pytest.fixture
def timed(planted):
    return replace(planted, time=np.random.default_rng(0).permutation(len(planted.users)) + 1.0)


@pytest.mark.parametrize("protocol", ["leave-one-out", "next-3", "temporal", "rolling"])
def test_validation_is_the_protocol_inside_the_first_training_rows(timed, protocol, monkeypatch):
    seen = []

    def spy(data, models, **asked):
        seen.append((data, asked))
        return evaluate(data, models, **asked)

    monkeypatch.setattr(tuning, "evaluate", spy)
    found = tune(timed, "ease", 2, protocol=protocol, seed=1)
    outer = next(split(timed, protocol, seed=1))
    for (inner, asked), (params, value) in zip(seen, found.trials, strict=True):
        assert (inner.matrix != outer.train).nnz == 0 and asked["protocol"] == protocol
        fold = next(split(inner, protocol, folds=asked["folds"], seed=1))
        assert fold.test.multiply(outer.test).nnz == 0
        again = evaluate(
            training_part(timed, protocol, 1),
            {"m": make_ranker("ease", **params)},
            protocol=protocol,
            folds=1,
            metrics=["ndcg@10"],
            seed=1,
        )
        assert value == again.results[0].metrics["ndcg@10"].mean
    assert found.value == max(value for _, value in found.trials)


@pytest.mark.parametrize(("later", "inside"), [(False, "holdout"), (True, "leave-one-out")])
def test_a_published_test_half_is_never_read_by_a_search(timed, later, inside, monkeypatch):
    held = np.random.default_rng(2).random(len(timed.users)) < 0.2
    data = replace(timed, time=timed.time + 1e6 * held if later else timed.time, held_out=held)
    seen = []

    def spy(inner, models, **asked):
        seen.append((inner, asked["protocol"]))
        return evaluate(inner, models, **asked)

    monkeypatch.setattr(tuning, "evaluate", spy)
    found = tune(data, "ease", 2, protocol="published")
    (outer,) = split(data, "published")
    assert len(found.trials) == len(seen) == 2
    for inner, protocol in seen:
        assert protocol == inside and (inner.matrix != outer.train).nnz == 0
        assert inner.held_out is None and inner.n_items == data.n_items
    free = {user: np.flatnonzero(row == 0).tolist() for user, row in enumerate(data.matrix.toarray())}
    some = [k for k in np.flatnonzero(held) if free[data.users[k]]]
    items = data.items.copy()
    items[some] = [free[data.users[k]].pop() for k in some]
    other = tune(replace(data, items=items), "ease", 2, protocol="published")
    assert len(some) > 20 and other.trials == found.trials


def test_a_search_without_a_figure_says_why(timed):
    with pytest.raises(
        InputError, match="no trial of ease could be evaluated on .*: regularization must"
    ):
        tune(timed, "ease:regularization=-1", 2)


@pytest.mark.parametrize("metric", ["gini@10", "arp@10"])
def test_a_search_raises_figures_of_which_more_is_better(timed, metric):
    with pytest.raises(InputError, match="cannot be maximized"):
        tune(timed, "ease", 1, metric=metric)


@pytest.mark.parametrize(
    ("protocol", "searched"),
    [("half-profile", False), ("holdout", False), ("leave-one-out", True), ("half-profile-time", True)],
)
def test_what_times_decide_is_searched_where_there_are_some(timed, protocol, searched, monkeypatch):
    monkeypatch.setattr(EASE, "search_space", {"recency": ("real", 0.1, 2.0, "times")})
    found = tune(timed, "ease", 2, protocol=protocol)
    for params, _ in found.trials:
        assert set(params) == ({"recency"} if searched else set())
        assert not searched or 0.1 <= params["recency"] <= 2.0
    assert set(tune(timed, "ease:recency=0.5", 1, protocol=protocol).params) == {"recency"}
    untimed = replace(timed, time=None)
    if protocol != "half-profile-time":
        assert tune(untimed, "ease", 1, protocol=protocol).params == {}


@pytest.mark.parametrize(
    ("model", "searched"),
    [
        ("ease", {"ridge_power", "dropout"}),
        ("cf-komd:kernel=linear", set()),
        ("cf-komd:kernel=mc", {"degree"}),
    ],
)
def test_parameters_are_searched_where_they_mean_something(timed, model, searched):
    params = tune(timed, model, 1).params
    assert {key for key in params if key in ("ridge_power", "dropout", "degree")} == searched


def test_what_a_search_fits_on_keeps_weights(timed):
    rng = np.random.default_rng(3)
    weighted = replace(timed, weight=rng.integers(1, 5, len(timed.users)).astype(float))
    outer = next(split(weighted, "holdout", seed=1))
    assert (training_part(weighted, "holdout", 1).matrix != outer.train).nnz == 0
    data = replace(weighted, held_out=rng.random(len(timed.users)) < 0.3)
    (outer,) = split(data, "published")
    assert (training_part(data, "published", 0).matrix != outer.train).nnz == 0
    assert len(tune(weighted, "ease", 1, protocol="holdout").trials) == 1


@pytest.mark.parametrize("storage", ["{}/study", "sqlite:///{}/study.db"])
def test_a_search_that_is_resumed_is_the_one_that_was_not_interrupted(planted, tmp_path, storage):
    whole = tune(planted, "ease", 6, seed=5)
    assert len({str(params) for params, _ in whole.trials}) == 6
    for trials in (3, 6, 6):
        found = tune(planted, "ease", trials, seed=5, storage=storage.format(tmp_path))
    assert found == whole


@pytest.mark.slow
def test_processes_make_the_first_trials_of_one(planted):
    assert tune(planted, "ease", 4, n_jobs=2).trials == tune(planted, "ease", 4).trials


def test_a_study_that_is_none_is_refused_in_a_line(planted, tmp_path):
    (tmp_path / "file").write_text("no journal")
    with pytest.raises(InputError, match="the study cannot be opened"):
        tune(planted, "ease", 1, storage=tmp_path / "file")
