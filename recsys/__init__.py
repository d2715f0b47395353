"""Recommendation on CPU that says why: kernels, linear models and factorisation as rankers."""

from recsys.errors import (
    CapabilityError,
    DatasetError,
    FitError,
    InputError,
    ModelFileError,
    NotFittedError,
    OutOfRangeError,
    RecsysError,
)
from recsys.rankers import list_rankers, load_ranker, make_ranker

__version__ = "0.1.0"

__all__ = [
    "CapabilityError",
    "DatasetError",
    "FitError",
    "InputError",
    "ModelFileError",
    "NotFittedError",
    "OutOfRangeError",
    "RecsysError",
    "list_rankers",
    "load_ranker",
    "make_ranker",
]
