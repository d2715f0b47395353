"""Quadratic programs over one simplex or two: the margin and radius programs, on arrays.

    minimise  ½ aᵀ(S K S + diag(ridge)) a − qᵀa
    subject to a ≥ 0 and Σ a = 1 within each group,

with S = diag(sign). One group and sign 1 is CF-KOMD (Polato's thesis, 10.2); two groups and
sign ±1 is CF-OMD (5.7) and KOMD (4.3.3); one group, ridge 0, q = ½ diag(K) is the radius.

Conjugate gradients on the face of positive weights find the solution when few bounds are
active, which is nearly always so for recommendation; weights that turn negative are
dropped and the face solved again. Where ridges differ the gradients are preconditioned by the
diagonal: ridges over many decades would take many steps. Where so many bounds are active that no
face is found, pairwise steps with exact line search finish from the feasible point. The reported
residual certifies the solution: it is the largest violation of the optimality conditions,
max{gᵢ : aᵢ > 0} − min{gᵢ} over a group, g the gradient. The duality gap is at most the residual times
the number of groups.

Only the lower triangle of K is read, and each entry serves its row and its column at once. On the way
products are taken in K's own precision; what is reported is computed afresh in float64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys._jit import SUMS, jit
from recsys.errors import InputError
from recsys.utils.features import real_array

TOLERANCE = 5e-7
# Beyond so many faces the bounds are many, and pairwise steps are the better tool.
MAX_FACES = 30
MAX_CG_STEPS = 200
# Faces whose gradients are taken in K's own precision; where they do not do, the digits may be why.
ROUGH_FACES = 3
# By how much the first and the further faces lower the gradient before variables are dropped.
FIRST_GOAL, NEXT_GOAL = 0.15, 0.1


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
    if not isinstance(K, np.ndarray) or K.dtype != np.float32:
        K = real_array("K", K)
    K = np.ascontiguousarray(K)
    n = len(K)
    if K.ndim != 2 or K.shape[1] != n or n == 0:
        raise InputError(f"K has shape {K.shape}; a square matrix of at least one row is needed")
    q = np.zeros(n) if q is None else np.array(real_array("q", q))
    sign = np.ones(n) if sign is None else np.array(real_array("sign", sign))
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
        K, n, q, sign, ridge, weights, gradient, face, buffer, work, narrow, tol
    )
    if not residual <= tol:
        whole = np.tril(K) + np.tril(K, -1).T
        given = whole, n, q, sign, ridge, weights
        _gradient(*given, False, narrow, work[0], work[1], gradient)
        steps += _pairwise(whole, n, sign, ridge, weights, gradient, tol, max_steps)
        # The pairwise steps update the gradient; what is reported is computed afresh.
        _gradient(*given, False, narrow, work[0], work[1], gradient)
        residual = _residual(weights, gradient, n, sign)
    return Solution(weights, float(residual), int(steps))


# ---- kernels

once = jit(inline="always")  # for what a single line calls: a function less to compile


@jit
def gather(source, ids, n, out):
    """Fill the lower triangle of out (n, n) with the entries of a symmetric source between n rows.

    Four rows at a time, for which an index is read once: what that fills beyond the diagonal is not to
    be read. A source that is known by its lower triangle takes ascending ids.
    """
    i = 0
    while i + 4 <= n:
        a, b, c, d = source[ids[i]], source[ids[i + 1]], source[ids[i + 2]], source[ids[i + 3]]
        e, f, g, h = out[i], out[i + 1], out[i + 2], out[i + 3]
        for j in range(i + 4):
            k = ids[j]
            e[j] = a[k]
            f[j] = b[k]
            g[j] = c[k]
            h[j] = d[k]
        i += 4
    while i < n:
        a, e = source[ids[i]], out[i]
        for j in range(i + 1):
            e[j] = a[ids[j]]
        i += 1


@jit(fastmath=SUMS)
def multiply(K, n, v, out):
    """Out = K v from K's lower triangle, in the precision of v.

    An entry is read once and used twice, for its row's sum and in its column's. The rows are
    slices: written K[i, j] the loop does not vectorise.
    """
    for i in range(n):
        out[i] = 0.0
    i = 0
    while i + 4 <= n:
        a, b, c, d = K[i], K[i + 1], K[i + 2], K[i + 3]
        v0, v1, v2, v3 = v[i], v[i + 1], v[i + 2], v[i + 3]
        k10, k20, k30, k21, k31, k32 = b[i], c[i], d[i], c[i + 1], d[i + 1], d[i + 2]
        s0 = a[i] * v0 + k10 * v1 + k20 * v2 + k30 * v3
        s1 = k10 * v0 + b[i + 1] * v1 + k21 * v2 + k31 * v3
        s2 = k20 * v0 + k21 * v1 + c[i + 2] * v2 + k32 * v3
        s3 = k30 * v0 + k31 * v1 + k32 * v2 + d[i + 3] * v3
        for j in range(i):
            s0 += a[j] * v[j]
            s1 += b[j] * v[j]
            s2 += c[j] * v[j]
            s3 += d[j] * v[j]
            out[j] += (v0 * a[j] + v1 * b[j]) + (v2 * c[j] + v3 * d[j])
        out[i], out[i + 1], out[i + 2], out[i + 3] = s0, s1, s2, s3
        i += 4
    while i < n:
        a, v0 = K[i], v[i]
        s0 = a[i] * v0
        for j in range(i):
            s0 += a[j] * v[j]
            out[j] += v0 * a[j]
        out[i] = s0
        i += 1


@jit
def _gradient(K, n, q, sign, ridge, a, rough, narrow, v, Kv, g):
    """G = (S K S + diag(ridge)) a − q; the product is taken in K's precision where rough."""
    if rough:
        for i in range(n):
            narrow[0, i] = sign[i] * a[i]
        multiply(K, n, narrow[0], narrow[1])
        for i in range(n):
            g[i] = sign[i] * narrow[1, i] + ridge[i] * a[i] - q[i]
    else:
        for i in range(n):
            v[i] = sign[i] * a[i]
        multiply(K, n, v, Kv)
        for i in range(n):
            g[i] = sign[i] * Kv[i] + ridge[i] * a[i] - q[i]


