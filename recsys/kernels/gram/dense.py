"""The dense item Gram matrix of a user × item matrix: a view of its co-occurrence counts.

One triangle of counts is turned into kernel values, row by row, and mirrored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import borrowed, in_parts, jit, parallel
from recsys.errors import InputError
from recsys.kernels.base import Kernel, make_kernel
from recsys.kernels.gram.counts import ItemCounts, columns, dense_counts, mirror
from recsys.kernels.plans import CONJUNCTION, LINEAR, Centre, Plan, centre, centred, scaled, weights
from recsys.utils.memory import check_memory
from recsys.utils.validation import clean_matrix

IN_PYTHON = 200  # operations of NumPy in the time of an entry in Python


def item_gram(
    user_items: sp.csr_matrix, kernel: Kernel | str, *, normalize: bool = True
) -> NDArray[np.float32]:
    """Return the Gram matrix of the columns of `user_items`.

    Parameters
    ----------
    user_items : (users, items) array or sparse matrix
        An entry above 0 counts as 1, all others as 0.
    kernel : Kernel or str
        A kernel, or the name of one with its defaults.
        Evaluated on the items as vectors over n = users.
    normalize : bool
        Scale to unit diagonal; a null item gets 1 there and 0 elsewhere. So does a cold
        item, under every kernel (also where two empty vectors are alike, as under
        `tanimoto`): nothing is known that it could be similar by.

    Returns
    -------
    (items, items) float32, symmetric

    Raises
    ------
    InputError
        If `user_items` is no matrix of finite numbers, the result would not fit the memory that is free,
        or a parameter does not fit n.

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
    user_items = clean_matrix(user_items)
    kernel = make_kernel(kernel) if isinstance(kernel, str) else kernel
    items = user_items.shape[1]
    check_memory(4 * items * items, f"the item × item matrix of {items:,} items")
    out = _derived(dense_counts(user_items), kernel.checked_plan(user_items.shape[0]), normalize, None)
    if not np.isfinite(out).all():
        raise InputError(f"{kernel} leaves the range of float32 on these items: normalise it")
    return out


def weighted_gram(user_items: sp.csr_matrix, votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return R.T @ diag(votes) @ R of a binary canonical R, (items, items) float64 in Fortran order."""
    m = user_items.shape[1]
    layout = columns(user_items)
    out: NDArray[np.float64] = np.zeros((m, m))
    with parallel() as threads:
        in_parts(
            threads, _sum_dense, user_items.indptr, user_items.indices, layout.indptr, layout.indices,
            layout.data, votes, out,
        )  # fmt: skip
        in_parts(threads, mirror, out)
    return out.T  # symmetric


def centred_gram(
    counts: ItemCounts, kernel: Kernel
) -> tuple[NDArray[np.floating], NDArray[np.float64] | None]:
    """Return the normalised item matrix of dense counts in a form that keeps its digits, and t.

    Where the kernel's values tend to 1 on these items (disjunctions of high degree, kernels of literals
    on sparse data), 1 − K has lost its digits long before K leaves float32. There the matrix is centred
    on a reference vector, K'ᵢⱼ = Kᵢⱼ − tᵢ − tⱼ, which changes neither a program over a simplex nor a
    ranking by scores less a mean of others (`recsys.kernels.plans.centre`). Elsewhere it is K, and t is
    None. It is float32, or float64 where entries of K' leave its range.
    """
    plan = kernel.checked_plan(counts.vectors)
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
    if plan.code == LINEAR and around is None and _fill.small(items * items):
        np.multiply(counts.together, w[:, None] * w, out=out, casting="unsafe")
        np.fill_diagonal(out, sizes * w * w)
    else:
        _fill_in_parts(counts, plan, w, short, missed, out)
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


def _fill_in_parts(
    counts: ItemCounts, plan: Plan, w: NDArray[np.float64], short: Any, missed: Any, out: Any
) -> None:
    """Turn counts into kernel values, one triangle, and mirror it."""
    arrays = (
        counts.together, counts.sizes, plan.code, plan.logarithmic, plan.zero_at_zero, w, short, missed,
        plan.par, plan.table, out,
    )  # fmt: skip
    if _fill.small(IN_PYTHON * out.size):
        with np.errstate(all="ignore"):
            _fill.plain(0, 1, *arrays)
        below = np.tri(len(out), k=-1, dtype=np.bool_)
        out[below] = out.T[below]
        return
    with parallel() as threads:
        in_parts(threads, _fill, *arrays)
        in_parts(threads, mirror, out)


# ---- kernels


@jit
def _sum_dense(first, stride, indptr, indices, item_ptr, item_users, position, votes, out):
    """Sum the votes of pairs into the upper triangle, row by row."""
    for i in range(first, len(out), stride):
        row = out[i]
        for k in range(item_ptr[i], item_ptr[i + 1]):
            vote = votes[item_users[k]]
            for p in range(position[k], indptr[item_users[k] + 1]):
                row[indices[p]] += vote


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
