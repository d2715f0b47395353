"""The genetic search for the formula with the largest weight (Polato's thesis, 7.2.2).

A formula is up to D clauses, each a bitset over the features; a row satisfies a clause if
the clause's bits are among its own. Everything runs in one compiled loop with a generator of
its own, seeded from a numpy Generator.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from recsys._jit import jit
from recsys.explain import SearchResult
from recsys.explain.rule import tidy
from recsys.explain.rule_search import ROUNDING, merged
from recsys.kernels.base import binary_rows
from recsys.utils.validation import check_integer, check_real

KEEP = 0.2


def genetic_search(
    X: ArrayLike,
    signed: ArrayLike,
    *,
    max_clauses: int = 10,
    max_literals: int = 5,
    population: int = 500,
    mutation: float = 0.6,
    generations: int = 1000,
    names: Sequence[str] = (),
    seed: int = 0,
) -> SearchResult:
    """Search for the monotone DNF with the largest weight (7.1), of at most D clauses of C literals.

    `signed` is yᵢαᵢ; rows of weight 0 are not looked at. It ends before its last generation when every
    positive weight is covered and no negative one. Of equal weights met, the one with the fewest
    literals. A heuristic: its bound is what covering every row of positive weight and no other would be
    worth, equal rows taken together, and it is exact only where that is reached.
    """
    rows, weights = binary_rows(X, "X"), np.asarray(signed, dtype=np.float64)
    check_integer("max_clauses", max_clauses, 1, 1000)
    check_integer("max_literals", max_literals, 1)
    check_integer("population", population, 5)
    check_integer("generations", generations, 0)
    check_real("mutation", mutation, 0.0, 1.0)
    seen = np.flatnonzero(weights)
    n = rows.shape[1]
    masks = bitsets(rows[seen])
    best, count, weight, generation = _evolve(
        masks,
        weights[seen],
        n,
        max_clauses,
        min(max_literals, n),
        population,
        mutation,
        generations,
        np.uint64(np.random.default_rng(seed).integers(1, 2**63)),
        max(1, round(KEEP * population)),
    )
    clauses = [[f for f in range(n) if (int(best[k, f // 64]) >> (f % 64)) & 1] for k in range(count)]
    limit = float(np.maximum(merged(rows, weights)[1], 0.0).sum())
    weight = float(weight)
    exact = weight >= limit - ROUNDING * float(np.abs(weights).sum())
    return SearchResult(tidy(clauses, names), weight, int(generation), limit, exact)


def bitsets(rows):
    """Return each CSR row as a bitset, (rows, ⌈features/64⌉)."""
    out = np.zeros((rows.shape[0], (rows.shape[1] + 63) // 64), dtype=np.uint64)
    owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    bits = np.left_shift(np.uint64(1), (rows.indices % 64).astype(np.uint64))
    np.bitwise_or.at(out, (owner, rows.indices // 64), bits)
    return out


# ---- kernels


@jit
def splitmix(state):
    """Advance splitmix64."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@jit
def below(state, n):
    """Return a random number below n."""
    return np.int64((splitmix(state) >> np.uint64(11)) % np.uint64(n))


