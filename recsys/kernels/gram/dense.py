"""The dense item Gram matrix of a user × item matrix: a view of its co-occurrence counts.

One triangle of counts is turned into kernel values, row by row, and mirrored.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import borrowed, in_parts, jit, parallel
from recsys.errors import InputError
from recsys.kernels.base import Kernel
from recsys.kernels.gram.counts import ItemCounts, dense_counts, mirror
from recsys.kernels.plans import CONJUNCTION, LINEAR, Centre, Plan, centre, centred, scaled, weights
from recsys.utils.memory import check_memory


def item_gram(
    user_items: sp.csr_matrix, kernel: Kernel, *, normalize: bool = True
) -> NDArray[np.float32]:
    """Return the Gram matrix of the columns of `user_items`.

    Parameters
    ----------
    user_items : (users, items) CSR
        Binary: every stored entry counts as 1. Indices sorted, no duplicates.
    kernel : Kernel
        Evaluated on the items as vectors over n = users.
    normalize : bool
        Scale to unit diagonal; a null item gets 1 there and 0 elsewhere. So does an item
        nobody has, under every kernel (also where two empty vectors are alike, as under
        `tanimoto`): nothing is known that it could be similar by.

    Returns
    -------
    (items, items) float32, symmetric

    Raises
    ------
    InputError
        If the matrix would not fit the memory that is free, or a parameter does not fit n.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from recsys.kernels import LinearKernel, item_gram
    >>> R = sp.csr_matrix([[1, 1, 0], [1, 0, 0], [0, 1, 1]], dtype="float32")
    >>> item_gram(R, LinearKernel(), normalize=False)
    array([[2., 1., 0.],
           [1., 2., 1.],
           [0., 1., 1.]], dtype=float32)
    """
    items = user_items.shape[1]
    check_memory(4 * items * items, f"the item × item matrix of {items:,} items")
    out = _derived(dense_counts(user_items), kernel.plan(user_items.shape[0]), normalize, None)
    if not np.isfinite(out).all():
        raise InputError(f"{kernel} leaves the range of float32 on these items: normalise it")
    return out


def centred_gram(
    counts: ItemCounts, kernel: Kernel
) -> tuple[NDArray[np.floating], NDArray[np.float64] | None]:
    """Return the normalised item matrix in the form that keeps its digits, and how to undo that.

    Where the kernel's values tend to 1 on these items (disjunctions of high degree, kernels of
    literals on sparse data), 1 − K has lost its digits long before K leaves float32. There the matrix is
    centred on a reference vector, K'ᵢⱼ = Kᵢⱼ − tᵢ − tⱼ, which changes neither a program over a simplex
    nor a ranking by scores less a mean of others (`recsys.kernels.plans.centre`).

    Parameters
    ----------
    counts : ItemCounts
        In dense form.
    kernel : Kernel

    Returns
    -------
    gram : (items, items), symmetric
        K or K'; float32, or float64 where entries of K' leave its range.
    offsets : (items,) float64 or None
        t; None where the matrix is K itself.

    Raises
    ------
    InputError
        As `item_gram`.
    """
    plan = kernel.plan(counts.vectors)
    if counts.sizes.dtype.kind == "f":  # weighed vectors: the linear kernel, by their norms
        own = np.where(counts.sizes > 0, counts.sizes, 1.0)
        scale = np.where(counts.sizes > 0, 1.0 / np.sqrt(own), 0.0)
        gram = np.zeros(counts.together.shape, dtype=np.float32)
        np.multiply(counts.together, scale[:, None] * scale, out=gram, casting="unsafe")
        np.fill_diagonal(gram, 1.0)
        return gram, None
    around = centre(plan, counts.sizes)
    gram = _derived(counts, plan, True, around)
    return gram, None if around is None else 0.5 - around.short


def _derived(
    counts: ItemCounts, plan: Plan, normalize: bool, around: Centre | None
) -> NDArray[np.floating]:
    items, sizes = len(counts.sizes), counts.sizes
    dtype = np.float32 if around is None else around.dtype
    check_memory(np.dtype(dtype).itemsize * items * items, f"the item × item matrix of {items:,} items")
    w = weights(plan, sizes, normalize)
    if not normalize and not plan.logarithmic:
        w = np.full(items, np.exp(0.5 * plan.log_scale))
    out: NDArray[np.floating] = np.empty((items, items), dtype=dtype)
    short = np.zeros(0) if around is None else around.short
    missed = np.zeros(0) if around is None else around.missed
    with parallel() as threads:
        in_parts(
            threads, _fill, counts.together, sizes, plan.code, plan.logarithmic, plan.zero_at_zero, w,
            short, missed, plan.par, plan.table, out,
        )  # fmt: skip
        in_parts(threads, mirror, out)
    unseen = np.flatnonzero(sizes == 0)
    if around is not None:  # K' of two vectors of which one is null is the other's 1 − K(·, r)
        np.fill_diagonal(out, 2.0 * short)
        out[unseen], out[:, unseen] = short, short[:, None]
        out[unseen, unseen] = 2.0
    elif normalize:
        out[unseen] = 0.0
        out[:, unseen] = 0.0
        np.fill_diagonal(out, 1.0)
    return out


# ---- kernels


@jit
def _fill(
    first, stride, together, sizes, code, logarithmic, zero_at_zero, w, short, missed, par, table, out
):
    together, sizes, w, par, table, out = borrowed((together, sizes, w, par, table, out))
    m = len(sizes)
    for i in range(first, m, stride):  # interleaved: rows of a triangle differ in length
        count = together[i]
        if len(short):
            a, wi, ei, mi = sizes[i], w[i], short[i], missed[i]
            for j in range(i + 1, m):
                out[i, j] = centred(
                    code, logarithmic, np.int64(count[j]), a, sizes[j], wi, w[j], ei, short[j], mi,
                    missed[j], par, table,
                )  # fmt: skip
        else:
            _row(i, m, count, sizes, code, logarithmic, zero_at_zero, w, par, table, out)


@jit
def _row(i, m, count, sizes, code, logarithmic, zero_at_zero, w, par, table, out):
    """Turn the counts of row i into kernel values from the diagonal on."""
    a, wi = sizes[i], w[i]
    out[i, i] = scaled(code, logarithmic, a, a, a, wi, wi, par, table)
    if code == LINEAR:  # a loop that vectorises
        for j in range(i + 1, m):
            out[i, j] = count[j] * (wi * w[j])
    elif code == CONJUNCTION and zero_at_zero:  # the logarithm of a table: no call per entry
        for j in range(i + 1, m):
            out[i, j] = 0.0
            if count[j] > 0:
                shift = table[count[j]] - wi - w[j]
                out[i, j] = np.exp(shift) if shift > -np.inf else 0.0
    elif zero_at_zero:
        for j in range(i + 1, m):
            out[i, j] = 0.0
            if count[j] > 0:
                out[i, j] = scaled(
                    code, logarithmic, np.int64(count[j]), a, sizes[j], wi, w[j], par, table
                )
    else:
        for j in range(i + 1, m):
            out[i, j] = scaled(code, logarithmic, np.int64(count[j]), a, sizes[j], wi, w[j], par, table)
