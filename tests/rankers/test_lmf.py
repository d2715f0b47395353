"""Folding a row of likes into logistic matrix factorisation, and what its score rests on."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from recsys import make_ranker
from recsys.rankers.base import Rows
from tests.reference import rankers as reference
from tests.strategies import liked_matrices

FEW = settings(max_examples=25, deadline=None)


def fitted(R, **params):
    return make_ranker("lmf", **({"factors": 3, "iterations": 5} | params)).fit(R, show_progress=False)


@pytest.fixture(scope="module")
def likes():
    rng = np.random.default_rng(0)
    R = rng.random((60, 25)) < rng.uniform(0.02, 0.5, 25)
    R[:, 24] = False  # nobody has it
    R[7] = False
    return sp.csr_matrix(R, dtype=np.float32)


@FEW
@given(liked_matrices(), st.sampled_from([1.0, 0.3, 5.0, 0.01]), st.sampled_from([1, 4, 30]))
def test_the_most_likely_factors_are_found(R, ridge, drawn):
    model = fitted(R, regularization=ridge, neg_prop=drawn)
    found = model._folded(R)
    expected = np.array([reference.folded_in(model, row) for row in R.toarray()])
    np.testing.assert_allclose(found, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.thorough
@pytest.mark.parametrize("ridge", [0.0, 1e-3, 1.0])
def test_long_factors_do_not_make_it_diverge(likes, ridge):
    model = fitted(likes, regularization=ridge)
    rng = np.random.default_rng(1)
    model.item_factors_ = rng.normal(scale=30.0, size=(25, 5)).astype(np.float32)
    model.item_factors_[:, -1] = 1.0
    found = model._folded(likes).astype(float)
    for x, row in zip(found, likes.toarray(), strict=True):
        if not row.any():
            assert x.tolist() == [0, 0, 0, 1, 0]
            continue
        loss = reference.loss_of_factors(model, row)
        best = loss(np.delete(reference.folded_in(model, row), -2))[0]  # scipy may stop earlier
        assert loss(np.delete(x, -2))[0] <= best * (1 + 1e-5) + 1e-5


def test_a_row_has_the_same_bits_alone_in_a_batch_and_as_other_types(likes):
    model = fitted(likes)
    together = model.scores(np.arange(60), likes, recalculate_user=True)
    for u in (0, 7, 31):
        np.testing.assert_array_equal(model.scores([0], likes[u], recalculate_user=True)[0], together[u])
    shuffled = sp.csr_matrix(likes.toarray()[:, ::-1])[:, ::-1]
    for same in (likes.astype(np.int8), 5 * likes, shuffled):
        np.testing.assert_array_equal(model.scores(np.arange(60), same, recalculate_user=True), together)


def test_users_of_the_fit_keep_the_factors_of_the_fit(likes):
    model = fitted(likes)
    expected = model.user_factors_.astype(float) @ model.item_factors_.T.astype(float)
    full = np.diff(likes.indptr) > 0
    np.testing.assert_allclose(model.scores(np.arange(60), likes)[full], expected[full], atol=1e-5)


def test_another_like_moves_what_is_like_it_up():
    # two groups with items of their own
    R = np.zeros((40, 20), dtype=np.float32)
    rng = np.random.default_rng(0)
    R[:20, :10], R[20:, 10:] = rng.random((20, 10)) < 0.6, rng.random((20, 10)) < 0.6
    model = fitted(sp.csr_matrix(R), factors=2, iterations=60, regularization=0.5)
    scores = model.scores(
        [0, 0], [[1, 1] + [0] * 18, [0] * 10 + [1, 1] + [0] * 8], recalculate_user=True
    )
    assert scores[0, 2:10].min() > scores[0, 12:].max()
    assert scores[1, 12:].min() > scores[1, 2:10].max()


def test_implicit_bounds_the_items_drawn_by_the_number_of_factors(likes):
    # What `_folded` counts on; where this fails, implicit has changed.
    few, many = (fitted(likes, neg_prop=drawn) for drawn in (5, 30))
    np.testing.assert_array_equal(few.user_factors_, many.user_factors_)


@pytest.mark.parametrize("ridge", [0.2, 2.0])
def test_shares_of_a_blend_are_what_the_optimum_says(likes, ridge):
    model = fitted(likes, regularization=ridge)
    Y = model.item_factors_.astype(float)
    for u in (0, 5, 31):
        row, items = likes[u], np.arange(25)
        x = reference.folded_in(model, likes.toarray()[u])
        share = model.popularity_ / model.popularity_.sum()
        negatives = min(row.nnz * model.neg_prop, 5)
        free = np.delete(Y, -2, axis=1)
        against = (negatives * share * expit(Y @ x)) @ free / ridge
        for item, score, shares in zip(items, *model._explain(Rows(row), [items])[0], strict=True):
            by_hand = expit(-(Y[row.indices] @ x)) * (free[row.indices] @ free[item]) / ridge
            np.testing.assert_allclose(shares, by_hand, atol=1e-4)
            # shares, the items' bias, and what speaks against all: the whole score
            np.testing.assert_allclose(
                score, shares.sum() + Y[item, -2] - against @ free[item], atol=1e-4
            )


def test_a_blend_folds_everyone_in_and_its_parts_add_up(likes):
    blend = make_ranker("blend", models="lmf:factors=3;iterations=5+ease").fit(
        likes, show_progress=False
    )
    users = np.arange(60)
    np.testing.assert_array_equal(
        blend.scores(users, likes), blend.scores(users, likes, recalculate_user=True)
    )
    for u in (0, 31):
        total = blend.part_scores(u, likes[u]).sum(axis=0)
        np.testing.assert_allclose(total, blend.scores([u], likes[u])[0], atol=1e-5)
        why = blend.explain(u, likes[u], 3, N=30)
        assert len(why.contributions) == likes[u].nnz
        assert why.score == pytest.approx(why.bias + sum(v for _, v in why.contributions), abs=1e-5)
