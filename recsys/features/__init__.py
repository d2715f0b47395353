"""Random feature maps: itemset and polynomial kernels for linear models."""

from recsys.features.itemsets import ItemsetMap
from recsys.features.maps import (
    RandomKernelMap,
    RandomMaclaurin,
    SignedCirculantMap,
    SparseRandomKernelMap,
    SubsampledRandomKernelMap,
    TensorSketch,
    redundant_feature_augmentation,
)

__all__ = [
    "ItemsetMap",
    "RandomKernelMap",
    "RandomMaclaurin",
    "SignedCirculantMap",
    "SparseRandomKernelMap",
    "SubsampledRandomKernelMap",
    "TensorSketch",
    "redundant_feature_augmentation",
]
