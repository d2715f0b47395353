"""Link predictors over two feature matrices and index pairs."""

from recsys.links.base import (
    LINKS,
    LinkPredictor,
    LinkReasons,
    link_reasons,
    load_link_predictor,
    make_link_predictor,
)
from recsys.links.baselines import CommonNeighbors, Katz, ResourceAllocation
from recsys.links.comparison import (
    LinkMetrics,
    LinkResult,
    LinkSplit,
    compare_links,
    fit_on_all_links,
    link_metrics,
    sample_negatives,
    split_objects,
    split_pairs,
    strongest_links,
)
from recsys.links.neural import HONFM, ConcatDNN, PairDNN
from recsys.links.pairwise import (
    FactorizedBilinear,
    LowRankBilinear,
    PairFactorizationMachine,
    PairNet,
)
from recsys.links.svm import PairSVM

__all__ = [
    "HONFM",
    "LINKS",
    "CommonNeighbors",
    "ConcatDNN",
    "FactorizedBilinear",
    "Katz",
    "LinkMetrics",
    "LinkPredictor",
    "LinkReasons",
    "LinkResult",
    "LinkSplit",
    "LowRankBilinear",
    "PairDNN",
    "PairFactorizationMachine",
    "PairNet",
    "PairSVM",
    "ResourceAllocation",
    "compare_links",
    "fit_on_all_links",
    "link_metrics",
    "link_reasons",
    "load_link_predictor",
    "make_link_predictor",
    "sample_negatives",
    "split_objects",
    "split_pairs",
    "strongest_links",
]
