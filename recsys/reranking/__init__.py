"""What a person can ask of a list beside good: variety, and distance from what they dislike."""

from recsys.reranking.dislikes import overlap, similar, steer
from recsys.reranking.diversity import list_diversity, mmr, tail_items

__all__ = ["list_diversity", "mmr", "overlap", "similar", "steer", "tail_items"]
