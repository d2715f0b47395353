"""Penalties and a loss as a user writes them, in a file outside the package."""

import numpy as np

from recsys.fm import CustomLoss, SeparablePenalty


def prox_mcp(value, strength, parameters):
    """Return the exact minimum, also where the strength makes the problem non-convex."""
    alpha, gamma = parameters
    size = abs(value)
    if size >= gamma * alpha:
        return 0.0 if strength > gamma and size * size <= strength * gamma * alpha**2 else value
    if strength >= gamma:
        return 0.0
    return np.sign(value) * max(size - strength * alpha, 0.0) / (1.0 - strength / gamma)


class MCP(SeparablePenalty):
    """The minimax concave penalty: alpha|p| − p²/(2 gamma), constant from gamma·alpha on."""

    def __init__(self, alpha=1.0, gamma=3.0):
        self.alpha, self.gamma = alpha, gamma

    def value(self, form, P):
        """Return Ω."""
        size = np.minimum(np.abs(P), self.gamma * self.alpha)
        return float((self.alpha * size - size**2 / (2.0 * self.gamma)).sum())

    prox_scalar = staticmethod(prox_mcp)


class ScaledRows(SeparablePenalty):
    """A weighted sum of the lengths of the rows."""

    def __init__(self, weight=1.0):
        self.weight = weight

    def value(self, form, P):
        """Return Ω."""
        return self.weight * float(np.linalg.norm(P, axis=1).sum())

    @staticmethod
    def prox_row(norm, strength, parameters):
        """Return what the row is multiplied by."""
        return max(0.0, 1.0 - strength * parameters[0] / norm) if norm > 0.0 else 0.0


class Huber(CustomLoss):
    """Huber's loss with a threshold."""

    curvature = 1.0

    def __init__(self, delta=1.0):
        self.delta = delta

    @staticmethod
    def loss_value(p, y, parameters):
        """Return the value."""
        r, delta = abs(p - y), parameters[0]
        return 0.5 * r * r if r <= delta else delta * (r - 0.5 * delta)

    @staticmethod
    def loss_slope(p, y, parameters):
        """Return the derivative."""
        return min(parameters[0], max(-parameters[0], p - y))
