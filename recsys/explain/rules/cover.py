"""The best set of clauses: branch and bound over whole DNFs, with a bound at any time.

What a set of r further clauses can add is at most the sum of the r largest p − n/r, where p and n
are the positive and the negative weight that a clause alone would add: the positive weights of
several clauses add up at most, and together they cost at least the mean of what each costs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys._jit import jit
from recsys.explain.rules.cells import bitsets

POOL = 30_000  # clauses
MEMBERS = 10_000_000  # rows of all clauses together
LEVELS = 3_000_000  # clauses times depth
PAIRS = 4_000  # clauses up to which each is compared with each


def best_cover(
    rows: Any,
    weights: NDArray[np.float64],
    max_clauses: int,
    max_literals: int,
    cost: float,
    least: float,
    budget: int,
) -> tuple[list[tuple[int, ...]] | None, float, bool]:
    """Search for a set of clauses of more worth than `least`.

    Worth is the weight of the covered rows less the cost of the clauses. `budget` bounds the entries of
    rows that are looked at.

    Returns the clauses, None where no better set was found; a bound that no set within the limits
    exceeds, the worth of the best set where the search came to its end; and whether a larger budget
    could prove more, as it came neither to its end nor to that of its memory.
    """
    small = 1e-12 * float(np.abs(weights).sum())
    D = max_clauses
    prices = np.where(weights > 0, weights, weights / D)
    *_, one, used = best_clause(
        rows.indptr, rows.indices, prices, rows.shape[1], max_literals, budget // 4, small
    )
    bound = max(D * (float(one) - cost), 0.0)
    if bound <= least + small:
        return None, max(bound, least), False
    masks = bitsets(rows.T.tocsr())  # of each feature, its rows
    clauses, sizes, covers, whole = list_clauses(
        masks, weights, max_literals, max(min(POOL, LEVELS // D), 1), small, min(MEMBERS, budget // 4)
    )
    if not whole:
        # The bound of a single clause may still fall.
        return None, bound, budget // 4 < MEMBERS or int(used) >= budget // 4
    keep = undominated(covers, sizes, weights)
    if len(keep) == 0:
        return None, least, False
    starts, members = members_of(covers[keep])
    chosen, count, worth, proved = _search(
        starts, members, weights, cost, min(D, len(keep)), least, float(budget - used), small
    )
    bound = min(bound, float(proved))
    more = bound > max(float(worth), least) + small
    if count == 0:
        return None, max(bound, least), more
    found = [tuple(sorted(int(f) for f in clauses[k, : sizes[k]])) for k in keep[chosen[:count]]]
    return found, max(bound, float(worth)), more


def undominated(
    covers: NDArray[np.uint64], sizes: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the clauses that no other one replaces, if few enough to compare each with each."""
    if len(sizes) == 0:
        return np.empty(0, dtype=np.int64)
    keep = shortest(covers, sizes)
    if len(keep) > PAIRS:
        return keep
    positive = packed(weights > 0, covers.shape[1])
    return keep[~dominated(covers[keep] & positive, covers[keep] & ~positive, sizes[keep])]


