"""Kernel machines as scikit-learn estimators: KOMD, and learned combinations of kernels."""

from recsys.kernel_machines.komd import KOMD
from recsys.kernel_machines.mkl import GRAM, RMKL, AverageMKL, EasyMKL, radius_margin_ratio

__all__ = ["GRAM", "KOMD", "RMKL", "AverageMKL", "EasyMKL", "radius_margin_ratio"]
