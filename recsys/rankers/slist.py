"""SLIST: sequential recommendation by a directed regression between items, or by a directed cosine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import lapack

from recsys.errors import FitError, InputError, counted
from recsys.rankers._asymmetric_cosine import strongest, weigh_rows
from recsys.rankers._decay import Decay, parse_decays, sums_of_exponentials
from recsys.rankers._item_weights import weighted_sums
from recsys.rankers._sharpening import sharpen
from recsys.rankers.base import DENSE_ITEMS, Candidate, Ranker, Shares, Times, expect
from recsys.rankers.directed_cosine import followed
from recsys.rankers.registry import RANKERS
from recsys.rankers.sequences import before_after, sequences
from recsys.rankers.state import expect_csr
from recsys.utils.docstrings import documented
from recsys.utils.memory import check_memory, free_memory
from recsys.utils.recency import elapsed, newer
from recsys.utils.sparse import entries_of, row_votes
from recsys.utils.threads import safe_blas
from recsys.utils.validation import check_choice, check_integer, check_real

NEWEST = 0.1  # share of all interactions that a trend is read from
FORMS = ("auto", "ridge", "cosine")


@RANKERS.add("slist")
@documented
@dataclass(eq=False)
class SLIST(Ranker):
    """Sequential recommendation, learned from all splits of the histories into past and future.

    In the form "ridge", each split t of a history is a regression row. The interactions before it
    predict those after it. An interaction g positions before the last one has the weight decay(g), and
    the g-th after the split target(g). B = (XᵀX + Λ)⁻¹XᵀY in closed form; a score sums B over the
    interactions, decayed by their ages. With several laws in `decay` each item is a feature for each
    law, so that the last few interactions and the last dozens have separate weights.

    In the form "cosine", for catalogues whose matrix of all pairs does not fit,
    W_ij = (c_ij / (|U_i|^beta · |U_j|^alpha))^locality, where c_ij sums the votes of users who like j
    after i, decayed by the positions from one to the other under the last law of `decay`; a score sums W
    over the interactions, decayed by their ages under the first.

    Without times, or where they are equal, the order is random and nothing decays.

    Parameters
    ----------
    decay : str
        Weights of the interactions before a split: `expX`, e^−(g/X); `powerX`, (g + 1)^−X, X up to 3; or
        `none`. Several laws are joined by + and give several blocks of features.
    inference_decay : str, optional
        Weights of the interactions of the row that is scored, one law for each of `decay`; by default
        those of `decay`.
    target_decay : str
        Weights of the interactions after a split. The faster they decay, the more the next item counts.
    time_scale : float > 0, optional
        If given, all weights are also multiplied by e^−(elapsed time / time_scale), in the unit of the
        times.
    regularization : float > 0
        Λ, relative to the mean of the diagonal of each block of XᵀX.
    votes : float ≥ 0
        User-weight exponent: a user's rows have the weight |profile|^−votes.
    trend : float ≥ 0
        Weights to candidate j are multiplied by ((a + 1)/(b + 1))^trend, where a and b are its
        interactions among the newest tenth of all and among all. Items of growing popularity come first.
        0 for no trend.
    form : "auto", "ridge" or "cosine"
        "auto" takes the ridge up to 8,000 items where its matrix fits in memory.
    alpha, beta : float in 0…1
        Exponents of the candidate's and the source's popularity, which lower weights; form "cosine".
    backward : float in 0…1
        Weight of j before i relative to j after i; form "cosine".
    locality : float > 0
    sharpening : float ≥ 0
    top_k : int ≥ 1, optional
        As in `msdw`; form "cosine".
    random_state : int ≥ 0
        Seed for the order of interactions of equal times.

    Attributes
    ----------
    weights_ : (blocks · items, items) float32, or (items, items) float32 CSR
        Row k·items + i is what item i adds to the scores as an interaction that counts 1 under law k.

    Notes
    -----
    Sources: Choi et al. 2021, Session-aware linear item-item models (the transitions of SLIST), of which
    this has several decays at once and decayed targets; Park et al. 2025 (TALE) for elapsed time and
    trends; Aiolli 2013 for the asymmetric cosine.

    Examples
    --------
    >>> likes = [[1, 1, 1, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 1, 1, 1]]
    >>> times = [[1, 2, 3, 0], [1, 2, 3, 0], [0, 1, 2, 3], [0, 1, 2, 3]]
    >>> model = SLIST().fit(likes, show_progress=False, times=times)
    >>> model.recommend(0, [[0, 1, 1, 0]], times=[[0, 1, 2, 0]], N=1, recalculate_user=True).ids
    array([3], dtype=int32)
    """

    decay: str = "exp1+exp20"
    inference_decay: str | None = None
    target_decay: str = "power1.5"
    time_scale: float | None = None
    regularization: float = 0.3
    votes: float = 0.0
    trend: float = 0.0
    form: str = "auto"
    alpha: float = 0.2
    beta: float = 0.5
    backward: float = 0.4
    locality: float = 0.6
    sharpening: float = 0.0
    top_k: int | None = None
    ties: str | None = None
    random_state: int = 0

    name: ClassVar[str] = "slist"
    search_space: ClassVar[dict[str, Any]] = {
        "decay": ("power1", "exp1+exp20", "exp3+exp60"),
        "target_decay": ("power0.25", "power0.5", "power1", "power1.5"),
        "regularization": ("log", 0.1, 30.0),
        "votes": (0.0, 0.5, 1.0),
        "alpha": ("real", 0.0, 0.8),
        "beta": ("real", 0.0, 0.8),
        "backward": ("real", 0.0, 1.0),
        "locality": ("real", 0.5, 2.0),
        "sharpening": (0.0, 0.5, 1.0),
    }

    candidates: ClassVar[tuple[Candidate, ...]] = (
        Candidate(
            "decay=power1,inference_decay=power0.4,target_decay=power0.5,regularization=3",
            most_items=DENSE_ITEMS, timed=True,
        ),
        Candidate(
            "decay=exp5+exp100,target_decay=power0.6,regularization=20,votes=0.5",
            most_items=DENSE_ITEMS // 2, timed=True,
        ),
        Candidate("", most_items=DENSE_ITEMS // 2, timed=True),
        Candidate("form=cosine", least_items=DENSE_ITEMS // 2, timed=True),
        Candidate(
            "form=cosine,decay=power0.5,alpha=0.4,backward=1", least_items=DENSE_ITEMS // 2, timed=True
        ),
    )  # fmt: skip

    def _check_parameters(self) -> None:
        laws = self._laws()
        if len(self._inference_laws()) != len(laws):
            raise InputError(
                f"inference_decay must hold one law for each of decay={self.decay!r}, "
                f"not {self.inference_decay!r}"
            )
        if len(parse_decays("target_decay", self.target_decay)) != 1:
            raise InputError(f"target_decay must be one law, not {self.target_decay!r}")
        if self.time_scale is not None:
            check_real("time_scale", self.time_scale, 0.0, open_low=True)
        check_real("regularization", self.regularization, 0.0, open_low=True)
        check_choice("form", self.form, FORMS)
        for key in ("alpha", "beta", "backward"):
            check_real(key, getattr(self, key), 0.0, 1.0)
        for key in ("votes", "trend", "sharpening"):
            check_real(key, getattr(self, key), 0.0)
        check_real("locality", self.locality, 0.0, open_low=True)
        if self.top_k is not None:
            check_integer("top_k", self.top_k, 1)
        check_integer("random_state", self.random_state, 0)

    def _laws(self) -> list[Decay]:
        return parse_decays("decay", self.decay)

    def _inference_laws(self) -> list[Decay]:
        if self.inference_decay is None:
            return self._laws()
        return parse_decays("inference_decay", self.inference_decay)

    def _fit(
        self,
        liked: sp.csr_matrix,
        show_progress: bool,
        callback: Any,
        *,
        times: sp.csr_matrix | None = None,
    ) -> None:
        found = sequences(liked, None if times is None else times.data, self.random_state)
        votes = row_votes(liked, float(self.votes))
        longest = int(np.diff(liked.indptr).max())
        self.ordered_ = times is not None
        laws = self._laws() if self.ordered_ else [Decay("none")]
        items = liked.shape[1]
        if self._chosen_form(items, len(laws)) == "cosine":
            rates, (law,) = sums_of_exponentials(laws[-1:], longest)
            W = followed(found, votes, items, rates, law, self.backward, self.time_scale)
            users = np.bincount(liked.indices, minlength=items)
            weigh_rows(
                W.data, W.indices, np.diff(W.indptr), users, users, self.beta, self.alpha, self.locality
            )
            if self.sharpening:
                sharpen(W, liked, self.sharpening)
            self.weights_ = W if self.top_k is None else strongest(W, self.top_k)
            self._follow_trend(liked, times)
            return
        check_memory(_ridge_bytes(items, len(laws)), f"slist on {items:,} items")
        before = sums_of_exponentials(laws, longest)
        after = sums_of_exponentials(parse_decays("target_decay", self.target_decay), longest)
        gram, cross = before_after(found, votes, items, before, after, self.time_scale)
        self.weights_ = _solved(gram, cross, len(laws), float(self.regularization))
        self._follow_trend(liked, times)

    def _follow_trend(self, liked: sp.csr_matrix, times: sp.csr_matrix | None) -> None:
        """Scale the candidates' columns by how much of their interactions is new."""
        if times is None or not self.trend:
            return
        new = times.data >= np.quantile(times.data, 1.0 - NEWEST)
        recent = np.bincount(liked.indices[new], minlength=liked.shape[1])
        every = np.bincount(liked.indices, minlength=liked.shape[1])
        rise = (((recent + 1.0) / (every + 1.0)) ** float(self.trend)).astype(np.float32)
        if sp.issparse(self.weights_):
            self.weights_.data *= rise[self.weights_.indices]
        else:
            self.weights_ *= rise

    def _chosen_form(self, items: int, blocks: int) -> str:
        if self.form != "auto":
            return self.form
        fits = items <= DENSE_ITEMS and _ridge_bytes(items, blocks) <= free_memory()
        return "ridge" if fits else "cosine"

    def _votes(self, rows: sp.csr_matrix, times: Times) -> list[NDArray[np.float64]]:
        """Return the weight of each interaction of the rows, under each law."""
        if times is None or not self.ordered_:
            return [np.ones(rows.nnz)] * self._blocks
        gaps = newer(rows.indptr, times)
        laws = self._inference_laws()
        if len(laws) != self._blocks and not sp.issparse(self.weights_):
            raise InputError(
                f"this {self.name} was fitted with {counted(self._blocks, 'law')} of decay, not "
                f"{len(laws)}: fit again"
            )
        votes = [law(gaps) for law in laws[: self._blocks]]
        if self.time_scale is not None:
            since = np.exp(-elapsed(rows.indptr, times) / self.time_scale)
            votes = [vote * since for vote in votes]
        return votes

    @property
    def _blocks(self) -> int:
        """How many blocks of weights there are."""
        return 1 if sp.issparse(self.weights_) else len(self.weights_) // self.weights_.shape[1]

    def _fold_in_scores(self, rows: sp.csr_matrix, times: Times = None) -> NDArray[np.float32]:
        votes = self._votes(rows, times)
        if len(votes) == 1:
            return weighted_sums(rows, votes[0], self.weights_)
        wide = sp.hstack([entries_of(rows, vote) for vote in votes], format="csr")
        if wide.indices.dtype != np.int32:
            wide.indices = wide.indices.astype(np.int32)
        return weighted_sums(wide, wide.data, self.weights_)

    def _explain(self, userid: int, row: sp.csr_matrix, item: int, times: Times = None) -> Shares:
        shares = np.zeros(row.nnz)
        for k, vote in enumerate(self._votes(row, times)):
            column = self.weights_[row.indices + k * row.shape[1], item]
            column = column.toarray() if sp.issparse(column) else column
            shares += vote * np.asarray(column, dtype=np.float64).ravel()
        return float(shares.sum()), shares

    def _item_similarity(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the contribution of an interaction of age 0 to each item's score."""
        if sp.issparse(self.weights_):
            return self.weights_[ids].toarray()
        items = self.weights_.shape[1]
        return sum(self.weights_[ids + k * items] for k in range(self._blocks))

    def _check_state(self) -> None:
        m, W = self.n_items_, self.weights_
        if not isinstance(self.ordered_, bool):
            raise ValueError("ordered_ should be true or false")
        if sp.issparse(W):
            expect_csr("weights_", W, (m, m), np.float32)
            return
        blocks = len(self._laws()) if self.ordered_ else 1
        expect("weights_", W, (blocks * m, m), np.float32)


def _ridge_bytes(items: int, blocks: int) -> int:
    """Return the bytes of XᵀX, XᵀY, the solution and the weights, which are held at once."""
    return 8 * (items * blocks) ** 2 + 20 * items * items * blocks


def _solved(
    gram: NDArray[np.float64], cross: NDArray[np.float64], blocks: int, ridge: float
) -> NDArray[np.float32]:
    """Return (XᵀX + Λ)⁻¹XᵀY, block after block; both matrices are used up."""
    n, items = cross.shape
    diagonal = gram.reshape(-1)[:: n + 1]
    for k in range(blocks):
        mean = diagonal[k::blocks].mean()
        diagonal[k::blocks] += ridge * (mean if mean > 0 else 1.0)
    with safe_blas(n):
        factor, failed = lapack.dpotrf(gram.T, lower=True, overwrite_a=True, clean=False)
        if failed:
            raise FitError(f"slist cannot solve its regression: raise regularization ({ridge:g})")
        B, _ = lapack.dpotrs(factor, np.asfortranarray(cross), lower=True, overwrite_b=True)
    out = np.empty((n, items), dtype=np.float32)
    for k in range(blocks):
        out[k * items : (k + 1) * items] = B[k::blocks]
    return out
