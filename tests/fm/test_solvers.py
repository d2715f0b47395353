import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import FitError
from recsys.fm import (
    AllSubsetsRegressor,
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    PolynomialNetworkRegressor,
    interactions,
)
from recsys.fm.objective import Model, Objective, Regularization
from recsys.fm.penalties import PENALTIES
from recsys.fm.solvers import SOLVERS, refusal
from recsys.fm.solvers.pairs import pairs_of_rows
from recsys.multilinear.forms import ALL_SUBSETS, ANOVA, MIXED, PRODUCT, Form
from recsys.multilinear.losses import LOSSES, loss_names
from recsys.multilinear.symmetric import symmetric_polynomials, with_size, without
from tests.fm.test_fm import task
from tests.reference import fm as reference

# Most fits here are cut short on purpose.
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

SHAPES = [
    [Form(ANOVA, 2, 1)],
    [Form(ANOVA, 2, 1), Form(ANOVA, 3, 1)],
    [Form(ANOVA, 5, 1)],
    [Form(MIXED, 3, 1)],
    [Form(ALL_SUBSETS, 1, 1)],
    [Form(PRODUCT, 3, 3)],
]


def problem(shapes, loss="squared", scale=0.5, seed=0, **more):
    X, y = task(seed, n=25, classes=loss != "squared")
    rng = np.random.default_rng(seed)
    model = Model.zeros(shapes, X.shape[1], 2, True)
    model.z[:] = scale * rng.normal(size=len(model.z))
    model.theta[:] = rng.random(model.theta.shape)
    by = Regularization(PENALTIES["l2"], alpha=0.1, beta=0.2, gamma=0.0)
    options = dict(regularization=by, intercept=True) | more
    return Objective(
        model, sp.csr_matrix(X), y, LOSSES.get(loss), rng=np.random.RandomState(0), **options
    )


@pytest.mark.parametrize("loss", loss_names(pairwise=False))
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("scale", [0.5, 8.0])  # the second leaves the short recursion's range
def test_the_gradient_is_that_of_finite_differences(shapes, loss, scale):
    p = problem(shapes, loss, scale)
    z = p.model.z.copy()
    _, gradient = p.smooth(z)
    for j in np.random.default_rng(1).choice(len(z), 20, replace=False):
        step = 1e-6 * max(1.0, abs(z[j]))
        up, down = z.copy(), z.copy()
        up[j] += step
        down[j] -= step
        numeric = (p.smooth(up)[0] - p.smooth(down)[0]) / (2 * step)
        assert gradient[j] == pytest.approx(numeric, rel=2e-4, abs=1e-6 * max(1.0, p.smooth(z)[0]))


def test_the_gradient_of_the_recursion_is_that_of_reverse_differentiation():
    """Appendix C: the gradient of A^m by the whole table of Algorithm 1, differentiated backwards."""
    rng = np.random.default_rng(0)
    for m in (2, 3, 4, 5):
        x, p = rng.normal(size=7), rng.normal(size=7)
        table = np.zeros((m + 1, 8))
        table[0] = 1.0
        for t in range(1, m + 1):
            for j in range(t, 8):
                table[t, j] = table[t, j - 1] + p[j - 1] * x[j - 1] * table[t - 1, j - 1]
        back = np.zeros((m + 2, 9))
        back[m, 7] = 1.0
        for t in range(m, 0, -1):
            for j in range(7, t - 1, -1):
                if (t, j) != (m, 7):
                    back[t, j] = back[t, j + 1] + (back[t + 1, j + 1] * p[j] * x[j] if j < 7 else 0.0)
        slow = [
            sum(back[t, j] * table[t - 1, j - 1] for t in range(1, m + 1)) * x[j - 1]
            for j in range(1, 8)
        ]
        one = Model.zeros([Form(ANOVA, m, 1)], 7, 1, False)
        one.tables()[0][0, :, 0] = p
        by = Regularization(PENALTIES["l2"], 0.0, 0.0, 0.0)
        fit = Objective(
            one,
            sp.csr_matrix(x[None]),
            np.zeros(1),
            LOSSES.get("squared"),
            by,
            False,
            np.random.RandomState(0),
        )
        _, gradient = fit.smooth(one.z.copy())
        np.testing.assert_allclose(gradient[8:] / fit.pred[0], slow, rtol=1e-9)
        assert fit.pred[0] == pytest.approx(reference.anova(p, x, m))


