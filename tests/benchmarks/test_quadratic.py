"""The convex baseline of the sparse FM paper's figures."""

import numpy as np
import pytest

from benchmarks.lab.planted import planted_interactions, recovery
from benchmarks.lab.quadratic import SparseLowRankQuadratic


def test_the_quadratic_model_finds_the_pairs_and_its_objective_falls():
    data = planted_interactions(500, 1, 4, 4, seed=2)
    model = SparseLowRankQuadratic(trace=0.01, gamma=0.1, max_iter=2000).fit(data.X, data.y)
    assert model.score(data.X, data.y) > 0.95
    assert recovery(data.W, model.W_).f1 > 0.8
    objective = model.objectives_
    assert objective[-1] < 0.2 * 0.5 * np.var(data.y) and objective[-1] <= min(objective) + 1e-9


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_quadratic_model_of_one_pair_is_in_closed_form(scale):
    """w = soft(mean z·y, 2·trace + γ)/mean z² for z = x_0·x_1: W has the eigenvalues w and −w."""
    rng = np.random.default_rng(4)
    X = scale * rng.normal(size=(60, 2))
    z = X[:, 0] * X[:, 1]
    y = 3.0 * z / scale**2 + rng.normal(size=60)
    for trace, gamma in ((0.3, 0.2), (0.0, 0.5), (0.4, 0.0), (50.0, 50.0)):
        model = SparseLowRankQuadratic(
            trace=trace * scale**2, gamma=gamma * scale**2, max_iter=3000, tol=1e-10, fit_intercept=False
        ).fit(X, y)
        slope = np.mean(z * y)
        w = np.sign(slope) * max(abs(slope) - (2 * trace + gamma) * scale**2, 0.0) / np.mean(z * z)
        assert model.W_[0, 1] == pytest.approx(w, rel=1e-6, abs=1e-9 / scale**2)


def test_the_quadratic_model_ends_at_the_optimum_of_its_convex_problem():
    data = planted_interactions(150, 2, 3, 3, seed=1)
    model = SparseLowRankQuadratic(trace=0.1, gamma=0.1, max_iter=4000, tol=1e-9).fit(data.X, data.y)
    d, rng = data.X.shape[1], np.random.default_rng(0)

    def objective(W):
        values = 0.5 * (np.einsum("ni,ij,nj->n", data.X, W, data.X) - (data.X**2) @ np.diag(W))
        residual = data.y - values - np.mean(data.y - values)
        return (
            0.5 * np.mean(residual**2)
            + 0.1 * np.linalg.norm(W, "nuc")
            + 0.1 * np.abs(W[np.triu_indices(d, 1)]).sum()
        )

    best = objective(model.W_)
    assert best == pytest.approx(model.objectives_[-1], rel=1e-12)
    for size in (1e-4, 1e-2, 0.3):  # the problem is convex: no better point near is no better point
        for _ in range(60):
            E = size * rng.normal(size=(d, d)) * (rng.random((d, d)) < rng.choice([0.05, 0.3, 1.0]))
            E = E + E.T
            for W in (
                model.W_ + E,
                model.W_ + E * (model.W_ != 0),
                model.W_ * (1.0 + size * rng.normal()),
            ):
                assert objective(W) >= best - 1e-9 * best


@pytest.mark.slow
def test_the_quadratic_model_recovers_the_planted_groups():
    """As in Figure 3 of Atarashi et al. 2021: a step that is far too short had not got there."""
    data = planted_interactions(500, 8, 10, 20, seed=3)
    model = SparseLowRankQuadratic(trace=0.3, gamma=0.3, max_iter=250, fit_intercept=False).fit(
        data.X, data.y
    )
    assert recovery(data.W, model.W_).f1 > 0.99


def test_the_quadratic_models_objective_is_that_of_its_weights():
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(40, 7)), rng.normal(size=40)
    model = SparseLowRankQuadratic(trace=0.05, gamma=0.05, max_iter=7, tol=0.0).fit(X, y)
    W = model.W_
    value = (
        0.5 * np.mean((model.predict(X) - y) ** 2)
        + 0.05 * np.linalg.norm(W, "nuc")
        + 0.05 * np.abs(W[np.triu_indices(7, 1)]).sum()
    )
    assert model.objectives_[-1] == pytest.approx(value, rel=1e-10)
