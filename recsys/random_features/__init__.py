"""Random feature maps: itemset and polynomial kernels for linear models."""

from recsys.random_features.bounds import components_for, error_bound
from recsys.random_features.itemsets import CountableItemsetMap, ItemsetMap
from recsys.random_features.kernel_maps import (
    RandomKernelMap,
    SignedCirculantMap,
    SparseRandomKernelMap,
    SubsampledRandomKernelMap,
    TensorSketch,
    redundant_feature_augmentation,
)
from recsys.random_features.maclaurin import (
    DotProductMap,
    RandomMaclaurin,
    SparseRandomMaclaurin,
    SubsampledRandomMaclaurin,
)

__all__ = [
    "CountableItemsetMap",
    "DotProductMap",
    "ItemsetMap",
    "RandomKernelMap",
    "RandomMaclaurin",
    "SignedCirculantMap",
    "SparseRandomKernelMap",
    "SparseRandomMaclaurin",
    "SubsampledRandomKernelMap",
    "SubsampledRandomMaclaurin",
    "TensorSketch",
    "components_for",
    "error_bound",
    "redundant_feature_augmentation",
]
