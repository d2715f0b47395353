import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import check_estimator

from recsys import InputError
from recsys.fm import (
    AllSubsetsClassifier,
    AllSubsetsRegressor,
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    PolynomialNetworkClassifier,
    PolynomialNetworkRegressor,
    interactions,
)
from recsys.fm.solvers.base import Shrinkage
from recsys.fm.solvers.coordinate import coordinate_epoch
from recsys.multilinear.forms import ANOVA, MIXED, Compressed, fill_components, slope
from recsys.multilinear.losses import LOSSES, Target, loss_slope, loss_values
from tests.reference import fm as reference

# Most fits here are cut short on purpose.
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

ESTIMATORS = [
    FactorizationMachineRegressor(n_components=3, max_iter=200),
    FactorizationMachineRegressor(degree=3, solver="block", n_components=2),
    FactorizationMachineClassifier(n_components=3),
    FactorizationMachineClassifier(penalty="cs", solver="block", n_components=2),
    FactorizationMachineRegressor(n_components=2, solver="adagrad"),
    FactorizationMachineClassifier(n_components=2, loss="bpr", solver="adagrad"),
    FactorizationMachineRegressor(n_components=2, solver="lbfgs", fit_lower="simplex"),
    FactorizationMachineRegressor(n_components=2, penalty="ti", solver="fista"),
    AllSubsetsRegressor(n_components=2),
    AllSubsetsClassifier(n_components=2),
    PolynomialNetworkRegressor(n_components=2),
    PolynomialNetworkClassifier(n_components=2, degree=3),
]


REPEATED = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
UNEQUAL = {  # to 1e-7; tests/fm/test_sample_weight.py has them by each solver's own tolerance
    "adagrad": "the solver draws rows, and draws other ones where a row is given twice",
    "lbfgs": "it ends within tol of the optimum, where depends on the order in which rows are summed",
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "model",
    [pytest.param(m, marks=() if m.solver == "cd" else pytest.mark.slow) for m in ESTIMATORS],
    ids=lambda m: f"{type(m).__name__}-{getattr(m, 'degree', '')}-{m.solver}-{m.penalty}",
)
def test_scikit_learns_checks(model):
    known = dict.fromkeys(REPEATED, UNEQUAL[model.solver]) if model.solver in UNEQUAL else None
    failed = [
        f"{row['check_name']}: {row['exception']!r}"
        for row in check_estimator(model, expected_failed_checks=known, on_fail=None, on_skip=None)
        # linear models of scikit-learn have another method of that name; ours exists under sparse penalties
        if row["status"] == "failed" and row["check_name"] != "check_sparsify_coefficients"
    ]
    assert not failed, "\n".join(failed)


def task(seed=0, n=60, d=7, classes=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    y = X[:, 0] - X[:, 1] * X[:, 2] + 0.5 * X[:, 3] * X[:, 4] * X[:, 5] + 0.05 * rng.normal(size=n)
    return X, np.sign(y - np.median(y)) if classes else y


@given(st.integers(0, 10_000), st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_tables_and_slopes_are_those_of_the_definition(seed, degree):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4, 6)) * (rng.random((4, 6)) < 0.6)
    P = rng.normal(size=(6, 2))
    rows = sp.csr_matrix(X)
    out = np.empty((4, 2, degree))
    fill_components(ANOVA, Compressed.of(rows), P, out)
    for i in range(4):
        for s in range(2):
            for t in range(1, degree + 1):
                assert out[i, s, t - 1] == pytest.approx(reference.anova(P[:, s], X[i], t), abs=1e-9)
    for i in range(4):
        begin, end = rows.indptr[i], rows.indptr[i + 1]
        for j in rows.indices[begin:end]:
            up, down = P[:, 0].copy(), P[:, 0].copy()
            up[j] += 1e-6
            down[j] -= 1e-6
            numeric = (reference.anova(up, X[i], degree) - reference.anova(down, X[i], degree)) / 2e-6
            highest = np.eye(degree)[-1]  # of Σ_t θ_t A^t
            short = slope(MIXED, Compressed.of(rows), P[None], 0, out[:, 0], i, j, X[i, j], 0, highest)
            assert short == pytest.approx(numeric, abs=1e-5)


