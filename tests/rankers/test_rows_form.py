"""Kernel rankers that keep no pair of items: scores, programs and lists are those of kept pairs."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError, load_ranker, make_ranker
from recsys.kernels.gram.counts import dense_counts
from recsys.kernels.gram.rows import item_rows
from recsys.optim import simplex_qp
from recsys.rankers import _gram_view, _margin, _row_view, cf_omd
from recsys.rankers._margin import certified
from recsys.rankers._row_view import RowView
from tests.reference import rankers  # noqa: F401 - registers
from tests.reference.registry import RANKERS as REFERENCES
from tests.strategies import liked_matrices

COUNTS = [
    {"kernel": "hp", "degree": 2}, {"kernel": "tanimoto"}, {"kernel": "mc", "degree": 2},
    {"kernel": "md", "degree": 2}, {"kernel": "md", "degree": 12}, {"kernel": "negation"},
]  # fmt: skip
LINEAR = [{}, {"q": "mean"}, {"votes": 1.0}]
pytestmark = pytest.mark.slow
TOLERANCE = 1e-6  # as `recsys.rankers._row_view` documents: that of the programs


def fit(R, form, **params):
    """Return a fitted cf-komd of one of the forms "dense", "pairs" and "rows"."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("_margin", "cf_komd"):
            patch.setattr(f"recsys.rankers.{module}.prefers_dense", lambda *given: form == "dense")
            patch.setattr(f"recsys.rankers.{module}.prefers_rows", lambda *given: form == "rows")
        return make_ranker("cf-komd", **params).fit(R, show_progress=False)


def data(seed=0, users=90, items=45):
    """Return likes with an empty row, a full one, and items that nobody and everybody has."""
    rng = np.random.default_rng(seed)
    share = 0.6 * rng.random(items) ** rng.integers(1, 5)
    dense = rng.random((users, items)) < share
    dense[:, 3], dense[:, 4] = False, True
    dense[7], dense[8] = False, True
    dense[8, 3] = False
    return sp.csr_matrix(dense, dtype=np.float32)


@pytest.fixture(autouse=True, params=[(4096, 64_000_000), (5, 45 * 8 * 7)], ids=["wide", "narrow"])
def sizes(request, monkeypatch):
    """Let most pairs lie beyond the head, and users come in many blocks, as on large data."""
    head, block = request.param
    monkeypatch.setattr(_row_view, "head_size", lambda likes, items: min(head, items))
    monkeypatch.setattr(_row_view, "BLOCK_BYTES", block)


@pytest.mark.parametrize("params", COUNTS, ids=str)
def test_kernels_of_counts_have_the_bits_of_kept_pairs(params):
    R = data()
    kept, rows = fit(R, "pairs", **params), fit(R, "rows", **params)
    users = np.arange(R.shape[0])
    assert isinstance(rows._gram, RowView)
    np.testing.assert_array_equal(rows.row_sums_, kept.row_sums_)
    np.testing.assert_array_equal(rows.weights(R)[0].data, kept.weights(R)[0].data)
    np.testing.assert_array_equal(rows.scores(users, R), kept.scores(users, R))
    found, expected = rows.recommend(users, R), kept.recommend(users, R)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.scores, expected.scores)
    np.testing.assert_array_equal(rows._gram.rows(np.arange(9)), kept._gram.rows(np.arange(9)))
    for item in (0, 3, 4):
        np.testing.assert_array_equal(
            rows._gram.entries(np.arange(9), item), kept._gram.entries(np.arange(9), item)
        )


@pytest.mark.parametrize("params", LINEAR, ids=str)
def test_the_linear_kernel_agrees_to_the_documented_tolerance(params):
    R = data(1)
    kept, rows = fit(R, "pairs", **params), fit(R, "rows", **params)
    users = np.arange(R.shape[0])
    expected, found = kept.scores(users, R), rows.scores(users, R)
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(rows.row_sums_, kept.row_sums_, rtol=TOLERANCE)
    alone = np.vstack([rows.scores(user, R[user]) for user in users])
    np.testing.assert_array_equal(alone, found)  # whoever is asked for beside a user


@settings(max_examples=30, deadline=None)
@given(liked_matrices(max_users=9, max_items=9, min_users=2), st.sampled_from(COUNTS[:4] + LINEAR[:2]))
def test_scores_are_those_of_the_reference(R, params):
    model = fit(R, "rows", regularization=0.5, **params)
    users = np.arange(R.shape[0])
    liked = np.diff(R.indptr) > 0
    expected = REFERENCES.get("cf-komd")(model, R.toarray())
    found = model.scores(users, R)
    if model._offsets() is not None:  # scores of a centred kernel are those of K less a number a user
        found, expected = (x - x.mean(axis=1, keepdims=True) for x in (found, expected))
    np.testing.assert_allclose(found[liked], expected[liked], atol=2e-5)


