from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError
from recsys.kernels.propositional import OPERATORS, Expression, parse, random_expression
from tests.reference.kernels import normalised
from tests.reference.propositional import features, states

SLOT = Expression()


def expressions(depth):
    if depth == 0:
        return st.just(SLOT)
    smaller = expressions(depth - 1)
    return st.one_of(
        st.just(SLOT),
        smaller.map(lambda e: Expression("~", (e,))),
        st.tuples(st.sampled_from(list(OPERATORS)), smaller, smaller).map(
            lambda t: Expression(t[0], (t[1], t[2]))
        ),
    )


def check(expression, X, rtol=1e-12):
    F = np.array([features(expression, x) for x in X], dtype=float)
    np.testing.assert_allclose(expression(X), F @ F.T, rtol=rtol)
    np.testing.assert_allclose(expression(X, X[:1]), F @ F[:1].T, rtol=rtol)
    np.testing.assert_allclose(expression(X, normalize=True), normalised(F @ F.T), atol=1e-9)
    assert expression.dimension(X.shape[1]) == F.shape[1]


@pytest.mark.parametrize("n", [1, 3, 5])
@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_equals_enumeration(operator, n):
    X = np.array(list(product((0, 1), repeat=n)))
    check(Expression(operator, (SLOT, SLOT)), X)
    check(Expression(operator, (Expression("~", (SLOT,)), Expression("&", (SLOT, SLOT)))), X)


@settings(max_examples=60, deadline=None)
@given(expressions(3), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_any_formula_of_depth_three_equals_enumeration(expression, n, seed):
    X = (np.random.default_rng(seed).random((5, n)) < 0.5).astype(int)
    check(expression, X)


@settings(max_examples=80, deadline=None)
@given(expressions(3), st.integers(0, 2**32 - 1))
def test_rare_and_frequent_features_keep_their_digits(expression, seed):
    """n = 100,000, rows of nearly no and of nearly all ones: a share of 1e-10 is not 1 − (1 − 1e-10)."""
    n = 100_000
    rng = np.random.default_rng(seed)
    X = np.zeros((4, n), dtype=np.int8)
    X[0, :2], X[1, 1:4] = 1, 1
    X[2, : n - 3], X[3, 2:] = 1, 1
    for row in X[rng.permutation(4)[:2]]:
        row[rng.integers(0, n, 2)] ^= 1
    K = expression(X, normalize=True)
    S, size = X.astype(int) @ X.T.astype(int), X.sum(axis=1, dtype=int)

    def exact(i, j):
        s, a, b = int(S[i, j]), int(size[i]), int(size[j])
        slot = {(1, 1): s, (1, 0): a - s, (0, 1): b - s, (0, 0): n - a - b + s}
        return states(expression, slot)[1, 1]

    for i in range(4):
        for j in range(i):
            value, own, other = exact(i, j), exact(i, i), exact(j, j)
            expected = float(Fraction(value * value, own * other)) ** 0.5 if own * other else 0.0
            assert K[i, j] == pytest.approx(expected, rel=1e-12, abs=0)


def test_a_double_negation_is_none():
    X = np.zeros((2, 100_000), dtype=np.int8)
    X[0, [0, 1]], X[1, [0, 5]] = 1, 1
    for text in ("~(~(a & b) | ~(c & d))", "(a & b) & (c & d)"):
        assert parse(text)(X, normalize=True)[0, 1] == pytest.approx(0.0625, rel=1e-14)


@settings(max_examples=200, deadline=None)
@given(expressions(4))
def test_text_is_read_back(expression):
    assert parse(str(expression)) == expression


@pytest.mark.parametrize(
    "text, other",
    [
        ("(a & b) | ~c", "a ∧ b ∨ ¬c"),
        ("a -> b <-> c", "(a → b) ↔ c"),
        ("a | b ^ c & d", "a ∨ (b ⊕ (c ∧ d))"),
        ("not a and b or c", "(¬a ∧ b) ∨ c"),
        ("a nand b", "a ↑ b"),
        ("a nor b", "a ↓ b"),
        ("a -/> b", "a ↛ b"),
        ("a </- b", "a ↚ b"),
        ("a <- b", "a ← b"),
        ("!a xor b", "¬a ⊕ b"),
    ],
)
def test_forms_and_precedence(text, other):
    assert parse(text) == parse(other)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a &",
        "& a",
        "(a",
        "a)",
        "a b",
        "a $ b",
        "()",
        "~",
        "a & & b",
        "(" * 300 + "a" + ")" * 300,
        None,
    ],
)
def test_what_is_no_formula_is_refused(text):
    with pytest.raises(InputError, match="formula"):
        parse(text)


def test_deep_formulas_overflow_in_words_and_normalise():
    expression = SLOT
    for _ in range(9):
        expression = Expression("|", (expression, expression))
    X = (np.random.default_rng(0).random((4, 50)) < 0.02).astype(int)
    with pytest.raises(InputError, match="normalize=True"):
        expression(X)
    K = expression(X, normalize=True)
    assert np.isfinite(K).all() and (np.linalg.eigvalsh(K) > -1e-9).all()


def test_random_expressions_get_shorter_with_the_decay():
    rng = np.random.default_rng(0)
    lengths = [random_expression(0.7, rng).operators for _ in range(3000)]
    assert 0.8 < np.mean(lengths) < 1.0  # as the printed algorithm gives
    longer = np.mean([random_expression(0.2, rng).operators for _ in range(3000)])
    assert (
        longer > np.mean(lengths) > np.mean([random_expression(3.0, rng).operators for _ in range(3000)])
    )
    first, again = (str(random_expression(0.7, np.random.default_rng(5))) for _ in range(2))
    assert first == again
    with pytest.raises(InputError, match="decay"):
        random_expression(-1, rng)
