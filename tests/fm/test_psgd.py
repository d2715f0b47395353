"""The operator after every batch: what it computes, and when it selects."""

import numpy as np
import pytest
import scipy.sparse as sp

from recsys.fm import FactorizationMachineClassifier, FactorizationMachineRegressor
from recsys.fm.objective import Model, Objective, Regularization
from recsys.fm.penalties import PENALTIES
from recsys.fm.solvers import SOLVERS, Options
from recsys.multilinear.forms import ANOVA, PRODUCT, Form
from recsys.multilinear.losses import LOSSES
from tests.fm.test_fm import task
from tests.fm.test_solvers import paired

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("penalty", ["l2", "l1", "ti", "l21", "cs", "l1-power", "l21-power"])
@pytest.mark.parametrize("form", [Form(ANOVA, 2, 1), Form(ANOVA, 3, 1), Form(PRODUCT, 3, 3)])
def test_an_epoch_is_a_gradient_step_and_an_operator_a_batch(penalty, form):
    X, y = task(3, n=23)
    X = sp.csr_matrix(X)
    rng, d, k = np.random.default_rng(0), X.shape[1], 2
    model = Model.zeros([form], d, k, True)
    model.z[:] = 0.5 * rng.normal(size=len(model.z))
    by = Regularization(PENALTIES[penalty], 0.03, 0.2, 0.05)
    start, rate, size = model.z.copy(), 0.02, 5  # 23 rows: five batches of 4 or 5
    fit = Objective(model, X, y, LOSSES.get("squared"), by, True, np.random.RandomState(4))
    SOLVERS.get("psgd")(fit, Options(rate, size, None)).epoch()
    z = start
    plain = Regularization(PENALTIES["l2"], 0.0, 0.0, 0.0)
    for t, rows in enumerate(np.split(np.random.RandomState(4).permutation(23), [4, 9, 13, 18])):
        eta = rate / (1 + rate * 0.2 * t)
        batch = Objective(
            Model(model.forms, d, k, z.copy(), model.theta, model.weights, True),
            X[rows],
            y[rows],
            LOSSES.get("squared"),
            plain,
            True,
            None,
        )
        _, gradient = batch.smooth(z)
        z = z - eta * gradient
        z[1 : 1 + d] /= 1 + eta * 0.03
        z[1 + d :] /= 1 + eta * 0.2
        for P in z[1 + d :].reshape(-1, d, k):
            # prox is of Ω + ½‖P‖²: a gradient step takes the half off before
            ahead = 1 + eta * 0.05 if by.penalty.half_squares else 1.0
            P[:] = by.penalty.prox(P * ahead, eta * 0.05, form)
    np.testing.assert_allclose(model.z, z, atol=1e-10)


def used(penalty, gamma, solver, **more):
    X, y = paired(2, n=4000)
    model = FactorizationMachineRegressor(
        solver=solver, penalty=penalty, gamma=gamma, n_components=3, init_scale=0.2, tol=1e-6, **more
    ).fit(X, y)
    return model.n_used_interactions_, model.history_[-1]["objective"]


@pytest.mark.parametrize(
    ("penalty", "gamma", "largest"),
    [("ti", 0.02, (400, 100)), pytest.param("cs", 0.01, (1000, 500), marks=pytest.mark.slow)],
)
def test_it_selects_once_a_batch_is_quieter_than_the_penalty(penalty, gamma, largest):
    """And not before: 4,000 rows of 28 features, which have 378 pairs."""
    exact = {"ti": "cd", "cs": "block"}[penalty]
    _, goal = used(penalty, gamma, exact, max_iter=200)
    counts, values = np.array(
        [
            used(penalty, gamma, "psgd", batch_size=b, learning_rate=0.1, max_iter=epochs)
            for b, epochs in ((10, 100), (100, 100), largest)
        ]
    ).T
    assert counts[0] > 0.5 * 378 and (np.diff(counts) < 0).all() and counts[-1] < 0.15 * 378, counts
    assert values[-1] <= 1.1 * goal, (values, goal)


def test_rows_that_no_batch_has_room_for_undo_no_selection():
    """4,001 rows in batches of 400: the last of ten is not of one row, which selects nothing."""
    X, y = paired(2, n=4001)
    model = FactorizationMachineRegressor(
        solver="psgd",
        penalty="ti",
        gamma=0.02,
        n_components=3,
        init_scale=0.2,
        tol=0.0,
        batch_size=400,
        learning_rate=0.1,
        max_iter=100,
    ).fit(X, y)
    assert model.n_used_interactions_ < 0.25 * 378  # with a last batch of one row: a third


@pytest.mark.parametrize("loss", ["logistic", "bpr"])
def test_it_serves_classes_and_pairs_of_rows(loss):
    X, y = task(5, n=300, classes=True)
    model = FactorizationMachineClassifier(
        loss=loss, solver="psgd", penalty="ti", gamma=1e-3, batch_size=10, learning_rate=0.5, max_iter=60
    ).fit(X, y)
    scores = model.decision_function(X)
    assert (scores[y > 0][:, None] > scores[y < 0][None]).mean() > 0.9
