"""What a Gram matrix can express: spectral ratio, margin, radius, and the order of kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import comb

from recsys.errors import FitError, InputError
from recsys.kernels.base import Kernel
from recsys.qp import solve_simplex

# Of the optimality conditions, relative to the mean diagonal: half-way to the square root's 1e-6.
TOLERANCE = 1e-10


class Program(NamedTuple):
    """The squared value of a margin or radius program, its weights and its certified gap."""

    squared: float
    weights: NDArray[np.float64]
    gap: float


def spectral_ratio(K: ArrayLike, standardized: bool = False) -> float:
    """Return ‖K‖_T / ‖K‖_F, from 1 (constant matrix) to √n (identity); or scaled to 0…1.

    Parameters
    ----------
    K : (n, n) float
        Positive semi-definite.
    standardized : bool
        (C − 1) / (√n − 1), 0 for one row.

    Raises
    ------
    InputError
        If K is not square and finite, or zero.

    Notes
    -----
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

    Parameters
    ----------
    K : (n, n) float
    y : (n,)
        Two distinct values.

    Raises
    ------
    InputError
        If K is not square and finite, or y does not hold two classes.

    Notes
    -----
    Source: Polato's thesis, (4.14).
    """
    return float(np.sqrt(max(margin_program(K, y).squared, 0.0)))


def radius(K: ArrayLike) -> float:
    """Return R, the radius of the smallest ball around the vectors in feature space.

    R² = max αᵀ diag(K) − αᵀ K α with weights α ≥ 0 that sum to 1.

    Parameters
    ----------
    K : (n, n) float

    Raises
    ------
    InputError
        If K is not square and finite.

    Notes
    -----
    Source: Polato's thesis, 4.5, with α ≥ 0.
    """
    return float(np.sqrt(max(radius_program(K).squared, 0.0)))


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
    """Return +1 for the larger of two labels and −1 for the other.

    Raises
    ------
    InputError
        If there are not two classes.
    """
    labels = np.asarray(y)
    classes = np.unique(labels)
    if labels.ndim != 1 or len(classes) != 2:
        raise InputError(f"y must hold two classes, one label a row; found {len(classes)}")
    return np.where(labels == classes[1], 1.0, -1.0)


def more_general(K1: ArrayLike, K2: ArrayLike, tol: float = 1e-9) -> bool:
    """Return whether K1 is at least as general as K2: entrywise K̃1² ≥ K̃2² after normalisation.

    By Lemma 6.1 the spectral ratio of K1 is then at most that of K2.

    Parameters
    ----------
    K1, K2 : (n, n) float
        Gram matrices of the same vectors.
    tol : float
        Rounding to forgive.

    Raises
    ------
    InputError
        If the shapes differ.

    Notes
    -----
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


def mc_decomposition(kernel: Kernel, m: int) -> NDArray[np.float64]:
    """Return g(m, s) ≥ 0 with κ(x, z) = Σ_s g(m, s)·κ̃_mC^s(x, z) for vectors of m ones.

    A function f of ⟨x,z⟩ on 0…m is Σ_s Δ^s f(0)·C(⟨x,z⟩, s), with forward differences Δ; the
    normalised mC-kernel of degree s divides by C(m, s).

    Parameters
    ----------
    kernel : Kernel
        A dot-product kernel on vectors with m ones each.
    m : int ≥ 1

    Returns
    -------
    (m + 1,) float64
        Coefficients of the degrees 0…m.

    Raises
    ------
    FitError
        If a coefficient is negative: the kernel is no dot-product kernel (9.1).

    Notes
    -----
    Source: Polato's thesis, Theorems 9.1 and 9.2, Corollary 9.1.
    """
    if m < 1:
        raise InputError(f"m must be a whole number of at least 1, not {m}")
    # Vectors of m ones with s common ones exist in dimension 2m.
    base = np.zeros((1, 2 * m), dtype=np.int8)
    base[0, :m] = 1
    others = np.array([np.roll(base[0], m - s) for s in range(m + 1)])
    f = kernel(base, others)[0]
    differences = np.array(f, dtype=np.longdouble)
    g = np.empty(m + 1)
    for s in range(m + 1):
        g[s] = float(differences[0]) * comb(m, s)
        differences = np.diff(differences)
    scale = float(np.abs(f).max())
    if (g < -1e-9 * max(scale, 1e-300)).any():
        worst = int(np.argmin(g))
        raise FitError(
            f"{kernel} has coefficient {g[worst]:.3g} at degree {worst}: no dot-product kernel"
        )
    return np.maximum(g, 0.0)


def _square(K: ArrayLike) -> NDArray[np.float64]:
    G = np.ascontiguousarray(K, dtype=np.float64)
    if G.ndim != 2 or G.shape[0] != G.shape[1] or len(G) == 0:
        raise InputError(f"K has shape {G.shape}; a square matrix of at least one row is needed")
    if not np.isfinite(G).all():
        raise InputError("K holds NaN or infinity")
    return G
