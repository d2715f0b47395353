"""Bilinear models and higher-order pairwise networks, by coordinate descent on each side's objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from recsys.errors import FitError, InputError
from recsys.fm.penalties import PENALTIES, Penalty
from recsys.fm.solvers.base import Shrinkage
from recsys.fm.solvers.pairs import block_of, pair_epoch
from recsys.fm.solvers.weights import check_theta, descend_on_simplex
from recsys.links.base import LINKS, Array, Index, LinkPredictor, Parts, Task, check_symmetric
from recsys.multilinear.forms import ANOVA, Compressed, Form
from recsys.multilinear.losses import LOSSES, Target, bias_step, linear_epoch, loss_names, mean_loss
from recsys.multilinear.pairs import PairTerm, make_pairs, order_products, predict_pairs
from recsys.utils.progress import report
from recsys.utils.validation import check_choice, check_integer, check_real

LOWER = ("explicit", "augment", "simplex", "inhomogeneous")
PAIR_PENALTIES = ("l2", "l1", "ti")  # whose proximal operator takes one entry at a time
LINEAR = 20.0  # times the default β: β of linear weights
REFRESH = 10  # epochs after which predictions are computed afresh


@dataclass(eq=False, repr=False)
class _Factorized(LinkPredictor):
    """Base of the predictors with multilinear terms over pairs.

    Parameters
    ----------
    n_components : int ≥ 1
        Rank k of each term.
    loss : "logistic", "squared_hinge" or "squared"
        Loss of scores against labels of −1 and 1.
    beta : float ≥ 0, optional
        Strength of β/2·(‖U‖² + ‖V‖²) relative to the mean loss, times |λ_s| if λ is learned (3.19). By
        default a tenth of the mean square of a feature over the pairs, less where features occur in many
        pairs, and twenty times as much for linear weights.
    fit_intercept : bool
    max_iter : int ≥ 1
    tol : float ≥ 0
        Stop when an epoch lowers the objective by less than this share of it.
    init_scale : float > 0
    random_state : int, RandomState or None
    symmetric : bool, optional
        Predict the mean of both directions; by default where both ends are of one kind.
    smoothing : float, 0 ≤ smoothing ≤ 1
        Share of the factors that objects known by ids alone take from those with the same neighbors.

    Attributes
    ----------
    terms_ : list of PairTerm
        `left` and `right` of shape (features, k), `weights` (λ) of shape (k,).
    theta_ : (degree,) float64 or None
        The weights of the orders that share a table.
    intercept_ : float
    history_ : list of dict
        "objective" at the start and after each epoch.
    """

    n_components: int = 30
    loss: str = "logistic"
    beta: float | None = None
    fit_intercept: bool = True
    max_iter: int = 100
    tol: float = 1e-5
    init_scale: float = 0.1
    random_state: Any = 0
    symmetric: bool | None = None
    smoothing: float = 0.5
    theta_ = None

    def check_parameters(self) -> None:
        """Refuse parameters that are out of range."""
        check_choice("loss", self.loss, loss_names(classes=True, pairwise=False))
        for name in ("n_components", "max_iter"):
            check_integer(name, getattr(self, name), 1)
        check_real("tol", self.tol, 0.0)
        check_real("smoothing", self.smoothing, 0.0, 1.0)
        if self.beta is not None:
            check_real("beta", self.beta, 0.0)
        check_real("init_scale", self.init_scale, 0.0, open_low=True)

    def _coefficients(self) -> list[list[float]]:
        """Return, for each term, the weight of A^t(a)·A^(m−t)(b), t = 0…m."""
        raise NotImplementedError

    def _theta(self) -> tuple[Any, bool]:
        """Return the first weights of the orders of the last term, and whether they are learned."""
        return None, False

    def _penalty(self, term: PairTerm) -> tuple[Penalty, float]:
        """Return a term's penalty besides the squared norms, and its strength."""
        return PENALTIES["l2"], 0.0

    def _strength(self, term: PairTerm) -> float:
        """Return the β of a term."""
        return self.beta_ * (LINEAR if self.beta is None and term.degree == 1 else 1.0)

    def _ends(self, A: sp.csr_matrix, B: sp.csr_matrix) -> tuple[sp.csr_matrix, sp.csr_matrix]:
        """Return the features of both ends as the terms take them."""
        return A, B

    def _shared(self, A: sp.csr_matrix, B: sp.csr_matrix, left: Index, right: Index) -> sp.csc_matrix:
        """Return the products of the pairs' own features that are weighted, (pairs, products)."""
        return sp.csc_matrix((len(left), 0))

    @property
    def terms_(self) -> list[PairTerm]:
        """The fitted terms, whose arrays are those of the model."""
        arrays = zip(self._coefficients(), self.lefts_, self.rights_, self.weights_, strict=True)
        terms = [PairTerm(np.array(c), *of_term) for c, *of_term in arrays]
        terms[-1] = terms[-1]._replace(theta=self.theta_)
        return terms

    def _fit(self, task: Task) -> None:
        rng = check_random_state(self.random_state)
        self.symmetric_ = check_symmetric(self.symmetric, task.A is task.B)
        self.beta_ = default_beta(task) if self.beta is None else float(self.beta)
        A, B = self._ends(task.A, task.B)
        order = np.argsort(task.left, kind="stable")
        left, right, y = task.left[order], task.right[order], task.y[order]
        pairs = make_pairs(A, B, left, right, self.symmetric_)
        shared = self._shared(A, B, left, right)
        self.shared_ = np.zeros(shared.shape[1])
        self.lefts_: list[Array] = []
        self.rights_: list[Array] = []
        self.weights_: list[Array] = []
        for c in self._coefficients():
            k, scale = (self.n_components, self.init_scale) if len(c) > 2 else (1, 0.0)
            self.lefts_.append(scale * rng.standard_normal((A.shape[1], k)))
            self.rights_.append(scale * rng.standard_normal((B.shape[1], k)))
            self.weights_.append(np.ones(k))
        self.theta_, learns_theta = self._theta()
        terms = self.terms_
        loss, ones = LOSSES.get(self.loss), np.ones(len(y))
        penalties = [self._penalty(term) for term in terms]
        shrinkages = [
            Shrinkage(self._strength(term), penalty.code, gamma)
            for term, (penalty, gamma) in zip(terms, penalties, strict=True)
        ]
        # λ is learned for even orders above 2 of products across the ends
        weighted = [t.degree > 2 and t.degree % 2 == 0 and t.coefficients[0] == 0 for t in terms]
        self.intercept_ = 0.0
        self.history_: list[dict[str, float]] = []
        pred = self._predict(A, B, left, right)
        last = self._objective(Target(y, pred, loss.code, loss.curvature, ones))
        self.history_.append({"objective": last})
        for step in range(1, self.max_iter + 1):
            report(f"epoch {step}", step - 1, self.max_iter)
            target = Target(y, pred, loss.code, loss.curvature, ones)
            if self.fit_intercept:
                self.intercept_ += bias_step(target)
            if len(self.shared_):
                every = np.arange(len(self.shared_))
                linear_epoch(every, Compressed.of(shared), target, self.shared_, self.beta_)
            pair_epoch(pairs, terms, target, shrinkages, weighted, None, block=block_of(step))
            if learns_theta:
                orders = order_products(terms[-1], pairs, None)
                descend_on_simplex(orders, self.theta_, target)
            if step % REFRESH == 0:
                pred = self._predict(A, B, left, right)
            objective = self._objective(target._replace(pred=pred))
            if not np.isfinite(objective):
                raise FitError(
                    f"the objective is {objective} after {step} epochs: scale the features, or raise "
                    f"beta (now {self.beta_:g})"
                )
            self.history_.append({"objective": objective})
            if last - objective <= self.tol * max(abs(last), 1e-12):
                break
            last = objective
        by_id = (len(np.unique(X.indices)) == X.nnz == X.shape[0] for X in (task.A, task.B))
        if self.smoothing > 0 and all(by_id):
            self._smooth(task)

    def _smooth(self, task: Task) -> None:
        """Mix the factors of each object with those of its neighbors' neighbors, by degrees."""
        links = np.column_stack([task.left, task.right])[task.y > 0]
        if task.A is task.B:
            links = np.concatenate([links, links[:, ::-1]])
        rows, columns = np.unique(links, axis=0).T
        shape = task.A.shape[0], task.B.shape[0]
        degrees = [np.bincount(ids, minlength=n) for ids, n in zip((rows, columns), shape, strict=True)]
        N = sp.csr_matrix(
            (1.0 / np.sqrt(degrees[0][rows] * degrees[1][columns]), (rows, columns)), shape
        )
        for c, left, right in zip(self._coefficients(), self.lefts_, self.rights_, strict=True):
            for P, X, step in ((left, task.A, N), (right, task.B, N.T)) if len(c) > 2 else ():
                own = P[X.indices]
                P[X.indices] += self.smoothing * (step @ (step.T @ own) - own)

    def _objective(self, target: Target) -> float:
        value = mean_loss(target) + 0.5 * self.beta_ * float(self.shared_ @ self.shared_)
        for term in self.terms_:
            P = np.concatenate([term.left, term.right])
            value += 0.5 * self._strength(term) * float((P**2).sum(axis=0) @ np.abs(term.weights))
            penalty, gamma = self._penalty(term)
            value += gamma * penalty.value(Form(ANOVA, term.degree, 1), P)
        return value

    def _score(self, A: sp.csr_matrix, B: sp.csr_matrix, left: Index, right: Index) -> Array:
        return self._predict(*self._ends(A, B), left, right)

    def _predict(self, A: sp.csr_matrix, B: sp.csr_matrix, left: Index, right: Index) -> Array:
        terms = predict_pairs(self.terms_, A, B, left, right, self.symmetric_)
        return np.asarray(self.intercept_ + terms + self._shared(A, B, left, right) @ self.shared_)

    def parts(self, a: sp.csr_matrix, b: sp.csr_matrix) -> Parts:
        """Return the parts of the score of two rows."""
        n, m = a.nnz, b.nnz
        a, b = self._ends(a, b)
        pairs, alone = np.zeros((a.nnz, b.nnz)), np.zeros(2)
        for term in self.terms_:
            ways = [(term.left, term.right, 1)]
            if self.symmetric_:
                ways.append((term.right, term.left, -1))
            for p, q, direction in ways:
                z, w = p[a.indices] * a.data[:, None], q[b.indices] * b.data[:, None]
                for c in term.by_order():
                    add_shares(c[::direction] / len(ways), term.weights, z, w, pairs, alone)
        # what follows the features are ones: a pair with a one is the other feature's alone
        return Parts(
            float(self.intercept_ + pairs[n:, m:].sum()),
            float(alone[0] + pairs[:n, m:].sum()),
            float(alone[1] + pairs[n:, :m].sum()),
            pairs[:n, :m],
        )


