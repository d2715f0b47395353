"""The regularisation path: strengths, growth from nothing, refits, the extended BIC."""

from itertools import combinations
from math import comb, log

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, Ridge

from recsys import InputError
from recsys.fm import (
    AllSubsetsRegressor,
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    planted_interactions,
    regularization_path,
)
from recsys.fm.interaction_gradients import interaction_slopes
from recsys.fm.path import PathRows, quiet
from recsys.fm.path_points import extended_bic
from recsys.fm.refit import fit_products, product_columns
from recsys.multilinear.losses import LOSSES
from tests.reference import fm as reference

SOLVERS = {"ti": "cd", "l1": "cd", "cs": "block", "l21": "block"}


def regressor(penalty="ti", **more):
    shape = {"beta": 1e-5, "n_components": 4, "max_iter": 60} | more
    return FactorizationMachineRegressor(penalty=penalty, solver=SOLVERS[penalty], **shape)


def planted(seed=0, **more):
    return planted_interactions(200, **({"groups": 1, "per_group": 3, "noise_features": 5} | more), seed=seed)  # fmt: skip


def true_pairs(data):
    return {tuple(map(int, pair)) for pair in np.argwhere(data.W)}


# ---- slopes, refits


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4))
def test_slopes_are_those_of_enumeration(seed, order):
    rng = np.random.default_rng(seed)
    rows, columns = int(rng.integers(1, 12)), int(rng.integers(1, 7))
    X = (rng.random((rows, columns)) < 0.5) * rng.choice([1.0, -2.0, 0.5], columns)
    slopes = rng.choice([-1.0, 0.0, 1.0, 0.3], rows)  # so that some sums are 0
    found = {}
    for part in interaction_slopes(sp.csr_matrix(X), slopes, order, 0.25):
        for features, g, h in zip(part.features.tolist(), part.slope, part.curvature, strict=True):
            assert tuple(features) not in found
            found[tuple(features)] = (g, h)
    expected = reference.interaction_slopes(X, slopes, order, 0.25)
    assert set(found) == set(expected)
    for features, pair in expected.items():
        assert found[features] == pytest.approx(pair)
    # whatever is left out by a bound lies below it
    least = float(rng.random())
    kept = {
        tuple(features)
        for part in interaction_slopes(sp.csr_matrix(X), slopes, order, 0.25, lambda b: b > least)
        for features in part.features.tolist()
    }
    assert all(abs(pair[0]) <= least for one, pair in expected.items() if one not in kept)


def test_many_columns_go_in_blocks():
    rng = np.random.default_rng(0)
    X = (rng.random((12, 600)) < 0.05) * 1.0
    parts = list(interaction_slopes(sp.csr_matrix(X), rng.normal(size=12), 2))
    there = X.T @ X
    assert len(parts) == 3
    assert sum(len(part.slope) for part in parts) == np.count_nonzero(np.triu(there, 1))


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_refit_is_scikit_learns(loss):
    rng = np.random.default_rng(1)
    X = sp.csr_matrix((rng.random((40, 6)) < 0.6) * rng.normal(size=(40, 6)))
    y, chosen = rng.normal(size=40), [(0, 1), (2, 3, 4), (1, 5)]
    Z = np.hstack([X.toarray(), *(X.toarray()[:, one].prod(axis=1)[:, None] for one in chosen)])
    np.testing.assert_allclose(product_columns(X, chosen).toarray(), Z[:, 6:])
    if loss == "squared":
        theirs = Ridge(alpha=0.4).fit(Z, y)
        coef, bias = theirs.coef_, theirs.intercept_
    else:
        y = np.where(y > 0, 1.0, -1.0)
        theirs = LogisticRegression(C=1 / 0.4, tol=1e-10, max_iter=10_000).fit(Z, y)
        coef, bias = theirs.coef_[0], theirs.intercept_[0]
    model = fit_products(X, y, chosen, LOSSES.get(loss), 0.01)
    np.testing.assert_allclose(np.r_[model.linear, model.weights], coef, atol=1e-5)
    assert model.intercept == pytest.approx(bias, abs=1e-5)
    np.testing.assert_allclose(model.predict(X), Z @ coef + bias, atol=1e-5)


