"""Rules by branch and bound: one best clause after another, then exchanged and pruned.

A clause loses rows as it gains literals, so the positive weight it covers bounds what any
longer clause can be worth. That prunes the tree of clauses to a few thousand nodes where
there are millions of clauses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys._jit import jit
from recsys.checks import check_integer
from recsys.explain.genetic import Found, clean
from recsys.explain.rule import Rule, rule_weight, tidy

# What a unit of negative weight costs while clauses are collected, against one of positive.
PENALTIES = (1.0, 3.0, 10.0, 100.0)
NODES = 300_000
ROUNDS = 4


def search_rule(
    X: ArrayLike,
    signed: ArrayLike,
    *,
    max_clauses: int = 10,
    max_literals: int = 5,
    min_gain: float = 0.0,
    names: Sequence[str] = (),
) -> Found:
    """Search for the shortest of the monotone DNFs with the largest weight (7.1).

    For each of several prices of negative rows: clauses are added one by one, each the best
    for what is not covered yet; then each in turn is replaced by the best given the others;
    then clauses and literals that add nothing are dropped.

    Parameters
    ----------
    X : (rows, features) binary
    signed : (rows,) float
        yᵢαᵢ, for example of `signed_weights`.
    max_clauses, max_literals : int ≥ 1
    min_gain : float ≥ 0
        Weight that a clause must add, a guard against clauses for single rows.
    names : sequence of str

    Returns
    -------
    Found
        `generation` is the number of clause searches made.

    Raises
    ------
    InputError
        If a parameter is out of range or the shapes disagree.
    """
    rows, weights = clean(X, signed)
    check_integer("max_clauses", max_clauses, 1)
    check_integer("max_literals", max_literals, 1)
    best: tuple[float, int, Rule] | None = None
    searches = 0
    for penalty in PENALTIES:
        cover = _Cover(rows, weights, penalty, min(max_literals, rows.shape[1]), min_gain)
        clauses = cover.refined(cover.greedy(max_clauses))
        searches += cover.searches
        rule = _pruned(tidy(clauses, names), rows, weights, min_gain)
        value = rule_weight(rule, rows, weights)
        if (
            best is None
            or value > best[0] + 1e-9
            or (value > best[0] - 1e-9 and rule.literals < best[1])
        ):
            best = (value, rule.literals, rule)
    assert best is not None
    return Found(best[2], best[0], searches)


class _Cover:
    """Clauses against one price of negative rows."""

    def __init__(
        self, rows: Any, weights: NDArray[np.float64], penalty: float, literals: int, min_gain: float
    ) -> None:
        seen = np.flatnonzero(weights)
        self.rows = rows[seen]
        self.prices = np.where(weights[seen] > 0, weights[seen], penalty * weights[seen])
        self.literals, self.min_gain, self.searches = literals, max(min_gain, 1e-12), 0

    def best(self, covered: NDArray[np.bool_]) -> tuple[tuple[int, ...], float]:
        """Return the clause worth most on rows not covered yet, and that worth."""
        self.searches += 1
        left = np.where(covered, 0.0, self.prices)
        clause, size, worth = _best_clause(
            self.rows.indptr, self.rows.indices, left, self.rows.shape[1], self.literals, NODES
        )
        return tuple(sorted(int(f) for f in clause[:size])), float(worth)

    def covered(self, clauses: list[tuple[int, ...]]) -> NDArray[np.bool_]:
        return Rule(tuple(clauses)).covers(self.rows)

    def greedy(self, most: int) -> list[tuple[int, ...]]:
        clauses: list[tuple[int, ...]] = []
        while len(clauses) < most:
            clause, worth = self.best(self.covered(clauses))
            if worth <= self.min_gain:
                break
            clauses.append(clause)
        return clauses

    def refined(self, clauses: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        for _ in range(ROUNDS):
            changed = False
            for k in range(len(clauses) - 1, -1, -1):
                others = clauses[:k] + clauses[k + 1 :]
                covered = self.covered(others)
                new, worth = self.best(covered)
                mine = self.covered([clauses[k]]) & ~covered
                if worth > float(self.prices[mine].sum()) + 1e-9:
                    clauses, changed = others + [new], True
            if not changed:
                break
        return clauses


def _pruned(rule: Rule, rows: Any, weights: NDArray[np.float64], min_gain: float) -> Rule:
    """Drop clauses, then literals, as long as the weight does not fall."""
    value = rule_weight(rule, rows, weights)
    shorter = True
    while shorter:
        shorter = False
        options = [rule.clauses[:k] + rule.clauses[k + 1 :] for k in range(len(rule.clauses))]
        allowed = [max(min_gain - 1e-12, 0.0)] * len(options)
        for k, clause in enumerate(rule.clauses):
            for literal in clause if len(clause) > 1 else ():
                less = tuple(f for f in clause if f != literal)
                options.append((*rule.clauses[:k], less, *rule.clauses[k + 1 :]))
                allowed.append(0.0)
        for option, loss in zip(options, allowed, strict=True):
            trial = tidy(option, rule.names)
            after = rule_weight(trial, rows, weights)
            if after >= value - loss - 1e-12 and trial.clauses:
                rule, value, shorter = trial, after, True
                break
    return rule


# ---- kernels


@jit
def _best_clause(indptr, indices, prices, n, literals, nodes):
    """Return the clause of at most `literals` features with the largest sum of prices.

    Depth first over features in order of their own worth; a branch is cut when the positive
    prices it still covers are not above the best worth. After `nodes` nodes what is left of
    the tree is not looked at.
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
    _tally(indptr, indices, prices, active[0], count[0], gain[0], loss[0])
    order = np.argsort(-(gain[0] + 0.5 * loss[0]), kind="mergesort")
    best = np.zeros(literals, dtype=np.int64)
    best_size, best_worth = 0, 0.0
    clause = np.zeros(literals, dtype=np.int64)
    at = np.zeros(literals + 1, dtype=np.int64)
    depth, visited = 0, 0
    while depth >= 0:
        if at[depth] >= n or depth >= literals:
            depth -= 1
            continue
        f = order[at[depth]]
        at[depth] += 1
        worth = gain[depth, f] + loss[depth, f]
        if gain[depth, f] <= best_worth + 1e-12:
            continue
        clause[depth] = f
        if worth > best_worth + 1e-12:
            best_worth, best_size = worth, depth + 1
            best[: depth + 1] = clause[: depth + 1]
        visited += 1
        if loss[depth, f] < 0.0 and depth + 1 < literals and visited < nodes:
            kept = 0
            for t in range(count[depth]):
                i = active[depth, t]
                for p in range(indptr[i], indptr[i + 1]):
                    if indices[p] == f:
                        active[depth + 1, kept] = i
                        kept += 1
                        break
            count[depth + 1] = kept
            _tally(indptr, indices, prices, active[depth + 1], kept, gain[depth + 1], loss[depth + 1])
            at[depth + 1] = at[depth]
            depth += 1
    return best, best_size, best_worth


@jit
def _tally(indptr, indices, prices, active, count, gain, loss):
    """Sum the positive and the negative prices that each feature covers."""
    gain[:] = 0.0
    loss[:] = 0.0
    for t in range(count):
        i = active[t]
        for p in range(indptr[i], indptr[i + 1]):
            if prices[i] > 0.0:
                gain[indices[p]] += prices[i]
            else:
                loss[indices[p]] += prices[i]
