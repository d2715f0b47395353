"""Where a fit or a prediction could go wrong in silence."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from benchmarks.lab.planted import recovery
from recsys import InputError
from recsys.datasets import load_dataset
from recsys.fm import (
    AllSubsetsRegressor,
    BayesianFactorizationMachineRegressor,
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    PairEncoder,
    PolynomialNetworkRegressor,
)
from recsys.fm.solvers import SOLVERS
from recsys.fm.solvers.base import visiting_order
from recsys.multilinear.symmetric import symmetric_polynomials, with_size, without
from recsys.utils import resources
from tests.fm.test_fm import task
from tests.fm.test_solvers import paired
from tests.reference import fm as reference

CUT_SHORT = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


# ---- rows as they come


def halved(X):
    """The same matrix with every entry in two halves, which CSR allows."""
    rows = sp.csr_matrix(X)
    twice = np.repeat(rows.data / 2, 2)
    return sp.csr_matrix((twice, np.repeat(rows.indices, 2), 2 * rows.indptr), rows.shape)


@CUT_SHORT
@pytest.mark.parametrize(
    "model",
    [
        FactorizationMachineRegressor(max_iter=5),
        FactorizationMachineRegressor(degree=3, fit_lower="augment", max_iter=5),
        FactorizationMachineRegressor(degree=3, fit_lower="simplex", max_iter=5),
        FactorizationMachineClassifier(max_iter=5),
        AllSubsetsRegressor(max_iter=5),
        PolynomialNetworkRegressor(max_iter=5),
    ],
    ids=str,
)
def test_duplicate_entries_are_summed_wherever_rows_come_in(model):
    X, y = task(classes=isinstance(model, FactorizationMachineClassifier))
    double = halved(X)
    before = double.copy()
    model.fit(X, y)
    wanted = model._predict(X)
    np.testing.assert_allclose(model._predict(double), wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(model._predict(sp.coo_matrix(double)), wanted, rtol=1e-12, atol=1e-12)
    assert model.score(double, y) == pytest.approx(model.score(X, y))
    model.set_params(solver="adagrad", learning_rate=1e-3).fit(X, y)
    wanted = model._predict(X)
    model.fit(double, y)
    np.testing.assert_allclose(model._predict(double), wanted, rtol=1e-9, atol=1e-9)
    assert double.nnz == before.nnz and np.array_equal(double.data, before.data)
    assert np.array_equal(double.indices, before.indices)


# ---- the order of the columns


def test_rare_columns_come_first():
    assert visiting_order(np.array([500, 3, 900, 9, 0]), 1000).tolist() == [4, 3, 1, 0, 2]
    assert visiting_order(np.array([40, 50, 60]), 60).tolist() == [0, 1, 2]


def many_pairs(seed=0, n=3000):
    """Pairs whose identities are each in less than one row in a hundred, and features that are not."""
    rng = np.random.default_rng(seed)
    A = np.hstack([np.eye(300), rng.integers(0, 2, (300, 3))])
    B = np.hstack([np.eye(250), rng.integers(0, 2, (250, 4))])
    u, v = rng.integers(0, 300, n), rng.integers(0, 250, n)
    y = (A[u, 300:] @ rng.normal(size=3)) * (B[v, 250:] @ rng.normal(size=4)) + 0.1 * rng.normal(size=n)
    return sp.csr_matrix(np.hstack([A[u], B[v]])), y


@pytest.fixture(scope="module")
def ratings(data_dir):
    data = load_dataset("movielens", data_dir)
    people = data.user_features.assign(zip=data.user_features["zip"].astype(str).str[0])
    encoder = PairEncoder(people, data.item_features).fit(data.n_users, data.n_items)
    X = encoder.transform(data.users, data.items)
    order = np.random.default_rng(0).permutation(len(data.users))
    train, test = order[:80_000], order[80_000:]
    return X[train], data.rating[train], X[test], data.rating[test], encoder.split_


@pytest.mark.slow
def test_no_order_in_which_columns_are_given_hides_the_interactions(ratings):
    """Visited as given, the frequent columns first leave none of them: the ids are never needed."""
    X, y = ratings[:2]
    counts = np.bincount(X.indices, minlength=X.shape[1])
    kw = {"penalty": "ti", "gamma": 8e-5, "beta": 1e-5, "alpha": 1e-5, "n_components": 8}
    kw |= {"init_scale": 0.01, "max_iter": 8, "tol": 0.0}
    found = []
    by_count = np.argsort(counts, kind="stable")
    for columns in (np.arange(X.shape[1]), by_count[::-1], by_count):
        model = FactorizationMachineRegressor(**kw).fit(X[:, columns], y)
        found.append((model.history_[-1]["objective"], model.n_used_interactions_))
    objectives, counts = zip(*found, strict=True)
    assert max(objectives) < 1.005 * min(objectives), found
    assert min(counts) > 0.1 * max(counts), found


# ---- large scales, and where 1 + p x is 0


@pytest.mark.thorough
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_block_descent_works_at_any_scale(scale):
    X, y = task(1, n=200)
    model = FactorizationMachineRegressor(
        solver="block",
        max_iter=300,
        n_components=4,
        init_scale=0.05 / scale,
        alpha=1e-6 * scale**2,
        beta=1e-6 * scale**2,
    ).fit(scale * X, y)
    assert model.score(scale * X, y) > 0.5


@CUT_SHORT
def test_block_descent_does_not_stop_at_nonsense():
    X, y = task(1, n=200)
    X = 1e4 * X
    model = FactorizationMachineRegressor(solver="block", max_iter=200).fit(X, y)
    assert model.score(X, y) > 0.5, model.history_[-1]
    objective = [entry["objective"] for entry in model.history_]
    assert objective[-1] < 1e-9 * objective[0]


@pytest.mark.parametrize("solver", ["cd", "block"])
def test_all_subsets_where_a_factor_is_zero(solver):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (80, 5)).astype(float)
    y = np.prod(1.0 - X[:, :3], axis=1)  # the exact solution has 1 + p x = 0
    model = AllSubsetsRegressor(
        solver=solver, n_components=1, beta=0.0, fit_intercept=False, max_iter=500, tol=1e-12
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert np.mean((model.predict(X) - y) ** 2) < 1e-3
    P = model.P_[0][0]
    np.testing.assert_allclose(
        model.predict(X), reference.predict_all_subsets(X, 0.0, model.w_, P), atol=1e-9
    )


@CUT_SHORT
@pytest.mark.parametrize("sizes", [[1.0, 1.0, 1.0], [2.0, 0.5, 3.0]])
@pytest.mark.parametrize("solver", ["cd", "block"])
def test_all_subsets_leave_a_factor_of_zero(solver, sizes):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (80, 3)).astype(float) * sizes
    y = np.prod(1.0 + X / sizes * np.array([0.5, 1.0, -0.4]), axis=1)
    model = AllSubsetsRegressor(
        solver=solver, n_components=1, beta=1e-8, fit_intercept=False, warm_start=True, max_iter=1
    ).fit(X, y)
    # 1 + p x is 0 in every row that has the first feature
    model.P_[0][0][:, 0] = np.array([-1.0, 0.2, 0.1]) / sizes
    model.set_params(max_iter=200).fit(X, y)
    assert np.mean((model.predict(X) - y) ** 2) < 1e-3
    objective = [entry["objective"] for entry in model.history_[2:]]
    assert (np.diff(objective) <= 1e-10).all()


# ---- the end of a fit, and what is regular


@CUT_SHORT
def test_pairs_of_rows_shrink_the_features_of_either_class_alike():
    """Each positive row has the first feature alone, each other row the second."""
    y = np.arange(60) % 3 == 0
    X = np.column_stack([y, ~y]).astype(float)
    model = FactorizationMachineClassifier(
        loss="bpr", solver="adagrad", n_components=1, alpha=0.3, max_iter=200, tol=0.0
    )
    first, second = model.fit(X, y).w_
    assert second == pytest.approx(-first)
    # the minimum of log(1 + e^−2w) + αw²
    assert 1.0 / (1.0 + np.exp(2.0 * first)) == pytest.approx(0.3 * first, rel=1e-2)


def test_a_fit_cut_short_warns_and_one_of_so_many_epochs_does_not():
    X, y = task(2)
    with pytest.warns(ConvergenceWarning, match="max_iter=2 epochs ended.*set tol=0"):
        model = FactorizationMachineRegressor(max_iter=2).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FactorizationMachineRegressor(max_iter=2, tol=0.0).fit(X, y)
        FactorizationMachineRegressor(max_iter=10_000, tol=1e-3).fit(X, y)


@CUT_SHORT
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_the_tolerance_has_no_scale_of_its_own(scale):
    """The same problem in other units: y, P and the penalties scaled alike take the same epochs."""
    X, y = task(3, n=150)
    root = np.sqrt(scale)  # a product of two entries of P is a prediction
    kw = {"init_scale": 0.1 * root, "alpha": 1e-4, "beta": 1e-3 * scale, "max_iter": 500, "tol": 1e-6}
    model = FactorizationMachineRegressor(**kw).fit(X, scale * y)
    plain = FactorizationMachineRegressor(**(kw | {"init_scale": 0.1, "beta": 1e-3})).fit(X, y)
    assert model.n_iter_ == plain.n_iter_
    np.testing.assert_allclose(model.predict(X) / scale, plain.predict(X), rtol=1e-6, atol=1e-6)


def test_the_default_strength_of_a_sparse_penalty_selects():
    X, y = many_pairs()
    every = 557 * 556 / 2
    for kw in (
        {"penalty": "ti"},
        {"penalty": "l1"},
        {"penalty": "l21", "solver": "block"},
        {"penalty": "cs", "solver": "block"},
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = FactorizationMachineRegressor(**kw).fit(X, y)
        assert 0 < model.n_used_interactions_ < 0.5 * every, kw
        assert model.score(X, y) > 0.5, kw


@pytest.mark.slow
@CUT_SHORT
@pytest.mark.parametrize("kw", [{}, {"degree": 3}, {"n_components": 30}, {"solver": "block"}], ids=str)
def test_the_defaults_beat_a_linear_model_on_movielens(ratings, kw):
    from sklearn.linear_model import Ridge

    X, y, held, truth, split = ratings

    def error(model):
        return np.sqrt(np.mean((model.fit(X, y).predict(held) - truth) ** 2))

    linear = min(error(Ridge(alpha=a)) for a in (0.1, 1.0, 10.0))
    assert error(FactorizationMachineRegressor(**({"solver": "pairs", "split": split} | kw))) < linear


# ---- columns that are not there


@CUT_SHORT
@pytest.mark.parametrize("solver", ["cd", "block", "psgd", "adagrad", "fista", "lbfgs", "nmapgd"])
def test_columns_that_no_row_has_get_zeros(solver):
    X, y = task(5)
    X = np.hstack([X[:, :3], np.zeros((len(X), 2)), X[:, 3:]])
    model = FactorizationMachineRegressor(solver=solver, degree=3, max_iter=4, learning_rate=0.01)
    model.fit(X, y)
    for P in model.P_:
        assert (P[0][3:5] == 0).all() and (P[0][:3] != 0).any(axis=1).all()
    noisy = X.copy()
    noisy[:, 3:5] = 5.0
    np.testing.assert_allclose(model.predict(noisy), model.predict(X), atol=1e-12)


# ---- sums that cancel


@given(
    st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1e6)), min_size=1, max_size=6),
    st.integers(1, 5),
    st.integers(0, 5),
    st.one_of(st.just(0.0), st.floats(1e-6, 1e6)),
)
@settings(max_examples=200, deadline=None)
def test_symmetric_polynomials_without_one_size_do_not_cancel(values, order, j, new):
    sizes = np.array(values)
    j %= len(sizes)
    e, rest = symmetric_polynomials(sizes, order), np.empty(order + 1)
    without(e, sizes, j, rest)
    others = np.delete(sizes, j)
    ones = np.ones(len(others))
    for t in range(order + 1):
        assert rest[t] == pytest.approx(reference.anova(others, ones, t), rel=1e-9, abs=0)
    with_size(e, sizes, j, rest, new)
    for t in range(1, order + 1):
        exact = reference.anova(sizes, np.ones(len(sizes)), t)
        assert e[t - 1] == pytest.approx(exact, rel=1e-9, abs=0)


def test_one_large_size_among_small_ones():
    sizes = np.array([1e4, 0.01, 0.01, 0.02, 0.03, 0.01])
    e, rest = symmetric_polynomials(sizes, 4), np.empty(5)
    without(e, sizes, 0, rest)
    assert rest[4] == pytest.approx(reference.anova(sizes[1:], np.ones(5), 4), rel=1e-12)


# ---- what is read from a fit


def test_a_table_as_wide_as_long_is_not_taken_for_weights():
    W = np.zeros((3, 3))
    W[0, 1] = 1.0
    P = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert recovery(W, P) == (0.0, 1.0, True)
    assert recovery(W, W + W.T) == (0.0, 1.0, True)  # symmetric: weights


@CUT_SHORT
@pytest.mark.parametrize("lower", ["augment", "simplex", "inhomogeneous"])
@pytest.mark.parametrize("fit_linear", [True, False])
def test_weights_of_the_orders_of_a_shared_table(lower, fit_linear):
    X, y = task(8)
    model = FactorizationMachineRegressor(
        degree=4, fit_lower=lower, fit_linear=fit_linear, n_components=3, init_scale=0.5, max_iter=3
    ).fit(X, y)
    weights, P = model.order_weights(), model.P_[0][0][: X.shape[1]]
    assert weights.shape == (4, 3)
    expected = model.intercept_ + X @ model.w_[: X.shape[1]] + model.w_[X.shape[1] :].sum()
    for s in range(3):
        for t in range(1, 5):
            expected += weights[t - 1, s] * np.array([reference.anova(P[:, s], x, t) for x in X])
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-9)
    with pytest.raises(InputError, match="orders that share a P"):
        FactorizationMachineRegressor(max_iter=1).fit(X, y).order_weights()


# ---- threads and large values


@pytest.mark.parametrize(
    "model",
    [
        FactorizationMachineRegressor(max_iter=2, tol=0.0),
        BayesianFactorizationMachineRegressor(n_draws=12),
    ],
    ids=str,
)
def test_what_is_infinite_as_float32_is_refused(model):
    X, y = task(8)
    with pytest.raises(InputError, match="too large for float32"):
        model.fit(1e100 * X, y)
    model.set_params(num_threads=1).fit(X, y)
    with pytest.raises(InputError, match="too large for float32"):
        model.predict(1e100 * X)


@CUT_SHORT
@pytest.mark.parametrize(
    "solver",
    [pytest.param(one, marks=() if one == "cd" else pytest.mark.thorough) for one in SOLVERS.names()],
)
def test_passes_of_little_work_wake_no_thread(solver, monkeypatch):
    def refuse(*_):
        raise AssertionError("a tiny table on several threads")

    monkeypatch.setattr("recsys._jit._pool", refuse)
    X, y = paired(0, n=60)
    model = FactorizationMachineRegressor(
        solver=solver, split=15, max_iter=2, learning_rate=0.01, batch_size=8
    )
    assert np.isfinite(model.fit(X, y).predict(X)).all()


@pytest.mark.thorough
@CUT_SHORT
@pytest.mark.parametrize("solver", SOLVERS.names())
@pytest.mark.parametrize("degree", [2, 3])
def test_the_number_of_threads_and_the_serial_path_change_no_bit(solver, degree, monkeypatch):
    X, y = many_pairs()
    kw = {"solver": solver, "degree": degree, "max_iter": 3, "n_components": 2, "learning_rate": 0.01}
    kw |= {"batch_size": 500, "tol": 0.0, "split": 303}
    alone = FactorizationMachineRegressor(num_threads=1, **kw).fit(X, y)
    monkeypatch.setattr(resources, "WORTH", 0)
    two = FactorizationMachineRegressor(num_threads=2, **kw).fit(X, y)
    for a, b in zip(alone.P_, two.P_, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(alone.predict(X), two.predict(X))
