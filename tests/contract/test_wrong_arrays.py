"""What is no array of numbers, or does not fit the other arguments, is one InputError at every function."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp

from recsys import InputError, explain
from recsys.evaluation import holm, metrics
from recsys.evaluation.metrics import ListContext
from recsys.explain import Rule
from recsys.kernels import list_kernels, make_kernel
from recsys.links import (
    link_metrics,
    make_link_predictor,
    sample_negatives,
    split_objects,
    split_pairs,
)
from recsys.multilinear import (
    PairTerm,
    newton_identities,
    object_tables,
    predict_pairs,
    symmetric_polynomials,
)
from recsys.optim.simplex_qp import solve_simplex

R = sp.csr_matrix(np.eye(4))
TERM = PairTerm(np.array([0.0, 1.0, 0.0]), np.ones((4, 1)), np.ones((4, 1)), np.ones(1))
ZERO = np.zeros(1, np.int64)
X, SIGNED = [[1, 1], [0, 1], [1, 0], [0, 0]], [0.5, 0.5, -0.5, -0.5]
LINKS = [[0, 1], [1, 2], [0, 3], [2, 3]]
PAIRS, Y = np.array([[0, 1], [1, 2], [2, 3], [0, 3]]), [1, 0, 1, 0]

# Each takes one array or matrix; the others are right.
TAKES = {
    "symmetric_polynomials": lambda a: symmetric_polynomials(a, 2),
    "newton_identities": newton_identities,
    "object_tables, X": lambda a: object_tables(a, np.ones(4), 2),
    "object_tables, p": lambda a: object_tables(R, a, 2),
    "predict_pairs, A": lambda a: predict_pairs([TERM], a, R, ZERO, ZERO),
    "predict_pairs, left": lambda a: predict_pairs([TERM], R, R, a, ZERO),
    "solve_simplex, K": solve_simplex,
    "solve_simplex, q": lambda a: solve_simplex(np.eye(3), a),
    "holm": holm,
    "link_metrics, labels": lambda a: link_metrics(a, [1.0, 2.0, 3.0, 4.0]),
    "link_metrics, scores": lambda a: link_metrics([1, 0, 1, 0], a),
    "sample_negatives": lambda a: sample_negatives(a, 4, 4, 2),
    "split_pairs": lambda a: split_pairs(a, 4, 4),
    "split_objects": lambda a: split_objects(a, 4, 4),
    "learn_rule, X": lambda a: explain.learn_rule(a, [0, 0, 1, 1]),
    "learn_rule, y": lambda a: explain.learn_rule(X, a),
    "measure_rule, y": lambda a: explain.measure_rule(X, a),
    "search_rule, X": lambda a: explain.search_rule(a, SIGNED),
    "search_rule, signed": lambda a: explain.search_rule(X, a),
    "agreement": lambda a: explain.agreement(Rule(((0,),)), X, a),
    "rule_weight": lambda a: explain.rule_weight(Rule(((0,),)), X, a),
    "a link predictor, A": lambda a: make_link_predictor("bilinear").fit(a, None, PAIRS, Y),
    "a link predictor, y": lambda a: make_link_predictor("bilinear").fit(np.eye(4), None, PAIRS, a),
    "a link predictor, pairs": lambda a: make_link_predictor("bilinear").fit(np.eye(4), None, a, Y),
}
TAKES |= {
    f"metrics.{name}": lambda a, name=name: getattr(metrics, name)(a, R, R)
    for name in (
        "auc",
        "average_precision",
        "hit_rate",
        "mrr",
        "ndcg",
        "precision",
        "recall",
    )
}
TAKES |= {
    f"metrics.{name}": lambda a, name=name: getattr(metrics, name)(a, ListContext(R, R))
    for name in ("average_popularity", "coverage", "gini", "novelty", "serendipity")
}
TAKES |= {f"kernel {name}": lambda a, name=name: make_kernel(name)(a) for name in list_kernels()}

WRONG = {
    "objects": np.array([[object(), 1.0], [2.0, None]], dtype=object),
    "a vector of objects": np.array([object(), 1.0, None, "x"], dtype=object),
    "texts": np.array(["a", "b", "c", "d"]),
    "lists of unequal lengths": [[1.0, 2.0], [3.0]],
    "complex numbers": np.array([1j, 2j, 3j, 4j]),
    "a dictionary": {"a": 1},
    "nothing": None,
    "dates": np.array(["2020-01-01"] * 4, dtype="datetime64[D]"),
}
FINE = {("solve_simplex, q", "nothing")}
FINE |= {
    ("newton_identities", "complex numbers"),
    ("learn_rule, y", "texts"),
    ("measure_rule, y", "texts"),
}
FINE |= {("a link predictor, y", "texts"), ("a link predictor, y", "complex numbers")}


@pytest.mark.parametrize("name", TAKES)
def test_what_is_no_array_of_numbers_is_one_error(name):
    for wrong, given in WRONG.items():
        if (name, wrong) in FINE:
            continue
        with pytest.raises(InputError) as caught:
            TAKES[name](given)
        assert "\n" not in str(caught.value) and len(str(caught.value)) > 10, (name, wrong)


MISFITS = {
    "p-values that are a dictionary": lambda: holm({}),
    "p-values above 1": lambda: holm([0.1, 1.5]),
    "p-values that are not numbers": lambda: holm([0.1, float("nan")]),
    "a row and twenty labels": lambda: explain.learn_rule(np.eye(1), np.arange(20) % 2),
    "labels and fewer rows": lambda: explain.measure_rule(np.eye(4), [0, 1, 0]),
    "a rule's weights": lambda: explain.rule_weight(Rule(((0,),)), X, [1.0]),
    "a rule's labels": lambda: explain.agreement(Rule(((0,),)), X, [True]),
    "a vector of links": lambda: split_pairs([0, 1, 2], 4),
    "links beyond the objects": lambda: split_pairs([[0, 9]], 4),
    "links below 0": lambda: split_objects([[0, -1]], 4, 4),
    "half a link": lambda: split_objects([[0.5, 1.0]], 4, 4),
    "no objects": lambda: split_pairs(LINKS, 0),
    "a count below 0": lambda: sample_negatives(LINKS, 4, 4, -1),
    "a seed below 0": lambda: split_pairs(LINKS, 4, seed=-1),
    "fewer scores than labels": lambda: link_metrics([1, 0], [1.0]),
    "no order": lambda: symmetric_polynomials([1.0], 0),
    "pairs beyond the rows": lambda: predict_pairs([TERM], R, R, np.array([9]), ZERO),
    "coefficients of other features": lambda: object_tables(R, np.ones(3), 2),
}


@pytest.mark.parametrize("name", MISFITS)
def test_arguments_that_do_not_fit_are_one_error(name):
    with pytest.raises(InputError) as caught:
        MISFITS[name]()
    assert "\n" not in str(caught.value)


def test_right_arrays_of_other_kinds_are_taken():
    assert symmetric_polynomials([1, 2, 3], 3).tolist() == [6.0, 11.0, 6.0]
    assert symmetric_polynomials(np.array([1.0, 2.0], dtype=np.float32), 2).tolist() == [3.0, 2.0]
    assert object_tables(np.eye(4, dtype=int), [1, 2, 3, 4], 1)[:, 1].tolist() == [1.0, 2.0, 3.0, 4.0]
    assert holm([]) == []


def test_every_function_of_the_modules_is_tried():
    import recsys.multilinear

    tried = {name.split(",")[0].removeprefix("metrics.") for name in TAKES}
    others = {"diversity", "parse_metric", "ranking_values"}
    for module in (recsys.multilinear, metrics):
        for name in module.__all__:
            if inspect.isfunction(getattr(module, name)):
                assert name in tried | others, name