@jit
def _chance(state, p):
    return np.float64(splitmix(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0) < p


@jit
def _tournament(state, size):
    """Return the best rank of three drawn; two leave the search without direction."""
    return min(below(state, size), below(state, size), below(state, size))


@jit
def _has(clause, f):
    return (clause[f >> 6] >> np.uint64(f & 63)) & np.uint64(1) == np.uint64(1)


@jit
def _random_clause(state, clause, n, most):
    clause[:] = np.uint64(0)
    for _ in range(1 + below(state, most)):
        f = below(state, n)
        clause[f >> 6] |= np.uint64(1) << np.uint64(f & 63)


@jit
def _mutate(state, formula, count, n, clauses, literals):
    """Remove a clause, add a random one, or swap one literal; returns the number of clauses."""
    action = below(state, 3)
    if action == 0 and count > 1:
        formula[below(state, count)] = formula[count - 1]
        return count - 1
    if action == 1 and count < clauses:
        _random_clause(state, formula[count], n, literals)
        return count + 1
    clause = formula[below(state, count)]
    size = 0
    for f in range(n):
        size += _has(clause, f)
    if size == 0 or size == n:
        return count
    out = below(state, size)
    into = below(state, n - size)
    leaves = enters = -1
    for f in range(n):
        if _has(clause, f):
            if out == 0:
                leaves = f
            out -= 1
        else:
            if into == 0:
                enters = f
            into -= 1
    clause[leaves >> 6] ^= np.uint64(1) << np.uint64(leaves & 63)
    clause[enters >> 6] |= np.uint64(1) << np.uint64(enters & 63)
    return count


@jit
def _among(clause, formula, count):
    for k in range(count):
        same = True
        for w in range(len(clause)):
            same = same and formula[k, w] == clause[w]
        if same:
            return True
    return False


@jit
def _cross(state, first, n_first, second, n_second, child, clauses):
    """Fill child with a random non-empty subset of both parents' clauses."""
    count = 0
    total = n_first + n_second
    offset = below(state, total)  # so that neither parent fills the child first
    for t in range(total):
        k = (t + offset) % total
        clause = first[k] if k < n_first else second[k - n_first]
        if count < clauses and _chance(state, 0.5) and not _among(clause, child, count):
            child[count] = clause
            count += 1
    if count == 0:
        child[0] = first[below(state, n_first)]
        count = 1
    return count


@jit
def _weigh(formula, count, masks, weights):
    total = 0.0
    words = masks.shape[1]
    for i in range(len(weights)):
        for k in range(count):
            inside = True
            for w in range(words):
                if formula[k, w] & ~masks[i, w] != np.uint64(0):
                    inside = False
                    break
            if inside:
                total += weights[i]
                break
    return total


@jit
def _length(formula, count):
    total = 0
    for k in range(count):
        for w in range(formula.shape[1]):
            word = formula[k, w]
            while word:
                word &= word - np.uint64(1)
                total += 1
    return total


@jit
def _evolve(masks, weights, n, clauses, literals, size, mutation, generations, seed, keep):
    state = np.array([seed], dtype=np.uint64)
    words = masks.shape[1]
    here = np.zeros((size, clauses, words), dtype=np.uint64)
    there = np.zeros_like(here)
    counts = np.zeros(size, dtype=np.int64)
    next_counts = np.zeros(size, dtype=np.int64)
    goal = 0.0
    for w in weights:
        goal += max(w, 0.0)
    goal -= 1e-12
    for p in range(size):
        counts[p] = 1 + below(state, clauses)
        for k in range(counts[p]):
            _random_clause(state, here[p, k], n, literals)
    rank = np.empty(size)
    best, best_count, best_weight, best_key, found = here[0].copy(), 1, -np.inf, -np.inf, 0
    for generation in range(generations + 1):
        for p in range(size):
            # Length only breaks ties: weights differ by far more than a billionth of a literal.
            rank[p] = _weigh(here[p], counts[p], masks, weights) - 1e-9 * _length(here[p], counts[p])
        order = np.argsort(-rank, kind="mergesort")
        top = order[0]
        if rank[top] > best_key:
            weight = _weigh(here[top], counts[top], masks, weights)
            if weight > best_weight + 1e-12:
                found = generation
            best, best_count = here[top].copy(), counts[top]
            best_weight, best_key = weight, rank[top]
        if best_weight >= goal:
            break
        for p in range(size):
            if p < keep:
                there[p], next_counts[p] = here[order[p]], counts[order[p]]
                continue
            a = order[_tournament(state, size)]
            b = order[_tournament(state, size)]
            next_counts[p] = _cross(state, here[a], counts[a], here[b], counts[b], there[p], clauses)
            if _chance(state, mutation):
                next_counts[p] = _mutate(state, there[p], next_counts[p], n, clauses, literals)
        here, there = there, here
        counts, next_counts = next_counts, counts
    return best, best_count, best_weight, found
