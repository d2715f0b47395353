"""Link predictors over two feature matrices and index pairs."""

from recsys.links.base import LINKS, LinkPredictor, load_link_predictor, make_link_predictor
from recsys.links.baselines import CommonNeighbors, Katz, ResourceAllocation
from recsys.links.comparison import (
    LinkComparison,
    LinkMetrics,
    LinkResult,
    StrongestLinks,
    compare_links,
    fit_on_all_links,
    link_metrics,
    split_graph,
    strongest_links,
)
from recsys.links.neural import HONFM, ConcatDNN, PairDNN
from recsys.links.pairwise import (
    FactorizedBilinear,
    LowRankBilinear,
    PairFactorizationMachine,
    PairNet,
)
from recsys.links.reasons import LinkReasons, link_reasons
from recsys.links.sampling import LinkSplit, sample_negatives, split_objects, split_pairs
from recsys.links.svm import PairSVM

__all__ = [
    "HONFM",
    "LINKS",
    "CommonNeighbors",
    "ConcatDNN",
    "FactorizedBilinear",
    "Katz",
    "LinkComparison",
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
    "StrongestLinks",
    "compare_links",
    "fit_on_all_links",
    "link_metrics",
    "link_reasons",
    "load_link_predictor",
    "make_link_predictor",
    "sample_negatives",
    "split_graph",
    "split_objects",
    "split_pairs",
    "strongest_links",
]
