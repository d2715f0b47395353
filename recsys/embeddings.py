"""Vectors of users and items, and their export."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.utils.files import replacing
from recsys.utils.sparse import leading_singular
from recsys.utils.validation import check_integer, clean_matrix

Vectors = NDArray[np.float32]


class Embeddings(NamedTuple):
    """Vectors whose inner products are the scores."""

    users: Vectors  #: (users, factors) float32
    items: Vectors  #: (items, factors) float32
    error: float  #: ‖scores − U·Vᵀ‖ / ‖scores‖ (Frobenius); 0 if the model itself has vectors


def embeddings(ranker: Any, user_items: Any, factors: int = 64, seed: int = 0) -> Embeddings:
    """Return vectors of users and items: those of the model, or a truncated SVD of its scores.

    Parameters
    ----------
    ranker : fitted Ranker
    user_items : (users, items) sparse matrix
        The users of the fit, in order.
    factors : int ≥ 1
        Largest rank of the factorization.
    seed : int

    Examples
    --------
    >>> from recsys import EASE, load_dataset
    >>> R = load_dataset("sample").matrix
    >>> result = embeddings(EASE().fit(R, show_progress=False), R, factors=8)
    >>> result.users.shape, result.items.shape
    ((400, 8), (300, 8))
    """
    check_integer("factors", factors, 1)
    rows = clean_matrix(user_items)
    if "embeddings" in ranker.capabilities:
        return Embeddings(ranker.user_embeddings(rows), ranker.item_embeddings(), 0.0)
    scores = ranker.scores(np.arange(rows.shape[0]), rows).astype(np.float64)
    U, s, Vt = leading_singular(scores, min(factors, *scores.shape), passes=4, seed=seed)
    size = float(np.linalg.norm(scores))
    error = float(np.linalg.norm(scores - (U * s) @ Vt)) / size if size > 0 else 0.0
    users, items = U * np.sqrt(s), Vt.T * np.sqrt(s)
    return Embeddings(users.astype(np.float32), items.astype(np.float32), error)


def export_embeddings(path: str | Path, ids: NDArray[np.object_], vectors: Vectors) -> None:
    """Write ids and vectors to .parquet (columns id, vector), or vectors alone to .npy."""
    target = Path(path)
    if len(ids) != len(vectors):
        raise InputError(f"{len(ids)} ids for {len(vectors)} vectors")
    if target.suffix == ".npy":
        with replacing(target) as file:
            np.save(file, np.asarray(vectors, dtype=np.float32), allow_pickle=False)
    elif target.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        flat = pa.array(np.ascontiguousarray(vectors, dtype=np.float32).ravel())
        column = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
        with replacing(target) as file:
            pq.write_table(pa.table({"id": [str(i) for i in ids], "vector": column}), file)
    else:
        raise InputError(f"{target}: the ending must be .npy or .parquet")