@pytest.mark.slow
def test_coordinate_descent_is_exact_where_the_short_recursion_cancels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 8)) * 40.0
    y = rng.normal(size=30)
    for lower in (None, "inhomogeneous"):
        model = FactorizationMachineRegressor(
            degree=5,
            fit_lower=lower,
            n_components=2,
            init_scale=1.0,
            max_iter=3,
            tol=0.0,
            fit_linear=False,
        ).fit(X, y)
        orders = [5] if lower is None else [1, 2, 3, 4, 5]
        expected = reference.predict_fm(
            X, model.intercept_, np.zeros(8), [model.P_[0][0]] * len(orders), orders
        )
        np.testing.assert_allclose(model.predict(X), expected, rtol=1e-7, atol=1e-7)
        objective = [entry["objective"] for entry in model.history_]
        assert (np.diff(objective) <= 1e-9 * objective[0]).all()


def paired(seed=0, n=400):
    rng = np.random.default_rng(seed)
    A = np.hstack([np.eye(12), rng.integers(0, 2, (12, 3))])
    B = np.hstack([np.eye(9), rng.integers(0, 2, (9, 4))])
    u, v = rng.integers(0, 12, n), rng.integers(0, 9, n)
    X = np.hstack([A[u], B[v]])
    return X, rng.normal(size=n) + (A[u] @ rng.normal(size=15)) * (B[v] @ rng.normal(size=13))


@pytest.mark.thorough
@pytest.mark.parametrize("degree", [2, 3, 4])
@pytest.mark.parametrize("penalty", ["l2", "l1", "ti"])
def test_steps_on_pairs_are_those_of_coordinate_descent(degree, penalty):
    X, y = paired()
    settings_ = dict(
        degree=degree,
        n_components=1,
        max_iter=4,
        tol=0.0,
        penalty=penalty,
        gamma=1e-3,
        init_scale=0.5,
        fit_intercept=False,
    )
    slow = FactorizationMachineRegressor(solver="cd", **settings_).fit(X, y)
    fast = FactorizationMachineRegressor(solver="pairs", split=15, **settings_).fit(X, y)
    for a, b in zip(slow.P_, fast.P_, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-8)
    np.testing.assert_allclose(slow.w_, fast.w_, atol=1e-8)


def test_fits_on_pairs_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr("recsys.utils.resources.WORTH", 0)
    X, y = paired()
    one, two = (
        FactorizationMachineRegressor(solver="pairs", split=15, max_iter=3, num_threads=k).fit(X, y)
        for k in (1, 2)
    )
    np.testing.assert_array_equal(one.P_[0], two.P_[0])


def test_rows_are_pairs_of_what_is_distinct():
    X, _ = paired()
    pairs = pairs_of_rows(sp.csr_matrix(X), (np.arange(15), np.arange(15, 28)))
    left, right = (side.rows.toarray() for side in pairs.sides)
    assert (len(left), len(right)) == (12, 9)
    np.testing.assert_array_equal(np.hstack([left[pairs.left], right[pairs.right]]), X)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_the_objective_on_pairs_never_rises(loss):
    X, y = paired(1)
    model = FactorizationMachineClassifier(
        solver="pairs",
        split=15,
        loss=loss,
        degree=3,
        n_components=3,
        init_scale=0.7,
        max_iter=30,
        tol=0.0,
    ).fit(X, y > np.median(y))
    objective = np.array([entry["objective"] for entry in model.history_])
    assert (np.diff(objective) <= 1e-10).all() and objective[-1] < 0.8 * objective[0]


SERVED = [
    (name, penalty.name)
    for name in SOLVERS
    for penalty in PENALTIES.values()
    if not refusal(name, LOSSES.get("squared"), penalty, [Form(ANOVA, 2, 1)])
]