@pytest.mark.parametrize("loss", LOSSES.names())
def test_losses_and_their_slopes(loss):
    code, curvature = LOSSES.get(loss).code, LOSSES.get(loss).curvature
    for p in np.linspace(-3, 3, 13):
        for y in (-1.0, 1.0):
            numeric = (loss_values(code, p + 1e-6, y) - loss_values(code, p - 1e-6, y)) / 2e-6
            assert loss_slope(code, p, y) == pytest.approx(numeric, abs=1e-5)
            bent = (loss_slope(code, p + 1e-6, y) - loss_slope(code, p - 1e-6, y)) / 2e-6
            assert bent <= curvature + 1e-6
    code = LOSSES.get("logistic").code
    assert np.isfinite(loss_values(code, -1e4, 1.0)) and loss_slope(code, -1e4, 1.0) == pytest.approx(-1)


def test_a_code_without_a_branch_is_no_loss():
    unknown = 1 + max(LOSSES.get(name).code for name in LOSSES.names())
    assert np.isnan(loss_values(unknown, 0.5, 1.0)) and np.isnan(loss_slope(unknown, 0.5, 1.0))


@pytest.mark.parametrize("degree", [2, 3, 4])
@pytest.mark.parametrize("fit_lower", ["explicit", None, "augment"])
def test_predictions_are_those_of_the_definition(degree, fit_lower):
    X, y = task()
    model = FactorizationMachineRegressor(
        degree=degree, n_components=2, fit_lower=fit_lower, max_iter=5
    ).fit(X, y)
    dummies = model._dummies()
    wide = np.hstack([X, np.ones((len(X), dummies))])
    expected = reference.predict_fm(
        wide, model.intercept_, model.w_, [P[0] for P in model.P_], model._orders()
    )
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-9)
    np.testing.assert_allclose(model.predict(sp.csr_matrix(X)), expected, atol=1e-9)


def test_the_other_models_predict_by_their_definition():
    X, y = task()
    subsets = AllSubsetsRegressor(n_components=2, max_iter=5).fit(X, y)
    np.testing.assert_allclose(
        subsets.predict(X),
        reference.predict_all_subsets(X, subsets.intercept_, subsets.w_, subsets.P_[0][0]),
        atol=1e-9,
    )
    net = PolynomialNetworkRegressor(degree=3, n_components=2, max_iter=5).fit(X, y)
    np.testing.assert_allclose(
        net.predict(X), reference.predict_network(X, net.intercept_, net.w_, net.P_[0]), atol=1e-9
    )


COMBINATIONS = [
    (solver, penalty, loss, degree)
    for solver, penalties in (("cd", ("l2", "l1", "ti")), ("block", ("l2", "l21", "cs")))
    for penalty in penalties
    for loss in ("logistic", "squared_hinge", "squared")
    for degree in (2, 3)
]


@pytest.mark.parametrize(("solver", "penalty", "loss", "degree"), COMBINATIONS)
def test_the_objective_never_rises(solver, penalty, loss, degree):
    X, y = task(3, classes=True)
    model = FactorizationMachineClassifier(
        degree=degree,
        loss=loss,
        solver=solver,
        penalty=penalty,
        n_components=3,
        gamma=1e-3,
        max_iter=30,
        tol=0.0,
        init_scale=0.5,
    ).fit(X, y)
    objective = np.array([entry["objective"] for entry in model.history_])
    assert (np.diff(objective) <= 1e-10 * np.abs(objective[:-1])).all(), objective
    assert objective[-1] < objective[0]


