"""Formulas that people type, against Python's own reading of the same formula."""

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recsys import InputError
from recsys.explain.rules.formula import formula_text, measure_formula, parse_formula, quoted
from recsys.explain.rules.rule import Rule

NAMES = ("a=x", "a=y", "b c=1", "d=<=50K", 'e="(or)"'.replace('"', ""), "f=not", "g=1 and 2")
ROWS = np.random.default_rng(0).integers(0, 2, (64, len(NAMES))).astype(np.uint8)

ATOM = st.integers(0, len(NAMES) - 1)
TREE = st.recursive(
    ATOM,
    lambda part: st.one_of(
        st.tuples(st.just("not"), part),
        st.tuples(st.sampled_from(["and", "or"]), part, part),
    ),
    max_leaves=12,
)


def written(tree, binds=0):
    """Return a tree as text with as few brackets as there may be."""
    if isinstance(tree, int):
        return quoted(NAMES[tree])
    if tree[0] == "not":
        return f"not {written(tree[1], 3)}"
    own = {"or": 1, "and": 2}[tree[0]]
    text = f"{written(tree[1], own)} {tree[0]} {written(tree[2], own)}"
    return f"({text})" if own < binds else text


def truth(tree, row):
    if isinstance(tree, int):
        return bool(row[tree])
    if tree[0] == "not":
        return not truth(tree[1], row)
    return (all if tree[0] == "and" else any)(truth(part, row) for part in tree[1:])


@settings(max_examples=200, deadline=None)
@given(TREE)
@example(("and", ("or", 0, ("and", 1, 2)), 3))  # in brackets: what is not is cut at each "or"
@example(("or", 0, ("and", 1, 2)))
@example(("or", ("and", 0, 1), 2))
def test_a_formula_holds_where_its_tree_does(tree):
    formula = parse_formula(written(tree), NAMES)
    assert formula.covers(ROWS).tolist() == [truth(tree, row) for row in ROWS]
    either = np.zeros(len(ROWS), dtype=bool)
    for text, holds in formula.each(ROWS):
        assert parse_formula(text, NAMES).covers(ROWS).tolist() == holds.tolist()
        either |= holds
    assert either.tolist() == formula.covers(ROWS).tolist()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(ATOM, min_size=1, max_size=4, unique=True), min_size=1, max_size=5))
def test_a_rule_written_as_a_formula_covers_what_it_did(clauses):
    rule = Rule(tuple(tuple(sorted(c)) for c in clauses), NAMES)
    formula = parse_formula(formula_text(rule), NAMES)
    assert formula.covers(ROWS).tolist() == rule.covers(ROWS).tolist()
    assert len(formula.clauses) == len(rule.clauses)


@settings(max_examples=100, deadline=None)
@given(TREE, st.lists(st.integers(0, 1), min_size=64, max_size=64))
def test_figures_are_counts_of_rows(tree, y):
    formula = parse_formula(written(tree), NAMES)
    found = measure_formula(formula, ROWS, y)
    told = [truth(tree, row) for row in ROWS]
    assert (found.rows, found.positives, found.covered) == (64, sum(y), sum(told))
    assert found.right == sum(t and k for t, k in zip(told, y, strict=True))
    assert found.accuracy == sum(t == bool(k) for t, k in zip(told, y, strict=True)) / 64
    assert found.base == max(sum(y), 64 - sum(y)) / 64
    each = [parse_formula(c.text, NAMES).covers(ROWS) for c in found.clauses]
    for k, clause in enumerate(found.clauses):
        others = [any(e[r] for j, e in enumerate(each) if j != k) for r in range(64)]
        assert clause.covered == sum(each[k]) and clause.right == sum(
            bool(y[r]) for r in range(64) if each[k][r]
        )
        assert clause.alone == sum(bool(each[k][r]) and not others[r] for r in range(64))


SAME = {
    "a=x and not b c=1": "a = x  AND NOT  b  c = 1",
    "a=x or a=y": "a=x ∨ a=y",
    "a=x and a=y or b c=1": "a=x & a=y | b c=1",
    "not a=x": "¬a=x",
    "not a=y": "a!=y",
    "a=x and (a=y or b c=1)": "A=X ∧(a=y∨b c=1)",
}


@pytest.mark.parametrize("plain", SAME)
def test_the_same_in_other_words(plain):
    one, other = parse_formula(plain, NAMES), parse_formula(SAME[plain], NAMES)
    assert one.covers(ROWS).tolist() == other.covers(ROWS).tolist()


WRONG = {
    "": "the formula is empty: type column=value, joined by and, or, not",
    "a=x and": "a name is missing after 'and'",
    "and a=x": "a name is missing before 'and'",
    "(a=x": "an opening bracket is not closed",
    "a=x)": "a closing bracket has no opening one",
    "()": "a name is missing before ')'",
    "a=x not a=y": "'and' or 'or' is missing before 'not'",
    "a=x (a=y)": "'and' or 'or' is missing before '('",
    "a=z": "no column=value 'a=z': did you mean 'a=",
    "qqqqqq": "no column=value 'qqqqqq': there are 7, such as a=x",
    '"a=x': 'a quotation mark is not closed: "a=x',
    "a=x " * 5000: "the formula has 20,000 characters; at most 10,000 are read",
    "__import__('os').system('true')": "'and' or 'or' is missing before|no column=value",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_with_a_formula_is_one_sentence(text):
    with pytest.raises(InputError) as caught:
        parse_formula(text, NAMES)
    assert any(told in str(caught.value) for told in WRONG[text].split("|")) and "\n" not in str(
        caught.value
    )


def test_deep_brackets_do_not_exhaust_the_stack():
    text = "(" * 4000 + "a=x" + ")" * 4000
    assert parse_formula(text, NAMES).covers(ROWS).tolist() == (ROWS[:, 0] > 0).tolist()
    text = "not " * 2001 + "a=x"
    assert parse_formula(text, NAMES).covers(ROWS).tolist() == (ROWS[:, 0] == 0).tolist()


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.sampled_from('ax=y()" andortb1c!¬∧∨&|'), max_size=30))
def test_whatever_is_typed_is_read_or_refused(text):
    try:
        formula = parse_formula(text, NAMES)
    except InputError as error:
        assert not re.search("Traceback|Error", str(error))
        return
    assert formula.covers(ROWS).shape == (64,)


def test_a_measured_rule_says_on_which_rows():
    from recsys.explain import measure_rule

    X = np.random.default_rng(1).integers(0, 2, (80, 5))
    y = X[:, 0] & X[:, 2] | X[:, 4]
    found = measure_rule(X, y, seed=3, names=tuple(f"c{k}=1" for k in range(5)))
    assert (
        len(found.held) == found.held_out == len(set(found.held)) and found.held_out + found.rows == 80
    )
    again = measure_formula(
        parse_formula(formula_text(found.rule), found.rule.names), X[found.held], y[found.held]
    )
    assert again.accuracy == found.accuracy and again.base == found.majority
