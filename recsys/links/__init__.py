"""Link predictors over two feature matrices and index pairs."""

from recsys.links.neural import HONFM, ConcatDNN, PairDNN
from recsys.links.pairwise import (
    FactorizedBilinear,
    LowRankBilinear,
    PairFactorizationMachine,
    PairNet,
)
from recsys.links.sampling import (
    LinkMetrics,
    LinkSplit,
    link_metrics,
    sample_negatives,
    split_objects,
    split_pairs,
)
from recsys.links.svm import PairSVM

__all__ = [
    "HONFM",
    "ConcatDNN",
    "FactorizedBilinear",
    "LinkMetrics",
    "LinkSplit",
    "LowRankBilinear",
    "PairDNN",
    "PairFactorizationMachine",
    "PairNet",
    "PairSVM",
    "link_metrics",
    "sample_negatives",
    "split_objects",
    "split_pairs",
]
