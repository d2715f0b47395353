"""Kernels of binary vectors, Gram matrices of items, and measures of expressiveness.

"Polato's thesis" is, here and in the other packages, M. Polato, *Definition and learning of
logic-based kernels for categorical data, and application to collaborative filtering* (PhD thesis,
University of Padova, 2018); numbers in brackets are its equations.
"""

from recsys.kernels import propositional
from recsys.kernels.base import Kernel, list_kernels, make_kernel
from recsys.kernels.boolean import (
    ConjunctiveKernel,
    DisjunctiveKernel,
    LiteralKernel,
    MonotoneConjunctiveKernel,
    MonotoneDisjunctiveKernel,
    NegationKernel,
    degree_path,
)
from recsys.kernels.dot_product import (
    HomogeneousPolynomialKernel,
    LinearKernel,
    PolynomialKernel,
    RBFKernel,
    TanimotoKernel,
)
from recsys.kernels.expressiveness import (
    approximate_radius,
    margin,
    mc_decomposition,
    more_general,
    normalized,
    radius,
    spectral_ratio,
)
from recsys.kernels.item_gram import item_gram
from recsys.kernels.normal_forms import (
    CNFKernel,
    DNFKernel,
    MonotoneCNFKernel,
    MonotoneDNFKernel,
    MonotoneDNFSumKernel,
)
from recsys.kernels.propositional import Expression
from recsys.kernels.sums import (
    AllSubsetsKernel,
    MonotoneConjunctiveSumKernel,
    SadoharaDNFKernel,
    SadoharaMonotoneDNFKernel,
)

__all__ = [
    "AllSubsetsKernel",
    "CNFKernel",
    "ConjunctiveKernel",
    "DNFKernel",
    "DisjunctiveKernel",
    "Expression",
    "HomogeneousPolynomialKernel",
    "Kernel",
    "LinearKernel",
    "LiteralKernel",
    "MonotoneCNFKernel",
    "MonotoneConjunctiveKernel",
    "MonotoneConjunctiveSumKernel",
    "MonotoneDNFKernel",
    "MonotoneDNFSumKernel",
    "MonotoneDisjunctiveKernel",
    "NegationKernel",
    "PolynomialKernel",
    "RBFKernel",
    "SadoharaDNFKernel",
    "SadoharaMonotoneDNFKernel",
    "TanimotoKernel",
    "approximate_radius",
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
