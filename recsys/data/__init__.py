"""Interactions, their readers, the named datasets, generators and splits."""

from recsys.data.datasets import list_datasets, load_dataset
from recsys.data.generate import planted_catalogue
from recsys.data.interactions import Interactions
from recsys.data.readers import read_features, read_interactions
from recsys.data.splits import PROTOCOLS, Fold, split

__all__ = [
    "PROTOCOLS",
    "Fold",
    "Interactions",
    "list_datasets",
    "load_dataset",
    "planted_catalogue",
    "read_features",
    "read_interactions",
    "split",
]
