"""What comes next: SLIST against every cut written out, its decays, its two forms, and bad input."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import SLIST, InputError, load_ranker, make_ranker
from recsys.rankers.sequences import Decay, parse_decays, sums_of_exponentials
from tests.reference import sequence
from tests.strategies import liked_matrices

SMALL = settings(max_examples=25, deadline=None)
RIDGES = (
    {},
    {"decay": "power1", "inference_decay": "power0.5", "target_decay": "power0.5"},
    {"decay": "exp1+power0.7+none", "target_decay": "exp2", "votes": 1.0, "regularization": 0.1},
)
COSINES = (
    {"form": "cosine"},
    {"form": "cosine", "backward": 0.5, "alpha": 0.2, "beta": 0.9, "locality": 1.5, "decay": "power1"},
    {"form": "cosine", "inference_decay": "power1+none", "votes": 1.0},
)


@st.composite
def histories(draw, kinds=(1, 3, 50)):
    """Likes, and times with many ties or few, some unknown."""
    R = draw(liked_matrices())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    T = R.copy().astype(np.float64)
    T.data = rng.integers(0, draw(st.sampled_from(kinds)) + 1, R.nnz).astype(np.float64)
    return R, T


@pytest.mark.thorough
@SMALL
@given(histories())
@pytest.mark.parametrize("params", [*RIDGES, *COSINES])
def test_equals_every_cut_written_out(params, drawn):
    R, T = drawn
    ranker = SLIST(**params).fit(R, show_progress=False, times=T)
    when = None if (T.data == T.data[0]).all() else T.toarray()
    expected = sequence.scores(ranker, R, when)
    some = np.diff(R.indptr) > 0
    scores = ranker.scores(np.arange(R.shape[0]), R)
    np.testing.assert_allclose(scores[some], expected[some], rtol=1e-4, atol=1e-5)
    again = ranker.scores(np.arange(R.shape[0]), R, recalculate_user=True, times=T)
    np.testing.assert_allclose(again, scores, rtol=1e-6)


@pytest.mark.thorough
@SMALL
@given(histories())
@pytest.mark.parametrize("params", [{}, RIDGES[1], COSINES[1]])
def test_shares_sum_to_the_score(params, drawn):
    R, T = drawn
    ranker = SLIST(**params).fit(R, show_progress=False, times=T)
    for user in np.flatnonzero(np.diff(R.indptr)):
        for item in range(R.shape[1]):
            told = ranker.explain(int(user), R[[user]], item, N=100)
            assert told.bias == pytest.approx(0, abs=1e-9)
            shares = sum(share for _, share in told.contributions)
            assert shares == pytest.approx(ranker.scores(int(user), R[[user]])[0, item], abs=1e-5)


@pytest.mark.thorough
@SMALL
@given(liked_matrices(), st.integers(1, 9))
@pytest.mark.parametrize("params", [{}, {"form": "cosine"}])
def test_times_that_are_all_alike_are_no_times(params, R, value):
    users = np.arange(R.shape[0])
    T = R.astype(np.float64) * value
    without = SLIST(**params).fit(R, show_progress=False)
    with_them = SLIST(**params).fit(R, show_progress=False, times=T)
    np.testing.assert_array_equal(without.scores(users, R), with_them.scores(users, R))
    np.testing.assert_array_equal(without.scores(users, R, times=T), with_them.scores(users, R))
    assert with_them.times_ is None


def test_the_order_of_a_posted_history_counts():
    rng = np.random.default_rng(0)
    R = sp.csr_matrix(rng.random((60, 12)) < 0.5, dtype=np.float32)
    T = R.astype(np.float64)
    T.data = rng.random(R.nnz) + 1
    ranker = SLIST().fit(R, show_progress=False, times=T)
    row = sp.csr_matrix([[1.0] * 4 + [0.0] * 8])

    def scores(times):
        return ranker.scores(0, row, recalculate_user=True, times=times)[0]

    forward, back = [[1, 2, 3, 4] + [0] * 8], [[4, 3, 2, 1] + [0] * 8]
    assert (scores(forward) != scores(back)).any()
    np.testing.assert_array_equal(scores(None), scores([[7, 7, 7, 7] + [0] * 8]))
    np.testing.assert_array_equal(scores(forward), scores([[10, 20, 30, 400] + [0] * 8]))


def test_it_learns_what_follows(tmp_path):
    """Users go through a ring of items, from anywhere: the next is the one after the last."""
    items, users = 20, 200
    rng = np.random.default_rng(1)
    T = np.zeros((users, items))
    for u, start in enumerate(rng.integers(items, size=users)):
        walk = (start + np.arange(6)) % items
        T[u, walk] = np.arange(1, 7)
    R = (T > 0).astype(np.float32)
    for form in ("ridge", "cosine"):
        ranker = SLIST(form=form).fit(R, show_progress=False, times=T)
        for walk in ([3, 4, 5, 6], [3, 12], [12, 3]):  # the last two the same items in either order
            times = np.zeros((1, items))
            times[0, walk] = np.arange(1, len(walk) + 1)
            found = ranker.recommend(0, times > 0, N=1, recalculate_user=True, times=times)
            assert found.ids[0] == walk[-1] + 1
        ranker.save(tmp_path / form)
        again = load_ranker(tmp_path / form)
        np.testing.assert_array_equal(again.scores([0, 5], R[[0, 5]]), ranker.scores([0, 5], R[[0, 5]]))
        assert (again.times_ != ranker.times_).nnz == 0


def test_auto_form_takes_the_cosine_for_large_catalogues(monkeypatch):
    R = sp.csr_matrix(np.eye(30, dtype=np.float32) + np.eye(30, k=1, dtype=np.float32))
    assert not sp.issparse(SLIST().fit(R, show_progress=False).weights_)
    monkeypatch.setattr("recsys.rankers.sequences.DENSE_ITEMS", 29)
    assert sp.issparse(SLIST().fit(R, show_progress=False).weights_)
    monkeypatch.setattr("recsys.utils.resources.free_memory", lambda: 1000)
    with pytest.raises(InputError, match="slist on 30 items: needs .* and 1.0 KB are free"):
        SLIST(form="ridge").fit(R, show_progress=False)


@pytest.mark.parametrize("law", ["power0.25", "power0.5", "power1", "exp0.3", "exp7", "none"])
@pytest.mark.parametrize("longest", [1, 10, 2400])
def test_laws_as_sums_of_exponentials(law, longest):
    (one,) = parse_decays("decay", law)
    rates, (coefficients,) = sums_of_exponentials([one], longest)
    gaps = np.arange(longest + 1.0)
    found = np.exp(-gaps[:, None] / rates) @ coefficients
    np.testing.assert_allclose(found, one(gaps), rtol=0.02 if one.kind == "power" else 1e-12)
    assert (coefficients >= 0).all()


@pytest.mark.parametrize("law, off", [("power0.1", 1e-3), ("power1.5", 1e-3), ("power3", 0.023)])
def test_steep_laws_are_off_by_what_is_said(law, off):
    (one,) = parse_decays("decay", law)
    rates, (coefficients,) = sums_of_exponentials([one], 500)
    gaps = np.arange(501.0)
    found = np.exp(-gaps[:, None] / rates) @ coefficients
    np.testing.assert_allclose(found, one(gaps), rtol=0, atol=off)


def test_a_law_is_what_it_says():
    np.testing.assert_allclose(Decay("power", 2.0)([0, 1, 3]), [1, 1 / 4, 1 / 16])
    np.testing.assert_allclose(Decay("exp", 2.0)([0, 2]), [1, np.exp(-1)])


@pytest.mark.parametrize(
    "params, message",
    [
        ({"decay": "exp"}, "decay must be expX .* not 'exp'"),
        ({"decay": "exp1+linear2"}, "decay must be expX"),
        ({"decay": "power-1"}, "decay must be expX"),
        ({"decay": "exp1_0"}, "decay must be expX"),
        ({"decay": "none3"}, "decay must be expX"),
        ({"decay": "power3.1"}, r"powerX \(\(gap \+ 1\)\^−X, X up to 3\) .* not 'power3.1'"),
        ({"decay": "expnan"}, "decay must be expX"),
        ({"decay": "expinf"}, "decay must be expX"),
        ({"backward": 1.1}, "backward must be a finite number of at least 0 and at most 1"),
        ({"decay": 3}, "decay must be expX"),
        ({"inference_decay": "power1"}, r"one law for each law of decay='exp1\+exp20', not 'power1'"),
        ({"target_decay": "exp1+exp2"}, "target_decay must be one law"),
        ({"form": "lstm"}, "form must be one of auto, ridge, cosine"),
        ({"regularization": 0.0}, "regularization must be a finite number above 0"),
    ],
)
def test_parameters_are_checked(params, message):
    with pytest.raises(InputError, match=message):
        SLIST(**params).fit([[1, 1]])


@pytest.mark.parametrize(
    "times, message",
    [
        ([[1.0, 2.0]], r"times are of shape \(1, 2\) for interactions of shape \(2, 3\)"),
        (np.full((2, 3), np.nan), "times contain NaN or infinity"),
        (np.full((2, 3), -5.0), "times contain a negative value"),
        ([["a", "b", "c"]] * 2, "times must be a matrix of numbers"),
    ],
)
def test_bad_times_are_refused_in_a_line(times, message):
    R = [[1, 1, 0], [0, 1, 1]]
    with pytest.raises(InputError, match=message):
        SLIST().fit(R, times=times)
    for name in ("slist", "als"):
        ranker = make_ranker(name).fit(R, show_progress=False)
        with pytest.raises(InputError, match=message):
            ranker.recommend([0, 1], R, times=times)


def test_an_item_named_twice_has_no_time():
    twice = sp.csr_matrix(([1.0, 2.0], [1, 1], [0, 2]), (1, 3))
    ranker = SLIST().fit([[1, 1, 0], [0, 1, 1]], show_progress=False)
    with pytest.raises(InputError, match="times repeat an item"):
        ranker.recommend(0, [[0, 1, 0]], times=twice)
