"""The three regularized problems of Theorem 3.3 of Atarashi's thesis have one minimum."""

import numpy as np
import pytest

from recsys.links import FactorizedBilinear, PairNet

N, LEFT, RIGHT = 80, 5, 4


def drawn(seed):
    """Pairs of objects, one of each a pair, and labels by a matrix of rank 1."""
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(N, LEFT)), rng.normal(size=(N, RIGHT))
    signal = (A @ rng.normal(size=LEFT)) * (B @ rng.normal(size=RIGHT))
    y = np.where(signal + rng.normal(size=N) > 0, 1.0, -1.0)
    return A, B, np.column_stack([np.arange(N), np.arange(N)]), y


def objective(W, A, B, y, beta):
    scores = np.einsum("ni,ij,nj->n", A, W, B)
    return np.logaddexp(0.0, -y * scores).mean() + beta * np.linalg.norm(W, "nuc")


def least(A, B, y, beta):
    """The minimum over W of (3.15), which is convex, by accelerated proximal gradient steps."""
    X = np.einsum("ni,nj->nij", A, B).reshape(N, -1)
    step = 4.0 * N / np.linalg.norm(X, 2) ** 2
    W = Z = np.zeros((LEFT, RIGHT))
    t = 1.0
    for _ in range(4000):
        slope = (X.T @ (-y / (1.0 + np.exp(y * (X @ Z.ravel()))))).reshape(W.shape) / N
        u, s, v = np.linalg.svd(Z - step * slope, full_matrices=False)
        new = (u * np.maximum(s - step * beta, 0.0)) @ v
        after = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        Z, W, t = new + (t - 1.0) / after * (new - W), new, after
    return W, objective(W, A, B, y, beta)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", [FactorizedBilinear, PairNet])
def test_the_fit_is_the_minimum_of_the_nuclear_norm_problem(kind, seed):
    A, B, pairs, y = drawn(seed)
    beta = 0.05
    W, lowest = least(A, B, y, beta)
    degree = {"degree": 2} if kind is PairNet else {}
    model = kind(
        n_components=RIGHT,
        beta=beta,
        fit_intercept=False,
        max_iter=3000,
        tol=1e-13,
        init_scale=0.5,
        **degree,
    ).fit(A, B, pairs, y)
    (term,) = (term for term in model.terms_ if term.left.shape[1] == RIGHT)
    found = (term.left * term.weights) @ term.right.T
    assert np.linalg.matrix_rank(W, tol=1e-6) < RIGHT  # the norm leaves directions out
    assert lowest - 1e-9 <= objective(found, A, B, y, beta)
    assert model.history_[-1]["objective"] == pytest.approx(lowest, rel=1e-5)
    assert np.allclose(found, W, atol=1e-2)
