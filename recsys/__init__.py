"""Recommendation on CPU that says why: kernels, linear models and factorisation as rankers.

`import recsys` is light: what a name needs is imported when the name is first asked for.
"""

from __future__ import annotations

import importlib

from recsys.utils.version import __version__ as __version__

TYPE_CHECKING = (
    False  # as type checkers know it; `typing` itself takes longer to import than all of this
)
if TYPE_CHECKING:
    from typing import Any

    from recsys.data import Interactions
    from recsys.datasets import load_dataset
    from recsys.errors import (
        CapabilityError,
        DatasetError,
        FitError,
        InputError,
        ModelFileError,
        NotFittedError,
        OutOfRangeError,
        RecsysError,
    )
    from recsys.evaluation import evaluate
    from recsys.rankers import list_rankers, load_ranker, make_ranker
    from recsys.rankers.all_subsets import AllSubsetsRanker
    from recsys.rankers.als import ALS
    from recsys.rankers.auto import Auto
    from recsys.rankers.base import Ranker
    from recsys.rankers.bayesian_fm import BayesianFM
    from recsys.rankers.bilinear import BilinearRanker
    from recsys.rankers.blend import Blend
    from recsys.rankers.bpr import BPR
    from recsys.rankers.content import Content
    from recsys.rankers.ease import EASE
    from recsys.rankers.fm import FM
    from recsys.rankers.graph_filter import GraphFilter
    from recsys.rankers.hofm import HOFM
    from recsys.rankers.honfm import HONFMRanker
    from recsys.rankers.lmf import LMF
    from recsys.rankers.margin import CFKOMD, CFOMD, ECFOMD
    from recsys.rankers.msdw import MSDw
    from recsys.rankers.neighbours import BM25, TFIDF, Cosine
    from recsys.rankers.pair_dnn import PairDNNRanker
    from recsys.rankers.pair_svm import PairSVMRanker
    from recsys.rankers.pairnet import PairNetRanker
    from recsys.rankers.popularity import Popularity
    from recsys.rankers.random_features import RandomFeaturesRanker
    from recsys.rankers.slim import SLIM
    from recsys.rankers.slist import SLIST
    from recsys.rankers.sparse_fm import SparseFM
    from recsys.rankers.tifu_knn import TIFUKNN
    from recsys.rankers.user_knn import UserKNN
    from recsys.recommender import Recommender, load

_HOMES = {
    "recsys.data": ("Interactions",),
    "recsys.datasets": ("load_dataset",),
    "recsys.errors": (
        "CapabilityError",
        "DatasetError",
        "FitError",
        "InputError",
        "ModelFileError",
        "NotFittedError",
        "OutOfRangeError",
        "RecsysError",
    ),
    "recsys.evaluation": ("evaluate",),
    "recsys.rankers": (
        "list_rankers",
        "load_ranker",
        "make_ranker",
    ),
    "recsys.rankers.all_subsets": ("AllSubsetsRanker",),
    "recsys.rankers.als": ("ALS",),
    "recsys.rankers.auto": ("Auto",),
    "recsys.rankers.base": ("Ranker",),
    "recsys.rankers.bayesian_fm": ("BayesianFM",),
    "recsys.rankers.bilinear": ("BilinearRanker",),
    "recsys.rankers.blend": ("Blend",),
    "recsys.rankers.bpr": ("BPR",),
    "recsys.rankers.ease": ("EASE",),
    "recsys.rankers.content": ("Content",),
    "recsys.rankers.fm": ("FM",),
    "recsys.rankers.graph_filter": ("GraphFilter",),
    "recsys.rankers.hofm": ("HOFM",),
    "recsys.rankers.honfm": ("HONFMRanker",),
    "recsys.rankers.margin": ("CFKOMD", "CFOMD", "ECFOMD"),
    "recsys.rankers.lmf": ("LMF",),
    "recsys.rankers.msdw": ("MSDw",),
    "recsys.rankers.neighbours": ("BM25", "TFIDF", "Cosine"),
    "recsys.rankers.pair_dnn": ("PairDNNRanker",),
    "recsys.rankers.pair_svm": ("PairSVMRanker",),
    "recsys.rankers.pairnet": ("PairNetRanker",),
    "recsys.rankers.popularity": ("Popularity",),
    "recsys.rankers.random_features": ("RandomFeaturesRanker",),
    "recsys.rankers.slim": ("SLIM",),
    "recsys.rankers.slist": ("SLIST",),
    "recsys.rankers.sparse_fm": ("SparseFM",),
    "recsys.rankers.tifu_knn": ("TIFUKNN",),
    "recsys.rankers.user_knn": ("UserKNN",),
    "recsys.recommender": ("Recommender", "load"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "ALS",
    "AllSubsetsRanker",
    "Auto",
    "BM25",
    "BPR",
    "BayesianFM",
    "BilinearRanker",
    "Blend",
    "CFKOMD",
    "CFOMD",
    "CapabilityError",
    "Content",
    "Cosine",
    "DatasetError",
    "EASE",
    "ECFOMD",
    "FM",
    "FitError",
    "GraphFilter",
    "HOFM",
    "HONFMRanker",
    "InputError",
    "Interactions",
    "LMF",
    "MSDw",
    "ModelFileError",
    "NotFittedError",
    "OutOfRangeError",
    "PairDNNRanker",
    "PairNetRanker",
    "PairSVMRanker",
    "Popularity",
    "RandomFeaturesRanker",
    "Ranker",
    "Recommender",
    "RecsysError",
    "SLIM",
    "SLIST",
    "SparseFM",
    "TFIDF",
    "TIFUKNN",
    "UserKNN",
    "evaluate",
    "list_rankers",
    "load",
    "load_dataset",
    "load_ranker",
    "make_ranker",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'recsys' has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