@pytest.mark.parametrize(
    "model", [AllSubsetsRegressor, PolynomialNetworkRegressor, FactorizationMachineRegressor]
)
@pytest.mark.parametrize("loss", ["squared"])
def test_the_objective_of_regression_never_rises(model, loss):
    X, y = task(4)
    fitted = model(n_components=3, loss=loss, max_iter=30, tol=0.0, init_scale=0.3).fit(X, y)
    objective = np.array([entry["objective"] for entry in fitted.history_])
    assert (np.diff(objective) <= 1e-10 * np.abs(objective[:-1])).all()


def test_a_coordinate_step_is_the_minimum_along_its_coordinate():
    X, y = task(5)
    rows = sp.csr_matrix(X)
    P = np.random.default_rng(0).normal(size=(1, 7, 1))
    pred = reference.predict_fm(X, 0, np.zeros(7), [P[0]], [2])
    cols = rows.tocsc()
    before = P[0].copy()
    only = cols.indptr.copy()
    only[2:] = only[1]  # the first feature's column, and empty ones
    squared = LOSSES.get("squared")
    target = Target(y, pred, squared.code, squared.curvature, np.ones(len(y)))
    coordinate_epoch(
        ANOVA,
        Compressed.of(rows),
        np.arange(7),
        Compressed(only, cols.indices, cols.data),
        target,
        P,
        np.empty((len(y), 1)),
        np.ones(2),
        np.ones(1),
        Shrinkage(0.1, 0, 0.0),
        2,
    )
    best_value = P[0, 0, 0]

    def objective(value):
        Q = before.copy()
        Q[0, 0] = value
        return (
            0.5 * np.mean((reference.predict_fm(X, 0, np.zeros(7), [Q], [2]) - y) ** 2)
            + 0.05 * (Q**2).sum()
        )

    best = objective(best_value)
    assert all(best <= objective(best_value + step) + 1e-12 for step in (-0.1, -1e-3, 1e-3, 0.1))


def test_both_solvers_reach_the_same_quality_and_learn_the_interaction():
    X, y = task(6, n=400)
    for solver in ("cd", "block"):
        model = FactorizationMachineRegressor(
            n_components=4, degree=3, solver=solver, max_iter=300, tol=1e-8, beta=1e-5
        ).fit(X, y)
        assert model.score(X, y) > 0.98
        assert interactions(model, 1)[0][0] == (1, 2)
        assert model.interaction_weight([1, 2]) == pytest.approx(-1.0, abs=0.1)


def test_ti_and_cs_drop_what_does_not_interact():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 12))
    y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=300)
    ti = FactorizationMachineRegressor(
        penalty="ti", gamma=0.1, n_components=3, max_iter=200, beta=1e-4
    ).fit(X, y)
    cs = FactorizationMachineRegressor(
        penalty="cs", solver="block", gamma=0.1, n_components=3, max_iter=200, beta=1e-4
    ).fit(X, y)
    for model in (ti, cs):
        assert interactions(model, 1)[0][0] == (0, 1) and model.n_used_features_ < 12
    names = [f"f{j}" for j in range(12)]
    assert interactions(ti, 1, names)[0][0] == ("f0", "f1")


def test_warm_start_goes_on():
    X, y = task(7)
    model = FactorizationMachineRegressor(max_iter=3, tol=0.0, warm_start=True).fit(X, y)
    first = model.history_[-1]["objective"]
    model.fit(X, y)
    assert len(model.history_) == 4 and model.history_[0]["objective"] == pytest.approx(first)
    assert model.history_[-1]["objective"] < first


@pytest.mark.parametrize(
    "change", [{"n_components": 3}, {"degree": 3}, {"degree": 3, "fit_lower": None}]
)
def test_a_model_of_another_shape_begins_anew_and_cannot_predict(change):
    X, y = task(7)
    model = FactorizationMachineRegressor(max_iter=3, tol=0.0, warm_start=True).fit(X, y)
    model.set_params(**change)
    with pytest.raises(InputError, match="fit again"):
        model.predict(X)
    fresh = FactorizationMachineRegressor(max_iter=3, tol=0.0, **change).fit(X, y)
    np.testing.assert_array_equal(model.fit(X, y).predict(X), fresh.predict(X))
    assert len(model.history_) == 4


