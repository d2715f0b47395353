"""Rankers are recommenders to implicit: importing this makes `isinstance(ranker, RecommenderBase)` true.

Fitting `als`, `bpr` or `lmf` does so, too, for these import implicit anyway.
"""

from implicit.recommender_base import RecommenderBase

from recsys.rankers.base import Ranker

__all__ = ["RecommenderBase"]

RecommenderBase.register(Ranker)
