"""Rules by branch and bound: single clauses for a first rule, then whole DNFs for a proof.

A clause loses rows as it gains literals, so the positive weight it covers bounds what any
longer clause can be worth. That prunes the tree of clauses to a few thousand nodes where
there are millions of clauses. Clauses found one by one make a good rule, not always the
best; a second search (`recsys.explain.rules.cover`) goes through sets of clauses, improves the rule
or proves that none is better. Where these are too many, two more go on in bounded memory: one tries
other clauses in place of some (`improve`), one bounds what no rule can exceed (`relaxed`). All stop
after so much work, which is the same on every machine, or after so many seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys.explain.rules.cells import ROUNDING, clean, merged
from recsys.explain.rules.cover import best_clause, best_cover
from recsys.explain.rules.improve import Improvement
from recsys.explain.rules.relaxed import MEMBERS, Relaxation, clauses_of
from recsys.explain.rules.rule import Rule, rule_weight, tidy
from recsys.explain.rules.search_result import SearchResult
from recsys.utils.progress import report
from recsys.utils.validation import check_integer, check_real

# What a unit of negative weight costs while clauses are collected, against one of positive.
PENALTIES = (1.0, 3.0, 10.0, 100.0)
BUDGET = 200_000_000  # entries of rows that the search for a proof looks at: some seconds at most
FIRST = 200_000_000  # the same for the first rule
CLAUSE = 4_000_000  # and for one of its clauses
# The first search for a proof where the clock ends it; each further one has twice as much.
STEP = 5_000_000
SETS, TRIALS = 4, 8  # shares of the work: sets of clauses, and other rules; the bound has the rest
ROUNDS = 4


def search_rule(
    X: ArrayLike,
    signed: ArrayLike,
    *,
    max_clauses: int = 10,
    max_literals: int = 5,
    min_gain: float = 0.0,
    budget: int = BUDGET,
    seconds: float | None = None,
    names: Sequence[str] = (),
) -> SearchResult:
    """Search for the monotone DNF with the largest weight (7.1), and bound the weight of all others.

    For each of several prices of negative rows: clauses are added one by one, each the best
    for what is not covered yet; then each in turn is replaced by the best given the others;
    then clauses and literals that add nothing are dropped. Where the best of these rules does
    not reach the bound, all sets of clauses are searched by branch and bound from it, until it
    is proved best or the budget is used; where there are too many of them, other rules are tried
    by turns, and the bound is made smaller.

    Parameters
    ----------
    X : (rows, features) binary
    signed : (rows,) float
        yᵢαᵢ, for example of `signed_weights`.
    max_clauses, max_literals : int ≥ 1
    min_gain : float ≥ 0
        What a clause costs: the worth that is maximised is the weight less so much for each
        clause. A guard against clauses for single rows.
    budget : int ≥ 0
        Entries of rows that the searches after the first rule may look at; the same on every machine. 0
        leaves it at the first rule.
    seconds : float ≥ 0, optional
        The clock ends the search instead of `budget`: it goes on until the rule is proved best or so
        much time has passed. What it finds then depends on the machine. Compiling, at the first
        call, counts.
    names : sequence of str

    Returns
    -------
    SearchResult
        With `exact` true, no rule within the limits is worth more (of those worth the same it
        need not be the shortest). Otherwise it is a heuristic's, `capped` is true, and no rule
        is worth more than `bound`. One clause is exact almost always, two or three over some
        hundreds of possible clauses mostly, ten of five literals where clauses reach the trivial
        bound, as on data without noise; with noise the bound falls below that one, and goes on falling
        with time. `n_iter` is the number of searches for a clause.

    Raises
    ------
    InputError
        If a parameter is out of range or the shapes disagree.

    Examples
    --------
    >>> X = [[1, 1, 0], [0, 1, 1], [1, 0, 0], [0, 0, 1]]
    >>> found = search_rule(X, [0.5, 0.5, -0.5, -0.5], names=("a", "b", "c"))
    >>> str(found.rule), found.weight, found.exact
    ('b', 1.0, True)
    """
    rows, weights = clean(X, signed, names)
    check_integer("max_clauses", max_clauses, 1)
    check_integer("max_literals", max_literals, 1)
    check_real("min_gain", min_gain, 0.0)
    check_integer("budget", budget, 0)
    if seconds is not None:
        check_real("seconds", seconds, 0.0)
    end = None if seconds is None else time.perf_counter() + float(seconds)
    cells, sums = merged(rows, weights)
    columns = np.ascontiguousarray(cells.toarray().T > 0)
    literals = min(max_literals, rows.shape[1])
    slack = ROUNDING * float(np.abs(weights).sum())
    bound = max(float(np.maximum(sums, 0.0).sum()) - min_gain, 0.0)
    best, worth, searches, left = Rule((), tuple(names)), 0.0, 0, FIRST
    for penalty in PENALTIES if bound > 0 else ():
        cover = _Cover(cells, columns, sums, penalty, literals, min_gain, left, end)
        clauses = cover.refined(cover.greedy(max_clauses))
        searches += cover.searches
        left = cover.left
        rule = _pruned(tidy(clauses, names), columns, sums, min_gain)
        value = _worth(rule, columns, sums, min_gain)
        if value > worth + slack or (
            value > worth - slack and 0 < rule.literals < (best.literals or np.inf)
        ):
            best, worth = rule, value
    further = _Further(cells, sums, max_clauses, literals, min_gain, end)
    for work in _steps(budget, end) if worth < bound - slack else ():
        found, proved = further.searched(worth, bound, work, slack)
        if found is not None:
            rule = _pruned(tidy(found, names), columns, sums, min_gain)
            if (value := _worth(rule, columns, sums, min_gain)) > worth:
                best, worth = rule, value
        bound = min(bound, proved)
        if worth >= bound - slack:
            break
    exact = worth >= bound - slack
    bound = max(bound, worth)
    gap = 0.0 if exact else bound - worth
    return SearchResult(best, rule_weight(best, rows, weights), searches, bound, gap, exact, not exact)


class _Further:
    """The searches after the first rule, which continue over several calls."""

    def __init__(
        self, cells: Any, sums: NDArray[np.float64], most: int, literals: int, cost: float,
        end: float | None,
    ) -> None:  # fmt: skip
        self._table, self._limits, self._end = (cells, sums), (most, literals, cost), end
        self._sets, self._proved = True, 0.0  # whether sets can be gone through, and their bound
        self._rest: tuple[Improvement, Relaxation] | None = None

    def searched(
        self, worth: float, bound: float, work: int, slack: float
    ) -> tuple[list[tuple[int, ...]] | None, float]:
        """Work for a while from a rule of this worth: a better rule's clauses or None, and a bound."""
        (cells, sums), (most, literals, cost) = self._table, self._limits
        relaxed = None if self._rest is None else self._rest[1]
        # with a bound behind the other one the sets are far too many
        if self._sets and (relaxed is None or relaxed.over or self._proved < relaxed.bound):
            found, self._proved, self._sets = best_cover(
                cells, sums, most, literals, cost, worth, work // SETS
            )
            bound = min(bound, self._proved)
            if found is not None or worth >= bound - slack:
                return found, bound  # a better rule is what all start from
        if self._rest is None:
            entries = MEMBERS if self._end is not None else min(max(work // 8, 10_000), MEMBERS)
            clauses = clauses_of(cells, sums, literals, entries=entries)
            limits = (clauses, sums, most, cost)
            self._rest = (Improvement(*limits), Relaxation(*limits))
        improvement, relaxation = self._rest
        self._for(improvement.work, work / TRIALS)
        best = None
        if improvement.worth > worth + slack:
            best, worth = improvement.rule, improvement.worth
        if not relaxation.over:
            self._for(
                lambda some: relaxation.work(worth, some), work * (1.0 - 1.0 / SETS - 1.0 / TRIALS)
            )
        return best, min(bound, max(relaxation.bound, worth))

    def _for(self, step: Callable[[float], float], work: float) -> None:
        """Do so much work in steps, or until the time is over."""
        while work > 0 and (self._end is None or _left(self._end) > 0):
            work -= max(step(min(work, STEP)), 1.0)


def _left(end: float) -> float:
    """Return the seconds that are left; a progress callback is called, and may stop the search."""
    left = end - time.perf_counter()
    report("searching for a better rule, and a bound", 0, 0)
    return left


def _steps(budget: int, end: float | None) -> Iterator[int]:
    """Give the work of each search for a proof: one of `budget`, or doubled ones until `end`.

    A search begins anew with what the last one has found; all but the last together take about as
    long as that one, which is cut to what is left of the time.
    """
    if end is None:
        if budget > 0:
            yield budget
        return
    work = STEP
    while (started := time.perf_counter()) < end:
        yield work
        now = time.perf_counter()
        work = min(2 * work, int(work * (end - now) / max(now - started, 1e-6)))
        if work < STEP // 4:
            return


def _covered(clauses: Sequence[tuple[int, ...]], columns: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the rows that one of the clauses covers; `columns` is (features, rows)."""
    out = np.zeros(columns.shape[1], dtype=bool)
    for clause in clauses:
        out |= columns[list(clause)].all(axis=0)
    return out


def _worth(rule: Rule, columns: Any, weights: NDArray[np.float64], min_gain: float) -> float:
    return float(weights[_covered(rule.clauses, columns)].sum()) - min_gain * len(rule.clauses)


class _Cover:
    """Clauses against one price of negative rows, within what is left of the work."""

    def __init__(
        self, rows: Any, columns: NDArray[np.bool_], weights: NDArray[np.float64], penalty: float,
        literals: int, min_gain: float, left: int, end: float | None,
    ) -> None:  # fmt: skip
        self.rows, self.columns, self.left, self.end = rows, columns, left, end
        self.prices = np.where(weights > 0, weights, penalty * weights)
        self.small = 1e-12 * float(np.abs(weights).sum())
        self.literals, self.min_gain, self.searches = literals, max(min_gain, self.small), 0

    def best(self, covered: NDArray[np.bool_]) -> tuple[tuple[int, ...], float]:
        """Return the clause worth most on rows not covered yet, and that worth."""
        self.searches += 1
        if self.end is not None and time.perf_counter() >= self.end:
            self.left = 0
        left = np.where(covered, 0.0, self.prices)
        clause, size, worth, _, used = best_clause(
            self.rows.indptr, self.rows.indices, left, self.rows.shape[1], self.literals,
            max(min(CLAUSE, self.left), 0), self.small,
        )  # fmt: skip
        self.left -= used
        return tuple(sorted(int(f) for f in clause[:size])), float(worth)

    def covered(self, clauses: list[tuple[int, ...]]) -> NDArray[np.bool_]:
        return _covered(clauses, self.columns)

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
                if self.left <= 0:
                    return clauses
                others = clauses[:k] + clauses[k + 1 :]
                covered = self.covered(others)
                new, worth = self.best(covered)
                mine = self.covered([clauses[k]]) & ~covered
                if worth > float(self.prices[mine].sum()) + 1000 * self.small:
                    clauses, changed = others + [new], True
            if not changed:
                break
        return clauses


def _pruned(rule: Rule, columns: Any, weights: NDArray[np.float64], min_gain: float) -> Rule:
    """Drop clauses, then literals, as long as the worth does not fall."""
    value = _worth(rule, columns, weights, min_gain)
    small = 1e-12 * float(np.abs(weights).sum())
    shorter = True
    while shorter:
        shorter = False
        options = [rule.clauses[:k] + rule.clauses[k + 1 :] for k in range(len(rule.clauses))]
        for k, clause in enumerate(rule.clauses):
            for literal in clause if len(clause) > 1 else ():
                less = tuple(f for f in clause if f != literal)
                options.append((*rule.clauses[:k], less, *rule.clauses[k + 1 :]))
        for option in options:
            trial = tidy(option, rule.names)
            after = _worth(trial, columns, weights, min_gain)
            if after >= value - small and (trial.clauses or value <= small):
                rule, value, shorter = trial, after, True
                break
    return rule