def default_beta(task: Task) -> float:
    """Return a share of the mean square of a feature over the pairs.

    The share falls with the root of the pairs that a feature occurs in, as the noise of their mean does.
    """
    A, B, pairs = task.A, task.B, len(task.y)
    squares = [X.multiply(X).sum(axis=1)[rows].sum() for X, rows in ((A, task.left), (B, task.right))]
    features = max(len(np.unique(A.indices)) + (0 if A is B else len(np.unique(B.indices))), 1)
    share = min(0.1, 0.5 * np.sqrt(features / (2 * pairs)))
    return float(share * sum(squares) / (features * pairs))


def add_shares(c: Array, weights: Array, z: Array, w: Array, pairs: Array, alone: Array) -> None:
    """Add the contributions of a multilinear term to pairs of features and to each end.

    A product of r features of one end and m − r of the other is shared equally by its r(m − r) pairs of
    features across the ends; one of features of one end only is that end's. c[t] weighs products of t
    features of the left end; z and w, (features, k), are the factors times the features' values.
    """
    m = len(c) - 1
    left, right = _orders_without(z, m), _orders_without(w, m)
    for t in range(1, m):
        per = weights * c[t] / (t * (m - t))
        pairs += (z * left[t - 1] * per) @ (w * right[m - t - 1]).T
    # A^m = Σ_j z_j·A^(m−1) without j, over m
    alone[0] += c[m] / m * float((z * left[m - 1]).sum(axis=0) @ weights)
    alone[1] += c[0] / m * float((w * right[m - 1]).sum(axis=0) @ weights)


