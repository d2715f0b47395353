"""The genetic search of the thesis, against rules found by going through all of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.lab.genetic import genetic_search
from recsys.explain import Rule, rule_weight
from tests.explain.test_rules import cases, every_clause
from tests.reference import rules as reference


@pytest.mark.slow
@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_the_genetic_search_stays_within_its_bound(seed):
    X, weights = cases(seed)
    if not (weights > 0).any():
        return
    best = reference.best(X, weights, 2, 2)
    found = genetic_search(X, weights, max_clauses=2, max_literals=2, generations=60, seed=seed)
    assert found.weight <= best + 1e-9 <= found.bound + 2e-9
    if found.exact:
        assert found.weight == pytest.approx(best)


@pytest.mark.slow
def test_the_genetic_search_finds_small_optima_and_repeats_itself():
    hits = 0
    for seed in range(10):
        X, weights = cases(seed)
        pool = every_clause(6, 2)
        best = max(rule_weight(Rule((a, b)), X, weights) for a in pool for b in pool)
        found = genetic_search(X, weights, max_clauses=2, max_literals=2, generations=200, seed=seed)
        hits += found.weight > best - 1e-9
        again = genetic_search(X, weights, max_clauses=2, max_literals=2, generations=200, seed=seed)
        assert found == again
    assert hits == 10


@pytest.mark.slow
def test_rows_that_are_equal_are_taken_together():
    X = np.array([[1, 0], [1, 0], [0, 1], [0, 0]])
    found = genetic_search(X, [0.5, -0.2, 0.3, 0.2], max_clauses=2, generations=20)
    assert found.exact and found.weight == pytest.approx(0.6)
