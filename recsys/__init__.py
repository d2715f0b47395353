"""Recommendation on CPU that says why: kernels, linear models and factorization machines as rankers.

`import recsys` is light: what a name needs is imported when the name is first asked for.
"""

from __future__ import annotations

import importlib

from recsys.utils.version import __version__ as __version__

# As type checkers know it: `typing` itself takes longer to import than all of this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from recsys.data import Interactions as Interactions
    from recsys.datasets import load_dataset as load_dataset
    from recsys.errors import CapabilityError as CapabilityError
    from recsys.errors import DatasetError as DatasetError
    from recsys.errors import FitError as FitError
    from recsys.errors import InputError as InputError
    from recsys.errors import ModelFileError as ModelFileError
    from recsys.errors import NotFittedError as NotFittedError
    from recsys.errors import OutOfRangeError as OutOfRangeError
    from recsys.errors import RecsysError as RecsysError
    from recsys.evaluation import evaluate as evaluate
    from recsys.rankers import list_rankers as list_rankers
    from recsys.rankers import load_ranker as load_ranker
    from recsys.rankers import make_ranker as make_ranker
    from recsys.rankers.all_subsets import AllSubsetsRanker as AllSubsetsRanker
    from recsys.rankers.als import ALS as ALS
    from recsys.rankers.auto import Auto as Auto
    from recsys.rankers.base import Ranker as Ranker
    from recsys.rankers.bayesian_fm import BayesianFM as BayesianFM
    from recsys.rankers.bilinear import BilinearRanker as BilinearRanker
    from recsys.rankers.blend import Blend as Blend
    from recsys.rankers.bpr import BPR as BPR
    from recsys.rankers.content import Content as Content
    from recsys.rankers.ease import EASE as EASE
    from recsys.rankers.fm import FM as FM
    from recsys.rankers.graph_filter import GraphFilter as GraphFilter
    from recsys.rankers.hofm import HOFM as HOFM
    from recsys.rankers.honfm import HONFMRanker as HONFMRanker
    from recsys.rankers.lmf import LMF as LMF
    from recsys.rankers.margin import CFKOMD as CFKOMD
    from recsys.rankers.margin import CFOMD as CFOMD
    from recsys.rankers.margin import ECFOMD as ECFOMD
    from recsys.rankers.msdw import MSDw as MSDw
    from recsys.rankers.neighbours import BM25 as BM25
    from recsys.rankers.neighbours import TFIDF as TFIDF
    from recsys.rankers.neighbours import Cosine as Cosine
    from recsys.rankers.pair_dnn import PairDNNRanker as PairDNNRanker
    from recsys.rankers.pair_svm import PairSVMRanker as PairSVMRanker
    from recsys.rankers.pairnet import PairNetRanker as PairNetRanker
    from recsys.rankers.popularity import Popularity as Popularity
    from recsys.rankers.random_features import RandomFeaturesRanker as RandomFeaturesRanker
    from recsys.rankers.slim import SLIM as SLIM
    from recsys.rankers.slist import SLIST as SLIST
    from recsys.rankers.sparse_fm import SparseFM as SparseFM
    from recsys.rankers.tifu_knn import TIFUKNN as TIFUKNN
    from recsys.rankers.user_knn import UserKNN as UserKNN
    from recsys.recommender import Recommender as Recommender
    from recsys.recommender import load as load

_HOMES = {
    "data": "Interactions",
    "datasets": "load_dataset",
    "errors": "CapabilityError DatasetError FitError InputError "
    "ModelFileError NotFittedError OutOfRangeError RecsysError",
    "evaluation": "evaluate",
    "rankers": "list_rankers load_ranker make_ranker",
    "rankers.all_subsets": "AllSubsetsRanker",
    "rankers.als": "ALS",
    "rankers.auto": "Auto",
    "rankers.base": "Ranker",
    "rankers.bayesian_fm": "BayesianFM",
    "rankers.bilinear": "BilinearRanker",
    "rankers.blend": "Blend",
    "rankers.bpr": "BPR",
    "rankers.content": "Content",
    "rankers.ease": "EASE",
    "rankers.fm": "FM",
    "rankers.graph_filter": "GraphFilter",
    "rankers.hofm": "HOFM",
    "rankers.honfm": "HONFMRanker",
    "rankers.lmf": "LMF",
    "rankers.margin": "CFKOMD CFOMD ECFOMD",
    "rankers.msdw": "MSDw",
    "rankers.neighbours": "BM25 TFIDF Cosine",
    "rankers.pair_dnn": "PairDNNRanker",
    "rankers.pair_svm": "PairSVMRanker",
    "rankers.pairnet": "PairNetRanker",
    "rankers.popularity": "Popularity",
    "rankers.random_features": "RandomFeaturesRanker",
    "rankers.slim": "SLIM",
    "rankers.slist": "SLIST",
    "rankers.sparse_fm": "SparseFM",
    "rankers.tifu_knn": "TIFUKNN",
    "rankers.user_knn": "UserKNN",
    "recommender": "Recommender load",
}
_HOME = {name: f"recsys.{module}" for module, names in _HOMES.items() for name in names.split()}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'recsys' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