@jit(fastmath=SUMS)
def _project(v, n, sign, scale):
    """Make scale·v sum to 0 over each group, by a shift of v."""
    total_p = total_n = weight_p = weight_n = 0.0
    for i in range(n):
        up = sign[i] > 0
        weighed = scale[i] * v[i]
        total_p += weighed if up else 0.0
        total_n += 0.0 if up else weighed
        weight_p += scale[i] if up else 0.0
        weight_n += 0.0 if up else scale[i]
    mean_p = total_p / weight_p if weight_p > 0.0 else 0.0
    mean_n = total_n / weight_n if weight_n > 0.0 else 0.0
    for i in range(n):
        v[i] -= mean_p if sign[i] > 0 else mean_n


@once
def _largest(v, n):
    top = 0.0
    for i in range(n):
        top = max(top, abs(v[i]))
    return top


@once
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


@jit(fastmath=SUMS)
def _conjugate_gradients(K, n, sign, ridge, scale, a, r, p, v, Kv, goal):
    """Minimise over n variables with the groups' sums kept; r holds −gradient, projected.

    Directions are scale·r, which sums to 0: the gradient preconditioned by the diagonal 1/scale.

    Products are taken in K's precision; every face starts again from a gradient computed afresh, so
    that this costs steps, not accuracy.
    """
    rr = 0.0
    above = 0  # counted, since a maximum does not vectorise
    for i in range(n):
        p[i] = scale[i] * r[i]
        v[i] = sign[i] * p[i]
        rr += r[i] * p[i]
        above += not abs(r[i]) <= goal
    for step in range(MAX_CG_STEPS):
        if above == 0:
            return step
        multiply(K, n, v, Kv)
        curvature = 0.0
        for i in range(n):
            curvature += p[i] * (sign[i] * Kv[i] + ridge[i] * p[i])
        if not curvature > 1e-14 * rr:
            return step  # flat direction: leave it to the pairwise steps, which respect the bounds
        alpha = rr / curvature
        for i in range(n):
            a[i] += alpha * p[i]
            r[i] -= alpha * (sign[i] * Kv[i] + ridge[i] * p[i])
        _project(r, n, sign, scale)
        before = rr
        rr = 0.0
        above = 0
        for i in range(n):
            rr += scale[i] * r[i] * r[i]
            above += not abs(r[i]) <= goal
        beta = rr / before
        for i in range(n):
            p[i] = scale[i] * r[i] + beta * p[i]
            v[i] = sign[i] * p[i]
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
        row = K[i]
        q_ii = row[i] + ridge[i]
        for k in range(n):
            if sign[k] == sign[i] and a[k] > 0.0 and g[k] > g[i]:
                slope = g[k] - g[i]
                curvature = q_ii + K[k, k] + ridge[k] - 2.0 * row[k]
                curvature = curvature if curvature > 1e-12 else 1e-12
                if slope * slope / curvature > gain:
                    gain, j = slope * slope / curvature, k
        curvature = q_ii + K[j, j] + ridge[j] - 2.0 * row[j]
        delta = (g[j] - g[i]) / (curvature if curvature > 1e-12 else 1e-12)
        delta = delta if delta < a[j] else a[j]
        a[i] += delta
        a[j] = a[j] - delta if delta < a[j] else 0.0
        change, other = delta * sign[i], K[j]
        for k in range(n):
            g[k] += sign[k] * change * (row[k] - other[k])
        g[i] += delta * ridge[i]
        g[j] -= delta * ridge[j]
    return max_steps


