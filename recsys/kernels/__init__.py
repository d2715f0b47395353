"""Kernels of binary vectors, Gram matrices of a catalogue's items, and what they can express.

"Polato's thesis" is, here and in the other packages, M. Polato, *Definition and learning of
logic-based kernels for categorical data, and application to collaborative filtering* (PhD thesis,
University of Padova, 2018); numbers in brackets are its equations.
"""

from recsys.kernels import propositional
from recsys.kernels.base import Kernel, list_kernels, make_kernel
from recsys.kernels.expressiveness import (
    margin,
    mc_decomposition,
    more_general,
    normalized,
    radius,
    spectral_ratio,
)
from recsys.kernels.gram.dense import item_gram
from recsys.kernels.paths import degree_path

__all__ = [
    "Kernel",
    "degree_path",
    "item_gram",
    "list_kernels",
    "make_kernel",
    "margin",
    "mc_decomposition",
    "more_general",
    "normalized",
    "propositional",
    "radius",
    "spectral_ratio",
]
