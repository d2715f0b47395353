"""What small inputs are computed by: forms in NumPy that give the bits of the compiled ones."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import _jit
from recsys.kernels import item_gram, make_kernel
from recsys.kernels.item_gram import dense_counts
from recsys.utils import topn

SEEDS = st.integers(0, 2**32 - 1)


@pytest.fixture
def both(monkeypatch):
    """Call something in NumPy, then compiled."""

    def run(function, *args, **kwargs):
        monkeypatch.setattr(_jit.Compiled, "small", lambda self, operations: True)
        plain = function(*args, **kwargs)
        monkeypatch.setattr(_jit.Compiled, "small", lambda self, operations: False)
        return plain, function(*args, **kwargs)

    return run


def drawn(seed, users=9, items=40, share=0.4):
    rng = np.random.default_rng(seed)
    return rng, sp.csr_matrix(
        rng.random((users, items)) < share * rng.random((users, 1)), dtype=np.float32
    )


hypothesis_settings = settings(max_examples=60, deadline=None)


@given(seed=SEEDS, n=st.integers(1, 50), skip=st.booleans(), last=st.booleans())
@hypothesis_settings
def test_lists_with_ties(seed, n, skip, last):
    rng, rows = drawn(seed)
    scores = rng.integers(-3, 4, rows.shape).astype(np.float32) * np.float32(0.1)
    mask = (rng.random(rows.shape[1]) < 0.8).astype(np.uint8)
    found = []
    for fill in (topn._top_rows_in_numpy, lambda *a: topn._top_rows(0, 1, *a)):
        ids, best = np.full((9, n), -1, np.int32), np.full((9, n), topn.LOWEST)
        fill(scores, rows.indptr, rows.indices, skip, last, mask, ids, best)
        found.append((ids, best))
    assert np.array_equal(found[0][0], found[1][0]) and np.array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize("seed", range(5))
def test_counts_and_linear_gram(both, seed):
    _, rows = drawn(seed)
    plain, compiled = both(dense_counts, rows)
    assert np.array_equal(plain, compiled)
    plain, compiled = both(item_gram, rows, make_kernel("linear"))
    assert np.array_equal(plain, compiled)


def test_compiled_code_is_taken_once_it_pays(monkeypatch):
    monkeypatch.setitem(_jit.AT_ONCE, "on", False)
    function = _jit.jit(lambda x: x)
    assert function.small(_jit.PAYS_FROM // 2)
    assert not function.small(_jit.PAYS_FROM // 2)
    other = _jit.jit(lambda x: x)
    other(1)
    assert not other.small(1)
    third = _jit.jit(lambda x: x)
    assert third.small(1)
    with _jit.compiled_at_once():
        assert not third.small(1)


LIST = """
import sys, recsys
data = recsys.load_dataset("sample")
recsys.Recommender({model!r}).fit(data).recommend("u0001", n=3)
print(*sorted(sys.modules))
"""
NEVER = {
    "sklearn",
    "scipy.stats",
    "matplotlib",
    "altair",
    "streamlit",
    "fastapi",
    "optuna",
    "torch",
    "dask",
    "ray",
    "recsys.fm",
    "recsys.links",
    "recsys.kernel_machines",
    "recsys.random_features",
    "recsys.evaluation",
    "recsys.tuning",
    "recsys.service",
}


@pytest.mark.slow
@pytest.mark.parametrize("model", ["ease", "popularity"])
def test_a_list_imports_only_what_it_uses(model):
    out = subprocess.run(
        [sys.executable, "-c", LIST.format(model=model)], capture_output=True, text=True, check=True
    )
    loaded = set(out.stdout.split())
    assert not loaded & (NEVER | {"numba"})


@pytest.mark.slow
@pytest.mark.parametrize("model", ["cf-komd", "slist", "msdw"])
def test_a_list_of_a_compiled_model_imports_only_what_it_uses(model):
    out = subprocess.run(
        [sys.executable, "-c", LIST.format(model=model)], capture_output=True, text=True, check=True
    )
    assert not set(out.stdout.split()) & NEVER
