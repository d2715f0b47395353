"""Weights of pairs: as repeated pairs, and by what the objective says."""

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError
from recsys.links import (
    FactorizedBilinear,
    LinkPredictor,
    LowRankBilinear,
    PairDNN,
    PairFactorizationMachine,
    PairNet,
    PairSVM,
)
from tests.links.contract import name_of, world
from tests.neural import TORCH
from tests.reference import links as reference
from tests.reference.fm import LOSSES

# The default of beta goes by the number of pairs, not by their weights.
FEW = dict(n_components=2, max_iter=4, tol=0.0, beta=0.01)
QUICK = [FactorizedBilinear(**FEW), PairSVM(tol=1e-12)]
SLOWER = [
    LowRankBilinear(**FEW),
    PairNet(degree=3, similarity=True, loss="squared_hinge", **FEW),
    PairNet(degree=4, **FEW),
    PairFactorizationMachine(degree=3, penalty="ti", gamma=1e-3, **FEW),
    PairFactorizationMachine(degree=3, fit_lower="simplex", **FEW),
    PairFactorizationMachine(degree=3, fit_lower="augment", symmetric=None, **FEW),
]


def drawn(seed, one):
    """A small world, and integer weights of its pairs."""
    A, B, pairs, y = world(seed, one, n=60)
    if one:  # so that features may be shared, and pairs of an object with itself are there
        pairs[:3] = pairs[:3, :1]
    weights = np.random.default_rng(seed).integers(0, 4, 60)
    weights[[np.argmin(y), np.argmax(y)]] = 2
    return A, B, pairs, y, weights


def check_repeated(model, seed, one):
    A, B, pairs, y, weights = drawn(seed, one)
    if B is not None and getattr(model, "similarity", False):
        B = np.pad(B, ((0, 0), (0, 1)))
    again = np.repeat(np.arange(60), weights)
    scores = [
        sklearn.clone(model).fit(A, B, pairs[some], y[some], given).decision_function(A, B, pairs)
        for some, given in ((slice(None), weights), (again, None))
    ]
    np.testing.assert_allclose(*scores, rtol=1e-5, atol=1e-6 if isinstance(model, PairSVM) else 1e-8)
    kept = weights > 0
    left = sklearn.clone(model).fit(A, B, pairs[kept], y[kept], weights[kept])
    np.testing.assert_array_equal(left.decision_function(A, B, pairs), scores[0])


@pytest.mark.parametrize("one", [False, True])
@pytest.mark.parametrize("model", QUICK, ids=name_of)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=8, deadline=None)
def test_integers_are_repeated_pairs(model, one, seed):
    check_repeated(model, seed, one)


@pytest.mark.thorough
@pytest.mark.parametrize("one", [False, True])
@pytest.mark.parametrize("model", SLOWER, ids=name_of)
def test_integers_are_repeated_pairs_in_other_models(model, one):
    check_repeated(model, 3, one)


@pytest.mark.parametrize("loss", ["logistic", "squared", "squared_hinge"])
def test_the_objective_is_that_of_the_definition(loss):
    A, B, pairs, y, _ = drawn(0, False)
    weights = np.random.default_rng(1).exponential(size=60)
    model = FactorizedBilinear(loss=loss, **FEW).fit(A, B, pairs, y, weights)
    terms = [(term.left, term.right, term.weights, term.degree) for term in model.terms_]
    scores = reference.predict(terms, model.intercept_, A, B, pairs, False)
    losses = LOSSES[loss](scores, np.where(y, 1.0, -1.0))
    squares = sum((part**2).sum() for part in (model.terms_[0].left, model.terms_[0].right))
    slow = np.average(losses, weights=weights) + 0.005 * squares
    assert model.history_[-1]["objective"] == pytest.approx(slow, rel=1e-10)
    found = [entry["objective"] for entry in model.history_]
    assert (np.diff(found) < 0).all()


@pytest.mark.parametrize("direct", [True, False])
def test_the_machine_is_at_the_optimum_of_the_weighted_sum(monkeypatch, direct):
    from recsys.links import pair_newton
    from tests.links.test_pair_newton import kernel, use

    use(monkeypatch, direct)
    A, B, pairs, y, _ = drawn(0, False)
    weights = np.random.default_rng(1).exponential(size=60)
    model = PairSVM(C=0.3, tol=1e-10).fit(A, B, pairs, y, weights)
    assert pair_newton.DIRECT == (4000 if direct else 0)
    # stationary: α = 2C·v·y·max(0, 1 − y·score)
    signs, scores = np.where(y, 1.0, -1.0), kernel(model, A, B, pairs) @ model.dual_coef_
    np.testing.assert_allclose(model.decision_function(A, B, pairs), scores, atol=1e-8)
    expected = 2.0 * 0.3 * weights * signs * np.maximum(0.0, 1.0 - signs * scores)
    np.testing.assert_allclose(model.dual_coef_, expected, rtol=1e-3, atol=1e-5)