def test_probabilities_need_the_logistic_loss():
    X, y = task(8, classes=True)
    model = FactorizationMachineClassifier(max_iter=20).fit(X, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X), model.classes_[(p[:, 1] > 0.5).astype(int)])
    with pytest.raises(AttributeError) as found:
        FactorizationMachineClassifier(loss="squared_hinge", max_iter=2).fit(X, y).predict_proba(X)
    assert "probabilities need loss='logistic'" in str(found.value.__cause__)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"degree": 1}, "degree"),
        ({"degree": 0}, "degree"),
        ({"n_components": 0}, "n_components"),
        ({"penalty": "cs"}, "use solver='block' or"),
        ({"penalty": "ti", "solver": "block"}, "use solver='cd' or"),
        ({"loss": "logistic"}, "loss must be"),
        ({"solver": "newton"}, "solver must be one of"),
        ({"penalty": "l1", "solver": "lbfgs"}, "does not support penalty 'l1'"),
        ({"degree": 3, "penalty": "cs", "solver": "cd"}, "use solver='block'"),
        ({"penalty": "omega", "degree": 3, "solver": "nmapgd"}, "no solver does"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"solver": "pairs"}, "split"),
        ({"batch_size": 0}, "batch_size"),
        ({"beta": -1.0}, "beta"),
        ({"fit_lower": "simple"}, "fit_lower"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(InputError, match=message):
        FactorizationMachineRegressor(**params).fit(*task())


def test_bad_data():
    X, y = task()
    with pytest.raises(ValueError, match="NaN"):
        FactorizationMachineRegressor().fit(np.full_like(X, np.nan), y)
    with pytest.raises(ValueError, match="infinity"):
        FactorizationMachineRegressor().fit(X, np.full_like(y, np.inf))
    with pytest.raises(ValueError):
        FactorizationMachineRegressor().fit(X[:0], y[:0])
    with pytest.raises(InputError, match="1 class"):
        FactorizationMachineClassifier().fit(X, np.ones(len(y)))
    with pytest.raises(InputError, match="distinct features"):
        FactorizationMachineRegressor(max_iter=1).fit(X, y).interaction_weight([1, 1])
    with pytest.raises(InputError, match="use solver='adagrad' or 'cd'"):
        PolynomialNetworkRegressor(solver="block").fit(X, y)
    with pytest.raises(InputError, match="'bpr', which compares rows: use solver='adagrad' or 'psgd'"):
        FactorizationMachineClassifier(loss="bpr").fit(X, y > 0)


@pytest.mark.parametrize("fit_linear", [True, False])
@pytest.mark.parametrize("degree", [2, 3, 4])
@pytest.mark.parametrize("fit_lower", ["explicit", None, "augment"])
def test_linear_weights_are_one_a_feature_and_one_a_column_of_ones(degree, fit_lower, fit_linear):
    """`w_` and `P_` count the columns of ones."""
    X, y = task()
    model = FactorizationMachineRegressor(
        degree=degree, fit_lower=fit_lower, fit_linear=fit_linear, n_components=2, max_iter=2, tol=0.0
    ).fit(X, y)
    ones = degree - (2 if fit_linear else 1) if fit_lower == "augment" else 0
    assert model.w_.shape == (X.shape[1] + ones,)
    assert {P.shape[1] for P in model.P_} == {X.shape[1] + ones}
    network = PolynomialNetworkRegressor(n_components=2, max_iter=2, tol=0.0, fit_lower="augment")
    assert network.fit(X, y).w_.shape == (X.shape[1] + 1,)
