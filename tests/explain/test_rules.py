from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from benchmarks.lab.common import artificial_dnf
from recsys import InputError
from recsys.datasets.categorical import load_table
from recsys.explain import (
    Rule,
    agreement,
    learn_rule,
    rule_weight,
    search_rule,
    signed_weights,
)
from recsys.explain.rule import tidy
from recsys.kernel_machines import GRAM, KOMD
from recsys.kernels import make_kernel
from tests.reference import rules as reference


def cases(seed, rows=14, n=6):
    rng = np.random.default_rng(seed)
    return (rng.random((rows, n)) < 0.5).astype(np.uint8), rng.normal(size=rows)


def every_clause(n, most):
    return [c for size in range(1, most + 1) for c in combinations(range(n), size)]


def test_a_rule_reads_covers_and_implies():
    rule = tidy([(2, 0), (1,), (1, 2)], ["a", "b", "c"])
    assert str(rule) == "b ∨ (a ∧ c)" and rule.literals == 3
    assert rule.covers(np.array([[1, 0, 1], [0, 1, 0], [1, 0, 0]])).tolist() == [True, True, False]
    assert (
        str(Rule(())) == "never" and str(Rule(((),))) == "always" and str(Rule(((0, 1),))) == "x0 ∧ x1"
    )
    with pytest.raises(InputError, match="needs feature 7"):
        Rule(((7,),)).covers(np.ones((1, 3)))


