"""The Bayesian factorization machine: each draw against dense rows, intervals."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

from recsys import InputError
from recsys.fm import (
    BayesianFactorizationMachineClassifier,
    BayesianFactorizationMachineRegressor,
    bayesian,
)
from recsys.fm.bayesian import Sampler
from recsys.fm.objective import Model
from recsys.multilinear.forms import ANOVA, Form
from tests.reference import gibbs as reference


def joined(rng, rows, sizes, width=3):
    """Rows that join objects of random features, one of each kind, and the kinds' widths."""
    parts = []
    for objects in sizes:
        table = np.hstack([np.eye(objects), rng.standard_normal((objects, width - 1)).round(1)])
        parts.append(table[rng.integers(0, objects, rows)])
    return sp.csr_matrix(np.hstack(parts)), [part.shape[1] for part in parts]


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=2),
    orders=st.sampled_from([[2], [3], [2, 3], [2, 3, 4]]),
    threads=st.sampled_from([1, None]),
)
def test_a_draw_is_that_of_dense_rows(seed, sizes, orders, threads):
    rng = np.random.default_rng(seed)
    X, widths = joined(rng, 14, sizes)
    y = rng.standard_normal(X.shape[0])
    ends = np.arange(widths[0]), np.arange(widths[0], X.shape[1])
    model = Model.zeros([Form(ANOVA, m, 1) for m in orders], X.shape[1], 2, True)
    sampler = Sampler(model, X, y, widths[0], np.random.default_rng(1), init_scale=1.0, threads=threads)
    bias, w, precision = 0.0, model.w.copy(), None
    tables = [(m, P[0].copy()) for m, P in zip(orders, model.tables(), strict=True)]
    same = np.random.default_rng(1)
    for P in model.tables():
        same.standard_normal(P.shape)
    dense, features = X.toarray(), [end for end in ends if len(end)]
    for k in range(2):
        sampler.draw()
        bias, w, tables, precision = reference.draw(dense, y, features, bias, w, tables, same, k == 0)
        wanted = np.concatenate([[bias], w, *(P.ravel() for _, P in tables)])
        np.testing.assert_allclose(model.z, wanted, rtol=1e-7, atol=1e-7)
        assert sampler.precision == pytest.approx(precision, rel=1e-8)
        np.testing.assert_allclose(sampler.fitted, model.predict(X), rtol=1e-8, atol=1e-8)


@pytest.mark.thorough
def test_draws_are_the_same_by_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("recsys.utils.resources.WORTH", 0)
    X, _ = joined(np.random.default_rng(0), 300, [20, 15])
    y = np.random.default_rng(1).standard_normal(300)
    fits = [
        BayesianFactorizationMachineRegressor(
            degree=3, n_draws=4, burn_in=1, split=22, num_threads=k
        ).fit(X, y)
        for k in (1, 2)
    ]
    np.testing.assert_array_equal(fits[0].draws_, fits[1].draws_)


def planted(rows, classes=False, seed=0):
    rng = np.random.default_rng(seed)
    X, widths = joined(rng, rows, [30, 25, 4], width=2)
    P = 0.7 * rng.standard_normal((X.shape[1], 2))
    S = X @ P
    score = 0.5 * (S**2 - X.power(2) @ P**2).sum(axis=1)
    return X, score + rng.standard_normal(rows) * (1.0 if classes else 0.5), widths


@pytest.mark.thorough
def test_intervals_hold_what_they_say():
    X, y, _ = planted(3000)
    model = BayesianFactorizationMachineRegressor(n_components=3, n_draws=120, burn_in=30).fit(
        X[:1500], 10 * y[:1500] + 7
    )
    truth = 10 * y[1500:] + 7
    for level in (0.5, 0.9):
        low, high = model.predict_interval(X[1500:], level).T
        share = np.mean((low <= truth) & (truth <= high))
        assert abs(share - level) < 4 * np.sqrt(level * (1 - level) / 1500)
    mean, std = model.predict(X[1500:], return_std=True)
    low, high = model.predict_interval(X[1500:]).T
    assert (low < mean).all() and (mean < high).all()
    np.testing.assert_allclose((high - low) / 2, norm.ppf(0.95) * std, rtol=0.1)
    assert 1 / np.sqrt(model.precisions_.mean()) == pytest.approx(
        5.0, rel=0.1
    )  # the noise that was planted


