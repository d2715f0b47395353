"""Budgets of memory: what SLIM and EASE refuse, and what they keep, is within them."""

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks.lab.long_tail import long_tail
from recsys import EASE, SLIM, CapabilityError, InputError, make_ranker


def test_slim_without_top_k_refuses_what_is_beyond_its_budget():
    R = long_tail(100, 60, 1500, seed=1)
    enough = 13 * 60 * 60
    free, given = (SLIM(memory=memory).fit(R, show_progress=False) for memory in (None, enough))
    np.testing.assert_array_equal(given.weights_, free.weights_)
    told = (
        r"^SLIM on 60 items needs 46\.8 KB, the budget is 46\.8 KB: pass top_k=200 or keep fewer items$"
    )
    with pytest.raises(InputError, match=told):
        SLIM(memory=enough - 1).fit(R, show_progress=False)


def test_slim_refuses_before_it_counts_pairs():
    R = sp.identity(9_000, format="csr", dtype=np.float32)
    with pytest.raises(InputError, match=r"needs 1\.1 GB, the budget is 10\.0 MB: pass top_k=200"):
        SLIM(memory="10MB").fit(R, show_progress=False)
    near = SLIM(memory="10MB", top_k=200).fit(R, show_progress=False).weights_
    assert sp.issparse(near) and near.nnz == 0


@pytest.mark.parametrize("name", ["ease", "slim"])
def test_sparse_weights_become_an_array_only_within_the_budget(name):
    each = sp.identity(3_000, format="csr", dtype=np.float32)
    two = each + each[:, np.roll(np.arange(3_000), 1)]  # items k and k + 1
    R = sp.vstack([two, two], format="csr")
    kept = make_ranker(name, memory="20MB", top_k=5).fit(R, show_progress=False).weights_
    assert sp.issparse(kept) and kept.data.nbytes + kept.indices.nbytes + kept.indptr.nbytes < 20e6
    dense = make_ranker(name, memory="40MB", top_k=5).fit(R, show_progress=False).weights_
    assert dense.nbytes == 4 * 3_000**2 > 20e6
    assert 3_000 <= kept.nnz == np.count_nonzero(dense) and (kept.toarray() == dense).all()


def test_ease_without_top_k_takes_fewer_neighbours_within_its_budget():
    R = long_tail(100, 60, 1500, seed=1)
    dense = EASE(memory=16 * 60 * 60).fit(R, show_progress=False).weights_
    assert isinstance(dense, np.ndarray) and dense.nbytes == 4 * 60 * 60
    fewer = EASE(memory=16 * 60 * 60 - 1).fit(R, show_progress=False).weights_
    assert (fewer != 0).sum() < (dense != 0).sum()
    with pytest.raises(InputError, match="keep_inverse needs the whole inverse of 60 items"):
        EASE(memory=16 * 60 * 60 - 1, keep_inverse=True).fit(R, show_progress=False)


def test_a_ranker_without_explanations_names_what_has_reasons():
    R = long_tail(30, 20, 200, seed=0)
    for name, params in (("als", {"factors": 2}), ("popularity", {})):
        model = make_ranker(name, **params).fit(R, show_progress=False)
        with pytest.raises(CapabilityError, match=f"{name} has no explain; .*; Recommender.explain has"):
            model.explain(0, R[0], 3)
    with pytest.raises(CapabilityError, match="popularity has no similar-items; it offers: fold-in$"):
        model.similar_items(3)