@given(st.integers(0, 10_000), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_one_clause_is_the_best_of_all(seed, most):
    X, weights = cases(seed)
    if not (weights > 0).any():
        return
    best = max(rule_weight(Rule((c,)), X, weights) for c in every_clause(6, most))
    found = search_rule(X, weights, max_clauses=1, max_literals=most)
    if best > 0:
        assert found.weight == pytest.approx(best)
        assert rule_weight(found.rule, X, weights) == pytest.approx(found.weight)
    else:
        assert found.rule.clauses == ()


@pytest.mark.thorough
@given(st.integers(0, 10_000), st.integers(1, 3), st.sampled_from([0.0, 0.3]))
@settings(max_examples=80, deadline=None)
def test_several_clauses_are_within_their_bound(seed, clauses, cost):
    X, weights = cases(seed)
    if not (weights > 0).any():
        return
    best = reference.best(X, weights, clauses, 2, cost)
    found = search_rule(X, weights, max_clauses=clauses, max_literals=2, min_gain=cost)
    worth = reference.worth(found.rule.clauses, X, weights, cost)
    assert len(found.rule.clauses) <= clauses and all(len(c) <= 2 for c in found.rule.clauses)
    assert found.weight == pytest.approx(reference.worth(found.rule.clauses, X, weights))
    assert worth <= best + 1e-9 <= found.bound + 2e-9
    if found.exact:
        assert worth == pytest.approx(best, abs=1e-9)


def test_two_clauses_that_share_a_negative_row_are_within_the_bound():
    """Neither is worth anything alone: no search that adds one at a time finds the rule of both."""
    X, weights = np.array([[1, 0], [0, 1], [1, 1]]), np.array([0.6, 0.6, -0.7])
    best = reference.best(X, weights, 2, 2)
    found = search_rule(X, weights, max_clauses=2)
    assert best == pytest.approx(0.5) and best <= found.bound + 1e-9
    assert not found.exact or found.weight == pytest.approx(best)


def test_rows_that_are_equal_are_taken_together():
    """A row of each class that nothing tells apart adds the difference, or nothing."""
    X = np.array([[1, 0], [1, 0], [0, 1], [0, 0]])
    found = search_rule(X, [0.5, -0.2, 0.3, 0.2], max_clauses=2)
    assert found.exact and found.bound == pytest.approx(0.6) and found.rule.clauses == ((0,), (1,))


def test_rules_over_more_features_than_a_word_has_bits():
    rng = np.random.default_rng(0)
    X = (rng.random((300, 150)) < 0.5).astype(np.uint8)
    y = X[:, 3] & X[:, 149] | X[:, 70] & X[:, 64]
    signed = np.where(y == 1, 1.0, -1.0)
    assert search_rule(X, signed).rule == Rule(((3, 149), (64, 70)))


def test_weights_come_from_any_of_the_machines():
    table, _ = artificial_dnf(2, 2, rows=120, features=12, seed=3)
    K = make_kernel("mdnf-sum", d=2, c=2)(table.X, normalize=True)
    machines = [
        KOMD(0.0, kernel="mdnf-sum", kernel_params={"d": 2, "c": 2}).fit(table.X, table.y),
        GRAM(kernels=["linear", make_kernel("mc", degree=2)], max_iter=5).fit(table.X, table.y),
        SVC(C=1e6, kernel="precomputed").fit(K, table.y),
    ]
    for machine in machines:
        signed = signed_weights(machine, 120)
        assert signed[signed > 0].sum() == pytest.approx(1) and signed[
            signed < 0
        ].sum() == pytest.approx(-1)
        assert (signed[table.y == 0] <= 0).all() and (signed[table.y == 1] >= 0).all()
    with pytest.raises(InputError, match="not fitted on 7 rows"):
        signed_weights(machines[0], 7)
    with pytest.raises(InputError, match="no weights on its training rows"):
        from sklearn.linear_model import LogisticRegression

        signed_weights(LogisticRegression().fit(table.X, table.y), 120)


def test_weights_of_all_formulas_give_the_machines_decisions():
    """(7.1): with the kernel that counts conjunctions of two, w·φ(x) = Σ weight of each that x holds."""
    X, y = artificial_dnf(2, 2, rows=60, features=8, seed=3)[0].X, np.arange(60)
    signed = np.where(y % 3, -1.0, 2.0) / 60
    K = make_kernel("mc", degree=2)(X)
    pairs = combinations(range(8), 2)
    decisions = sum(
        rule_weight(Rule((pair,)), X, signed) * Rule((pair,)).covers(X).astype(float) for pair in pairs
    )
    np.testing.assert_allclose(decisions, K @ signed, atol=1e-12)


def test_accuracy_and_fidelity_are_shares_of_rows():
    X, rule = np.array([[1, 1], [1, 0], [0, 1], [0, 0]]), Rule(((0, 1), (1,)))
    holds = [bool(b) or bool(a and b) for a, b in X]
    for positive in ([True, False, True, False], [0, 0, 0, 1], [1, 1, 1, 1]):
        right = sum(bool(p) == h for p, h in zip(positive, holds, strict=True)) / 4
        assert agreement(rule, X, positive) == right


def test_clean_tables_have_a_rule_of_all_weight():
    """Of Table 7.2: what one search finds weighs as much as any rule can."""
    for d, c in ((2, 4), (3, 3), (5, 5)):
        data = artificial_dnf(d, c, seed=10 * d + c)[0]
        machine = KOMD(0.0, kernel="mdnf-sum", kernel_params={"d": 10, "c": 5}).fit(data.X, data.y)
        found = search_rule(data.X, signed_weights(machine, len(data.y)))
        assert found.exact and found.weight == pytest.approx(1.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["monks-1", "monks-3", "tic-tac-toe"])
def test_rules_are_exact_on_held_out_rows(name):
    table = load_table(name)
    X, held, y, truth = train_test_split(
        table.X, table.y, test_size=0.3, random_state=0, stratify=table.y
    )
    learned = learn_rule(X, y, names=table.names)
    assert agreement(learned.rule, held, truth == 1) == 1.0


@pytest.mark.thorough
def test_noise_is_not_learned_by_heart():
    rng = np.random.default_rng(0)
    table, rule = artificial_dnf(2, 2, rows=600, features=20, seed=5)
    y = np.where(rng.random(600) < 0.1, 1 - table.y, table.y)
    learned = learn_rule(table.X[:400], y[:400])
    clean = agreement(learned.rule, table.X[400:], table.y[400:] == 1)
    assert clean > 0.95, (learned.rule, rule)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: search_rule(np.eye(3), [1.0, -1.0]), "3 rows and weights of shape"),
        (lambda: search_rule(np.eye(2), [np.nan, 1.0]), "NaN or infinity"),
        (lambda: search_rule(np.eye(2), [-1.0, -1.0]), "one row of positive weight"),
        (lambda: search_rule(np.eye(2), [1.0, -1.0], max_clauses=0), "max_clauses"),
        (lambda: search_rule(np.eye(2), [1.0, -1.0], names=("a",)), "2 features and 1 names"),
        (lambda: learn_rule(np.eye(3), [1, 1, 1]), "two classes"),
    ],
)
def test_bad_input_to_a_search(call, message):
    with pytest.raises(InputError, match=message):
        call()