def test_an_interval_cuts_the_mixture_at_equal_shares():
    found, spread = np.array([[0.0, 5.0], [10.0, 5.0]]), np.array([[1.0], [2.0]])
    for share in (0.05, 0.5, 0.95):
        ends = bayesian._quantile(found, spread, share)
        for row in (0, 1):
            below = norm.cdf(ends[row], found[:, row], spread[:, 0]).mean()
            assert below == pytest.approx(share, abs=1e-9)


@pytest.mark.thorough
def test_probabilities_are_those_of_the_classes():
    X, y, _ = planted(6000, classes=True)
    labels = np.where(y > 0, "yes", "no")
    model = BayesianFactorizationMachineClassifier(n_components=3, n_draws=80, burn_in=30).fit(
        X[:3000], labels[:3000]
    )
    p = model.predict_proba(X[3000:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    up = p[:, list(model.classes_).index("yes")]
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        some = (low <= up) & (up < low + 0.2)
        spread = np.sqrt((up[some] * (1 - up[some])).sum()) / some.sum()
        assert abs(np.mean(labels[3000:][some] == "yes") - up[some].mean()) < 4 * spread + 0.02
    assert model.score(X[3000:], labels[3000:]) > 0.7
    np.testing.assert_array_equal(
        model.predict(X), np.where(model.decision_function(X) > 0, "yes", "no")
    )


def test_latent_values_lie_on_the_side_of_their_class():
    X, y, widths = planted(400, classes=True)
    y = np.where(y > 0, 1.0, -1.0)
    model = Model.zeros([Form(ANOVA, 2, 1)], X.shape[1], 2, True)
    sampler = Sampler(model, X, y, widths[0], np.random.default_rng(0), classes=True)
    for _ in range(5):
        sampler.draw()
        model.z[0] += 300.0  # far in the tail of one class
        sampler.fitted += 300.0
        sampler._draw_latent()
        assert (sampler.target * y > 0).all() and np.isfinite(sampler.target).all()
        model.z[0] -= 300.0
        sampler.fitted -= 300.0


def test_columns_that_no_row_has_come_from_their_prior():
    X, y, _ = planted(200)
    wide = sp.csr_matrix(sp.hstack([X, sp.csr_matrix((200, 3))]))
    model = BayesianFactorizationMachineRegressor(n_draws=5, burn_in=0).fit(wide, y)
    assert np.isfinite(model.draws_).all() and np.std(model.w_[-3:]) > 0


@pytest.mark.parametrize(
    "change, why",
    [
        ({"burn_in": 10, "n_draws": 10}, "burn_in"),
        ({"degree": 1}, "degree"),
        ({"split": 0}, "split"),
        ({"split": 1000}, "split"),
        ({"init_scale": 0.0}, "init_scale"),
    ],
)
def test_what_cannot_be_is_refused(change, why):
    X, y, _ = planted(30)
    with pytest.raises(InputError, match=why):
        BayesianFactorizationMachineRegressor(**change).fit(X, y)


def test_a_callback_ends_the_chain():
    X, y, widths = planted(100)
    told = []

    def enough(k, error):
        told.append((k, error))
        return k >= 4

    model = BayesianFactorizationMachineRegressor(
        n_draws=50, burn_in=6, split=widths[0], callback=enough
    ).fit(X, y)
    assert len(told) == 7 and len(model.draws_) == 1 and told[-1][1] == model.history_[-1]["error"]


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # features around 100
@pytest.mark.parametrize(
    "model", [BayesianFactorizationMachineRegressor(), BayesianFactorizationMachineClassifier()], ids=str
)
def test_scikit_learn_takes_them(model):
    few = clone(model).set_params(n_draws=10, burn_in=5, n_components=2)
    failed = [
        row for row in check_estimator(few, on_fail=None, on_skip=None) if row["status"] == "failed"
    ]
    assert not failed, [(row["check_name"], row["exception"]) for row in failed]


def test_the_first_kept_draws_are_like_the_last():
    """Many features of few rows each: the scale of w must not creep up from 0."""
    rng = np.random.default_rng(0)
    users, items = rng.integers(0, 3000, 9000), rng.integers(0, 600, 9000)
    y = (
        0.6 * rng.standard_normal(3000)[users]
        + 0.5 * rng.standard_normal(600)[items]
        + 0.6 * rng.standard_normal(9000)
    )
    X = sp.csr_matrix(
        sp.hstack([sp.identity(3000, format="csr")[users], sp.identity(600, format="csr")[items]])
    )
    model = BayesianFactorizationMachineRegressor(n_components=2, n_draws=60, burn_in=0, split=3000).fit(
        X, y
    )
    spread = model.draws_[:, 1:3001].std(axis=1)
    assert spread[10] == pytest.approx(spread[30:].mean(), rel=0.15) and spread[10] == pytest.approx(
        0.6, rel=0.2
    )


def test_settings_changed_after_the_fit_change_no_prediction():
    X, y, _ = planted(200)
    model = BayesianFactorizationMachineRegressor(n_draws=4, burn_in=1).fit(X, y)
    before = model.predict(X)
    model.set_params(degree=3, n_components=1, fit_linear=False)
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("classes", [False, True])
def test_rows_of_nothing_have_the_mean(classes):
    kind = BayesianFactorizationMachineClassifier if classes else BayesianFactorizationMachineRegressor
    y = np.arange(40) % 2
    found = kind(n_draws=40, burn_in=10).fit(np.zeros((40, 3)), y)
    told = found.predict_proba(np.zeros((1, 3)))[0, 1] if classes else found.predict(np.zeros((1, 3)))[0]
    assert told == pytest.approx(0.5, abs=0.1)


def test_without_an_intercept_a_large_target_is_met():
    rng = np.random.default_rng(0)
    who = rng.integers(0, 8, 400)
    y = 100.0 + who + 0.1 * rng.standard_normal(400)
    model = BayesianFactorizationMachineRegressor(fit_intercept=False, n_components=1).fit(
        np.eye(8)[who], y
    )
    assert np.abs(model.predict(np.eye(8)) - 100.0 - np.arange(8)).max() < 1.0


def test_features_of_another_scale_are_warned_of():
    X, y, _ = planted(300)
    wide = np.hstack([X.toarray(), np.random.default_rng(0).uniform(1e8, 9e8, (300, 1))])
    with pytest.warns(ConvergenceWarning, match="scale the features"):
        BayesianFactorizationMachineRegressor(n_draws=10, burn_in=2).fit(wide, y)


def test_draws_are_refused_by_the_bytes_they_take(monkeypatch):
    """Bias, w and P of four columns: 1 + 4 + 4 × 2 numbers a draw, of 3 draws."""
    X, y = np.eye(4)[np.arange(20) % 4], np.arange(20.0)
    model = BayesianFactorizationMachineRegressor(n_components=2, n_draws=5, burn_in=2)
    monkeypatch.setattr("recsys.utils.resources.free_memory", lambda: 8 * 13 * 3)
    model.fit(X, y)
    monkeypatch.setattr("recsys.utils.resources.free_memory", lambda: 8 * 13 * 3 - 1)
    with pytest.raises(InputError, match="3 draws of 13 parameters: needs .*: lower n_draws"):
        model.fit(X, y)


def test_one_number_in_all_rows_is_predicted_in_its_own_units():
    """Whatever rounding makes of its mean, which 0.1 does not hit and 1 does."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = BayesianFactorizationMachineRegressor(n_draws=20, n_components=2)
    for value in (1.0, 0.1, -1e-9, 3e7):
        found = model.fit(X, np.full(60, value))
        np.testing.assert_allclose(found.predict(X), value, rtol=0.2)
        low, high = found.predict_interval(X).T / value
        assert (np.abs(high - low) > 0.01).all() and (np.abs(high - low) < 1.0).all()


def test_a_target_whose_squares_are_no_numbers_is_refused():
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(InputError, match="too large to be squared"):
        BayesianFactorizationMachineRegressor(n_draws=3, burn_in=0).fit(X, 1e160 * X[:, 0])


def test_the_mean_of_a_prior_is_as_certain_as_its_parameters_are_many():
    class Known:
        rng = np.random.default_rng(0)

        def _gamma(self, shape, rate):
            return shape / rate

    p = np.random.default_rng(1).normal(2.0, 0.5, 99)
    draws = np.array([Sampler._draw_prior(Known(), p)[0] for _ in range(4000)])
    precision = Sampler._draw_prior(Known(), p)[1]
    assert draws.mean() == pytest.approx(p.sum() / 100, abs=0.005)
    assert draws.std() == pytest.approx(1.0 / np.sqrt(100 * precision), rel=0.05)
