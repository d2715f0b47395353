"""Kernel machines as scikit-learn estimators: KOMD, and learned combinations of kernels."""

from recsys.machines.komd import KOMD
from recsys.machines.mkl import GRAM, RMKL, AverageMKL, EasyMKL

__all__ = ["GRAM", "KOMD", "RMKL", "AverageMKL", "EasyMKL"]