def packed(flags: NDArray[np.bool_], words: int) -> NDArray[np.uint64]:
    """Return flags as bits, 64 in a word."""
    out = np.zeros(words, dtype=np.uint64)
    at = np.flatnonzero(flags)
    np.bitwise_or.at(out, at // 64, np.left_shift(np.uint64(1), (at % 64).astype(np.uint64)))
    return out


def shortest(covers: NDArray[np.uint64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the shortest clause of each set of rows."""
    order = np.argsort(sizes, kind="stable")
    bits = np.ascontiguousarray(covers[order])
    keys = bits.view(np.dtype((np.void, bits.shape[1] * bits.itemsize))).ravel()
    return np.sort(order[np.unique(keys, return_index=True)[1]])


# ---- kernels


@jit
def best_clause(indptr, indices, prices, n, literals, most, small):
    """Return the clause with the largest sum of prices: features, their number, worth, bound, work.

    Depth first over features in order of their own worth; a branch is cut when the positive
    prices it still covers are not above the best worth. Once `most` entries of rows have been
    looked at, no branch is gone into; the positive prices of those left out bound what was missed.
    """
    rows = len(prices)
    gain = np.zeros((literals + 1, n))
    loss = np.zeros((literals + 1, n))
    active = np.empty((literals + 1, rows), dtype=np.int64)
    count = np.zeros(literals + 1, dtype=np.int64)
    for i in range(rows):
        if prices[i] != 0.0:
            active[0, count[0]] = i
            count[0] += 1
    work = _tally(indptr, indices, prices, active[0], count[0], gain[0], loss[0])
    order = np.argsort(-(gain[0] + 0.5 * loss[0]), kind="mergesort")
    best = np.zeros(literals, dtype=np.int64)
    best_size, best_worth, missed = 0, 0.0, 0.0
    clause = np.zeros(literals, dtype=np.int64)
    at = np.zeros(literals + 1, dtype=np.int64)
    depth = 0
    while depth >= 0:
        if at[depth] >= n or depth >= literals:
            depth -= 1
            continue
        f = order[at[depth]]
        at[depth] += 1
        worth = gain[depth, f] + loss[depth, f]
        if gain[depth, f] <= best_worth + small:
            continue
        clause[depth] = f
        if worth > best_worth + small:
            best_worth, best_size = worth, depth + 1
            best[: depth + 1] = clause[: depth + 1]
        if loss[depth, f] < 0.0 and depth + 1 < literals:
            if work >= most:
                missed = max(missed, gain[depth, f])
                continue
            kept = 0
            for t in range(count[depth]):
                i = active[depth, t]
                for p in range(indptr[i], indptr[i + 1]):
                    if indices[p] == f:
                        active[depth + 1, kept] = i
                        kept += 1
                        break
            count[depth + 1] = kept
            work += count[depth] + _tally(
                indptr, indices, prices, active[depth + 1], kept, gain[depth + 1], loss[depth + 1]
            )
            at[depth + 1] = at[depth]
            depth += 1
    return best, best_size, best_worth, max(best_worth, missed), work


@jit
def _tally(indptr, indices, prices, active, count, gain, loss):
    """Sum the positive and the negative prices that each feature covers; return the entries seen."""
    gain[:] = 0.0
    loss[:] = 0.0
    work = len(gain)
    for t in range(count):
        i = active[t]
        work += indptr[i + 1] - indptr[i]
        for p in range(indptr[i], indptr[i + 1]):
            if prices[i] > 0.0:
                gain[indices[p]] += prices[i]
            else:
                loss[indices[p]] += prices[i]
    return work


@jit
def list_clauses(masks, weights, literals, most, small, entries):
    """List the clauses that cover positive weight: features, sizes, rows as bits, and if these are all.

    A clause that covers no negative weight is not made longer: that would only lose rows.
    """
    n, words = masks.shape
    rows = len(weights)
    clauses = np.zeros((most, literals), dtype=np.int32)
    sizes = np.zeros(most, dtype=np.int64)
    covers = np.zeros((most, words), dtype=np.uint64)
    here = np.zeros((literals + 1, words), dtype=np.uint64)
    for i in range(rows):
        here[0, i >> 6] |= np.uint64(1) << np.uint64(i & 63)
    clause = np.zeros(literals, dtype=np.int32)
    at = np.zeros(literals + 1, dtype=np.int64)
    found, depth, seen, looked = 0, 0, 0, 0
    while depth >= 0:
        if depth >= literals or at[depth] >= n:
            depth -= 1
            continue
        f = at[depth]
        at[depth] += 1
        gain = loss = 0.0
        looked += words
        for w in range(words):
            word = here[depth, w] & masks[f, w]
            here[depth + 1, w] = word
            i = w << 6
            while word:
                if word & np.uint64(1):
                    seen += 1
                    if weights[i] > 0.0:
                        gain += weights[i]
                    else:
                        loss += weights[i]
                word >>= np.uint64(1)
                i += 1
        if gain <= small:
            continue
        if found == most or seen > entries or looked > 20 * entries:
            return clauses, sizes, covers, False
        clause[depth] = f
        clauses[found, : depth + 1] = clause[: depth + 1]
        sizes[found] = depth + 1
        covers[found] = here[depth + 1]
        found += 1
        if loss < 0.0:
            at[depth + 1] = f + 1
            depth += 1
    return clauses[:found], sizes[:found], covers[:found], True


@jit
def dominated(positive, negative, sizes):
    """Return which clauses another one replaces: no less positive rows, no more negative ones."""
    n, words = positive.shape
    out = np.zeros(n, dtype=np.bool_)
    for a in range(n):
        for b in range(n):
            if a == b or out[b]:
                continue
            within = True
            for w in range(words):
                if positive[a, w] & ~positive[b, w] or negative[b, w] & ~negative[a, w]:
                    within = False
                    break
            if within:
                out[a] = True
                break
    return out


@jit
def members_of(covers):
    """Return the rows of each clause as lists: starts, and the lists one after another."""
    n, words = covers.shape
    starts = np.zeros(n + 1, dtype=np.int64)
    for k in range(n):
        total = 0
        for w in range(words):
            word = covers[k, w]
            while word:
                word &= word - np.uint64(1)
                total += 1
        starts[k + 1] = starts[k] + total
    members = np.empty(starts[n], dtype=np.int32)
    for k in range(n):
        at = starts[k]
        for w in range(words):
            word = covers[k, w]
            i = w << 6
            while word:
                if word & np.uint64(1):
                    members[at] = i
                    at += 1
                word >>= np.uint64(1)
                i += 1
    return starts, members


@jit
def _search(starts, members, weights, cost, most, least, budget, small):
    """Return the best set of clauses worth more than `least`, its size and worth, and a bound."""
    n = len(starts) - 1
    lists = np.zeros((most, n), dtype=np.int32)  # of each depth the clauses that may be added
    keys = np.zeros((most, n))  # their p − n/r − cost
    worths = np.zeros((most, n))  # their p − n − cost
    lengths = np.zeros(most, dtype=np.int64)
    at = np.zeros(most, dtype=np.int64)
    total = np.zeros(most + 1)
    times = np.zeros(len(weights), dtype=np.int32)  # how often a row is covered
    stack = np.zeros(most, dtype=np.int64)
    best = np.zeros(most, dtype=np.int64)
    size, worth, bound = 0, least, least
    work = 0.0
    fresh_keys, fresh_worths = np.zeros(n), np.zeros(n)
    fresh = np.zeros(n, dtype=np.int32)
    depth, enter, stopped = 0, True, False
    while depth >= 0:
        r = most - depth
        if enter:
            enter = False
            above = depth - 1
            begin = 0 if depth == 0 else at[above]
            length = n if depth == 0 else lengths[above]
            count = 0
            for t in range(begin, length):
                c = t if depth == 0 else lists[above, t]
                p = q = 0.0
                for s in range(starts[c], starts[c + 1]):
                    i = members[s]
                    if times[i] == 0:
                        if weights[i] > 0.0:
                            p += weights[i]
                        else:
                            q -= weights[i]
                work += starts[c + 1] - starts[c]
                if p - cost <= small:  # nothing that is added later makes it worth adding
                    continue
                value = p - q - cost
                if total[depth] + value > worth + small:
                    worth, size = total[depth] + value, depth + 1
                    best[:depth] = stack[:depth]
                    best[depth] = c
                fresh[count], fresh_keys[count], fresh_worths[count] = c, p - q / r - cost, value
                count += 1
            work += 16.0 * (length - begin)  # the sorting and the copies
            order = np.argsort(-fresh_keys[:count], kind="mergesort")
            for t in range(count):
                lists[depth, t] = fresh[order[t]]
                keys[depth, t] = fresh_keys[order[t]]
                worths[depth, t] = fresh_worths[order[t]]
            lengths[depth] = count
            at[depth] = 0
            stopped = stopped or work > budget
        k = at[depth]
        top = total[depth]
        for t in range(k, min(k + r, lengths[depth])):
            top += max(keys[depth, t], 0.0)
        if r > 1 and k < lengths[depth] and top > worth + small and not stopped:
            c = lists[depth, k]
            stack[depth] = c
            for s in range(starts[c], starts[c + 1]):
                times[members[s]] += 1
            total[depth + 1] = total[depth] + worths[depth, k]
            at[depth] += 1
            depth += 1
            enter = True
            continue
        if stopped and r > 1 and k < lengths[depth]:
            bound = max(bound, top)
        depth -= 1
        if depth >= 0:
            c = stack[depth]
            for s in range(starts[c], starts[c + 1]):
                times[members[s]] -= 1
    return best, size, worth, max(bound, worth)
