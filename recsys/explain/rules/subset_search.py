"""Sets of users whose items weigh most: branch and bound over all sets, with a bound at any time.

Items of all users of a set (`top_sets`), or of one of them (`top_unions`). A set that gains a
member loses items of the first kind, so that their positive weight bounds the weight of every larger
set. Of the second kind it gains no more than its further members would bring one by one. Sets below the
bound are never visited. Weights are integers here, so that their sums do not depend on the order and
equal weights are recognised.
"""

from __future__ import annotations

from math import frexp
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import jit
from recsys.utils.memory import check_memory

BITS = 61  # of the sum of all absolute weights: no sum of some of them leaves int64


class TopSets(NamedTuple):
    """Sets of columns with the largest weights, and the guarantee of the search.

    `support` counts the marked rows that hold each set. No set that is not listed weighs more than
    `bound`, 0 or above. `stopped`: the search stopped at its limit of work, entries of rows that were
    looked at.
    """

    sets: list[tuple[int, ...]]
    weights: NDArray[np.int64]
    support: NDArray[np.int64]
    bound: int
    stopped: bool
    work: int


def whole_weights(weights: NDArray[np.float64], times: int = 1) -> tuple[NDArray[np.int64], int]:
    """Return weights as integers, and the power of 2 that they were multiplied with.

    The sum of all absolute ones, so many times, stays below 2⁶². Of n weights a sum is off by at most
    n/2 of 2^−power, which is at most 2⁻⁶⁰·times of the sum of all absolute weights.
    """
    total = float(np.abs(weights).sum()) * times
    power = BITS - frexp(total)[1] if total > 0 else 0
    return np.rint(np.ldexp(weights, power)).astype(np.int64), power


