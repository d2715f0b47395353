"""EASE: the ridge regression of every item on the others, by one inverse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import lapack

from recsys._jit import in_parts, jit, parallel
from recsys.errors import CapabilityError, FitError, InputError
from recsys.kernels import item_gram, make_kernel
from recsys.kernels.gram.dense import weighted_gram
from recsys.rankers._ease_update import (
    PROBES,
    RESIDUAL,
    changed_inverse,
    mirror,
    probed,
    residual,
)
from recsys.rankers._gram_view import worth_dense
from recsys.rankers._item_weights import ItemWeights
from recsys.rankers._updates import Updatable
from recsys.rankers.base import DENSE_ITEMS, Candidate, expect
from recsys.rankers.registry import RANKERS
from recsys.rankers.sparse_inverse import sparse_inverse_weights, weighted_counts
from recsys.utils.docstrings import documented
from recsys.utils.memory import free_memory, parse_memory, size_text
from recsys.utils.sparse import row_votes
from recsys.utils.threads import safe_blas
from recsys.utils.validation import check_integer, check_real

TOP_K = 200  # of a sparse inverse where none is asked for
NOTED = 500e6  # bytes of weights from which on a note says how large they are
SPARSE_ITEMS = 100_000  # up to which `auto` tries a sparse inverse: 41,000 take 23 processor seconds


@RANKERS.add("ease")
@documented
@dataclass(eq=False)
class EASE(Updatable, ItemWeights):
    """EASE: the ridge regression of every item on the others, in closed form.

    With P = (RᵀR + λI)⁻¹ the weights are B_ij = −P_ij/P_jj off the diagonal, 0 on it. An
    item that all users have needs no special treatment, nor does a cold one. The ridge of an item may
    depend on the number n_i of its users: λ(n_i / n̄)^ridge_power + n_i·dropout/(1 − dropout), n̄ the
    mean of the n_i that are not 0.

    Where every pair of items does not fit in memory, or `top_k` is given, P is a sparse approximate
    inverse: each item is regressed on the items most like it alone, exactly.

    Parameters
    ----------
    regularization : float > 0
        λ, in units of users: the ridge of an item of mean popularity.
    ridge_power : float ≥ 0
        How much stronger the ridge of popular items is, and how much weaker that of rare ones; 0 for
        Steck's model, where it is one for all.
    dropout : float, 0 ≤ dropout < 1
        How probably an interaction is hidden from the regressions on it, on average over all ways to
        hide some.
    top_k : int ≥ 1, optional
        Predict each item from the `top_k` items with the largest cosines at most; from the number of
        other items on that is EASE itself, and the dense inverse is taken where it fits. Where it is not
        given and the dense inverse does not fit, 200, or what fits. Takes items · top_k³ operations.
    votes : float ≥ 0
        Users count |profile|^−votes: Rᵀ diag(|u|^−votes) R + λI is inverted, where λ is in units of such
        weights, and so are n_i and n̄. 0 for Steck's model.
    memory : str or int, optional
        Budget, such as "4GB", for the inverse in either form; what is free where not given.
    keep_inverse : bool
        Keep P in float64 beside the weights, three times their memory, so that rows that come and go
        update it (`partial_fit`, `update_rows`, …): k of them take 2k·items² operations, a fit items³.
        float32 is not enough: at λ = 1, 200 batches of five changed rows of MovieLens 100K left it
        6e-5 from a refit, and float64 2e-13.

    Notes
    -----
    Sources: Steck, Embarrassingly shallow autoencoders for sparse data, 2019, and Markov random fields
    for collaborative filtering, 2019, for the regressions on few items; Autoencoders that don't overfit
    towards the identity, 2020, for `dropout` (EDLAE, all emphasis on what is hidden). Spišák et al.,
    Scalable approximate nonsymmetric autoencoder for collaborative filtering (SANSA), 2023, have the
    same aim by an incomplete Cholesky factor and its incomplete inverse, which is not what is done here:
    of the same size, that came out less accurate on Gowalla. Updates are by the Woodbury identity, and
    checked by P(RᵀR + λI)z = z on fixed vectors z, whose products with RᵀR are kept; what would miss
    1e-9 is refused. A ridge that depends on popularity changes with every row, in all its items at once
    where `ridge_power` is not 0: it is not updated.

    Examples
    --------
    >>> likes = [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    >>> model = EASE(regularization=1.0).fit(likes, show_progress=False)
    >>> model.recommend(0, [likes[0]], N=1).ids
    array([2], dtype=int32)
    """

    regularization: float = 500.0
    ridge_power: float = 0.0
    dropout: float = 0.0
    top_k: int | None = None
    votes: float = 0.0
    memory: str | int | None = None
    recency: float = 0.0
    ties: str | None = None
    keep_inverse: bool = False

    name: ClassVar[str] = "ease"
    search_space: ClassVar[dict[str, Any]] = {
        "regularization": ("log", 10.0, 5000.0),
        "ridge_power": ("real", 0.0, 1.0),
        "dropout": ("real", 0.0, 0.7),
        "recency": ("real", 0.0, 2.0, "times"),
    }
    searched_where: ClassVar[dict[str, tuple[str, tuple[Any, ...]]]] = {
        "ridge_power": ("keep_inverse", (False,)),
        "dropout": ("keep_inverse", (False,)),
    }
    candidates: ClassVar[tuple[Candidate, ...]] = (
        Candidate("regularization=100", most_items=DENSE_ITEMS),
        Candidate("regularization=400", most_items=DENSE_ITEMS),
        Candidate("regularization=1500", most_items=DENSE_ITEMS),
        Candidate("regularization=300,ridge_power=0.5,dropout=0.4", most_items=DENSE_ITEMS),
        Candidate(
            "regularization=25,ridge_power=0.3,dropout=0.5,votes=0.5,top_k=100",
            least_items=DENSE_ITEMS + 1,
            most_items=SPARSE_ITEMS,
        ),
        Candidate("regularization=1500,recency=0.5", most_items=DENSE_ITEMS, timed=True),
        Candidate("regularization=3000,recency=1", most_items=DENSE_ITEMS, timed=True),
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("regularization", self.regularization, 0.0, open_low=True)
        if check_real("votes", self.votes, 0.0) and self.keep_inverse:
            raise InputError(
                "keep_inverse updates an inverse of rows that count alike: pass votes=0, or "
                "keep_inverse=False"
            )
        if not isinstance(self.keep_inverse, bool):
            raise InputError(f"keep_inverse must be True or False, not {self.keep_inverse!r}")
        check_real("ridge_power", self.ridge_power, 0.0)
        check_real("dropout", self.dropout, 0.0, 1.0, open_high=True)
        if self.keep_inverse and (self.ridge_power or self.dropout):
            raise InputError(
                "keep_inverse updates an inverse whose ridge does not depend on popularity: pass "
                "ridge_power=0 and dropout=0, or keep_inverse=False"
            )
        if self.top_k is not None:
            check_integer("top_k", self.top_k, 1)
            if self.keep_inverse:
                raise InputError(
                    "keep_inverse is for the whole inverse, not for top_k: pass one of them"
                )
        parse_memory(self.memory)

    def size_note(self, n_items: int) -> str | None:
        """Return the sizes of a dense matrix of weights, and of a kept inverse, of 500 MB and more."""
        pairs = n_items * n_items
        kept = 12 * pairs if self.keep_inverse else 4 * pairs
        budget = parse_memory(self.memory) or free_memory()
        if kept < NOTED or not self._dense(n_items, budget):
            return None
        if self.keep_inverse:
            what, less = "a weight and an entry of the inverse", "keep_inverse=False keeps a third"
        else:
            what, less = "a weight", f"top_k={TOP_K} keeps {TOP_K} an item"
        return (
            f"{what} for every pair of {n_items:,} items: {size_text(kept)} in the file, "
            f"{size_text(16 * pairs)} of memory during the fit; {less}"
        )

    def _dense(self, items: int, budget: int) -> bool:
        every = self.top_k is None or self.top_k >= items - 1
        return every and 16 * items * items <= budget

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Any) -> None:
        for name in ("inverse_", "probes_", "row_digests_"):
            vars(self).pop(name, None)
        items = liked.shape[1]
        budget = parse_memory(self.memory) or free_memory()
        votes = row_votes(liked, self.votes) if self.votes else None
        if not self._dense(items, budget):
            if self.keep_inverse:
                raise InputError(
                    f"keep_inverse needs the whole inverse of {items:,} items, which does not fit: pass "
                    "keep_inverse=False, or keep fewer items"
                )
            fewer = self.top_k is None
            top_k = min(self.top_k or TOP_K, items)
            ridge = self._ridge(weighted_counts(liked, votes))
            found = sparse_inverse_weights(liked, ridge, top_k, budget, fewer, votes)
            self.weights_ = found.toarray() if worth_dense(items, budget) else found
            return
        if votes is None:
            gram = np.asfortranarray(
                item_gram(liked, make_kernel("linear"), normalize=False), np.float64
            )
        else:
            gram = weighted_gram(liked, votes)
        counts = weighted_counts(liked, votes)
        gram[np.diag_indices(items)] = counts + self._ridge(counts)
        with safe_blas(items):
            factor, failed = lapack.dpotrf(gram, lower=False, overwrite_a=True, clean=False)
            if failed == 0:
                inverse, failed = lapack.dpotri(factor, lower=False, overwrite_c=True)
        if failed:
            raise FitError(
                f"EASE cannot invert its matrix: raise regularization ({self.regularization:g})"
            )
        self.weights_ = _weights(inverse)
        if self.keep_inverse:
            mirror(inverse)
            self.inverse_, self.probes_ = inverse, probed(liked)
            self._remember(liked)

    def _ridge(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the ridge that is added to these entries of the diagonal."""
        ridge = np.full(len(counts), float(self.regularization))
        had = counts > 0  # the ridge of a cold item only has to be above 0
        if self.ridge_power and had.any():
            ridge[had] *= (counts[had] / counts[had].mean()) ** self.ridge_power
        return ridge + counts * (self.dropout / (1.0 - self.dropout))

    def _check_updates(self) -> None:
        if not hasattr(self, "inverse_"):
            raise CapabilityError(
                "this ease has no inverse to update: fit it with keep_inverse=True, or fit again"
            )

    def _change_rows(self, taken: sp.csr_matrix, added: sp.csr_matrix, users: int) -> None:
        if not added.nnz and not taken.nnz:
            return
        inverse = changed_inverse(self.inverse_, taken, added)
        products = self.probes_ + probed(added) - probed(taken)
        error = residual(inverse, products, self.regularization)
        if not error <= RESIDUAL:
            raise InputError(
                f"the updated inverse of EASE is off by {error:.0e}, above {RESIDUAL:.0e}: fit again"
            )
        weights = _weights(inverse)
        self.inverse_, self.probes_, self.weights_ = inverse, products, weights

    def _extend(self, items: int) -> None:
        old = self.n_items_
        inverse = np.zeros((items, items), order="F")
        inverse[:old, :old] = self.inverse_
        inverse[np.arange(old, items), np.arange(old, items)] = 1.0 / self.regularization
        weights = np.zeros((items, items), dtype=np.float32)
        weights[:old, :old] = self.weights_
        probes = np.zeros((items, PROBES))
        probes[:old] = self.probes_
        self.inverse_, self.probes_, self.weights_ = inverse, probes, weights

    def _check_state(self) -> None:
        super()._check_state()
        kept = [hasattr(self, name) for name in ("inverse_", "probes_", "row_digests_")]
        if any(kept) != all(kept):
            raise ValueError("an inverse is kept with its probes and the digests of rows, or not at all")
        if kept[0]:
            expect("inverse_", self.inverse_, (self.n_items_, self.n_items_), np.float64)
            expect("probes_", self.probes_, (self.n_items_, PROBES), np.float64)
            if not residual(self.inverse_, self.probes_, self.regularization) <= 1e-6:
                raise ValueError("inverse_ is not that of probes_")


def _weights(inverse: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return B_ij = −P_ij / P_jj off the diagonal; only the upper triangle of P is read."""
    out = np.empty(inverse.shape, dtype=np.float32)
    if _negate_and_scale.small(inverse.size):
        upper = np.triu(inverse)
        whole = upper + upper.T  # but for the diagonal
        np.divide(-whole, np.diag(inverse), out=out, casting="unsafe")
        np.fill_diagonal(out, 0.0)
        return out
    with parallel() as threads:
        in_parts(threads, _negate_and_scale, inverse, out)
    return out


# ---- kernels


@jit
def _negate_and_scale(first, stride, inverse, out):
    """out_ij = −P_ij / P_jj off the diagonal; only the upper triangle of P is filled."""
    m = len(out)
    for i in range(first, m, stride):
        for j in range(i + 1, m):
            out[i, j] = -inverse[i, j] / inverse[j, j]
        for j in range(i):
            out[i, j] = -inverse[j, i] / inverse[j, j]
        out[i, i] = 0.0
