"""A recommender for tables: lists with reasons in the ids and the kind of the table."""

from recsys.recommender.explained import Rules, Why
from recsys.recommender.recommender import Recommender, load

__all__ = ["Recommender", "Rules", "Why", "load"]