def test_weights_that_are_alike_change_nothing_where_the_loss_is_a_mean():
    A, B, pairs, y, _ = drawn(0, False)
    found = [
        FactorizedBilinear(**FEW).fit(A, B, pairs, y, given).decision_function(A, B, pairs)
        for given in (None, np.full(60, 3.0))
    ]
    np.testing.assert_array_equal(*found)
    twice = PairSVM(C=1.0, tol=1e-10).fit(A, B, pairs, y, np.full(60, 2.0))
    double = PairSVM(C=2.0, tol=1e-10).fit(A, B, pairs, y)
    ours, other = (model.decision_function(A, B, pairs) for model in (twice, double))
    np.testing.assert_allclose(ours, other, atol=1e-5)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], "shape"),
        (np.ones((60, 1)), "shape"),
        (-np.ones(60), "at least 0"),
        (np.full(60, np.nan), "NaN or infinity"),
        (np.zeros(60), "zero for all 60 pairs"),
    ],
)
def test_what_is_no_weight_is_refused_in_one_line(weights, message):
    A, B, pairs, y, _ = drawn(0, False)
    model = FactorizedBilinear(**FEW)
    with pytest.raises(InputError, match=message) as error:
        model.fit(A, B, pairs, y, sample_weight=weights)
    assert "\n" not in str(error.value)
    with pytest.raises(InputError, match=message):
        model.fit(A, B, pairs, y).score(A, B, pairs, y, sample_weight=weights)
    with pytest.raises(InputError, match="two classes"):
        model.fit(A, B, pairs, y, sample_weight=y)


def test_a_predictor_that_does_not_say_it_takes_them_refuses_them():
    class Own(LinkPredictor):
        def check_parameters(self):
            pass

        def _fit(self, task):
            pass

    A, B, pairs, y, weights = drawn(0, False)
    Own().fit(A, B, pairs, y)
    with pytest.raises(InputError, match="Own takes no sample_weight: .*'pairnet'"):
        Own().fit(A, B, pairs, y, weights)


def test_the_accuracy_is_weighted():
    A, B, pairs, y, weights = drawn(0, False)
    model = FactorizedBilinear(**FEW).fit(A, B, pairs, y)
    right = model.predict(A, B, pairs) == y
    expected = np.average(right, weights=weights)
    assert model.score(A, B, pairs, y, sample_weight=weights) == pytest.approx(expected)


class TestTorch:
    pytestmark = TORCH

    def test_networks_follow_the_weights(self):
        A, B, pairs, y, _ = drawn(0, False)
        first = np.arange(60) % 2 == 0
        weights = np.where(first, 1.0, 1e-6)
        turned = np.where(first, y, ~y)
        model = PairDNN(n_components=8, hidden=16, layers=1, dropout=0.0, epochs=200, batch_size=20)
        model.fit(A, B, pairs, turned, weights)
        assert model.score(A, B, pairs[first], y[first]) > 0.9
        found = [
            sklearn.clone(model)
            .set_params(epochs=2)
            .fit(A, B, pairs, y, given)
            .decision_function(A, B, pairs)
            for given in (None, np.full(60, 3.0))
        ]
        np.testing.assert_array_equal(*found)


def test_a_regularization_of_float32_is_a_number_as_well():
    A, B, pairs, y, weights = drawn(1, False)
    for some in (None, weights):
        scores = [
            PairSVM(C=C).fit(A, B, pairs, y, some).decision_function(A, B, pairs)
            for C in (0.5, np.float32(0.5))
        ]
        np.testing.assert_array_equal(*scores)


def test_a_score_wants_a_label_for_each_pair():
    A, B, pairs, y, weights = drawn(1, False)
    model = FactorizedBilinear(**FEW).fit(A, B, pairs, y)
    for labels in (y[:, None], y[:7]):
        for some in (None, weights):
            with pytest.raises(InputError, match="^y has shape .* for 60 pairs$"):
                model.score(A, B, pairs, labels, some)
