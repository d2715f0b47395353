"""Quadratic programs over one simplex or two: the margin and radius programs, on arrays.

    minimise  ½ aᵀ(S K S + diag(ridge)) a − qᵀa
    subject to a ≥ 0 and Σ a = 1 within each group,

with S = diag(sign). One group and sign 1 is CF-KOMD (Polato's thesis, 10.2); two groups and
sign ±1 is CF-OMD (5.7) and KOMD (4.3.3); one group, ridge 0, q = ½ diag(K) is the radius.

Conjugate gradients on the face of positive weights find the solution when few bounds are
active, which is nearly always so for recommendation; weights that turn negative are
dropped and the face solved again. Where ridges differ the gradients are preconditioned by the
diagonal: ridges over many decades would take many steps. Pairwise steps with exact line search
then finish from that feasible point and certify it: the reported residual is the largest
violation of the optimality conditions, max{gᵢ : aᵢ > 0} − min{gᵢ} over a group, g the gradient.
The duality gap is at most the residual times the number of groups.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys._jit import jit
from recsys.errors import InputError

TOLERANCE = 5e-7
# Beyond so many faces the bounds are many, and pairwise steps are the better tool.
MAX_FACES = 30
MAX_CG_STEPS = 200


class Solution(NamedTuple):
    """Weights of a program, the residual of the optimality conditions, and its cost."""

    weights: NDArray[np.float64]
    residual: float
    steps: int


def solve_simplex(
    K: ArrayLike,
    q: ArrayLike | None = None,
    *,
    sign: ArrayLike | None = None,
    ridge: ArrayLike | float = 0.0,
    tol: float = TOLERANCE,
    max_steps: int = 1_000_000,
) -> Solution:
    """Solve the program of this module for one kernel matrix.

    Parameters
    ----------
    K : (n, n) float32 or float64
        Symmetric positive semi-definite.
    q : (n,) float, optional
        Linear term, 0 when not given.
    sign : (n,) of +1 and -1, optional
        Group of each variable; one group of +1 when not given.
    ridge : float or (n,) float ≥ 0
        Added to the diagonal.
    tol : float > 0
        Residual at which to stop, in the units of K.
    max_steps : int
        Bound on the pairwise steps; the residual tells how far they came.

    Returns
    -------
    Solution

    Raises
    ------
    InputError
        If the shapes disagree, a value is not finite, or a ridge is negative.
    """
    K = np.ascontiguousarray(K)
    if K.dtype != np.float32:
        K = K.astype(np.float64)
    n = len(K)
    if K.ndim != 2 or K.shape[1] != n or n == 0:
        raise InputError(f"K has shape {K.shape}; a square matrix of at least one row is needed")
    q = np.zeros(n) if q is None else np.array(q, dtype=np.float64)
    sign = np.ones(n) if sign is None else np.array(sign, dtype=np.float64)
    ridge = np.array(np.broadcast_to(np.asarray(ridge, dtype=np.float64), n))
    if q.shape != (n,) or sign.shape != (n,):
        raise InputError(f"q and sign need {n} entries like K, not {q.shape} and {sign.shape}")
    if not (np.isfinite(K).all() and np.isfinite(q).all()):
        raise InputError("K and q must be finite, and one of them holds NaN or infinity")
    if not (ridge >= 0).all():
        raise InputError(f"ridge must be at least 0, and its smallest entry is {ridge.min()}")
    if not (np.abs(sign) == 1).all():
        raise InputError("sign must hold only +1 and -1")
    weights = np.where(sign > 0, 1.0 / max(1, (sign > 0).sum()), 1.0 / max(1, (sign < 0).sum()))
    gradient, face = sign * (K @ (sign * weights)), np.empty(n, dtype=np.uint32)
    buffer, narrow, work = np.empty(n * n, K.dtype), np.empty((2, n), K.dtype), np.empty((7, n))
    residual, steps = solve_face(
        K, n, q, sign, ridge, weights, gradient, face, buffer, work, narrow, tol, max_steps
    )
    return Solution(weights, float(residual), int(steps))


# ---- kernels


@jit
def multiply(K, n, rows, count, sign, ridge, v, out):
    """Out = (S K S + diag(ridge)) v, where v is 0 outside the given rows.

    Whole rows of the symmetric K are added up, so that the loop vectorises.
    """
    out[:n] = 0.0
    k = 0
    while k + 4 <= count:
        i0, i1, i2, i3 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
        c0, c1 = sign[i0] * v[i0], sign[i1] * v[i1]
        c2, c3 = sign[i2] * v[i2], sign[i3] * v[i3]
        for j in range(n):
            out[j] += c0 * K[i0, j] + c1 * K[i1, j] + c2 * K[i2, j] + c3 * K[i3, j]
        k += 4
    while k < count:
        i = rows[k]
        c0 = sign[i] * v[i]
        for j in range(n):
            out[j] += c0 * K[i, j]
        k += 1
    for j in range(n):
        out[j] = sign[j] * out[j] + ridge[j] * v[j]


@jit
def _project(v, n, sign, scale):
    """Make scale·v sum to 0 over each group, by a shift of v, and return v's largest magnitude."""
    total_p = total_n = weight_p = weight_n = 0.0
    for i in range(n):
        if sign[i] > 0:
            total_p += scale[i] * v[i]
            weight_p += scale[i]
        else:
            total_n += scale[i] * v[i]
            weight_n += scale[i]
    mean_p = total_p / weight_p if weight_p > 0.0 else 0.0
    mean_n = total_n / weight_n if weight_n > 0.0 else 0.0
    top = 0.0
    for i in range(n):
        v[i] -= mean_p if sign[i] > 0 else mean_n
        top = max(top, abs(v[i]))
    return top


