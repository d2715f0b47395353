"""Metrics of rankings and of lists, by name and as functions."""

from recsys.evaluation.metrics.base import METRICS, TIES, ListContext, Metric, parse_metric
from recsys.evaluation.metrics.lists import (
    average_popularity,
    coverage,
    diversity,
    gini,
    novelty,
    serendipity,
)
from recsys.evaluation.metrics.ranking import (
    auc,
    average_precision,
    hit_rate,
    mrr,
    ndcg,
    precision,
    ranking_values,
    recall,
)

__all__ = [
    "METRICS",
    "TIES",
    "ListContext",
    "Metric",
    "auc",
    "average_popularity",
    "average_precision",
    "coverage",
    "diversity",
    "gini",
    "hit_rate",
    "mrr",
    "ndcg",
    "novelty",
    "parse_metric",
    "precision",
    "ranking_values",
    "recall",
    "serendipity",
]