def _orders_without(z: Array, m: int) -> list[Array]:
    """Return A^0…A^(m−1) of all features but one, (features, k) each: a row is the one left out.

    By products from both sides, not by taking one away: that loses digits.
    """

    def of_those_before(z: Array) -> Array:
        tables = np.zeros((len(z) + 1, m, z.shape[1]))
        tables[0, 0] = 1.0
        for j, row in enumerate(z):
            tables[j + 1] = tables[j]
            tables[j + 1, 1:] += row * tables[j, :-1]
        return tables[:-1]

    before, after = of_those_before(z), of_those_before(z[::-1])[::-1]
    return [np.sum([before[:, r] * after[:, t - r] for r in range(t + 1)], axis=0) for t in range(m)]


@LINKS.add("pairnet")
@dataclass(eq=False, repr=False)
class PairNet(_Factorized):
    """Feature interactions across two objects, of order 2 to `degree` (HOPairNet above 2).

    ŷ = b + Σ_t Σ_s λ_s Σ_{r=1}^{t−1} A^r(u_s, a)·A^(t−r)(v_s, b); λ is learned for even orders above 2
    under (3.19), and 1 elsewhere (Lemma 3.1).

    Parameters
    ----------
    degree : int ≥ 2
    similarity : bool
        Whether to add ρ⟨a, b⟩ + Σ_j r_j a_j b_j for ends with the same features, which a low-rank UVᵀ
        cannot represent.

    Other parameters: as in `_Factorized`.

    Notes
    -----
    Source: Atarashi's thesis, (3.10), (3.19), 3.3.4, (3.22).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A, B = rng.normal(size=(30, 4)), rng.normal(size=(20, 3))
    >>> pairs = np.column_stack([rng.integers(0, 30, 400), rng.integers(0, 20, 400)])
    >>> y = A[pairs[:, 0], 0] * B[pairs[:, 1], 1] > 0
    >>> model = PairNet(n_components=3, max_iter=30).fit(A, B, pairs[:300], y[:300])
    >>> model.score(A, B, pairs[300:], y[300:]) > 0.9
    True
    """

    degree: int = 2
    similarity: bool = False

    def check_parameters(self) -> None:
        """Refuse parameters that are out of range."""
        check_integer("degree", self.degree, 2, 10)
        super().check_parameters()

    def _coefficients(self) -> list[list[float]]:
        return [[0.0, *[1.0] * (t - 1), 0.0] for t in range(2, self.degree + 1)]

    def _shared(self, A: sp.csr_matrix, B: sp.csr_matrix, left: Index, right: Index) -> sp.csc_matrix:
        if not self.similarity:
            return super()._shared(A, B, left, right)
        if A.shape[1] != B.shape[1]:
            raise InputError(
                f"similarity=True needs the same features at both ends, not {A.shape[1]} and "
                f"{B.shape[1]}"
            )
        both = A[left].multiply(B[right])
        return sp.csc_matrix(sp.hstack([both, sp.csr_matrix(both.sum(axis=1))]))

    def parts(self, a: sp.csr_matrix, b: sp.csr_matrix) -> Parts:
        """Return the parts of the score of two rows."""
        parts = super().parts(a, b)
        if self.similarity:
            both, i, j = np.intersect1d(a.indices, b.indices, assume_unique=True, return_indices=True)
            parts.pairs[i, j] += (self.shared_[both] + self.shared_[-1]) * a.data[i] * b.data[j]
        return parts


