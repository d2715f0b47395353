"""The genetic search for the formula with the largest weight (Polato's thesis, 7.2.2).

A formula is up to D clauses, each a word with a bit for each of at most 64 features; a row satisfies a clause
that has no bit beside the row's own.
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
from recsys.utils.validation import check_integer

KEEP = 0.2  # share of the population that stays


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

    `signed` is yᵢαᵢ. The search ends before its last generation when every positive weight is covered and
    no negative one; of equal weights it keeps the formula with the fewest literals. Its bound is the sum
    of the positive weights of distinct rows, and the result is exact only where it reaches that.
    """
    rows, weights = binary_rows(X, "X"), np.asarray(signed, dtype=np.float64)
    n = rows.shape[1]
    check_integer("the number of features", n, 1, 64)
    bits = np.left_shift(np.uint64(1), np.arange(n, dtype=np.uint64))
    seen = np.flatnonzero(weights)
    best, weight, generation = _evolve(
        np.where(rows[seen].toarray() > 0, bits, np.uint64(0)).sum(axis=1, dtype=np.uint64),
        weights[seen],
        bits.sum(dtype=np.uint64),
        max_clauses,
        min(max_literals, n),
        population,
        mutation,
        generations,
        np.uint64(np.random.default_rng(seed).integers(1, 2**63)),
        max(1, round(KEEP * population)),
    )
    clauses = [np.flatnonzero(clause & bits).tolist() for clause in best]
    limit = float(np.maximum(merged(rows, weights)[1], 0.0).sum())
    exact = weight >= limit - ROUNDING * float(np.abs(weights).sum())
    return SearchResult(tidy(clauses, names), float(weight), int(generation), limit, bool(exact))


# ---- kernels


@jit
def _splitmix(state):
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@jit
def _below(state, n):
    """Return a random number below n."""
    return np.int64((_splitmix(state) >> np.uint64(11)) % np.uint64(n))


@jit
def _chance(state, p):
    return np.float64(_splitmix(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0) < p


@jit
def _tournament(state, size):
    """Return the best rank of three drawn; two leave the search without direction."""
    return min(_below(state, size), _below(state, size), _below(state, size))


@jit
def _size(clause):
    size = 0
    while clause:
        clause &= clause - np.uint64(1)
        size += 1
    return size


@jit
def _bit(clause, k):
    """Return the k-th bit of a clause, as a word."""
    for _ in range(k):
        clause &= clause - np.uint64(1)
    return clause & (~clause + np.uint64(1))


@jit
def _random_clause(state, n, most):
    clause = np.uint64(0)
    for _ in range(1 + _below(state, most)):
        clause |= np.uint64(1) << np.uint64(_below(state, n))
    return clause


@jit
def _mutate(state, formula, count, every, literals):
    """Remove a clause, add a random one, or swap one literal; returns the number of clauses."""
    n = _size(every)
    action = _below(state, 3)
    if action == 0 and count > 1:
        formula[_below(state, count)] = formula[count - 1]
        return count - 1
    if action == 1 and count < len(formula):
        formula[count] = _random_clause(state, n, literals)
        return count + 1
    k = _below(state, count)
    clause, size = formula[k], _size(formula[k])
    if 0 < size < n:
        leaves = _bit(clause, _below(state, size))
        formula[k] = clause ^ leaves ^ _bit(every & ~clause, _below(state, n - size))
    return count


@jit
def _cross(state, first, n_first, second, n_second, child):
    """Fill child with a random non-empty subset of both parents' clauses."""
    count = 0
    total = n_first + n_second
    offset = _below(state, total)  # so that neither parent fills the child first
    for t in range(total):
        k = (t + offset) % total
        clause = first[k] if k < n_first else second[k - n_first]
        if count < len(child) and _chance(state, 0.5) and not np.any(child[:count] == clause):
            child[count] = clause
            count += 1
    if count == 0:
        child[0] = first[_below(state, n_first)]
        count = 1
    return count


@jit
def _weigh(formula, masks, weights):
    total = 0.0
    for i in range(len(weights)):
        for clause in formula:
            if clause & ~masks[i] == np.uint64(0):
                total += weights[i]
                break
    return total


@jit
def _evolve(masks, weights, every, clauses, literals, size, mutation, generations, seed, keep):
    state = np.array([seed], dtype=np.uint64)
    here = np.zeros((size, clauses), dtype=np.uint64)
    there = np.zeros_like(here)
    counts = np.zeros(size, dtype=np.int64)
    next_counts = np.zeros(size, dtype=np.int64)
    goal = np.maximum(weights, 0.0).sum() - 1e-12
    for p in range(size):
        counts[p] = 1 + _below(state, clauses)
        for k in range(counts[p]):
            here[p, k] = _random_clause(state, _size(every), literals)
    rank = np.empty(size)
    best, best_weight, best_rank, found = here[0], -np.inf, -np.inf, 0
    for generation in range(generations + 1):
        for p in range(size):
            # Length only breaks ties: weights differ by far more than a billionth of a literal.
            length = 0
            for clause in here[p, : counts[p]]:
                length += _size(clause)
            rank[p] = _weigh(here[p, : counts[p]], masks, weights) - 1e-9 * length
        order = np.argsort(-rank, kind="mergesort")
        top = order[0]
        if rank[top] > best_rank:
            weight = _weigh(here[top, : counts[top]], masks, weights)
            if weight > best_weight + 1e-12:
                found = generation
            best, best_weight, best_rank = here[top, : counts[top]].copy(), weight, rank[top]
        if best_weight >= goal:
            break
        for p in range(size):
            if p < keep:
                there[p], next_counts[p] = here[order[p]], counts[order[p]]
                continue
            a = order[_tournament(state, size)]
            b = order[_tournament(state, size)]
            next_counts[p] = _cross(state, here[a], counts[a], here[b], counts[b], there[p])
            if _chance(state, mutation):
                next_counts[p] = _mutate(state, there[p], next_counts[p], every, literals)
        here, there = there, here
        counts, next_counts = next_counts, counts
    return best, best_weight, found
