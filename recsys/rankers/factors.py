"""Matrix factorization by implicit: ALS, BPR and LMF, and how rows of interactions are folded in.

implicit crashes or answers silently on bad calls, so nothing reaches it unchecked; its factors are
copied out. BLAS runs on one thread around it, as it asks.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit
from threadpoolctl import threadpool_limits

from recsys._jit import SUMS, check_openmp, jit, over_rows
from recsys.errors import FitError
from recsys.rankers.base import Candidate, Data, Ranker, Rows, Shares
from recsys.rankers.protocol import POSITIVE, Floats, Ints, Items, Users
from recsys.rankers.registry import register_ranker
from recsys.rankers.scoring import EmbeddingRanker, cosines
from recsys.utils.progress import report
from recsys.utils.resources import check_memory
from recsys.utils.sparse import binary

MOST_LIKES = 300_000  # beyond, folding in users takes `auto` too long
LEAST_RIDGE = 1e-4  # of a fold-in: without one, what liked items alone say can be without bound
STEPS, HALVINGS = 100, 30
BLOCK = 256  # items at a time, whose factors stay in the cache
ENOUGH = 1e-5  # of a Newton step: the next one is its square


class ImplicitFactors(EmbeddingRanker):
    """Base of the matrix factorizations, fitted by implicit."""

    user_factors_: NDArray[np.float32]
    factors: int
    num_threads: int

    model: ClassVar[tuple[str, str]]  # module and class of implicit, whose parameters are ours

    def _fit(self, data: Data) -> None:
        users, items = data.liked.shape
        # float32, once in implicit's model and once copied out of it
        size = f"factors={self.factors} of {users:,} users and {items:,} items"
        check_memory(8.0 * (users + items) * self.factors, size, "lower factors")
        diverged = f"{self.name} diverged: raise regularization or lower the learning rate"
        # Copies: implicit keeps references, and may refuse read-only arrays.
        matrix = data.liked.copy() if self.weighted else binary(data.liked, np.float32).copy()
        total = int(self.get_params()["iterations"])

        def reporting(iteration: int, *more: Any) -> None:
            report(f"iteration {iteration + 1} of {total}", iteration + 1, total)
            if data.callback is not None:
                data.callback(iteration, *more)

        check_openmp(self.num_threads)
        with threadpool_limits(limits=1, user_api="blas"):
            from implicit.recommender_base import ModelFitError, RecommenderBase  # late: it is slow

            RecommenderBase.register(Ranker)
            module, name = self.model
            model = getattr(import_module(module), name)(**self.get_params())
            try:
                model.fit(matrix, show_progress=False, callback=reporting)
            except ModelFitError as error:
                raise FitError(f"{diverged} ({error})") from None
        self.user_factors_ = np.ascontiguousarray(model.user_factors, dtype=np.float32)
        self.item_factors_ = np.ascontiguousarray(model.item_factors, dtype=np.float32)
        if not (np.isfinite(self.user_factors_).all() and np.isfinite(self.item_factors_).all()):
            raise FitError(diverged)

    def _folded(self, rows: sp.csr_matrix) -> Floats:
        """Return the factors of rows of interactions, (rows, factors)."""
        raise NotImplementedError

    def _row_factors(self, rows: sp.csr_matrix, users: Users = None) -> NDArray[np.floating]:
        return self._folded(rows) if users is None else self.user_factors_[users]

    @property
    def item_factors(self) -> NDArray[np.float32] | None:
        """`item_factors_`, or None before fit, as in implicit."""
        return getattr(self, "item_factors_", None)

    @property
    def user_factors(self) -> NDArray[np.float32] | None:
        """`user_factors_`, or None before fit, as in implicit."""
        return getattr(self, "user_factors_", None)

    def _user_similarity(self, ids: Ints) -> NDArray[np.float32]:
        return cosines(self.user_factors_, ids)


@register_ranker("als")
class ALS(ImplicitFactors):
    """Weighted matrix factorization by alternating least squares (WRMF), fitted by implicit.

    Minimizes Σ_ui c_ui(p_ui − x_u·y_i)² + λ(Σ_u ‖x_u‖² + Σ_i ‖y_i‖²), where p = 1 for interactions. The
    confidence of a liked item is alpha × its value, as in implicit; of other items it is 1. Hu, Koren
    and Volinsky define C = 1 + aR: for values of 1, alpha = 1 + a. The thesis uses a = 1, so `alpha=2`.
    Sources: Hu, Koren and Volinsky 2008; Polato's thesis, (5.1), with p = 1 for all pairs by mistake.

    Parameters
    ----------
    alpha : float > 0
        Confidence of an interaction of value 1.

    Other parameters: as of `Ranker`; `regularization` is λ.
    """

    factors: int = 64
    regularization: float = 10.0
    alpha: float = 1.0
    iterations: int = 15
    random_state: int = 0
    num_threads: int = 0

    checks = Ranker.checks | {"alpha": POSITIVE}
    model = ("implicit.als", "AlternatingLeastSquares")
    weighted = True  # values above 0 are confidences
    search_space = {
        "factors": (16, 32, 64, 128),
        "regularization": ("log", 0.1, 100.0),
        "alpha": ("log", 0.5, 40.0),
    }

    def _folded(self, rows: sp.csr_matrix) -> Floats:
        """Solve (YᵀY + λI + Yᵀ(C−I)Y) x = YᵀC1 for the rows."""
        items = self.item_factors_.astype(np.float64)
        base = items.T @ items + self.regularization * np.eye(items.shape[1])
        solve = np.linalg.solve if self.regularization > 0 else _shortest_solution
        out = np.zeros((rows.shape[0], items.shape[1]))
        for u in range(rows.shape[0]):
            span = slice(rows.indptr[u], rows.indptr[u + 1])
            Y, confidence = items[rows.indices[span]], self.alpha * rows.data[span].astype(np.float64)
            if len(Y):
                gram = base + (Y.T * (confidence - 1.0)) @ Y
                out[u] = solve(gram, Y.T @ confidence)
        return out


def _shortest_solution(gram: Floats, y: Floats) -> Floats:
    """Return the solution of least norm: without a ridge there may be many."""
    return np.asarray(np.linalg.lstsq(gram, y)[0])


@register_ranker("bpr")
class BPR(ImplicitFactors):
    """Bayesian personalized ranking by stochastic steps over pairs, fitted by implicit.

    Other parameters: as of `Ranker`. Only `num_threads=1` is reproducible: updates of implicit race.
    """

    factors: int = 64
    learning_rate: float = 0.05
    regularization: float = 0.01
    iterations: int = 100
    random_state: int = 0
    num_threads: int = 1

    model = ("implicit.bpr", "BayesianPersonalizedRanking")
    folds_in = False
    search_space = {
        "factors": (16, 32, 64, 128),
        "regularization": ("log", 1e-4, 0.1),
        "learning_rate": ("log", 0.005, 0.2),
        "iterations": (30, 100, 300),
    }


@register_ranker("lmf")
class LMF(ImplicitFactors):
    """Logistic matrix factorization with sampled negatives, fitted by implicit.

    Scores x·y_i + b_i + c are log-odds of an interaction, with factors x and y and biases c and b of
    user and item. Users of the fit have fitted factors; new users, and all users in a blend, are folded
    in by maximum likelihood with fixed item factors. Source: Johnson, Logistic matrix factorization for
    implicit feedback data, 2014.

    Parameters
    ----------
    neg_prop : int ≥ 1
        Negatives sampled per liked item by popularity; implicit 0.7 limits them to factors + 2 for each
        user and item.

    Other parameters: as of `BPR`.
    """

    factors: int = 30
    learning_rate: float = 1.0
    regularization: float = 0.6
    iterations: int = 30
    neg_prop: int = 30
    random_state: int = 0
    num_threads: int = 1

    model = ("implicit.lmf", "LogisticMatrixFactorization")
    search_space = {
        "factors": (8, 16, 32),
        "regularization": ("log", 0.01, 10.0),
    }
    candidates = (Candidate("factors=8,regularization=2", most_likes=MOST_LIKES),)

    def _folded(self, rows: sp.csr_matrix) -> Floats:
        items, bias = self.item_factors_.astype(np.float64).T, self.item_factors_.shape[1] - 2
        free = np.delete(items, bias, axis=0)
        share = self.popularity_.astype(np.float64) / max(float(self.popularity_.sum()), 1e-300)
        negatives = np.minimum(np.diff(rows.indptr) * float(self.neg_prop), len(items))
        out = logistic_fold_in(
            rows, negatives, share, free, items[bias], max(float(self.regularization), LEAST_RIDGE)
        )
        out[negatives == 0] = 0.0
        return np.insert(out, bias, 1.0, axis=1)

    def _explain(self, rows: Rows, items: Items, users: Users = None) -> list[Shares]:
        """Share (1 − σ(s_i)) y_i·y_t / λ of liked item i in the score of t: a term of the optimal λx."""
        vectors = self._row_factors(rows.matrix, users)
        ridge, out = max(self.regularization, LEAST_RIDGE), []
        for vector, span, some in zip(vectors, rows.spans, items, strict=True):
            own = self.item_factors_[rows.matrix.indices[span]].astype(np.float64)
            asked = self.item_factors_[some].astype(np.float64)
            products = np.delete(asked, -2, axis=1) @ np.delete(own, -2, axis=1).T
            out.append((asked @ vector, expit(-(own @ vector)) * products / ridge))
        return out


def logistic_fold_in(
    rows: sp.csr_matrix, negatives: Floats, share: Floats, items: Floats, bias: Floats, ridge: float
) -> Floats:
    """Return argmin over x of Σ_{i liked} log(1 + e^−s_i) + n Σ_j p_j log(1 + e^s_j) + ridge/2 ‖x‖².

    s_i = x·y_i + b_i for items (factors, items); n, (rows,), are the negatives sampled in expectation,
    and p_j the share of item j in them. By Newton's method with halved steps, all rows at once.
    """
    x = np.zeros((rows.shape[0], len(items)))
    constants = (rows.indptr, rows.indices, negatives, share, np.ascontiguousarray(items), bias)
    slope, hessian = np.empty(x.shape), np.empty((*x.shape, len(items)))
    target = binary(rows) @ items.T

    def differentiate(some: Ints) -> None:
        over_rows(len(some), _derivatives, some, *constants, x, slope, hessian)
        slope[some] += ridge * x[some] - target[some]
        hessian[some] += ridge * np.eye(len(items))

    todo = np.arange(len(x))
    differentiate(todo)
    for _ in range(STEPS):
        step = -np.linalg.solve(hessian[todo], slope[todo, :, None])[:, :, 0]
        x[todo] += step
        moving = np.abs(step).max(axis=1, initial=0.0) >= ENOUGH
        todo, step, length = todo[moving], step[moving], 1.0
        if not len(todo):
            break
        before, long = (step * slope[todo]).sum(axis=1), np.arange(len(todo))
        for _ in range(HALVINGS):
            differentiate(todo[long])
            # The derivative along the step rises from below 0. Far above 0, the step was too long.
            long = np.flatnonzero((step * slope[todo]).sum(axis=1) > -0.9 * before)
            if not len(long):
                break
            length /= 2.0
            x[todo[long]] -= length * step[long]
    return x


# ---- kernels


@jit(fastmath=SUMS)
def _derivatives(first, stride, some, indptr, indices, negatives, share, items, bias, x, slope, hessian):
    """Fill the derivatives of Σ_j w_j log(1 + e^s_j), w the number of times that an item is compared."""
    d, m = items.shape
    every, s, w, part = np.empty(m), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for k in range(first, len(some), stride):
        u = some[k]
        for j in range(m):
            every[j] = negatives[u] * share[j]
        for p in range(indptr[u], indptr[u + 1]):
            every[indices[p]] += 1.0
        slope[u] = 0.0
        hessian[u] = 0.0
        for begin in range(0, m, BLOCK):
            stop = min(begin + BLOCK, m)
            n = stop - begin
            for j in range(n):
                s[j] = bias[begin + j]
            for f in range(d):
                row, own = items[f, begin:stop], x[u, f]
                for j in range(n):
                    s[j] += own * row[j]
            for j in range(n):
                likely = 1.0 / (1.0 + np.exp(-s[j]))
                w[j] = every[begin + j] * likely
                s[j] = w[j] * (1.0 - likely)
            for f in range(d):
                row, total = items[f, begin:stop], 0.0
                for j in range(n):
                    total += w[j] * row[j]
                    part[j] = s[j] * row[j]
                slope[u, f] += total
                for h in range(f + 1):
                    other, total = items[h, begin:stop], 0.0
                    for j in range(n):
                        total += part[j] * other[j]
                    hessian[u, f, h] += total
        for f in range(d):
            for h in range(f):
                hessian[u, h, f] = hessian[u, f, h]
