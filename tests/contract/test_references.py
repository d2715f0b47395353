"""Every ranker, kernel and metric against its slow twin; one without a twin fails here by name."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from recsys import list_rankers, make_ranker
from recsys.evaluation.metrics import METRICS, ListContext, Measurement, parse_metric
from recsys.kernels import list_kernels, make_kernel
from tests.contract.test_rankers import FAST
from tests.reference import kernels, metrics, rankers, registry
from tests.strategies import SMALL_KERNELS

assert kernels and metrics and rankers  # they register what they hold


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


@pytest.mark.parametrize("name", METRICS.names())
def test_metrics(name):
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 4, (20, 7)).astype(np.float32)
    part = rng.integers(0, 3, (20, 7))
    train, test = (part == 0) * 1.0, (part == 1) * 1.0
    cuts = (1, 3, 10) if METRICS.get(name).cutoff else (0,)
    asked = [parse_metric(f"{name}@{k}" if k else name) for k in cuts]
    measured = Measurement(asked, ListContext(sp.csr_matrix(train)))
    for rows in (slice(0, 9), slice(9, 20)):  # in blocks, as a run does
        measured.add(scores[rows], sp.csr_matrix(train[rows]), sp.csr_matrix(test[rows]))
    for k, (_, _, called) in zip(cuts, asked, strict=True):
        expected = np.broadcast_to(registry.METRICS.get(name)(scores, train, test, k), 20)
        found = measured.values()[called]
        # novelty's shares are float32
        np.testing.assert_allclose(found, expected, rtol=1e-6 if name == "novelty" else 1e-12)
