"""The course of a fit: who records, who decides, who steps."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from recsys import FitError
from recsys.fm import FactorizationMachineRegressor
from recsys.fm.history import History
from recsys.fm.objective import Model, Objective, Regularization
from recsys.fm.penalties import as_penalty
from recsys.fm.solvers import SOLVERS, Options, solver_names
from recsys.fm.stopping import RESTLESS, StoppingRule
from recsys.multilinear.forms import ANOVA, MIXED, Form
from recsys.multilinear.losses import LOSSES
from tests.fm.test_fm import task


def objective(forms=None, rows=slice(None), **more):
    X, y = task(0)
    model = Model.zeros(forms or [Form(ANOVA, 2, 1)], X.shape[1], 2, True)
    model.z[:] = 0.3 * np.random.default_rng(0).normal(size=len(model.z))
    by = Regularization(as_penalty("l2"), 1e-3, 1e-3, 0.0)
    return Objective(model, sp.csr_matrix(X[rows]), y[rows], LOSSES.get("squared"), by, True, np.random.RandomState(0), **more)  # fmt: skip


def test_a_history_records_and_touches_nothing():
    p = objective()
    before = (p.model.z.copy(), p.pred.copy())
    entries = [{"objective": 5.0}]
    history = History(p, None, entries)
    for value, moved in ((3.0, np.inf), (2.0, 0.5)):
        history.record(value, moved)
    assert entries is history.entries and [e["objective"] for e in entries] == [5.0, 3.0, 2.0]
    assert history.epochs == 1 and entries[-1]["violation"] == 0.5 and "validation" not in entries[-1]
    np.testing.assert_array_equal(p.model.z, before[0])
    np.testing.assert_array_equal(p.pred, before[1])


def test_a_history_remembers_the_best_epoch_on_rows_kept_out():
    p = objective(rows=slice(0, 40))
    X, y = task(0)
    held = Objective(p.model, sp.csr_matrix(X[40:]), y[40:], p.loss, p.regularization, True, p.rng)
    history = History(p, held, [])
    for bias in (3.0, 0.0, 2.0):
        p.model.z[0] = bias
        history.record(1.0, 0.0)
    losses = [entry["validation"] for entry in history.entries]
    assert history.best_epoch == int(np.argmin(losses)) == 1
    assert p.model.z[0] == 2.0
    history.restore()
    assert p.model.z[0] == 0.0


@pytest.mark.parametrize("monotone", [True, False])
def test_the_stopping_rule_waits_longer_for_solvers_that_may_rise(monotone):
    rule = StoppingRule(10.0, 10.0, 0.01, monotone)
    assert not rule.converged(5.0)
    said = [rule.converged(5.0) for _ in range(RESTLESS)]
    assert said == ([True] * RESTLESS if monotone else [False] * (RESTLESS - 1) + [True])
    rule.start_anew()
    assert not rule.converged(4.0)


@pytest.mark.thorough
@pytest.mark.parametrize("solver", [n for n in solver_names() if MIXED in SOLVERS.get(n).kinds])
def test_the_weights_of_orders_are_a_step_of_the_solver(solver):
    """By `run` alone, without an estimator, a history or a rule."""
    p = objective([Form(MIXED, 3, 1)], learns_theta=True)
    p.model.theta[:] = 1.0 / 3.0
    before, start = p.model.theta.copy(), p.value()
    SOLVERS.get(solver)(p, Options(0.01, 8, 1)).run(lambda moved: False, 3)
    assert not np.array_equal(p.model.theta, before)
    assert p.model.theta.min() >= 0 and p.model.theta.sum() == pytest.approx(1)
    assert p.value() < start
    fixed = objective([Form(MIXED, 3, 1)])
    SOLVERS.get(solver)(fixed, Options(0.01, 8, 1)).run(lambda moved: False, 3)
    assert (fixed.model.theta == 1).all()


def test_only_the_estimator_sets_its_attributes():
    """What a fit that fails has learned is not there."""
    X, y = task(7, n=300)
    model = FactorizationMachineRegressor(solver="sgd", learning_rate=50.0, degree=3)
    with pytest.raises(FitError, match="diverges"):
        model.fit(X, y)
    assert not any(hasattr(model, name) for name in ("n_iter_", "stopped_", "history_", "P_"))


def test_what_ends_a_fit_is_told():
    X, y = task(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ends = {
            "callback": FactorizationMachineRegressor(callback=lambda *_: True),
            "max_iter": FactorizationMachineRegressor(max_iter=2, tol=0.0),
            "tolerance": FactorizationMachineRegressor(tol=0.5),
            "validation": FactorizationMachineRegressor(validation_fraction=0.5, patience=1, beta=0.0, n_components=20, tol=0.0),
        }  # fmt: skip
        for name, model in ends.items():
            assert model.fit(X, y).stopped_ == name
