"""The front door: a table in, lists with reasons out, in the ids of the table."""

from recsys.recommender.answers import Rules, Why
from recsys.recommender.recommender import Recommender, load

__all__ = ["Recommender", "Rules", "Why", "load"]
