"""Expressiveness of Gram matrices, (n, n): spectral ratio, margin, radius, and the order of kernels."""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys.errors import FitError, InputError
from recsys.kernels.base import Kernel
from recsys.kernels.propositional import Expression
from recsys.optim.simplex_qp import solve_simplex
from recsys.utils.validation import check_integer

# Of the optimality conditions, relative to the mean diagonal: half-way to the square root's 1e-6.
TOLERANCE = 1e-10


class Program(NamedTuple):
    """The squared value of a margin or radius program, its weights and its certified gap."""

    squared: float
    weights: NDArray[np.float64]
    gap: float


def spectral_ratio(K: ArrayLike, standardized: bool = False) -> float:
    """Return ‖K‖_T / ‖K‖_F, from 1 (constant matrix) to √n (identity).

    If standardized, it is (C − 1) / (√n − 1), from 0 to 1, and 0 for one row.

    Source: Polato's thesis, 4.6.
    """
    G = _square(K)
    norm = float(np.linalg.norm(G))
    if norm == 0:
        raise InputError("K is zero: it has no spectral ratio")
    ratio = float(np.trace(G)) / norm
    if not standardized:
        return ratio
    return (ratio - 1.0) / (np.sqrt(len(G)) - 1.0) if len(G) > 1 else 0.0


def margin(K: ArrayLike, y: ArrayLike) -> float:
    """Return ρ, the distance between the convex hulls of the two classes in feature space.

    ρ² = min γᵀ Y K Y γ with weights γ ≥ 0 that sum to 1 in each class.
    `y` has two distinct values.

    Source: Polato's thesis, (4.14).
    """
    return float(np.sqrt(max(margin_program(K, y).squared, 0.0)))


def radius(K: ArrayLike) -> float:
    """Return R, the radius of the smallest ball around the vectors in feature space.

    R² = max αᵀ diag(K) − αᵀ K α with weights α ≥ 0 that sum to 1.

    Source: Polato's thesis, 4.5, with α ≥ 0.
    """
    return float(np.sqrt(max(radius_program(K).squared, 0.0)))


def approximate_radius(K: ArrayLike) -> float:
    """Return the root of the mean squared distance from the vectors' mean: at most the radius.

    R̃² = tr(K)/n − mean(K), or 1 − mean(K) for a normalized kernel: the value of the radius program at
    equal weights.

    Source: Polato's thesis, 4.6.
    """
    G = _square(K)
    return float(np.sqrt(max(np.trace(G) / len(G) - G.mean(), 0.0)))


def margin_program(K: ArrayLike, y: ArrayLike, ridge: float = 0.0, tol: float = TOLERANCE) -> Program:
    """Solve (4.14), or (4.16) over 1 − λ, with `ridge` added to the diagonal."""
    G, sign = _square(K), signs(y)
    if len(sign) != len(G):
        raise InputError(f"y has {len(sign)} entries for {len(G)} rows of K")
    goal = tol * max(float(np.mean(np.diag(G))), 1e-12)
    weights, residual, _ = solve_simplex(G, sign=sign, ridge=ridge, tol=goal)
    signed = sign * weights
    return Program(float(signed @ G @ signed), weights, 4.0 * residual)


def radius_program(K: ArrayLike, tol: float = TOLERANCE) -> Program:
    """Solve the program of `radius`."""
    G = _square(K)
    own = np.diag(G)
    goal = tol * max(float(np.mean(own)), 1e-12)
    weights, residual, _ = solve_simplex(G, own / 2.0, tol=goal)
    return Program(float(weights @ own - weights @ G @ weights), weights, 2.0 * residual)


def signs(y: ArrayLike) -> NDArray[np.float64]:
    """Return +1 for the larger of two labels and −1 for the other."""
    labels = np.asarray(y)
    classes = np.unique(labels)
    if labels.ndim != 1 or len(classes) != 2:
        raise InputError(f"y must have two classes and one label per row; found {len(classes)} classes")
    return np.where(labels == classes[1], 1.0, -1.0)


