"""Steps with the variance taken out: what an epoch computes, at any size of the batches."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from recsys.fm import AllSubsetsRegressor, FactorizationMachineRegressor
from recsys.fm.objective import Model, Objective, Regularization
from recsys.fm.penalties import as_penalty
from recsys.fm.solvers import SOLVERS, Options
from recsys.multilinear.forms import ALL_SUBSETS, ANOVA, Form
from recsys.multilinear.losses import LOSSES
from tests.fm.test_fm import task

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def plain_epoch(p, step, size, seed):
    """Return the last point and the mean of all, by whole gradients of parts of the rows."""
    n = p.X.shape[0]
    drawn = np.random.RandomState(seed).randint(n, size=n // size * size).reshape(-1, size)
    snapshot, points = p.model.z.copy(), []
    _, mean = p.smooth(snapshot)
    ahead = snapshot.copy()
    for rows in drawn:
        x = 0.5 * ahead + 0.5 * snapshot
        weights = None if p.row_weights is None else p.row_weights[rows]
        part = replace(p, X=p.X[rows], y=p.y[rows], row_weights=weights)
        gradient = mean + part.smooth(x)[1] - part.smooth(snapshot)[1]
        ahead = p.proximal(ahead - 2.0 * step * gradient, 2.0 * step)
        points.append(p.proximal(x - step * gradient, step))
    return points[-1], np.mean(points, axis=0)


def fit_of(penalty, form, intercept=True, linear=True):
    X, y = task(3, n=23)
    rng, d, k = np.random.default_rng(0), X.shape[1], 2
    model = Model.zeros([form], d, k, linear)
    model.z[0 if intercept else 1 :] = 0.3 * rng.normal(size=len(model.z))[0 if intercept else 1 :]
    model.z[1 : 1 + d] *= linear
    by = Regularization(as_penalty(penalty), 0.03, 0.2, 0.05)
    return Objective(model, sp.csr_matrix(X), y, LOSSES.get("squared"), by, intercept, np.random.RandomState(4))  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("size", [1, 5, 23])
@pytest.mark.parametrize("penalty", ["l2", "l1", "ti", "l21", "cs", "l1-power", "l21-power"])
@pytest.mark.parametrize(
    "form", [Form(ANOVA, 2, 1), Form(ANOVA, 3, 1), Form(ALL_SUBSETS, 1, 1)], ids=["2", "3", "all"]
)
def test_an_epoch_is_that_of_whole_gradients(penalty, form, size):
    if form.kind == ALL_SUBSETS and penalty.endswith("power"):
        pytest.skip("powers are of an order")
    for intercept, linear in ((True, True), (False, False)):
        fit = fit_of(penalty, form, intercept, linear)
        solver = SOLVERS.get("katyusha")(fit, Options(0.1, size, None))
        solver.step = 0.01  # such that steps of one row do not go too far
        solver._forward_backward(solver.now)
        found = plain_epoch(fit, solver.step / 3.0, size, 4)
        value = min(fit.smooth_value(z) + fit.rough(z) for z in found)
        before = solver.value
        assert value < before
        solver.epoch()
        assert fit.value() == pytest.approx(value, rel=1e-10)
        assert min(np.abs(fit.model.z - z).max() for z in found) < 1e-9


@pytest.mark.parametrize(("penalty", "exact"), [("ti", "cd"), ("cs", "block")])
def test_a_row_at_a_time_ends_where_the_exact_solver_does(penalty, exact):
    X, y = task(5, n=120)
    kw = dict(penalty=penalty, gamma=0.02, beta=0.01, n_components=2, init_scale=0.3, tol=1e-9)
    ours = FactorizationMachineRegressor(solver="katyusha", batch_size=1, max_iter=200, **kw).fit(X, y)
    best = FactorizationMachineRegressor(solver=exact, max_iter=300, **kw).fit(X, y)
    first = best.history_[0]["objective"]
    least = best.history_[-1]["objective"]
    assert ours.history_[-1]["objective"] <= least + 0.02 * (first - least)


def test_it_serves_all_subsets():
    X, y = task(9, n=120)
    model = AllSubsetsRegressor(
        solver="katyusha", penalty="ti", gamma=0.02, n_components=3, batch_size=4, max_iter=60, init_scale=0.2
    ).fit(X, y)  # fmt: skip
    found = [entry["objective"] for entry in model.history_]
    assert found[-1] < 0.9 * found[0] and (np.diff(found) <= 1e-10).all()
