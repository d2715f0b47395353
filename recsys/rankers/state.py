"""The learned state of a ranker: taken from its attributes for a file, and restored with checks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.utils import model_file

__all__ = ["State", "expect", "expect_csr", "is_csr", "state_of", "take_over"]


@dataclass(frozen=True)
class State:
    """The learned state of a ranker, apart from its class, as a file keeps it."""

    # A CSR matrix `x_` is `x_.data`, `x_.indices` and `x_.indptr`; a list of arrays `x_.0`, `x_.1`, ….
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    scalars: dict[str, Any] = field(default_factory=dict)  # JSON values, `x_.shape` of each CSR matrix
    parts: list[Any] = field(default_factory=list)  # the rankers that it consists of


def state_of(ranker: Any) -> State:
    """Return the state of a ranker: its attributes whose names end in _, and its `parts_`."""
    state = State()
    for key, value in vars(ranker).items():
        if not key.endswith("_"):
            continue
        if isinstance(value, np.ndarray):
            state.arrays[key] = value
        elif sp.issparse(value):
            for part in ("data", "indices", "indptr"):
                state.arrays[f"{key}.{part}"] = getattr(value, part)
            state.scalars[f"{key}.shape"] = list(value.shape)
        elif isinstance(value, list) and value and isinstance(value[0], np.ndarray):
            state.arrays.update({f"{key}.{k}": array for k, array in enumerate(value)})
        elif key == "parts_":
            state.parts.extend(value)
        elif value is not None:
            state.scalars[key] = value
    return state


def take_over(ranker: Any, state: State) -> None:
    """Give a ranker a state, checked as if it came from a stranger.

    A ValueError says that arrays are not finite, or do not fit each other.
    """
    own: dict[str, Any] = dict(state.scalars)
    arrays = dict(state.arrays)
    for key in [key for key in own if key.endswith("_.shape")]:
        name = key.removesuffix(".shape")
        own[name] = model_file.csr(name, arrays, own.pop(key))
    for key in sorted(arrays, key=lambda key: (len(key), key)):  # x_.2 before x_.10
        name, _, number = key.partition(".")
        if not number:
            own[name] = arrays[key]
        elif number == str(len(own.setdefault(name, []))):
            own[name].append(arrays[key])
        else:
            raise ValueError(f"{key} belongs to nothing")
    for key, value in own.items():
        if not key.isidentifier() or not key.endswith("_") or key.startswith("__"):
            raise ValueError(f"{key!r} is no name of a fitted attribute")
        for array in value if isinstance(value, list) else [value]:
            values = array.data if sp.issparse(array) else array
            floating = isinstance(values, np.ndarray) and values.dtype.kind == "f"
            if floating and not np.isfinite(values).all():
                raise ValueError(f"{key} holds NaN or infinity")
    for key in [key for key in vars(ranker) if key.endswith("_")]:
        delattr(ranker, key)
    vars(ranker).update(own)
    if state.parts:
        ranker.parts_ = state.parts
    users, items = ranker.n_users_, ranker.n_items_
    if not (type(users) is type(items) is int and users >= 1 and items >= 1):
        raise ValueError("n_users_ and n_items_ should be integers above 0")
    expect("popularity_", ranker.popularity_, (items,), np.float32)
    if (ranker.popularity_ < 0).any():
        raise ValueError("popularity_ has values below 0")
    if ranker.times_ is not None:
        expect_csr("times_", ranker.times_, (users, items), np.float64)
        if (ranker.times_.data < 0).any():
            raise ValueError("times_ has values below 0")


def expect(name: str, array: Any, shape: tuple[int, ...], dtype: type) -> None:
    """Refuse an array of another shape or dtype than the ranker computes with."""
    if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
        found = getattr(array, "shape", type(array).__name__)
        raise ValueError(f"{name} should be {np.dtype(dtype).name} of shape {shape}, not {found}")


def is_csr(matrix: Any, shape: tuple[int, int], dtype: type) -> bool:
    """Return whether something is a CSR matrix of a shape and dtype."""
    fits = sp.issparse(matrix) and matrix.format == "csr" and matrix.shape == shape
    return fits and matrix.dtype == dtype


def expect_csr(name: str, matrix: Any, shape: tuple[int, int], dtype: type) -> None:
    """Refuse what is no CSR matrix of this shape and dtype."""
    if not is_csr(matrix, shape, dtype):
        raise ValueError(f"{name} does not fit: it should be CSR of {np.dtype(dtype).name}, {shape}")
