"""What bounds a rule where there are too many sets of clauses: above every rule there is, on small tables."""

import re
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys.explain import Rule, SearchResult, learn_rule, search_rule, signed_weights
from recsys.explain.rules.cells import clean, merged
from recsys.explain.rules.improve import Improvement
from recsys.explain.rules.relaxed import Relaxation, _multipliers, clauses_of
from tests.reference import rules as reference

KINDS = ("normal", "ties", "noise", "heavy")


@st.composite
def tables(draw):
    """Draw a binary table with weights: equal rows, empty columns, ties, flipped labels, one row."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows, n = draw(st.sampled_from([1, 2, 5, 9, 14])), draw(st.integers(1, 6))
    X = (rng.random((rows, n)) < draw(st.sampled_from([0.3, 0.5, 0.8]))).astype(np.uint8)
    if draw(st.booleans()):
        X[:, rng.integers(n)] = 0
    if draw(st.booleans()):
        X[rng.integers(rows)] = X[rng.integers(rows)]
    kind = draw(st.sampled_from(KINDS))
    if kind == "normal":
        weights = rng.normal(size=rows)
    elif kind == "ties":
        weights = rng.choice([-1.0, 0.0, 1.0], size=rows)
    elif kind == "noise":
        flip = rng.random(rows) < 0.2
        weights = np.where((X[:, 0] > 0) ^ flip, 1.0, -1.0) / rows
    else:
        weights = np.where(rng.random(rows) < 0.3, 5.0, -1.0)
    weights[rng.integers(rows)] = 1.0
    return X, weights


def parts_of(X, weights):
    cells, sums = merged(*clean(X, weights))
    return cells, sums, len(sums) and (sums > 0).any()


@pytest.mark.thorough
@given(tables(), st.integers(1, 3), st.integers(1, 3), st.sampled_from([0.0, 0.15]), st.data())
@settings(max_examples=400, deadline=None)
def test_no_rule_exceeds_the_bound_however_long_it_was_worked_on(table, most, literals, cost, data):
    X, weights = table
    cells, sums, some = parts_of(X, weights)
    if not some:
        return
    best = reference.best(X, weights, most, literals, cost)
    limit = data.draw(st.sampled_from([1, 3, 10**5]), label="clauses kept")
    clauses = clauses_of(cells, sums, min(literals, X.shape[1]), most=limit)
    assert len(clauses.sizes) <= limit and (limit == 10**5) <= (clauses.rest == 0)
    relaxation = Relaxation(clauses, sums, most, cost)
    assert best <= relaxation.bound + 1e-9
    least = data.draw(st.sampled_from([0.0, 0.7, 1.0]), label="share of the best known") * best
    before = relaxation.bound
    for budget in (1.0, 100.0, 3000.0, 20_000.0):
        relaxation.work(least, budget)
        assert best <= relaxation.bound + 1e-9 <= before + 2e-9
        before = relaxation.bound
    assert before <= max(np.maximum(sums, 0).sum(), 0) + 1e-9


@pytest.mark.thorough
@given(tables(), st.integers(1, 3), st.sampled_from([0.0, 0.15]), st.integers(0, 2**32 - 1))
@settings(max_examples=300, deadline=None)
def test_the_bound_of_a_part_is_that_of_its_formula_and_above_its_rules(table, most, cost, seed):
    X, weights = table
    cells, sums, some = parts_of(X, weights)
    if not some:
        return
    rng, held = np.random.default_rng(seed), cells.toarray() > 0
    clauses = clauses_of(cells, sums, 2)
    holds = np.zeros((len(clauses.sizes), len(sums)), dtype=bool)
    for k in range(len(holds)):
        holds[k, clauses.members[clauses.starts[k] : clauses.starts[k + 1]]] = True
        assert (held[:, clauses.features[k, : clauses.sizes[k]]].all(axis=1) == holds[k]).all()
    positive, negative = np.maximum(sums, 0.0), np.maximum(-sums, 0.0)
    states = np.where(negative > 0, rng.choice(3, size=len(sums), p=[0.6, 0.2, 0.2]), 0).astype(np.int8)
    lam, rho = positive * rng.random(len(sums)), float(rng.random())
    low, high = sorted(rng.random(2) * max(negative.sum(), 1e-3))
    args = (clauses.starts, clauses.members, sums, states)

    def bound(rounds):
        return _multipliers(
            *args, lam.copy(), low, high, rho, most, cost, 0.0, -1.0, rounds, 1e-12
        )[0]  # fmt: skip

    worths = [
        positive[inside].sum() - negative[inside].sum() - cost * size
        for size in range(1, most + 1)
        for rule in combinations(range(len(holds)), size)
        for inside in [holds[list(rule)].any(axis=0)]
        if low <= negative[inside].sum() <= high
        and (inside | (states != 1)).all()
        and not (inside & (states == 2)).any()
    ]
    top = max(worths, default=-np.inf)
    if negative[states == 1].sum() <= high:
        by_hand = reference.relaxed(holds, sums, most, cost, lam, rho, low, high, states)
        assert by_hand >= top - 1e-9
        assert bound(1) == pytest.approx(min(max(by_hand, 0.0), positive.sum()), abs=1e-9)
    for rounds in (1, 5, 40):
        assert bound(rounds) >= top - 1e-9


@pytest.mark.thorough
@given(tables(), st.integers(1, 3), st.integers(1, 3), st.sampled_from([0.0, 0.15]))
@settings(max_examples=150, deadline=None)
def test_other_rules_are_worth_what_is_said(table, most, literals, cost):
    X, weights = table
    cells, sums, some = parts_of(X, weights)
    if not some:
        return
    best = reference.best(X, weights, most, literals, cost)
    search = Improvement(clauses_of(cells, sums, min(literals, X.shape[1])), sums, most, cost)
    before = 0.0
    for _ in range(3):
        search.work(20_000)
        rule = search.rule
        assert len(rule) <= most and all(len(clause) <= literals for clause in rule)
        assert search.worth == pytest.approx(reference.worth(rule, X, weights, cost), abs=1e-9)
        assert before <= search.worth <= best + 1e-9
        before = search.worth


@pytest.mark.thorough
def test_other_rules_nearly_always_reach_the_best():
    """Also where no clause is worth anything alone, as of two that pay for the same row."""
    rng, reached, known = np.random.default_rng(0), 0, 0
    for _ in range(200):
        rows, features, most = rng.integers(3, 9), rng.integers(2, 6), int(rng.integers(1, 4))
        X = (rng.random((rows, features)) < 0.6).astype(float)
        weights = rng.choice([-2.0, -1.0, 1.0, 2.0], size=rows)
        weights[0] = 2.0
        cells, sums, some = parts_of(X, weights)
        if not some:
            continue
        best = reference.best(X, weights, most, 2, 0.0)
        search = Improvement(clauses_of(cells, sums, 2), sums, most, 0.0)
        search.work(60_000)
        known, reached = known + 1, reached + (abs(search.worth - best) < 1e-9)
    assert known > 150 and reached >= 0.97 * known, (reached, known)


def test_two_clauses_that_pay_for_one_row_are_found():
    X, weights = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([1.0, 1.0, -1.0])
    cells, sums, _ = parts_of(X, weights)
    search = Improvement(clauses_of(cells, sums, 1), sums, 2, 0.0)
    search.work(20_000)
    assert search.worth == 1.0 and sorted(search.rule) == [(0,), (1,)]


@pytest.mark.thorough
@given(tables(), st.integers(1, 3), st.integers(1, 3), st.sampled_from([0.0, 0.15]))
@settings(max_examples=200, deadline=None)
def test_a_search_is_bounded_from_above_by_its_bound_and_from_below_by_its_rule(
    table, most, literals, cost
):
    X, weights = table
    best = reference.best(X, weights, most, literals, cost)
    for limits in ({"budget": 0}, {"budget": 500}, {"budget": 50_000}, {"seconds": 0.002}):
        found = search_rule(X, weights, max_clauses=most, max_literals=literals, min_gain=cost, **limits)
        worth = reference.worth(found.rule.clauses, X, weights, cost)
        assert worth <= best + 1e-9 <= found.bound + 2e-9
        assert found.gap == pytest.approx(0.0 if found.exact else found.bound - worth)
        assert len(found.rule.clauses) <= most and all(len(c) <= literals for c in found.rule.clauses)


def noisy(seed=0, rows=200, n=14):
    """Three clauses with a tenth of the labels flipped, as weights of sum 1."""
    rng = np.random.default_rng(seed)
    X = (rng.random((rows, n)) < 0.5).astype(np.uint8)
    y = (X[:, 0] & X[:, 1]) | (X[:, 2] & X[:, 3]) | X[:, 4] & X[:, 5]
    y = np.where(rng.random(rows) < 0.1, 1 - y, y)
    return X, np.where(y == 1, 1 / (y == 1).sum(), -1 / (y == 0).sum())


@pytest.mark.thorough
def test_with_noise_the_bound_falls_with_the_budget_below_the_trivial_one():
    X, weights = noisy()
    budgets = (0, 10_000_000, 100_000_000)
    found = [search_rule(X, weights, max_literals=3, budget=budget) for budget in budgets]
    trivial = np.maximum(merged(*clean(X, weights))[1], 0).sum()
    assert found[0].bound == pytest.approx(trivial) and found[-1].bound < 0.95 * trivial
    assert found[0].gap > found[1].gap > found[2].gap > 0
    assert found[0].weight <= found[1].weight <= found[2].weight
    again = search_rule(X, weights, max_literals=3, budget=budgets[1])
    assert again == found[1], "a budget of work is the same on every machine"


def test_with_more_clauses_than_are_kept_the_bound_counts_what_is_left_out():
    X, weights = noisy()
    cells, sums = merged(*clean(X, weights))
    whole, part = clauses_of(cells, sums, 3), clauses_of(cells, sums, 3, most=50)
    assert len(part.sizes) <= 50 < len(whole.sizes) and whole.rest == 0 < part.rest
    kept = set(part.named(np.arange(len(part.sizes))))
    for clause in reference.clauses(X.shape[1], 3):
        inside = reference.covered([clause], X)
        gain = weights[inside & (weights > 0)].sum()
        assert gain <= part.rest + 1e-9 or clause in kept or any(
            (reference.covered([other], X) & (weights > 0))[inside & (weights > 0)].all()
            and not (reference.covered([other], X) & (weights < 0) & ~inside).any()
            for other in kept
        )  # fmt: skip


SAID = re.compile(
    r"(?:No rule of at most (\d+) clauses? of at most (\d+) literals? weighs more"
    r"|The best rule of at most (\d+) clauses? of at most (\d+) literals? weighs "
    r"at most (?:([\d.]+)% more|([\d.e-]+), and this one ([\d.e-]+)))(?:, ([\d.]+) taken off for each clause)?\."
)


@given(st.integers(0, 2**32 - 1), st.sampled_from([None, 0.0]), st.integers(1, 3), st.integers(1, 2))
@settings(max_examples=40, deadline=None)
def test_what_is_said_of_a_learned_rule_is_so_of_all_rules(seed, seconds, most, literals):
    rng = np.random.default_rng(seed)
    X = (rng.random((40, 5)) < 0.5).astype(np.uint8)
    y = np.where(rng.random(40) < 0.15, rng.integers(0, 2, 40), X[:, 0] & X[:, 1] | X[:, 2])
    learned = learn_rule(X, y, max_clauses=most, max_literals=literals, seconds=seconds)
    signed = signed_weights(learned.machine, len(y))
    best = reference.best(X, signed, most, literals, learned.min_gain)
    worth = reference.worth(learned.rule.clauses, X, signed, learned.min_gain)
    assert learned.search.weight == pytest.approx(reference.worth(learned.rule.clauses, X, signed))
    said = SAID.fullmatch(learned.guarantee)
    assert [int(x) for x in said.groups()[:4] if x] == [most, literals]
    assert float(said[8] or 0) == learned.min_gain
    if said[1]:
        assert worth == pytest.approx(best, abs=1e-9)
    elif said[5]:
        assert worth - 1e-9 <= best <= worth * (1 + float(said[5]) / 100) + 1e-9
    else:
        assert best <= float(said[6]) * 1.005 and float(said[7]) == pytest.approx(worth, rel=0.005)


def test_a_share_is_rounded_up_and_nothing_is_no_share():
    def told(bound, worth, gain=0.0):
        gap = bound - worth
        return SearchResult(Rule(()), worth, 1, bound, gap, gap == 0).guarantee(1, 1, gain)

    assert told(1.0, 1.0) == "No rule of at most 1 clause of at most 1 literal weighs more."
    assert "weighs at most 25.0% more, 0.5 taken" in told(1.25, 1.0, 0.5)
    assert "weighs at most 25.1% more." in told(1.2501, 1.0) and "0.1% more" in told(1.0001, 1.0)
    assert told(0.5, 0.0).endswith("weighs at most 0.5, and this one 0.")
