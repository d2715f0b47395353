"""Evaluations by workers give what this process gives, to the bit, and leave nothing behind."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys import Blend, InputError, Interactions, cli, make_ranker
from recsys.data import split
from recsys.engines import engine
from recsys.evaluation import EvaluationInterrupted, evaluate
from recsys.evaluation.shared_data import Shared, known, share
from recsys.evaluation.units import sendable
from recsys.tuning import tune

OWN = ("fit_seconds", "score_seconds", "compile_seconds", "peak_mb", "engine", "workers")


class Counts:
    """A model with implicit's `fit` and `recommend`, as a worker can import it."""

    def __init__(self, least=0):
        self.least = least

    def fit(self, user_items, show_progress=True, callback=None):
        if self.least > user_items.nnz:
            raise InputError(f"{user_items.nnz} likes are fewer than {self.least}")
        self.counts = np.asarray(user_items.sum(axis=0)).ravel()

    def recommend(self, userid, user_items, N=10, filter_already_liked_items=True):
        order = np.argsort(-self.counts, kind="stable")[:N]
        return np.tile(order, (len(userid), 1)), np.tile(self.counts[order], (len(userid), 1))


@pytest.fixture(scope="module")
def workers():
    with engine("local=2") as found:
        yield found


@pytest.fixture(scope="module")
def described(planted):
    rng = np.random.default_rng(4)
    years = pd.Series(1950.0 + rng.integers(0, 60, planted.n_items), index=planted.item_ids)
    years.iloc[3] = np.nan
    kinds = [("Drama|War", "War", None, "Comedy")[k] for k in rng.integers(0, 4, planted.n_items)]
    films = pd.DataFrame({"title": "x", "year": years, "genres": kinds, "n": range(planted.n_items)})
    return replace(
        planted, time=rng.permutation(len(planted.users)) + 1.0, item_features=films,
        held_out=rng.random(len(planted.users)) < 0.2,
    )  # fmt: skip


def without_seconds(told):
    if isinstance(told, dict):
        return {key: without_seconds(value) for key, value in told.items() if key not in OWN}
    return [without_seconds(one) for one in told] if isinstance(told, list) else told


def assert_same(one, other):
    assert without_seconds(json.loads(json.dumps(one.as_dict()))) == without_seconds(
        json.loads(json.dumps(other.as_dict()))
    )
    for a, b in zip(one.results, other.results, strict=True):
        for name in a.per_user:
            np.testing.assert_array_equal(a.per_user[name], b.per_user[name])
        if a.lists is not None:
            np.testing.assert_array_equal(a.lists.ids, b.lists.ids)
            np.testing.assert_array_equal(a.lists.scores, b.lists.scores)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "folds"),
    [("half-profile", 3), ("half-profile-time", 2), ("rolling", 2), ("holdout", 2), ("published", 1)],
)
def test_figures_lists_and_comparisons_are_those_of_this_process(described, workers, protocol, folds):
    asked = {
        "models": ["ease:recency=0.5", make_ranker("popularity"), ("mine", Counts()), "fm:iterations=1"],
        "metrics": ["auc", "ndcg@5", "calibration@5", "calibration:year@5", "calibration:n@5", "gini@5"],
        "protocol": protocol, "folds": folds, "seed": 2, "keep_lists": 4, "threads": 1,
    }  # fmt: skip
    heard = []
    here = recsys.evaluate(described, **asked)
    there = recsys.evaluate(
        described, engine=workers, progress=lambda *told: heard.append(told), **asked
    )
    assert_same(here, there)
    assert (there.engine, there.workers) == ("local=2", 2) and here.workers == 0
    assert heard[-1] == ("done", 4 * folds, 4 * folds)
    assert [done for _, done, _ in heard[:-1]] == list(range(1, 4 * folds + 1))
    assert "They are the workers' own, on 2 workers (local=2)" in "\n".join(there.sentences())
    assert "own, on 2 workers" in there.html() and "workers" not in here.html()


def test_a_fitted_ranker_is_sent_without_what_it_learned(planted, workers):
    fitted = make_ranker("ease", regularization=7.0).fit(planted.matrix)
    fresh = sendable("e", fitted)
    assert vars(fresh) == vars(make_ranker("ease", regularization=7.0)) and len(vars(fitted)) > len(
        vars(fresh)
    )
    parts = [make_ranker("ease").fit(planted.matrix), make_ranker("popularity")]
    (part, _) = sendable("b", Blend(parts)).models
    assert vars(part) == vars(make_ranker("ease"))
    asked = {"metrics": "auc", "folds": 2, "threads": 1}
    assert_same(evaluate(planted, fitted, **asked), evaluate(planted, fitted, engine=workers, **asked))