@jit
def _precondition(K, n, sign, ridge, scale):
    """Scale = what the diagonal is at the least ridge of a group over what it is here: 1 if all are.

    A diagonal of K that varies counts as its largest entry, so that equal ridges give 1 to the bit.
    """
    own, low_p, low_n = 0.0, np.inf, np.inf
    for i in range(n):
        own = max(own, K[i, i])
        if sign[i] > 0:
            low_p = min(low_p, ridge[i])
        else:
            low_n = min(low_n, ridge[i])
    if own <= 0.0:  # K is 0: the unit is of no account
        own = 1.0
    for i in range(n):
        scale[i] = (own + (low_p if sign[i] > 0 else low_n)) / (own + ridge[i])


@jit
def _normalise(a, n, sign):
    """Scale the non-negative weights to sum to 1 in each group."""
    total_p = total_n = 0.0
    for i in range(n):
        if sign[i] > 0:
            total_p += a[i]
        else:
            total_n += a[i]
    for i in range(n):
        a[i] /= total_p if sign[i] > 0 else total_n


@jit
def _residual(a, g, n, sign):
    """Return the largest violation of the optimality conditions over both groups."""
    worst = 0.0
    for s in (1.0, -1.0):
        low, high = np.inf, -np.inf
        for i in range(n):
            if sign[i] == s:
                low = min(low, g[i])
                if a[i] > 0.0:
                    high = max(high, g[i])
        if high > low:
            worst = max(worst, high - low)
    return worst


@jit
def _narrow_multiply(K, n, v, out):
    """Out = K v in K's own precision: twice the speed where that is float32."""
    out[:n] = 0
    i = 0
    while i + 4 <= n:
        c0, c1, c2, c3 = v[i], v[i + 1], v[i + 2], v[i + 3]
        for j in range(n):
            out[j] += (c0 * K[i, j] + c1 * K[i + 1, j]) + (c2 * K[i + 2, j] + c3 * K[i + 3, j])
        i += 4
    while i < n:
        c0 = v[i]
        for j in range(n):
            out[j] += c0 * K[i, j]
        i += 1


@jit
def _conjugate_gradients(K, n, sign, ridge, scale, a, r, p, v, Kv, goal):
    """Minimise over n variables with the groups' sums kept; r holds −gradient, projected.

    Directions are scale·r, which sums to 0: the gradient preconditioned by the diagonal 1/scale.

    Products are taken in K's precision; every face starts again from an exact gradient, so
    that this costs steps, not accuracy.
    """
    top = rr = 0.0
    for i in range(n):
        p[i] = scale[i] * r[i]
        rr += r[i] * p[i]
        top = max(top, abs(r[i]))
    for step in range(MAX_CG_STEPS):
        if top <= goal:
            return step
        for i in range(n):
            v[i] = sign[i] * p[i]
        _narrow_multiply(K, n, v, Kv)
        curvature = 0.0
        for i in range(n):
            curvature += p[i] * (sign[i] * Kv[i] + ridge[i] * p[i])
        if not curvature > 1e-14 * rr:
            return step  # flat direction: leave it to the pairwise steps, which respect the bounds
        alpha = rr / curvature
        for i in range(n):
            a[i] += alpha * p[i]
            r[i] -= alpha * (sign[i] * Kv[i] + ridge[i] * p[i])
        top = _project(r, n, sign, scale)
        before = rr
        rr = 0.0
        for i in range(n):
            rr += scale[i] * r[i] * r[i]
        beta = rr / before
        for i in range(n):
            p[i] = scale[i] * r[i] + beta * p[i]
    return MAX_CG_STEPS


@jit
def _pairwise(K, n, sign, ridge, a, g, tol, max_steps):
    """Move weight between pairs of a group, with exact line search, until optimal to tol."""
    for step in range(max_steps):
        best_i = best_j = -1
        worst = tol
        for s in (1.0, -1.0):
            low, high = np.inf, -np.inf
            i = j = -1
            for k in range(n):
                if sign[k] == s:
                    if g[k] < low:
                        low, i = g[k], k
                    if a[k] > 0.0 and g[k] > high:
                        high, j = g[k], k
            if i >= 0 and j >= 0 and high - low > worst:
                worst, best_i, best_j = high - low, i, j
        if best_i < 0:
            return step
        i, j = best_i, best_j
        # Among the variables that may give weight to i, the one that gains most (second order).
        gain = 0.0
        q_ii = K[i, i] + ridge[i]
        for k in range(n):
            if sign[k] == sign[i] and a[k] > 0.0 and g[k] > g[i]:
                slope = g[k] - g[i]
                curvature = max(q_ii + K[k, k] + ridge[k] - 2.0 * K[i, k], 1e-12)
                if slope * slope / curvature > gain:
                    gain, j = slope * slope / curvature, k
        curvature = max(q_ii + K[j, j] + ridge[j] - 2.0 * K[i, j], 1e-12)
        delta = min((g[j] - g[i]) / curvature, a[j])
        a[i] += delta
        a[j] = a[j] - delta if delta < a[j] else 0.0
        change = delta * sign[i]
        for k in range(n):
            g[k] += sign[k] * change * (K[i, k] - K[j, k])
        g[i] += delta * ridge[i]
        g[j] -= delta * ridge[j]
    return max_steps


