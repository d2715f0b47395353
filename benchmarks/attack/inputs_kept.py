"""One table in every layout, given to everything that takes one: equal results, and not a byte of it changed.

Dense arrays in the order of rows, of columns, with strides, reversed, that cannot be written to; sparse
ones of every format, with unsorted indices, long indices, indices and values that cannot be written to.
Each result is compared with that of the plainest layout of its kind, bit for bit.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp

import recsys.fm
import recsys.kernel_machines
import recsys.kernels
import recsys.random_features
from benchmarks.attack.common import Result, in_batches
from benchmarks.attack.tables import SMALL, likes
from recsys import list_rankers, make_ranker
from recsys.errors import RecsysError

ROWS, COLUMNS = 24, 9
SHORT = {
    "max_iter": 5,
    "iterations": 2,
    "n_components": 8,
    "random_state": 0,
    "rank": 2,
    "degree": 2,
    "samples": 4,
}


def unsorted(matrix: Any) -> Any:
    """Return a matrix with the indices of each row the wrong way round."""
    out = sp.csr_matrix(matrix, copy=True)
    for first, end in zip(out.indptr[:-1], out.indptr[1:], strict=True):
        out.indices[first:end] = out.indices[first:end][::-1].copy()
        out.data[first:end] = out.data[first:end][::-1].copy()
    out.has_sorted_indices = False
    return out


def long_indices(matrix: Any) -> Any:
    out = sp.csr_matrix(matrix, copy=True)
    out.indices, out.indptr = out.indices.astype(np.int64), out.indptr.astype(np.int64)
    return out


def frozen(given: Any) -> Any:
    """Return a copy that cannot be written to."""
    out = given.copy()
    for array in arrays(out).values():
        array.flags.writeable = False
    return out


def wide(dense: np.ndarray, step: int) -> np.ndarray:
    """Return the same values, every one so many places from the next."""
    out = np.full((dense.shape[0], abs(step) * dense.shape[1]), 7.0)
    out = out[:, :: abs(step)] if step > 0 else out[:, ::step]
    out[...] = dense
    return out


DENSE: dict[str, Callable[[np.ndarray], Any]] = {
    "rows": np.ascontiguousarray, "columns": np.asfortranarray, "strides": lambda x: wide(x, 3),
    "reversed": lambda x: wide(x, -1), "read-only": frozen, "big-endian": lambda x: x.astype(">f8"),
}  # fmt: skip
SPARSE: dict[str, Callable[[np.ndarray], Any]] = {
    "csr": sp.csr_matrix, "csc": sp.csc_matrix, "coo": sp.coo_matrix, "csr array": sp.csr_array,
    "lil": sp.lil_matrix, "unsorted": unsorted, "long indices": long_indices, "read-only csr": lambda x: frozen(sp.csr_matrix(x)),
    "read-only unsorted": lambda x: frozen(unsorted(x)),
}  # fmt: skip


def arrays(given: Any) -> dict[str, np.ndarray]:
    """Return the arrays that a matrix is made of, by name."""
    if isinstance(given, np.ndarray):
        return {"values": given}
    names = ("data", "indices", "indptr", "row", "col", "rows")
    return {
        name: getattr(given, name)
        for name in names
        if isinstance(getattr(given, name, None), np.ndarray)
    }


def content(given: Any) -> dict[str, tuple[Any, ...]]:
    """Return all that a caller can see of a matrix: bytes, kinds and places in memory."""
    return {
        name: (array.dtype.str, array.shape, array.strides, array.ctypes.data,
               repr(array.tolist()) if array.dtype == object else array.tobytes())
        for name, array in arrays(given).items()
    }  # fmt: skip


@cache
def tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a dense table of zeros and ones, a table of numbers, and labels."""
    rng = np.random.default_rng(0)
    binary = (rng.random((ROWS, COLUMNS)) < 0.45).astype(float)
    return (
        binary,
        np.round(binary * rng.random((ROWS, COLUMNS)), 2),
        np.where(binary[:, 0] > 0, 1.0, -1.0),
    )


