"""Link predictors over two feature matrices and index pairs."""

from recsys.links.base import LINKS, LinkPredictor, make_link_predictor
from recsys.links.metrics import LinkMetrics, link_metrics
from recsys.links.neural import HONFM, ConcatDNN, PairDNN
from recsys.links.pairwise import (
    FactorizedBilinear,
    LowRankBilinear,
    PairFactorizationMachine,
    PairNet,
)
from recsys.links.sampling import (
    LinkSplit,
    sample_negatives,
    split_objects,
    split_pairs,
)
from recsys.links.svm import PairSVM

__all__ = [
    "HONFM",
    "LINKS",
    "ConcatDNN",
    "FactorizedBilinear",
    "LinkMetrics",
    "LinkPredictor",
    "LinkSplit",
    "LowRankBilinear",
    "PairDNN",
    "PairFactorizationMachine",
    "PairNet",
    "PairSVM",
    "link_metrics",
    "make_link_predictor",
    "sample_negatives",
    "split_objects",
    "split_pairs",
]
