"""Vectors of users and items: exact where a model has them, low-rank otherwise; export and an index."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.utils.validation import check_integer, clean_matrix

__all__ = ["Embeddings", "ItemIndex", "embeddings", "export_embeddings"]

Vectors = NDArray[np.float32]


class Embeddings(NamedTuple):
    """Vectors whose inner products are the scores, and the share of the scores they miss.

    `error` is ‖scores − U·Vᵀ‖ / ‖scores‖ (Frobenius): 0 where the model itself is a product.
    """

    users: Vectors
    items: Vectors
    error: float


def embeddings(ranker: Any, user_items: Any, factors: int = 64, seed: int = 0) -> Embeddings:
    """Return vectors of the users of the given rows and of all items.

    Parameters
    ----------
    ranker : fitted Ranker
        With the ability "embeddings" its own vectors are returned; the scores of any
        other are factorised (randomised truncated SVD).
    user_items : (users, items) sparse matrix
        One row a user of the fit, in order.
    factors : int ≥ 1
        Rank of that factorisation.
    seed : int

    Raises
    ------
    InputError
        If the rows do not fit the ranker.
    """
    rows = clean_matrix(user_items)
    if "embeddings" in ranker.capabilities:
        return Embeddings(ranker.user_embeddings(rows), ranker.item_embeddings(), 0.0)
    check_integer("factors", factors, 1, min(rows.shape))
    scores = ranker.scores(np.arange(rows.shape[0]), rows).astype(np.float64)
    from sklearn.utils.extmath import randomized_svd

    U, s, Vt = randomized_svd(scores, factors, n_iter=4, random_state=seed)
    users, items = U * np.sqrt(s), Vt.T * np.sqrt(s)
    size = float(np.linalg.norm(scores))
    missed = float(np.linalg.norm(scores - users @ items.T)) / size if size > 0 else 0.0
    return Embeddings(users.astype(np.float32), items.astype(np.float32), missed)


def export_embeddings(path: str | Path, ids: NDArray[np.object_], vectors: Vectors) -> None:
    """Write ids and vectors to .parquet (columns id, vector), or vectors alone to .npy.

    Raises
    ------
    InputError
        For another ending, or vectors that are not one an id.
    """
    target = Path(path)
    if len(ids) != len(vectors):
        raise InputError(f"{len(ids)} ids for {len(vectors)} vectors")
    if target.suffix == ".npy":
        np.save(target, np.asarray(vectors, dtype=np.float32), allow_pickle=False)
    elif target.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        flat = pa.array(np.ascontiguousarray(vectors, dtype=np.float32).ravel())
        column = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
        pq.write_table(pa.table({"id": [str(i) for i in ids], "vector": column}), target)
    else:
        raise InputError(f"{target}: name a file ending in .npy or .parquet")


class ItemIndex:
    """Approximate search for the items of the largest inner product (HNSW, by usearch).

    Parameters
    ----------
    items : (items, factors) float32
    connectivity, expansion : int ≥ 1
        Links a vector, and candidates looked at; more are slower and find more.

    Raises
    ------
    InputError
        If usearch is not installed.
    """

    def __init__(self, items: Vectors, connectivity: int = 32, expansion: int = 256) -> None:
        try:
            from usearch.index import Index
        except ImportError as error:
            raise InputError("an index needs usearch: pip install 'recsys[index]'") from error
        self._items = np.ascontiguousarray(items, dtype=np.float32)
        # the product itself as the metric: turned into a direction by one more coordinate, items of
        # much larger vectors than others hide them (recall 0.75 instead of 1.00 on Gowalla)
        self._index = Index(
            ndim=items.shape[1], metric="ip", dtype="f32", connectivity=connectivity,
            expansion_add=expansion, expansion_search=expansion,
        )  # fmt: skip
        self._index.add(np.arange(len(items)), self._items)

    def search(self, users: Vectors, N: int = 10) -> tuple[NDArray[np.int64], Vectors]:
        """Return ids and inner products of the best items of each user, (users, N), best first."""
        N = min(check_integer("N", N, 1), len(self._items))
        queries = np.ascontiguousarray(np.atleast_2d(users), dtype=np.float32)
        found = self._index.search(queries, N)
        ids = np.asarray(found.keys, dtype=np.int64).reshape(len(queries), -1)
        products = np.einsum("uf,unf->un", queries, self._items[ids]).astype(np.float32)
        order = np.argsort(-products, axis=1, kind="stable")
        return np.take_along_axis(ids, order, 1), np.take_along_axis(products, order, 1)
