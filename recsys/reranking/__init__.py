"""Lists re-ranked: dislikes kept away from, variety, and what a list is like beside accurate."""

from recsys.reranking.dislikes import DISLIKE_WEIGHT, penalize_dislikes
from recsys.reranking.diversity import diversify, list_diversity, mmr, overlap, tail_items
from recsys.reranking.fair import Fair
from recsys.reranking.merchandising import Merchandising
from recsys.reranking.novelty import favour_rare
from recsys.reranking.rerank import rerank
from recsys.reranking.similar import similar

__all__ = [
    "DISLIKE_WEIGHT",
    "Fair",
    "Merchandising",
    "diversify",
    "favour_rare",
    "list_diversity",
    "mmr",
    "overlap",
    "penalize_dislikes",
    "rerank",
    "similar",
    "tail_items",
]
