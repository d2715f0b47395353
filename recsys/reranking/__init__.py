"""Lists re-ranked: dislikes kept away from, variety, and what a list is like beside accurate."""

from recsys.reranking.dislikes import penalize_dislikes
from recsys.reranking.diversity import diversify, list_diversity, mmr, overlap, tail_items
from recsys.reranking.rerank import rerank
from recsys.reranking.similar import similar

__all__ = [
    "diversify",
    "list_diversity",
    "mmr",
    "overlap",
    "penalize_dislikes",
    "rerank",
    "similar",
    "tail_items",
]
