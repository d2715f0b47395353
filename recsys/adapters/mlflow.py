"""Reports and searches in MLflow: one run a model, or a trial, inside one for all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from recsys.errors import InputError
from recsys.evaluation import Report
from recsys.tuning import Tuned
from recsys.utils.export import csv_text, json_text

__all__ = ["log_report", "log_study", "metric_name"]

LONGEST = 500  # characters of a parameter that MLflow takes


def metric_name(name: str) -> str:
    """Return a metric's name as MLflow takes it: letters, digits, _, -, ., blanks, : and / only.

    Examples
    --------
    >>> metric_name("ndcg@10")
    'ndcg_at_10'
    """
    return re.sub(r"[^\w.\- :/]", "_", name.replace("@", "_at_"), flags=re.ASCII)


def log_report(report: Report, *, run_name: str | None = None) -> str:
    """Log a report: a run for the evaluation, and inside it one for each model.

    The outer run has what the metric values depend on as parameters, and the report as evaluation.html,
    evaluation.json and evaluation.csv; a model's run has its parameters, each metric's mean
    (`ndcg_at_10`), the ends of its interval (`ndcg_at_10_low`, `ndcg_at_10_high`) and the seconds. It is
    logged where `mlflow.set_tracking_uri` and `mlflow.set_experiment` say, inside the active run if
    there is one.

    Parameters
    ----------
    report : Report
    run_name : str, optional
        Dataset and protocol when not given.

    Returns
    -------
    str
        The outer run's id.

    Raises
    ------
    InputError
        If MLflow is not installed.
    """
    mlflow = _mlflow()
    low, high = report.intervals()
    name = run_name or f"{report.dataset} {report.protocol}"
    with mlflow.start_run(run_name=name, nested=mlflow.active_run() is not None) as outer:
        about = ("dataset", "protocol", "folds", "seed", "users", "items", "interactions")
        _log_params(mlflow, {key: getattr(report, key) for key in about})
        mlflow.log_text(report.html(), "evaluation.html")
        mlflow.log_text(json_text(report.as_dict()), "evaluation.json")
        mlflow.log_text(csv_text(*report.table()), "evaluation.csv")
        for result in report.results:
            with mlflow.start_run(run_name=result.model, nested=True):
                _log_params(mlflow, {"model": result.model} | result.params)
                figures = {"fit_seconds": result.fit_seconds, "score_seconds": result.score_seconds}
                for metric, figure in result.metrics.items():
                    key = metric_name(metric)
                    figures |= {key: figure.mean, f"{key}_std": figure.std}
                    figures |= {
                        f"{key}_low": low[result.model, metric],
                        f"{key}_high": high[result.model, metric],
                    }
                mlflow.log_metrics({key: value for key, value in figures.items() if value == value})
    return str(outer.info.run_id)


def log_study(found: Tuned, *, metric: str = "ndcg@10", run_name: str | None = None) -> str:
    """Log a search: a run with the best parameters, and inside it one for each trial.

    Parameters
    ----------
    found : Tuned
        What `recsys.tuning.tune` returns.
    metric : str
        What was searched for.
    run_name : str, optional
        The best specification when not given.

    Returns
    -------
    str
        The outer run's id.

    Raises
    ------
    InputError
        If MLflow is not installed.
    """
    mlflow, key = _mlflow(), metric_name(metric.replace("+", "_plus_"))
    name = run_name or f"tune {found.spec}"
    with mlflow.start_run(run_name=name, nested=mlflow.active_run() is not None) as outer:
        _log_params(mlflow, {"model": found.spec} | found.params)
        mlflow.log_metric(key, found.value)
        for number, (params, value) in enumerate(found.trials):
            with mlflow.start_run(run_name=f"trial {number}", nested=True):
                _log_params(mlflow, params)
                mlflow.log_metric(key, value)
    return str(outer.info.run_id)


def _mlflow() -> Any:
    try:
        import mlflow
    except ImportError:
        raise InputError("logging to MLflow needs it: pip install mlflow-skinny (or mlflow)") from None
    return mlflow


def _log_params(mlflow: Any, params: Mapping[str, Any]) -> None:
    mlflow.log_params({metric_name(key): str(value)[:LONGEST] for key, value in params.items()})
