"""The SVM at several costs: scikit-learn's at each, and the AUC from its values."""

import doctest

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from benchmarks.lab import svm_path
from benchmarks.lab.common import COSTS, nested_auc, svm_aucs
from benchmarks.lab.svm_path import decisions
from recsys.kernels import make_kernel


def rows(seed, n=60, d=12):
    """Rows of ones and zeros, their labels, some of which are turned, and two kernels of them."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, d)) < 0.4).astype(np.uint8)
    y = ((X[:, 0] & X[:, 1]) | X[:, 2]).astype(int)
    y = np.where(rng.random(n) < 0.15, 1 - y, y)
    X[: n // 6] = X[-(n // 6) :]  # equal rows, of other labels too: a singular matrix
    return (
        X,
        y,
        [make_kernel("linear")(X, normalize=True), make_kernel("mc", degree=2)(X, normalize=True)],
    )


def theirs(K, y, train, test, cost, tol):
    model = SVC(C=cost, kernel="precomputed", tol=tol).fit(K[np.ix_(train, train)], y[train])
    return model.decision_function(K[np.ix_(test, train)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("labels", [(0, 1), (-1, 1)])
def test_each_cost_has_scikit_learns_values(seed, labels):
    _, y, grams = rows(seed)
    y = np.where(y > 0, labels[1], labels[0])
    train, test = np.arange(45), np.arange(45, 60)
    for K in grams:
        ours = decisions(K, train, test, y, COSTS, tol=1e-8)
        for values, cost in zip(ours, COSTS, strict=True):
            # Its solver keeps columns of the matrix in float32.
            np.testing.assert_allclose(values, theirs(K, y, train, test, cost, 1e-8), atol=1e-4)
            alone = decisions(K, train, test, y, [cost], tol=1e-8)[0]
            np.testing.assert_allclose(values, alone, atol=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(5))
def test_each_cost_is_solved(seed):
    """By weak duality nothing is below the dual objective: the primal one is there."""
    _, y, grams = rows(seed)
    signs = np.where(y > 0, 1.0, -1.0)
    for K in grams:
        signed, offsets = svm_path._path(K, signs, np.array(COSTS), 1e-8, 10**7)
        for cost, a, b in zip(COSTS, signed, offsets, strict=True):
            alpha = signs * a
            assert (0 <= alpha).all() and (alpha <= cost).all() and abs(a.sum()) < 1e-9
            dual = alpha.sum() - 0.5 * a @ K @ a
            slack = np.maximum(0.0, 1.0 - signs * (K @ a + b)).sum()
            primal = 0.5 * a @ K @ a + cost * slack
            assert dual <= primal + 1e-9 and primal - dual < 1e-6 * max(1.0, primal)


@pytest.mark.thorough
def test_aucs_are_those_of_the_values_ties_too():
    _, y, (_, K) = rows(1)
    train, test = np.arange(30), np.arange(10, 60)  # rows that are equal have equal values
    found = svm_aucs(K, y, train, test, COSTS)
    wanted = [roc_auc_score(y[test], v) for v in decisions(K, train, test, y, COSTS)]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_costs_ascend():
    _, y, (K, _) = rows(0)
    with pytest.raises(ValueError, match="costs ascend"):
        decisions(K, np.arange(30), np.arange(30, 60), y, [1.0, 0.5])


@pytest.mark.thorough
@pytest.mark.parametrize("joint", [True, False])
def test_nested_validation_chooses_as_one_fit_at_a_time_does(joint):
    _, y, grams = rows(3, n=90)
    wanted = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=7).split(y, y):
        folds = list(StratifiedKFold(5, shuffle=True, random_state=7).split(train, y[train]))[:3]

        def mean(k, cost, train=train, folds=folds):
            return np.mean([svm_aucs(grams[k], y, train[a], train[b], [cost])[0] for a, b in folds])

        pairs = [(k, cost) for k in range(2) for cost in COSTS]
        if not joint:
            first = max(range(2), key=lambda k: mean(k, 1.0))
            pairs = [(first, cost) for cost in COSTS]
        k, cost = max(pairs, key=lambda pair: mean(*pair))
        wanted.append(svm_aucs(grams[k], y, train, test, [cost])[0])
    np.testing.assert_allclose(nested_auc(grams, y, 7, 3, joint=joint), wanted, atol=0.02)
    assert len(set(wanted)) > 1


def test_the_example_runs():
    assert doctest.testmod(svm_path).failed == 0
