"""Rankers: subclasses of `recsys.rankers.base.Ranker`, one file per family."""

from recsys.rankers.base import Explanation, Ranker, Recommendations
from recsys.rankers.package import ModelPackage, fit_package, load_package
from recsys.rankers.registry import list_rankers, load_ranker, make_ranker, read_ranker

__all__ = [
    "Explanation",
    "ModelPackage",
    "Ranker",
    "Recommendations",
    "fit_package",
    "list_rankers",
    "load_package",
    "load_ranker",
    "make_ranker",
    "read_ranker",
]
