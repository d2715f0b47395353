"""Rankers of counts that are on disk: what of them is small, and what is written piece by piece."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.engines import Engine
from recsys.errors import InputError
from recsys.kernels.gram.counts import ItemCounts, count_type
from recsys.partitioned.counts import Counted, count
from recsys.partitioned.layout import digests, order_of
from recsys.partitioned.ordered import count_followed, has_times
from recsys.partitioned.regressions import above_diagonal, regressed
from recsys.partitioned.rows import read_catalogue, read_rows
from recsys.partitioned.work import Work
from recsys.rankers import Ranker
from recsys.rankers.cf_komd import CFKOMD
from recsys.rankers.ease import EASE
from recsys.rankers.msdw import MSDw
from recsys.rankers.slist import SLIST
from recsys.utils.model_file import Pieces

Change = Callable[[int, dict[str, NDArray[Any]]], NDArray[Any]]
INT32 = np.iinfo(np.int32).max
REFUSED: dict[type[Ranker], tuple[str, ...]] = {  # what counts of blocks do not tell
    CFKOMD: ("windows", "recency"),
    EASE: ("recency", "keep_inverse", "memory"),
    MSDw: ("recency", "sharpening", "top_k"),
    SLIST: ("time_scale", "trend", "sharpening", "top_k"),
}


def check_model(ranker: Ranker) -> None:
    """Refuse what cannot be fitted from counts by blocks."""
    ranker.check_parameters()
    if type(ranker) not in MODELS:
        some = ", ".join(sorted(kind.name for kind in MODELS))
        raise InputError(f"{ranker.name} is not fitted from partitions; {some} are")
    refuse = [name for name in REFUSED[type(ranker)] if getattr(ranker, name, None)]
    if refuse:
        raise InputError(
            f"{ranker.name} with {' and '.join(refuse)} is not fitted from partitions: leave "
            f"{'it' if len(refuse) == 1 else 'them'} out, or fit in memory"
        )
    if isinstance(ranker, SLIST) and ranker.form == "ridge":
        raise InputError(
            "slist:form=ridge solves all pairs of items at once and is not fitted from partitions: pass "
            "form=cosine, or fit in memory"
        )


def arrays_of(ranker: Ranker, work: Work, engine: Engine, memory: int) -> dict[str, Any]:
    """Give a ranker what a fit would have, and return those of its arrays that are in pieces."""
    catalogue = read_catalogue(work)
    popularity, users = catalogue["popularity"], int(catalogue["users"].sum())
    ranker.n_users_, ranker.n_items_ = users, len(popularity)
    ranker.popularity_ = popularity.astype(np.float32)
    return MODELS[type(ranker)](ranker, work, engine, memory)


def _cf_komd(ranker: CFKOMD, work: Work, engine: Engine, memory: int) -> dict[str, Any]:
    popularity, users = read_catalogue(work)["popularity"].copy(), ranker.n_users_
    votes = float(ranker.votes)
    kind = np.float32 if votes else count_type(popularity)
    counted = count(work, "popular", engine, memory, kind, votes)
    order, m = order_of(popularity, "popular"), len(popularity)
    sizes: Any = popularity
    if votes:
        sizes = np.empty(m)
        sizes[order] = counted.own()
    ranker._keep(ItemCounts(sp.csr_matrix((m, m), dtype=kind), sizes, users, order))
    return _matrix("together_", counted, kind) | _digested(work, counted, ranker)


def _msdw(ranker: MSDw, work: Work, engine: Engine, memory: int) -> dict[str, Any]:
    users, m = read_catalogue(work)["popularity"].copy(), ranker.n_items_
    counted = count(work, "number", engine, memory, votes=float(ranker.votes), diagonal=True)

    def weights(first: int, part: dict[str, NDArray[Any]]) -> NDArray[Any]:
        rows = slice(first, first + len(part["lengths"]))
        data, indices = part["data"].copy(), part["indices"]
        ranker.weigh_rows(data, indices, part["lengths"], users[rows], users)
        if not ranker.diagonal:
            data[indices == np.repeat(np.arange(rows.start, rows.stop), part["lengths"])] = 0.0
        return data

    ranker.weights_ = sp.csr_matrix((m, m), dtype=np.float32)
    found = _matrix("weights_", counted, np.float32, weights)
    if not ranker.keeps_counts(users):
        return found
    lengths, most = [], 0
    for block, first in enumerate(counted.edges[:-1].tolist()):
        part = counted.part(block)
        above = above_diagonal(first, part)
        own = np.repeat(np.arange(len(part["lengths"])), part["lengths"])[above]
        lengths.append(np.bincount(own, minlength=len(part["lengths"])))
        most = max(most, int(part["data"][above].max(initial=0)))
    kind = np.min_scalar_type(most)
    ranker.counts_ = sp.csr_matrix((m, m), dtype=kind)
    return found | _digested(work, counted, ranker) | _csr(
        "counts_", np.concatenate(lengths),
        lambda n: counted.pieces("", n, np.int32, lambda b, p: p["indices"][above_diagonal(b, p)]),
        lambda n: counted.pieces("", n, kind, lambda b, p: p["data"][above_diagonal(b, p)]),
    )  # fmt: skip


def _ease(ranker: EASE, work: Work, engine: Engine, memory: int) -> dict[str, Any]:
    m = ranker.n_items_
    ranker.weights_ = sp.csr_matrix((m, m), dtype=np.float32)
    return _matrix("weights_", regressed(ranker, work, engine, memory), np.float32)


def _slist(ranker: SLIST, work: Work, engine: Engine, memory: int) -> dict[str, Any]:
    """Return the weights of the form "cosine"."""
    m = ranker.n_items_
    users, longest = read_catalogue(work)["popularity"].copy(), _longest_row(work)
    ranker.ordered_ = has_times(work)
    counted = count_followed(
        work, engine, memory, ranker.random_state, float(ranker.votes),
        ranker.law(longest, ranker.ordered_), float(ranker.backward),
    )  # fmt: skip

    def weights(first: int, part: dict[str, NDArray[Any]]) -> NDArray[Any]:
        data, lengths = part["data"].copy(), part["lengths"]
        own = users[first : first + len(lengths)]
        ranker.weigh_rows(data, part["indices"], lengths, own, users)
        return data

    ranker.weights_ = sp.csr_matrix((m, m), dtype=np.float32)
    return _matrix("weights_", counted, np.float32, weights)


def _longest_row(work: Work) -> int:
    rows = (read_rows(work, bucket).indptr for bucket in range(work.buckets))
    return max(int(np.diff(indptr).max(initial=0)) for indptr in rows)


def _digested(work: Work, counted: Counted, ranker: Ranker) -> dict[str, Any]:
    """Return the digests of all users' rows."""
    every = Pieces((ranker.n_users_,), np.dtype(np.int64), lambda: digests(work, counted.order))
    return {"row_digests_": every}


def _matrix(name: str, counted: Counted, kind: Any, change: Change | None = None) -> dict[str, Any]:
    """Return the three arrays of a CSR matrix of all blocks; its data may be derived from the counts."""
    return _csr(
        name, counted.lengths(), lambda n: counted.pieces("indices", n, np.int32),
        lambda n: counted.pieces("data", n, kind, change),
    )  # fmt: skip


def _csr(
    name: str,
    lengths: NDArray[np.int64],
    indices: Callable[[int], Pieces],
    data: Callable[[int], Pieces],
) -> dict[str, Any]:
    entries = int(lengths.sum())
    indptr = np.zeros(len(lengths) + 1, dtype=np.int32 if entries < INT32 else np.int64)
    np.cumsum(lengths, out=indptr[1:])
    return {
        f"{name}.indptr": indptr, f"{name}.indices": indices(entries), f"{name}.data": data(entries),
    }  # fmt: skip


MODELS: dict[type[Ranker], Callable[[Any, Work, Engine, int], dict[str, Any]]] = {
    CFKOMD: _cf_komd, EASE: _ease, MSDw: _msdw, SLIST: _slist,
}  # fmt: skip
