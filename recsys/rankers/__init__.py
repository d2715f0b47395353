"""Rankers, one file each, all behind the protocol of `recsys.rankers.base.Ranker`."""

from recsys.rankers.answers import Explanation, Recommendations
from recsys.rankers.base import Ranker
from recsys.rankers.catalogue import Bundle, fit_bundle, load_bundle
from recsys.rankers.registry import list_rankers, make_ranker
from recsys.rankers.serialization import load_ranker, read_ranker

__all__ = [
    "Bundle",
    "Explanation",
    "Ranker",
    "Recommendations",
    "fit_bundle",
    "list_rankers",
    "load_bundle",
    "load_ranker",
    "make_ranker",
    "read_ranker",
]
