"""Every ranker, kernel, metric and protocol against its slow twin; one without fails here by name."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError, list_rankers, make_ranker
from recsys.data import PROTOCOLS, Fold, find_protocol, split
from recsys.evaluation import measuring
from recsys.evaluation.metrics import METRICS, parse_metric
from recsys.kernels import list_kernels, make_kernel
from tests.contract.test_rankers import FAST
from tests.reference import kernels, metrics, rankers, registry, splits
from tests.strategies import SMALL_KERNELS, interactions

assert kernels and metrics and rankers and splits  # they register what they hold


@pytest.mark.thorough
@pytest.mark.parametrize("name", list_rankers())
def test_rankers(name, liked):
    R = liked[:, :12]
    twin = registry.RANKERS.get(name)
    precise = {"iterations": 3000, "tol": 1e-7} if name == "slim" else {}
    ranker = make_ranker(name, **FAST.get(name, {}), **precise).fit(R, show_progress=False)
    expected, found = twin(ranker, (R.toarray() > 0) * 1.0), ranker.scores(np.arange(R.shape[0]), R)
    full = np.diff(R.indptr) > 0
    if hasattr(ranker, "offsets_"):  # a centred kernel takes one number from all of a user's scores
        found = found - found.mean(axis=1, keepdims=True)
        expected = expected - expected.mean(axis=1, keepdims=True)
    scale = np.abs(expected[full]).max()
    np.testing.assert_allclose(found[full], expected[full], rtol=1e-4, atol=2e-4 * scale)


@pytest.mark.parametrize("name", list_kernels())
def test_kernels(name):
    X = (np.random.default_rng(0).random((8, 5)) < 0.5).astype(float)
    X[0], X[1] = 0, 1
    kernel = make_kernel(name, **SMALL_KERNELS.get(name, {}))
    params = dataclasses.asdict(kernel)
    if "arity" in params:
        params = {"arity": 5}
    expected = registry.KERNELS.get(name)(X, **params)
    np.testing.assert_allclose(kernel(X), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel(X, normalize=True), kernels.normalised(expected), atol=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("name", METRICS.names())
def test_metrics(name, monkeypatch):
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 4, (20, 7)).astype(np.float32)
    part = rng.integers(0, 3, (20, 7))
    train, test = (part == 0) * 1.0, (part == 1) * 1.0
    cuts = (1, 3, 10) if METRICS.get(name).cutoff else (0,)
    asked = [parse_metric(f"{name}@{k}" if k else name) for k in cuts]

    class Fitted:
        def fit(self, likes):
            pass

        def scores(self, users, rows):
            return scores[users]

    fold = Fold(*(sp.csr_matrix(part, dtype=np.float32) for part in (train, test)), np.arange(20), 0)
    monkeypatch.setattr(measuring, "BLOCK_BYTES", 4 * 7 * 9)  # nine users a block
    measured = measuring.measure(Fitted(), fold, asked).values
    for k, (_, _, called) in zip(cuts, asked, strict=True):
        expected = np.broadcast_to(registry.METRICS.get(name)(scores, train, test, k), 20)
        np.testing.assert_allclose(measured[called], expected, rtol=1e-12, atol=1e-14)


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(interactions(), st.integers(0, 4), st.integers(1, 9))
@pytest.mark.parametrize("name", sorted({*PROTOCOLS.names(), *registry.PROTOCOLS.names()}))
def test_protocols(name, data, seed, folds):
    protocol, twin = find_protocol(name), registry.PROTOCOLS.get(name)
    folds = min(max(folds, 2) if protocol.grouped else folds, protocol.most_folds(data))
    without = name == "published" and data.held_out is None
    if (
        protocol.times == "needed"
        and data.time is None
        or protocol.grouped
        and data.n_users < 2
        or without
    ):
        with pytest.raises(InputError, match="needs times|no test half|folds must be"):
            split(data, name, folds=folds, seed=seed)
        return
    times = data.time if data.time is not None else [None] * len(data.users)
    users, items = (sorted(ids.tolist()) for ids in (data.user_ids, data.item_ids))  # draws go by ids
    rows = [
        (users.index(u), items.index(i), time)
        for u, i, time in zip(data.user_ids[data.users], data.item_ids[data.items], times, strict=True)
    ]
    known = {"held_out": data.held_out} if name == "published" else {}
    expected = list(twin(rows, data.n_users, folds, np.random.default_rng(seed), **known))
    if not expected:
        with pytest.raises(InputError, match="no interactions before the first window"):
            split(data, name, folds=folds, seed=seed)
        return
    found = list(split(data, name, folds=folds, seed=seed))
    assert len(found) == len(expected)
    for fold, (train, test, asked, train_only, cold) in zip(found, expected, strict=True):
        for part, pairs in ((fold.train, train), (fold.test, test)):
            u, i = part.nonzero()
            theirs = {(users[u], items[i]) for u, i in pairs}
            assert set(zip(data.user_ids[u], data.item_ids[i], strict=True)) == theirs
        assert sorted(data.user_ids[fold.users]) == [users[u] for u in asked]
        assert (fold.train_only, fold.cold) == (train_only, cold)
        assert fold.train.dtype == fold.test.dtype == np.float32
