"""Metrics, evaluation runs and paired comparisons."""

from recsys.evaluation.cross_validation import RankingScorer, UserSplit
from recsys.evaluation.report import MetricValue, Report, Result
from recsys.evaluation.run import EvaluationInterrupted, evaluate
from recsys.evaluation.significance import Comparison, compare, compare_all, holm

__all__ = [
    "Comparison",
    "EvaluationInterrupted",
    "MetricValue",
    "RankingScorer",
    "Report",
    "Result",
    "UserSplit",
    "compare",
    "compare_all",
    "evaluate",
    "holm",
]
