"""Vectors of users and items: exact where a model has them, low-rank otherwise; export and an index."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.utils.atomic import replacing
from recsys.utils.extras import install_hint
from recsys.utils.linalg import first_converged, leading_singular
from recsys.utils.progress import report
from recsys.utils.validation import check_choice, check_integer, clean_matrix

__all__ = [
    "Embeddings", "ItemIndex", "ItemVectors", "PROJECTIONS", "Projection", "embeddings",
    "export_embeddings", "item_vectors", "project",
]  # fmt: skip

Vectors = NDArray[np.float32]
PROJECTIONS = ("pca", "tsne")
FEWEST = 3  # items of a map
CHUNK = 250  # iterations of t-SNE between two reports, the fewest that scikit-learn takes
CHUNKS = 4
PERPLEXITY = 30.0  # of t-SNE, scikit-learn's own
EXAGGERATION = 12.0  # of its first chunk, likewise


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
        Rank of that factorisation, at most.
    seed : int

    Raises
    ------
    InputError
        If the rows do not fit the ranker.
    """
    check_integer("factors", factors, 1)
    rows = clean_matrix(user_items)
    if "embeddings" in ranker.capabilities:
        return Embeddings(ranker.user_embeddings(rows), ranker.item_embeddings(), 0.0)
    U, s, Vt, error = _factorised(ranker.scores(np.arange(rows.shape[0]), rows), factors, seed)
    users, items = U * np.sqrt(s), Vt.T * np.sqrt(s)
    return Embeddings(users.astype(np.float32), items.astype(np.float32), error)


class ItemVectors(NamedTuple):
    """Vectors of items, with how they came about.

    Attributes
    ----------
    vectors : (items, factors) float32
    own : bool
        Whether they are the model's own; else main directions of its scores.
    users : int
        Users whose scores these are; 0 where the vectors are the model's own.
    error : float
        Share of those scores that they miss (see `Embeddings`).

    Examples
    --------
    >>> ItemVectors(np.ones((4, 2), dtype=np.float32), own=True, users=0, error=0.0).vectors.shape
    (4, 2)
    """

    vectors: Vectors
    own: bool
    users: int
    error: float


def item_vectors(
    ranker: Any, user_items: Any, factors: int = 32, most_users: int = 1000, seed: int = 0
) -> ItemVectors:
    """Return vectors of all items: the model's own, or the main directions of its scores.

    Parameters
    ----------
    ranker : fitted Ranker
    user_items : (users, items) sparse matrix
        One row a user of the fit, in order.
    factors : int ≥ 1
        Directions at most, where the model has no vectors.
    most_users : int ≥ 1
        Users at most, drawn at random, whose scores are taken there.
    seed : int

    Raises
    ------
    InputError
        If the rows do not fit the ranker, or a number is out of range.

    Examples
    --------
    >>> from recsys import EASE, load_dataset
    >>> R = load_dataset("sample").matrix
    >>> found = item_vectors(EASE().fit(R, show_progress=False), R, factors=8)
    >>> found.vectors.shape, found.own, found.users
    ((300, 8), False, 400)
    """
    check_integer("factors", factors, 1)
    check_integer("most_users", most_users, 1)
    rows = clean_matrix(user_items)
    if "embeddings" in ranker.capabilities:
        return ItemVectors(np.asarray(ranker.item_embeddings()), True, 0, 0.0)
    users = np.arange(rows.shape[0])
    if len(users) > most_users:
        users = np.sort(np.random.default_rng(seed).choice(len(users), most_users, replace=False))
    report("scores", 0, 2)
    scores = ranker.scores(users, rows[users])
    report("main directions", 1, 2)
    _, s, Vt, error = _factorised(scores, factors, seed)
    # a score is linear in an item's side of it: s·v, which keeps the distances between its scores
    return ItemVectors((Vt.T * s).astype(np.float32), False, len(users), error)


def _factorised(scores: Vectors, factors: int, seed: int) -> tuple[Any, Any, Any, float]:
    """Return the truncated SVD of scores, of rank `factors` at most, and the share that it misses."""
    wanted = scores.astype(np.float64)
    U, s, Vt = leading_singular(wanted, min(factors, *wanted.shape), passes=4, seed=seed)
    size = float(np.linalg.norm(wanted))
    error = float(np.linalg.norm(wanted - (U * s) @ Vt)) / size if size > 0 else 0.0
    return U, s, Vt, error


class Projection(NamedTuple):
    """Vectors in two dimensions.

    Attributes
    ----------
    points : (items, 2) float64
    shares : (2,) float64 or None
        Of the vectors' variance, what each dimension shows; None where that is not what a method keeps.

    Examples
    --------
    >>> Projection(np.zeros((4, 2)), np.array([0.5, 0.25])).shares.sum()
    np.float64(0.75)
    """

    points: NDArray[np.float64]
    shares: NDArray[np.float64] | None


def project(vectors: Any, method: str = "pca", seed: int = 0) -> Projection:
    """Return vectors in two dimensions, by scikit-learn.

    Parameters
    ----------
    vectors : (items, factors) float
        Three or more.
    method : "pca" or "tsne"
        Principal components: at once, and distances are projections of the vectors'. t-SNE: slower,
        keeps what is near together, and no distance beyond.
    seed : int

    Raises
    ------
    InputError
        For another method, fewer than three items, or vectors that are not finite.

    Examples
    --------
    >>> found = project([[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0.1]])
    >>> found.points.shape, round(float(found.shares.sum()), 6)
    ((4, 2), 1.0)
    """
    check_choice("method", method, PROJECTIONS)
    X = np.asarray(vectors, dtype=np.float64)
    if X.ndim != 2 or len(X) < FEWEST or X.shape[1] == 0:
        raise InputError(f"a map needs {FEWEST} vectors or more, not an array of shape {X.shape}")
    if not np.isfinite(X).all():
        raise InputError("vectors hold NaN or infinity")
    if X.shape[1] == 1:
        X = np.column_stack([X, np.zeros(len(X))])
    if method == "pca":
        with np.errstate(invalid="ignore"):  # vectors all alike
            ways = [functools.partial(_components, X, how) for how in ("full", "covariance_eigh")]
            at, shares = first_converged(
                "the principal components did not converge: scale the vectors", ways
            )
        return Projection(at, shares)
    from sklearn.manifold import TSNE

    # in chunks, each from where the one before ended, so that it can be stopped between two
    points: Any = "pca"
    for chunk in range(CHUNKS):
        report("t-SNE", chunk, CHUNKS)
        points = TSNE(
            perplexity=min(PERPLEXITY, (len(X) - 1) / 3), init=points, max_iter=CHUNK,
            early_exaggeration=EXAGGERATION if chunk == 0 else 1.0, random_state=seed,
        ).fit_transform(X)  # fmt: skip
    return Projection(np.asarray(points, dtype=np.float64), None)


def _components(X: NDArray[np.float64], how: str) -> tuple[Any, Any]:
    """Return vectors on their two principal axes and the shares of the variance, by a solver of PCA."""
    from sklearn.decomposition import PCA

    made = PCA(2, svd_solver=how).fit(X)
    return made.transform(X), np.nan_to_num(made.explained_variance_ratio_)


def export_embeddings(path: str | Path, ids: NDArray[np.object_], vectors: Vectors) -> None:
    """Write ids and vectors to .parquet (columns id, vector), or vectors alone to .npy.

    Raises
    ------
    InputError
        For another ending, vectors that are not one an id, or a file that cannot be written.
    """
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
            raise InputError(f"an index needs usearch: {install_hint('index')}") from error
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
