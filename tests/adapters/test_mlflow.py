"""Reports and searches in MLflow; the real package where it is installed."""

import builtins
import importlib.util
import json

import pytest

import recsys
from recsys import InputError
from recsys.adapters.mlflow import log_report, log_study, metric_name
from recsys.adapters.times import latest_times
from recsys.tuning import Tuned

INSTALLED = importlib.util.find_spec("mlflow") is not None
real = pytest.mark.skipif(
    not INSTALLED, reason="MLflow is not installed: nothing is known of its logging here"
)


def test_names_are_those_that_mlflow_takes():
    assert (
        metric_name("ndcg@10") == "ndcg_at_10"
        and metric_name("calibration:genres@5") == "calibration:genres_at_5"
    )
    assert metric_name("a=b,c") == "a_b_c"


def test_without_mlflow_that_is_said(planted, monkeypatch):
    report = recsys.evaluate(planted, "popularity", folds=2, metrics="auc")
    found = builtins.__import__
    monkeypatch.setattr(
        builtins, "__import__",
        lambda name, *rest: (_ for _ in ()).throw(ImportError(name)) if name == "mlflow" else found(name, *rest),
    )  # fmt: skip
    for call in (lambda: log_report(report), lambda: log_study(Tuned("ease", {}, 0.5, []))):
        with pytest.raises(InputError, match="pip install mlflow-skinny"):
            call()


def test_the_latest_of_a_pair_counts_and_times_are_above_zero():
    found = latest_times([0, 0, 1], [1, 1, 0], [-5.0, -7.0, -9.0], (2, 2)).toarray()
    assert found.tolist() == [[0, 5], [1, 0]]


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    import mlflow

    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    mlflow.set_experiment("tests")
    yield mlflow
    assert mlflow.active_run() is None


def children(mlflow, outer):
    found = mlflow.search_runs(output_format="list", experiment_names=["tests"])
    return [run for run in found if run.data.tags.get("mlflow.parentRunId") == outer]


@real
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_report_is_a_run_with_a_run_for_each_model(planted, store):
    models = {"few": "ease:regularization=5", "komd": "cf-komd:kernel=mc,degree=2"}
    report = recsys.evaluate(planted, models, folds=2, metrics=["ndcg@10", "coverage@10"])
    outer = log_report(report)
    run = store.get_run(outer)
    assert run.data.params["protocol"] == "half-profile" and run.data.params["users"] == "60"
    assert "<table>" in store.artifacts.load_text(f"runs:/{outer}/evaluation.html")
    told = json.loads(store.artifacts.load_text(f"runs:/{outer}/evaluation.json"))
    assert [r["model"] for r in told["results"]] == list(models)
    inner = {run.data.params["model"]: run for run in children(store, outer)}
    assert set(inner) == set(models) and inner["few"].data.params["regularization"] == "5"
    rows = report.frame().set_index(["model", "metric"])
    for label, found in inner.items():
        row = rows.loc[(label, "ndcg@10")]
        for key, end in (("mean", ""), ("std", "_std"), ("low", "_low"), ("high", "_high")):
            assert found.data.metrics[f"ndcg_at_10{end}"] == pytest.approx(row[key])
        assert "coverage_at_10" in found.data.metrics and "coverage_at_10_low" not in found.data.metrics


@real
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_search_is_a_run_with_a_run_for_each_trial(store):
    trials = [({"regularization": 3.0}, 0.2), ({"regularization": 30.0}, 0.4)]
    found = Tuned("ease:regularization=30.0", {"regularization": 30.0}, 0.4, trials)
    with store.start_run() as active:
        outer = log_study(found, metric="auc+ndcg@10")
    run = store.get_run(outer)
    assert run.data.tags["mlflow.parentRunId"] == active.info.run_id
    assert run.data.metrics == {"auc_plus_ndcg_at_10": 0.4} and run.data.params["model"] == found.spec
    values = {
        r.data.params["regularization"]: r.data.metrics["auc_plus_ndcg_at_10"]
        for r in children(store, outer)
    }
    assert values == {"3.0": 0.2, "30.0": 0.4}