def test_a_refit_by_hubers_loss_reaches_rows_that_are_all_far_off():
    """At the median all slopes are ±1 and nothing bends: Newton's steps lead nowhere."""
    X = np.repeat([[0.0, 1.0], [1.0, 1.0]], 20, axis=0)
    y = np.where(X[:, 0] > 0, 40.0, -40.0)
    model = fit_products(sp.csr_matrix(X), y, [(0, 1)], LOSSES.get("huber"), 0.0)
    np.testing.assert_allclose(model.predict(sp.csr_matrix(X)), y, atol=1e-3)


def test_a_refit_without_bias_or_features_by_themselves():
    X = sp.csr_matrix([[1.0, 2.0], [2.0, 1.0], [1.0, 0.0]])
    model = fit_products(X, np.array([4.0, 4.0, 9.0]), [(0, 1)], LOSSES.get("squared"), 0.0, False, False)  # fmt: skip
    assert model.intercept == 0 and not model.linear.any() and model.weights[0] == pytest.approx(2.0)


# ---- strengths


def enumerated_bracket(model, data):
    """The bracket of TI by enumeration, from scikit-learn's linear model."""
    n = len(data.y)
    linear = Ridge(alpha=model.alpha * n, tol=1e-10).fit(data.X, data.y)
    slopes = linear.predict(data.X) - data.y
    pairs = reference.interaction_slopes(data.X, slopes, 2, 1.0)
    most = max(abs(g) for g, _ in pairs.values())
    return most - model.beta, most


@pytest.mark.parametrize("penalty", ["ti", "cs"])
def test_the_bracket_is_that_of_enumeration(penalty):
    data, model = planted(), regressor(penalty, beta=0.01)
    assert PathRows(model, data.X, data.y).bracket() == pytest.approx(enumerated_bracket(model, data), rel=1e-5)  # fmt: skip


@pytest.mark.parametrize("penalty", ["ti", "cs", "l1", "l21"])
def test_from_the_end_of_the_bracket_on_no_model_is_better_and_below_its_begin_one_is(penalty):
    data, model = planted(), regressor(penalty)
    low, high = PathRows(model, data.X, data.y).bracket()
    assert 0 < low <= high
    path = regularization_path(model, data.X, data.y, gammas=[high * 1.001, low * 0.98])
    first, second = path.points
    assert first.n_interactions == 0 and second.n_interactions > 0
    assert second.objective < first.objective
    for seed in range(3):  # of random starts, large and small, too
        with quiet():
            other = model.set_params(gamma=high, random_state=seed, init_scale=(0.01, 0.3, 2.0)[seed])
            other.fit(data.X, data.y)
        assert other.history_[-1]["objective"] >= first.objective - 1e-4


def test_the_bracket_of_higher_orders_holds_triples():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    y = X[:, 0] * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=200)
    model = regressor(degree=3)
    low, high = PathRows(model, X, y).bracket()
    slopes = Ridge(alpha=model.alpha * 200, tol=1e-10).fit(X, y).predict(X) - y
    both = [reference.interaction_slopes(X, slopes, order, 1.0) for order in (2, 3)]
    assert high == pytest.approx(max(abs(g) for one in both for g, _ in one.values()), rel=1e-5)
    path = regularization_path(model, X, y, gammas=[high, 0.5 * low])
    assert path.points[1].support[0] == (0, 1, 2) and path.orders == (2, 3)


def test_a_ridge_that_no_interaction_is_worth_leaves_no_strength_where_one_is():
    data = planted()
    low, high = PathRows(regressor(beta=10.0), data.X, data.y).bracket()
    assert low == 0.0 < high < 10.0
    path = regularization_path(regressor(beta=10.0), data.X, data.y, n_gammas=3)
    assert [point.n_interactions for point in path.points] == [0, 0, 0]
    assert "something below" not in str(path)


