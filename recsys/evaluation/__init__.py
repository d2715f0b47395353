"""Metrics, evaluation runs and paired comparisons."""

from recsys.evaluation.evaluated import Evaluated, Lists
from recsys.evaluation.groups import Groups
from recsys.evaluation.report import Figure, Report, Result
from recsys.evaluation.run import evaluate
from recsys.evaluation.significance import Comparison, compare, compare_all, holm

__all__ = [
    "Comparison",
    "Evaluated",
    "Figure",
    "Groups",
    "Lists",
    "Report",
    "Result",
    "compare",
    "compare_all",
    "evaluate",
    "holm",
]
