"""Losses and penalties as integer codes in one chain, which compiles once for all pairs."""

from __future__ import annotations

import numpy as np

from recsys._jit import jit

LOSSES = {"squared": 0, "logistic": 1, "squared_hinge": 2, "huber": 3}
PENALTIES = {"l2": 0, "l1": 1, "ti": 2, "l21": 3, "cs": 4}
BLOCKWISE = ("l21", "cs")
# Bound on the second derivative, which a coordinate step divides by: the objective cannot rise.
CURVATURE = np.array([1.0, 0.25, 2.0, 1.0])


# ---- kernels


@jit
def loss_value(code, p, y):
    """ℓ(p, y): ½(p − y)²; log(1 + e^(−yp)); max(0, 1 − yp)²; Huber's with threshold 1."""
    if code == 0:
        return 0.5 * (p - y) ** 2
    if code == 1:
        z = -y * p
        return z + np.log1p(np.exp(-z)) if z > 0 else np.log1p(np.exp(z))
    if code == 2:
        left = max(0.0, 1.0 - y * p)
        return left * left
    r = abs(p - y)
    return 0.5 * r * r if r <= 1.0 else r - 0.5


@jit
def loss_slope(code, p, y):
    """∂ℓ/∂p."""
    if code == 0:
        return p - y
    if code == 1:
        z = y * p
        return -y / (1.0 + np.exp(z)) if z < 700 else 0.0
    if code == 2:
        return -2.0 * y * max(0.0, 1.0 - y * p)
    return min(1.0, max(-1.0, p - y))
