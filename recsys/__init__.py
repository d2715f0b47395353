"""Explainable recommendation on the CPU: kernels, linear models and factorization machines as rankers.

`import recsys` is fast: the first access to a name imports its module.
"""

from __future__ import annotations

import importlib

from recsys.utils.distribution import __version__ as __version__

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
    from recsys.rankers.auto import Auto as Auto
    from recsys.rankers.base import Ranker as Ranker
    from recsys.rankers.blend import Blend as Blend
    from recsys.rankers.content import Content as Content
    from recsys.rankers.ease import EASE as EASE
    from recsys.rankers.factors import ALS as ALS
    from recsys.rankers.factors import BPR as BPR
    from recsys.rankers.factors import LMF as LMF
    from recsys.rankers.graph_filter import GraphFilter as GraphFilter
    from recsys.rankers.machines import FM as FM
    from recsys.rankers.machines import HOFM as HOFM
    from recsys.rankers.machines import AllSubsetsRanker as AllSubsetsRanker
    from recsys.rankers.machines import BilinearRanker as BilinearRanker
    from recsys.rankers.machines import PairNetRanker as PairNetRanker
    from recsys.rankers.machines import PairSVMRanker as PairSVMRanker
    from recsys.rankers.machines import RandomFeaturesRanker as RandomFeaturesRanker
    from recsys.rankers.machines import SparseFM as SparseFM
    from recsys.rankers.margin import CFKOMD as CFKOMD
    from recsys.rankers.margin import CFOMD as CFOMD
    from recsys.rankers.margin import ECFOMD as ECFOMD
    from recsys.rankers.msdw import MSDw as MSDw
    from recsys.rankers.neighbors import BM25 as BM25
    from recsys.rankers.neighbors import TFIDF as TFIDF
    from recsys.rankers.neighbors import Cosine as Cosine
    from recsys.rankers.neighbors import UserKNN as UserKNN
    from recsys.rankers.networks import HONFMRanker as HONFMRanker
    from recsys.rankers.networks import PairDNNRanker as PairDNNRanker
    from recsys.rankers.popularity import Popularity as Popularity
    from recsys.rankers.sequences import SLIST as SLIST
    from recsys.rankers.slim import SLIM as SLIM
    from recsys.recommender import Recommender as Recommender
    from recsys.recommender import load as load

_HOMES = {
    "data": "Interactions",
    "datasets": "load_dataset",
    "errors": "CapabilityError DatasetError FitError InputError "
    "ModelFileError NotFittedError OutOfRangeError RecsysError",
    "evaluation": "evaluate",
    "rankers": "list_rankers load_ranker make_ranker",
    "rankers.machines": "AllSubsetsRanker BilinearRanker FM HOFM "
    "PairNetRanker PairSVMRanker RandomFeaturesRanker SparseFM",
    "rankers.factors": "ALS BPR LMF",
    "rankers.auto": "Auto",
    "rankers.base": "Ranker",
    "rankers.blend": "Blend",
    "rankers.content": "Content",
    "rankers.ease": "EASE",
    "rankers.graph_filter": "GraphFilter",
    "rankers.networks": "HONFMRanker PairDNNRanker",
    "rankers.margin": "CFKOMD CFOMD ECFOMD",
    "rankers.msdw": "MSDw",
    "rankers.neighbors": "BM25 Cosine TFIDF UserKNN",
    "rankers.popularity": "Popularity",
    "rankers.slim": "SLIM",
    "rankers.sequences": "SLIST",
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
