"""The rule with the largest weight, by branch and bound over clauses.

A clause loses rows as it gains literals, so the positive weight that it covers bounds the worth of any
longer clause.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys._jit import jit
from recsys.errors import InputError
from recsys.explain.rule import Rule, rule_weight, tidy
from recsys.kernels.base import binary_rows
from recsys.utils.validation import check_integer, check_real, real_array

ROUNDING = 1e-9  # of the sum of all absolute weights
# What a unit of negative weight costs while clauses are collected.
PENALTIES = (1.0, 3.0, 10.0, 100.0)
ROUNDS = 4  # of replacing clauses
WORK = 200_000_000  # entries of rows that a search looks at, at most
CLAUSE_WORK = 4_000_000  # the same for one clause


class SearchResult(NamedTuple):
    """The result of `search_rule`; worth is the weight minus `min_gain` per clause."""

    rule: Rule
    weight: float  #: of the rule (7.1)
    n_iter: int  #: searches for one clause
    bound: float  #: upper bound of the worth of any rule
    exact: bool  #: whether the worth of the rule equals the bound


def search_rule(
    X: ArrayLike,
    signed: ArrayLike,
    *,
    max_clauses: int = 10,
    max_literals: int = 5,
    min_gain: float = 0.0,
    names: Sequence[str] = (),
) -> SearchResult:
    """Search for the monotone DNF with the largest weight (7.1).

    For several prices of negative rows, the search adds the best clause for the uncovered rows, one at a
    time. It then replaces each clause by the best one for the others, and removes useless clauses and
    literals. The best of these rules is returned.

    Parameters
    ----------
    X : (rows, features) binary
    signed : (rows,) float
        yᵢαᵢ, for example from `signed_weights`.
    max_clauses, max_literals : int ≥ 1
    min_gain : float ≥ 0
        Cost of a clause, which avoids clauses for single rows.
    names : sequence of str
        Of the features.

    Examples
    --------
    >>> X = [[1, 1, 0], [0, 1, 1], [1, 0, 0], [0, 0, 1]]
    >>> result = search_rule(X, [0.5, 0.5, -0.5, -0.5], names=("a", "b", "c"))
    >>> str(result.rule), result.weight, result.exact
    ('b', 1.0, True)
    """
    check_integer("max_clauses", max_clauses, 1)
    check_integer("max_literals", max_literals, 1)
    check_real("min_gain", min_gain, 0.0)
    rows, weights = _checked(X, signed, names)
    table = _Table(rows, weights, min(max_literals, rows.shape[1]), min_gain)
    slack = ROUNDING * float(np.abs(weights).sum())
    best, worth = Rule((), tuple(names)), 0.0
    for penalty in PENALTIES if table.positive > min_gain else ():
        clauses = table.replaced(table.collected(max_clauses, penalty), penalty)
        rule = table.pruned(tidy(clauses, names))
        value = table.worth(rule)
        shorter = 0 < rule.literals < (best.literals or np.inf)
        if value > worth + slack or (value > worth - slack and shorter):
            best, worth = rule, value
    bound = max(table.positive - min_gain, worth)
    if worth < bound - slack:
        bound = max(min(bound, table.bound(max_clauses)), worth)
    exact = worth >= bound - slack
    return SearchResult(best, rule_weight(best, rows, weights), table.searches, bound, exact)


def _checked(X: ArrayLike, signed: ArrayLike, names: Sequence[str]) -> tuple[Any, NDArray[np.float64]]:
    """Return binary CSR rows and their weights."""
    rows, weights = binary_rows(X, "X"), real_array("signed", signed)
    if len(names) not in (0, rows.shape[1]):
        raise InputError(f"there are {rows.shape[1]} features and {len(names)} names")
    if weights.shape != (rows.shape[0],):
        raise InputError(f"there are {rows.shape[0]} rows and weights of shape {weights.shape}")
    if not np.isfinite(weights).all():
        raise InputError("the weights contain NaN or infinity")
    if not (weights > 0).any() or rows.shape[1] == 0:
        raise InputError("a rule needs at least one feature and one row of positive weight")
    return rows, weights


def merged(rows: Any, weights: NDArray[np.float64]) -> tuple[Any, NDArray[np.float64]]:
    """Return the distinct rows with a feature, in order of appearance, with their summed weights."""
    used = np.flatnonzero((np.diff(rows.indptr) > 0) & (weights != 0))
    bits = np.packbits(rows[used].toarray() > 0, axis=1)
    keys = bits.view(np.dtype((np.void, bits.shape[1]))).ravel()
    _, first, copy_of = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    sums = np.bincount(copy_of.ravel(), weights[used], minlength=len(first))[order]
    return rows[used[first[order][sums != 0]]], sums[sums != 0]


class _Table:
    """The distinct rows of a table with their weights, and the work that is left."""

    def __init__(self, rows: Any, weights: NDArray[np.float64], literals: int, min_gain: float) -> None:
        self.rows, self.weights = merged(rows, weights)
        self.columns = np.ascontiguousarray(self.rows.toarray().T > 0)
        self.literals, self.min_gain = literals, min_gain
        self.small = 1e-12 * float(np.abs(weights).sum())
        self.positive = float(np.maximum(self.weights, 0.0).sum())
        self.searches, self.left = 0, WORK

    def covered(self, clauses: Sequence[tuple[int, ...]]) -> NDArray[np.bool_]:
        out = np.zeros(len(self.weights), dtype=bool)
        for clause in clauses:
            out |= self.columns[list(clause)].all(axis=0)
        return out

    def worth(self, rule: Rule) -> float:
        weight = float(self.weights[self.covered(rule.clauses)].sum())
        return weight - self.min_gain * len(rule.clauses)

    def best(self, covered: NDArray[np.bool_], penalty: float) -> tuple[tuple[int, ...], float, float]:
        """Return the clause worth most on the rows that are not covered, its worth, and a bound."""
        self.searches += 1
        prices = np.where(self.weights > 0, self.weights, penalty * self.weights)
        clause, size, worth, bound, used = best_clause(
            self.rows.indptr,
            self.rows.indices,
            np.where(covered, 0.0, prices),
            self.rows.shape[1],
            self.literals,
            max(min(CLAUSE_WORK, self.left), 0),
            self.small,
        )
        self.left -= used
        return tuple(sorted(int(f) for f in clause[:size])), float(worth), float(bound)

    def bound(self, most: int) -> float:
        """Return a bound on the worth of rules of up to so many clauses.

        The positive weights of several clauses add up at most; their negative weights together are at
        least the mean of each alone.
        """
        nothing = np.zeros(len(self.weights), dtype=bool)
        _, _, bound = self.best(nothing, 1.0 / most)
        return most * (bound - self.min_gain)

    def collected(self, most: int, penalty: float) -> list[tuple[int, ...]]:
        clauses: list[tuple[int, ...]] = []
        while len(clauses) < most:
            clause, worth, _ = self.best(self.covered(clauses), penalty)
            if worth <= max(self.min_gain, self.small):
                break
            clauses.append(clause)
        return clauses

    def replaced(self, clauses: list[tuple[int, ...]], penalty: float) -> list[tuple[int, ...]]:
        """Replace each clause by the best one given the others, until none is better."""
        for _ in range(ROUNDS):
            changed = False
            for k in range(len(clauses) - 1, -1, -1):
                if self.left <= 0:
                    return clauses
                others = clauses[:k] + clauses[k + 1 :]
                covered = self.covered(others)
                new, worth, _ = self.best(covered, penalty)
                own = self.weights[self.covered([clauses[k]]) & ~covered]
                value = float(np.where(own > 0, own, penalty * own).sum())
                if worth > value + 1000 * self.small:
                    clauses, changed = [*others, new], True
            if not changed:
                break
        return clauses

    def pruned(self, rule: Rule) -> Rule:
        """Drop clauses, then literals, as long as the worth does not fall."""
        value, shorter = self.worth(rule), True
        while shorter:
            shorter = False
            options = [rule.clauses[:k] + rule.clauses[k + 1 :] for k in range(len(rule.clauses))]
            for k, clause in enumerate(rule.clauses):
                for literal in clause if len(clause) > 1 else ():
                    less = tuple(f for f in clause if f != literal)
                    options.append((*rule.clauses[:k], less, *rule.clauses[k + 1 :]))
            for option in options:
                trial = tidy(option, rule.names)
                after = self.worth(trial)
                if after >= value - self.small and (trial.clauses or value <= self.small):
                    rule, value, shorter = trial, after, True
                    break
        return rule


@jit
def best_clause(indptr, indices, prices, n, literals, most, small):
    """Return the clause with the largest sum of prices: features, their number, worth, bound, work.

    Depth first over features in order of their own worth; a branch is cut when the positive prices
    that it still covers are not above the best worth. After `most` visited entries no branch is entered;
    the bound includes the positive prices of skipped branches.
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
