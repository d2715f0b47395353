"""What every link predictor does: its input, what it refuses, and a small world to learn."""

import numpy as np
import pytest
import scipy.sparse as sp

from recsys import InputError
from recsys.links import (
    HONFM,
    ConcatDNN,
    FactorizedBilinear,
    LowRankBilinear,
    PairDNN,
    PairFactorizationMachine,
    PairNet,
    PairSVM,
)


def world(seed=0, one=False, n=700):
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(30, 6)), rng.normal(size=(25, 5))
    W = rng.normal(size=(6, 5))
    if one:
        B = A
        W = rng.normal(size=(6, 6))
        W = W + W.T
    pairs = np.column_stack([rng.integers(0, 30, n), rng.integers(0, len(B), n)])
    scores = np.einsum("pi,ij,pj->p", A[pairs[:, 0]], W, B[pairs[:, 1]])
    return A, None if one else B, pairs, scores > 0


def name_of(model):
    return f"{type(model).__name__}-{getattr(model, 'degree', '')}"


# What the features of this world do not say to them, in the direction given or at all
WEAK = (ConcatDNN, HONFM, LowRankBilinear)
SYMMETRIC = (PairSVM, PairNet, FactorizedBilinear, PairDNN)


def check_contract(model, one):
    A, B, pairs, y = world(one=one)
    labels = np.where(y, "link", "none")
    first = model.fit(A, B, pairs[:500], labels[:500]).decision_function(A, B, pairs[500:])
    assert first.shape == (200,) and np.isfinite(first).all()
    assert model.classes_.tolist() == ["link", "none"]
    p = model.predict_proba(A, B, pairs[500:])
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(A, B, pairs[500:]) == "none", first > 0)
    again = model.fit(
        sp.coo_matrix(A), None if B is None else sp.csc_matrix(B), pairs[:500], labels[:500]
    )
    np.testing.assert_allclose(again.decision_function(A, B, pairs[500:]), first, atol=1e-5)
    one_by_one = [model.decision_function(A, B, pairs[k : k + 1])[0] for k in range(500, 505)]
    np.testing.assert_allclose(one_by_one, first[:5], rtol=1e-4, atol=1e-5)
    if not isinstance(model, WEAK) and not (one and isinstance(model, PairFactorizationMachine)):
        assert model.score(A, B, pairs[500:], labels[500:]) > 0.7
    if one and isinstance(model, SYMMETRIC) and not isinstance(model, LowRankBilinear):
        np.testing.assert_allclose(
            model.decision_function(A, None, pairs[500:, ::-1]), first, rtol=1e-5, atol=1e-5
        )


BAD = [
    (lambda A, B, p, y: (A, B, p[:, :1], y), r"pairs must be \(pairs, 2\)"),
    (lambda A, B, p, y: (A, B, p + 100, y), "row of A in pairs"),
    (lambda A, B, p, y: (A, B, p - 100, y), "row of A in pairs"),
    (lambda A, B, p, y: (A, B, p.astype(float), y), "integers"),
    (lambda A, B, p, y: (A, B, p, y[:-1]), "y has shape"),
    (lambda A, B, p, y: (A, B, p, np.ones(len(y))), "two classes"),
    (lambda A, B, p, y: (A * np.nan, B, p, y), "NaN"),
    (lambda A, B, p, y: (A[:0], B, p, y), "empty"),
    (lambda A, B, p, y: ("rows", B, p, y), "A must be an array"),
    (lambda A, B, p, y: (A, B, p[:0], y[:0]), "pairs"),
]


def check_refusal(model, change, message):
    with pytest.raises(InputError, match=message):
        model.fit(*change(*world()))