@once
def _on_face(K, n, buffer, f, face, q, sign, ridge, a, g, work, narrow, first, rough, tol):
    """Solve over the f variables listed in face, ascending, dropping those that turn negative.

    K's rows and columns of the face are copied together. a and g are full vectors; a's entries on the
    face are replaced by weights of at least 0, those that remain being listed first in face. Returns
    how many remain and the steps taken.
    """
    b, r, p, s, ridge_f, q_f, scale = (
        work[0], work[1], work[2], work[3], work[4], work[5], work[6]
    )  # fmt: skip
    small = K
    if f < n:
        small = buffer[: f * f].reshape(f, f)
        gather(K, face, f, small)
    for i in range(f):
        row = face[i]
        b[i], r[i], s[i], ridge_f[i], q_f[i] = a[row], -g[row], sign[row], ridge[row], q[row]
        a[row] = 0.0
    steps = 0
    while True:
        _precondition(small, f, s, ridge_f, scale)
        _project(r, f, s, scale)
        goal = max(0.3 * tol, (FIRST_GOAL if first else NEXT_GOAL) * _largest(r, f))
        steps += _conjugate_gradients(small, f, s, ridge_f, scale, b, r, p, narrow[0], narrow[1], goal)
        first = False
        kept = np.int64(0)
        for i in range(f):
            if b[i] > 0.0:
                b[kept], s[kept], face[kept] = b[i], s[i], face[i]
                ridge_f[kept], q_f[kept] = ridge_f[i], q_f[i]
                kept += 1
        if kept == f:
            break
        f = kept
        small = buffer[: f * f].reshape(f, f)
        gather(K, face, f, small)
        _normalise(b, f, s)
        _gradient(small, f, q_f, s, ridge_f, b, rough, narrow, p, scale, r)
        for i in range(f):
            r[i] = -r[i]
    for i in range(f):
        a[face[i]] = b[i]
    return f, steps


@jit
def solve_face(K, n, q, sign, ridge, a, g, face, buffer, work, narrow, tol):
    """Solve for one C-ordered matrix K (n, n); a (n) receives the weights, g (n) the gradient.

    Where MAX_FACES faces are not enough, which is rare, the residual stays above tol: `solve_simplex`
    goes on from there.

    On entry a holds weights of each group, above 0 and of sum 1, and g the vector S K S a. Of K the
    lower triangle is read. face is uint32 (n; unsigned, so that indexing has no sign to test), buffer a
    vector of n² or more like K, work float64 (7, n), narrow (2, n) like K. Returns the residual and the
    number of steps.
    """
    for i in range(n):
        face[i] = i
        g[i] += ridge[i] * a[i] - q[i]
    steps, f, residual = 0, n, np.inf
    for attempt in range(MAX_FACES):
        rough = attempt < ROUGH_FACES
        f, taken = _on_face(
            K, n, buffer, f, face, q, sign, ridge, a, g, work, narrow, attempt == 0, rough, tol
        )
        steps += taken
        _normalise(a, n, sign)
        _gradient(K, n, q, sign, ridge, a, rough, narrow, work[0], work[1], g)
        residual = _residual(a, g, n, sign)
        if rough and residual <= tol:  # `not rough`: for a literal it would be compiled once more
            _gradient(K, n, q, sign, ridge, a, not rough, narrow, work[0], work[1], g)
            residual = _residual(a, g, n, sign)
        if residual <= tol:
            break
        f = _release(a, g, n, sign, face, tol)
    return residual, steps


@once
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