def test_users_of_no_fit_with_unsorted_rows_and_cold_items():
    R = data(2)
    for params in ({}, {"kernel": "mc", "degree": 2}):
        kept, rows = fit(R, "pairs", **params), fit(R, "rows", **params)
        new = sp.csr_matrix(
            (np.ones(6, np.float32), [30, 3, 11, 4, 3, 40], [0, 4, 5, 5, 6]), (4, R.shape[1])
        )
        expected = kept.scores(np.arange(4), new, recalculate_user=True)
        found = rows.scores(np.arange(4), new, recalculate_user=True)
        np.testing.assert_allclose(found, expected, atol=TOLERANCE)


def test_one_item():
    R = sp.csr_matrix(np.ones((3, 1), np.float32))
    kept, rows = fit(R, "dense"), fit(R, "rows")
    np.testing.assert_allclose(
        rows.scores(np.arange(3), R), kept.scores(np.arange(3), R), atol=TOLERANCE
    )


def test_explanations_add_up_to_scores():
    R = data(3)
    model = fit(R, "rows", kernel="tanimoto")
    explained = model.explain(5, R[5], 2)
    assert explained.score == pytest.approx(float(model.scores(5, R[5])[0, 2]), abs=1e-5)


@pytest.mark.parametrize("params", [{}, {"kernel": "md", "degree": 2}], ids=str)
def test_updates_are_refits(params):
    R = data(4)
    first = fit(R[:60], "rows", **params)
    first.partial_fit(R[60:])
    first.forget(12, R[12])
    after = R.tolil()
    after[12] = 0
    after = sp.csr_matrix(after, dtype=np.float32)
    again = fit(after, "rows", **params)
    users = np.arange(R.shape[0])
    np.testing.assert_array_equal(first.scores(users, after), again.scores(users, after))
    np.testing.assert_array_equal(first.rows_.indices, again.rows_.indices)
    first.add_items(2)
    assert first.scores(0, sp.csr_matrix((R[0].data, R[0].indices, R[0].indptr), (1, 47))).shape == (
        1,
        47,
    )


def test_a_row_that_is_not_in_is_not_taken_out():
    counts = item_rows(data(5))
    with pytest.raises(InputError, match="taken out"):
        counts.changed(sp.csr_matrix(np.eye(1, 45, 3, dtype=np.float32)), counts.rows[:0], 90)


def test_counts_are_those_of_pairs():
    R = data(6)
    np.testing.assert_array_equal(item_rows(R).toarray(), dense_counts(R).toarray())


def test_a_file_keeps_the_rows_and_is_checked(tmp_path):
    R = data(7)
    model = fit(R, "rows", kernel="mc", degree=2)
    model.save(tmp_path / "model.npz")
    again = load_ranker(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.scores(8, R[8]), model.scores(8, R[8]))
    model.sizes_ = model.sizes_[::-1].copy()
    model.save(tmp_path / "broken.npz")
    with pytest.raises(InputError, match="sizes_"):
        load_ranker(tmp_path / "broken.npz")


def test_pairs_are_kept_where_they_fit_what_is_asked_for(monkeypatch):
    R = data(8)
    assert not _gram_view.prefers_rows(R, None)
    assert _gram_view.prefers_rows(R, 2000)
    monkeypatch.setattr(_gram_view, "MODEST", 0)
    assert _gram_view.memory_limit(R, None) == 4 * 8 * (R.nnz + R.shape[0])
    monkeypatch.setattr(_gram_view, "free_memory", lambda: 4000)
    assert _gram_view.memory_limit(R, None) == 1000
    assert _gram_view.memory_limit(R, 12) == 12


@pytest.mark.parametrize("q", ["exact", "mean"])
@pytest.mark.parametrize("form", ["dense", "pairs", "rows"])
def test_programs_that_no_face_solved_are_solved_by_themselves(form, q, monkeypatch):
    check_solved_again(fit(data(), form, kernel="mc", regularization=0.5, recency=0.7, q=q), monkeypatch)


def test_cf_omd_solves_by_itself_what_no_face_solved(monkeypatch):
    check_solved_again(make_ranker("cf-omd", recency=0.7).fit(data(), show_progress=False), monkeypatch)


def check_solved_again(ranker, monkeypatch):
    R, times = data(), data()
    times.data = np.random.default_rng(1).integers(1, 9, times.nnz).astype(np.float64)
    expected = ranker.weights(R, times)[0]
    programs = []

    def unsolved(weights, residuals, program):
        programs.append(program)
        again = np.arange(len(residuals))[R.getnnz(1) > 0][::2]
        residuals[again] = 1.0
        for u in again:
            weights[program(u)[0]] = np.nan
        return certified(weights, residuals, program)

    for module in (_margin, cf_omd):
        monkeypatch.setattr(module, "certified", unsolved)
    weights, residuals = ranker.weights(R, times)
    assert programs and residuals.max() <= simplex_qp.TOLERANCE
    np.testing.assert_allclose(
        *(x.toarray() if sp.issparse(x) else x for x in (weights, expected)), atol=2e-5
    )