@pytest.mark.parametrize("columns", [2, 5, 30, 41])
def test_candidates_are_counted(columns):
    """Of two features those that a row has; of three all that there are, to the last one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, columns))
    X[:, -1] *= np.arange(40) < 1
    X[:1, 1:-1] = 0.0  # the last column shares a row with the first alone
    path = regularization_path(regressor(degree=3, max_iter=2), X, rng.normal(size=40), n_gammas=2)
    pairs = sum(bool((X[:, i] * X[:, j]).any()) for i, j in combinations(range(columns), 2))
    assert path.candidates == {2: pairs, 3: comb(columns, 3)}


# ---- the path


@pytest.mark.parametrize("penalty", ["ti", "cs", "l1", "l21"])
def test_a_path_begins_with_nothing_and_finds_what_was_planted(penalty):
    data, held = planted(), planted(1)
    path = regularization_path(
        regressor(penalty), data.X, data.y, held_out=(held.X, held.y), n_gammas=6, ratio=0.02
    )
    gammas = [point.gamma for point in path.points]
    assert len(gammas) == 6 and gammas == sorted(gammas, reverse=True)
    assert path.points[0].n_interactions == path.points[0].n_features == 0
    assert path.points[0].losses == pytest.approx(path.linear, rel=1e-3)
    for by in ("ebic", "refit"):
        chosen = path.points[path.best(by)]
        assert set(chosen.support) == true_pairs(data)
        assert chosen.refit.held_out < chosen.losses.held_out < path.linear.held_out
        np.testing.assert_allclose(
            chosen.refitted.weights, 1.0, atol=0.05
        )  # they are no longer shrunken
        assert max(map(abs, chosen.weights.values())) < 1.0


def test_a_path_ends_no_higher_than_a_random_start_and_is_the_same_again():
    data = planted(2, groups=2, per_group=3)
    model = regressor(init_scale=0.1)
    path = regularization_path(model, data.X, data.y, n_gammas=6, refit=False)
    again = regularization_path(model, data.X, data.y, n_gammas=6, refit=False)
    assert [one.objective for one in path.points] == [one.objective for one in again.points]
    assert [one.weights for one in path.points] == [one.weights for one in again.points]
    bare = regularization_path(model, data.X, data.y, n_gammas=6, refit=False, restarts=0)
    for one, other in zip(path.points, bare.points, strict=True):
        with quiet():
            single = model.set_params(gamma=one.gamma, random_state=3).fit(data.X, data.y)
        assert one.objective <= min(single.history_[-1]["objective"], other.objective) * 1.01
        assert one.refit is None and one.ebic is None


def test_points_hold_what_they_say():
    data = planted()
    path = regularization_path(regressor(), data.X, data.y, n_gammas=5)
    for place, point in enumerate(path.points):
        P = np.zeros((data.X.shape[1], 4))
        P[point.used] = point.tables[0]
        W = P @ P.T
        expected = {pair: W[pair] for pair in combinations(range(8), 2) if W[pair] != 0}
        assert point.weights == pytest.approx(expected)
        assert point.n_features == np.count_nonzero(P.any(axis=1))
        sizes = [abs(point.weights[one]) for one in point.support]
        assert sizes == sorted(sizes, reverse=True)
        scores = reference.predict_fm(data.X, point.intercept, point.linear, [P], [2])
        np.testing.assert_allclose(path.predict(place, data.X), scores, atol=1e-9)
        assert point.losses.train == pytest.approx(np.mean((scores - data.y) ** 2) / 2)
        omega = sum(abs(P[i, s] * P[j, s]) for i, j in combinations(range(8), 2) for s in range(4))
        objective = (
            point.losses.train + 0.5e-4 * (point.linear**2).sum() + 0.5e-5 * (P**2).sum() + point.gamma * omega
        )  # fmt: skip
        assert point.objective == pytest.approx(objective)
        score = path.predict(place, data.X, refitted=True)
        assert point.refit.train == pytest.approx(np.mean((score - data.y) ** 2) / 2)


def test_a_path_is_printed_and_is_a_table():
    data, held = planted(), planted(1)
    path = regularization_path(
        regressor(), data.X, data.y, held_out=(held.X, held.y), n_gammas=4, max_refit=3
    )
    frame = path.frame()
    assert frame["gamma"].tolist() == [point.gamma for point in path.points]
    assert pd.isna(frame["refit_held_out"].iloc[-1]) and path.points[-1].n_interactions > 3
    assert path.points[-1].ebic is None
    with pytest.raises(InputError, match="not fitted again"):
        path.predict(3, data.X, refitted=True)
    for place in (4, -1):
        with pytest.raises(InputError, match="place must be an integer from 0 to 3"):
            path.predict(place, data.X)
    with pytest.raises(InputError, match="X has 3 columns, the fit 8"):
        path.predict(0, data.X[:, :3])
    lines = str(path).splitlines()
    assert len(lines) == 2 + 4 + 1 and lines[2].split()[1:3] == ["0", "0"]


def test_classes_sparse_rows_and_other_types_of_numbers():
    rng = np.random.default_rng(0)
    X = (rng.random((300, 6)) < 0.5).astype(np.int8)
    X[0] = 0
    y = np.where(3.0 * (X[:, 0] == X[:, 1]) - 1.5 + rng.logistic(size=300) > 0, "yes", "no")
    model = FactorizationMachineClassifier(penalty="ti", beta=1e-5, n_components=3, solver="cd")
    path = regularization_path(model, X, y, held_out=(X[:50], y[:50]), n_gammas=4)
    unsorted = sp.csr_matrix(X.astype(np.float32))
    for a, b in zip(unsorted.indptr[:-1], unsorted.indptr[1:], strict=True):
        unsorted.indices[a:b] = unsorted.indices[a:b][::-1].copy()
    unsorted.has_sorted_indices = False
    again = regularization_path(model, unsorted, y, held_out=(X[:50], y[:50]), n_gammas=4)
    pd.testing.assert_frame_equal(path.frame(), again.frame(), check_exact=True)
    assert [one.weights for one in path.points] == [one.weights for one in again.points]
    assert path.points[path.best("ebic")].support[0] == (0, 1)
    # held-out rows may have one class only: the classes are those of the fit
    some = y == "yes"
    one = regularization_path(model, X, y, held_out=(X[some], y[some]), n_gammas=2)
    assert one.points[0].losses.held_out != path.points[0].losses.held_out


@pytest.mark.parametrize(
    ("make", "more", "message"),
    [
        (lambda: regressor().set_params(penalty="l2"), {}, "leaves out no interaction exactly"),
        (lambda: regressor().set_params(fit_lower="augment"), {}, "fit_lower='explicit'"),
        (lambda: AllSubsetsRegressor(penalty="ti"), {}, "not of AllSubsetsRegressor"),
        (lambda: regressor(validation_fraction=0.2), {}, "give held_out"),
        (lambda: regressor(fit_signs=True), {}, "set fit_signs=False"),
        (lambda: FactorizationMachineClassifier(penalty="ti", loss="bpr", solver="sgd"), {}, "pairs of rows|cannot serve"),
        (regressor, {"gammas": []}, "gammas holds none"),
        (regressor, {"gammas": [0.0]}, "each of gammas"),
        (regressor, {"gammas": ["a"]}, "gammas must be numbers"),
        (regressor, {"held_out": np.ones((3, 8))}, "held_out must be a pair"),
        (regressor, {"held_out": (np.ones((3, 8)), np.ones(3), None)}, "held_out must be a pair"),
        (regressor, {"n_gammas": 1}, "n_gammas"),
        (regressor, {"ratio": 1.0}, "ratio"),
        (regressor, {"restarts": -1}, "restarts"),
        (regressor, {"held_out": (np.ones((2, 3)), np.ones(2))}, "held_out has 3 columns"),
    ],
)  # fmt: skip
def test_what_cannot_be_followed_is_told(make, more, message):
    data = planted()
    y = data.y if "Regressor" in type(make()).__name__ else data.y > 0
    with pytest.raises(InputError, match=message):
        regularization_path(make(), data.X, y, **more)


def test_a_target_without_interactions_to_explain_is_told():
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(InputError, match="leaves nothing"):
        PathRows(regressor(alpha=0.0), X, np.full(30, 3.0)).bracket()
    one = regularization_path(regressor(), X, X[:, 0] * X[:, 1], n_gammas=2)
    with pytest.raises(InputError, match="held-out rows"):
        one.best("refit")
    with pytest.raises(InputError, match="by must be one of"):
        one.best("aic")


def test_the_extended_bic_counts_candidates():
    found = extended_bic("squared", 0.25, 50, {2: 3}, {2: 45.0})
    assert found == pytest.approx(50 * log(0.5) + 3 * log(50) + 2 * log(comb(45, 3)))
    more = extended_bic("logistic", 0.25, 50, {2: 1, 3: 2}, {2: 45.0, 3: 120.0})
    assert more == pytest.approx(25 + 3 * log(50) + 2 * (log(45) + log(comb(120, 2))))
    assert extended_bic("huber", 0.25, 50, {2: 3}, {2: 45.0}) is None
    assert extended_bic("squared", 0.0, 50, {2: 3}, {2: 45.0}) is None
