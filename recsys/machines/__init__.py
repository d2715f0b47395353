"""Kernel machines as scikit-learn estimators: KOMD, and learned combinations of kernels."""

from recsys.machines.komd import KOMD
from recsys.machines.mkl import GRAM, RMKL, AverageMKL, EasyMKL
from recsys.machines.selection import Selected, radius_margin_ratio, select_by_ratio
from recsys.machines.svm import SoftMarginSVM

__all__ = [
    "GRAM",
    "KOMD",
    "RMKL",
    "AverageMKL",
    "EasyMKL",
    "Selected",
    "SoftMarginSVM",
    "radius_margin_ratio",
    "select_by_ratio",
]