def result_of(made: Any, table: Any) -> list[Any]:
    """Return what something computes of a table."""
    labels = tables()[2]
    if isinstance(made, recsys.kernels.Kernel):
        return [made(table, table)]
    made.fit(table, labels)
    found = [
        getattr(made, name)(table)
        for name in ("predict", "decision_function", "transform")
        if hasattr(made, name)
    ]
    return [one.toarray() if sp.issparse(one) else np.asarray(one) for one in found]


def dense_of(table: Any) -> np.ndarray:
    return np.asarray(table.toarray() if sp.issparse(table) else table, dtype=np.float64)


@cache
def subjects() -> dict[str, Callable[[Any], list[Any]]]:
    """Return what takes a table: kernels, estimators, machines, maps and rankers."""
    found: dict[str, Callable[[Any], list[Any]]] = {}
    for package in (recsys.kernels, recsys.fm, recsys.kernel_machines, recsys.random_features):
        for name in package.__all__:
            thing = getattr(package, name)
            takes = inspect.isclass(thing) and (
                issubclass(thing, recsys.kernels.Kernel) or hasattr(thing, "fit")
            )
            if takes and not inspect.isabstract(thing) and name not in ("PairEncoder", "Kernel"):
                known = inspect.signature(thing).parameters
                short = {key: value for key, value in SHORT.items() if key in known}
                found[name] = lambda table, thing=thing, short=short: result_of(thing(**short), table)
    for name in list_rankers():

        def ranked(table: Any, name: str = name) -> list[Any]:
            ranker = make_ranker(name, **SMALL.get(name, {})).fit(table, show_progress=False)
            sliced = sp.issparse(table) and hasattr(table, "indptr")
            # of a dense one in either byte order, which SciPy alone refuses
            rows = table[:5] if sliced else sp.csr_matrix(dense_of(table))[:5]
            known = ranker.recommend(np.arange(5), rows, 4)
            return [known.ids, known.scores]

        found[name] = ranked
    return found


@cache
def plainest(name: str, table: int, dense: bool) -> tuple[Any, str]:
    """Return what the plainest layout gives, and why it gives nothing, if so."""
    values = tables()[table] if name not in list_rankers() else likes(40, 20).toarray().astype(float)
    try:
        return subjects()[name]((DENSE["rows"] if dense else SPARSE["csr"])(values)), ""
    except RecsysError as error:
        return None, str(error)


def case_of(number: int, seed: int) -> tuple[str, str, int, str]:
    """Return what is given which table in which layout."""
    random = Random(
        f"{seed}:{number // 4}"
    )  # four layouts of one table in a row: what is compiled is used
    name, table, dense = random.choice(sorted(subjects())), random.randrange(2), random.random() < 0.5
    layout = Random(f"{seed}:{number}").choice(sorted(DENSE if dense else SPARSE))
    return f"{name}, {('zeros and ones', 'numbers')[table]}, {layout}", name, table, layout


def attempt(number: int, seed: int) -> tuple[str, str, str]:
    """Give one table in one layout; return the description, the ending and what is wrong with it."""
    told, name, table, layout = case_of(number, seed)
    values = tables()[table] if name not in list_rankers() else likes(40, 20).toarray().astype(float)
    given = (DENSE | SPARSE)[layout](values)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        wanted, refused = plainest(name, table, layout in DENSE)
        before = content(given)
        try:
            found = subjects()[name](given)
        except RecsysError as error:
            right = refused or "big-endian" in layout
            return told, "refused", "" if right else f"refused, unlike the plainest layout: {error}"
        except Exception as error:
            return told, "other error", f"{type(error).__name__}: {error}"
    after = content(given)
    changed = [key for key in before if before[key] != after.get(key)]
    if changed:
        return told, "changed", f"the caller's {', '.join(changed)} changed"
    if refused:
        return told, "taken", f"the plainest layout was refused: {refused}"
    same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found, wanted, strict=True))
    return (
        told,
        "same bits" if same else "wrong",
        "" if same else "another result than of the plainest layout",
    )


def run(seconds: float, seed: int) -> Result:
    result = Result()
    subjects()
    in_batches(
        result,
        seconds,
        seed,
        lambda number: attempt(number, seed),
        lambda number: case_of(number, seed)[0],
    )
    result.notes.append(f"{len(subjects())} kernels, estimators, machines, maps and rankers")
    return result