def test_what_a_model_refuses_in_a_worker_is_told_as_here(planted, workers):
    told = []
    for where in ("local", workers):
        with pytest.raises(InputError) as refused:
            evaluate(planted, {"mine": Counts(10**6)}, folds=2, metrics="auc", engine=where)
        told.append(str(refused.value))
    assert told[0] == told[1] and told[0].endswith("are fewer than 1000000")


def test_a_model_that_cannot_be_sent_is_refused_in_a_line(planted, workers):
    class Here(Counts):
        pass

    with pytest.raises(InputError, match="model 'Here' cannot be sent to workers .*engine local"):
        evaluate(planted, Here(), engine=workers)


@pytest.mark.parametrize(
    "protocol",
    ["half-profile", "holdout", pytest.param("half-profile:draws=rows", marks=pytest.mark.thorough),
     pytest.param("leave-one-out", marks=pytest.mark.thorough)],
)  # fmt: skip
def test_workers_draw_the_folds_of_ids_in_any_order(tmp_path, protocol):
    rng = np.random.default_rng(5)
    users, items = rng.integers(0, 120, 900), rng.integers(0, 110, 900)
    data = Interactions.from_ids(users.tolist(), items.tolist())
    theirs = known(share(data, tmp_path / "data", frozenset(), [])).data
    for one, other in zip(split(data, protocol, seed=3), split(theirs, protocol, seed=3), strict=True):
        assert (one.train != other.train).nnz == (one.test != other.test).nnz == 0
        assert one.users.tolist() == other.users.tolist()


@pytest.mark.thorough
def test_the_data_are_a_file_that_is_checked_and_removed(planted, workers, tmp_path):
    evaluate(
        planted, make_ranker("popularity"), metrics="auc", folds=2, engine=workers, scratch=tmp_path
    )
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="scratch"):
        evaluate(planted, make_ranker("popularity"), engine=workers, scratch=tmp_path / "absent")
    shared = share(planted, tmp_path / "data", frozenset(), [])
    found = known(shared).data
    assert found.name == planted.name and (found.matrix != planted.matrix).nnz == 0
    with pytest.raises(InputError, match="not the file that the workers were sent to"):
        known(Shared(shared.path, "0" * 64))
    with pytest.raises(InputError, match="a worker cannot see .* --scratch"):
        known(Shared(str(tmp_path / "gone"), shared.sha256))


@pytest.mark.thorough
def test_the_command_says_whose_seconds_they_are(capsys, tmp_path):
    asked = ["evaluate", "--model", "popularity", "--metric", "auc", "--folds", "2", "--quiet"]
    assert cli.call([*asked, "--workers", "1", "--threads", "1", "--scratch", str(tmp_path)]) == 0
    assert "on 1 worker (local=1)" in " ".join(capsys.readouterr().out.split())
    assert cli.call([*asked, "--engine", "local=2", "--workers", "2"]) == 2
    assert "leave the other out" in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow  # half a minute of starting processes, and what they do is tested above
@pytest.mark.parametrize("name", ["dask", "ray"])
def test_on_clusters_everything_is_as_here(described, name):
    pytest.importorskip({"dask": "distributed"}.get(name, name))
    pytest.importorskip("optuna")
    asked = {
        "metrics": ["auc", "calibration:year@5"], "protocol": "half-profile", "folds": 2,
        "keep_lists": 3, "threads": 1,
    }  # fmt: skip
    models = ["ease", {"counts": Counts()}, "fm:iterations=1"]
    with engine(name, 2) as cluster:
        there = recsys.evaluate(described, models, engine=cluster, **asked)
        with pytest.raises(InputError, match="are fewer than 1000000"):
            evaluate(described, Counts(10**6), **asked, engine=cluster)
        searched = tune(described, "ease", 6, engine=cluster, threads=1)
    assert_same(recsys.evaluate(described, models, **asked), there)
    assert (there.engine, there.workers) == (name, 2)
    assert searched == tune(described, "ease", 6, threads=1)


@pytest.mark.slow
def test_what_workers_have_measured_is_kept_when_somebody_interrupts(planted):
    """They go fold by fold: after the first fold every model has been measured on it."""
    models = ["popularity", "ease"]

    def stop(text, done, total):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(EvaluationInterrupted, match="^interrupted: 1 of 2 folds are measured$") as error:
        evaluate(planted, models, folds=2, metrics=["auc"], engine="local=2", progress=stop)
    whole = evaluate(planted, models, folds=2, metrics=["auc"])
    for one, other in zip(error.value.report.results, whole.results, strict=True):
        assert one.metrics["auc"].mean == other.metrics["auc"].folds[0]
    assert error.value.report.folds == 1
