"""Rankers, one file each, all behind the protocol of `recsys.rankers.base.Ranker`."""

from recsys.rankers.answers import Explanation, Recommendations
from recsys.rankers.base import Ranker
from recsys.rankers.catalogue import ModelPackage, fit_package, load_package
from recsys.rankers.registry import list_rankers, make_ranker
from recsys.rankers.serialization import load_ranker, read_ranker

__all__ = [
    "ModelPackage",
    "Explanation",
    "Ranker",
    "Recommendations",
    "fit_package",
    "list_rankers",
    "load_package",
    "load_ranker",
    "make_ranker",
    "read_ranker",
]
