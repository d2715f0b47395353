"""ALS with a ridge for each row: against dense solutions row by row."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError, load_ranker, make_ranker
from recsys.rankers._weighted_least_squares import least_squares
from tests.reference import rankers as reference
from tests.strategies import liked_matrices

SMALL = settings(max_examples=25, deadline=None)


def some(users=40, items=20, seed=0):
    rng = np.random.default_rng(seed)
    return sp.csr_matrix(rng.random((users, items)) < 0.3, dtype=np.float32)


def start(ranker, items):
    """Return the item factors that a fit starts with."""
    rng = np.random.default_rng(ranker.random_state)
    return rng.normal(0.0, 0.1 / np.sqrt(ranker.factors), (items, ranker.factors)).astype(np.float32)


@pytest.mark.thorough
@SMALL
@given(liked_matrices(min_users=2, min_items=2), st.sampled_from([0.3, 1.0, 2.0]))
def test_factors_are_those_of_dense_solutions(R, power):
    ranker = make_ranker(
        "als", factors=3, alpha=5.0, regularization=0.7, ridge_power=power, iterations=3, random_state=2
    ).fit(R, show_progress=False)
    C = np.where(R.toarray() > 0, 5.0, 1.0)
    X, Y = reference.ials(C, start(ranker, R.shape[1]), 0.7, power, 3)
    # Factors are float32 after each half, and likes decide between directions that start as chance.
    np.testing.assert_allclose(ranker.user_factors_, X, atol=1e-4 * np.abs(X).max())
    np.testing.assert_allclose(ranker.item_factors_, Y, atol=1e-4 * np.abs(Y).max())


@SMALL
@given(liked_matrices(), st.integers(1, 5), st.integers(0, 100))
def test_a_row_is_at_the_minimum(R, factors, seed):
    rng = np.random.default_rng(seed)
    Y, ridges = (
        rng.normal(size=(R.shape[1], factors)).astype(np.float32),
        rng.uniform(0.1, 9, R.shape[0]),
    )
    confidences = R.copy()
    confidences.data = rng.uniform(0.5, 9, R.nnz)
    X = least_squares(confidences, Y, ridges)
    C, P = confidences.toarray(), (R.toarray() > 0) * 1.0
    C[P == 0] = 1.0
    slope = (C * (X @ Y.T - P)) @ Y + ridges[:, None] * X
    np.testing.assert_allclose(slope, 0.0, atol=1e-4)
    np.testing.assert_array_equal(X, least_squares(confidences, Y, ridges, 1))


def test_the_mean_ridge_is_the_parameter():
    R = some()
    ranker = make_ranker("als", factors=2, ridge_power=1.0, regularization=3.0, alpha=4.0).fit(R, False)
    C = np.where(R.toarray() > 0, 4.0, 1.0)
    ridges = 3.0 * ranker.ridge_scale_ * np.concatenate([C.sum(axis=1), C.sum(axis=0)])
    assert ridges.mean() == pytest.approx(3.0)


@pytest.mark.thorough
def test_folding_in_gives_what_was_fitted(tmp_path):
    R = some()
    params = {"factors": 4, "iterations": 200, "regularization": 1.0, "alpha": 3.0, "ridge_power": 1.0}
    ranker = make_ranker("als", **params).fit(R, False)
    users = np.arange(40)
    again = ranker.scores(users, R, recalculate_user=True)
    np.testing.assert_allclose(again, ranker.scores(users, R), atol=5e-3)
    alone = ranker.scores([7], R[7], recalculate_user=True)
    np.testing.assert_array_equal(alone[0], again[7])  # alone as among others
    ranker.save(tmp_path / "m.recsys")
    loaded = load_ranker(tmp_path / "m.recsys")
    np.testing.assert_array_equal(loaded.scores(users, R, recalculate_user=True), again)


def test_threads_and_calls_change_no_bits_and_iterations_are_told():
    R, told = some(), []
    fits = [
        make_ranker("als", factors=4, iterations=3, ridge_power=0.5, num_threads=n).fit(
            R, show_progress=False, callback=lambda iteration, *more: told.append(iteration)
        )
        for n in (1, 2)
    ]
    np.testing.assert_array_equal(fits[0].item_factors_, fits[1].item_factors_)
    assert told == [0, 1, 2, 0, 1, 2]


def test_without_a_ridge_there_is_nothing_to_scale():
    R = some()
    plain = make_ranker("als", factors=2, regularization=0.0).fit(R, False)
    scaled = make_ranker("als", factors=2, regularization=0.0, ridge_power=1.0).fit(R, False)
    np.testing.assert_array_equal(plain.item_factors_, scaled.item_factors_)


def test_a_power_below_0_is_refused():
    with pytest.raises(InputError, match="ridge_power"):
        make_ranker("als", ridge_power=-1.0)


def test_rows_are_folded_in_as_they_were_fitted(liked):
    """A parameter that is changed after the fit takes effect at the next."""
    model = make_ranker("als", factors=3).fit(liked, show_progress=False)
    before = model.scores(0, liked[0], recalculate_user=True)
    model.set_params(ridge_power=1.0)
    np.testing.assert_array_equal(model.scores(0, liked[0], recalculate_user=True), before)
