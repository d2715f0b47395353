"""`fuzzy-komd`: the programs of CF-KOMD on the fuzzy kernel of the items, by enumeration."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

from recsys import InputError, load_ranker, make_ranker
from tests.reference.rankers import cf_komd


def drawn(seed, users=7, items=6):
    rng = np.random.default_rng(seed)
    R = rng.integers(0, 5, (users, items)).astype(np.float32)
    R[0] = 0  # who has nothing
    R[:, 1] = 0  # what nobody has
    return R


def enumerated(R, connective, degree):
    """The normalised kernel of the items: how true each set of users is, of both items."""
    truth = (R / np.maximum(R.max(axis=1, keepdims=True), 1e-30)).T
    sets = list(combinations(range(truth.shape[1]), degree))
    if connective == "and":
        values = np.array([[np.prod(row[list(one)]) for one in sets] for row in truth])
    else:
        values = np.array([[1.0 - np.prod(1.0 - row[list(one)]) for one in sets] for row in truth])
    K = values @ values.T
    norms = np.sqrt(np.diag(K))
    scale = np.outer(norms, norms)
    K = np.divide(K, scale, out=np.zeros_like(K), where=scale > 0)
    np.fill_diagonal(K, 1.0)
    return K


@pytest.mark.parametrize("connective", ["and", "or"])
@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_scores_are_those_of_the_programs_on_the_enumerated_kernel(connective, degree, seed):
    R = drawn(seed)
    model = make_ranker("fuzzy-komd", connective=connective, degree=degree, regularization=0.5)
    model.fit(sp.csr_matrix(R), show_progress=False)
    K = enumerated(R, connective, degree)
    assert np.allclose(model.gram_, K)
    expected = cf_komd(K, (R > 0) * 1.0, 0.5)
    found = model.scores(np.arange(len(R)), sp.csr_matrix(R))
    some = R.any(axis=1)
    assert np.allclose(found[some], expected[some], atol=1e-4)


@pytest.mark.parametrize(("connective", "kernel"), [("and", "mc"), ("or", "md")])
def test_equal_weights_are_the_boolean_kernel(connective, kernel):
    R = sp.csr_matrix((drawn(4) > 1).astype(np.float32))
    fuzzy = make_ranker("fuzzy-komd", connective=connective).fit(3 * R, show_progress=False)
    plain = make_ranker("cf-komd", kernel=kernel, degree=2, regularization=0.01).fit(
        R, show_progress=False
    )
    ours, theirs = (model.scores(np.arange(7), R) for model in (fuzzy, plain))
    some = np.diff(R.indptr) > 0
    ours, theirs = (one[some] - one[some].mean(axis=1, keepdims=True) for one in (ours, theirs))
    assert np.allclose(ours, theirs, atol=1e-4)


def test_the_unit_of_the_weights_does_not_matter():
    R = drawn(2).astype(np.float64)
    R[-1, 0] = 3  # the last row has interactions
    plain, small, large = (
        make_ranker("fuzzy-komd").fit(sp.csr_matrix(unit * R), show_progress=False).gram_
        for unit in (1.0, 1 / 64, 64.0)
    )
    assert (small == plain).all() and (large == plain).all()


def test_weights_count_and_a_file_keeps_them(tmp_path):
    R = drawn(1)
    model = make_ranker("fuzzy-komd").fit(sp.csr_matrix(R), show_progress=False)
    alike = make_ranker("fuzzy-komd").fit(sp.csr_matrix(R > 0, dtype=np.float32), show_progress=False)
    assert not np.allclose(model.gram_, alike.gram_)
    model.save(tmp_path / "m")
    again = load_ranker(tmp_path / "m")
    assert (again.gram_ == model.gram_).all()
    assert (again.scores([2], R[[2]]) == model.scores([2], R[[2]])).all()


@pytest.mark.parametrize(
    "wrong", [{"connective": "xor"}, {"degree": 0}, {"q": "median"}, {"unrated": "no"}]
)
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        make_ranker("fuzzy-komd", **wrong).fit(np.eye(3), show_progress=False)
