"""PairSVM: a fit ends at the optimum, or says that it does not."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from recsys.links import PairSVM
from tests.links.contract import world


def kernel(model, A, B, pairs):
    """The kernel of the pairs plus 1, from the outer products of their ends."""
    wide = np.einsum("pi,pj->pij", A[pairs[:, 0]], (A if B is None else B)[pairs[:, 1]])
    if model.symmetric_:
        wide = 0.5 * (wide + wide.transpose(0, 2, 1))
    wide = wide.reshape(len(pairs), -1)
    return wide @ wide.T + 1.0


def reached(model, A, B, pairs, y):
    """The objective of a fit: its weights' norm from the coefficients, its losses from its scores."""
    K, signs = kernel(model, A, B, pairs), np.where(y, 1.0, -1.0)
    hinge = np.maximum(0.0, 1.0 - signs * model.decision_function(A, B, pairs))
    return 0.5 * model.dual_coef_ @ K @ model.dual_coef_ + model.C * (hinge**2).sum()


def optimum(model, A, B, pairs, y):
    """The least objective, in the space of features, by L-BFGS from nothing and again from its end."""
    K, signs = kernel(model, A, B, pairs), np.where(y, 1.0, -1.0)
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-12 * values.max()
    F = vectors[:, kept] * np.sqrt(values[kept])

    def value(w):
        hinge = np.maximum(0.0, 1.0 - signs * (F @ w))
        return 0.5 * w @ w + model.C * hinge @ hinge, w - 2.0 * model.C * F.T @ (signs * hinge)

    w, best = np.zeros(F.shape[1]), np.inf
    for _ in range(20):
        found = minimize(
            value, w, jac=True, method="L-BFGS-B", options={"maxiter": 10_000, "ftol": 1e-15}
        )
        if found.fun >= best * (1.0 - 1e-12):
            break
        w, best = found.x, found.fun
    return best


CYCLES = (
    np.array([[0, 2], [0, -3], [-2, -1], [2, -1]], float),
    np.array([[-1, 3], [2, -2], [1, -2], [1, -3]], float),
    np.array([[3, 3], [1, 2], [2, 3], [2, 1], [1, 0], [2, 0], [3, 0]]),
    np.array([1, 0, 1, 1, 0, 1, 0]),
)


def test_active_sets_that_would_alternate_for_ever_end_at_the_optimum():
    model = PairSVM(C=100.0, tol=1e-10).fit(*CYCLES)
    assert reached(model, *CYCLES) == pytest.approx(optimum(model, *CYCLES), rel=1e-6)
    again = PairSVM(C=100.0, tol=1e-10, max_iter=51).fit(*CYCLES)
    np.testing.assert_array_equal(
        again.decision_function(*CYCLES[:3]), model.decision_function(*CYCLES[:3])
    )


@pytest.mark.slow
@pytest.mark.parametrize("one", [False, True])
@pytest.mark.parametrize("C", [1e-3, 1.0, 300.0])
def test_fits_end_at_the_optimum(one, C):
    for seed in range(6):
        A, B, pairs, y = world(seed, one, n=20 + 15 * seed)
        y = y ^ (np.random.default_rng(seed).random(len(y)) < 0.1 * (seed % 3))
        pairs, y = np.concatenate([pairs, pairs[:5]]), np.concatenate([y, y[:5]])  # some are there twice
        model = PairSVM(C=C, tol=1e-10).fit(A, B, pairs, y)
        assert reached(model, A, B, pairs, y) <= optimum(model, A, B, pairs, y) * (1.0 + 1e-5)


def test_the_coefficients_are_those_of_the_loss():
    """At the optimum α = 2C·y·max(0, 1 − y·score)."""
    A, B, pairs, y = world(0, n=60)
    model = PairSVM(C=0.3, tol=1e-10).fit(A, B, pairs, y)
    signs, scores = np.where(y, 1.0, -1.0), kernel(model, A, B, pairs) @ model.dual_coef_
    np.testing.assert_allclose(model.decision_function(A, B, pairs), scores, atol=1e-8)
    expected = 2.0 * 0.3 * signs * np.maximum(0.0, 1.0 - signs * scores)
    np.testing.assert_allclose(model.dual_coef_, expected, rtol=1e-3, atol=1e-5)


def test_what_is_not_the_optimum_is_said():
    A, B, pairs, y = world(0, n=200)
    with pytest.warns(
        ConvergenceWarning, match="max_iter=1 Newton steps ended before the optimum: raise"
    ):
        PairSVM(C=10.0, max_iter=1).fit(A, B, pairs, y)
    flipped = y ^ (np.random.default_rng(0).random(200) < 0.2)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = PairSVM(C=1e3).fit(1e5 * A, 1e5 * B, pairs, flipped)
    assert all("scale the features, or lower C" in str(warning.message) for warning in told)
    hinge = 1.0 - np.where(flipped, 1.0, -1.0) * model.decision_function(1e5 * A, 1e5 * B, pairs)
    assert (np.maximum(hinge, 0.0) ** 2).sum() <= 200  # that of no weights at all


def test_a_long_fit_is_heard_at_each_product():
    """A cancel comes by the report of progress: a system of many products is not deaf meanwhile."""
    from recsys.utils.progress import listening

    A, B, pairs, y = world(0, n=200)
    heard = []
    with listening(lambda *told: heard.append(told[0])):
        PairSVM(C=10.0).fit(A, B, pairs, y)
    assert heard.count("Newton step 1") > 3
