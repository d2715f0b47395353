"""BPR-MF with unseen items drawn uniformly, as Rendle et al. (2009) and Polato's thesis have it.

implicit draws them by popularity, which is another criterion than the AUC; this plain version is
for the thesis' Table 10.3 only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from recsys._jit import jit

TRIES = 8  # draws for an item that the user does not like; a pair without one is left out


class UniformBPR:
    """Factors P, Q and biases b of items, by stochastic steps on −ln σ(s_ui − s_uj) + reg/2·‖·‖².

    As many pairs (user, liked item) are drawn as there are likes, `passes` times.
    """

    def __init__(
        self,
        passes: int,
        factors: int = 50,
        learning_rate: float = 0.01,
        regularization: float = 0.0025,
        seed: int = 0,
    ) -> None:
        self.passes, self.factors, self.seed = passes, factors, seed
        self.step, self.shrink = learning_rate, regularization

    def fit(self, user_items: Any, show_progress: bool = False, callback: Any = None) -> UniformBPR:
        """Fit on a (users, items) matrix whose rows' indices are sorted."""
        R = sp.csr_matrix(user_items)
        rng = np.random.default_rng(self.seed)
        self.P = rng.normal(0.0, 0.1, (R.shape[0], self.factors))
        self.Q = rng.normal(0.0, 0.1, (R.shape[1], self.factors))
        self.b = np.zeros(R.shape[1])
        owner = np.repeat(np.arange(R.shape[0]), np.diff(R.indptr))
        for _ in range(self.passes):
            drawn = rng.integers(0, R.nnz, R.nnz)
            others = rng.integers(0, R.shape[1], (R.nnz, TRIES))
            _pass(
                owner[drawn],
                R.indices[drawn],
                others,
                R.indptr,
                R.indices,
                self.P,
                self.Q,
                self.b,
                self.step,
                self.shrink,
            )
        return self

    def scores(self, userids: Any, user_items: Any) -> np.ndarray:
        """Return scores of all items for users of the fit."""
        return np.asarray(self.P[userids] @ self.Q.T + self.b, dtype=np.float32)


@jit
def _pass(users, liked, others, indptr, indices, P, Q, b, step, shrink):
    for k in range(len(users)):
        u, i = users[k], liked[k]
        row = indices[indptr[u] : indptr[u + 1]]
        j = -1
        for drawn in others[k]:
            place = np.searchsorted(row, drawn)
            if place == len(row) or row[place] != drawn:
                j = drawn
                break
        if j < 0:
            continue
        gap = b[i] - b[j]
        for f in range(P.shape[1]):
            gap += P[u, f] * (Q[i, f] - Q[j, f])
        slope = 1.0 / (1.0 + np.exp(gap))
        b[i] += step * (slope - shrink * b[i])
        b[j] -= step * (slope + shrink * b[j])
        for f in range(P.shape[1]):
            p, q, r = P[u, f], Q[i, f], Q[j, f]
            P[u, f] += step * (slope * (q - r) - shrink * p)
            Q[i, f] += step * (slope * p - shrink * q)
            Q[j, f] -= step * (slope * p + shrink * r)