def top_sets(
    rows: sp.csr_matrix, weights: NDArray[np.int64], marked: NDArray[np.bool_], least_size: int,
    most_size: int, number: int, min_support: int, budget: int,
) -> TopSets:  # fmt: skip
    """Return the sets of columns whose rows weigh most together, of those that weigh more than 0.

    A row of the binary canonical CSR holds a set if it has all of its columns. The absolute values of
    the integer weights sum to less than 2⁶². `marked` rows are all of positive weight, and others that
    count as support: at least `min_support` of them hold a set. `budget` bounds the entries of rows that
    are looked at.

    Where the search came to its end: the first `number` of all sets, the largest weights first. Of those
    that weigh the same that one comes first whose columns do: columns come by their own positive weight,
    then by number. If the tables of the search would not fit the memory that is free, it is an
    InputError.
    """
    columns = rows.shape[1]
    positive = np.zeros(columns, dtype=np.int64)
    owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    np.add.at(positive, rows.indices, np.maximum(weights, 0)[owner])
    order = np.lexsort((np.arange(columns), -positive))
    order = order[positive[order] > 0]  # a set with another one holds nothing that weighs more than 0
    place = np.full(columns, -1, dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    kept = place[rows.indices] >= 0
    by_row = sp.csr_matrix(
        (np.ones(int(kept.sum()), np.int8), (owner[kept], place[rows.indices][kept])),
        (rows.shape[0], len(order)),
    )
    by_row.sort_indices()
    deepest = min(most_size, int(np.diff(by_row.indptr).max(initial=0)))
    if len(order) == 0 or deepest < least_size:
        return _none()
    by_column = by_row.tocsc()
    by_column.sort_indices()
    longest = int(np.diff(by_column.indptr).max())
    check_memory(
        deepest * (28 * len(order) + 4 * longest) + number * 4 * deepest,
        f"a search through sets of {deepest} of {len(order):,}",
    )
    sets, sizes, sums, support, count, bound, stopped, work = _search(
        by_row.indptr.astype(np.int64), by_row.indices, by_column.indptr.astype(np.int64),
        by_column.indices, weights, marked, least_size, deepest, number, min_support, budget,
    )  # fmt: skip
    named = [tuple(sorted(order[sets[k, : sizes[k]]].tolist())) for k in range(count)]
    return TopSets(named, sums[:count], support[:count], int(bound), bool(stopped), int(work))


def top_unions(
    rows: sp.csr_matrix, weights: NDArray[np.int64], marked: NDArray[np.bool_],
    touching: NDArray[np.bool_], size: int, number: int, min_support: int, budget: int,
) -> TopSets:  # fmt: skip
    """Return the sets of `size` columns with the largest total weight of the rows that have any of them.

    What r further columns add is at most the sum of the r largest p − ⌊n/r⌋, p and n the positive and
    the negative weight that a column alone would add: together they cost at least the mean of each cost.

    Arguments and result are as those of `top_sets`, but a row holds a set if it has one of its columns,
    absolute weights, times `size`, sum to less than 2⁶², and columns come by their own weight, then by
    number. One column of a set must be of those that `touching`, (columns,) bool, marks.
    """
    columns = rows.shape[1]
    if columns < size or not touching.any():
        return _none()
    own = np.zeros(columns, dtype=np.int64)
    owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    np.add.at(own, rows.indices, weights[owner])
    order = np.lexsort((np.arange(columns), -own))
    by_row = sp.csr_matrix(rows[:, order])
    by_row.sort_indices()
    by_column = by_row.tocsc()
    by_column.sort_indices()
    check_memory(size * 36 * columns, f"a search through sets of {size} of {columns:,}")
    sets, sums, support, count, bound, stopped, work = _search_unions(
        by_row.indptr.astype(np.int64), by_row.indices, by_column.indptr.astype(np.int64),
        by_column.indices, weights, marked, touching[order], size, number, min_support, budget,
    )  # fmt: skip
    named = [tuple(sorted(order[sets[k]].tolist())) for k in range(count)]
    return TopSets(named, sums[:count], support[:count], int(bound), bool(stopped), int(work))


def _none() -> TopSets:
    nothing = np.zeros(0, np.int64)
    return TopSets([], nothing, nothing, 0, False, 0)


# ---- kernels


@jit
def _search(
    row_ptr, row_columns, column_ptr, column_rows, weights, marked, least, most, number, min_support,
    budget,
):  # fmt: skip
    """Go through sets in the order of their columns, each before those that it begins.

    At depth t a set of t columns is held by rows[t], and each further column v would make a set of
    weight[t, v], held by support[t, v] marked rows; none that this begins weighs more than limit[t, v],
    and none that begins with it or with a later one more than rest[t, v].
    """
    n, longest = len(column_ptr) - 1, 0
    for v in range(n):
        longest = max(longest, column_ptr[v + 1] - column_ptr[v])
    rows = np.zeros((most, longest), dtype=np.int32)
    lengths = np.zeros(most, dtype=np.int64)
    weight = np.zeros((most, n), dtype=np.int64)
    limit = np.zeros((most, n), dtype=np.int64)
    rest = np.zeros((most, n + 1), dtype=np.int64)
    support = np.zeros((most, n), dtype=np.int32)
    held = np.zeros(len(weights), dtype=np.bool_)
    chosen = np.zeros(most, dtype=np.int64)
    at = np.zeros(most, dtype=np.int64)
    found, sizes, sums, supports = _empty(number, most)
    count, work, floor = 0, 0, 0
    depth, enter, stopped = 0, True, False
    while depth >= 0:
        if enter:
            enter = False
            first = 0 if depth == 0 else chosen[depth - 1] + 1
            for v in range(first, n):
                weight[depth, v], limit[depth, v], support[depth, v] = 0, 0, 0
            exact = depth + 1 >= least
            work += n - first
            for r in range(len(weights) if depth == 0 else lengths[depth]):
                i = r if depth == 0 else rows[depth, r]
                w = weights[i]
                if not exact and not marked[i]:
                    continue
                up = max(w, 0)
                one = 1 if marked[i] else 0
                p = row_ptr[i + 1] - 1
                while p >= row_ptr[i] and row_columns[p] >= first:
                    v = row_columns[p]
                    weight[depth, v] += w
                    limit[depth, v] += up
                    support[depth, v] += one
                    p -= 1
                work += row_ptr[i + 1] - 1 - p
            rest[depth, n] = 0
            for v in range(n - 1, first - 1, -1):
                able = support[depth, v] >= min_support
                if not able:
                    limit[depth, v] = 0
                rest[depth, v] = max(rest[depth, v + 1], limit[depth, v])
            at[depth] = first
            stopped = work > budget
        v = at[depth]
        if v >= n or stopped or rest[depth, v] <= floor:
            # With a later column at hand, what was looked at already is no part of what may be missed.
            if not stopped:
                depth -= 1
                continue
            break
        at[depth] += 1
        if support[depth, v] < min_support:
            continue
        w = weight[depth, v]
        if depth + 1 >= least and w > floor:
            chosen[depth] = v
            _keep(chosen, depth + 1, w, support[depth, v], count, found, sizes, sums, supports)
            count = min(count + 1, number)
            if count == number:
                floor = sums[number - 1]
        # A larger set also has a later column, and is held by rows of that one.
        if depth + 1 < most and min(limit[depth, v], rest[depth, v + 1]) > floor:
            chosen[depth] = v
            for p in range(column_ptr[v], column_ptr[v + 1]):
                held[column_rows[p]] = True
            length = 0
            if depth == 0:
                for p in range(column_ptr[v], column_ptr[v + 1]):
                    rows[1, length] = column_rows[p]
                    length += 1
            else:
                for r in range(lengths[depth]):
                    if held[rows[depth, r]]:
                        rows[depth + 1, length] = rows[depth, r]
                        length += 1
            for p in range(column_ptr[v], column_ptr[v + 1]):
                held[column_rows[p]] = False
            work += column_ptr[v + 1] - column_ptr[v]
            lengths[depth + 1] = length
            depth += 1
            enter = True
    bound = _bound(floor, rest, at, depth) if stopped else floor
    return found, sizes, sums, supports, count, bound, stopped, work


@jit
def _empty(number, most):
    """Return room for a list: its sets, their sizes, weights and support."""
    found = np.zeros((number, most), dtype=np.int32)
    return found, np.zeros(number, np.int64), np.zeros(number, np.int64), np.zeros(number, np.int64)


@jit
def _bound(floor, rest, at, depth):
    """Return an upper bound on the sets that were not visited when a search stops."""
    for t in range(depth + 1):
        floor = max(floor, rest[t, at[t]])
    return floor


@jit
def _keep(chosen, size, w, held, count, found, sizes, sums, supports):
    """Insert a set behind those of equal weight; the last one drops out of a full list."""
    k = min(count, len(sums) - 1)
    while k > 0 and sums[k - 1] < w:
        for t in range(found.shape[1]):
            found[k, t] = found[k - 1, t]
        sizes[k], sums[k], supports[k] = sizes[k - 1], sums[k - 1], supports[k - 1]
        k -= 1
    for t in range(size):
        found[k, t] = chosen[t]
    sizes[k], sums[k], supports[k] = size, w, held


@jit
def _search_unions(
    row_ptr, row_columns, column_ptr, column_rows, weights, marked, touching, size, number,
    min_support, budget,
):  # fmt: skip
    """Go through sets in the order of their columns.

    At depth t, with t columns chosen, column v alone would add plus[t, v] − minus[t, v] and hold
    support[t, v] more marked rows; no set that goes on with it weighs more than limit[t, v], and none
    that goes on with it or with later ones more than rest[t, v].
    """
    n = len(column_ptr) - 1
    plus = np.zeros((size, n), dtype=np.int64)
    minus = np.zeros((size, n), dtype=np.int64)
    limit = np.zeros((size, n), dtype=np.int64)
    rest = np.zeros((size, n + 1), dtype=np.int64)
    support = np.zeros((size, n), dtype=np.int32)
    times = np.zeros(len(weights), dtype=np.int32)  # how many chosen columns a row has
    total = np.zeros(size + 1, dtype=np.int64)
    open_ = np.zeros(size + 1, dtype=np.int64)  # positive weight that is not held yet
    held = np.zeros(size + 1, dtype=np.int64)
    touched = np.zeros(size + 1, dtype=np.bool_)
    chosen = np.zeros(size, dtype=np.int64)
    at = np.zeros(size, dtype=np.int64)
    top = np.zeros(size, dtype=np.int64)
    found, sizes, sums, supports = _empty(number, size)
    count, work, floor = 0, 0, 0
    for i in range(len(weights)):
        w = weights[i]
        open_[0] += max(w, 0)
        for p in range(row_ptr[i], row_ptr[i + 1]):
            v = row_columns[p]
            plus[0, v] += max(w, 0)
            minus[0, v] += max(-w, 0)
            support[0, v] += 1 if marked[i] else 0
        work += row_ptr[i + 1] - row_ptr[i]
    depth, enter, stopped = 0, True, False
    while depth >= 0:
        r = size - depth
        if enter:
            enter = False
            first = 0
            if depth > 0:
                c = chosen[depth - 1]
                first = c + 1
                for v in range(first, n):
                    plus[depth, v], minus[depth, v] = plus[depth - 1, v], minus[depth - 1, v]
                    support[depth, v] = support[depth - 1, v]
                for q in range(column_ptr[c], column_ptr[c + 1]):
                    i = column_rows[q]
                    if times[i] > 1:  # held before
                        continue
                    w, one = weights[i], 1 if marked[i] else 0
                    p = row_ptr[i + 1] - 1
                    while p >= row_ptr[i] and row_columns[p] >= first:
                        v = row_columns[p]
                        plus[depth, v] -= max(w, 0)
                        minus[depth, v] -= max(-w, 0)
                        support[depth, v] -= one
                        p -= 1
                    work += row_ptr[i + 1] - 1 - p
            rest[depth, n] = 0
            later, top_sum = 0, 0  # of the r − 1 largest keys of later columns, the smallest last
            for v in range(n - 1, first - 1, -1):
                key = plus[depth, v] - minus[depth, v] // r
                limit[depth, v] = 0
                if later == r - 1:
                    limit[depth, v] = total[depth] + min(key + top_sum, open_[depth])
                rest[depth, v] = max(rest[depth, v + 1], limit[depth, v])
                if r > 1 and (later < r - 1 or key > top[later - 1]):
                    if later == r - 1:
                        top_sum -= top[later - 1]
                        later -= 1
                    k = later
                    while k > 0 and top[k - 1] < key:
                        top[k] = top[k - 1]
                        k -= 1
                    top[k] = key
                    top_sum += key
                    later += 1
            work += n - first
            at[depth] = first
            stopped = work > budget
        v = at[depth]
        if stopped:
            break
        if v >= n or rest[depth, v] <= floor:
            depth -= 1
            if depth >= 0:
                c = chosen[depth]
                for q in range(column_ptr[c], column_ptr[c + 1]):
                    times[column_rows[q]] -= 1
            continue
        at[depth] += 1
        if limit[depth, v] <= floor:
            continue
        chosen[depth] = v
        reached = touched[depth] or touching[v]
        if r == 1:
            holds = held[depth] + support[depth, v]
            if reached and holds >= min_support:
                w = limit[depth, v]
                _keep(chosen, size, w, holds, count, found, sizes, sums, supports)
                count = min(count + 1, number)
                if count == number:
                    floor = sums[number - 1]
            continue
        total[depth + 1], open_[depth + 1], held[depth + 1] = total[depth], open_[depth], held[depth]
        for q in range(column_ptr[v], column_ptr[v + 1]):
            i = column_rows[q]
            times[i] += 1
            if times[i] == 1:
                total[depth + 1] += weights[i]
                open_[depth + 1] -= max(weights[i], 0)
                held[depth + 1] += 1 if marked[i] else 0
        work += column_ptr[v + 1] - column_ptr[v]
        touched[depth + 1] = reached
        depth += 1
        enter = True
    bound = _bound(floor, rest, at, depth) if stopped else floor
    return found, sums, supports, count, bound, stopped, work