def test_who_serves_what_follows_from_what_solvers_require():
    """The table as it was when it was written by hand."""
    entries, rows = {"l2", "l1", "ti"}, {"l2", "l21", "cs"}
    expected = {
        "cd": entries,
        "pairs": entries,
        "block": rows,
        "lbfgs": {"l2"},
    }
    powers = {"l1-power", "l21-power"}
    expected |= dict.fromkeys(("nmapgd", "subgradient"), entries | rows | powers | {"omega"})
    expected |= dict.fromkeys(("psgd", "fista"), entries | rows | powers)
    expected["adagrad"] = {"l2"}
    known = entries | rows | powers | {"omega"}
    found = {name: {p for n, p in SERVED if n == name} & known for name in expected}
    assert found == expected
    deep = [Form(ANOVA, 3, 1)]
    for penalty in ("ti", "cs"):
        able = [
            name
            for name in SOLVERS
            if not refusal(name, LOSSES.get("squared"), PENALTIES[penalty], deep)
        ]
        own = ["cd", "pairs"] if penalty == "ti" else ["block"]
        assert set(able) == {*own, "psgd", "fista", "nmapgd", "subgradient"}
    assert [name for name in SOLVERS if SOLVERS.get(name).pairwise] == ["adagrad", "psgd"]


@pytest.mark.thorough
@pytest.mark.parametrize(("solver", "penalty"), SERVED)
def test_every_solver_lowers_every_objective_it_serves(solver, penalty):
    X, y = paired(2)
    model = FactorizationMachineRegressor(
        solver=solver,
        split=15,
        penalty=penalty,
        gamma=1e-3,
        n_components=3,
        max_iter=60,
        tol=0.0,
        init_scale=0.2,
        batch_size=8,
        learning_rate=0.05,
    ).fit(X, y)
    history = [entry["objective"] for entry in model.history_]
    best = FactorizationMachineRegressor(
        solver="nmapgd"
        if penalty == "omega"
        else "fista"
        if "power" in penalty
        else "block"
        if penalty in ("l21", "cs")
        else "cd",
        penalty=penalty,
        gamma=1e-3,
        n_components=3,
        max_iter=300,
        tol=1e-9,
        init_scale=0.2,
    ).fit(X, y)
    goal = best.history_[-1]["objective"]
    assert history[-1] <= goal + 0.4 * (history[0] - goal), (history[0], history[-1], goal)


@pytest.mark.thorough
@pytest.mark.parametrize("penalty", ["ti", "cs", "l1-power", "l21-power"])
@pytest.mark.parametrize("make", [FactorizationMachineRegressor, AllSubsetsRegressor])
def test_subgradients_come_near_the_operators_in_any_order(make, penalty):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(240, 6))
    y = 2.0 * X[:, 0] * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=240)
    kw = dict(penalty=penalty, n_components=2, gamma=0.01, init_scale=0.5, max_iter=300, tol=1e-7)
    if make is FactorizationMachineRegressor:
        kw |= dict(degree=3, fit_lower=None)
    else:
        kw |= dict(init_scale=0.2)
    model, exact = (make(solver=solver, **kw).fit(X, y) for solver in ("subgradient", "fista"))
    first, best = exact.history_[0]["objective"], exact.history_[-1]["objective"]
    assert model.history_[-1]["objective"] <= best + 0.1 * (first - best)


@pytest.mark.parametrize("seed", range(3))
def test_the_solver_that_may_rise_does_not_end_above_its_lowest_point(seed):
    rng = np.random.default_rng(seed)
    X, P = rng.normal(size=(200, 30)), np.zeros((30, 4))
    P[:8] = rng.normal(size=(8, 4))
    y = 0.5 * ((X @ P) ** 2 - (X**2) @ (P**2)).sum(1)
    options = dict(
        penalty="cs", gamma=0.02, alpha=1e-3, beta=1e-3, n_components=10, tol=0.0, init_scale=0.1
    )
    falling, rising = (
        FactorizationMachineRegressor(solver=solver, max_iter=500, **options).fit(
            X, (y - y.mean()) / y.std()
        )
        for solver in ("fista", "nmapgd")
    )
    history = np.array([entry["objective"] for entry in rising.history_])
    assert (np.diff(history) > 1e-5 * history[-1]).any()  # it did rise
    assert history[-1] <= history.min() * (1.0 + 1e-9)
    assert history[-1] == pytest.approx(falling.history_[-1]["objective"], rel=1e-6)


