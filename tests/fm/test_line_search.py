"""Block descent with a line search: monotone, to the same optimum, in fewer epochs."""

import numpy as np
import pytest

from recsys import InputError
from recsys.fm import (
    AllSubsetsRegressor,
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
)
from tests.fm.test_fm import task
from tests.fm.test_solvers import paired

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def objectives(model):
    return np.array([entry["objective"] for entry in model.history_])


@pytest.mark.parametrize("penalty", ["cs", "l21", "l2"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
@pytest.mark.parametrize("degree", [2, 3])
def test_the_objective_never_rises(penalty, loss, degree):
    X, y = task(7, n=150, classes=loss == "logistic")
    kind = FactorizationMachineClassifier if loss == "logistic" else FactorizationMachineRegressor
    model = kind(
        solver="block", line_search=True, penalty=penalty, gamma=5e-3, n_components=4, max_iter=40, tol=0.0,
        loss=loss, degree=degree, init_scale=0.5,
    ).fit(X, y)  # fmt: skip
    course = objectives(model)
    assert (np.diff(course) <= 1e-12).all() and course[-1] < 0.7 * course[0]


def test_the_objective_of_all_subsets_never_rises():
    X, y = task(8, n=120)
    model = AllSubsetsRegressor(
        solver="block", line_search=True, penalty="cs", gamma=0.02, n_components=3, max_iter=40, tol=0.0
    ).fit(X, y)
    assert (np.diff(objectives(model)) <= 1e-12).all()


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_optimum_is_the_same(loss):
    """Of one product of two features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = 2.0 * X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=300)
    if loss == "logistic":
        y = y > 0
    kind = FactorizationMachineClassifier if loss == "logistic" else FactorizationMachineRegressor
    kw = dict(solver="block", penalty="cs", gamma=0.02, beta=1e-2, n_components=2, max_iter=3000, tol=1e-13, loss=loss)  # fmt: skip
    plain, searched = kind(**kw).fit(X, y), kind(line_search=True, **kw).fit(X, y)
    assert objectives(searched)[-1] == pytest.approx(objectives(plain)[-1], rel=1e-7)
    W, V = (model.P_[0][0] @ model.P_[0][0].T for model in (plain, searched))
    np.testing.assert_allclose(V, W, atol=1e-3)


def test_fewer_epochs_are_enough():
    X, y = paired(2)
    kw = dict(solver="block", penalty="cs", gamma=0.005, n_components=8, init_scale=0.2, max_iter=60, tol=0.0)  # fmt: skip
    plain = objectives(FactorizationMachineRegressor(**kw).fit(X, y))
    searched = objectives(FactorizationMachineRegressor(line_search=True, **kw).fit(X, y))
    assert (searched[[10, 20, 40]] < plain[[10, 20, 40]]).all(), (searched, plain)


def test_zeros_stay_and_other_solvers_refuse():
    X, y = task(3, n=100)
    model = FactorizationMachineRegressor(
        solver="block", line_search=True, penalty="cs", gamma=5.0, n_components=3, max_iter=20
    ).fit(X, y)
    assert (model.P_[0] == 0).all()
    with pytest.raises(InputError, match="line_search is of solver='block', not 'cd'"):
        FactorizationMachineRegressor(line_search=True).fit(X, y)
