"""Collaborative filtering by optimizing the margin distribution: CF-OMD, ECF-OMD and CF-KOMD.

Each user has a quadratic program over a simplex, whose weights α say how much each liked item counts.
Sources: Polato's thesis, 5.2 (CF-OMD), 10.1 (ECF-OMD) and 10.2 (CF-KOMD).
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import borrowed, jit, over_rows
from recsys.errors import InputError
from recsys.kernels import Kernel, MonotoneDisjunctiveKernel, make_kernel
from recsys.kernels.base import KERNELS
from recsys.kernels.item_gram import (
    CountedGram,
    DenseGram,
    SparseGram,
    class_levels,
    dense_counts,
    number_of_pairs,
    sparse_counts,
)
from recsys.optim.simplex_qp import TOLERANCE, WORK, product, solve_face, solve_simplex
from recsys.rankers.base import (
    DENSE_ITEMS,
    LARGE,
    MEDIUM,
    SMALL,
    Candidate,
    Data,
    Lists,
    Ranker,
    Rows,
    Shares,
)
from recsys.rankers.protocol import Floats, Ints, Items, Users, one_of, real, recency_weights
from recsys.rankers.registry import register_ranker
from recsys.rankers.scoring import Background, best_sums, sparse_sums, weighted_rows
from recsys.registry import check_parameters
from recsys.utils.resources import check_memory, free_memory
from recsys.utils.sparse import entries_of, row_votes
from recsys.utils.validation import clean_matrix

Gram = DenseGram | SparseGram | CountedGram

LEAST_WEIGHT = 1e-12  # of an interaction: a larger ridge would leave no digits to certify
LOOSEST = 100 * TOLERANCE  # residual of a program that is reported
LONG = 2_500  # liked items beyond which a program is solved on a working set
WORKING_SET = 300
ROUNDS = 100
PAIR_BYTES = 12  # of a pair of items while the sparse matrix is made
MODEST = 1_000_000_000  # bytes of a matrix that are not worth saving
TIMES_DATA = 4  # beyond, it takes at most so many times what the interactions take
SINKS = 10  # degree of md from which items without users get the mean score


class KernelRanker(Ranker):
    """Base of the rankers with a kernel of items. A file stores the Gram matrix or the interactions."""

    gram_: Any  # normalized kernel of the items, an array or CSR; if CSR, minus `table_`
    table_: Floats  # kernel of items without a common user, by popularity class
    classes_: NDArray[np.int32]
    rows_: sp.csr_matrix  # the interactions, instead of a matrix that exceeds the memory limit
    row_sums_: Floats
    offsets_: Floats | None = None  # t if the matrix is centered to K − tᵢ − tⱼ
    regularization: float
    recency: float = 0.0
    votes: float = 0.0
    _counted: CountedGram | None = None
    _by_sum: Ints | None = None  # items by row sum

    uses = frozenset({"times"})

    def _kernel(self) -> Kernel:
        return make_kernel("linear")

    def reads_times(self) -> bool:
        """Return whether the ridges depend on the ages of interactions."""
        return self.recency > 0 and self.regularization > 0

    def _ridges(self, rows: Rows) -> Floats:
        """Return the ridge of each interaction, λ_p/ω with ω = (newer interactions + 1)^−recency."""
        ridge = np.full(rows.matrix.nnz, float(self.regularization))
        if self.reads_times():
            omega = recency_weights(rows, float(self.recency))
            ridge /= np.maximum(omega, LEAST_WEIGHT)
        return ridge

    def _fit(self, data: Data) -> None:
        liked, (n, m) = data.liked, data.liked.shape
        self._kernel().check_width(n)
        votes = row_votes(liked, float(self.votes)) if self.votes else None
        limit = min(free_memory() // 4, max(TIMES_DATA * 8 * (liked.nnz + n), MODEST))
        if m <= DENSE_ITEMS and votes is None:
            check_memory(4 * m * m, f"the item × item matrix of {m:,} items")
            self._fit_counts(dense_counts(liked), n)
        elif m <= DENSE_ITEMS or PAIR_BYTES * number_of_pairs(liked) <= limit:
            self._fit_counts(sparse_counts(liked, votes), n)
        else:
            self._keep(CountedGram(liked, self._kernel(), votes))

    def _fit_counts(self, counts: Any, n_users: int) -> None:
        """Fit on the co-occurrences of items, XᵀX with the users of each item on its diagonal."""
        items = counts.shape[0]
        if items <= DENSE_ITEMS:
            array = counts.toarray() if sp.issparse(counts) else counts
            self._keep(DenseGram.of_counts(self._kernel(), array, n_users))
        else:
            self._keep(SparseGram.of_counts(self._kernel(), counts, n_users))

    def _keep(self, gram: Gram) -> None:
        self.row_sums_, self.offsets_ = gram.row_sums, gram.offsets
        self._counted = self._by_sum = None
        vars(self).pop("rows_", None)  # of a fit before one on counts
        if isinstance(gram, DenseGram):
            self.gram_ = gram.K
        elif isinstance(gram, SparseGram):
            self.gram_, self.table_, self.classes_ = gram.values, gram.table, gram.classes
        else:
            self.rows_, self._counted = gram.user_items, gram

    @property
    def _gram(self) -> Gram:
        if "rows_" in vars(self):
            if self._counted is None:
                votes = row_votes(self.rows_, float(self.votes)) if self.votes else None
                self._counted = CountedGram(self.rows_, self._kernel(), votes)
            return self._counted
        if isinstance(self.gram_, np.ndarray):
            return DenseGram(self.gram_, self.row_sums_, self.offsets_)
        return SparseGram(self.gram_, self.table_, self.classes_, self.row_sums_, self.offsets_)

    def weights(self, user_items: Any, times: Any = None) -> tuple[Any, Floats]:
        """Return the weights α of rows, (users, items), and how far each program is from its optimum.

        Of `cf-omd` they are an array with the weights of other items below 0, and each side sums to 1 in
        magnitude; of the others a CSR on the pattern of the liked items.
        """
        self._check_fitted()
        X = clean_matrix(user_items, n_items=self.n_items_)
        alpha, residuals = self._solve(Rows(X, self._times_of_rows(None, X, times)))
        return (entries_of(X, alpha) if alpha.ndim == 1 else alpha), residuals

    def _solve(self, rows: Rows) -> tuple[Floats, Floats]:
        raise NotImplementedError

    def _item_similarity(self, ids: Ints) -> NDArray[Any]:
        rows, t = self._gram.similar(ids), self.offsets_
        # Offsets are added in float64, whose digits order what float32 would tie.
        return rows if t is None else rows + t[ids][:, None] + t


class MarginRanker(KernelRanker):
    """Base of the rankers with a small program per user over the liked items.

    With a centered kernel K' = K − tᵢ − tⱼ, the scores of a user change by a constant: Σ αᵢtᵢ minus the
    mean of t over the items that q averages; top scores keep their precision.
    """

    q: str = "exact"
    unrated: str | None = "kernel"

    def _imputes(self) -> bool:
        """Return whether an item without users scores as the mean of the others."""
        return self.unrated == "mean"

    def _solve(self, rows: Rows) -> tuple[Floats, Floats]:
        X, gram, exact = rows.matrix, self._gram, self.q == "exact"
        m, lengths, ridges = self.n_items_, np.diff(X.indptr), self._ridges(rows)
        # q of a user who has every item: 0, less what centering took from the kernel.
        q_all = np.zeros(m) if self.offsets_ is None else -self.offsets_
        alpha, residuals = np.zeros(X.nnz), np.where(lengths > 0, np.inf, 0.0)
        work = 200_000 * len(lengths) + 10 * int(np.square(lengths, dtype=np.int64).sum())  # in NumPy
        if not isinstance(gram, CountedGram) and not _programs.small(work):
            users = np.flatnonzero((lengths > 0) & (lengths <= LONG))
            users = users[np.argsort(-lengths[users], kind="stable")]  # each thread gets long and short
            items = X.indices.view(np.uint32)  # unsigned, so that indexing has no sign to test
            programs = (users, X.indptr, items, self.row_sums_, q_all, ridges)
            options = (exact, TOLERANCE)
            over_rows(len(users), _programs, _arrays(gram), programs, *options, alpha, residuals)
        for u in np.flatnonzero(residuals > TOLERANCE):
            span = slice(X.indptr[u], X.indptr[u + 1])
            items, n = X.indices[span], lengths[u]
            long = n > (min(LONG, 2 * WORKING_SET) if isinstance(gram, CountedGram) else LONG)
            K = None if long else gram.block(items)
            if not exact:
                q = self.row_sums_[items] / m
            elif n < m:
                inside = _products(gram, items, items, np.ones(n)) if K is None else K.sum(axis=0)
                q = (self.row_sums_[items] - inside) / (m - n)
            else:
                q = q_all[items]
            if K is None:
                alpha[span], residuals[u] = _on_working_set(gram, items, q, ridges[span])
            else:
                start = 1.0 / np.maximum(ridges[span], LEAST_WEIGHT)  # where a large ridge leads
                solution = solve_simplex(K, q, ridge=ridges[span], start=start / start.sum())
                alpha[span], residuals[u] = solution.weights, solution.residual
        _warn_of(residuals)
        return alpha, residuals

    def _scores(self, rows: Rows, users: Users = None) -> NDArray[np.floating]:
        X, gram = rows.matrix, self._gram
        alpha, share = self._weights_and_share(rows)
        if isinstance(gram, DenseGram):
            out = weighted_rows(X, alpha, gram.K, self.row_sums_, share)
        elif isinstance(gram, SparseGram):
            out = sparse_sums(X, alpha, gram.values, self._background(gram, alpha, share, X))
        elif gram.has_room(X):
            near, far, matrix, levels = gram.terms(entries_of(X, alpha))
            out = weighted_rows(near, near.data, gram.rows)
            more = Background(levels, gram.of.classes, self.row_sums_, share)
            sparse_sums(far, far.data, matrix, more, out)
        else:
            out = gram.scores(entries_of(X, alpha)) - share[:, None] * self.row_sums_
            out = out.astype(gram.rows.dtype)
        if self.offsets_ is not None and (share == 0).any():  # no q to center with
            out[share == 0] += self.offsets_
        known = self.popularity_ > 0
        if self._imputes() and not known.all():
            out[:, ~known] = out[:, known].mean(axis=1, dtype=np.float64)[:, None]
        return out

    def _best(self, rows: Rows, N: int, skip_liked: bool, mask: NDArray[np.uint8]) -> Lists | None:
        X, gram = rows.matrix, self._gram
        if not isinstance(gram, SparseGram) or gram.values.dtype != np.float32:
            return None
        if self._imputes() and not self.popularity_.all():
            return None
        if self.offsets_ is not None and not self._share(np.diff(X.indptr)).all():  # as in `_scores`
            return None
        alpha, share = self._weights_and_share(rows)
        if self._by_sum is None:
            self._by_sum = np.argsort(self.row_sums_, kind="stable")
        more = self._background(gram, alpha, share, X)
        return best_sums(X, alpha, gram.values, N, skip_liked, mask, more, self._by_sum)

    def _weights_and_share(self, rows: Rows) -> tuple[Floats, Floats]:
        """Return the weights of the rows of K, and the share of the row sums, in each user's scores."""
        lengths = np.diff(rows.matrix.indptr)
        alpha, share = self._solve(rows)[0], self._share(lengths)
        if self.q == "exact":  # q needs the rows that the weights need: one pass serves both
            alpha = alpha + np.repeat(share, lengths)
        return alpha, share

    def _background(self, gram: SparseGram, alpha: Floats, share: Floats, X: Any) -> Background:
        levels = class_levels(entries_of(X, alpha), gram.table, gram.classes)
        return Background(levels, gram.classes, self.row_sums_, share)

    def _share(self, lengths: NDArray[Any]) -> Floats:
        """Return one over the number of items that q averages; 0 without any."""
        others = self.n_items_ - (lengths if self.q == "exact" else 0 * lengths)
        return np.divide(1.0, others, out=np.zeros(len(lengths)), where=others > 0)

    def _explain(self, rows: Rows, items: Items, users: Users = None) -> list[Shares]:
        """Share αᵢ(Kᵢⱼ − qⱼ) of liked item i in the score of each item j, α held fixed."""
        alpha, gram, exact, t = self._solve(rows)[0], self._gram, self.q == "exact", self.offsets_
        averages, out = self._share(np.diff(rows.matrix.indptr)), []
        for k, (span, some, share) in enumerate(zip(rows.spans, items, averages, strict=True)):
            liked = rows.matrix.indices[span]
            similarity = gram.block(liked, some).T
            q = (self.row_sums_[some] - (similarity.sum(axis=1) if exact else 0.0)) * share
            if t is not None and share == 0:
                q -= t[some]
            scores = (similarity - q[:, None]) @ alpha[span]
            if t is not None:  # the shares are those of K itself; what centering took is the bias
                similarity += t[liked] - (t.sum() - (t[liked].sum() if exact else 0.0)) * share
            shares, cold = alpha[span] * (similarity - q[:, None]), self.popularity_[some] == 0
            if self._imputes() and cold.any():
                scores[cold], shares[cold] = self._scores(rows.part(k, k + 1))[0, some[cold]], 0.0
            out.append((scores, shares))
        return out


