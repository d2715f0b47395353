"""Interactions, readers of tables, and protocols that split interactions."""

from recsys.data.interactions import Interactions
from recsys.data.reading import read_features
from recsys.data.splits import PROTOCOLS, Fold, Protocol, find_protocol, split

__all__ = [
    "PROTOCOLS",
    "Fold",
    "Interactions",
    "Protocol",
    "find_protocol",
    "read_features",
    "split",
]
