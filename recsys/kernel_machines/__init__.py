"""Kernel machines as scikit-learn estimators: KOMD, and learned combinations of kernels."""

from recsys.kernel_machines.komd import KOMD
from recsys.kernel_machines.mkl import GRAM, RMKL, AverageMKL, EasyMKL
from recsys.kernel_machines.selection import Selected, radius_margin_ratio, select_by_ratio

__all__ = [
    "GRAM",
    "KOMD",
    "RMKL",
    "AverageMKL",
    "EasyMKL",
    "Selected",
    "radius_margin_ratio",
    "select_by_ratio",
]
