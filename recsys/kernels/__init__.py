"""Kernels of binary vectors, and Gram matrices of a catalogue's items."""

from recsys.kernels.base import Kernel, list_kernels, make_kernel
from recsys.kernels.gram import item_gram

__all__ = ["Kernel", "item_gram", "list_kernels", "make_kernel"]
