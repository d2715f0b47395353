"""Random feature maps: itemset and polynomial kernels for linear models."""

from recsys.random_features.itemsets import ItemsetMap
from recsys.random_features.kernel_maps import (
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
