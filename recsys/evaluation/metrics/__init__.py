"""Metrics of rankings and of lists, by name and as functions."""

from recsys.evaluation.metrics.base import METRICS, TIES, ListContext, Metric, parse_metric
from recsys.evaluation.metrics.calibration import calibration, feature_column
from recsys.evaluation.metrics.first_items import FirstItems
from recsys.evaluation.metrics.lists import coverage, gini
from recsys.evaluation.metrics.measurement import Measurement
from recsys.evaluation.metrics.popularity import average_popularity, novelty, popularity_lift
from recsys.evaluation.metrics.ranking import (
    auc,
    average_precision,
    hit_rate,
    mrr,
    ndcg,
    precision,
    r_precision,
    ranking_values,
    recall,
)
from recsys.evaluation.metrics.similarity import diversity, serendipity

__all__ = [
    "METRICS",
    "TIES",
    "FirstItems",
    "ListContext",
    "Measurement",
    "Metric",
    "auc",
    "average_popularity",
    "average_precision",
    "calibration",
    "coverage",
    "diversity",
    "feature_column",
    "gini",
    "hit_rate",
    "mrr",
    "ndcg",
    "novelty",
    "parse_metric",
    "popularity_lift",
    "precision",
    "r_precision",
    "ranking_values",
    "recall",
    "serendipity",
]