def more_general(K1: ArrayLike, K2: ArrayLike, tol: float = 1e-9) -> bool:
    """Return whether K1 is at least as general as K2: entrywise K̃1² ≥ K̃2² after normalization.

    By Lemma 6.1, the spectral ratio of K1 is then at most that of K2. `tol` is for rounding.

    Source: Polato's thesis, 6.7.
    """
    A, B = normalized(K1), normalized(K2)
    if A.shape != B.shape:
        raise InputError(f"K1 has shape {A.shape} and K2 {B.shape}; they must agree")
    return bool((A * A >= B * B - tol).all())


def normalized(K: ArrayLike) -> NDArray[np.float64]:
    """Return K scaled to unit diagonal; a null row gets 1 there and 0 elsewhere."""
    G = _square(K)
    own = np.sqrt(np.maximum(np.diag(G), 0.0))
    with np.errstate(divide="ignore"):
        scale = np.where(own > 0, 1.0 / own, 0.0)
    out = G * scale[:, None] * scale[None, :]
    np.fill_diagonal(out, 1.0)
    return out


def mc_decomposition(
    kernel: Kernel | Expression | Callable[..., ArrayLike], m: int
) -> NDArray[np.float64]:
    """Return g(m, s) ≥ 0 with κ(x, z) = Σ_s g(m, s)·κ̃_mC^s(x, z) for vectors of m ones.

    The kernel is one of the dot product; g has the coefficients of the degrees 0…m, (m + 1,). Forward
    differences would magnify the rounding of κ by up to 2^s·C(m, s), so non-negative least squares with
    relative errors computes them, to 1e-10 of the largest value. Source: Polato's thesis, Theorems 9.1
    and 9.2, Corollary 9.1.

    Examples
    --------
    (1 + s)² for rows of two ones, s of them common, is 1 + 3·s + 2·C(s, 2); the normalized kernel of
    degree 1 is s/2, that of degree 2 is C(s, 2).

    >>> mc_decomposition(lambda X, Z: (1.0 + X @ Z.T) ** 2, 2).round(6)
    array([1., 6., 2.])
    """
    from scipy.optimize import nnls  # late: only this fit needs it

    check_integer("m", m, 1)
    base = np.zeros((1, 2 * m))
    base[0, :m] = 1.0
    others = np.array([np.roll(base[0], m - s) for s in range(m + 1)])  # with s common ones
    f = np.asarray(kernel(base, others), dtype=np.float64)[0]
    largest = float(np.abs(f).max())
    if not np.isfinite(largest):
        raise InputError(f"{kernel} exceeds the range of float64 on vectors of {m} ones: lower m")
    f = f / (largest or 1.0)
    design = np.array([[comb(k, s) / comb(m, s) for s in range(m + 1)] for k in range(m + 1)])
    error = np.inf
    # Relative to itself first; a function may also compute small values as differences of large ones.
    for weight in (1.0 / np.maximum(np.abs(f), 1e-16), np.ones(m + 1)):
        g, _ = nnls(design * weight[:, None], f * weight, maxiter=1000 * (m + 1))
        error = min(error, float(np.abs(design @ g - f).max()))
        if error <= 1e-10:
            return g * largest
    raise FitError(
        f"{kernel} is not a dot-product kernel: the best non-negative sum of mC-kernels "
        f"has an error of {error:.2g} of its largest value"
    )


def _square(K: ArrayLike) -> NDArray[np.float64]:
    G = np.ascontiguousarray(K, dtype=np.float64)
    if G.ndim != 2 or G.shape[0] != G.shape[1] or len(G) == 0:
        raise InputError(f"K has shape {G.shape}; a square matrix of at least one row is needed")
    if not np.isfinite(G).all():
        raise InputError("K contains NaN or infinity")
    return G
