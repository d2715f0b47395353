"""Rows that join objects which repeat: a user, an item, a context, each with its own features.

A row x = x_1 ⊕ … ⊕ x_B has A^m(x) = Σ A^t1(x_1) ⋯ A^tB(x_B) over t1 + … + tB = m: the ANOVA kernel over
a direct sum is the convolution of the tables of its parts. A part that many rows share is read once.

Source: Rendle, Scaling Factorization Machines to Relational Data (2013); for any order from (3.21) of
Atarashi's thesis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import jit
from recsys.errors import InputError
from recsys.fm.solvers.row_pairs import field_ends, label_parts

__all__ = ["Block", "find_blocks", "given_blocks"]

MOST = 12  # blocks that are looked for


@dataclass(frozen=True)
class Block:
    """Some columns of a matrix, and the distinct objects that its rows are made of there.

    Attributes
    ----------
    features : (features,) int64
        Which columns.
    rows : (objects, features) float64 CSR
        The objects.
    columns : CSC
        The same.
    of : (rows of the matrix,) int32
        The object in each row.
    ptr, entries : (objects + 1,) int64, (rows of the matrix,) int32
        The rows of each object, ascending.
    """

    features: NDArray[np.int64]
    rows: sp.csr_matrix
    columns: sp.csc_matrix
    of: NDArray[np.int32]
    ptr: NDArray[np.int64]
    entries: NDArray[np.int32]

    @classmethod
    def of_columns(cls, X: sp.csr_matrix, features: NDArray[np.int64]) -> Block:
        """Return the block of some columns."""
        part = sp.csr_matrix(X[:, features])
        part.sort_indices()
        of, first = _labels(part)
        return cls._indexed(features, sp.csr_matrix(part[first]), of)

    def reordered(self, order: NDArray[np.int64]) -> Block:
        """Return the block of the same rows in another order."""
        return self._indexed(self.features, self.rows, self.of[order])

    @classmethod
    def _indexed(
        cls, features: NDArray[np.int64], rows: sp.csr_matrix, of: NDArray[np.integer]
    ) -> Block:
        rows.sort_indices()
        columns = rows.tocsc()
        columns.sort_indices()
        ptr = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=rows.shape[0]))])
        entries = np.argsort(of, kind="stable").astype(np.int32)
        return cls(features, rows, columns, of.astype(np.int32), ptr.astype(np.int64), entries)


def given_blocks(X: sp.csr_matrix, widths: Sequence[int]) -> list[Block]:
    """Return blocks of so many columns each, from the first column on.

    Raises
    ------
    InputError
        If they are not all columns.
    """
    numbers = isinstance(widths, (list, tuple, np.ndarray)) and all(
        isinstance(w, (int, np.integer)) and not isinstance(w, bool) and w > 0 for w in widths
    )
    if not numbers or sum(widths) != X.shape[1]:
        raise InputError(
            f"blocks must be numbers of columns that add up to the {X.shape[1]} there are, not "
            f"{widths!r}"
        )
    ends = np.cumsum(widths)
    return [
        Block.of_columns(X, np.arange(end - width, end))
        for end, width in zip(ends.tolist(), widths, strict=True)
    ]


def find_blocks(X: sp.csr_matrix) -> list[Block]:
    """Return blocks that need few objects: each is a one-hot field, and all that is a function of it.

    Fields are runs of columns no two of which share a row, the widest first: a user's age, and the items
    that a user has had, are functions of who it is, and join the users.

    Parameters
    ----------
    X : (rows, features) float64 CSR
        Canonical.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> X = sp.csr_matrix([[1, 0, 1, 0, 7], [1, 0, 0, 1, 7], [0, 1, 1, 0, 9], [0, 1, 0, 1, 9.0]])
    >>> [block.features.tolist() for block in find_blocks(X)]
    [[0, 1, 4], [2, 3]]
    """
    columns = X.tocsc()
    left = np.flatnonzero(np.diff(columns.indptr))
    if len(left) == 0:
        return [Block.of_columns(X, np.arange(X.shape[1]))]
    blocks: list[Block] = []
    while len(left):
        if len(blocks) == MOST - 1:
            blocks.append(Block.of_columns(X, left))
            break
        rest = columns[:, left]
        ends = field_ends(rest.indptr, rest.indices, X.shape[0])
        starts = np.concatenate([[0], ends, [len(left)]])
        widest = int(np.argmax(np.diff(starts)))
        of, first = _labels(sp.csr_matrix(rest[:, starts[widest] : starts[widest + 1]]))
        differs = np.zeros(X.shape[1], dtype=np.bool_)
        _differing(X.indptr, X.indices, X.data, of, first, differs)
        mine = left[~differs[left]]
        blocks.append(Block._indexed(mine, sp.csr_matrix(X[first][:, mine]), of))
        left = left[differs[left]]
    unused = np.flatnonzero(np.diff(columns.indptr) == 0)
    if len(unused):  # they belong somewhere: a sampler draws their parameters from their prior
        block = blocks[0]
        features = np.sort(np.concatenate([block.features, unused]))
        firsts = block.entries[block.ptr[:-1]]
        blocks[0] = Block._indexed(features, sp.csr_matrix(X[firsts][:, features]), block.of)
    return blocks


def _labels(part: sp.csr_matrix) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which of the distinct rows each is, and where each of these comes first."""
    keys = np.random.default_rng(7).integers(1, 2**63, size=part.shape[1], dtype=np.uint64)
    of, _, first, _ = label_parts(part.indptr, part.indices, part.data, keys, part.shape[1])
    return of, first


# ---- kernels


@jit
def _differing(indptr, indices, data, of, first, out):
    """Mark the columns whose value in some row is not that of its label's first row."""
    for i in range(len(of)):
        p, q = indptr[i], indptr[first[of[i]]]
        end, last = indptr[i + 1], indptr[first[of[i]] + 1]
        while p < end or q < last:
            if q == last or (p < end and indices[p] < indices[q]):
                out[indices[p]] = True
                p += 1
            elif p == end or indices[q] < indices[p]:
                out[indices[q]] = True
                q += 1
            else:
                if data[p] != data[q]:
                    out[indices[p]] = True
                p += 1
                q += 1