@LINKS.add("bilinear")
@dataclass(eq=False, repr=False)
class FactorizedBilinear(_Factorized):
    """The factorized bilinear model ŷ = b + aᵀUVᵀb for classes: the PairNet of order 2 (Lemma 3.2).

    Other parameters: as in `_Factorized`.
    """

    def _coefficients(self) -> list[list[float]]:
        return [[0.0, 1.0, 0.0]]


@LINKS.add("low-rank-bilinear")
@dataclass(eq=False, repr=False)
class LowRankBilinear(FactorizedBilinear):
    """The factorized bilinear model as a classifier under the squared loss, of labels −1 and 1.

    Other parameters: as in `_Factorized`.

    Notes
    -----
    Source: Blondel et al. 2016, 6.1, "low-rank bilinear regression" on the labels of links.
    """

    loss: str = "squared"
    symmetric: bool | None = False
    smoothing: float = 0.0


@LINKS.add("fm")
@dataclass(eq=False, repr=False)
class PairFactorizationMachine(_Factorized):
    """A factorization machine of any order on the concatenated features of both ends.

    The concatenation is never formed: K^m(a⊕b) = Σ_t K^t(a)·K^(m−t)(b).

    Parameters
    ----------
    degree : int ≥ 2
    fit_linear : bool
    fit_lower : "explicit", "augment", "simplex", "inhomogeneous" or None
        "explicit": lower orders have their own factors. "augment": degree − 1 columns of ones at the
        left end (at both ends if `symmetric`) add lower orders with shared factors. "simplex" and
        "inhomogeneous": all orders share factors, with weights θ that are learned on the simplex or
        fixed. None: no lower orders.
    theta : sequence of `degree` floats, optional
        θ_t of A^t, t = 1…degree, under "inhomogeneous"; 1 each by default.
    penalty : "l2", "l1" or "ti"
        Penalty of the factors of orders 2 to `degree`: none beside the squared norms, the ℓ1 norm, or
        TI, which bounds the ℓ1 norm of the interactions.
    gamma : float ≥ 0
        Regularization strength.

    Other parameters: as in `_Factorized`.

    Notes
    -----
    Source: Blondel et al. 2016, (4), (17)–(20) and 6.1, where `symmetric` is False; the
    penalties, Atarashi et al. 2021, 3.3.
    """

    degree: int = 2
    fit_linear: bool = True
    fit_lower: str | None = "explicit"
    theta: Any = None
    penalty: str = "l2"
    gamma: float = 1e-4

    def check_parameters(self) -> None:
        """Refuse parameters that are out of range."""
        check_integer("degree", self.degree, 2, 10)
        check_choice("penalty", self.penalty, PAIR_PENALTIES)
        check_real("gamma", self.gamma, 0.0)
        if self.fit_lower is not None:
            check_choice("fit_lower", self.fit_lower, LOWER)
        if self.theta is not None:
            check_theta(self.theta, self.degree, self.fit_lower)
        if self.penalty != "l2" and self.fit_lower not in ("explicit", None):
            raise InputError(f"penalty={self.penalty!r} needs fit_lower='explicit' or None")
        super().check_parameters()

    def _theta(self) -> tuple[Any, bool]:
        if self.fit_lower == "simplex":
            return np.full(self.degree, 1.0 / self.degree), True
        if self.fit_lower == "inhomogeneous":
            return np.array([1.0] * self.degree if self.theta is None else self.theta, float), False
        return None, False

    def _penalty(self, term: PairTerm) -> tuple[Penalty, float]:
        if term.degree == 1:
            return super()._penalty(term)
        return PENALTIES[self.penalty], float(self.gamma)

    def _coefficients(self) -> list[list[float]]:
        if self.fit_lower == "augment":
            return [[1.0] * (self.degree + 1)]
        orders = list(range(2, self.degree + 1)) if self.fit_lower == "explicit" else [self.degree]
        return [[1.0] * (t + 1) for t in ([1, *orders] if self.fit_linear else orders)]

    def _ends(self, A: sp.csr_matrix, B: sp.csr_matrix) -> tuple[sp.csr_matrix, sp.csr_matrix]:
        if self.fit_lower != "augment":
            return A, B
        wide = self._with_ones(A)
        if not self.symmetric_:
            return wide, B
        return wide, wide if A is B else self._with_ones(B)

    def _with_ones(self, X: sp.csr_matrix) -> sp.csr_matrix:
        return sp.csr_matrix(sp.hstack([X, np.ones((X.shape[0], self.degree - 1))]))
