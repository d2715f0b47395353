"""Metrics, evaluation runs and paired comparisons."""

from recsys.evaluation.cross_validation import RankingScorer, UserSplit, ranking_scorer
from recsys.evaluation.differences import UserDifferences, user_differences
from recsys.evaluation.evaluated import Evaluated, Lists
from recsys.evaluation.groups import Groups
from recsys.evaluation.learning_curves import LearningCurve, learning_curve
from recsys.evaluation.page import report_document
from recsys.evaluation.report import MetricValue, Report, Result
from recsys.evaluation.run import EvaluationInterrupted, evaluate
from recsys.evaluation.significance import Comparison, compare, compare_all, holm

__all__ = [
    "Comparison",
    "Evaluated",
    "EvaluationInterrupted",
    "MetricValue",
    "Groups",
    "LearningCurve",
    "Lists",
    "RankingScorer",
    "Report",
    "Result",
    "UserDifferences",
    "UserSplit",
    "compare",
    "compare_all",
    "evaluate",
    "holm",
    "learning_curve",
    "ranking_scorer",
    "report_document",
    "user_differences",
]
