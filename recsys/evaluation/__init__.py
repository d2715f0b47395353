"""Metrics, evaluation runs and paired comparisons."""

from recsys.evaluation.run import Figure, Report, Result, evaluate
from recsys.evaluation.significance import Comparison, compare, holm

__all__ = ["Comparison", "Figure", "Report", "Result", "compare", "evaluate", "holm"]
