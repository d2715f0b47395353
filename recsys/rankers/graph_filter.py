"""Filters of the item graph: a profile is smoothed over it, projected and sharpened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.polynomial import polynomial
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from recsys._jit import jit, over_rows
from recsys.kernels.gram.counts import cooccurrence
from recsys.rankers._eigenvalue import largest_eigenvalue
from recsys.rankers._polynomial import by_likes, by_pairs
from recsys.rankers._scoring import inner_products
from recsys.rankers.base import DENSE_ITEMS, Candidate, Ranker, Shares, Times, expect
from recsys.rankers.registry import RANKERS
from recsys.rankers.state import expect_csr, is_csr
from recsys.utils.docstrings import documented
from recsys.utils.linalg import leading_singular
from recsys.utils.memory import check_fits, parse_memory
from recsys.utils.recency import recency_weights
from recsys.utils.sparse import owners, row_votes
from recsys.utils.validation import MOST, check_choice, check_integer, check_real

LINEAR, IDEAL, GF_CF = "linear", "ideal", "gf-cf"
BSPM_EM, BSPM_LM = "bspm-em", "bspm-lm"
TURBO_2, TURBO_3 = "turbo-2", "turbo-3"
FILTERS = (LINEAR, IDEAL, GF_CF, BSPM_EM, BSPM_LM, TURBO_2, TURBO_3)
PROJECTING = (IDEAL, GF_CF, BSPM_EM, BSPM_LM)
SHARPENING = (BSPM_EM, BSPM_LM)
MOST_POWER, MOST_SHARPENING, MOST_STEPS = 4.0, 100.0, 32  # beyond, float32 ends
SOLVERS = {"euler": 1, "rk4": 4}  # the terms of exp(−z) that a step takes
OVERSAMPLES, PASSES = 40, 8  # of the randomised decomposition
LEAST = 1e-6  # of the largest singular value: what is below it is rounding
# Users and items from which on the decomposition is in float32: half the time, the same directions (on
# Yelp2018 both find .8876 of the leading 256).
LARGE, LEAST_SINGLE = 20_000, 1e-5
ROWS = 64  # directions sharpened at once


@RANKERS.add("graph-filter")
@documented
@dataclass(eq=False)
class GraphFilter(Ranker):
    """Filters of the graph of items: GF-CF, BSPM and Turbo-CF, by name.

    With A = U^(−votes/2) R D^(−item_power), U and D the users' and items' numbers of interactions, P =
    AᵀA over its largest eigenvalue smooths a row x of interactions over items that occur together, and
    F = D^(−item_power) VVᵀ D^item_power keeps of it what lies in the `factors` leading right singular
    vectors V of A. Scores of row x, with β = `ideal_weight` and one sharpening S(P), are

    - `linear`: xP
    - `ideal`: xF
    - `gf-cf`: xP + βxF
    - `bspm-lm`: xPS(P) + βxF, merged late
    - `bspm-em`: (xP + βxF)S(P), merged early
    - `turbo-2`, `turbo-3`: x(2P − P²), x(P + .01(−P³ + 10P² − 29P))

    They are linear in the interactions, and no dense matrix of items is made: P is applied by products
    with R.

    Parameters
    ----------
    filter : str
        One of the names above.
    factors : int ≥ 1
        Number of columns of V, at most the rank of A. It has to be small beside that rank to have an
        effect.
    ideal_weight : float ≥ 0
        β.
    votes : float in 0…4
        User-weight exponent: how much less users with long profiles count.
    item_power : float in 0…4
        Exponent of items' popularity: how much less popular items count in a profile.
    locality : float > 0
        Power of the entries of AᵀA. Above 1 near neighbours count more. Unless it is 1, AᵀA is stored as
        a sparse matrix. V is that of A in any case.
    sharpening : float in 0…100
        The time T for which dx/dt = −xP is integrated; this defines S(P).
    steps : int in 1…32
        Number of steps of the integration: S(P) = s(PT/steps)^steps.
    solver : str
        "euler": s(z) = 1 − z; "rk4": 1 − z + z²/2 − z³/6 + z⁴/24. A product with P for each power.
    memory : str or int, optional
        Budget of AᵀA, such as "4GB", where it is made.
    random_state : int ≥ 0
        Seed of the randomised decomposition; the result does not depend on the number of threads.

    Attributes
    ----------
    directions_ : (factors, items) float32
        Vᵀ, of the filters that project; fewer where A has fewer.

    Notes
    -----
    Sources: Shen et al., How powerful is graph convolution for recommendation?, 2021 (GF-CF); Choi et
    al., Blurring-sharpening process models for collaborative filtering, 2023 (BSPM, here with one Euler
    step of blurring over time 1, as in its experiments); Park et al., Turbo-CF, 2024, whose first
    filter is `linear`, with α = votes/2 = 1 − item_power and s = `locality`; its P is not divided by
    the largest eigenvalue, which is 1 at votes = 1, item_power = ½ and locality = 1. V is by Halko,
    Martinsson and Tropp, Finding structure with randomness, 2011.

    Examples
    --------
    >>> likes = [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    >>> model = GraphFilter(filter="gf-cf", factors=2).fit(likes, show_progress=False)
    >>> model.recommend(0, [likes[0]], N=1).ids
    array([2], dtype=int32)
    """

    filter: str = GF_CF
    factors: int = 256
    ideal_weight: float = 0.3
    votes: float = 1.0
    item_power: float = 0.5
    locality: float = 1.0
    sharpening: float = 1.0
    steps: int = 1
    solver: str = "euler"
    memory: str | int | None = None
    recency: float = 0.0
    ties: str | None = None
    random_state: int = 0

    name: ClassVar[str] = "graph-filter"
    search_space: ClassVar[dict[str, Any]] = {
        "filter": FILTERS,
        "factors": (16, 32, 64, 128, 256, 512),
        "ideal_weight": ("log", 0.03, 3.0),
        "votes": ("real", 0.0, 2.0),
        "item_power": ("real", 0.2, 0.8),
        "sharpening": ("real", 0.1, 2.5),
        "steps": (1, 2, 3),
        "recency": ("real", 0.0, 2.0, "times"),
    }
    searched_where: ClassVar[dict[str, tuple[str, tuple[Any, ...]]]] = {
        "factors": ("filter", PROJECTING),
        "ideal_weight": ("filter", (GF_CF, BSPM_EM, BSPM_LM)),
        "sharpening": ("filter", SHARPENING),
        "steps": ("filter", SHARPENING),
    }
    candidates: ClassVar[tuple[Candidate, ...]] = (
        Candidate("filter=gf-cf"),
        Candidate("filter=ideal,factors=64", most_items=DENSE_ITEMS),
    )

    def _check_parameters(self) -> None:
        check_choice("filter", self.filter, FILTERS)
        check_integer("factors", self.factors, 1, MOST)
        check_real("locality", self.locality, 0.0, open_low=True)
        for name in ("ideal_weight", "recency"):
            check_real(name, getattr(self, name), 0.0)
        for name in ("votes", "item_power"):
            check_real(name, getattr(self, name), 0.0, MOST_POWER)
        check_real("sharpening", self.sharpening, 0.0, MOST_SHARPENING)
        check_integer("steps", self.steps, 1, MOST_STEPS)
        check_choice("solver", self.solver, tuple(SOLVERS))
        check_integer("random_state", self.random_state, 0, 2**32 - 1)
        parse_memory(self.memory)

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Any) -> None:
        learned = ("likes_", "per_user_", "graph_", "rank_", "directions_", "sharpened_")
        for name in learned:
            vars(self).pop(name, None)
        users, items = liked.shape
        per_user = row_votes(liked, self.votes)
        sizes = np.bincount(liked.indices, minlength=items)
        self.per_item_ = np.maximum(sizes, 1.0) ** -self.item_power
        if self.filter != IDEAL:
            self._make_graph(liked, per_user)
        if self.filter not in PROJECTING:
            return
        A = sp.csr_matrix(liked, dtype=np.float64, copy=True)
        A.data = np.sqrt(per_user)[owners(A)] * self.per_item_[A.indices]
        V = _leading_directions(A, self.factors, self.random_state)
        V[:, sizes == 0] = 0.0
        self.directions_, self.rank_ = V.astype(np.float32), len(V)
        if self.filter == BSPM_EM:
            self.sharpened_ = self._sharpened(V / self.per_item_)

    def _make_graph(self, liked: sp.csr_matrix, per_user: NDArray[np.float64]) -> None:
        """Keep the factors of P: the interactions with the users' weights, or P itself."""
        scale = self.per_item_
        start = 1.0 / scale
        if self.locality != 1.0:
            P = cooccurrence(liked, per_user, parse_memory(self.memory))
            P.data *= (scale[owners(P)] * scale[P.indices]).astype(np.float32)
            P.data **= np.float32(self.locality)
            P.data /= np.float32(largest_eigenvalue(lambda v: P @ v, start))
            self.graph_ = P
            return
        one = np.ones(liked.nnz, np.uint8)
        self.likes_ = sp.csr_matrix((one, liked.indices.copy(), liked.indptr.copy()), liked.shape)
        self.per_user_ = per_user
        if self.votes != 1.0 or self.item_power != 0.5:
            ones = self.likes_.astype(np.float64)
            self.per_user_ = per_user / largest_eigenvalue(
                lambda v: scale * (ones.T @ (per_user * (ones @ (scale * v)))), start
            )

    def _sharpening_terms(self) -> NDArray[np.float64]:
        """Return the coefficients of S(P) from 1 on."""
        z = -self.sharpening / self.steps
        step, term = [1.0], 1.0
        for power in range(1, SOLVERS[self.solver] + 1):
            term *= z / power
            step.append(term)
        return np.asarray(polynomial.polypow(step, self.steps), dtype=np.float64)

    def _coefficients(self) -> NDArray[np.float64]:
        """Return the coefficients of P, P², … in the polynomial that filters a row."""
        if self.filter == TURBO_2:
            return np.array([2.0, -1.0])
        if self.filter == TURBO_3:
            return np.array([1.0 - 0.29, 0.1, -0.01])
        return self._sharpening_terms() if self.filter in SHARPENING else np.ones(1)

    def _polynomial(
        self, rows: sp.csr_matrix, votes: NDArray[np.float64], coefficients: NDArray[np.float64]
    ) -> NDArray[np.float32]:
        if self.locality != 1.0:
            return by_pairs(rows, votes, self.graph_, coefficients)
        return by_likes(rows, votes, self.likes_, self.per_user_, self.per_item_, coefficients)

    def _sharpened(self, directions: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return directions·S(P)."""
        terms = self._sharpening_terms()
        out = np.empty(directions.shape, dtype=np.float32)
        for start in range(0, len(directions), ROWS):
            some = sp.csr_matrix(directions[start : start + ROWS])
            out[start : start + ROWS] = self._polynomial(some, some.data, terms[1:])
        out += terms[0] * directions
        return out

    def _fold_in_scores(self, rows: sp.csr_matrix, times: Times = None) -> NDArray[np.float32]:
        votes = recency_weights(rows, times, self.recency)
        if self.filter == IDEAL:
            return self._projected(rows, votes)
        out = self._polynomial(rows, votes, self._coefficients())
        if self.filter in PROJECTING:
            out += self._projected(rows, votes) * np.float32(self.ideal_weight)
        return out

    def _projected(self, rows: sp.csr_matrix, votes: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return xF, of `bspm-em` xF·S(P)."""
        along = np.empty((rows.shape[0], self.rank_))
        weights = votes * self.per_item_[rows.indices]
        over_rows(rows.shape[0], _project, rows.indptr, rows.indices, weights, self.directions_, along)
        if self.filter == BSPM_EM:
            return inner_products(along, self.sharpened_.T)
        out = inner_products(along, self.directions_.T)
        out *= (1.0 / self.per_item_).astype(np.float32)
        return out

    def _explain_items(
        self, userid: int, row: sp.csr_matrix, items: NDArray[np.int64], **timed: Any
    ) -> list[Shares]:
        votes = recency_weights(row, timed.get("times"), self.recency)
        shares = np.zeros((len(items), row.nnz))
        if self.filter != IDEAL:  # P is symmetric: the contributions to an item are the item's own row
            rows = self._alone(items)
            found = self._polynomial(rows, np.ones(rows.nnz), self._coefficients())
            shares += found[:, row.indices]
        if self.filter in PROJECTING:
            if self.filter == BSPM_EM:
                right = self.sharpened_[:, items].astype(np.float64)
            else:
                right = self.directions_[:, items] / self.per_item_[items]
            left = self.directions_[:, row.indices] * self.per_item_[row.indices]
            beta = 1.0 if self.filter == IDEAL else self.ideal_weight
            shares += beta * (right.T @ left)
        shares *= votes
        return [(float(one.sum()), one) for one in shares]

    def _alone(self, items: NDArray[np.int64]) -> sp.csr_matrix:
        """Return a row for each of these items, with this item alone."""
        n = len(items)
        ones, each = np.ones(n, np.float32), np.arange(n + 1)
        return sp.csr_matrix((ones, items, each), (n, self.n_items_))

    def _item_similarity(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        return self._fold_in_scores(self._alone(ids))

    def _check_state(self) -> None:
        items = self.n_items_
        expect("per_item_", self.per_item_, (items,), np.float64)
        if (self.per_item_ <= 0).any():
            raise ValueError("per_item_ should be above 0")
        if self.filter != IDEAL and self.locality != 1.0:
            graph = self.graph_
            expect_csr("graph_", graph, (items, items), np.float32)
            if (graph.data < 0).any() or (graph != graph.T).nnz:
                raise ValueError("graph_ should be symmetric, and nowhere below 0")
        elif self.filter != IDEAL:
            fits = is_csr(self.likes_, (self.n_users_, items), np.uint8)
            if not fits or (self.likes_.data != 1).any():
                raise ValueError("likes_ should be ones of users and items")
            expect("per_user_", self.per_user_, (self.n_users_,), np.float64)
        if self.filter in PROJECTING:
            if type(self.rank_) is not int:
                raise ValueError("rank_ should be an integer")
            shape = (self.rank_, items)
            expect("directions_", self.directions_, shape, np.float32)
            if self.filter == BSPM_EM:
                expect("sharpened_", self.sharpened_, shape, np.float32)


def _leading_directions(A: sp.csr_matrix, factors: int, seed: int) -> NDArray[np.float64]:
    """Return the leading right singular vectors of A as rows, without those that are rounding."""
    users, items = np.flatnonzero(np.diff(A.indptr)), np.flatnonzero(A.getnnz(axis=0))
    if not A.nnz:
        return np.empty((0, A.shape[1]))
    # The decomposition is of dense blocks, in which what is empty costs as much as what is not.
    B = A if (len(users), len(items)) == A.shape else A[users][:, items]
    most = min(B.shape)
    k = min(factors, most)
    more = min(OVERSAMPLES, most - k)
    # Both sides of the range finder and B times either.
    check_fits(
        3.0 * sum(B.shape) * (k + more),
        f"factors={factors} of {A.shape[0]:,} users and {A.shape[1]:,} items", "lower factors",
    )  # fmt: skip
    least = LEAST
    if sum(B.shape) >= LARGE:
        B, least = B.astype(np.float32), LEAST_SINGLE
    with threadpool_limits(1, "blas"):  # the same bits for any number of threads
        _, values, V = leading_singular(
            B, k, oversamples=more, passes=PASSES, seed=seed, flip_sign=False
        )
    found = values > least * values[0]
    directions = np.zeros((int(found.sum()), A.shape[1]))
    directions[:, items] = V[found]
    return directions


# ---- kernels


@jit
def _project(first, stride, indptr, indices, weights, directions, out):
    """out[u, f] = Σ_p weights[p]·directions[f, indices[p]]: a direction stays in the cache."""
    users, factors = out.shape
    for f in range(factors):
        for u in range(first, users, stride):
            total = 0.0
            for p in range(indptr[u], indptr[u + 1]):
                total += weights[p] * directions[f, indices[p]]
            out[u, f] = total