@pytest.mark.parametrize("solver", ["adagrad", "psgd", "fista", "lbfgs", "nmapgd"])
@pytest.mark.parametrize("model", [AllSubsetsRegressor, PolynomialNetworkRegressor])
def test_the_other_models_are_fitted_by_the_other_solvers(model, solver):
    X, y = task(3, n=150)
    fitted = model(solver=solver, n_components=2, max_iter=40, init_scale=0.2, learning_rate=0.02).fit(
        X, y
    )
    assert fitted.history_[-1]["objective"] < 0.6 * fitted.history_[0]["objective"]


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=12), st.floats(0.001, 5))
@settings(max_examples=60, deadline=None)
def test_the_proximal_operators_minimise(q, strength):
    q = np.array(q)
    Q = np.column_stack([q, 2 * q])
    rng = np.random.default_rng(0)
    for name, norm in (
        ("ti", lambda P: 0.5 * (np.abs(P).sum(axis=0) ** 2).sum()),
        ("cs", lambda P: 0.5 * np.linalg.norm(P, axis=1).sum() ** 2),
        ("l21", lambda P: np.linalg.norm(P, axis=1).sum()),
    ):

        def value(P, norm=norm):
            return 0.5 * ((P - Q) ** 2).sum() + strength * norm(P)

        P = PENALTIES[name].prox(Q, strength)
        for step in (1e-1, 1e-3):
            for _ in range(10):
                assert value(P) <= value(P + step * rng.normal(size=P.shape)) + 1e-12