@jit
def _on_face(K, buffer, f, face, q, sign, ridge, a, g, work, narrow, first, tol):
    """Solve over the f variables listed in face, dropping those that turn negative.

    K's rows and columns of the face are copied together, and the copy shrinks as variables
    are dropped. a and g are full vectors; a's entries on the face are replaced by weights
    of at least 0, those that remain being listed first in face. Returns how many remain and
    the steps taken.
    """
    b, r, p, s, ridge_f, q_f, scale = (
        work[0], work[1], work[2], work[3], work[4], work[5], work[6]
    )  # fmt: skip
    everything = np.arange(f).astype(np.uint32)
    small = K if f == len(K) else buffer[: f * f].reshape(f, f)
    for i in range(f):
        row = face[i]
        b[i], r[i], s[i], ridge_f[i], q_f[i] = a[row], -g[row], sign[row], ridge[row], q[row]
        a[row] = 0.0
        if f < len(K):
            for j in range(f):
                small[i, j] = K[row, face[j]]
    steps = 0
    while True:
        _precondition(small, f, s, ridge_f, scale)
        top = _project(r, f, s, scale)
        goal = max(0.3 * tol, (0.3 if first else 0.1) * top)
        steps += _conjugate_gradients(small, f, s, ridge_f, scale, b, r, p, narrow[0], narrow[1], goal)
        first = False
        kept = 0
        for i in range(f):
            if b[i] > 0.0:
                everything[kept] = i
                kept += 1
        if kept == f:
            break
        smaller = buffer[: kept * kept].reshape(kept, kept)
        for i in range(kept):  # forwards and to the front: nothing is overwritten unread
            k = everything[i]
            b[i], s[i], ridge_f[i], q_f[i], face[i] = b[k], s[k], ridge_f[k], q_f[k], face[k]
            for j in range(kept):
                smaller[i, j] = small[k, everything[j]]
        f, small = kept, smaller
        _normalise(b, f, s)
        for i in range(f):
            everything[i] = i
        multiply(small, f, everything, f, s, ridge_f, b, r)
        for i in range(f):
            r[i] = q_f[i] - r[i]
    for i in range(f):
        a[face[i]] = b[i]
    return f, steps


@jit
def solve_face(K, n, q, sign, ridge, a, g, face, buffer, work, narrow, tol, max_steps):
    """Solve for one C-ordered matrix K (n, n); a (n) receives the weights, g (n) the gradient.

    On entry a holds weights of each group, above 0 and of sum 1, and g the vector S K S a.
    face is uint32 (n; unsigned, so that indexing has no sign to test), buffer a vector of n²
    or more like K, work float64 (7, n), narrow (2, n) like K. Returns the residual and the
    number of steps.
    """
    for i in range(n):
        face[i] = i
        g[i] += ridge[i] * a[i] - q[i]
    steps, f = 0, n
    for attempt in range(MAX_FACES):
        f, taken = _on_face(K, buffer, f, face, q, sign, ridge, a, g, work, narrow, attempt == 0, tol)
        steps += taken
        _normalise(a, n, sign)
        multiply(K, n, face, f, sign, ridge, a, g)
        for i in range(n):
            g[i] -= q[i]
        if _residual(a, g, n, sign) <= tol:
            return _residual(a, g, n, sign), steps
        f = _release(a, g, n, sign, face, tol)
    steps += _pairwise(K, n, sign, ridge, a, g, tol, max_steps)
    # The pairwise steps update the gradient; what is reported is computed afresh.
    f = 0
    for i in range(n):
        if a[i] > 0.0:
            face[f] = i
            f += 1
    multiply(K, n, face, f, sign, ridge, a, g)
    for i in range(n):
        g[i] -= q[i]
    return _residual(a, g, n, sign), steps


@jit
def _release(a, g, n, sign, face, tol):
    """List the variables with weight, and those at 0 that would lower the objective."""
    mean_p = mean_n = 0.0
    for i in range(n):
        if sign[i] > 0:
            mean_p += a[i] * g[i]
        else:
            mean_n += a[i] * g[i]
    f = 0
    for i in range(n):
        if a[i] > 0.0 or g[i] < (mean_p if sign[i] > 0 else mean_n) - 0.5 * tol:
            face[f] = i
            f += 1
    return f
