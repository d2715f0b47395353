"""Random feature maps: itemset and polynomial kernels for linear models."""

from recsys.random_features.itemsets import (
    CountableItemsetMap,
    ItemsetMap,
    redundant_feature_augmentation,
)
from recsys.random_features.kernel_maps import (
    RandomKernelMap,
    RandomMaclaurin,
    SignedCirculantMap,
    SparseRandomKernelMap,
    SubsampledRandomKernelMap,
    TensorSketch,
)
from recsys.random_features.maclaurin import DotProductMap

__all__ = [
    "CountableItemsetMap",
    "DotProductMap",
    "ItemsetMap",
    "RandomKernelMap",
    "RandomMaclaurin",
    "SignedCirculantMap",
    "SparseRandomKernelMap",
    "SubsampledRandomKernelMap",
    "TensorSketch",
    "redundant_feature_augmentation",
]