@given(st.lists(st.floats(0, 3), min_size=1, max_size=7), st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_symmetric_polynomials_are_the_higher_order_penalties(values, order):
    a = np.array(values)
    e = symmetric_polynomials(a, order)
    for t in range(1, order + 1):
        assert e[t - 1] == pytest.approx(reference.anova(a, np.ones(len(a)), t))
    rest, sizes = np.empty(order + 1), a.copy()
    without(e, sizes, 0, rest)
    for t in range(order + 1):
        assert rest[t] == pytest.approx(reference.anova(a[1:], np.ones(len(a) - 1), t), rel=1e-9)
    with_size(e, sizes, 0, rest, 2.5)
    for t in range(1, order + 1):
        assert e[t - 1] == pytest.approx(reference.anova(sizes, np.ones(len(a)), t), rel=1e-9)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_the_penalties_are_their_definitions(order):
    P = np.random.default_rng(0).normal(size=(5, 3))
    ones, shape = np.ones(5), Form(ANOVA, order, 1)
    rows = np.linalg.norm(P, axis=1)
    assert PENALTIES["ti"].value(shape, P) == pytest.approx(
        sum(reference.anova(np.abs(P[:, s]), ones, order) for s in range(3))
    )
    assert PENALTIES["cs"].value(shape, P) == pytest.approx(reference.anova(rows, ones, order))
    W = P @ P.T
    assert PENALTIES["omega"].value(Form(ANOVA, 2, 1), P) == pytest.approx(
        np.abs(W[np.triu_indices(5, 1)]).sum()
    )
    subsets = Form(ALL_SUBSETS, 1, 1)
    assert PENALTIES["ti"].value(subsets, P) == pytest.approx(np.prod(1 + np.abs(P), axis=0).sum())
    assert PENALTIES["cs"].value(subsets, P) == pytest.approx(np.prod(1 + rows))


@pytest.mark.parametrize(
    ("model", "solver", "penalty"),
    [
        (FactorizationMachineRegressor, "cd", "ti"),
        (FactorizationMachineRegressor, "block", "cs"),
        (AllSubsetsRegressor, "cd", "ti"),
        (AllSubsetsRegressor, "block", "cs"),
        (AllSubsetsRegressor, "block", "l2"),
    ],
)
def test_higher_order_penalties_never_raise_the_objective_and_select(model, solver, penalty):
    X, y = task(9, n=120)
    degree = {"degree": 4} if model is FactorizationMachineRegressor else {}
    fitted = model(
        solver=solver,
        penalty=penalty,
        gamma=0.02,
        n_components=3,
        max_iter=60,
        tol=0.0,
        init_scale=0.3,
        **degree,
    ).fit(X, y)
    objective = np.array([entry["objective"] for entry in fitted.history_])
    assert (np.diff(objective) <= 1e-9 * objective[:-1]).all(), np.diff(objective).max()
    assert penalty == "l2" or any((P == 0).any() for P in fitted.P_)


def test_theta_stays_on_the_simplex_and_helps():
    X, y = task(2, n=200)
    free = FactorizationMachineRegressor(
        degree=3, fit_lower="simplex", fit_linear=False, max_iter=60, n_components=4
    ).fit(X, y)
    assert free.theta_.min() >= 0 and free.theta_.sum() == pytest.approx(1)
    objective = np.array([entry["objective"] for entry in free.history_])
    assert (np.diff(objective) <= 1e-10).all()
    expected = free.intercept_ + sum(
        free.theta_[0, t - 1] * reference.predict_fm(X, 0, np.zeros(7), [free.P_[0][0]], [t])
        for t in (1, 2, 3)
    )
    np.testing.assert_allclose(free.predict(X), expected, atol=1e-9)


@pytest.mark.parametrize("loss", ["bpr", "auc"])
def test_pairwise_losses_rank(loss):
    X, y = task(5, n=600, classes=True)
    model = FactorizationMachineClassifier(
        loss=loss, solver="adagrad", degree=3, n_components=4, max_iter=60
    ).fit(X, y)
    scores = model.decision_function(X)
    wins = (scores[y > 0][:, None] > scores[y < 0][None]).mean()
    assert wins > 0.95


def test_sparsify_ends_at_the_wanted_size_or_says_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 15))
    y = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + X[:, 4] * X[:, 5] + 0.1 * rng.normal(size=300)
    model = FactorizationMachineRegressor(penalty="ti", n_components=5, max_iter=200, init_scale=0.1)
    model.sparsify(X, y, 3)
    assert model.n_used_interactions_ == 3
    assert {pair for pair, _ in interactions(model, 3)} == {(0, 1), (2, 3), (4, 5)}
    with pytest.raises(FitError, match="no gamma of penalty 'cs' leaves 4 to 4"):
        FactorizationMachineRegressor(
            penalty="cs", solver="block", n_components=2, max_iter=20
        ).sparsify(X, y, 4, 4, 4)


def test_columns_that_a_warm_start_no_longer_has_shrink_as_by_coordinate_descent():
    X, y = paired()
    settings_ = dict(
        n_components=1, max_iter=2, tol=0.0, warm_start=True, fit_intercept=False, beta=1e-2, split=15
    )
    some = X[:, 0] + X[:, 1] == 0
    fits = []
    for solver in ("cd", "pairs"):
        model = FactorizationMachineRegressor(solver=solver, **settings_).fit(X, y)
        fits.append(model.fit(X[some], y[some]))
    np.testing.assert_allclose(fits[0].P_[0], fits[1].P_[0], atol=1e-8)
    np.testing.assert_allclose(fits[0].w_, fits[1].w_, atol=1e-8)
    assert not fits[1].w_[:2].any()


@pytest.mark.parametrize("solver", ["psgd", "adagrad"])
def test_a_rate_that_is_too_large_diverges(solver):
    X, y = task(7, n=300)
    with pytest.raises(FitError, match="lower learning_rate"):
        FactorizationMachineRegressor(solver=solver, learning_rate=1e9, degree=3).fit(100.0 * X, y)
