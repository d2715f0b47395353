"""CF-KOMD: the margin distribution of every user, on any kernel over items.

Source: Polato's thesis, 10.2.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import CapabilityError, InputError
from recsys.kernels import Kernel, MonotoneDisjunctiveKernel, make_kernel
from recsys.kernels.base import KERNELS
from recsys.kernels.custom import CountKernel, FunctionKernel, as_kernel
from recsys.kernels.gram.counts import ItemCounts, cooccurrence, dense_counts, sparse_counts
from recsys.kernels.gram.rows import ItemRows, item_rows
from recsys.rankers._gram_view import DenseView, GramView, prefers_dense, prefers_rows
from recsys.rankers._margin import MarginRanker
from recsys.rankers._updates import CountUpdates
from recsys.rankers._windows import parse_windows, window_rows
from recsys.rankers.base import DENSE_ITEMS, Candidate
from recsys.rankers.registry import RANKERS
from recsys.registry import check_parameters
from recsys.utils.memory import parse_memory
from recsys.utils.sparse import row_votes
from recsys.utils.validation import check_real

# Degree of md from which cold items get the mean score: chosen by validation on FilmTrust and CiaoDVD.
SINKS = 10


@RANKERS.add("cf-komd")
@dataclass(eq=False)
class CFKOMD(CountUpdates, MarginRanker):
    """Kernelised CF-OMD: one small quadratic program per user, on the liked items' kernel.

    The kernel is normalised to unit diagonal; adding a constant to it changes neither weights nor
    ranking. Where its values tend to 1 (disjunctions of high degree, literals on sparse data) it is
    centred on an item of all users, or of none. The weights and the order stay the same, and digits that
    K loses are kept. Scores are then differences from the score of that item.

    Parameters
    ----------
    kernel : str, Kernel or callable
        Name of a kernel over item vectors, `recsys.kernels.list_kernels()`; or a kernel as an object,
        also of a class from outside (`recsys.kernels.CountKernel`); or function(X, Z) of two matrices of
        dense rows. The matrix of kernels from outside is dense, functions cannot be updated, and a
        model with either is not kept in a file.
    degree : int ≥ 1, optional
        Degree of a one-degree kernel; its own default when not given.
    regularization : float ≥ 0
        Ridge on the weights of a user's program, λ_p of (10.2).
    q : "exact" or "mean"
        Which items the negative centroid averages: those not liked (10.3), or all (10.5), which is
        slightly cheaper and off by at most 2·(liked items)/(items).
    votes : float ≥ 0
        Users count |profile|^−votes in the linear kernel; 0 for the thesis' kernel. The identities
        that need counts (generality, decomposition) do not hold for it, those of dot products do.
    recency : float ≥ 0
        How fast interactions lose weight with age, where times are known: interaction i has the ridge
        λ_p/ωᵢ, with ωᵢ = (newer interactions of the user + 1)^−recency, so that older ones get smaller
        weights α. With 0, or with interactions of equal times, the program is that of the thesis. The
        larger λ_p, the nearer is α to ω/Σω. At λ_p = 0 there is no ridge, and recency has no effect.
    windows : str or int, optional
        Lengths as in "10-30-100": where times are known, items are vectors over users and over windows
        of these numbers of consecutive interactions. The kernel then also counts interactions that
        happened soon after each other. This helps most to predict the next item.
    memory : str or int, optional
        Memory budget of the item matrix: "4GB" or bytes. The default is a quarter of the free memory,
        and at most four times the memory of the interactions or 512 MB, whichever is more. Beyond a
        small catalogue the matrix is stored as a table over popularities and a sparse correction where
        that is smaller; the scores are the same up to rounding. If the matrix exceeds the budget, it is
        not stored, and pairs are counted from the interactions on demand. Scores of the linear kernel
        then differ by up to 1e-6, and each user costs a pass over the interactions of the rarer items.
        Scores of other kernels are the same, and each user costs a count of all pairs with the liked
        items. The budget covers counts and corrections; indices for fast access take up to 150 MB
        besides, twice that in float64.
    unrated : "kernel" or "mean", optional
        Score of a cold item: "kernel" is (10.4) for its null vector, "mean" the mean of the other items'
        scores. The thesis does not define it. The default is "mean" under `md` of degree 10 and more,
        where the null vector ranks below everything, and "kernel" elsewhere; it was chosen by validation
        on FilmTrust and CiaoDVD together. Under `mc` of high degree the mean is above most scores, and
        fills the lists of CiaoDVD with cold items.
    kernel_params : dict, optional
        Further parameters of the kernel.

    Examples
    --------
    >>> likes = [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    >>> model = CFKOMD(kernel="mc", degree=1).fit(likes, show_progress=False)
    >>> model.recommend(0, [likes[0]], N=1).ids
    array([2], dtype=int32)
    """

    kernel: Any = "linear"
    degree: int | None = None
    regularization: float = 0.01
    q: str = "exact"
    unrated: str | None = None
    votes: float = 0.0
    recency: float = 0.0
    windows: str | int | None = None
    memory: str | int | None = None
    kernel_params: dict[str, Any] | None = None
    _function_gram: ClassVar[tuple[FunctionKernel, NDArray[np.float32]] | None] = None  # of the last fit

    name: ClassVar[str] = "cf-komd"
    offered: ClassVar[tuple[str, ...]] = ("kernel=md,degree=2", "kernel=mc,degree=2")
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
        degree = {} if self.degree is None else {"degree": self.degree}
        if not isinstance(self.kernel, str):
            made: Kernel = as_kernel(self.kernel, degree | (self.kernel_params or {}))
            return made
        return make_kernel(self.kernel, **degree, **(self.kernel_params or {}))

    def _saved_params(self) -> dict[str, Any]:
        params = super()._saved_params()
        if isinstance(self.kernel, str):
            return params
        names = [name for name in KERNELS.names() if KERNELS.get(name) is type(self.kernel)]
        if not names:
            raise InputError(
                f"a file cannot keep kernel {self.kernel!r}, which is no registered one: "
                "register its class with recsys.kernels.base.KERNELS, here and where it is loaded"
            )
        return params | {"kernel": names[0], "kernel_params": dataclasses.asdict(self.kernel)}

    def _check_updates(self) -> None:
        super()._check_updates()
        if isinstance(self._kernel(), FunctionKernel):
            raise CapabilityError(f"{self.name} with a kernel function cannot be updated: fit again")

    def _derive(
        self, counts: ItemCounts | ItemRows
    ) -> tuple[GramView, NDArray[np.float64], NDArray[np.float64] | None]:
        kernel = self._kernel()
        if isinstance(kernel, FunctionKernel):
            if self._function_gram is None or self._function_gram[0] != kernel:
                raise InputError(f"{self.name} was fitted with another kernel: fit again")
            gram = self._function_gram[1]
        elif isinstance(kernel, CountKernel):
            if isinstance(counts, ItemRows) or not counts.dense:
                raise InputError(f"{kernel} needs a dense matrix, and the counts are sparse: fit again")
            gram = kernel.item_gram(counts)
        else:
            return super()._derive(counts)
        return DenseView(gram), gram.sum(axis=1, dtype=np.float64), None

    def _imputes(self) -> bool:
        if self.unrated is None and isinstance(self._kernel(), MonotoneDisjunctiveKernel):
            return int(self._kernel().degree) >= SINKS  # type: ignore[attr-defined]
        return super()._imputes()

    def _check_parameters(self) -> None:
        super()._check_parameters()
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

    def _votes(self) -> float:
        return float(self.votes)

    def _count(self, rows: sp.csr_matrix) -> ItemCounts | ItemRows:
        kernel = self._kernel()
        self._function_gram = None  # type: ignore[misc]
        if isinstance(kernel, FunctionKernel):
            self._function_gram = (kernel, kernel.item_gram(rows))  # type: ignore[misc]
        if isinstance(kernel, FunctionKernel | CountKernel):
            return dense_counts(rows)
        if not self.votes:
            return super()._count(rows)
        budget = parse_memory(self.memory)
        votes = row_votes(rows, self._votes())
        if not prefers_dense(rows, budget):
            if prefers_rows(rows, budget, np.float32):
                return item_rows(rows, self._votes())
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