@register_ranker("ecf-omd")
class ECFOMD(MarginRanker):
    """Efficient CF-OMD: the normalized linear kernel and the exact q (10.1), CF-OMD with λ_n = ∞.

    Other parameters: as of `CFKOMD`.
    """

    regularization: float = 0.1
    recency: float = 0.0

    search_space = {
        "regularization": ("log", 1e-3, 10.0),
        "recency": ("real", 0.0, 2.0, "times"),
    }


@register_ranker("cf-komd")
class CFKOMD(MarginRanker):
    """Kernelized CF-OMD: one small quadratic program per user, on the liked items' kernel.

    The kernel has a unit diagonal. If values of `md` are close to 1, it is centered on an item of all
    users, and scores are differences from the score of that item.

    Parameters
    ----------
    kernel : str or Kernel
        Name of a kernel, one of `recsys.kernels.list_kernels()`, or a kernel object.
    degree : int ≥ 1, optional
        Degree of a kernel with one degree; by default that of the kernel.
    regularization : float ≥ 0
        Ridge on the weights of a user's program, λ_p of (10.2).
    q : "exact" or "mean"
        Items of the negative centroid: those not liked (10.3), or all (10.5), which is slightly faster
        with an error of at most 2·(liked items)/(items).
    recency : float ≥ 0
        With times, interaction i has the ridge λ_p/ωᵢ with ωᵢ = (newer ones of the user + 1)^−recency.
    unrated : "kernel" or "mean", optional
        Score of an item without users: (10.4) of its null vector ("kernel"), or the mean score of the
        other items ("mean"). The default is "mean" for `md` from degree 10 on, where the null vector
        ranks last, and "kernel" otherwise.
    kernel_params : dict, optional
        Further parameters of the kernel.

    Other parameters: as of `Ranker`; `votes` needs the linear kernel.
    """

    kernel: Any = "linear"
    degree: int | None = None
    regularization: float = 0.01
    q: str = "exact"
    unrated: str | None = None
    votes: float = 0.0
    recency: float = 0.0
    kernel_params: dict[str, Any] | None = None

    checks = Ranker.checks | {
        "q": one_of("exact", "mean"),
        "unrated": one_of("kernel", "mean"),
    }
    offered = ("kernel=md,degree=2", "kernel=mc,degree=2")
    search_space = {
        "kernel": ("linear", "hp", "tanimoto", "mc", "md"),
        "degree": (2, 3, 5, 10, 30, 100, 300),
        "regularization": ("log", 1e-3, 10.0),
        "recency": ("real", 0.0, 2.0, "times"),
        "unrated": ("kernel", "mean"),
    }
    searched_where = {
        "degree": ("kernel", ("mc", "md")),
    }
    candidates = (
        Candidate("regularization=1", SMALL),
        Candidate("votes=1"),
        Candidate("kernel=hp,regularization=1", SMALL),
        Candidate("kernel=mc,degree=2,regularization=5", MEDIUM),
        Candidate("kernel=md,degree=100", SMALL),
        Candidate("kernel=md,degree=300", LARGE, most_likes=300_000),
        Candidate("regularization=0.3,recency=1", timed=True),
        Candidate("kernel=mc,degree=2,regularization=0.3,recency=1", SMALL, timed=True),
        Candidate("kernel=hp,regularization=0.3,recency=1", SMALL, timed=True),
    )

    @classmethod
    def arrange(cls, params: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of the constructor, with kernel parameters in `kernel_params`."""
        own = [f.name for f in dataclasses.fields(cls)]
        kernel = params.get("kernel", cls.kernel)
        kind = KERNELS.get(kernel) if isinstance(kernel, str) else Kernel
        its = [f.name for f in dataclasses.fields(kind) if f.name not in own]
        check_parameters(f"ranker {cls.name!r}", params, [*own, *its])
        inner = {key: params[key] for key in params if key in its}
        out = {key: value for key, value in params.items() if key not in inner}
        if inner:
            out["kernel_params"] = (out.get("kernel_params") or {}) | inner
        return out

    def _kernel(self) -> Kernel:
        params = {} if self.degree is None else {"degree": self.degree}
        params |= self.kernel_params or {}
        if isinstance(self.kernel, str):
            return make_kernel(self.kernel, **params)
        if not isinstance(self.kernel, Kernel) or params:
            raise InputError(
                f"kernel must be a name with its parameters, or a Kernel, not {self.kernel!r}"
            )
        return self.kernel

    def _saved_params(self) -> dict[str, Any]:
        params = super()._saved_params()
        if isinstance(self.kernel, str):
            return params
        names = [name for name in KERNELS.names() if KERNELS.get(name) is type(self.kernel)]
        if not names:
            raise InputError(f"a file cannot keep {self.kernel!r}: use register_kernel for its class")
        return params | {"kernel": names[0], "kernel_params": dataclasses.asdict(self.kernel)}

    def _imputes(self) -> bool:
        kernel = self._kernel()
        if self.unrated is None and isinstance(kernel, MonotoneDisjunctiveKernel):
            return int(kernel.degree) >= SINKS
        return super()._imputes()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.votes and self.kernel not in ("linear", "ml"):
            raise InputError(f"votes weigh the linear kernel only, not {self.kernel}")
        self._kernel()


@register_ranker("cf-omd")
class CFOMD(KernelRanker):
    """CF-OMD: the full program over liked and other items of every user (5.7), quadratic in the items.

    Parameters
    ----------
    negative_regularization : float ≥ 0
        λ_n, on the other items; larger values are closer to ECF-OMD.

    Other parameters: as of `CFKOMD`, for the liked items.
    """

    regularization: float = 0.1
    negative_regularization: float = 1000.0
    recency: float = 0.0

    checks = Ranker.checks | {"negative_regularization": real()}
    offered = ()  # its fit is too long for a page
    search_space = {
        "regularization": ("log", 1e-3, 10.0),
        "recency": ("real", 0.0, 2.0, "times"),
        "negative_regularization": ("log", 1.0, 1e5),
    }

    def _fit(self, data: Data) -> None:
        liked, m = data.liked, data.liked.shape[1]
        check_memory(12 * m * m, f"the programs over {m:,} items")
        self._keep(DenseGram.of_counts(self._kernel(), dense_counts(liked), liked.shape[0]))

    def _solve(self, rows: Rows) -> tuple[Floats, Floats]:
        X, (users, m) = rows.matrix, rows.matrix.shape
        signed, residuals, ridges = np.zeros((users, m)), np.zeros(users), self._ridges(rows)
        K = self.gram_.astype(np.float64)
        for u in np.flatnonzero(np.diff(X.indptr)):
            span = slice(X.indptr[u], X.indptr[u + 1])
            sign, ridge = np.full(m, -1.0), np.full(m, float(self.negative_regularization))
            sign[X.indices[span]], ridge[X.indices[span]] = 1.0, ridges[span]
            solution = solve_simplex(K, sign=sign, ridge=ridge)
            signed[u], residuals[u] = sign * solution.weights, solution.residual
        _warn_of(residuals)
        return signed, residuals

    def _scores(self, rows: Rows, users: Users = None) -> NDArray[np.floating]:
        return (self._solve(rows)[0] @ self.gram_).astype(np.float32)

    def _explain(self, rows: Rows, items: Items, users: Users = None) -> list[Shares]:
        """Share αᵢ(Kᵢⱼ − Σₙ αₙKₙⱼ) of liked item i, n over the items not liked."""
        out = []
        for signed, span, some in zip(self._solve(rows)[0], rows.spans, items, strict=True):
            liked, columns = rows.matrix.indices[span], self.gram_[:, some].astype(np.float64)
            negative = -(np.minimum(signed, 0.0) @ columns)
            out.append((signed @ columns, signed[liked] * (columns[liked] - negative).T))
        return out


def _warn_of(residuals: Floats) -> None:
    """Warn where a program did not come to its end."""
    if residuals.max(initial=0.0) > LOOSEST:
        from sklearn.exceptions import ConvergenceWarning  # late: it takes half a second

        text = f"a program stopped at residual {residuals.max():.1e}: raise regularization"
        warnings.warn(text, ConvergenceWarning, stacklevel=2)


def _arrays(gram: DenseGram | SparseGram) -> tuple[Any, ...]:
    """Return a Gram matrix for `_programs`: an array, and those of its sparse form; one is empty."""
    if isinstance(gram, DenseGram):
        ptr, classes = np.zeros(1, np.int32), np.zeros(0, np.int32)
        return gram.K, ptr, classes, gram.K[0, :0], np.zeros((0, 0)), classes
    K = gram.values
    return np.zeros((0, 0), K.dtype), K.indptr, K.indices, K.data, gram.table, gram.classes


def _products(
    gram: Gram, items: NDArray[np.int32], others: NDArray[np.int32], weights: Floats
) -> Floats:
    """Return Σ_j weights[j]·K[i, others[j]] for some items i."""
    order = np.argsort(others)
    row = sp.csr_matrix((weights[order], others[order], [0, len(others)]), (1, len(gram.row_sums)))
    return gram.scores(row, items)[0]


def _on_working_set(
    gram: Gram, items: NDArray[np.int32], q: Floats, ridge: Floats
) -> tuple[Floats, float]:
    """Solve the program of a long profile, whose solution is sparse; return weights and the residual.

    A program over few items is solved; items whose gradients violate the optimality conditions join it,
    those of weight 0 leave, until none violates them.
    """
    alpha = np.zeros(len(items))
    work = np.argsort(-q, kind="stable")[:WORKING_SET]
    alpha[work] = 1.0 / len(work)
    K = gram.block(items[work])
    residual = np.inf
    for _ in range(ROUNDS):
        n, a = len(work), alpha[work]
        space = np.empty(n), np.empty(n, np.uint32), np.empty((n, n)), np.empty((WORK, n))
        # A fifth of the tolerance is left for the others.
        if solve_face(K, n, q[work], ridge[work], a, *space, 0.2 * TOLERANCE) > TOLERANCE:
            a = solve_simplex(K, q[work], ridge=ridge[work], tol=0.2 * TOLERANCE, start=a).weights
        alpha[work] = a
        g = _products(gram, items, items[work], a) + ridge * alpha - q
        held = alpha > 0
        residual = float(g[held].max() - g.min())
        outside = np.ones(len(items), dtype=np.bool_)
        outside[work] = False
        violators = np.flatnonzero(outside & (g < g @ alpha - 0.5 * TOLERANCE))
        if residual <= TOLERANCE or len(violators) == 0:
            break
        most = max(WORKING_SET, int(held.sum()))
        new = violators[np.argsort(g[violators], kind="stable")][:most]
        kept = alpha[work] > 0
        cross = gram.block(items[work[kept]], items[new])
        K = np.block([[K[np.ix_(kept, kept)], cross], [cross.T, gram.block(items[new])]])
        work = np.concatenate([work[kept], new])
    return alpha, residual


# ---- kernels


@jit
def _programs(first, stride, matrix, programs, exact, tol, alpha, residuals):
    """Solve the programs of some users from the lower triangles of their liked items' blocks."""
    gram, ptr, others, data, table, classes = borrowed(matrix)
    users, indptr, indices, row_sums, q_all, ridges = borrowed(programs)
    m, longest = len(row_sums), np.int64(0)
    for u in users:
        longest = max(longest, indptr[u + 1] - indptr[u])
    blocks, vectors = np.empty((2, longest * longest)), np.empty((WORK + 2, longest))
    face, q, g = np.empty(longest, dtype=np.uint32), vectors[0], vectors[1]
    for k in range(first, len(users), stride):
        begin, end = indptr[users[k]], indptr[users[k] + 1]
        n, total = end - begin, 0.0
        K, small = blocks[0, : n * n].reshape(n, n), blocks[1, : n * n].reshape(n, n)
        items, ridge, a = indices[begin:end], ridges[begin:end], alpha[begin:end]
        for i in range(n):
            line = K[i]
            if len(gram):
                source = gram[items[i]]
                for j in range(i + 1):
                    line[j] = source[items[j]]
                continue
            for j in range(i + 1):
                row, item = items[i], items[j]  # an entry is searched in the shorter row
                value = table[classes[row], classes[item]] if len(table) else 0.0
                if ptr[item + 1] - ptr[item] < ptr[row + 1] - ptr[row]:
                    row, item = item, row
                low, high = ptr[row], ptr[row + 1]
                while low < high:
                    middle = (low + high) >> 1
                    if others[middle] < item:
                        low = middle + 1
                    else:
                        high = middle
                if low < ptr[row + 1] and others[low] == item:
                    value += data[low]
                line[j] = value
        for i in range(n):
            a[i] = 1.0 / max(ridge[i], 1e-12)  # where a large ridge leads
            total += a[i]
            q[i] = 1.0
        product(K, n, q, g)
        for i in range(n):
            a[i] /= total
            if not exact:
                q[i] = row_sums[items[i]] / m
            elif n < m:
                q[i] = (row_sums[items[i]] - g[i]) / (m - n)
            else:
                q[i] = q_all[items[i]]
        residuals[users[k]] = solve_face(K, n, q, ridge, a, g, face, small, vectors[2:], tol)
