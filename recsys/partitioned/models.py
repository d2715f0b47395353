"""Rankers of counts that are on disk: what of them is small, and what is written piece by piece."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from recsys.engines import Engine
from recsys.errors import InputError
from recsys.kernels.gram.counts import ItemCounts, count_type
from recsys.partitioned.counts import Counted, count
from recsys.partitioned.layout import digests, order_of
from recsys.partitioned.rows import read_catalogue
from recsys.partitioned.work import Work
from recsys.rankers import Ranker
from recsys.rankers.cf_komd import CFKOMD
from recsys.utils.model_file import Pieces

INT32 = np.iinfo(np.int32).max


def check_model(ranker: Ranker) -> None:
    """Refuse what cannot be fitted from counts by blocks.

    Raises
    ------
    InputError
    """
    ranker.check_parameters()
    if type(ranker) not in MODELS:
        some = ", ".join(sorted(kind.name for kind in MODELS))
        raise InputError(f"{ranker.name} is not fitted from partitions; {some} are")
    refuse = [
        name
        for name in ("windows", "recency", "sharpening", "top_k")
        if getattr(ranker, name, None) and not (name == "top_k" and ranker.name == "ease")
    ]
    if refuse:
        raise InputError(
            f"{ranker.name} with {' and '.join(refuse)} is not fitted from partitions: leave "
            f"{'it' if len(refuse) == 1 else 'them'} out, or fit in memory"
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
    return _matrix("together_", counted, kind) | {
        "row_digests_": Pieces((users,), np.dtype(np.int64), lambda: digests(work, counted.order))
    }


def _matrix(name: str, counted: Counted, kind: Any) -> dict[str, Any]:
    """Return the three arrays of a CSR matrix of all blocks."""
    lengths = counted.lengths()
    entries = int(lengths.sum())
    indptr = np.zeros(len(lengths) + 1, dtype=np.int32 if entries < INT32 else np.int64)
    np.cumsum(lengths, out=indptr[1:])
    return {
        f"{name}.indptr": indptr,
        f"{name}.indices": counted.pieces("indices", entries, np.int32),
        f"{name}.data": counted.pieces("data", entries, kind),
    }


MODELS: dict[type[Ranker], Callable[[Any, Work, Engine, int], dict[str, Any]]] = {CFKOMD: _cf_komd}
