"""CF-KOMD: the margin distribution of every user, on any kernel over items.

Source: Polato's thesis, 10.2.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from recsys.errors import InputError
from recsys.kernels import Kernel, make_kernel
from recsys.kernels.base import KERNELS
from recsys.kernels.gram.counts import ItemCounts, cooccurrence, sparse_counts
from recsys.rankers._gram_view import prefers_dense
from recsys.rankers._margin import MarginRanker
from recsys.rankers._updates import CountUpdates
from recsys.rankers._windows import parse_windows, window_rows
from recsys.rankers.base import DENSE_ITEMS, Candidate
from recsys.rankers.registry import RANKERS
from recsys.registry import check_parameters
from recsys.utils.memory import parse_memory
from recsys.utils.validation import check_choice, check_real

# Degree of md from which the null vector ranks too low: validation on FilmTrust and CiaoDVD together.
SINKS = 10


@RANKERS.add("cf-komd")
@dataclass(eq=False)
class CFKOMD(CountUpdates, MarginRanker):
    """Kernelised CF-OMD: one small quadratic program per user, on the liked items' kernel.

    The kernel is normalised to unit diagonal; adding a constant to it changes neither
    weights nor ranking. Where its values tend to 1 (disjunctions of high degree, literals on sparse
    data) it is centred on the item that everybody, or nobody, likes: the same weights and order, with
    the digits that K has lost; scores then say how much more speaks for an item than for that one.

    Parameters
    ----------
    kernel : str
        Name of a kernel over item vectors, `recsys.kernels.list_kernels()`.
    degree : int ≥ 1, optional
        Degree of a one-degree kernel; its own default when not given.
    regularization : float ≥ 0
        λ_p of (10.2).
    q : "exact" or "mean"
        Mean over the items not liked (10.3), or over all items (10.5), which is cheaper by
        little and off by at most 2·(liked items)/(items).
    votes : float ≥ 0
        Users count |profile|^−votes in the linear kernel; 0 for the thesis' kernel. The identities
        that need counts (generality, decomposition) do not hold for it, those of dot products do.
    recency : float ≥ 0
        How fast likes lose weight with age, where times are known: like i has the ridge λ_p/ωᵢ, with
        ωᵢ = (newer likes of the user + 1)^−recency, so that older ones get less of α. 0, or likes that
        are equally recent, give the thesis' program. The larger λ_p, the nearer is α to ω/Σω; at
        λ_p = 0 there is no ridge, and recency changes nothing.
    windows : str or int, optional
        Lengths as in "10-30-100": items are vectors over users and, where times are known, over their
        windows of so many likes each, so that the kernel also counts likes that came soon after each
        other. It helps most where the very next item is asked for.
    memory : str or int, optional
        Budget of the item matrix: "4GB" or bytes; three quarters of what is free when not given.
        Beyond a small catalogue the matrix is kept as a table over popularities and a sparse
        correction wherever that is smaller; the scores are the same up to rounding. The budget is for
        counts and corrections; what makes them quick to read takes up to 100 MB beside it, twice that
        in float64.
    unrated : "kernel" or "mean", optional
        Score of an item nobody has: what (10.4) gives for its null vector, or the mean of
        the other items' scores, as if it were an average item. The thesis does not say. When not given,
        the mean under `md` of degree 10 and more, where the null vector ranks below everything, and the
        kernel's elsewhere: so validation on FilmTrust and CiaoDVD has it, taken together. Under `mc` of
        high degree the mean is above most scores, and fills the lists of CiaoDVD with what nobody has.
    kernel_params : dict, optional
        Further parameters of the kernel.

    Examples
    --------
    >>> likes = [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    >>> model = CFKOMD(kernel="mc", degree=1).fit(likes, show_progress=False)
    >>> model.recommend(0, [likes[0]], N=1).ids
    array([2], dtype=int32)
    """

    kernel: str = "linear"
    degree: int | None = None
    regularization: float = 0.01
    q: str = "exact"
    unrated: str | None = None
    votes: float = 0.0
    recency: float = 0.0
    windows: str | int | None = None
    memory: str | int | None = None
    kernel_params: dict[str, Any] | None = None

    name: ClassVar[str] = "cf-komd"
    offered: ClassVar[tuple[str, ...]] = ("kernel=md,degree=2", "kernel=mc,degree=2")
    compared: ClassVar[tuple[str, ...]] = ("kernel=md,degree=2", "kernel=mc,degree=2")
    search_space: ClassVar[dict[str, Any]] = {
        "kernel": ("linear", "hp", "tanimoto", "mc", "md"),
        "degree": (2, 3, 5, 10, 30, 100, 300),
        "regularization": ("log", 1e-3, 10.0),
        "recency": ("real", 0.0, 2.0, "times"),
        "unrated": ("kernel", "mean"),
    }
    searched_where: ClassVar[dict[str, tuple[str, tuple[Any, ...]]]] = {
        "degree": ("kernel", ("mc", "md")),
    }
    candidates: ClassVar[tuple[Candidate, ...]] = (
        Candidate("regularization=1", most_items=DENSE_ITEMS),
        Candidate("votes=1"),
        Candidate("kernel=hp,regularization=1", most_items=DENSE_ITEMS),
        Candidate("kernel=mc,degree=2,regularization=5", most_items=DENSE_ITEMS),
        Candidate("kernel=tanimoto,regularization=1", most_items=DENSE_ITEMS),
        Candidate("kernel=md,degree=10", most_items=DENSE_ITEMS),
        Candidate("kernel=md,degree=30", most_items=DENSE_ITEMS),
        Candidate("kernel=md,degree=100", most_items=DENSE_ITEMS),
        Candidate("kernel=md,degree=300", least_items=DENSE_ITEMS + 1, most_likes=300_000),
        Candidate("regularization=0.3,recency=1", timed=True),
        Candidate("kernel=mc,degree=2,regularization=0.3,recency=1", most_items=DENSE_ITEMS, timed=True),
        Candidate("kernel=hp,regularization=0.3,recency=1", most_items=DENSE_ITEMS, timed=True),
        Candidate(
            "kernel=md,degree=2,regularization=0.3,recency=2,windows=5-10-30-100",
            most_items=DENSE_ITEMS, timed=True,
        ),
    )  # fmt: skip

    @classmethod
    def arrange(cls, params: dict[str, Any]) -> dict[str, Any]:
        """Return parameters as the constructor takes them: those of the kernel in `kernel_params`.

        Raises
        ------
        InputError
            For a name that neither the ranker nor its kernel has, with the nearest that there is.
        """
        own = [f.name for f in dataclasses.fields(cls)]
        kind = KERNELS.get(params.get("kernel", cls.kernel))
        its = [f.name for f in dataclasses.fields(kind) if f.name not in own]
        check_parameters(f"ranker {cls.name!r}", params, [*own, *its])
        inner = {key: params[key] for key in params if key in its}
        out = {key: value for key, value in params.items() if key not in inner}
        if inner:
            out["kernel_params"] = (out.get("kernel_params") or {}) | inner
        return out

    def _kernel(self) -> Kernel:
        degree = {} if self.degree is None else {"degree": self.degree}
        return make_kernel(self.kernel, **degree, **(self.kernel_params or {}))

    def _imputes(self) -> bool:
        if self.unrated is None and self.kernel == "md":
            return int(self._kernel().degree) >= SINKS  # type: ignore[attr-defined]
        return super()._imputes()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("q", self.q, ("exact", "mean"))
        if self.unrated is not None:
            check_choice("unrated", self.unrated, ("kernel", "mean"))
        parse_memory(self.memory)
        parse_windows(self.windows)
        if check_real("votes", self.votes, 0.0) and self.kernel not in ("linear", "ml"):
            raise InputError(f"votes weigh the linear kernel only, not {self.kernel}")
        self._kernel()

    def _fit(
        self,
        liked: sp.csr_matrix,
        show_progress: bool,
        callback: Any,
        *,
        times: sp.csr_matrix | None = None,
    ) -> None:
        rows = window_rows(liked, None if times is None else times.data, parse_windows(self.windows))
        super()._fit(rows, show_progress, callback)
        self._remember(liked)

    def _count(self, rows: sp.csr_matrix) -> ItemCounts:
        if not self.votes:
            return super()._count(rows)
        budget = parse_memory(self.memory)
        votes = np.maximum(np.diff(rows.indptr), 1).astype(np.float64) ** -self.votes
        if not prefers_dense(rows, budget):
            return sparse_counts(rows, votes, budget)
        together = cooccurrence(rows, votes, budget).toarray()
        own = together.diagonal().astype(np.float64)
        np.fill_diagonal(together, 0.0)
        return ItemCounts(together, own, rows.shape[0])

    def _counting(self) -> str:
        windows = "-".join(map(str, parse_windows(self.windows))) or "none"
        return f"votes={float(self.votes):g}, windows={windows}"

    def _counted(self) -> bool:
        return not self.votes and self.windows is None
