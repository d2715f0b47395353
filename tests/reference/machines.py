"""Learned combinations of kernels, slowly: their programs as printed, by general solvers."""

import numpy as np
from scipy.optimize import minimize

from tests.reference import qp


def radius_squared(K):
    """Of the smallest ball: max αᵀdiag(K) − αᵀKα over the simplex."""
    n = len(K)
    a = qp.solve(K, np.diag(K) / 2, np.ones(n), np.zeros(n))
    return a @ np.diag(K) - a @ K @ a


def hull_weights(K, y, ridge=0.0):
    """γ of min γᵀYKYγ + ridge‖γ‖² over two simplices."""
    return qp.solve(K, np.zeros(len(K)), np.where(y == 1, 1.0, -1.0), np.full(len(K), ridge))


def margin_squared(K, y):
    v = np.where(y == 1, 1.0, -1.0) * hull_weights(K, y)
    return v @ K @ v


def easy_weights(grams, y, lam):
    """Aiolli and Donini: γ on the sum of the kernels, then each kernel's share of the margin."""
    gamma = hull_weights((1 - lam) * sum(grams), y, lam)
    v = np.where(y == 1, 1.0, -1.0) * gamma
    parts = np.array([v @ K @ v for K in grams])
    return parts / parts.sum()


def soft_margin_value(grams, y, C, mu):
    """max Σα − ½αᵀY(Σμ_rK_r + (Σμ_rR_r²/C)I)Yα over α ≥ 0 with αᵀy = 0, α itself by SLSQP."""
    sign = np.where(y == 1, 1.0, -1.0)
    ridge = sum(m * radius_squared(K) for m, K in zip(mu, grams, strict=True)) / C
    Q = np.outer(sign, sign) * sum(m * K for m, K in zip(mu, grams, strict=True)) + ridge * np.eye(
        len(y)
    )
    found = minimize(
        lambda a: 0.5 * a @ Q @ a - a.sum(),
        np.ones(len(y)) / len(y),
        jac=lambda a: Q @ a - 1,
        method="SLSQP",
        bounds=[(0, None)] * len(y),
        constraints={"type": "eq", "fun": lambda a: a @ sign, "jac": lambda a: sign},
        options={"maxiter": 2000, "ftol": 1e-14},
    )
    return -found.fun


def best_soft_margin_value(grams, y, C, squared_radii=None):
    """The least of `soft_margin_value` over μ: one program in α and a bound t on all kernels' parts.

    As it is linear in μ, the least over μ of the greatest over α is the greatest over α of the least.
    """
    sign = np.where(y == 1, 1.0, -1.0)
    n = len(y)
    radii = [radius_squared(K) for K in grams] if squared_radii is None else squared_radii
    Qs = [np.outer(sign, sign) * K + R / C * np.eye(n) for K, R in zip(grams, radii, strict=True)]
    start = np.append(np.ones(n) / n, 1.0)
    found = minimize(
        lambda v: 0.5 * v[n] - v[:n].sum(),
        start,
        method="SLSQP",
        jac=lambda v: np.append(-np.ones(n), 0.5),
        bounds=[(0, None)] * n + [(0, None)],
        constraints=[
            {"type": "eq", "fun": lambda v: v[:n] @ sign, "jac": lambda v: np.append(sign, 0.0)},
            {
                "type": "ineq",
                "fun": lambda v: np.array([v[n] - v[:n] @ Q @ v[:n] for Q in Qs]),
                "jac": lambda v: np.array([np.append(-2 * Q @ v[:n], 1.0) for Q in Qs]),
            },
        ],
        options={"maxiter": 5000, "ftol": 1e-14},
    )
    return -found.fun


def ratio(grams, y, mu):
    """R²/(rows·ρ²) of Σμ_rK_r."""
    K = sum(m * G for m, G in zip(mu, grams, strict=True))
    return radius_squared(K) / margin_squared(K, y) / len(y)


def best_ratio(grams, y, starts=3):
    """GRAM's objective by Nelder and Mead on the logarithms of the weights, from several starts."""

    def value(beta):
        mu = np.exp(beta - beta.max())
        return ratio(grams, y, mu / mu.sum())

    rng = np.random.default_rng(0)
    return min(
        minimize(
            value,
            rng.normal(size=len(grams)),
            method="Nelder-Mead",
            options={"xatol": 1e-4, "fatol": 1e-9},
        ).fun
        for _ in range(starts)
    )
