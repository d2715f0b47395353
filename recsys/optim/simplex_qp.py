"""Quadratic programs over one simplex or two: the margin and radius programs, on arrays.

    minimize  ½ aᵀ(S K S + diag(ridge)) a − qᵀa
    subject to a ≥ 0 and Σ a = 1 within each group,

with S = diag(sign). One group and sign 1 is CF-KOMD (Polato's thesis, 10.2); two groups and
sign ±1 is CF-OMD (5.7) and KOMD (4.3.3); one group, ridge 0, q = ½ diag(K) is the radius.

Conjugate gradients find the solution on the face of positive weights; weights that turn negative are
dropped and the face is solved again. Gradients are preconditioned by the diagonal where ridges differ.
Where so many bounds are active that no face is found, pairwise steps finish from the feasible point.
The residual certifies the solution: the largest violation of the optimality conditions,
max{gᵢ : aᵢ > 0} − min{gᵢ} over a group, g the gradient.

`solve_simplex` is for a program alone, in NumPy; `solve_face` for thousands of small ones of one group,
compiled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys._jit import SUMS, jit
from recsys.errors import InputError
from recsys.utils.validation import real_array

TOLERANCE = 5e-7
MAX_FACES = 30  # beyond, the bounds are many: pairwise steps are better
MAX_CG_STEPS = 200
MAX_PAIRS = 1_000_000
# By how much the first and the further faces lower the gradient before variables are dropped.
FIRST_GOAL, NEXT_GOAL = 0.15, 0.1
WORK = 5  # vectors that `solve_face` needs

Vector = NDArray[np.float64]


class Solution(NamedTuple):
    """Weights of a program, the residual of the optimality conditions, and its cost."""

    weights: Vector
    residual: float
    steps: int


def solve_simplex(
    K: ArrayLike,
    q: ArrayLike | None = None,
    *,
    sign: ArrayLike | None = None,
    ridge: ArrayLike | float = 0.0,
    tol: float = TOLERANCE,
    start: Vector | None = None,
) -> Solution:
    """Solve the program of this module for one kernel matrix.

    Parameters
    ----------
    K : (n, n) float
        Symmetric positive semi-definite.
    q : (n,) float, optional
        0 by default.
    sign : (n,) of +1 and -1, optional
        Group of each variable; one group of +1 by default.
    ridge : float or (n,) float ≥ 0
    tol : float > 0
        Residual at which to stop, in the units of K.
    start : (n,) float64, optional
        Feasible weights to start from; equal ones in each group by default.

    Examples
    --------
    >>> solve_simplex(np.diag([1.0, 3.0])).weights.round(3)
    array([0.75, 0.25])
    """
    K = real_array("K", K, 2, finite=True)
    n = len(K)
    q = np.zeros(n) if q is None else real_array("q", q, 1, finite=True)
    sign = np.ones(n) if sign is None else np.asarray(sign, dtype=np.float64)
    ridge = np.broadcast_to(np.asarray(ridge, dtype=np.float64), n)
    if not (n and K.shape[1:] == q.shape == sign.shape == (n,) and (ridge >= 0).all()):
        raise InputError("K must be square, q and sign of its length, and ridge at least 0")
    groups = _groups(sign)
    a = np.empty(n) if start is None else start.copy()
    for group in groups if start is None else ():
        a[group] = 1.0 / len(group)
    face, steps, share = np.arange(n), 0, FIRST_GOAL
    for _ in range(MAX_FACES):
        while True:
            steps += _descend((K, q, sign, ridge), face, a, share, tol)
            share, kept = NEXT_GOAL, face[a[face] > 0]
            if len(kept) == len(face):
                break
            face = kept
        g = sign * (K @ (sign * a)) + ridge * a - q
        residual = max(_violation(a, g, group) for group in groups)
        if residual <= tol:
            return Solution(a, residual, steps)
        # What has weight, and what would lower the objective.
        outside = np.concatenate([group[g[group] < a[group] @ g[group] - 0.5 * tol] for group in groups])
        face = np.union1d(np.flatnonzero(a), outside)
    steps += _pairwise(np.ascontiguousarray(K), g, sign, np.array(ridge), a, tol)
    g = sign * (K @ (sign * a)) + ridge * a - q
    return Solution(a, max(_violation(a, g, group) for group in groups), steps)


def _groups(sign: Vector) -> list[NDArray[np.int64]]:
    return [np.flatnonzero(sign == s) for s in (1.0, -1.0) if (sign == s).any()]


def _violation(a: Vector, g: Vector, group: NDArray[np.int64]) -> float:
    return float(g[group][a[group] > 0].max() - g[group].min())


def _descend(
    program: tuple[Vector, ...], face: NDArray[np.int64], a: Vector, share: float, tol: float
) -> int:
    """Minimize over a face by conjugate gradients, set what turned negative to 0, and return the steps.

    They end where the gradient is `share` of what it was, or near `tol`.
    """
    K, q, sign, ridge = program
    if len(face) < len(K):
        K, q, sign, ridge = K[np.ix_(face, face)], q[face], sign[face], ridge[face]
    groups = _groups(sign)
    own = max(float(K.diagonal().max()), 0.0) or 1.0
    scale = np.empty(len(face))
    for group in groups:
        scale[group] = (own + ridge[group].min()) / (own + ridge[group])

    def projected(r: Vector) -> Vector:  # scale·r sums to 0 over each group
        for group in groups:
            r[group] -= scale[group] @ r[group] / scale[group].sum()
        return r

    b = a[face]
    r = projected(q - sign * (K @ (sign * b)) - ridge * b)
    p, before, steps = np.zeros(len(face)), np.inf, 0
    goal = max(0.3 * tol, share * float(np.abs(r).max()))
    while steps < MAX_CG_STEPS and np.abs(r).max() > goal:
        rr = float(r @ (scale * r))
        p = scale * r + rr / before * p
        Qp = sign * (K @ (sign * p)) + ridge * p
        curvature = float(p @ Qp)
        if not curvature > 1e-14 * rr:
            break  # a flat direction: left to the pairwise steps
        b += rr / curvature * p
        r = projected(r - rr / curvature * Qp)
        before, steps = rr, steps + 1
    if steps > 0:
        b = np.maximum(b, 0.0)
        for group in groups:
            a[face[group]] = b[group] / b[group].sum()
    return steps


# ---- kernels


@jit
def _pairwise(K, g, sign, ridge, a, tol):
    """Move weight between pairs of a group, with exact line search, until optimal; return the steps."""
    n = len(a)
    for step in range(MAX_PAIRS):
        worst, i = tol, -1
        for s in (1.0, -1.0):
            low, high, at = np.inf, -np.inf, -1
            for v in range(n):
                if sign[v] == s:
                    if g[v] < low:
                        low, at = g[v], v
                    if a[v] > 0.0:
                        high = max(high, g[v])
            if high - low > worst:
                worst, i = high - low, at
        if i < 0:
            return step
        # Of the variables that may give weight to i, the one that gains most (second order).
        most, j, delta = -1.0, i, 0.0
        for v in range(n):
            if sign[v] == sign[i] and a[v] > 0.0 and g[v] > g[i]:
                slope = g[v] - g[i]
                curvature = max(K[i, i] + ridge[i] + K[v, v] + ridge[v] - 2.0 * K[i, v], 1e-12)
                if slope * slope / curvature > most:
                    most, j, delta = slope * slope / curvature, v, min(slope / curvature, a[v])
        a[i] += delta
        a[j] = a[j] - delta if delta < a[j] else 0.0
        for v in range(n):
            g[v] += sign[v] * sign[i] * delta * (K[i, v] - K[j, v])
        g[i] += delta * ridge[i]
        g[j] -= delta * ridge[j]
    return MAX_PAIRS


@jit(fastmath=SUMS)
def product(K, n, v, out):
    """Set out to K v from the lower triangle of the leading (n, n) block, four rows at a time.

    The rows are slices: written K[i, j] the loop does not vectorise.
    """
    i = 0
    while i < n:
        if i + 4 > n:
            a, s = K[i], K[i, i] * v[i]
            for j in range(i):
                s += a[j] * v[j]
                out[j] += v[i] * a[j]
            out[i] = s
            i += 1
            continue
        a, b, c, d = K[i], K[i + 1], K[i + 2], K[i + 3]
        v0, v1, v2, v3 = v[i], v[i + 1], v[i + 2], v[i + 3]
        s0 = a[i] * v0 + b[i] * v1 + c[i] * v2 + d[i] * v3
        s1 = b[i] * v0 + b[i + 1] * v1 + c[i + 1] * v2 + d[i + 1] * v3
        s2 = c[i] * v0 + c[i + 1] * v1 + c[i + 2] * v2 + d[i + 2] * v3
        s3 = d[i] * v0 + d[i + 1] * v1 + d[i + 2] * v2 + d[i + 3] * v3
        for j in range(i):
            s0 += a[j] * v[j]
            s1 += b[j] * v[j]
            s2 += c[j] * v[j]
            s3 += d[j] * v[j]
            out[j] += (v0 * a[j] + v1 * b[j]) + (v2 * c[j] + v3 * d[j])
        out[i], out[i + 1], out[i + 2], out[i + 3] = s0, s1, s2, s3
        i += 4


@jit(fastmath=SUMS)
def _project(r, n, scale):
    """Shift r so that scale·r sums to 0; return its largest size."""
    total = weight = largest = 0.0
    for i in range(n):
        total += scale[i] * r[i]
        weight += scale[i]
    for i in range(n):
        r[i] -= total / weight
        largest = max(largest, abs(r[i]))
    return largest


@jit
def solve_face(K, n, q, ridge, a, g, face, small, work, tol):
    """Solve a program of one group from the lower triangle of the leading (n, n) block of K.

    On entry a holds feasible weights, on return the solution, and g its gradient. face is uint32, small
    like K, work (WORK, n). Returns the residual, above tol where MAX_FACES faces are not enough.
    """
    b, r, p, Kp, scale = work[0], work[1], work[2], work[3], work[4]
    own, f, residual, share = 0.0, n, np.inf, FIRST_GOAL
    for i in range(n):
        face[i] = i
        own = max(own, K[i, i])
    own = own if own > 0.0 else 1.0
    for _ in range(MAX_FACES):
        while True:
            block = K
            if f < n:
                block = small
                for i in range(f):
                    source, row = K[face[i]], block[i]
                    for j in range(i + 1):
                        row[j] = source[face[j]]
            least = np.inf
            for i in range(f):
                b[i] = a[face[i]]
                least = min(least, ridge[face[i]])
            product(block, f, b, Kp)
            for i in range(f):
                r[i] = q[face[i]] - Kp[i] - ridge[face[i]] * b[i]
                scale[i] = (own + least) / (own + ridge[face[i]])
                p[i] = 0.0
            largest = _project(r, f, scale)
            goal, share, before = max(0.3 * tol, share * largest), NEXT_GOAL, np.inf
            for _ in range(MAX_CG_STEPS):
                if largest <= goal:
                    break
                rr = curvature = 0.0
                for i in range(f):
                    rr += scale[i] * r[i] * r[i]
                for i in range(f):
                    p[i] = scale[i] * r[i] + rr / before * p[i]
                product(block, f, p, Kp)
                for i in range(f):
                    Kp[i] += ridge[face[i]] * p[i]
                    curvature += p[i] * Kp[i]
                if not curvature > 1e-14 * rr:
                    break
                for i in range(f):
                    b[i] += rr / curvature * p[i]
                    r[i] -= rr / curvature * Kp[i]
                largest, before = _project(r, f, scale), rr
            total = 0.0
            for i in range(f):
                total += max(b[i], 0.0)
            kept = 0
            for i in range(f):
                a[face[i]] = max(b[i], 0.0) / total
                if b[i] > 0.0:
                    face[kept] = face[i]
                    kept += 1
            if kept == f:
                break
            f = kept
        product(K, n, a, Kp)
        low, high, level = np.inf, -np.inf, 0.0
        for i in range(n):
            g[i] = Kp[i] + ridge[i] * a[i] - q[i]
            low = min(low, g[i])
            if a[i] > 0.0:
                high = max(high, g[i])
                level += a[i] * g[i]
        residual = high - low
        if residual <= tol:
            break
        f = 0
        for i in range(n):
            if a[i] > 0.0 or g[i] < level - 0.5 * tol:
                face[f] = i
                f += 1
    return residual
